#!/usr/bin/env bash
# usage: property-packages.sh PACKAGE...
# Prints which of the packages have property tests, and so the flags of rapid.
set -euo pipefail
cd "$(dirname "$0")/.."
go list -test -f '{{.ImportPath}} {{join .Deps " "}}' "$@" |
  sed -n 's,^\([^ ]*\)\.test .*pgregory\.net/rapid.*,\1,p' | sort
