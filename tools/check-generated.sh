#!/usr/bin/env bash
# Fails if the committed *.pb.go differ from the generated ones: changed, missing or surplus files.
# It only writes to .build/generated.
set -euo pipefail
cd "$(dirname "$0")/.."

fresh=.build/generated
rm -rf "$fresh"
mkdir -p "$fresh"
./bin/buf generate -o "$fresh"

list() { (cd "$1" && find proto -name '*.pb.go' | LC_ALL=C sort); }

status=0
if ! diff <(list .) <(list "$fresh"); then
  status=1
fi
while read -r file; do
  if [ -e "$file" ] && ! diff -u "$file" "$fresh/$file" | head -n 40; then
    status=1
  fi
done < <(list "$fresh")
if [ "$status" -ne 0 ]; then
  echo "generated code is not what the protos give: run make generate" >&2
fi
exit "$status"
