#!/usr/bin/env bash
# Fuzzes dn-top: runs every target, one after the other, with cargo-fuzz, which needs a nightly toolchain. Without one, the stable toolchain runs
# all targets in turn on randomly damaged seeds, which finds less.
#
#   tests/fuzz.sh [SECONDS [TARGET..]]     seconds per target; by default 60, and every target. Building takes additional time: minutes at first.
#
# Installs cargo-fuzz if it is missing. Findings and the corpus are kept in target/fuzz. `cargo test --test fuzz` briefly runs the same targets
# on stable.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

seconds=${1:-60}
targets=("${@:2}")
((${#targets[@]})) || for target in tests/fuzz/targets/*.rs; do targets+=("$(basename "$target" .rs)"); done
work=$PWD/target/fuzz

command -v cargo >/dev/null || { echo "fuzz: cargo is missing: install a Rust toolchain with rustup (https://rustup.rs)" >&2; exit 1; }
if ! cargo +nightly --version >/dev/null 2>&1; then
  echo "fuzz: the nightly toolchain is missing (rustup toolchain install nightly): running all targets on damaged seeds with the stable one" >&2
  DN_TOP_FUZZ_SECONDS=$((seconds * ${#targets[@]})) exec cargo test --release --test fuzz -- --nocapture damaged_seeds_do_not_crash_in_long_run
fi
command -v c++ >/dev/null || { echo "fuzz: a C++ compiler is missing (Debian: apt-get install g++)" >&2; exit 1; }
export PATH=$work/tools/bin:$PATH
command -v cargo-fuzz >/dev/null || cargo install cargo-fuzz --quiet --root "$work/tools"

# The seeds are made from the captures in the repository.
DN_TOP_SEEDS=$work/seeds cargo test --quiet --test fuzz seeds_are_valid

found=0
for target in "${targets[@]}"; do
  mkdir -p "$work/corpus/$target" "$work/found/$target"
  cargo +nightly fuzz run --fuzz-dir tests/fuzz --target-dir "$work/build" "$target" "$work/corpus/$target" "$work/seeds/$target" -- \
    -max_total_time="$seconds" -timeout=10 -rss_limit_mb=1024 -max_len=65536 -artifact_prefix="$work/found/$target/" -print_final_stats=1 || found=1
done
if ((found)); then echo "fuzz: findings: $(ls -d "$work"/found/*/*)" >&2; fi
exit $found
