#!/usr/bin/env bash
# Soak test for leaks: the dashboard with processes that start and exit, 1,000 in half an hour (tests/benches/soak.rs). Prints a table, and fails if
# memory, file descriptors, threads or sessions grow.
#
#   tests/soak.sh [MINUTES [OPTION..]]     by default 30. Options are passed to cargo: `--profile test` uses an existing build.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

minutes=${1:-30}
options=("${@:2}")
cargo bench "${options[@]}" --bench soak --no-run

# Other processes start and exit, too: in a PID namespace of its own, the dashboard does not see them.
isolate=(unshare --pid --fork --kill-child --mount-proc)
"${isolate[@]}" true 2>/dev/null || isolate=()
exec "${isolate[@]}" cargo bench --quiet "${options[@]}" --bench soak -- "$minutes"
