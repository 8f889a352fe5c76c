#!/usr/bin/env bash
# release.sh DIR: writes a release into a new directory: an archive for each platform with the program,
# its completions, its SBOM and the service files; the clients' packages; and SHA256SUMS. The same
# commit gives the same bytes. A client whose toolchain is missing is skipped, and a line reports
# that. RELEASE_PLATFORMS restricts the platforms.
set -euo pipefail
cd "$(dirname "$0")/.."
out=$1
version=$(cat VERSION)
root=$PWD
SOURCE_DATE_EPOCH=$(git log -1 --format=%ct)
export SOURCE_DATE_EPOCH
git diff --quiet HEAD || echo "warning: there are changes that are not in the commit" >&2
mkdir -p "$(dirname "$out")"
mkdir "$out"
out=$(cd "$out" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# compile FILE: builds for GOOS and GOARCH, without the developer's GOFLAGS, which would change the file.
compile() {
	GOFLAGS=-buildvcs=false make --silent build VERSION="v$version" PROGRAM="$1" >&2
}

compile "$work/contextd"
mkdir "$work/completions"
for shell in bash zsh fish powershell; do
	"$work/contextd" completion "$shell" >"$work/completions/contextd.$shell"
done

for platform in ${RELEASE_PLATFORMS:-linux/amd64 linux/arm64 darwin/amd64 darwin/arm64}; do
	name=contextd_${version}_${platform/\//_}
	dir=$work/$name
	mkdir "$dir"
	GOOS=${platform%/*} GOARCH=${platform#*/} compile "$dir/contextd"
	go run ./tools/sbom -version "v$version" "$dir/contextd" >"$dir/contextd.cdx.json"
	cp -r "$work/completions" LICENSE README.md CHANGELOG.md "$dir"
	[[ $platform != linux/* ]] || cp -r deploy/systemd "$dir"
	find "$dir" -type f -exec chmod 0644 {} + && chmod 0755 "$dir/contextd"
	tar --format=ustar --sort=name --mtime="@$SOURCE_DATE_EPOCH" --owner=0 --group=0 --numeric-owner --mode=go-w \
		-C "$work" -c "$name" | gzip -n -9 >"$out/$name.tar.gz"
done

make .build/include/buf/validate/validate.proto >&2
if command -v python3 >/dev/null; then
	python3 -m pip wheel --quiet --disable-pip-version-check --no-deps --wheel-dir "$out" clients/python
else
	echo "SKIPPED: no python3 for the wheel" >&2
fi
if command -v npm >/dev/null; then
	cd clients/typescript
	[ -d node_modules ] || npm ci --no-audit --no-fund --loglevel=error >&2
	npm pack --silent --pack-destination "$out" >/dev/null
	cd "$root"
else
	echo "SKIPPED: no npm for the npm package" >&2
fi
if command -v cargo >/dev/null; then
	crate=$work/contextd-proto
	cp -r clients/rust "$crate"
	mkdir -p "$crate/proto/contextd" "$crate/proto/buf/validate"
	cp -r proto/contextd/v1 "$crate/proto/contextd"
	find "$crate/proto" -type f ! -name '*.proto' -delete
	cp .build/include/buf/validate/validate.proto "$crate/proto/buf/validate"
	cp LICENSE "$crate"
	cargo package --quiet --no-verify --allow-dirty --manifest-path "$crate/Cargo.toml" --target-dir "$work/target"
	cp "$work"/target/package/*.crate "$out"
else
	echo "SKIPPED: no cargo for the crate" >&2
fi
if command -v mvn >/dev/null && javac --release 17 -version >/dev/null 2>&1; then
	mvn -B -q -ntp -Dstyle.color=never -f clients/java/pom.xml -Dcontextd.build="$work/java" \
		-Dproject.build.outputTimestamp="$SOURCE_DATE_EPOCH" package >&2
	cp "$work/java/contextd-proto-$version.jar" "$out"
	cp clients/java/pom.xml "$out/contextd-proto-$version.pom"
else
	echo "SKIPPED: no mvn and javac of a JDK 17 or later for the Maven artifact" >&2
fi

cd "$out"
sha256sum -- * >SHA256SUMS
