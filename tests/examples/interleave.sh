#!/bin/bash
# The lookups of examples/interleave find what the plain ones find, whatever the size and the width.

# shellcheck source=tests/examples/common.bash
. "$(dirname "$0")/common.bash"
cd "$tmp" || exit 1

for name in binary_search hash_probe b_tree_search pointer_chase; do
    need_example "$name"
    for options in "1 1 1" "1 5000 1" "1 5000 7" "3 20000 16" "16 20000 64" "1 3 100"; do
        # shellcheck disable=SC2086 # three arguments
        "$examples/$name" $options >said || fail "$name $options ended with $?: $(<said)"
        read -r mib count _ <<<"$options"
        [[ $(head -n 1 said) == "$count lookups in $mib MiB, all results equal" ]] || fail "$name $options said: $(<said)"
        [[ $(wc -l <said) == 3 ]] || fail "$name $options said: $(<said)"
    done
    expect_status 2 "$examples/$name" 0
    expect_said '^usage: '
    expect_status 2 "$examples/$name" 1 x
done
