#!/usr/bin/env bash
# Fails where the protos would break a client or a file written by main.
#
# The baseline is BASELINE, else origin/main, else main. It is copied into a workspace of its own,
# since the include that the workspace needs is not part of a commit.
set -euo pipefail
cd "$(dirname "$0")/.."

baseline=""
if [ -n "${BASELINE:-}" ]; then
  git rev-parse --quiet --verify "$BASELINE^{commit}" >/dev/null || {
    echo "BASELINE=$BASELINE is no commit" >&2
    exit 1
  }
fi
for ref in ${BASELINE:+"$BASELINE"} refs/remotes/origin/main refs/heads/main; do
  if git rev-parse --quiet --verify "$ref^{commit}" >/dev/null; then
    baseline=$ref
    break
  fi
done
if [ -z "$baseline" ]; then
  echo "SKIPPED: breaking-change check: there is no main branch to compare with (set BASELINE=commit)" >&2
  exit 0
fi
if [ -z "$(git ls-tree "$baseline" proto/ buf.yaml)" ]; then
  echo "SKIPPED: breaking-change check: $baseline has no protos" >&2
  exit 0
fi

against=.build/baseline
rm -rf "$against"
mkdir -p "$against"
git archive "$baseline" buf.yaml proto | tar -x -C "$against"
mkdir -p "$against/.build"
cp -R .build/include "$against/.build/include"
./bin/buf breaking --against "$against"
