#!/bin/bash
# shellcheck disable=SC2086 # lists of arguments are split on purpose
# mutex_counter: no increment is lost.

# shellcheck source=tests/examples/common.bash
. "$(dirname "$0")/common.bash"
need_example mutex_counter

for arguments in "0" "-1" "many" "1 2"; do
    expect_status 2 "$examples/mutex_counter" $arguments
    expect_said '^usage: mutex_counter '
done
for tasks in 1 7 1000; do
    expect_status 0 "$examples/mutex_counter" $tasks
    expect_said "^$tasks tasks counted to ${tasks}00, and it should be ${tasks}00\$"
done
