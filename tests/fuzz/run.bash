#!/usr/bin/env bash
# run.bash PROGRAM CORPUS SECONDS [FINDINGS]: runs libFuzzer's PROGRAM for SECONDS, beginning with the inputs of the
# folder CORPUS. The last line says how many inputs were run. The exit status is 1 if one of them failed: that input is kept
# in the folder FINDINGS (default: the current one); "PROGRAM FILE" runs it alone.
#
# FUZZ_KEEP=1 adds the inputs that reached new code to CORPUS, reduced to as few files as possible.
set -uo pipefail

if (($# < 3 || $# > 4)); then
    echo "usage: run.bash PROGRAM CORPUS SECONDS [FINDINGS]" >&2
    exit 2
fi
program=$1 corpus=$2 seconds=$3 findings=${4:-.}
[[ -x $program && -d $corpus ]] || { echo "run.bash: no $program, or no folder $corpus" >&2; exit 2; }
mkdir -p "$findings"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir "$work/found"
export COIL_WATCHDOG=off # its reports depend on the load

status=0
"$program" "$work/found" "$corpus" -max_total_time="$seconds" -max_len=1024 -timeout=300 -print_final_stats=1 \
    -artifact_prefix="$findings/" >"$work/log" 2>&1 || status=$?
executed=$(sed -n 's/^stat::number_of_executed_units: *//p' "$work/log")
if ((status != 0)) || [[ -z $executed || $executed == 0 ]]; then
    tail -n 60 "$work/log"
    echo "$(basename "$program"): failed, status $status"
    exit 1
fi
if [[ ${FUZZ_KEEP:-} == 1 ]]; then
    "$program" -merge=1 "$corpus" "$work/found" >"$work/merge" 2>&1 || { tail -n 20 "$work/merge"; exit 1; }
fi
echo "$(basename "$program"): $executed inputs in $seconds s"
