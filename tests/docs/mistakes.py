"""The table of docs/reference/mistakes.md, from marks in the tests: README.md describes their format."""

import re

from pages import ROOT

TITLES = [
    "A task is not awaited",
    "An operation or another awaitable is not awaited",
    "A lambda with captures, or an object, ends before its coroutine",
    "A parameter of a coroutine refers to a temporary",
    "A stored operation refers to a temporary buffer",
    "A task is awaited twice",
    "A task or handle is used after it was moved from",
    "A `std::mutex` is held across an await",
    "A `coil::mutex` is locked by the task that holds it",
    "A call blocks the thread of a context",
    "A buffer is freed or moved during an operation",
    "An exception leaves a detached task",
    "An object is used on another thread or context",
    "A context or synchronisation primitive ends while it is used",
    "Tasks wait for each other",
    "A handle of a spawned task is not used",
    "A loop awaits what is always ready",
    "A result refers to a local variable",
    "`errno` is read after an await",
    "A descriptor is used after it was closed, or has two owners",
    "A length is passed where the flags go",
    "A very deep chain of awaits is stopped",
    "A scope is left without a join",
    "An await where the language allows none",
    "A generator refers to a temporary",
    "A stop request ends at a coroutine of another library",
]

MARK = re.compile(r"^ *// mistake (\d+)(, warning)?(?:: (.*))?$")


class Mark:
    def __init__(self, number, case, reported, shows):
        self.number, self.case, self.reported, self.shows = number, case, reported, shows


def literal(text):
    """The text of adjacent C++ string literals, which may be a regular expression."""
    joined = "".join(re.findall(r'"((?:[^"\\]|\\.)*)"', text))
    joined = joined.replace("\\\\", "\\").replace('\\"', '"').replace("\\n", " ")
    joined = re.sub(r"\\([().*+?'])", r"\1", joined)
    return joined.replace(".*", " ... ").strip()


def from_compile_fail(lines, at, match):
    head = lines[max(0, at - 3) : at + 3]
    expect = next((m[1] for line in reversed(head[:3]) if (m := re.match(r"// expect: (.*)", line))), "")
    kind = "warning" if match[2] else "compile error"
    if "// lifetimes" in head:
        kind = "warning with `COIL_CHECK_LIFETIMES`"
    elif "// only: clang" in head:
        kind += " (clang)"
    return kind, f"`{expect}`" if expect else ""


def from_tidy(lines, at):
    for line in lines[at + 1 :]:
        if m := re.match(r" *// finds (\S+)", line):
            return "clang-tidy", f"`{m[1]}`"
    return "", ""


def from_test(lines, at):
    shows, body = "", ""
    for line in lines[at + 1 :]:
        if m := re.match(r" *// shows: (.*)", line):
            shows = shows or m[1].strip()
        elif line == "}":
            break
        else:
            body += line + "\n"
    deadly = re.search(r"EXPECT_DEATH(?:_IF_SUPPORTED)?\((.*?)\);", body, re.S)
    if deadly:
        text = literal(re.split(r",\s*(?=\")", deadly[1])[-1])
        return "end of the program", shows or (f"`{text}`" if text else "")
    if shows.startswith("nothing:"):
        return "is allowed", shows.removeprefix("nothing:").strip()
    return ("message in debug builds" if re.search(r"COIL_ASSERTIONS|expect_printed|\bchecks\b", body) else "message"), shows


def marks():
    """All marks, and what is wrong with them."""
    found, wrong = [], []
    for path in sorted((ROOT / "tests").rglob("*.cpp")):
        where = path.relative_to(ROOT / "tests")
        lines = path.read_text().splitlines()
        for at, line in enumerate(lines):
            match = MARK.match(line)
            if not match:
                continue
            place = f"tests/{where}:{at + 1}"
            number = int(match[1])
            if not 1 <= number <= len(TITLES):
                wrong.append(f"{place}: there is no mistake {number}")
                continue
            if where.parts[0] == "compile_fail":
                reported, shows = from_compile_fail(lines, at, match)
            elif "tidy" in where.parts:
                reported, shows = from_tidy(lines, at)
            else:
                reported, shows = from_test(lines, at)
            if not shows:
                wrong.append(f"{place}: the test does not say what the user sees: add a line '// shows: ...'")
            found.append(Mark(number, match[3] or "", reported, shows))
    return found, wrong


def cell(text):
    return text.replace("|", "\\|")


def table(all_marks):
    text = "| | mistake | reported by | what the user sees |\n|---|---|---|---|\n"
    for number, title in enumerate(TITLES, 1):
        rows = [mark for mark in all_marks if mark.number == number]
        text += f"| {number} | **{title}** | {'' if rows else 'nothing'} | |\n"
        seen = set()
        for mark in rows:
            row = (mark.case, mark.reported, mark.shows)
            if row not in seen:
                seen.add(row)
                text += f"| | {cell(mark.case)} | {mark.reported} | {cell(mark.shows)} |\n"
    return text
