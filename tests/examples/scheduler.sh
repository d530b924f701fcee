#!/bin/bash
# shellcheck disable=SC2086 # lists of arguments are split on purpose
# scheduler: the total matches an independent computation in python3, on any number of contexts; each context gets its
# share; failures do not stop other tasks, and are reported on one line.

# shellcheck source=tests/examples/common.bash
. "$(dirname "$0")/common.bash"
need python3 python3
need_example scheduler

for arguments in "0" "-1" "many" "1 2" "--help" "--contexts 0" "--contexts x" "10 --contexts"; do
    expect_status 2 "$examples/scheduler" $arguments
    expect_said '^usage: scheduler '
done

# total_of TASKS
total_of() {
    python3 - "$1" <<'PYTHON'
import bisect, sys

primes = [n for n in range(2, 6000) if all(n % d for d in range(2, int(n ** 0.5) + 1))]

def computes(n):
    return bisect.bisect_left(primes, 5000 + n % 1000)

def sleeps(n):
    return n % 20

kinds = (computes, sleeps, lambda n: n, lambda n: 100 * (n % 1000),
         lambda n: sleeps(n) + sleeps(n + 1) + computes(n), lambda n: sum(map(int, str(n))))
print(sum(kinds[n // 5 % 6](n) for n in range(int(sys.argv[1])) if n % 250 != 249))
PYTHON
}

# runs CONTEXTS TASKS FAILED: sets $tasks to the number of tasks that each context has started.
runs() {
    local because=''
    expect_status 0 "$examples/scheduler" "$2" --contexts "$1"
    grep -qE "^total $(total_of "$2") \(tasks: $2, contexts: $1, [0-9]+\.[0-9] ms\)$" "$tmp/said" ||
        fail "not $(total_of "$2"): $(cat "$tmp/said")"
    (($3 == 0)) || because=' (.*)'
    grep -qx "failed: $3$because" "$tmp/said" || fail "not $3 failures: $(cat "$tmp/said")"
    mapfile -t tasks < <(sed -nE 's/^context [0-9]+: ([0-9]+) tasks, [1-9][0-9]* turns, [0-9]+ parks, [0-9]+ wake-ups sent, [0-9]+ elided$/\1/p' "$tmp/said")
    [[ ${#tasks[@]} == "$1" && $(wc -l <"$tmp/said") == $(($1 + 2)) ]] || fail "not $1 contexts: $(cat "$tmp/said")"
}

runs 1 1 0
runs 1 249 0

# 1000 tasks, the one that waits for them, 164 that write to a pipe and 495 children; on one context no task moves.
runs 1 1000 4
because=$(printf '; task %s: No such file or directory' 249 499 749 999)
grep -qxF "failed: 4 (${because:2})" "$tmp/said" || fail "wrong reasons: $(cat "$tmp/said")"
[[ ${tasks[0]} == 1660 ]] || fail "not 1660 tasks: $(cat "$tmp/said")"

for contexts in 2 5; do
    runs $contexts 1000 4
    for number in "${tasks[@]}"; do
        ((number >= 1000 / contexts)) || fail "a context without its share: $(cat "$tmp/said")"
    done
done
runs 2 3000 12
grep -q 'task 1249: No such file or directory; \.\.\.)$' "$tmp/said" || fail "too many reasons: $(cat "$tmp/said")"

# Without enough descriptors some tasks fail and the others continue.
# shellcheck disable=SC2016
expect_status 0 bash -c 'ulimit -n 50; exec "$0" --contexts 2' "$examples/scheduler"
grep -q '^failed: .*Too many open files' "$tmp/said" || fail "descriptors did not run out: $(cat "$tmp/said")"
read -r _ failed _ < <(grep '^failed: ' "$tmp/said")
((failed > 4 && failed < 1000)) || fail "$failed failures"

# Without --contexts it chooses the number, and the total is the same.
expect_status 0 "$examples/scheduler"
grep -q "^total $(total_of 1000) " "$tmp/said" || fail "wrong total: $(cat "$tmp/said")"
