#!/usr/bin/env bash
# Checks docs/reference/operations.md: compares its rows for the calls of coil::io with the headers, the library's fallbacks and
# the tests.

set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."

command -v python3 >/dev/null || {
    echo "SKIP: needs python3"
    exit 77
}

python3 - <<'PYTHON'
import pathlib
import re
import sys

problems = []


def problem(text):
    problems.append(text)


def code(path):
    """A file without comments, strings and preprocessor lines."""
    text = pathlib.Path(path).read_text()
    text = re.sub(r'"(?:[^"\\\n]|\\.)*"', '""', text)
    text = re.sub(r"//[^\n]*|/\*.*?\*/", "", text, flags=re.S)
    return re.sub(r"^[ \t]*#(?:[^\n]*\\\n)*[^\n]*", "", text, flags=re.M)


def declarations(text):
    """(namespace, head, body) of everything at namespace scope; body is None without braces."""
    found, scopes, head, at = [], [], "", 0
    while at < len(text):
        c = text[at]
        if c == ";":
            found.append(("::".join(scopes), head.strip(), None))
            head = ""
        elif c == "{":
            space = re.search(r"\bnamespace\s+([\w:]*)\s*$", head)
            if space:
                scopes.append(space.group(1))
                head = ""
            else:
                depth, start = 1, at + 1
                while depth:
                    at += 1
                    depth += {"{": 1, "}": -1}.get(text[at], 0)
                found.append(("::".join(scopes), head.strip(), text[start:at]))
                # A class or a variable continues to its semicolon; a function ends here.
                head = "" if "(" in head and "=" not in head.split("(")[0] else head + " "
        elif c == "}":
            scopes.pop()
            head = ""
        else:
            head += c
        at += 1
    return found


def function_name(head):
    head = re.sub(r"\[\[.*?\]\]", "", head, flags=re.S)
    head = re.sub(r"^\s*template\s*<.*?>\s*(requires\b.*?(?=\b(inline|constexpr|auto)\b))?", "", head, flags=re.S)
    if re.match(r"(enum|using|class|struct|union|concept|typedef|extern|static_assert|friend)\b", head):
        return None
    m = re.search(r"([A-Za-z_]\w*)\s*\(", head)
    if not m or "=" in head[: m.start()] or m.group(1) in ("requires", "noexcept", "decltype", "alignas"):
        return None
    return m.group(1)


# ---- the headers and the library

opcodes = dict(
    re.findall(r"^\s+(\w+) = \d+,\s*// (\d+\.\d+)", pathlib.Path("include/coil/uring/abi/opcode.hpp").read_text(), re.M)
)

builders = {}  # prep::NAME -> opcodes
for path in pathlib.Path("include/coil/uring").glob("prep_*.hpp"):
    for space, head, body in declarations(code(path)):
        name = function_name(head)
        if space == "coil::uring::prep" and name and body is not None:
            builders.setdefault(name, set()).update(re.findall(r"detail::entry\(\s*opcode::(\w+)|prep::(\w+)\(", body))


def opcodes_of_builder(name):
    result = set()
    for opcode, other in builders[name]:
        result |= {opcode} if opcode else opcodes_of_builder(other)
    return result


calls = {}  # coil::io::NAME -> bodies
helpers = {}  # coil::detail::NAME -> bodies
for path in pathlib.Path("include/coil/io").rglob("*.hpp"):
    if path.name == "modifiers.hpp":
        continue  # modifiers take calls and are not calls themselves
    for space, head, body in declarations(code(path)):
        if body is None:
            continue
        if space == "coil::io" and (name := function_name(head)):
            calls.setdefault(name, []).append(body)
        elif space == "coil::detail":
            m = re.search(r"\b(?:class|struct)\s+(\w+)", head)
            if name := m.group(1) if m else function_name(head):
                # The base classes, which head contains, build requests for a class as well.
                helpers.setdefault(name, []).append(head.split(name, 1)[1] + body)


def opcodes_of(bodies, seen):
    result = set()
    for body in bodies:
        for name in re.findall(r"\bprep::(\w+)\(", body):
            result |= opcodes_of_builder(name)
        for name in set(re.findall(r"\b\w+\b", re.sub(r"\bprep::\w+", "", body))) - seen:
            if name in helpers:
                seen.add(name)
                result |= opcodes_of(helpers[name], seen)
        for name in set(re.findall(r"(?<![\w:.>])(\w+)\(", body)) - seen:
            if name in calls:
                seen.add(name)
                result |= opcodes_of(calls[name], seen)
    return result


direct = set(re.findall(r"case (?:uring::)?opcode::(\w+):", code("src/uring/quick_calls.cpp")))
tests = "\n".join(code(path) for path in pathlib.Path("tests").rglob("*_test.cpp"))

# ---- the page


def version(text):
    return tuple(int(part) for part in text.split("."))


rows = {}
for line in pathlib.Path("docs/reference/operations.md").read_text().splitlines():
    if not re.match(r"\| `", line):
        continue
    cells = [cell.strip() for cell in line.strip("|").split("|")]
    name = cells[0].strip("`")
    if len(cells) != 6 or not all(cells):
        problem(f"{name}: the row does not have six cells")
        continue
    if name in rows:
        problem(f"{name}: two rows")
    rows[name] = cells[1:]

def body_of(path, function):
    text = code(path)
    start = text.index(function)
    return text[start : text.index("\n}", start)]


# How the epoll backend begins an operation: the cases of its two functions.
def cases(path, function):
    body = body_of(path, function)
    found = {}
    pending = []
    for part in re.split(r"(?=case opcode::)", body):
        if m := re.match(r"case opcode::(\w+):(.*)", part, re.S):
            pending.append(m[1])
            if m[2].strip():
                found.update({op: m[2] for op in pending})
                pending = []
    return found


begins = cases("src/uring/epoll/calls.cpp", "int epoll_backend::begin(")
calls_made = cases("src/uring/epoll/calls.cpp", "int epoll_backend::begin_call(")


def epoll_ways(named):
    ways = set()
    for op in named:
        if op in begins:
            ways.add("readiness")
        elif op in calls_made:
            text = calls_made[op]
            for helper in re.findall(r"begin_(?:socket|pipe|waitid|tee)\b", text):
                text += body_of("src/uring/epoll/calls.cpp", f"int epoll_backend::{helper}(")
            found = set()
            if "hand_over(r, true)" in text or "wait_on_futex" in text:
                found.add("thread")
            if "hand_over(r, false)" in text or "begin_open" in text:
                found.add("worker")
            if "begin_io" in text:
                found.add("readiness")
            ways |= found or {"ring" if "send_message" in text else "direct"}
        else:
            ways |= {"ring", "direct"}  # implemented in src/uring/emulated
    return ways


for name in sorted(calls.keys() - rows.keys()):
    problem(f"{name}: no row, but coil::io has it")
for name in sorted(rows.keys() - calls.keys()):
    problem(f"{name}: a row, but coil::io does not have it")

for name, (man, opcode, linux, without, epoll) in rows.items():
    if man != "–" and not re.fullmatch(r"\w+\([23]\)(, \w+\([23]\))*", man):
        problem(f"{name}: '{man}' is no list of man pages")
    if not re.fullmatch(r"`\w+`(, `\w+`)*", opcode):
        problem(f"{name}: '{opcode}' is no list of opcodes")
        continue
    named = set(re.findall(r"\w+", opcode))
    if unknown := named - opcodes.keys():
        problem(f"{name}: uring::opcode has no {', '.join(unknown)}")
        continue
    # Calls submit a nop in place of a request that is not needed.
    built = opcodes_of(calls.get(name, []), {name}) - ({"nop"} - named)
    if built and built != named:
        problem(f"{name}: the header builds {', '.join(sorted(built))}, the row says {opcode}")
    first = max((opcodes[o] for o in named), key=version)
    m = re.fullmatch(r"(\d+\.\d+)( \(.+\))?", linux)
    if not m:
        problem(f"{name}: '{linux}' is no version")
    elif version(m[1]) < version(first) or (m[1] != first and not m[2]):
        problem(f"{name}: uring/abi/opcode.hpp says Linux {first}, the row {linux}")
    if name in calls and ("system call" in without) != bool(named & direct and not name.endswith("_direct") or "take_events" in str(calls[name] + helpers.get(f"{name}_element", []))):
        problem(f"{name}: '{without}' is not what src/uring/quick_calls.cpp does")
    ways = epoll_ways(named)
    if not any(word in epoll for word in ways) and not re.match(r"as \w+", epoll):
        problem(f"{name}: '{epoll}' is not what src/uring/epoll/calls.cpp does: {' or '.join(sorted(ways))}")
    if (m := re.match(r"as (\w+)", epoll)) and m[1] not in rows:
        problem(f"{name}: '{epoll}', but there is no row for {m[1]}")
    if not re.search(rf"\bio::{name}\(", tests):
        problem(f"{name}: no test calls io::{name}(")

if len(calls) < 40 or len(opcodes) < 60 or not direct:
    problem(f"read too little: {len(calls)} calls, {len(opcodes)} opcodes, {len(direct)} fallbacks")

for text in problems:
    print("docs/reference/operations.md: " + text)
print(f"{len(rows)} rows, {len(calls)} calls, {len(problems)} problems")
sys.exit(1 if problems else 0)
PYTHON
