#!/usr/bin/env bash
# run.sh scenario ADDRESS FILE | run.sh agent [ADDRESS]; see examples/README.md.
set -euo pipefail
root=$(cd "$(dirname "$0")/../.." && pwd)
cache=${CONTEXTD_CACHE:-$root/.build}
command -v go >/dev/null || { echo "SKIPPED: no go"; exit 3; }
mkdir -p "$cache/go"
go build -C "$root" -o "$cache/go/example" ./examples/go >&2
exec "$cache/go/example" "$@"
