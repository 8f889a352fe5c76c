#!/usr/bin/env bash
# Installs what the package needs, makes the stubs, checks the types and runs the tests,
# against the daemon CONTEXTD_BINARY or one that is built with Go. `make test-typescript`.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")"
if ! command -v npm >/dev/null; then
	echo "SKIPPED: no npm"
	exit 3
fi

# install FOLDER: what its package-lock.json names.
install() {
	cmp -s "$1/package-lock.json" "$1/node_modules/.installed" && return
	npm --prefix "$1" ci --no-audit --no-fund --loglevel=error &&
		cp "$1/package-lock.json" "$1/node_modules/.installed"
}

install .
npm run --silent generate
npm run --silent build
if [ -z "${CONTEXTD_BINARY-}" ] && command -v go >/dev/null; then
	export CONTEXTD_BINARY=$PWD/../../.build/typescript/contextd
	go build -C ../.. -p 2 -o "$CONTEXTD_BINARY" ./cmd/contextd
fi
npm run --silent test

# Mastra needs a newer Node, so it is a separate package.
if ! install mastra || ! mastra/node_modules/.bin/node --version >/dev/null; then
	echo "SKIPPED: the tests with Mastra, as it or its Node cannot be installed" >&2
	exit
fi
ln -sfn ../.. mastra/node_modules/contextd-client
npm --prefix mastra run --silent test
