#!/usr/bin/env python3
"""Checks what the pages of the documentation say beside their code.

    check.py links        every relative link leads to a file, and every anchor to a heading; the site's navigation has every page
    check.py files        blocks that show a file are identical to it; programs of the cookbook have at most 40 lines
    check.py api          docs/reference/api.md names what the modules export, which is what the headers declare
    check.py mistakes     the table of docs/reference/mistakes.md is what the marks in the tests say
    check.py outputs      quoted output of an example is what it prints ($COIL_EXAMPLES_DIR)
    check.py --update     writes files, the API index and the table of mistakes into the pages instead
"""

import os
import pathlib
import re
import shlex
import subprocess
import sys
import tempfile

import mistakes
import pages
from pages import ROOT

problems = []


def problem(text):
    problems.append(text)


# ---- links


def without_code(text):
    text = re.sub(r"^( *)```.*?^\1```", lambda m: "\n" * m[0].count("\n"), text, flags=re.S | re.M)
    return re.sub(r"`[^`\n]*`", "``", text)


def anchors(path):
    """The anchors that GitHub creates for the headings of a page."""
    found, seen = set(), {}
    text = re.sub(r"^( *)```.*?^\1```", "", path.read_text(), flags=re.S | re.M)
    for heading in re.findall(r"^#{1,6} (.*)$", text, re.M):
        heading = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading)
        slug = re.sub(r"[^\w\- ]", "", heading.strip().lower()).replace(" ", "-")
        number = seen.get(slug, 0)
        seen[slug] = number + 1
        found.add(slug if number == 0 else f"{slug}-{number}")
    return found


def check_links():
    count, reached = 0, set()
    for page in pages.pages():
        name = page.relative_to(ROOT)
        for number, line in enumerate(without_code(page.read_text()).splitlines(), 1):
            for target in re.findall(r"\]\(([^)\s]+)\)", line):
                count += 1
                if re.match(r"[a-z]+:", target):
                    continue
                file, _, anchor = target.partition("#")
                path = (page.parent / file).resolve() if file else page
                if not path.exists():
                    problem(f"{name}:{number}: {target} is not there")
                    continue
                reached.add(path)
                if anchor and path.suffix == ".md" and anchor not in anchors(path):
                    problem(f"{name}:{number}: {path.relative_to(ROOT)} has no heading for #{anchor}")
    for page in pages.pages():
        if page.is_relative_to(ROOT / "docs") and page not in reached:
            problem(f"{page.relative_to(ROOT)}: no page links to it")
    navigation = (ROOT / "scripts/docs/mkdocs.yml").read_text()
    for page in pages.pages():
        name = page.relative_to(ROOT)
        if page.is_relative_to(ROOT / "docs") and not re.search(rf"^ +- .*\b{page.relative_to(ROOT / 'docs')}$", navigation, re.M):
            problem(f"{name}: the site's navigation lacks it: scripts/docs/mkdocs.yml")
    if count < 50:
        problem(f"read too little: {count} links")


# ---- files


def shown(argument):
    """The text that a `file` directive asks for."""
    name, _, section = argument.partition("#")
    text = (ROOT / name).read_text()
    if not section:
        return text
    m = re.search(rf"^ *// \[{re.escape(section)}\]\n(.*?)^ *// \[/{re.escape(section)}\]$", text, re.S | re.M)
    if not m:
        raise pages.PageError(f"{name} has no part [{section}]")
    return m[1]


def check_files(update=False):
    used = set()
    for page in pages.pages():
        lines = page.read_text().splitlines()
        changed = False
        for block in reversed(pages.blocks(page)):
            if block.language != "cpp" or block.kind != "file":
                continue
            used.add(block.argument.partition("#")[0])
            try:
                text = shown(block.argument)
            except (OSError, pages.PageError) as error:
                problem(f"{block.place}: {error}")
                continue
            if text == block.code:
                continue
            if update:
                first = block.line - 1
                lines[first : first + block.code.count("\n")] = text.splitlines()
                changed = True
            else:
                problem(f"{block.place}: not what {block.argument} has: run tests/docs/check.py --update")
        if changed:
            page.write_text("\n".join(lines) + "\n")
    for folder in ("cookbook", "tutorial"):
        for program in sorted((ROOT / "examples" / folder).glob("*.[ch]pp")):
            name = str(program.relative_to(ROOT))
            if name not in used:
                problem(f"{name}: no page shows it")
            if folder == "cookbook" and (length := program.read_text().count("\n")) > 40:
                problem(f"{name}: {length} lines, more than 40")


# ---- the API page

API = ROOT / "docs/reference/api.md"
INDEX_BEGIN, INDEX_END = "<!-- index: written by tests/docs/check.py --update -->\n", "<!-- /index -->\n"


def exported():
    """The public names, as modules/coil.cppm has them from the headers."""
    return set(re.findall(r"^ *(?:export )?using (?:::)?(coil(?:::\w+)+);", (ROOT / "modules/coil.cppm").read_text(), re.M))


def declared_name(head):
    """The name that a declaration at namespace scope declares."""
    head = re.sub(r"\[\[.*?\]\]", " ", head, flags=re.S)
    while re.match(r"\s*template\s*<", head):
        depth, at = 1, head.index("<") + 1
        while depth:
            depth += {"<": 1, ">": -1}.get(head[at], 0)
            at += 1
        head = head[at:]
    head = re.sub(r"\s+", " ", head).strip()
    if m := re.match(r"(?:class|struct|union|enum class|enum|concept) (?:alignas\(.*?\) )?(?:COIL_\w+ )*(\w+)", head):
        return m[1]
    if m := re.match(r"using (\w+) =|using (?:[\w:]*::)?(\w+)$", head):
        return m[1] or m[2]
    if m := re.search(r"(\w+|operator ?\W+?) ?\(", re.sub(r"\b(?:requires|noexcept|decltype|explicit) ?\([^()]*\)", "", head)):
        return m[1]
    if m := re.search(r"(\w+) ?(?:=.*)?$", head):
        return m[1]
    return None


def declarations(header):
    """(namespace, name) of everything at namespace scope."""
    text = re.sub(r"//[^\n]*|/\*.*?\*/", "", header.read_text(), flags=re.S)
    text = re.sub(r'"(?:[^"\\\n]|\\.)*"', '""', text)
    text = re.sub(r"^[ \t]*#(?:[^\n]*\\\n)*[^\n]*", "", text, flags=re.M)
    scopes, head, at = [], "", 0
    while at < len(text):
        c = text[at]
        at += 1
        if c == "{":
            if m := re.match(r"\s*(?:inline )?namespace ?([\w:]*)\s*$", head):
                scopes.append(m[1])
                head = ""
                continue
            depth = 1
            while depth:
                depth += {"{": 1, "}": -1}.get(text[at], 0)
                at += 1
            yield "::".join(scopes), declared_name(head)
            # After the body of a function, a new declaration begins without a semicolon.
            head = "" if not re.match(r"\s*[;,=]", text[at : at + 20]) else "0"
        elif c == "}":
            scopes.pop()
            head = ""
        elif c == ";":
            forward = re.match(r"\s*(?:template\s*<[^;]*>\s*)?(?:class|struct|enum class)\s+\w+\s*$", head)
            if head.strip() not in ("", "0") and not forward:
                yield "::".join(scopes), declared_name(head)
            head = ""
        else:
            head += c


def index():
    wanted, found, rows = exported(), set(), {}
    for header in sorted((ROOT / "include/coil").rglob("*.hpp"), key=lambda path: ("detail" in path.parts, path)):
        where = str(header.relative_to(ROOT / "include"))
        for namespace, name in declarations(header):
            full = f"{namespace}::{name}"
            # A detail header counts only if no public header declares the name; detail headers are sorted last.
            if full in wanted and not ("/detail/" in where and full in found):
                found.add(full)
                rows.setdefault(where, set()).add(full.removeprefix("coil::"))
    for name in sorted(wanted - found):
        problem(f"{name}: no header declares it")
    text = "| header | names |\n|---|---|\n"
    for header, names in sorted(rows.items()):
        text += f"| `{header}` | {', '.join(f'`{name}`' for name in sorted(names))} |\n"
    return text


def check_api(update=False):
    text = API.read_text()
    begin, end = text.find(INDEX_BEGIN), text.find(INDEX_END)
    if begin < 0 or end < begin:
        problem("docs/reference/api.md has no place for the index")
        return
    wanted = index()
    if text[begin + len(INDEX_BEGIN) : end] != wanted:
        if update:
            API.write_text(text[: begin + len(INDEX_BEGIN)] + wanted + text[end:])
        else:
            problem("docs/reference/api.md: the index is not what the headers declare: run tests/docs/check.py --update")
    if len(exported()) < 250:
        problem(f"read too little: {len(exported())} names")


# ---- the table of mistakes

MISTAKES = ROOT / "docs/reference/mistakes.md"
MISTAKES_BEGIN, MISTAKES_END = "<!-- mistakes: written by tests/docs/check.py --update -->\n", "<!-- /mistakes -->\n"


def check_mistakes(update=False):
    text = MISTAKES.read_text()
    begin, end = text.find(MISTAKES_BEGIN), text.find(MISTAKES_END)
    if begin < 0 or end < begin:
        problem("docs/reference/mistakes.md has no place for the table")
        return
    marks, wrong = mistakes.marks()
    for each in wrong:
        problem(each)
    wanted = mistakes.table(marks)
    if text[begin + len(MISTAKES_BEGIN) : end] != wanted:
        if update:
            MISTAKES.write_text(text[: begin + len(MISTAKES_BEGIN)] + wanted + text[end:])
        else:
            problem("docs/reference/mistakes.md: not what the tests say: run tests/docs/check.py --update")
    if len(marks) < 40:
        problem(f"read too little: {len(marks)} marks")


# ---- output


def check_outputs():
    examples, count = pathlib.Path(os.environ["COIL_EXAMPLES_DIR"]), 0
    for block in pages.all_blocks():
        if not block.output:
            continue
        count += 1
        command = shlex.split(block.output)
        with tempfile.TemporaryDirectory() as folder:
            done = subprocess.run(
                [examples / command[0], *command[1:]],
                capture_output=True, text=True, timeout=30, stdin=subprocess.DEVNULL,
                cwd=folder, env=dict(os.environ, TMPDIR=folder),
            )
        complaints = "".join(line for line in done.stderr.splitlines(True) if not line.startswith("coil: using epoll instead"))
        if done.returncode != 0 or complaints:
            problem(f"{block.place}: {block.output} ended with {done.returncode}: {complaints}")
        elif done.stdout != block.code:
            problem(f"{block.place}: {block.output} prints\n{done.stdout}")
    if count == 0:
        problem("no page quotes the output of an example")


def main():
    what = sys.argv[1] if len(sys.argv) > 1 else ""
    if what == "--update":
        check_files(update=True)
        check_api(update=True)
        check_mistakes(update=True)
    elif what in ("links", "files", "api", "mistakes", "outputs"):
        globals()["check_" + what]()
    else:
        sys.exit(__doc__)
    for text in problems:
        print(text)
    sys.exit(1 if problems else 0)


if __name__ == "__main__":
    try:
        main()
    except pages.PageError as error:
        sys.exit(str(error))
