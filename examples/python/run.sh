#!/usr/bin/env bash
# run.sh scenario ADDRESS FILE | run.sh agent [ADDRESS]; see examples/README.md.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/../.." && pwd)
package=$root/clients/python
cache=${CONTEXTD_CACHE:-$root/.build}/python-example
include=.build/include/buf/validate/validate.proto
python=$(command -v python3) || { echo "SKIPPED: no python3"; exit 3; }
"$python" -c 'import sys, venv; sys.exit(sys.version_info < (3, 10))' 2>/dev/null || { echo "SKIPPED: no python3 >= 3.10 with venv"; exit 3; }
if [ ! -e "$root/$include" ]; then
	command -v go >/dev/null || { echo "SKIPPED: no go"; exit 3; }
	make -C "$root" "$include" >&2
fi
if ! cmp -s "$here/requirements.txt" "$cache/requirements.txt"; then
	rm -rf "$cache"
	"$python" -m venv "$cache/venv" >&2
	"$cache/venv/bin/pip" install --quiet --disable-pip-version-check -r "$here/requirements.txt" >&2
	cp "$here/requirements.txt" "$cache/requirements.txt"
fi
# The package is installed as it is in the checkout; its build generates the modules of the protos.
built=$cache/built
if [ ! -e "$package/src/contextd_client/v1/event_pb2.py" ] || [ ! -e "$built" ] ||
	[ -n "$(find "$root/proto/contextd/v1" "$package/pyproject.toml" "$package/generate.py" -newer "$built" -print -quit)" ]; then
	"$cache/venv/bin/pip" install --quiet --disable-pip-version-check --no-deps --editable "$package" >&2
	touch "$built"
fi
program=${1:-}
case $program in
scenario | agent) shift ;;
*) echo "usage: run.sh scenario ADDRESS FILE | run.sh agent [ADDRESS]" >&2; exit 2 ;;
esac
PYTHONDONTWRITEBYTECODE=1 exec "$cache/venv/bin/python" "$here/$program.py" "$@"
