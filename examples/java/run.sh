#!/usr/bin/env bash
# run.sh scenario ADDRESS FILE | run.sh agent [ADDRESS]; see examples/README.md.
set -euo pipefail
root=$(cd "$(dirname "$0")/../.." && pwd)
here=$root/examples/java
cache=${CONTEXTD_CACHE:-$root/.build}
include=.build/include/buf/validate/validate.proto
command -v javac >/dev/null || { echo "SKIPPED: no javac"; exit 3; }
javac --release 17 -version >/dev/null 2>&1 || { echo "SKIPPED: no javac of a JDK 17 or later"; exit 3; }
command -v mvn >/dev/null || { echo "SKIPPED: no mvn"; exit 3; }
if [ ! -e "$root/$include" ]; then
	command -v go >/dev/null || { echo "SKIPPED: no go"; exit 3; }
	make -C "$root" "$include" >&2
fi
# Built again where a source or a proto is newer.
built=$cache/java/built
if [ ! -e "$built" ] || [ -n "$(find "$here/src" "$here/pom.xml" "$root/proto/contextd/v1" -newer "$built" -print -quit)" ]; then
	# A build is too short for what compiles hot code well to pay.
	MAVEN_OPTS="-XX:TieredStopAtLevel=1 -XX:+UseSerialGC ${MAVEN_OPTS-}" mvn -B -q -ntp -Dstyle.color=never -f "$here/pom.xml" -Dcontextd.build="$cache/java" -Dcontextd.include="$root/.build/include" process-classes >&2
	touch "$built"
fi
exec java -cp "$cache/java/classes:$cache/java/lib/*" contextd.example.Main "$@"
