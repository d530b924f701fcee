# shellcheck shell=bash disable=SC2154
# Automatic checks, so that reviewers need not look for these mistakes.

our_files() { git ls-files --cached --others --exclude-standard -- "$@" | while IFS= read -r f; do [[ -e $f ]] && echo "$f"; done; }

# check TEXT COMMAND...: runs COMMAND and reports the result of the check TEXT.
check() {
    local text=$1 started=$SECONDS
    shift
    progress "dev: $text"
    if "$@"; then
        passed=$((passed + 1))
        progress_done
        say "$text: clean ($((SECONDS - started)) s)"
    else
        progress_done
        count_failure "$text"
    fi
}

clang_format() { our_files '*.hpp' '*.cpp' '*.h' '*.c' | xargs -r "clang-format-$clang_tools" "$@"; }

check_format() {
    local unformatted
    unformatted=$(clang_format --dry-run -Werror 2>&1 | sed -n 's/^\([^: ]*\):[0-9]*:.*/\1/p' | sort | uniq -c)
    [[ -z $unformatted ]] && return
    printf 'places that ./dev format would change:\n%s\n' "$unformatted"
    return 1
}

# Checks that every header compiles by itself; with --all, also those in detail/, which users do not include.
check_headers() {
    local left_out=/detail/
    [[ $1 == no ]] || left_out='^$'
    # shellcheck disable=SC2016
    our_files 'include/*.hpp' | grep -v -e "$left_out" | xargs -r -n 1 -P "$(jobs_at_once)" bash -c '
        echo "#include <${1#include/}>" |
            "$0" -std=c++20 -Iinclude -fsyntax-only -Wall -Wextra -Wpedantic -Wconversion -Wno-sign-conversion -Wshadow \
                -Werror -x c++ - || { echo "$1 does not compile alone"; exit 1; }' "$CXX"
}

# rooms_below ROOM: prints the rooms whose headers ROOM may include.
rooms_below() {
    case $1 in
        base) echo base ;;
        uring) echo base uring ;;
        core) echo base core ;;
        context) echo base uring core context ;;
        minimal) echo base uring core context minimal ;;
        io) echo base uring core context io ;;
        compose) echo base uring core context io compose ;;
        sync) echo base uring core context sync ;;
        exec) echo base uring core context exec ;;
        interleave) echo base uring core context interleave ;;
        interop) echo base uring core context io exec interop ;;
        stream) echo base uring core context io compose stream ;;
        fs | net | process) echo base uring core context io compose sync exec stream "$1" ;;
        tls) echo base uring core context io compose sync exec stream net tls ;;
        sim) echo base uring core context io compose sync exec stream fs net process tls sim ;;
        *) return 1 ;;
    esac
}

check_rooms() {
    local file room line below bad=0
    while IFS= read -r file; do
        room=${file#include/coil/}
        room=${room#src/}
        [[ $room == */* ]] || continue
        room=${room%%/*}
        if ! below=$(rooms_below "$room"); then
            echo "$file: the room '$room' is missing in rooms_below of scripts/dev.d/lint.sh"
            bad=1
            continue
        fi
        while IFS= read -r line; do
            [[ $line =~ coil/([a-z_]+)/ && " $below " == *" ${BASH_REMATCH[1]} "* ]] && continue
            echo "$file:$line: the room $room may include only: $below"
            bad=1
        done < <(grep -nE '^ *# *include *[<"]coil/' "$file")
    done < <(our_files 'include/coil/*.hpp' 'src/*.cpp' 'src/*.hpp')
    return "$bad"
}

# src/fs opens files only by the functions of opening.hpp, and file::open().
check_opening() {
    local bad
    bad=$(our_files 'src/fs/*' | grep -v 'src/fs/opening\.cpp' |
        xargs -r grep -nE '(^|[^a-z_:])::open(at|at2)?\(|SYS_openat|prep::openat|\bfopen\(|std::[iof]+stream')
    [[ -z $bad ]] || {
        echo "$bad"
        echo "src/fs opens files by opening.hpp: see its head"
        return 1
    }
}

# Checks the lengths of the library's files and the numbers of data members of its classes. (clang-tidy checks functions.)
check_sizes() {
    # The emulation of io_uring exceeds the limit of data members.
    our_files 'include/*.hpp' 'src/*.hpp' 'src/*.cpp' 'adapters/*/include/*' 'adapters/*/src/*' |
        xargs -r awk -v lines=400 -v members=25 -v known='^class (emulation|emulated_request)$' -f scripts/dev.d/sizes.awk
}

# Runs clang-tidy on all sources, several of a target at a time; headers are checked with the sources that include them.
# A source that passed is checked again only when it, a header it includes, or .clang-tidy has changed. --all: checks
# all of them anew, and the tests, which are most of the code and of the time.
check_tidy() {
    local all=$1 done_dir=build/lint/tidy version config configs left_out='/build/lint/tests/\|/tests/[a-z_]*/[a-z0-9_]*\.cpp'
    version=$(tidy_version)
    rm -f build/lint/build.ninja # ninja would not notice new files otherwise
    configs=$(our_files .clang-tidy '*/.clang-tidy')
    # clang-tidy searches its configuration from the directory of a source, and the unity sources are in build/lint.
    for config in $configs; do
        mkdir -p "build/lint/$(dirname "$config")" && cp "$config" "build/lint/$config" || return 1
    done
    # The precompiled headers of the tests must be made by the same version of clang.
    CXX=clang++-$version configure lint &&
        ninja -C build/lint coil_test_headers coil_uring_test_headers coil_example_headers >build/log/build-lint.log || return 1
    if [[ $all == yes ]]; then
        rm -rf "$done_dir"
        left_out='/build/lint/tests/\(canaries\|docs\)/'
    fi
    mkdir -p "$done_dir"
    # shellcheck disable=SC2016
    sed -n 's/^ *"file": "\(.*\)",\{0,1\}$/\1/p' build/lint/compile_commands.json | grep -v -e '/cmake_pch\.' -e "$left_out" | sort -u |
        configs=$configs xargs -r -n 1 -P "$(jobs_at_once)" bash -c '
            source=${2#"$PWD"/} stamp=build/lint/tidy/${source//\//_}
            # shellcheck disable=SC2046
            if [[ -e $stamp && -z $(find $configs $(<"$stamp") -newer "$stamp" 2>&1) ]]; then
                exit
            fi
            touch "$stamp.begun"
            said=$("$0" -p build/lint --quiet --extra-arg=-Wno-unknown-warning-option "$source" 2>&1)
            status=$?
            said=$(grep -vE "^[0-9]+ warnings? .*generated|^\[[0-9]+/[0-9]+\] " <<<"$said")
            if ((status == 0)) && [[ -z $said ]]; then
                adapters=(adapters/*/include)
                "$1" -std=c++20 -Iinclude -Itests -Iexamples -Ibench/lib -Iadapters "${adapters[@]/#/-I}" -w -MM -MG "$source" | sed "s/^[^:]*://; s/\\\\//g" >"$stamp"
                touch -r "$stamp.begun" "$stamp"
            else
                printf "%s\n" "$said"
                status=1
            fi
            rm "$stamp.begun"
            exit "$status"' "clang-tidy-$version" "$CXX"
}

# Checks that no coroutine outlives what it refers to, as far as clang sees (COIL_CHECK_LIFETIMES): in the library and the
# examples; with --all also in the tests, except those that make such mistakes.
check_lifetimes() {
    local folders=('src/*.cpp' 'examples/*.cpp')
    [[ $1 == no ]] || folders+=('tests/*_test.cpp')
    if ! "$CXX" -E -x c++ - <<<'#if !__has_cpp_attribute(clang::lifetime_capture_by)
#error
#endif' >/dev/null 2>&1; then
        say "$CXX cannot check lifetimes"
        return
    fi
    # shellcheck disable=SC2016
    our_files "${folders[@]}" | xargs -r grep -lE '(task|generator)<' | xargs -r -n 1 -P "$(jobs_at_once)" bash -c '
        # Functions that return a coroutine and are none are marked in headers only, so other errors are left out.
        said=$("$0" -DCOIL_CHECK_LIFETIMES -include coil/core/config.hpp -std=c++20 -Iinclude -Itests -Iexamples \
            -fsyntax-only -ferror-limit=0 -Wno-everything -Wdangling "$1" 2>&1 | grep -A 6 -e "-Wdangling")
        [[ -z $said ]] || { printf "%s\n" "$said"; exit 1; }' "$CXX"
}

check_scripts() {
    { our_files dev .ci/run '*.sh' '*.bash'; git grep -lE '^#!.*\b(bash|sh)$' || true; } | sort -u |
        xargs -r shellcheck --severity=info
}

# Checks that no retired name is used: scripts/retired-words.txt.
check_names() {
    local old new hits bad=0
    while read -r old new; do
        [[ -z $old || $old == \#* ]] && continue
        hits=$(git grep -nwF --untracked -e "$old" -- include src adapters tests docs examples bench |
            grep -v -e '\bretired\b' -e '^tests/compile_fail/retired\.cpp:')
        [[ -z $hits ]] && continue
        printf '%s\n' "$hits" | cut -c1-160
        printf '%s is retired: write %s\n' "$old" "$new"
        bad=1
    done <scripts/retired-words.txt
    return "$bad"
}

# Checks that comments and documents name things, not persons ("a waiter", not "whoever waits").
check_persons() {
    local persons='[Ww]hoever|[Ww]homever|[Ss]omebody|[Ss]omeone|[Nn]obody|[Aa]nybody|[Aa]nyone|[Ee]verybody|[Ee]veryone|[Nn]o one|[Ii]n vain'
    ! { git grep -nP --untracked "\b($persons)\b|(?<!users |people |readers )\b[Ww]ho\b" -- docs;
        git grep -nP --untracked "//.*(\b($persons)\b|(?<!users |people |readers )\b[Ww]ho\b)" -- include src adapters; } |
        grep -v 'peer_credentials()'
}

# Checks for expressions that GCC 14 compiles wrongly (docs/reference/platforms.md).
check_awaits() {
    ! git grep -nP --untracked '^(?!\s*//).*\bco_return\b[^;]*\?[^;]*\bco_await\b' -- \
        '*.hpp' '*.cpp' ':!tests/compile_fail' ||
        { say "co_return c ? a : co_await f(): write an if, or return a variable"; return 1; }
}

# Checks that a header begins with what users read: the documentation of its main type is above line 40.
check_manuals() {
    our_files 'include/coil/*.hpp' 'adapters/*/include/*.hpp' | grep -v /detail/ | xargs -r python3 scripts/dev.d/manuals.py
}

dev_lint() {
    local all=no
    [[ ${1:-} != --all ]] || all=yes
    need build test
    want model
    need_compiler
    need lint
    check "format (.clang-format)" check_format
    check "headers stand alone" check_headers "$all"
    check "rooms include only what is below them" check_rooms
    check "src/fs opens files in one place" check_opening
    check "files and classes are small" check_sizes
    check "no retired names (scripts/retired-words.txt)" check_names
    check "comments and documents without persons" check_persons
    check "awaits that GCC 14 compiles" check_awaits
    check "headers begin with their manual" check_manuals
    check "scripts (shellcheck)" check_scripts
    check "lifetimes of coroutines (COIL_CHECK_LIFETIMES)" check_lifetimes "$all"
    check "clang-tidy" check_tidy "$all"
    report
}

dev_format() {
    need_compiler
    need lint
    clang_format -i
}
