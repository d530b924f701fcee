#!/usr/bin/env bash
# The checks of tools/clang-tidy/coil.clang-tidy find the mistakes planted in tidy/mistakes.cpp, and report nothing else.
set -eu

here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/../.." && pwd)
tidy=''
for candidate in clang-tidy-{22,21,20} clang-tidy; do
    # clang-tidy 20 was the first with the option that lists awaits without a suspension.
    if command -v "$candidate" >/dev/null &&
        "$candidate" --checks=misc-coroutine-hostile-raii --dump-config 2>/dev/null | grep -q AllowedCallees; then
        tidy=$candidate
        break
    fi
done
if [[ -z $tidy ]]; then
    echo "SKIP: clang-tidy 20 or newer is not installed"
    exit 77
fi

# Outside of the project, whose own checks would be inherited.
folder=$(mktemp -d)
trap 'rm -r "$folder"' EXIT
cp "$root/tools/clang-tidy/coil.clang-tidy" "$folder/.clang-tidy"
cp "$here/tidy/mistakes.cpp" "$folder"
said=$("$tidy" --quiet --header-filter='.*' "$folder/mistakes.cpp" -- -std=c++20 "-I$root/include" 2>"$folder/stderr") ||
    { echo "$said" && cat "$folder/stderr" && exit 1; }
if grep -q ': error: ' <<<"$said"; then
    echo "$said"
    exit 1
fi

if grep ': warning: ' <<<"$said" | grep -v 'mistakes\.cpp:'; then
    echo "$tidy: these warnings are about coil's headers, which the configuration excludes"
    exit 1
fi
found=$(sed -n 's/^.*mistakes\.cpp:\([0-9]*\):[0-9]*: warning: .*\[\([a-z-]*\)\]$/\1 \2/p' <<<"$said" | sort)
planted=$(awk '$1 == "//" && $2 == "finds" { print NR + 1, $3 }' "$here/tidy/mistakes.cpp" | sort)
if [[ -z $planted || $found != "$planted" ]]; then
    echo "$tidy: found (<) is not what was planted (>):"
    diff <(echo "$found") <(echo "$planted") || true
    echo "$said"
    exit 1
fi
