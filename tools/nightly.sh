#!/usr/bin/env bash
# usage: nightly.sh [STAGE...]
# Runs all stages, or the named ones, short ones first, and goes on after a failure. Random tests get
# a new seed each time, which is printed. At the end it lists how long each stage took, and fails if
# a stage failed. make nightly sets the variables.
set -uo pipefail
cd "$(dirname "$0")/.."

seed=$(date +%s)

# Two builds of what is released have the same bytes.
release() { make release-twice; }
image() { make image-steps IMAGE_STEPS_FLAGS=-twice; }
# 200,000 hostile calls of all methods.
hostile() { make hostile CALLS=200000 SEED="$seed"; }
# Attacks on the memory of a pod.
attack() { make attack; }
# The disk store against the model, and after crashes and damage.
store() { CGO_ENABLED=1 go test -count=1 -race -run 'Crash|Model|Flipped|LostFiles' -timeout 60m ./internal/log/disklog -rapid.checks=1000; }
# Adapters with the oldest versions of their frameworks.
adapters() { make test-python ADAPTERS='oldest adk-oldest'; }
fuzz() { make fuzz FUZZTIME="$FUZZTIME" PKG="$PKG"; }
# Faults of files, disk, clients, partners, databases and the process.
faults() { make faults SEED="$seed" SOAK="$SOAK"; }
# What make test runs without the race detector, and properties with new seeds.
race() { RACE=all tools/test.sh 60m "$TEST_P" $PKG; }
properties() { CGO_ENABLED=1 go test -count=1 -race -skip '^Test(Corpus|Costs)' -timeout 120m $(tools/property-packages.sh ./internal/... ./cmd/...) -rapid.checks="$CHECKS"; }
# Allocations and instructions of operations.
costs() { make costs; }

stages=(release image hostile attack store adapters fuzz faults race properties costs)
[ $# -eq 0 ] || stages=("$@")

report="" failed=""
for stage in "${stages[@]}"; do
  [ "$(type -t "$stage")" = function ] || { echo "there is no stage $stage" >&2; exit 2; }
done
for stage in "${stages[@]}"; do
  echo "== $stage"
  began=$SECONDS
  result=passed
  "$stage" || { result=FAILED failed=1; }
  report+=$(printf '%-12s %-7s %5d s' "$stage" "$result" $((SECONDS - began)))$'\n'
done
printf '== seed %s\n%s' "$seed" "$report"
[ -z "$failed" ]
