#!/usr/bin/env bash
# Sets up a plain machine and runs all tests, including those with real .NET runtimes. Arguments are passed to `cargo test`.
# Tests whose runtime is not available are skipped with a message; with CI=true that is a failure, except for runtimes
# from an archive (DN_TOP_RUNTIME_ARCHIVES, see tests/setup.sh).
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

tests/setup.sh build
if ! tests/setup.sh; then
  if [[ ${CI-} == true ]]; then exit 1; fi
  echo "The setup did not finish: tests that need what is missing will be SKIPPED." >&2
fi

log=$(mktemp)
trap 'rm -f "$log"' EXIT
run() { # THREADS_PER_PROCESSOR ARGUMENT..
  RUST_TEST_THREADS=${RUST_TEST_THREADS-$(($1 * $(nproc)))} cargo test --no-fail-fast "${@:2}" 2>&1 | tee -a "$log"
}
outcome=0
# Most tests wait for another program most of the time, and unit tests for deadlines nearly all the time.
if (($#)); then
  run 2 "$@" || outcome=$?
else
  # Builds everything at once.
  cargo test --no-run
  run 8 --lib || outcome=$?
  run 2 --bins --test '*' || outcome=$?
  run 2 --doc || outcome=$?
fi

# Summary of each test binary with its name, and the totals. The test runner counts skipped tests as passed.
printf '\nSummary\n'
awk '
  /^ +Running / { name = $0; sub(/^ +Running (unittests )?/, "", name); sub(/ \(.*/, "", name) }
  /^ +Doc-tests / { name = "examples in the documentation" }
  /^test result: / { printf "%-30s %s\n", name, $0; passed += $4; failed += $6; ignored += $8 }
  match($0, /SKIPPED [^ ]+: .*/) {
    line = substr($0, RSTART)
    print line
    split(line, word, " ")
    if (!seen[word[2]]++) skipped++
  }
  END { printf "total: %d passed, %d failed, %d skipped\n", passed - skipped, failed, skipped + ignored }' "$log"

# Tests that depend on other programs may fail because the machine was frozen: a few such tests are retried once, each alone. That is always reported.
if ((outcome != 0)); then
  failed=$(awk '
    /^ +Running / { name = $0; sub(/^ +Running (unittests )?/, "", name); sub(/ \(.*/, "", name) }
    /^test .* FAILED$/ { print name, $2 }
    /^error: could not compile/ { print "nothing compiled" }' "$log")
  allowed='^(src/lib|tests/(live|hostile|terminal)/main).rs '
  if [[ -n $failed && $(wc -l <<<"$failed") -le 3 ]] && ! grep -qvE "$allowed" <<<"$failed"; then
    outcome=0
    while read -r program test; do
      program=${program#tests/}
      if [[ $program == src/lib.rs ]]; then which=(--lib); else which=(--test "${program%/main.rs}"); fi
      if cargo test "${which[@]}" -- --exact "$test" --test-threads 1; then
        echo "PASSED ALONE: $test, after failing in parallel with other tests"
      else
        outcome=1
      fi
    done <<<"$failed"
  fi
fi
exit "$outcome"
