"""One-line summaries of coil's types, for pretty printers.

A front end passes a value as an object with these functions.

    number(path)    -> the integer or pointer in the member `a.b`; of a class, its first member
    memory()        -> a Memory
    debugger        -> what memory.py describes
"""

import errno

from . import names
from .memory import Unreadable
from .tasks import FRAME_HEADER

NO_DESCRIPTOR = -2**31


def error_name(number):
    return '-%s' % errno.errorcode.get(-number, -number)


def io_result(value):
    number = value.number('value_')
    return str(number) if number >= 0 else '%s (%d)' % (error_name(number), number)


def socket(value):
    number = value.number('fd_')
    if number >= 0:
        return 'fd %d' % number
    return 'no descriptor' if number == NO_DESCRIPTOR else 'no descriptor: ' + error_name(number)


def mutex(value):
    free = value.number('permits_.count_')
    if free > 0:
        return 'unlocked'
    return 'locked' if free == 0 else 'locked, %d waiting' % -free


def channel(value):
    capacity, closed_bit = value.number('core_.ring_.capacity_'), value.number('core_.ring_.closed_')
    tail, head = value.number('core_.ring_.tail_'), value.number('core_.ring_.head_')
    if value.number('core_.unbounded_'):
        parts = ['unbounded']
    else:
        parts = ['%d of %d elements' % (names.fill(capacity, closed_bit, head, tail), capacity)]
    if tail & closed_bit:
        parts.append('closed')
    for end in ('receivers', 'senders'):
        if value.number('core_.%s_.first_' % end):
            parts.append(end + ' wait')
    return ', '.join(parts)


def task(value):
    """A task that has not been awaited or spawned yet, or that its awaiter owns."""
    frame = value.number('coroutine_')
    if frame == 0:
        return 'empty'
    try:
        memory = value.memory()
        resume = memory.word(frame)
        if resume == 0:
            return 'ended, 0x%x' % frame
        origin = memory.word(frame + FRAME_HEADER + value.debugger.layout.offset('promise_base', 'origin_'))
        function = names.coroutine(value.debugger.symbol(resume)) or '?'
        return '%s%s, 0x%x' % (function, '' if origin else ', not started', frame)
    except Unreadable:
        return '0x%x' % frame


SUMMARIES = [
    ('io_result', '^coil::(checked_)?io_result$', io_result),
    ('socket', '^coil::net::socket$', socket),
    ('mutex', '^coil::mutex$', mutex),
    ('channel', '^coil::channel<.*>$', channel),
    ('task', '^coil::task<.*>$', task),
]
