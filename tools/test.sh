#!/usr/bin/env bash
# usage: test.sh TIMEOUT AT_ONCE PACKAGE...
# Runs the tests of the packages in three steps:
#   1. those over recorded sessions (TestCorpus...) without the race detector, which makes
#      them twenty times slower and finds nothing in one goroutine;
#   2. packages with property tests, with a fixed seed, so that whether a change passes
#      depends on the change alone; make nightly draws new seeds;
#   3. all others.
set -euo pipefail
cd "$(dirname "$0")/.."

timeout=$1 at_once=$2
shift 2

packages=$(go list "$@" | sort)
with_corpus=$(go list -f '{{.Dir}}{{"\t"}}{{.ImportPath}}' "$@" | while IFS=$'\t' read -r folder package; do
  ! grep -qs '^func TestCorpus' "$folder"/*_test.go || echo "$package"
done)
with_properties=$(tools/property-packages.sh "$@")
others=$(comm -23 <(echo "$packages") <(echo "$with_properties"))

failed=""
step() {
  local of=$1
  shift
  # Without packages go would test the current folder.
  # shellcheck disable=SC2086 # one word a package
  [ -z "$of" ] || go test -p "$at_once" -timeout "$timeout" $of "$@" || failed=1
}
step "$with_corpus" -run '^TestCorpus'
step "$with_properties" -race -skip '^TestCorpus' -rapid.seed=1
step "$others" -race -skip '^TestCorpus'
[ -z "$failed" ] || { echo FAIL; exit 1; }
