# shellcheck shell=bash
# The site: mkdocs with Debian's material theme for the pages, doxygen for the headers, Chromium for checks.

dev_docs() {
    local check=no site=build/site
    case ${1:-} in
        '') ;;
        --check) check=yes ;;
        *) die "docs: what is '$1'? (--check)" ;;
    esac
    need docs
    python3 scripts/docs/prepare.py "$site/pages" || die "the pages could not be prepared"
    cp scripts/docs/mkdocs.yml "$site/mkdocs.yml"
    rm -rf "$site/html"
    patiently "building the site" build/log/docs.log mkdocs build --strict --quiet --config-file "$site/mkdocs.yml" || exit 1
    { cat scripts/docs/Doxyfile && echo "INPUT = include" && echo "STRIP_FROM_PATH = include" &&
        echo "OUTPUT_DIRECTORY = $site/html" && echo "HTML_OUTPUT = headers" &&
        echo "HTML_EXTRA_STYLESHEET = scripts/docs/doxygen.css"; } >"$site/Doxyfile"
    patiently "reading the headers" build/log/doxygen.log doxygen "$site/Doxyfile" || exit 1
    say "the site is in $site/html: python3 -m http.server -b 127.0.0.1 -d $site/html, then http://127.0.0.1:8000"
    if [[ $check == yes ]]; then
        # Not a part of ./dev test, as it needs a browser.
        want browser
        check "the site, read by Chromium" check_site "$site/html"
        report
    fi
}

check_site() {
    if ! have chromium; then
        count_skip "the site: chromium is not installed"
        return
    fi
    python3 scripts/docs/check_site.py "$1" chromium
}
