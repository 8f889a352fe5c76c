#!/usr/bin/env bash
# run.sh scenario ADDRESS FILE | run.sh agent [ADDRESS]; see examples/README.md.
set -euo pipefail
root=$(cd "$(dirname "$0")/../.." && pwd)
cache=${CONTEXTD_CACHE:-$root/.build}
include=.build/include/buf/validate/validate.proto
command -v cargo >/dev/null || { echo "SKIPPED: no cargo"; exit 3; }
printf '%s\n' 1.88 "$(cargo --version | cut -d' ' -f2)" | sort -CV || { echo "SKIPPED: no cargo 1.88 or later"; exit 3; }
if [ ! -e "$root/$include" ]; then
	command -v go >/dev/null || { echo "SKIPPED: no go"; exit 3; }
	make -C "$root" "$include" >&2
fi
CONTEXTD_PROTO_INCLUDE=$root/.build/include CARGO_TARGET_DIR=$cache/rust \
	cargo build --quiet --locked --manifest-path "$root/examples/rust/Cargo.toml" >&2
exec "$cache/rust/debug/contextd-example" "$@"
