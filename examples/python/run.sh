#!/usr/bin/env bash
# run.sh scenario ADDRESS FILE | run.sh agent [ADDRESS]; see examples/README.md.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/../.." && pwd)
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
mkdir -p "$cache/stubs"
(
	cd "$root/proto"
	"$cache/venv/bin/python" -m grpc_tools.protoc -I. -I"$root/.build/include" \
		--python_out="$cache/stubs" --grpc_python_out="$cache/stubs" \
		buf/validate/validate.proto contextd/v1/*.proto >&2
)
program=${1:-}
case $program in
scenario | agent) shift ;;
*) echo "usage: run.sh scenario ADDRESS FILE | run.sh agent [ADDRESS]" >&2; exit 2 ;;
esac
PYTHONPATH=$cache/stubs PYTHONDONTWRITEBYTECODE=1 exec "$cache/venv/bin/python" "$here/$program.py" "$@"
