#!/usr/bin/env bash
# Shows dn-top at work with no .NET at hand: builds it and opens the dashboard on simulated runtimes. Arguments go to dn-top.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
tests/setup.sh build
exec cargo run --release --bin dn-top -- --demo "$@"
