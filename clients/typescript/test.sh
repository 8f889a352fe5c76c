#!/usr/bin/env bash
# Installs what the package needs, makes the stubs, checks the types and runs the tests,
# against the daemon CONTEXTD_BINARY or one that is built with Go. `make test-typescript`.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")"
if ! command -v npm >/dev/null; then
	echo "SKIPPED: no npm"
	exit 3
fi
if ! cmp -s package-lock.json node_modules/.installed; then
	npm ci --no-audit --no-fund --loglevel=error
	cp package-lock.json node_modules/.installed
fi
npm run --silent generate
npm run --silent build
npm run --silent test
