#!/usr/bin/env bash
# Checks types and style and runs the tests against a real daemon. Exits with 3 and one line
# where the toolchain is missing. Arguments go to pytest.
#
# Frameworks that cannot be installed together have separate environments: requirements-adk.txt, and
# requirements-NAME.txt for each NAME in ADAPTERS. Only the adapters' tests run in these.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
builds=${CONTEXTD_CACHE:-$(cd "$here/../.." && pwd)/.build}
command -v python3 >/dev/null || { echo "SKIPPED: no python3"; exit 3; }
command -v go >/dev/null || { echo "SKIPPED: no go"; exit 3; }
cd "$here"

# install NAME: creates the environment $cache/venv from requirements-NAME.txt.
install() {
	cache=$builds/python-$1
	if ! cmp -s "requirements-$1.txt" "$cache/requirements-$1.txt"; then
		rm -rf "$cache"
		python3 -m venv "$cache/venv"
		"$cache/venv/bin/pip" install --quiet --disable-pip-version-check -r "requirements-$1.txt"
		cp "requirements-$1.txt" "$cache/requirements-$1.txt"
	fi
	# The build generates the modules of contextd_client/v1 with the generators that it pins.
	"$cache/venv/bin/pip" install --quiet --disable-pip-version-check --no-deps --editable .
}

install test
"$cache/venv/bin/ruff" check .
"$cache/venv/bin/ruff" format --check .
"$cache/venv/bin/mypy" --cache-dir "$cache/mypy"
"$cache/venv/bin/python" -m pytest "$@"
for name in adk ${ADAPTERS-}; do
	install "$name"
	"$cache/venv/bin/python" -m pytest tests/adapters "$@"
done
