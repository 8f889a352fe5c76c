#!/usr/bin/env bash
# Holds rendered messages to the types of the official SDKs, in Python and TypeScript, and of
# Anthropic's in Go, and the tools of the Go client to those of the SDKs for Go.
#
#   tools/sdkcheck/run.sh [folder of transcripts]
#
# What the SDKs need is installed into SDKCHECK_CACHE, or into a folder that is removed
# again. A language whose toolchain is not there is left out, and said to be; with neither
# Python nor TypeScript too little is checked, and that is a failure.
set -euo pipefail

here=$(cd "$(dirname "$0")" && pwd)
cd "$here/../.."
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cache=${SDKCHECK_CACHE:-$work}
mkdir -p "$cache"
checked=0

go run ./tools/sdkcheck ${1:+-corpus "$1"} >"$work/messages.jsonl"

if python=$(command -v "${PYTHON:-python3}"); then
	if ! cmp -s "$here/requirements.txt" "$cache/venv/installed"; then
		rm -rf "$cache/venv"
		"$python" -m venv "$cache/venv"
		"$cache/venv/bin/pip" install --quiet --disable-pip-version-check -r "$here/requirements.txt"
		cp "$here/requirements.txt" "$cache/venv/installed"
	fi
	echo "Python:"
	"$cache/venv/bin/python" "$here/check.py" <"$work/messages.jsonl"
	checked=1
else
	echo "Python: NOT CHECKED, there is no ${PYTHON:-python3}"
fi

if command -v npm >/dev/null && command -v node >/dev/null; then
	mkdir -p "$cache/ts"
	if ! cmp -s "$here/ts/package-lock.json" "$cache/ts/installed"; then
		cp "$here/ts/package.json" "$here/ts/package-lock.json" "$cache/ts/"
		(cd "$cache/ts" && npm ci --silent --ignore-scripts --no-audit --no-fund)
		cp "$here/ts/package-lock.json" "$cache/ts/installed"
	fi
	cp "$here/ts/tsconfig.json" "$cache/ts/"
	rm -rf "$cache/ts/generated"
	echo "TypeScript:"
	node "$here/ts/generate.mjs" "$cache/ts/generated" "${SDKCHECK_MOST:-4000}" <"$work/messages.jsonl"
	"$cache/ts/node_modules/.bin/tsc" -p "$cache/ts"
	echo "0 not of their type"
	checked=1
else
	echo "TypeScript: NOT CHECKED, there is no node with npm"
fi

echo "Go:"
go run -C "$here/go" . <"$work/messages.jsonl"
go test -C "$here/go" .

((checked)) || exit 1
