#!/usr/bin/env bash
# usage: cover.sh PERCENT NAME...
# Prints the statement coverage of each internal/NAME with the packages under it,
# by the tests of all of internal, and fails where one is below PERCENT.
# Conformance suites (packages named *test) are tests and do not count.
set -euo pipefail
cd "$(dirname "$0")/.."

min=$1
shift
packages=""
for name in "$@"; do
  if [ ! -d "internal/$name" ]; then
    echo "SKIPPED: internal/$name does not exist" >&2
    continue
  fi
  for package in $(go list "./internal/$name/..." | grep -v 'test$'); do
    packages=${packages:+$packages,}$package
  done
done

profile=.build/cover.out
mkdir -p .build
go test -timeout 20m -coverpkg "$packages" -coverprofile "$profile" ./internal/...

# Each test binary reports every block; a block is covered if one of them ran it.
awk -v min="$min" '
  NR > 1 {
    statements[$1] = $2
    if ($3 > 0) ran[$1] = 1
  }
  END {
    for (block in statements) {
      name = block
      sub(/^.*\/internal\//, "", name)
      sub(/\/.*$/, "", name)
      total[name] += statements[block]
      if (block in ran) covered[name] += statements[block]
    }
    status = 0
    for (name in total) {
      percent = 100 * covered[name] / total[name]
      verdict = percent < min ? "  below " min "%" : ""
      if (percent < min) status = 1
      printf "internal/%-12s %6.1f%%  of %5d statements%s\n", name, percent, total[name], verdict | "LC_ALL=C sort"
    }
    close("LC_ALL=C sort")
    exit status
  }' "$profile"
