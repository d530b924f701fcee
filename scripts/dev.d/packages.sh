# shellcheck shell=bash
# Finds the compiler and installs packages of Debian or Ubuntu. A package counts as installed if the command, header or
# file it provides exists, so other ways of installing it work as well.

newest_clang=22
oldest_clang=17
clang_tools=19 # clang-format, whose output depends on its version, and the oldest clang-tidy

declare -A brings=(
    [cmake]=cmake [ninja-build]=ninja
    [libgtest-dev]=gtest/gtest.h [netcat-openbsd]=nc.openbsd [redis-tools]=redis-benchmark [pkg-config]=pkg-config
    [libssl-dev]=openssl/ssl.h [openssl]=openssl
    [python3]=python3 [git]=git [relacy-dev]=relacy/relacy.hpp
    [libbenchmark-dev]=benchmark/benchmark.h [liburing-dev]=liburing.h [libuv1-dev]=uv.h [libasio-dev]=asio.hpp
    [redis-server]=redis-server [fio]=fio [haproxy]=haproxy [nginx-light]=nginx
    [netcat-traditional]=nc.traditional [socat]=socat
    [gnutls-bin]=gnutls-cli [stunnel4]=stunnel4 [testssl.sh]=testssl
    [gdb]=gdb [lldb]=lldb
    [shellcheck]=shellcheck [debootstrap]=debootstrap [mkdocs]=mkdocs [doxygen]=doxygen [chromium]=chromium
)

packages_of() {
    case $1 in
        build) echo cmake ninja-build ;;
        test) echo libgtest-dev netcat-openbsd redis-tools pkg-config python3 ;;
        model) echo relacy-dev ;;
        tls) echo libssl-dev openssl ;;
        sanitizers) compiler_packages sanitizers ;;
        demo) echo netcat-openbsd redis-tools redis-server liburing-dev python3 ;;
        bench) echo libbenchmark-dev liburing-dev libuv1-dev libasio-dev netcat-openbsd redis-server redis-tools python3 ;;
        bench_peers) echo fio haproxy nginx-light libnginx-mod-stream netcat-traditional socat ;;
        lint) echo "clang-format-$clang_tools" "clang-tidy-$(tidy_version)" shellcheck git ;;
        debuggers) echo gdb "$(lldb_package)" ;;
        chroot) echo debootstrap ;;
        docs) echo mkdocs mkdocs-material python3-pygments doxygen python3 ;;
        adapters) echo libpq-dev libcurl4-openssl-dev libhiredis-dev librdkafka-dev libc-ares-dev libsqlite3-dev libasio-dev libboost-dev ;;
        adapted_servers) echo postgresql redis-server nats-server ;;
        tls_peers) echo gnutls-bin stunnel4 testssl.sh ;;
        browser) echo chromium ;;
        modules) compiler_packages modules ;;
        *) die "there is no package group '$1'" ;;
    esac
}

# is_here PACKAGE: whether the command, header or file that it provides is installed.
is_here() {
    local probe=${brings[$1]:-}
    case $1 in
        clang-[0-9]*) probe=clang++-${1#clang-} ;;
        clang-tools-[0-9]*) probe=clang-scan-deps-${1#clang-tools-} ;;
        llvm-[0-9]*) probe=llvm-symbolizer-${1#llvm-} ;;
        g++-[0-9]* | clang-format-* | clang-tidy-* | lldb-[0-9]*) probe=$1 ;;
        libclang-rt-*-dev)
            compgen -G "/usr/lib/llvm-$clang_major/lib/clang/$clang_major*/lib/*/libclang_rt.tsan*" >/dev/null
            return
            ;;
    esac
    case $probe in
        '') dpkg-query -W -f '${db:Status-Status}' "$1" 2>/dev/null | grep -qx installed ;;
        *.h | *.hpp) [[ -e /usr/include/$probe || -e /usr/local/include/$probe ]] ;;
        *) have "$probe" ;;
    esac
}

may_install() {
    have apt-get && { ((EUID == 0)) || { have sudo && { sudo -n true 2>/dev/null || [[ -t 0 ]]; }; }; }
}

as_root() {
    if ((EUID == 0)); then "$@"; else sudo "$@"; fi
}

# RUNLEVEL=1 keeps packages from starting their servers on systems without systemd.
apt_get() {
    as_root env DEBIAN_FRONTEND=noninteractive RUNLEVEL=1 \
        apt-get -q -y -o Dpkg::Use-Pty=0 -o DPkg::Lock::Timeout=300 "$@"
}

apt_update() {
    if [[ -z ${apt_updated:-} ]]; then
        apt_updated=1
        patiently "reading apt's package lists" build/log/apt-update.log apt_get update
    fi
}
# apt takes an unknown name such as g++-14 for a regular expression, which matches other packages.
apt_knows() { [[ $(apt-cache policy "$1" 2>/dev/null) == "$1:"$'\n'*"Candidate: "[!"("]* ]]; }

# install_packages PACKAGE...: installs them, or prints what to install and exits.
install_packages() {
    local log=build/log/apt-install.log package
    if ! may_install; then
        say "this needs packages that are not installed; run as root or with sudo:"
        if have apt-get; then
            say "    apt-get update && apt-get install -y --no-install-recommends $*"
        else
            say "    your distribution's counterparts of Debian's $*"
        fi
        [[ -n ${CXX:-} ]] || installed_compiler >/dev/null ||
            say "    and a compiler: the newest available of clang-$newest_clang to clang-$oldest_clang"
        exit 1
    fi
    if ((EUID != 0)); then
        say "sudo may ask for your password to install: $*"
        sudo -v
    fi
    for package in "$@"; do
        apt_knows "$package" || apt_update || die "apt cannot reach its package lists"
        apt_knows "$package" || die "apt has no package $package"
    done
    if ! patiently "installing $*" "$log" apt_get install --no-install-recommends "$@"; then
        # Package lists that are a few days old may name files that the mirror no longer has.
        apt_update || die "apt cannot reach its package lists"
        patiently "once more: installing $*" "$log" apt_get install --no-install-recommends "$@" ||
            die "apt could not install: $*"
    fi
    # Benchmarks and tests start servers of their own; these must not run as services.
    local service
    for service in redis-server postgresql nats-server haproxy nginx stunnel4; do
        if [[ " $* " == *" $service"* && -d /run/systemd/system ]]; then
            as_root systemctl disable --quiet --now "$service" || true
        fi
    done
}

# need GROUP...: installs the groups that are missing; exits if that fails.
need() {
    local group package missing=()
    for group in "$@"; do
        for package in $(packages_of "$group"); do
            is_here "$package" || missing+=("$package")
        done
    done
    if ((${#missing[@]})); then
        install_packages "${missing[@]}"
    fi
}

# want GROUP: as need, but continues if the group cannot be installed; the commands that use it then report what is missing.
want() { (need "$1") || say "continuing without some of: $(packages_of "$1")"; }

# Sets clang_major or gcc_major to the major version of the compiler $1; neither if it is not a known compiler.
identify() {
    local macros
    clang_major='' gcc_major=''
    macros=$("$1" -dM -E -x c++ /dev/null 2>/dev/null) || return 1
    if [[ $macros =~ __clang_major__\ ([0-9]+) ]]; then
        clang_major=${BASH_REMATCH[1]}
    elif [[ $macros =~ __GNUC__\ ([0-9]+) ]]; then
        gcc_major=${BASH_REMATCH[1]}
    fi
}

package_of_compiler() {
    case $(basename "$1") in
        clang++-*) echo "clang-${1##*-}" ;;
        g++-*) basename "$1" ;;
    esac
}

# compiler_packages sanitizers|modules: prints the additional packages that sanitizers or modules need (clang's runtimes
# and tools are separate packages).
compiler_packages() {
    [[ -n ${clang_major:-} ]] || return 0
    case $1 in
        sanitizers) echo "libclang-rt-$clang_major-dev" "llvm-$clang_major" ;;
        modules) echo "clang-tools-$clang_major" ;;
    esac
}

# Prints the package of lldb: if available, that of the compiler's version, which understands its debug information. Call
# after need_compiler.
lldb_package() {
    if [[ -n ${clang_major:-} ]] && { have "lldb-$clang_major" || apt_knows "lldb-$clang_major"; }; then
        echo "lldb-$clang_major"
    else
        echo lldb
    fi
}

# Prints the version of clang-tidy to use: preferably the compiler's, as newer ones are much faster. Call after
# need_compiler.
tidy_version() {
    if [[ -n $clang_major ]] && ((clang_major > clang_tools)) &&
        { have "clang-tidy-$clang_major" || apt_knows "clang-tidy-$clang_major"; }; then
        echo "$clang_major"
    else
        echo "$clang_tools"
    fi
}

# Sets and exports CXX: from the environment, else the one chosen before, else the newest available clang.
need_compiler() {
    local memory=build/log/compiler package
    if [[ -n ${CXX:-} ]]; then
        if ! have "$CXX"; then
            package=$(package_of_compiler "$CXX")
            [[ -n $package ]] || die "CXX=$CXX is not a program"
            install_packages "$package"
        fi
    elif [[ -r $memory ]] && have "$(<"$memory")"; then
        CXX=$(<"$memory")
    else
        choose_compiler
        mkdir -p build/log
        echo "$CXX" >"$memory"
    fi
    identify "$CXX" || die "CXX=$CXX cannot compile C++"
    if [[ -n $clang_major ]] && ((clang_major < 17)) || [[ -n $gcc_major ]] && ((gcc_major < 13)); then
        die "CXX=$CXX is too old for coroutines: coil needs clang 17 or newer, or GCC 14 or newer"
    fi
    export CXX
}

# The newest suitable compiler that is installed: clang, else GCC.
installed_compiler() {
    local name
    for name in $(seq -f 'clang++-%g' "$newest_clang" -1 "$oldest_clang") clang++ g++-16 g++-15 g++-14; do
        if have "$name" && identify "$name" && ((${clang_major:-$oldest_clang} >= oldest_clang)); then
            echo "$name"
            return
        fi
    done
    return 1
}

choose_compiler() {
    local version
    if may_install && ! have "clang++-$newest_clang"; then
        if ! apt_knows "clang-$newest_clang"; then
            # The lists may be missing or old. If they cannot be updated, the installed compiler is used.
            apt_update || true
        fi
        for ((version = newest_clang; version >= oldest_clang; version--)); do
            if have "clang++-$version"; then
                break
            elif apt_knows "clang-$version"; then
                install_packages "clang-$version"
                break
            fi
        done
    fi
    CXX=$(installed_compiler) || install_packages "clang-$newest_clang"
}

dev_setup() {
    need build test demo bench
    want model
    want tls
    want bench_peers
    want docs
    want browser
    need_compiler
    need sanitizers lint
    want debuggers
    want modules
    say "everything is installed; the compiler is $CXX"
}

# want_new_cmake: if this machine's CMake is older than 3.28, which supports C++ modules, and its Debian backports have
# a newer one, unpacks that in .cache/ and sets COIL_NEW_CMAKE. The system's CMake is not changed.
want_new_cmake() {
    local home=${COIL_CACHE:-$PWD/.cache}/new-cmake mirror codename options
    if [[ $(printf '%s\n' 3.28 "$(cmake --version | sed -n '1s/[^0-9]*//p')" | sort -V | head -n 1) == 3.28 ]]; then
        return
    fi
    if [[ ! -x $home/usr/bin/cmake ]]; then
        have apt-get || return 0
        codename=$(sed -n 's/^VERSION_CODENAME=//p' /etc/os-release)
        mirror=$(apt-get indextargets --format "\$(REPO_URI)" 'Created-By: Packages' 2>/dev/null | grep -m1 '/debian/\?$') || return 0
        mkdir -p "$home.part/lists/partial" build/log
        echo "deb [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] $mirror $codename-backports main" >"$home.part/sources"
        options=(-o "Dir::Etc::SourceList=$home.part/sources" -o Dir::Etc::SourceParts=- -o "Dir::State::Lists=$home.part/lists"
            -o "Dir::Cache::pkgcache=" -o "Dir::Cache::srcpkgcache=" -o APT::Sandbox::User=root)
        if ! patiently "fetching a newer CMake" build/log/new-cmake.log fetch_new_cmake "$home.part" "${options[@]}"; then
            say "a newer CMake could not be downloaded (build/log/new-cmake.log)"
            rm -rf "$home.part"
            return
        fi
        mv "$home.part" "$home"
    fi
    export COIL_NEW_CMAKE=$home/usr/bin/cmake
}

# fetch_new_cmake FOLDER APT-OPTION...: downloads and unpacks it in FOLDER.
fetch_new_cmake() {
    local folder=$1 package
    shift
    apt-get -q "$@" update &&
        (cd "$folder" && apt-get -q "$@" download cmake cmake-data) || return
    for package in "$folder"/*.deb; do
        dpkg-deb -x "$package" "$folder" || return
    done
    rm -rf "$folder"/*.deb "$folder/lists"
    "$folder/usr/bin/cmake" --version
}
