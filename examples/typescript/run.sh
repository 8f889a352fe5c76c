#!/usr/bin/env bash
# run.sh scenario ADDRESS FILE | run.sh agent [ADDRESS]: see ../README.md.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
root=$(cd "$here/../.." && pwd)
cache=${CONTEXTD_CACHE:-$root/.build}/examples-typescript
mkdir -p "$cache"
cache=$(cd "$cache" && pwd)

skip() { echo "SKIPPED: no $1"; exit 3; }
command -v npm >/dev/null || skip npm
node -e 'process.exit(Number(process.versions.node.split(".")[0]) >= 20 ? 0 : 1)' 2>/dev/null || skip 'node 20 or later'
include=.build/include/buf/validate/validate.proto
if [ ! -e "$root/$include" ]; then
	command -v go >/dev/null || skip "go, which brings $(basename "$include")"
	make -s -C "$root" "$include" >&2
fi

# The packages are kept in the cache, and the folder links to them, unless somebody
# installed them here.
if ! cmp -s "$here/package-lock.json" "$cache/installed"; then
	cp "$here/package.json" "$here/package-lock.json" "$cache"
	(cd "$cache" && npm ci --no-audit --no-fund --loglevel=error) >&2
	cp "$here/package-lock.json" "$cache/installed"
fi
if [ -L "$here/node_modules" ] || [ ! -e "$here/node_modules" ]; then
	ln -sfn "$cache/node_modules" "$here/node_modules"
fi

# Built again where a source, a proto or a package is newer.
built=$cache/built
if [ ! -e "$built" ] || [ -n "$(find "$here/src" "$here"/*.json "$root/proto/contextd/v1" "$root/clients/typescript/proto" "$cache/installed" \
	\( -path "$here/src/gen" -prune \) -o \( -name '*.ts' -o -name '*.json' -o -name '*.proto' -o -name installed \) -newer "$built" -print -quit)" ]; then
	(cd "$here" && npm run --silent generate && npm run --silent build -- --outDir "$cache/dist") >&2
	touch "$built"
fi
exec node "$cache/dist/main.js" "$@"
