"""The reports of the watchdog about blocked contexts, by place."""

import re

from .tasks import duration, short

KINDS = {
    'long_turn': 'a coroutine blocked the thread',
    'await_loop': 'a task awaited without suspending',
    'late_resumption': 'a ready coroutine waited',
    'late_timer': 'timers fired late',
    'full_pool': 'calls waited for a thread of the pool',
}

# Functions of coil, the standard library and the compiler (such as a sanitizer), perhaps after their return type.
FOREIGN = re.compile(r'^(?:[^<]* )?(?:std::|coil::detail::|__)')


def _entry(record):
    return f"{record['function'] or '?'} [{record['module']}+{record['offset']:#x}]"


class Stall:
    def __init__(self, record):
        self.where = record['where']
        self.kind = KINDS.get(record['what'], record['what'])
        self.times = record['times']
        self.longest = record['longest_s']
        self.last = record['last_s']
        self.age = record['found_s_ago']
        self.lasts = record['lasts']
        self.task = record['task']
        self.place = f"{record['file']}:{record['line']}" if 'file' in record else None
        self.stack = record['stack']
        self.awaits = record['awaits']

    @property
    def function(self):
        """The first function on the stack that belongs to the same file as the coroutine, and to no library that is linked in."""
        ours = [entry['function'] for entry in self.stack if entry['module'] == self.stack[-1]['module']]
        return next((short(name) for name in ours if not FOREIGN.search(short(name))), '')

    def document(self):
        return {'where': self.where, 'what': self.kind, 'function': self.function, 'task': self.task, 'times': self.times,
                'longest': self.longest, 'last': self.last, 'age': self.age, 'lasts': self.lasts}

    def line(self):
        text = f'{duration(self.longest):>9} {self.where}: {self.kind}'
        if self.function:
            text += f' in {self.function}'
        if self.task:
            text += f", task '{self.task}'"
        if self.times > 1:
            text += f', {self.times} times, the last {duration(self.last)}'
        return text + (', not over yet' if self.lasts else f', {duration(self.age)} ago')

    def lines(self):
        """line(), followed by the stack and the chain of awaits of the longest stall."""
        yield self.line()
        if self.place:
            yield f'    spawned at {self.place}'
        for title, entries in (('stack', self.stack), ('awaits', self.awaits)):
            if entries:
                yield f'  {title}:'
            for number, entry in enumerate(entries):
                yield f'    #{number} {_entry(entry)}'


class Stalls:
    """All stalls, the longest first."""

    def __init__(self, document):
        self.is_watching = document['watching']
        self.all = [Stall(record) for record in document['stalls']]

    def matching(self, text):
        return [stall for stall in self.all if any(text in line for line in stall.lines())]
