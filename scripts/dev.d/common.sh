# shellcheck shell=bash
# Shared by all commands of ./dev: messages, and progress of long-running commands.

say() { printf '%s\n' "dev: $*" >&2; }
die() {
    say "$*"
    exit 1
}
have() { command -v "$1" >/dev/null 2>&1; }
jobs_at_once() { echo "${COIL_JOBS:-$(nproc)}"; }

# progress TEXT: on a terminal, shows one line that is overwritten; elsewhere does nothing.
progress() {
    if [[ -t 2 ]]; then
        printf '\r\033[K%.*s' "$(($(tput cols 2>/dev/null || echo 80) - 1))" "$*" >&2
    fi
}
progress_done() {
    if [[ -t 2 ]]; then
        printf '\r\033[K' >&2
    fi
}

# patiently TEXT LOG COMMAND...: runs COMMAND, which takes long, with its output in LOG, and shows the elapsed time.
patiently() {
    local text=$1 log=$2 started=$SECONDS status=0 pid
    shift 2
    mkdir -p "$(dirname "$log")"
    say "$text ..."
    "$@" >"$log" 2>&1 </dev/null &
    pid=$!
    while kill -0 "$pid" 2>/dev/null; do
        progress "dev: $text: $((SECONDS - started)) s"
        sleep 0.3
    done
    wait "$pid" || status=$?
    progress_done
    if ((status != 0)); then
        tail -n 30 "$log" >&2
        say "failed after $((SECONDS - started)) s: $text (full log: $log)"
    fi
    return "$status"
}

# meter TEXT: filters the output of ninja or ctest. Lines that begin with [DONE/ALL] or "DONE/ALL Test" become a
# progress display; all other lines, and failed tests, pass through. Without a terminal, it prints a line every ten
# seconds.
meter() {
    local text=$1 line at all what next=$((SECONDS + 10))
    while IFS= read -r line; do
        if [[ $line =~ ^\[([0-9]+)/([0-9]+)\]\ (.*) || $line =~ ^\ *([0-9]+)/([0-9]+)\ Test\ +\#[0-9]+:\ (.*) ]]; then
            at=${BASH_REMATCH[1]} all=${BASH_REMATCH[2]} what=${BASH_REMATCH[3]}
            if [[ -t 2 ]]; then
                progress "dev: $text [$at/$all] $what"
            elif ((SECONDS >= next)); then
                next=$((SECONDS + 10))
                say "$text [$at/$all]"
            fi
            [[ $what == *'***'* && $what != *'***Skipped'* ]] || continue
        fi
        progress_done
        printf '%s\n' "$line"
    done
    progress_done
}
