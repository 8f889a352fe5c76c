#!/usr/bin/env bash
# Tests the inspector in a headless Chromium, against the program CONTEXTD_BINARY or one that is
# built with Go. REWRITE=1 replaces the stored screenshots. Exits with 3 where npm or Chromium is
# missing.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../inspector"
export CHROMIUM=${CHROMIUM:-$(command -v chromium || command -v chromium-browser || true)}
if ! command -v npm >/dev/null || [ -z "$CHROMIUM" ]; then
	echo "SKIPPED: the inspector is not tested in a browser without npm and chromium" >&2
	exit 3
fi
if ! cmp -s package-lock.json node_modules/.installed; then
	npm ci --no-audit --no-fund --loglevel=error
	cp package-lock.json node_modules/.installed
fi
if [ -z "${CONTEXTD_BINARY-}" ]; then
	export CONTEXTD_BINARY=$PWD/../.build/inspector-browser/contextd
	go build -C .. -p 2 -o "$CONTEXTD_BINARY" ./cmd/contextd
fi
npx --no-install vitest run --config browser/vitest.config.ts
