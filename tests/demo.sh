#!/usr/bin/env bash
# Demonstrates dn-top without .NET: builds it and opens the dashboard on simulated runtimes. Arguments are passed to dn-top.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
tests/setup.sh build
exec cargo run --release --bin dn-top -- --demo "$@"
