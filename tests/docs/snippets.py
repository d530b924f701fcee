#!/usr/bin/env python3
"""Makes translation units of the documentation's code blocks.

    snippets.py FOLDER COUNT      writes FOLDER/snippets_0.cpp ... and FOLDER/refused_*.cpp
"""

import pathlib
import re
import sys

import pages

HEAD = """// Made by tests/docs/snippets.py.
#include <coil/coil.hpp>

#include <gtest/gtest.h>

"""


def identifier(block):
    return re.sub(r"\W+", "_", block.page.removeprefix("docs/")) + f"_line_{block.line}"


def split_includes(code):
    includes = "".join(f"{line}\n" for line in code.splitlines() if re.match(r"\s*#\s*include", line))
    rest = "\n".join("" if re.match(r"\s*#\s*(include|pragma once)", line) else line for line in code.splitlines())
    return includes, rest + "\n"


def merged(blocks):
    """(block, code), with the code of the `continues` blocks that follow the block appended."""
    result = []
    for block in blocks:
        if block.language == "cpp" and block.kind == "continues":
            result[-1][1] += block.code
        elif block.language == "cpp" and block.kind not in ("file", "not compiled"):
            result.append([block, block.code])
    return result


def expected_outputs(blocks):
    """{place of a program: the output it must print}, from the text blocks with a bare `output` directive behind programs."""
    found, last = {}, None
    for block in blocks:
        if block.language == "cpp" and block.kind in ("program", "body"):
            last = block
        elif block.output == "" and block.language == "text":
            if last is None:
                raise pages.PageError(f"{block.place}: there is no program before this output")
            found[last.place] = block.code
    return found


def with_result_of_main(code):
    """In a namespace main() is an ordinary function, which must return a value."""
    m = re.search(r"\bint main\([^)]*\) (try )?\{", code)
    if not m:
        return code
    depth, at = 1, m.end()
    while depth:
        depth += {"{": 1, "}": -1}.get(code[at], 0)
        at += 1
    return f"{code[: at - 1]} return 0; {code[at - 1 :]}"


def unit(block, code, output):
    includes, code = split_includes(code)
    frame_includes, frame = split_includes(block.frame)
    name = identifier(block)
    # The compiler's messages name the page.
    here = f'#line {block.line} "{pages.ROOT / block.page}"\n'
    if block.kind in ("body", "refused"):
        code = f"[[maybe_unused]] coil::task<> snippet() {{\n{here}{code}\nco_return;\n}}\n"
    else:
        code = here + code
    code = with_result_of_main(code)
    # A block that is not run may call functions that are only declared in its frame. Internal linkage keeps the
# compiler from emitting it, so they need no definition.
    text = (f"namespace {name} {{\nusing namespace coil;\nusing namespace std::chrono_literals;\nnamespace {{\n{frame}\n{code}}}\n}}\n")
    call = None
    if block.kind == "program" and "compile only" not in block.options:
        call = f"{name}::main();"
    elif block.kind == "body" and "run" in block.options:
        call = f"coil::run({name}::snippet());"
    if call:
        if output is None:
            body = call
        else:
            body = (f"testing::internal::CaptureStdout();\n    {call}\n    std::fflush(stdout);\n"
                    f'    EXPECT_EQ(testing::internal::GetCapturedStdout(), R"out({output})out");')
        text += f"TEST(Snippets, {name}) {{\n    {body}\n}}\n"
    elif output is not None:
        raise pages.PageError(f"{block.place}: its output is quoted, but it is not run")
    return frame_includes + includes, text


def refused_test(block, code):
    """A program as in tests/compile_fail: everything except the block itself must compile."""
    includes, code = split_includes(code)
    frame_includes, frame = split_includes(block.frame)
    return (f"// expect: {block.argument}\n{frame_includes}{includes}#include <coil/coil.hpp>\nusing namespace coil;\n"
            f"using namespace std::chrono_literals;\n{frame}\n[[maybe_unused]] task<> snippet() {{\n#ifndef COIL_EXPECT_OK\n"
            f"{code}#endif\n    co_return;\n}}\n")


def write_if_changed(path, text):
    if not path.exists() or path.read_text() != text:
        path.write_text(text)


def main():
    folder, count = pathlib.Path(sys.argv[1]), int(sys.argv[2])
    folder.mkdir(parents=True, exist_ok=True)
    for old in folder.glob("refused_*.cpp"):
        old.unlink()
    units, refused, size = [[set(), []] for _ in range(count)], [], [0] * count
    for page in pages.pages():
        blocks = pages.blocks(page)
        outputs = expected_outputs(blocks)
        # A page goes to the unit that is the smallest so far.
        which = size.index(min(size))
        for block, code in merged(blocks):
            if block.kind == "refused":
                refused.append((block, code))
                continue
            includes, text = unit(block, code, outputs.get(block.place))
            units[which][0].update(includes.splitlines())
            units[which][1].append(text)
            size[which] += 1 + len(code) // 200
    for i, (includes, texts) in enumerate(units):
        head = "".join(sorted(line + "\n" for line in includes if "<coil/coil.hpp>" not in line))
        write_if_changed(folder / f"snippets_{i}.cpp", HEAD + head + "\n" + "\n".join(texts))
    for i, (block, code) in enumerate(refused):
        write_if_changed(folder / f"refused_{i}.cpp", refused_test(block, code))


if __name__ == "__main__":
    try:
        main()
    except pages.PageError as error:
        sys.exit(str(error))
