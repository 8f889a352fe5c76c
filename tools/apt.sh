#!/usr/bin/env bash
# usage: apt.sh ARGUMENT...
# Runs apt-get and, if that fails, once more after an update. Targets of make that run in parallel take
# turns here, since apt-get refuses to run twice at once.
set -euo pipefail
lock="$(dirname "$0")/../bin/.apt.lock"
mkdir -p "${lock%/*}"
exec 9>"$lock"
flock 9
get="apt-get -o DPkg::Lock::Timeout=300"
$get "$@" || { $get update -qq && $get "$@"; }
