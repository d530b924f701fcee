"""The locks that tasks wait for, and the tasks that hold them."""

import collections

LOCKS = ('mutex', 'shared_mutex')


class Lock:
    def __init__(self, waiting, holder, cycle):
        first = waiting[0]
        self.what = f'{first.object} at {first.address}'
        self.waiting = waiting
        self.holder = holder  # a task, or None
        self.is_shared = first.is_locked_shared
        self.cycle = cycle  # tasks, each of which waits for the next one; empty: no deadlock

    def __lt__(self, other):  # the most waited for first
        return (-len(self.waiting), self.what) < (-len(other.waiting), other.what)

    @property
    def state(self):
        if self.holder:
            return f"locked by '{self.holder.label}' ({self.holder.frame})"
        if self.is_shared:
            return 'locked shared'
        return 'not locked by a task that is listed'

    def document(self):
        return {'lock': self.what, 'waiting': len(self.waiting), 'state': self.state,
                'holder_waits_for': self.holder.wait if self.holder else None,
                'deadlock': [task.label for task in self.cycle]}

    def line(self):
        return f'{len(self.waiting):>8} {self.what}, {self.state}' + (', a deadlock' if self.cycle else '')

    def lines(self):
        """line(), followed by what the holder does and by the names of the tasks that wait."""
        yield self.line()
        if self.holder:
            yield f'  the holder: {self.holder.line()}'
            for number, coroutine in enumerate(self.holder.coroutines):
                yield f"    #{number} {coroutine['function'] or '?'} [{coroutine['module']}+{coroutine['offset']:#x}]"
        names = collections.Counter(task.label for task in self.waiting)
        yield '  waiting: ' + ', '.join(f'{count} {name}' for name, count in sorted(
            names.items(), key=lambda item: (-item[1], item[0])))
        if self.cycle:
            yield '  a deadlock: ' + ', which waits for '.join(f"'{task.label}'" for task in (*self.cycle, self.cycle[0]))


def locks_of(tasks):
    """All locks for which tasks wait, the most waited for first."""
    waiting = collections.defaultdict(list)
    for task in tasks:
        if task.object in LOCKS and task.address:
            waiting[task.object, task.address].append(task)
    by_frame = {task.frame: task for task in tasks}
    return sorted(Lock(those, by_frame.get(those[0].holder), _cycle(those[0], by_frame)) for those in waiting.values())


def _cycle(task, by_frame):
    """The tasks that hold locks in a circle, beginning with the holder of the lock that `task` waits for."""
    chain = []
    at = by_frame.get(task.holder)
    while at and at not in chain:
        chain.append(at)
        at = by_frame.get(at.holder)
    return chain if at and at is chain[0] else []
