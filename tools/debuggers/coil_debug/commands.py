"""The commands: `coil contexts`, `coil tasks`, `coil bt`, `coil locals`. Each returns the lines to print."""

import re
import shlex
from collections import Counter

from . import names
from .memory import Unreadable
from .tasks import Tasks

HELP = """coil contexts                the contexts, their threads and numbers of tasks
coil tasks [FILTER]          the tasks, and what each waits for; FILTER is a part of such a line
coil tasks --summary         how many tasks wait for what
coil bt TASK                 the chain of awaits of a task; TASK is its number, its address or its name
coil locals TASK [FRAME]     the variables of its coroutines, or of one; FRAME is a number of coil bt"""


class Misuse(Exception):
    """A command has wrong arguments, or needs something that the program does not have."""


def run(debugger, arguments):
    """Runs the command with these arguments."""
    try:
        words = shlex.split(arguments)
    except ValueError as error:
        raise Misuse('coil: %s' % error) from error
    commands = {'contexts': contexts, 'tasks': tasks, 'bt': bt, 'locals': locals_}
    if not words or words[0] not in commands:
        return HELP.split('\n')
    try:
        all_ = Tasks(debugger)
        if not all_.loops:
            raise Misuse('coil: there are no contexts; the program must run, or there must be a core file')
        return list(commands[words[0]](all_, words[1:]))
    except Unreadable as error:
        raise Misuse('coil: %s; the program must run, or there must be a core file, and coil must be built with -g'
                     % error) from error


def plural(number, what):
    return '%d %s%s' % (number, what, '' if number == 1 else 's')


def head(loop):
    arriving = ', %d in its inbox' % loop.arriving if 0 < loop.arriving < 2**63 else ''
    return 'context %s: %s%s' % (loop.name, plural(loop.top_level, 'task'), arriving)


def contexts(all_, _):
    for loop in all_.loops:
        state = loop.state + (' on ' + loop.thread if loop.thread else '')
        yield '%s, %s, event_loop at 0x%x' % (head(loop), state, loop.address)
        for address, (running, queued) in sorted(loop.groups.items()):
            yield '  scope or supervisor 0x%x: %d %s%s' % (
                address, running, 'child' if running == 1 else 'children', ', %d more wait to begin' % queued if queued else '')


def title(task):
    return '%s 0x%x%s' % ('child' if task.level else 'task', task.frame, " '%s'" % task.name if task.name else '')


def chain(all_, task):
    """The coroutines, the last one first."""
    return [frame for frame in reversed(task.frames) if not all_.is_internal(frame)]


def one_line(all_, task):
    frames = chain(all_, task)
    where = ' in ' + all_.function(frames[0]) if frames else ''
    return '%s[%d] %s: %s%s' % ('  ' * (task.level + 1), task.number, title(task), task.wait.text, where)


def tasks(all_, words):
    if words == ['--summary']:
        yield from summary(all_)
        return
    wanted = ' '.join(words)
    for loop in all_.loops:
        lines = [one_line(all_, task) for task in loop.tasks]
        found = [line for line in lines if wanted in line]
        if found or not wanted:
            yield head(loop)
            yield from found


def summary(all_):
    for loop in all_.loops:
        yield head(loop)
        counts = Counter(task.wait.kind for task in loop.tasks)
        for kind, count in sorted(counts.items(), key=lambda item: (-item[1], item[0])):
            yield '  %6d %s' % (count, kind)


def find(all_, word):
    every = [task for loop in all_.loops for task in loop.tasks]
    if word.isdigit():
        found = [task for task in every if task.number == int(word)]
    elif word.lower().startswith('0x'):
        found = [task for task in every if int(word, 16) in task.frames]
    else:
        found = [task for task in every if task.name == word]
    if not found:
        raise Misuse("coil: there is no task %s; 'coil tasks' lists them" % word)
    if len(found) > 1:
        raise Misuse('coil: %d tasks are called %s; name one by its number or address' % (len(found), word))
    return found[0]


def whole_chain(all_, task):
    """The frames of a task and of the tasks that wait for it, as (task, frame or None)."""
    while task is not None:
        frames = chain(all_, task)
        yield from ((task, frame) for frame in frames or [None])
        task = task.parent


def frame_line(all_, number, frame):
    if frame is None:
        return '#%-2d an operation' % number
    return '#%-2d 0x%x %s%s' % (number, frame, all_.function(frame), names.place(all_.line(frame)))


def bt(all_, words):
    if not words:
        raise Misuse('usage: coil bt TASK')
    task = find(all_, ' '.join(words))
    spawned = ' spawned' + names.place(task.spawned_at) if task.spawned_at else ''
    yield '%s%s: %s' % (title(task), spawned, task.wait.text)
    for number, (_, frame) in enumerate(whole_chain(all_, task)):
        yield frame_line(all_, number, frame)


def locals_(all_, words):
    if not words:
        raise Misuse('usage: coil locals TASK [FRAME]')
    only = None
    name = ' '.join(words)
    if len(words) > 1 and words[-1].isdigit() and all(task.name != name for loop in all_.loops for task in loop.tasks):
        only = int(words.pop())
    task = find(all_, ' '.join(words))
    for number, (_, frame) in enumerate(whole_chain(all_, task)):
        if frame is not None and only in (None, number):
            yield frame_line(all_, number, frame)
            yield from variables(all_, frame)


def variables(all_, frame):
    kind = all_.debugger.frame_type(all_.memory.word(frame))
    if kind is None:
        yield '    (the compiler has not described the frame)'
        return
    found = False
    for name, offset, _, type_ in all_.debugger.fields(kind):
        if not COMPILERS_OWN.match(name):
            found = True
            yield '    %s = %s' % (SCOPE.sub('', name), all_.debugger.show(type_, frame + offset))
    if not found:
        yield '    (no variables)'


# Clang adds `__promise`, `__int_32_0`, `class_coil__io_awaitable_1`, `PointerType_0`, `_3`; GCC `_Coro_self_handle`,
# `_D1234_1_2`, `Aw0_2_3` for an awaiter, `Is_1_1` and `Fs_1_1` for the first and last suspension.
COMPILERS_OWN = re.compile(r'$|__|_Coro_|_D?\d|(class|struct|union|enum)_|(PointerType|UnknownType|ArrayType)|'
                           r'(Aw\d*|Yd\d*|Fs|Is)_\d|T\d{3,}')
# GCC appends the depth and the number of the scope: `line_2_3`.
SCOPE = re.compile(r'_\d+_\d+$')
