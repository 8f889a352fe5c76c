#!/usr/bin/env bash
# usage: apt.sh ARGUMENT...
# Runs apt-get, once more after an update where that fails. Targets of make that run side by side wait
# for each other here: apt-get refuses to run twice at once.
set -euo pipefail
lock="$(dirname "$0")/../bin/.apt.lock"
mkdir -p "${lock%/*}"
exec 9>"$lock"
flock 9
get="apt-get -o DPkg::Lock::Timeout=300"
$get "$@" || { $get update -qq && $get "$@"; }
