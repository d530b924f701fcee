#!/usr/bin/env python3
"""Checks the constants in tools/debuggers/coil_debug, which a debugger cannot read from the program, against the library."""

import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / 'tools' / 'debuggers'))

from coil_debug import children, names, printers, tasks  # noqa: E402

HEADERS = ROOT / 'include' / 'coil'
# A value, the file that defines it, and what this file must contain ($ is the value).
SOURCES = [
    (tasks.TICK_SHIFT, 'context/detail/timer_wheel.hpp', 'tick_shift = $;'),
    (tasks.READY_CAPACITY, 'core/detail/ready_queue.hpp', 'capacity = $;'),
    (tasks.COMPLETED, 'context/detail/sqe_slot.hpp', 'completed = $;'),
    (tasks.SPECIAL, 'context/detail/sqe_slot.hpp', 'special = $,'),
    (tasks.MARKS, 'context/detail/sqe_slot.hpp', 'marks = $;'),
    (tasks.TIMED, 'context/detail/op_state.hpp', 'timed = $,'),
    (tasks.LONGEST_SPAN.bit_length() - 1, '../../src/context/leaf_search.cpp', 'longest = std::int64_t{1} << $;'),
    (tasks.FLAGS_MASK, 'context/detail/awaiter_base.hpp', 'flags_mask = $;'),
    (tasks.PHASE_MASK, 'context/detail/awaiter_base.hpp', 'phase_mask = $;'),
    (tasks.KIND_SHIFT, 'context/detail/awaiter_base.hpp', 'kind_shift = $;'),
    (tasks.KIND_MASK, 'context/detail/awaiter_base.hpp', 'kind_mask = std::uintptr_t{$} << kind_shift;'),
    (children.OWNER, 'core/detail/promise_base.hpp', 'is_owner = $;'),
    (children.KIND_MASK, 'core/detail/promise_base.hpp', 'kind_mask = $;'),
]
# A list of names, the file, the beginning of an enumeration in it.
ENUMERATIONS = [
    (['other', 'operation', 'sleep', 'sync', 'stream', 'join', 'child'], 'context/detail/awaiter_base.hpp',
     'enum class wait_kind : std::uintptr_t {'),
    (['fresh', 'pending', 'done', 'resumed'], 'context/detail/awaiter_base.hpp', 'enum class phase : std::uintptr_t {'),
    (['idle', 'prepared', 'queued'], 'context/detail/op_state.hpp', 'enum class phase : std::uint8_t {'),
    (['free', 'running', 'serviced'], 'context/detail/listed_loop.hpp', 'enum class use : unsigned char {'),
]
# A symbol as the debugger writes it, and the name of the coroutine.
COROUTINES = [
    ('serves(int) (.resume)', 'serves(int)'),
    ('serves(serves(int)::_Z6servesi.Frame*) [clone .actor]', 'serves(int)'),
    # Constrained templates, which demanglers do not know.
    ('_ZN4coil4copyITkNS_11byte_sourceENS_3net6socketETkNS_9byte_sinkES2_EENS_4taskImEERT_RT0_.resume', 'coil::copy<...>'),
    ('_ZN4coil12rate_limitedIRNS_3net6socketEE9read_someENS_14mutable_bufferEQ11byte_sourceIT_E.resume',
     'coil::rate_limited<...>'),
    ('_ZNK12_GLOBAL__N_14part4copyEQ1x', '(anonymous namespace)::part::copy'),
    ('_Z99too_short', '_Z99too_short'),
    ('main', 'main'),
]


def strings(path):
    return re.findall(r'"([^"\n]*)"', re.search(r'names\{.*?\};', path.read_text(), re.S)[0])


def main():
    problems = []
    if strings(HEADERS / 'uring' / 'detail' / 'opcode_names.hpp') != names.CALLS:
        problems.append('names.CALLS')
    if strings(ROOT / 'src' / 'context' / 'wait_names.cpp') != names.OBJECTS:
        problems.append('names.OBJECTS')
    for value, file, text in SOURCES:
        if text.replace('$', str(value)) not in (HEADERS / file).read_text():
            problems.append('%s: %s, with %s' % (file, text, value))
    for wanted, file, begin in ENUMERATIONS:
        text = (HEADERS / file).read_text().partition(begin)[2].partition('}')[0]
        if re.findall(r'\w+', re.sub(r'//.*', '', text))[:len(wanted)] != wanted:
            problems.append('%s: %s' % (file, begin))
    if 'nothing = std::numeric_limits<int>::min()' not in (HEADERS / 'net/detail/socket_element.hpp').read_text() or (
            printers.NO_DESCRIPTOR != -2**31):
        problems.append('printers.NO_DESCRIPTOR')
    for symbol, wanted in COROUTINES:
        if names.coroutine(symbol) != wanted:
            problems.append('names.coroutine(%r) is %r' % (symbol, names.coroutine(symbol)))
    for problem in problems:
        print('tools/debuggers/coil_debug does not match the library: ' + problem)
    return 1 if problems else 0


if __name__ == '__main__':
    sys.exit(main())
