#!/usr/bin/env bash
# Checks types and style and runs the tests against a real daemon. Exits with 3 and one line
# where the toolchain is missing. Arguments go to pytest.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
cache=${CONTEXTD_CACHE:-$(cd "$here/../.." && pwd)/.build}/python-test
command -v python3 >/dev/null || { echo "SKIPPED: no python3"; exit 3; }
command -v go >/dev/null || { echo "SKIPPED: no go"; exit 3; }
cd "$here"
if ! cmp -s requirements-test.txt "$cache/requirements-test.txt"; then
	rm -rf "$cache"
	python3 -m venv "$cache/venv"
	"$cache/venv/bin/pip" install --quiet --disable-pip-version-check -r requirements-test.txt
	cp requirements-test.txt "$cache/requirements-test.txt"
fi
# The build generates the modules of contextd_client/v1 with the generators that it pins.
"$cache/venv/bin/pip" install --quiet --disable-pip-version-check --no-deps --editable .
"$cache/venv/bin/ruff" check .
"$cache/venv/bin/ruff" format --check .
"$cache/venv/bin/mypy" --cache-dir "$cache/mypy"
"$cache/venv/bin/python" -m pytest "$@"
