#!/usr/bin/env bash
# usage: test.sh TIMEOUT AT_ONCE PACKAGE...
# Runs the tests of the packages, with the race detector where it may find something. It makes tests
# many times slower, so it is off
#   - for packages that start no goroutines, and for the program's package, whose tests run it as a process of its own;
#   - for tests that count allocations, over recorded sessions, and attacks on a daemon that is a process of its own;
#   - for other long tests without concurrency, and for programs that scripts start hundreds of times.
# With RACE=all, as in make nightly, it is on for all packages and tests.
#
# Property tests have a fixed seed, so that whether a change passes depends on the change alone;
# make nightly draws new ones. go vet is off, since make lint vets the same code.
set -euo pipefail
cd "$(dirname "$0")/.."

# Programs that tests build need no symbols, and linking them takes half of the time without.
export GOFLAGS="${GOFLAGS:-} -ldflags=-s"

timeout=$1 at_once=$2
shift 2

plain='Costs|Corpus|Attack|Fault|HostileCalls|ImportsWithinMemory'
if [ "${RACE:-}" != all ]; then
  plain+='|Documented|MalformedArguments|ChainedCompactions|ExplainTells|CompactionsHold|LookupsAgree|TiersStay|EveryRequestField'
  plain+='|ListProjectionsPageBytes|LargestEvent|BundledSession|ChecksSee|DigestsOfTheDemo|Readme|Convert|DeltaInEveryFormat'
  plain+='|BadInput|BoundReasoning|ColdReads|InjectionsNever|RequestSizes|Unpacking|DenseRequests|ViolationsAreBounded'
  plain+='|AColdShadow|AShadow|InjectionsChange|NothingDepends|ReplaysRead|ContextsKeep|TextThatLooks|EventsAreSeen|EveryTokenIs'
  plain+='|LongRuns|VocabulariesAs|Conformance(ThroughPooler|Without|Encrypted|Small|OfSeveral)|PostgresLostAnswers'
  plain+='|\w*PowerFailure|\w*Interrupted|FirstOpening|ModelEncrypted|Crash|FailedListing|FailedChange|FullDisk'
  plain+='|DamagedSessionIsDeleted|Model\b|Flipped|LostFiles|DeletedIsGone|Repair|HeadsAreSmall|SetBackBetween'
  plain+='|BackupAmongDeletions|LeaveOneOut|FrugalPolicy|HarnessViewGrows|ASessionIsBounded|ReadingIsWork|CompactionReads'
fi
plain="^Test($plain)"

packages=$(go list "$@" | sort)
with_properties=$(tools/property-packages.sh "$@")
single="" with_plain=""
while IFS=$'\t' read -r folder package; do
  if [ "${RACE:-}" != all ] && { [ "$folder" = "$PWD/cmd/contextd" ] ||
    ! grep -Eqs '^\s*go |\.(Go|Parallel)\(|logtest\.Run' "$folder"/*.go; }; then
    single+=$package$'\n'
  elif grep -Eqs "^func ${plain#^}" "$folder"/*_test.go; then
    with_plain+=$package$'\n'
  fi
done < <(go list -f '{{.Dir}}{{"\t"}}{{.ImportPath}}' "$@" | sort)

# go test shows the reason of a skipped test with -v only.
[ -d ../shared/corpus ] || echo "SKIPPED: tests over recorded sessions: there are none beside the repository"

failed=""
# run AT_ONCE PACKAGES FLAG...
run() {
  local at_once=$1 of=$2
  shift 2
  # Without packages go would test the current folder.
  # shellcheck disable=SC2086 # one word a package
  [ -z "$of" ] || go test -vet=off -p "$at_once" -timeout "$timeout" $of "$@"
}
# step PACKAGES FLAG...: only packages with property tests know the flag of the seed. Those and the others are tested side by
# side, because the longest package would else run alone at the end. Those with properties take longer.
step() {
  local of=$1 half=$(((at_once + 1) / 2)) race="" properties
  shift
  [ "${1:-}" != -race ] || race=$1
  [ -n "$of" ] || return 0
  # All are compiled first, so that the two do not compile the same packages.
  # shellcheck disable=SC2086
  go list -export -test -deps -p "$at_once" $race $of >/dev/null || failed=1
  run "$at_once" "$(comm -12 <(sort -u <<<"$of") <(echo "$with_properties"))" "$@" -rapid.seed=1 &
  properties=$!
  [ "$at_once" -gt 1 ] || { wait "$properties" || failed=1; properties=""; }
  run "$half" "$(comm -23 <(sort -u <<<"$of") <(echo "$with_properties") | sed '/^$/d')" "$@" || failed=1
  [ -z "$properties" ] || wait "$properties" || failed=1
}
step "$single"
step "$with_plain" -run "$plain"
# The race detector needs C; programs that tests build do not.
CGO_ENABLED=1 step "$(comm -23 <(echo "$packages") <(printf %s "$single" | sort))" -race -exec 'env CGO_ENABLED=0' -skip "$plain"
[ -z "$failed" ] || { echo FAIL; exit 1; }
