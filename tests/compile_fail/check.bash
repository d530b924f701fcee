#!/usr/bin/env bash
# check.bash SOURCE[:CASE] HEADERS COMPILER [FLAG...]
# check.bash --precompile HEADERS COMPILER [FLAG...]: builds HEADERS, a folder with a precompiled coil/coil.hpp.
#
# Checks that SOURCE does not compile and that the compiler prints the message of its first line, "// expect: MESSAGE".
# Clang must print it in its first error, and at most 15 lines in all. GCC prints longer explanations.
# With -DCOIL_EXPECT_OK the same source must compile, which proves that only the tested line is refused. A second line
# "// only: clang" says that other compilers have no such diagnostic.
#
# Further lines: "// mistake N: SENTENCE" and "// mistake N, warning: SENTENCE" are marks for the table of mistakes
# (tests/docs/README.md); the second says that the message is a warning, which the tests treat as an error.
#
# A line "// lifetimes" after these two compiles the case with COIL_CHECK_LIFETIMES and without the precompiled header.
#
# A table holds several cases. Each begins with "#if COIL_CASE == NUMBER // NAME", followed by the lines above, and is
# compiled alone: SOURCE:NUMBER.
set -u

source=$1 headers=$2
shift 2
if [[ $source == --precompile ]]; then
    mkdir -p "$headers"
    echo '#include <coil/coil.hpp>' >"$headers/all.hpp"
    # The name under which both compilers look for it.
    "$@" -Wall -Wextra -Werror -x c++-header "$headers/all.hpp" -o "$headers/all.hpp.gch"
    exit
fi

case='' first_line=1
if [[ $source =~ ^(.*):([0-9]+)$ ]]; then
    source=${BASH_REMATCH[1]} case=${BASH_REMATCH[2]}
    first_line=$(grep -n "^#if COIL_CASE == $case // " "$source" | cut -d: -f1)
    if [[ ! $first_line =~ ^[0-9]+$ ]]; then
        echo "$source: there must be exactly one line '#if COIL_CASE == $case // NAME'"
        exit 1
    fi
    first_line=$((first_line + 1))
fi
compile=("$@" -fsyntax-only -Wall -Wextra -Werror ${case:+"-DCOIL_CASE=$case"} -include "$headers/all.hpp" "$source")

first=$(sed -n "${first_line}p" "$source")
sentence=${first#// expect: }
if [[ $sentence == "$first" || -z $sentence ]]; then
    echo "$source:$first_line: this line must be '// expect: MESSAGE'"
    exit 1
fi

if [[ $(sed -n "$((first_line + 1))p" "$source") == '// only: clang' ]] &&
    ! "$@" -dM -E -x c++ /dev/null | grep -q __clang__; then
    echo "SKIP: this compiler has no such diagnostic"
    exit 77
fi

if [[ $(sed -n "$((first_line + 2))p" "$source") == '// lifetimes' ]]; then
    if ! "$@" -E -x c++ - <<<'#if !__has_cpp_attribute(clang::lifetime_capture_by)
#error
#endif' >/dev/null 2>&1; then
        echo "SKIP: this compiler cannot check lifetimes"
        exit 77
    fi
    compile=("$@" -fsyntax-only -Wall -Wextra -Werror ${case:+"-DCOIL_CASE=$case"} -DCOIL_CHECK_LIFETIMES
        -include coil/core/config.hpp "$source")
fi

if said=$("${compile[@]}" 2>&1); then
    echo "$source:$first_line compiles, but must be refused with: $sentence"
    exit 1
fi
if [[ $said != *"$sentence"* ]]; then
    printf '%s is refused, but not with: %s\n%s\n' "$source:$first_line" "$sentence" "$said"
    exit 1
fi
if "$@" -dM -E -x c++ /dev/null | grep -q __clang__; then
    most=15
    if (($(wc -l <<<"$said") > most)); then
        printf '%s: the compiler prints more than %s lines:\n%s\n' "$source:$first_line" $most "$said"
        exit 1
    fi
    first_error=$(grep -m 1 ' error: ' <<<"$said")
    if [[ $first_error != *"$sentence"* ]]; then
        printf '%s: the first error is not: %s\n%s\n' "$source:$first_line" "$sentence" "$said"
        exit 1
    fi
    mark=$(sed -n "$((first_line + 1)),$((first_line + 3))p" "$source" | grep -m 1 '^// mistake ')
    marked=error is=error
    [[ $mark == *', warning:'* ]] && marked=warning
    [[ $first_error == *'[-Werror'* ]] && is=warning
    if [[ -n $mark && $marked != "$is" ]]; then
        printf '%s: marked as the %s that it is not:\n%s\n' "$source:$first_line" $marked "$said"
        exit 1
    fi
fi
if ! said=$("${compile[@]}" -DCOIL_EXPECT_OK 2>&1); then
    printf '%s must compile with -DCOIL_EXPECT_OK:\n%s\n' "$source:$first_line" "$said"
    exit 1
fi
