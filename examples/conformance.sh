#!/usr/bin/env bash
# Runs examples/scenario.json in every language whose toolchain is there, against one daemon,
# and examples/outages.json, each against a daemon of its own, which examples/patience restarts,
# slows down and takes the store from; compares what they report byte for byte. Then runs their
# agent loops through examples/patience, which refuses calls and checks that they wait as asked.
#
#   examples/conformance.sh [--allow-few] [LANGUAGE...]
#
# Without --allow-few, Go and at least one other language must have run. Exits with 1
# where a client failed, differed, or too few ran.
set -euo pipefail
root=$(cd "$(dirname "$0")/.." && pwd)
cd "$root"
cache=${CONTEXTD_CACHE:-$root/.build}
out=$cache/conformance
few=false
[ "${1-}" != --allow-few ] || { few=true; shift; }
languages=("$@")
[ $# -gt 0 ] || languages=(go python typescript rust java)

rm -rf "$out"
mkdir -p "$out"
go build -o "$out" ./cmd/contextd ./examples/patience
: >"$out/daemon.log"
"$out/contextd" serve --store memory --listen 127.0.0.1:0 --log-format json </dev/null >"$out/daemon.log" 2>&1 &
daemon=$!
stop() {
	kill "$daemon" 2>/dev/null || true
	wait "$daemon" 2>/dev/null || true
}
trap stop EXIT
address=
until [ -n "$address" ]; do
	kill -0 "$daemon" 2>/dev/null || { echo "the daemon did not start:"; cat "$out/daemon.log"; exit 1; }
	address=$(sed -n 's/.*"msg":"listening","address":"\([^"]*\)".*/\1/p' "$out/daemon.log")
	sleep 0.1
done
"$out/contextd" health --addr "$address" --wait 30s >/dev/null

ran=() failed=()
for language in "${languages[@]}"; do
	run=examples/$language/run.sh
	if [ ! -x "$run" ]; then
		echo "$language: skipped, no $run"
		continue
	fi
	code=0
	SECONDS=0
	timeout 900 "$run" scenario "$address" examples/scenario.json \
		</dev/null >"$out/$language.lines" 2>"$out/$language.log" || code=$?
	case $code in
	0)
		ran+=("$language")
		echo "$language: ran in ${SECONDS}s, $(wc -l <"$out/$language.lines") lines, $(sha256sum <"$out/$language.lines" | cut -c1-16)"
		;;
	3) echo "$language: skipped, $(tail -n 1 "$out/$language.lines")" ;;
	*)
		failed+=("$language")
		echo "$language: FAILED with $code"
		tail -n 20 "$out/$language.log"
		;;
	esac
done

# Side by side, since they wait for most of the time.
running=()
for language in "${ran[@]}"; do
	run=examples/$language/run.sh
	{
		"$out/patience" scenario "$out/contextd" examples/outages.json "$run" scenario >"$out/$language.outages" &&
			"$out/patience" agent "$address" "$run" agent >"$out/$language.patience"
	} </dev/null 2>"$out/$language.log" &
	running+=($!)
done
for i in "${!ran[@]}"; do
	if ! wait "${running[$i]}"; then
		failed+=("${ran[$i]}")
		echo "${ran[$i]}: FAILED where the daemon did, or its agent did"
		tail -n 20 "$out/${ran[$i]}.log"
	fi
done
for scenario in scenario:lines outages:outages; do
	steps=$(grep -c '^    {"' "examples/${scenario%:*}.json")
	report=${scenario#*:}
	for language in "${ran[@]}"; do
		if [ "$(wc -l <"$out/$language.$report")" -ne "$steps" ]; then
			echo "$language: reports $(wc -l <"$out/$language.$report") of $steps steps"
			failed+=("$language")
		elif ! diff "$out/${ran[0]}.$report" "$out/$language.$report" >"$out/$language.diff"; then
			echo "$language: differs from ${ran[0]}:"
			head -n 10 "$out/$language.diff"
			failed+=("$language")
		fi
	done
done
if [ ${#failed[@]} -gt 0 ]; then
	echo "conformance: failed: ${failed[*]}"
	exit 1
fi
if ! $few && { [ ${#ran[@]} -lt 2 ] || [[ " ${ran[*]} " != *" go "* ]]; }; then
	echo "conformance: too few ran (${ran[*]}); Go and one other must, or --allow-few be given"
	exit 1
fi
echo "conformance: ${#ran[@]} clients report the same, outlive outages, and their agents wait as asked: ${ran[*]}"
