#!/usr/bin/env python3
"""Copies the pages of the documentation for the site: prepare.py FOLDER

The pages of docs/ become the root of the site; the few pages outside of docs/ are included. Directives for the tests are
removed, links between pages are kept, and links to sources lead to copies of them.
"""

import os
import pathlib
import re
import shutil
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
DOCS = ROOT / "docs"
BESIDE = {ROOT / "CHANGELOG.md": "CHANGELOG.md", ROOT / "CONTRIBUTING.md": "CONTRIBUTING.md", ROOT / "bench/README.md": "bench.md"}


def place(path):
    """Where a file of the repository is in the site, or None."""
    if path in BESIDE:
        return BESIDE[path]
    if path == ROOT / "README.md":
        return "index.md"
    if path.is_relative_to(DOCS) and path.is_file():
        return str(path.relative_to(DOCS))
    return None


def with_site_links(page, text, folder):
    own = pathlib.PurePosixPath(place(page)).parent

    def link(match):
        label, target = match[1], match[2]
        if re.match(r"[a-z]+:|#", target):
            return match[0]
        file, mark, anchor = target.partition("#")
        path = (page.parent / file).resolve()
        there = place(path)
        if there is None:
            if not path.is_file():
                return label  # a folder of sources
            there = f"source/{path.relative_to(ROOT)}.txt"
            (folder / there).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(path, folder / there)
        return f"[{label}]({os.path.relpath(there, own)}{mark}{anchor})"

    return re.sub(r"\[((?:[^\[\]]|\[[^\]]*\])*)\]\(([^)\s]+)\)", link, text)


def converted(page, folder):
    text = page.read_text()
    text = re.sub(r"^<!-- cpp-frame\n.*?^-->\n", "", text, flags=re.S | re.M)
    text = re.sub(r"^<!-- .*? -->\n", "", text, flags=re.M)
    parts = re.split(r"(^ *```.*?^ *```$)", text, flags=re.S | re.M)
    for i in range(0, len(parts), 2):
        # A list needs no blank line before it on GitHub, but does here.
        parts[i] = re.sub(r"^((?![-*|#]|\d+\. | ).+)\n(?=[-*] |\d+\. )", r"\1\n\n", parts[i], flags=re.M)
        parts[i] = with_site_links(page, parts[i], folder)
    return "".join(parts)


def main():
    folder = pathlib.Path(sys.argv[1])
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    for path in sorted(DOCS.rglob("*")):
        if path.is_file() and path.suffix != ".md":
            (folder / path.relative_to(DOCS)).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(path, folder / path.relative_to(DOCS))
    for page in [*sorted(DOCS.rglob("*.md")), *BESIDE]:
        target = folder / place(page)
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(converted(page, folder))
    (folder / "reference/headers.md").write_text(
        "# Headers\n\nThe documentation of every public header, by doxygen: <a href=\"../headers/index.html\">coil's headers</a>.\n"
    )
    shutil.copyfile(pathlib.Path(__file__).parent / "site.css", folder / "site.css")


if __name__ == "__main__":
    main()
