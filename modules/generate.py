#!/usr/bin/env python3
"""Writes the modules from the headers: each exports the public names of some rooms.

    modules/generate.py CLANG++            rewrites modules/*.cppm
    modules/generate.py CLANG++ --check    says what has to be rewritten, and fails if anything has
"""

import collections
import pathlib
import re
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
INCLUDE = HERE.parent / "include"

# The headers are in `coil` alone, and its parts export again what it exports: where two modules include the same static
# functions of the standard library, Clang 22 takes these for two definitions of one name.
EVERYTHING = "coil"
EVERYTHING_HEADER = "coil/coil.hpp"
PARTS = {
    "coil.uring": ("the ring alone", ["uring"], []),
    "coil.core": ("tasks, generators, results, buffers, stop tokens", ["core"], []),
    "coil.task": ("contexts, combinations, synchronization, executors, lookups", ["context", "compose", "sync", "exec", "interleave"], ["coil.core"]),
    "coil.io": ("Linux calls, sockets, streams, processes, other libraries", ["io", "interop", "net", "process", "stream"], ["coil.core"]),
    "coil.fs": ("files, with the names of std::filesystem", ["fs"], ["coil.core"]),
    "coil.sim": ("a simulated world for tests", ["sim"], ["coil.core", "coil.task", "coil.io"]),
}

# Without these a program that imports a module cannot contain a coroutine.
STANDARD = {
    "std::coroutine_handle",
    "std::coroutine_traits",
    "std::noop_coroutine",
    "std::suspend_always",
    "std::suspend_never",
}


# Deprecated: for programs that include the headers.
RETIRED_HEADERS = {"coil/uring/kernel.hpp", "coil/uring/epoll_kernel.hpp", "coil/uring/emulated_kernel.hpp"}  # retired
# Of <coil/execution.hpp>, which may include another library.
EXECUTION_HEADERS = {f"coil/interop/{name}.hpp" for name in ("as_awaitable", "as_sender", "scheduler", "sender_vocabulary")}
RETIRED_NAMES = {"coil::kernel_kind"}  # retired


def headers_of(rooms):
    return sorted(
        {
            str(header.relative_to(INCLUDE))
            for room in rooms
            for header in (INCLUDE / "coil" / room).glob("*.hpp")
        }
        - RETIRED_HEADERS
        - EXECUTION_HEADERS
    )


def clang(compiler, text, *options):
    with tempfile.NamedTemporaryFile("w", suffix=".cpp") as source:
        source.write(text)
        source.flush()
        return subprocess.run(
            [compiler, "-std=c++20", f"-I{INCLUDE}", "-fsyntax-only", *options, source.name],
            capture_output=True,
            text=True,
            check=False,
        )


def including(headers):
    return "".join(f"#include <{header}>\n" for header in headers)


def usings(names):
    return "".join(f"using {name};\n" for name in names)


def declarations(compiler, headers):
    """How often these headers, and what they include, declare each qualified name of coil's."""
    listed = clang(compiler, including(headers), "-Xclang", "-ast-list", "-Xclang", "-ast-dump-filter=coil::")
    if listed.returncode != 0:
        sys.exit(listed.stderr)
    return collections.Counter(
        name
        for name in listed.stdout.split("\n")
        if re.fullmatch(r"coil(::\w+)*::(\w+|operator\W+)", name) and not re.search(r"detail\b", name)
    )


def usable(compiler, headers, names):
    """Those that a using-declaration may export: neither members nor parameters of templates nor namespaces."""
    names = sorted(names)
    # Each in a namespace of its own, as some are called as something else is; only a namespace can be opened.
    tries = "".join(
        f"namespace {name.rpartition('::')[0]} {{}} namespace try_{i} {{ using {name}; }}\n" for i, name in enumerate(names)
    )
    tried = clang(compiler, including(headers) + tries, "-ferror-limit=0")
    refused = re.findall(r"^[^:]*:(\d+):\d+: error:", tried.stderr, re.MULTILINE)
    return set(names) - {names[int(line) - len(headers) - 1] for line in refused}


def text_of(module, summary, headers, imports, names):
    text = f"// {summary[0].upper()}{summary[1:]}.\n"
    text += "// Written by generate.py from the headers, which say what each name is: ./dev modules.\n"
    if headers:
        text += f"module;\n\n{including(headers)}\n"
    text += f"export module {module};\n\n" + "".join(f"{line};\n" for line in imports)
    by_namespace = collections.defaultdict(list)
    for name in sorted(names):
        by_namespace[name.rpartition("::")[0]].append(name)
    for namespace, members in sorted(by_namespace.items()):
        text += f"\nexport namespace {namespace} {{\n{usings(members)}}} // namespace {namespace}\n"
    return text.replace("\n\n\n", "\n\n")


def texts(compiler):
    below, known, everything = [], collections.Counter(), set(STANDARD)
    for module, (summary, rooms, imports) in PARTS.items():
        # What is declared again has further overloads here.
        below = below + headers_of(rooms)
        declared = declarations(compiler, below)
        names = usable(compiler, below, declared - known) - RETIRED_NAMES
        known = declared
        everything |= names
        if module == "coil.core":
            names |= STANDARD
        yield module, text_of(module, summary, [], [f"import {EVERYTHING}", *(f"export import {i}" for i in imports)], names)
    missing = everything - STANDARD - usable(compiler, [EVERYTHING_HEADER], everything - STANDARD)
    if missing:
        sys.exit(f"<{EVERYTHING_HEADER}> does not include the headers of {', '.join(sorted(missing))}")
    yield EVERYTHING, text_of(EVERYTHING, "everything", [EVERYTHING_HEADER], [], everything)


def main():
    compiler, check = sys.argv[1], "--check" in sys.argv[2:]
    stale = []
    for module, text in texts(compiler):
        file = HERE / f"{module}.cppm"
        if not file.exists() or file.read_text() != text:
            stale.append(file.name)
            if not check:
                file.write_text(text)
    if check and stale:
        sys.exit(f"{', '.join(stale)}: not what the headers say; run ./dev modules")


if __name__ == "__main__":
    main()
