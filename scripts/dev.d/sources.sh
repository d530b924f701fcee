# shellcheck shell=bash
# Fetches tests of other projects, which are not copied into this one, from Debian's source packages.

readonly source_packages=$PWD/build/source-packages

# has_source_packages: whether they can be fetched on this system.
has_source_packages() { have apt-get && [[ -e /usr/share/keyrings/debian-archive-keyring.gpg ]]; }

# apt_sources COMMAND...: runs apt-get with package lists of its own, which contain only Debian's source packages.
apt_sources() {
    apt-get -o Dir::Etc::sourcelist=/dev/null -o Dir::Etc::sourceparts="$source_packages/sources" \
        -o Dir::State::lists="$source_packages/lists" -o Dir::Cache::pkgcache= -o Dir::Cache::srcpkgcache= \
        -o APT::Sandbox::User="$(id -un)" -o Debug::NoLocking=1 "$@"
}

# update_sources: reads the package lists, once per shell.
update_sources() {
    [[ -z ${sources_updated:-} ]] || return 0
    mkdir -p "$source_packages/sources" "$source_packages/lists/partial"
    cat >"$source_packages/sources/debian.sources" <<'END'
Types: deb-src
URIs: http://deb.debian.org/debian
Suites: bookworm trixie sid
Components: main
Signed-By: /usr/share/keyrings/debian-archive-keyring.gpg
END
    apt_sources update && sources_updated=yes
}

# fetch_tarball PACKAGE=VERSION DIRECTORY: downloads the upstream tarball of a source package; $tarball is its path.
fetch_tarball() {
    update_sources || return 1
    mkdir -p "$2"
    (cd "$2" && apt_sources source --download-only --tar-only "$1") || return 1
    tarball=$(find "$2" -maxdepth 1 -name "${1%%=*}_*.orig.tar.*" ! -name '*.asc' | head -n 1)
    [[ -n $tarball ]]
}
