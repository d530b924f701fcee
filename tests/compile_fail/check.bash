#!/usr/bin/env bash
# check.bash SOURCE HEADERS COMPILER [FLAG...]
# check.bash --precompile HEADERS COMPILER [FLAG...]: makes HEADERS, a folder in which coil/coil.hpp is compiled already.
#
# SOURCE must not compile, and the compiler must say the sentence of its first line, "// expect: SENTENCE". With
# -DCOIL_EXPECT_OK the same file must compile: so nothing but the tested line can be what is refused.
#
# A second line "// only: clang" says that other compilers have no such diagnostic.
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
compile=("$@" -fsyntax-only -Wall -Wextra -Werror -include "$headers/all.hpp" "$source")

read -r first < "$source"
sentence=${first#// expect: }
if [[ $sentence == "$first" || -z $sentence ]]; then
    echo "$source: the first line must be '// expect: SENTENCE'"
    exit 1
fi

if [[ $(sed -n 2p "$source") == '// only: clang' ]] && ! "$@" -dM -E -x c++ /dev/null | grep -q __clang__; then
    echo "SKIP: this compiler does not say that"
    exit 77
fi

if said=$("${compile[@]}" 2>&1); then
    echo "$source compiles, but must be refused with: $sentence"
    exit 1
fi
if [[ $said != *"$sentence"* ]]; then
    printf '%s is refused, but not with: %s\n%s\n' "$source" "$sentence" "$said"
    exit 1
fi
if ! said=$("${compile[@]}" -DCOIL_EXPECT_OK 2>&1); then
    printf '%s must compile with -DCOIL_EXPECT_OK:\n%s\n' "$source" "$said"
    exit 1
fi
