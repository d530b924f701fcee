#!/bin/bash
# Compares cp, du, rm and search with the standard tools.

# shellcheck source=tests/examples/common.bash
. "$(dirname "$0")/common.bash"
for name in cp du rm search; do
    need_example "$name"
    "$examples/$name" --help >help || fail "$name --help ended with $?"
    grep -q "^usage: $name " help || fail "$name --help says $(<help)"
done
cd "$tmp" || exit 1

mkdir -p tree/a/b tree/empty
seq 1000 >tree/numbers
seq 300 400 >tree/a/more
printf 'binary 377\0\n' >tree/a/binary
head -c 300000 /dev/urandom >tree/a/b/data
ln tree/numbers tree/second_name
ln -s numbers tree/link
ln -s nowhere tree/a/b/dangling
chmod 500 tree/a/b
touch -d '2001-02-03 04:05:06.789' tree/numbers tree/a

# Type, mode and time; a directory's size depends on the file system.
picture() { (cd "$1" && find . -printf "%p %y %m %l ${2:-}\n" | sort && find . -type f -exec cksum {} + | sort); }

# cp
expect_status 2 "$examples/cp" tree
expect_status 1 "$examples/cp" tree copy
expect_said '^cp: tree to copy: Is a directory'
expect_status 1 "$examples/cp" missing copy
expect_said '^cp: missing to copy: No such file'
"$examples/cp" -r tree copy || fail "cp -r ended with $?"
cmp <(picture tree) <(picture copy) || fail "cp -r copied something else"
"$examples/cp" -a tree kept || fail "cp -a ended with $?"
cmp <(picture tree %T@) <(picture kept %T@) || fail "cp -a lost something"
mkdir into
"$examples/cp" tree/numbers tree/a/more into || fail "cp into a directory ended with $?"
cmp tree/numbers into/numbers || fail "cp into a directory"
"$examples/cp" tree/a/more into/numbers || fail "cp over a file ended with $?"
cmp tree/a/more into/numbers || fail "cp over a file"
expect_status 1 "$examples/cp" -r tree tree/a/inside

# du
"$examples/rm" -r tree/a/inside 2>/dev/null
for options in "" "-s"; do
    # shellcheck disable=SC2086 # none or one
    cmp <(du $options tree into | sort -k 2) <("$examples/du" $options tree into | sort -k 2) || fail "du $options"
done
[[ $("$examples/du" -sh tree/a/b/data) == "$(($(stat -c %b tree/a/b/data) / 2))K	tree/a/b/data" ]] || fail "du -h"
expect_status 1 "$examples/du" missing
expect_said '^du: missing: No such file'

# search
cmp <(grep -rnI 377 tree | sort) <("$examples/search" 377 tree | sort) || fail "search"
cmp <(grep -rnIE '^3(7|8)7$' tree | sort) <("$examples/search" -e '^3(7|8)7$' tree | sort) || fail "search -e"
cmp <(cd tree && grep -n 99 numbers) <("$examples/search" 99 tree/numbers | sed 's/^[^:]*://') || fail "search of a file"
expect_status 1 "$examples/search" "this stands nowhere" tree
expect_status 2 "$examples/search" 377 missing
expect_said '^search: missing: No such file'
expect_status 2 "$examples/search" -e '(' tree

# rm
expect_status 2 "$examples/rm"
expect_status 1 "$examples/rm" copy
expect_said '^rm: copy: Is a directory'
expect_status 1 "$examples/rm" missing
expect_status 1 "$examples/rm" -r missing
expect_status 0 "$examples/rm" -f missing
expect_status 0 "$examples/rm" -rf missing
expect_status 1 "$examples/rm" -r copy/.
"$examples/rm" into/numbers || fail "rm of a file ended with $?"
[[ ! -e into/numbers ]] || fail "rm left a file"
ln -s "$PWD/kept" tree/kept
chmod 700 tree/a/b kept/a/b copy/a/b
"$examples/rm" -r tree copy || fail "rm -r ended with $?"
[[ ! -e tree && ! -e copy ]] || fail "rm -r left something"
[[ -e kept/a/b/data ]] || fail "rm -r went through a link"
