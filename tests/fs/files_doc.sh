#!/usr/bin/env bash
# docs/guide/files.md names every function of the headers that its section "Names" is about.

set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."

headers=(create links metadata paths rename status)
section=$(sed -n '/^## Names/,/^## /p' docs/guide/files.md | grep '^|')
bad=0
for header in "${headers[@]}"; do
    for name in $(grep -oE '^task<.*> [a-z_]+\(' "include/coil/fs/$header.hpp" | grep -oE '[a-z_]+\($' | tr -d '(' | sort -u); do
        if ! grep -qE "\`${name}[\`(]" <<<"$section"; then
            echo "docs/guide/files.md: the table does not name $name of coil/fs/$header.hpp"
            bad=1
        fi
    done
done
exit "$bad"
