#!/usr/bin/env bash
# refused.bash FOLDER HEADERS COMPILER [FLAG...]: checks that no FOLDER/refused_*.cpp compiles, and that the compiler
# prints the sentence that the page names.

set -u
here=$(dirname "${BASH_SOURCE[0]}")
folder=$1
shift
bad=0 count=0
for source in "$folder"/refused_*.cpp; do
    count=$((count + 1))
    bash "$here/../compile_fail/check.bash" "$source" "$@" || bad=1
done
((count > 0)) || { echo "no page has a block that must not compile"; exit 1; }
exit "$bad"
