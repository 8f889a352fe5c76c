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

# What it needs is kept in the cache, and the folder links to them, unless somebody
# installed them here.
if ! cmp -s "$here/package-lock.json" "$cache/installed"; then
	cp "$here/package.json" "$here/package-lock.json" "$cache"
	(cd "$cache" && npm ci --no-audit --no-fund --loglevel=error) >&2
	cp "$here/package-lock.json" "$cache/installed"
fi
if [ -L "$here/node_modules" ] || [ ! -e "$here/node_modules" ]; then
	ln -sfn "$cache/node_modules" "$here/node_modules"
fi

# The package as it is in the checkout, which its tests install and build, too. What it depends on
# is in package.json.
package=$root/clients/typescript
installed=$cache/node_modules/contextd-client
newer() { [ ! -e "$1" ] || [ -n "$(find "${@:2}" -path "$package/src/gen" -prune -o -type f -newer "$1" -print -quit)" ]; }
if newer "$installed/package.json" "$package/src" "$package"/*.json "$root/proto/contextd/v1" "$package/proto"; then
	(
		cd "$package"
		if ! cmp -s package-lock.json node_modules/.installed; then
			npm ci --no-audit --no-fund --loglevel=error
			cp package-lock.json node_modules/.installed
		fi
		npm run --silent generate
		npm run --silent build
		rm -rf "$installed"
		mkdir -p "$installed"
		cp -R dist package.json "$installed"
	) >&2
fi
if newer "$cache/dist/main.js" "$here/src" "$here"/*.json "$installed/package.json"; then
	(cd "$here" && npm run --silent build -- --outDir "$cache/dist") >&2
fi
exec node "$cache/dist/main.js" "$@"
