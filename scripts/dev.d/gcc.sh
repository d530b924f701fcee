# shellcheck shell=bash
# The second compiler. If neither this machine nor its apt has GCC 14, root can install a Debian 13 chroot in .cache/.

gcc_chroot=${COIL_CACHE:-$PWD/.cache}/debian13

# need_gcc: sets gcc_cxx, and gcc_home to its chroot ('' = this system). On failure, $why_no_gcc says why.
need_gcc() {
    local version
    gcc_home=''
    for version in 16 15 14; do
        if have "g++-$version"; then
            gcc_cxx=g++-$version
            return
        fi
    done
    gcc_cxx=g++-14
    if may_install; then
        apt_knows apt || apt_update || true
        if apt_knows g++-14; then
            install_packages g++-14
            return
        fi
    fi
    need_gcc_chroot
}

need_gcc_chroot() {
    local mirror proxy
    gcc_home=$gcc_chroot
    mkdir -p "$(dirname "$gcc_chroot")"
    exec {gcc_lock}>"$gcc_chroot.lock"
    flock "$gcc_lock"
    if [[ ! -x $gcc_chroot/usr/bin/g++-14 ]]; then
        if ((EUID != 0)); then
            why_no_gcc="g++-14 is not installed, and only root can set up a Debian 13 chroot that has it"
            return 1
        fi
        mirror=$(apt-get indextargets --format "\$(REPO_URI)" 'Created-By: Packages' 2>/dev/null | grep -m1 '/debian/\?$')
        if [[ -z $mirror ]]; then
            why_no_gcc="apt has no g++-14, and its sources name no Debian mirror to install it from"
            return 1
        fi
        if ! unshare --mount true 2>/dev/null; then
            why_no_gcc="apt has no g++-14, and this machine does not allow a chroot with its own mounts"
            return 1
        fi
        need chroot
        proxy=$(apt-config dump --format '%v' Acquire::http::Proxy)
        rm -rf "$gcc_chroot.part"
        if ! http_proxy=${proxy:-${http_proxy:-}} patiently "setting up Debian 13 with g++-14 in $gcc_chroot (once)" \
            build/log/debootstrap.log debootstrap --variant=minbase --include=g++-14,ca-certificates \
            trixie "$gcc_chroot.part" "$mirror" /usr/share/debootstrap/scripts/sid; then
            why_no_gcc="debootstrap could not set up Debian 13"
            return 1
        fi
        mv "$gcc_chroot.part" "$gcc_chroot"
    fi
    exec {gcc_lock}>&-
}

# where_gcc_is COMMAND...: runs COMMAND in this folder with CXX set, in the chroot if there is one. The chroot's mounts
# exist only while the command runs.
where_gcc_is() {
    if [[ -z $gcc_home ]]; then
        CXX=$gcc_cxx "$@"
        return
    fi
    # shellcheck disable=SC2016
    unshare --mount --propagation private bash -euc '
        home=$1 here=$2
        shift 2
        cp -L /etc/resolv.conf /etc/hosts "$home/etc/"
        for folder in /proc /dev /dev/shm /sys /tmp; do
            mount --bind "$folder" "$home$folder"
        done
        mkdir -p "$home$here"
        mount --bind "$here" "$home$here"
        exec chroot "$home" bash -c "cd \"\$0\" && exec \"\$@\"" "$here" "$@"
    ' - "$gcc_home" "$PWD" \
        env -i PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin HOME=/root LC_ALL=C.UTF-8 \
        TERM="${TERM:-dumb}" CXX="$gcc_cxx" COIL_JOBS="$(jobs_at_once)" COIL_TEST_LONG="${COIL_TEST_LONG:-}" "$@"
}

run_gcc_tests() {
    local status=0 counts
    if ! need_gcc; then
        count_skip "gcc: $why_no_gcc"
        return
    fi
    mkdir -p build/log
    where_gcc_is ./dev test --preset gcc "$@" > >(tee build/log/test-in-gcc.log) || status=$?
    counts=$(tail -n 1 build/log/test-in-gcc.log)
    if [[ $counts =~ ^([0-9]+)\ passed,\ ([0-9]+)\ failed(,\ ([0-9]+)\ skipped)?$ ]]; then
        passed=$((passed + BASH_REMATCH[1]))
        failed=$((failed + BASH_REMATCH[2]))
        skipped=$((skipped + ${BASH_REMATCH[4]:-0}))
        ((BASH_REMATCH[2] == 0)) || failures+=("gcc: ${BASH_REMATCH[2]} tests, named above")
    fi
    if ((status != 0 && failed == 0)); then
        count_failure "gcc: ./dev test ended with status $status"
    fi
}

dev_gcc() {
    (($#)) || die "./dev gcc COMMAND..."
    need_gcc || die "$why_no_gcc"
    where_gcc_is "$@"
}
