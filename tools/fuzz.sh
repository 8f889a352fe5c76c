#!/usr/bin/env bash
# usage: fuzz.sh DURATION PACKAGE...
# Runs every fuzz target of the packages for DURATION, one after another.
set -euo pipefail
cd "$(dirname "$0")/.."

duration=$1
shift
found=0
for package in $(go list "$@"); do
  targets=$(go test -list '^Fuzz' "$package" | grep '^Fuzz' || true)
  for target in $targets; do
    found=$((found + 1))
    echo "== $package $target"
    go test -run '^$' -fuzz "^$target\$" -fuzztime "$duration" "$package"
  done
done
echo "$found fuzz targets ran for $duration each"
[ "$found" -gt 0 ]
