#!/usr/bin/env bash
# Looks for what grows: the dashboard beside processes that come and go, 1,000 in half an hour (tests/benches/soak.rs). Prints a table, and fails where
# memory, file descriptors, threads or sessions do not stay what they were.
#
#   tests/soak.sh [MINUTES [OPTION..]]     by default 30. Options go to cargo: `--profile test` soaks a build that is there already.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

minutes=${1:-30}
options=("${@:2}")
cargo bench "${options[@]}" --bench soak --no-run

# Processes of others come and go, too: in a pid namespace of its own the dashboard does not see them.
isolate=(unshare --pid --fork --kill-child --mount-proc)
"${isolate[@]}" true 2>/dev/null || isolate=()
exec "${isolate[@]}" cargo bench --quiet "${options[@]}" --bench soak -- "$minutes"
