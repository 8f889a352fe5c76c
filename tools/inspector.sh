#!/usr/bin/env bash
# Builds the inspector's page: `tools/inspector.sh FOLDER` writes it there, after its types and
# tests were checked. Exits with 3 where there is no npm.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../inspector"
if ! command -v npm >/dev/null; then
	echo "SKIPPED: no npm, so the inspector's page is not built from its source" >&2
	exit 3
fi
if ! cmp -s package-lock.json node_modules/.installed; then
	npm ci --no-audit --no-fund --loglevel=error
	cp package-lock.json node_modules/.installed
fi
../bin/buf generate
npm run --silent typecheck
npm run --silent test
INSPECTOR_DIST=$1 npm run --silent build
