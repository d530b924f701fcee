"""The pages of the documentation, and the code blocks in them. The directives before a block are described in README.md."""

import dataclasses
import pathlib
import re

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent

KINDS = {"declarations", "body", "program", "continues", "file", "refused", "not compiled"}


@dataclasses.dataclass
class Block:
    page: str  # relative to the root
    line: int  # of its first line of code
    language: str
    code: str
    kind: str
    argument: str = ""  # after the colon: a file's name, an error sentence
    options: tuple = ()
    frame: str = ""
    output: str | None = None  # of an `output` directive

    @property
    def place(self):
        return f"{self.page}:{self.line}"


class PageError(Exception):
    pass


def pages():
    found = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", ROOT / "CHANGELOG.md", ROOT / "bench/README.md", ROOT / "tests/docs/README.md"]
    found += sorted((ROOT / "docs").rglob("*.md"))
    return found


DIRECTIVE = re.compile(r"<!-- (cpp|output)(?:: (.*?))? -->$")


def parse_directive(place, text):
    """`KIND[, option...]` or `KIND: argument`."""
    kind, colon, argument = text.partition(": ")
    if colon:
        kind, options = kind.strip(), ()
    else:
        kind, *options = [part.strip() for part in text.split(",")]
    if kind not in KINDS:
        raise PageError(f"{place}: there is no kind of block '{kind}'")
    return kind, argument.strip(), tuple(options)


def blocks(page):
    """All fenced blocks of a page, in order."""
    name = str(page.relative_to(ROOT))
    lines = page.read_text().splitlines()
    found, frame, directive, output = [], "", None, None
    at = 0
    while at < len(lines):
        line = lines[at]
        if line == "<!-- cpp-frame":
            end = lines.index("-->", at)
            frame += "\n".join(lines[at + 1 : end]) + "\n"
            at = end + 1
            continue
        if m := DIRECTIVE.match(line):
            if m[1] == "cpp":
                directive = (at + 1, m[2] or "declarations")
            else:
                output = m[2] or ""
            at += 1
            continue
        if m := re.match(r"( *)```(\S*)\s*$", line):
            indent, language, first = len(m[1]), m[2], at + 1
            at = first
            while lines[at].strip() != "```":
                at += 1
                if at == len(lines):
                    raise PageError(f"{name}:{first}: the block does not end")
            code = "".join(text[indent:] + "\n" for text in lines[first:at])
            kind, argument, options = "declarations", "", ()
            if directive:
                if language != "cpp":
                    raise PageError(f"{name}:{directive[0]}: the directive is not followed by a block of cpp")
                kind, argument, options = parse_directive(f"{name}:{directive[0]}", directive[1])
            found.append(Block(name, first + 1, language, code, kind, argument, options, frame, output))
            directive = output = None
        elif directive and line.strip():
            raise PageError(f"{name}:{directive[0]}: the directive is not followed by a block")
        at += 1
    return found


def all_blocks():
    return [block for page in pages() for block in blocks(page)]
