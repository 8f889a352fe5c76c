#!/usr/bin/env bash
# usage: test.sh TIMEOUT AT_ONCE PACKAGE...
# Runs the tests of the packages in three steps:
#   1. without the race detector those that it makes many times slower without a chance of
#      finding anything: over recorded sessions, in one goroutine, and attacks on a daemon
#      that is another process;
#   2. packages with property tests, with a fixed seed, so that whether a change passes
#      depends on the change alone; make nightly draws new seeds;
#   3. all others.
set -euo pipefail
cd "$(dirname "$0")/.."

timeout=$1 at_once=$2
shift 2

packages=$(go list "$@" | sort)
plain='^Test(Corpus|Attack|ImportsWithinMemory)'
with_plain=$(go list -f '{{.Dir}}{{"\t"}}{{.ImportPath}}' "$@" | while IFS=$'\t' read -r folder package; do
  ! grep -Eqs "^func ${plain#^}" "$folder"/*_test.go || echo "$package"
done)
with_properties=$(tools/property-packages.sh "$@")
others=$(comm -23 <(echo "$packages") <(echo "$with_properties"))

# go test shows the reason of a skipped test with -v only.
[ -d ../shared/corpus ] || echo "SKIPPED: tests over recorded sessions: ../shared/corpus is not next to the repository"

failed=""
step() {
  local of=$1
  shift
  # Without packages go would test the current folder.
  # shellcheck disable=SC2086 # one word a package
  [ -z "$of" ] || go test -p "$at_once" -timeout "$timeout" $of "$@" || failed=1
}
step "$with_plain" -run "$plain"
step "$with_properties" -race -skip "$plain" -rapid.seed=1
step "$others" -race -skip "$plain"
[ -z "$failed" ] || { echo FAIL; exit 1; }
