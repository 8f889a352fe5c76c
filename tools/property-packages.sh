#!/usr/bin/env bash
# usage: property-packages.sh PACKAGE...
# Prints the packages that have property tests, and so accept the flags of rapid.
set -euo pipefail
cd "$(dirname "$0")/.."
go list -test -f '{{.ImportPath}} {{join .Deps " "}}' "$@" |
  sed -n 's,^\([^ ]*\)\.test .*pgregory\.net/rapid.*,\1,p' | sort
