"""One reading of a program, compared with the previous one, as a document and as lines of text."""

import time

from .metrics import Interval, parse
from .tasks import Dump, duration, size

SORT_KEYS = ('name', 'load', 'tasks', 'calls', 'operations', 'delay', 'longest')


class Reader:
    """Reads a program repeatedly; rates cover the time since the previous reading."""

    def __init__(self, client, limit):
        self.client = client
        self.limit = limit
        self.before = {}
        self.time = None

    def read(self):
        process = self.client.process()
        contexts = parse(self.client.metrics())
        now = time.monotonic()
        seconds = now - self.time if self.time is not None else process['uptime_s']
        rows = [_row(Interval(each, self.before.get(each.name), seconds)) for each in contexts]
        self.before = {each.name: each for each in contexts}
        self.time = now
        return Reading(process, rows, Dump(self.client.tasks(self.limit)) if self.limit else None)


def _row(interval):
    now = interval.now
    return {
        'name': now.name,
        'load': interval.rate('turn_seconds_sum'),
        'tasks': int(now.get('tasks')),
        'ready': int(now.get('ready')),
        'in_flight': int(now.get('in_flight')),
        'timers': int(now.get('timers')),
        'turns': interval.rate('turn_seconds_count'),
        'calls': interval.rate('enters_total'),
        'operations': interval.rate('completions_total'),
        'delay_p50': interval.quantile('ready_delay_seconds', 0.5),
        'delay_p99': interval.quantile('ready_delay_seconds', 0.99),
        'turn_p99': interval.quantile('turn_seconds', 0.99),
        'longest': now.get('longest_turn_seconds'),
        'slow_turns': _slow_turns(interval),
        'exceptions': int(now.get('unhandled_exceptions_total')),
    }


def _slow_turns(interval):
    """The number of turns longer than about 17 ms, which is the upper bound of a bucket."""
    def up_to(context):
        return max((count for bound, count in context.buckets.get('turn_seconds', []) if bound < 0.02), default=0.0)
    total = interval.count('turn_seconds_count')
    return int(total - (up_to(interval.now) - up_to(interval.before)))


class Reading:
    def __init__(self, process, contexts, dump):
        self.process = process
        self.contexts = contexts
        self.dump = dump

    def document(self, most=50):
        result = {'process': self.process, 'contexts': self.contexts}
        if self.dump:
            result |= {
                'blocked': self.dump.blocked,
                'complete': self.dump.is_complete,
                'waits': dict(self.dump.waits.most_common(most)),
                'names': dict(self.dump.labels().most_common(most)),
                'frames': [{'function': name, 'count': count, 'bytes': total}
                           for name, count, total in self.dump.frames()[:most]],
            }
        return result

    def lines(self, sort='name', matching='', most=12):
        process = self.process
        yield (f"{process['name']} (pid {process['pid']})  up {duration(process['uptime_s'])}  "
               f"{process['threads']} threads  {process['descriptors']} of {process['descriptor_limit']} descriptors  "
               f"{size(process['resident_bytes'])} resident")
        yield ''
        yield (f"{'CONTEXT':<16} {'LOAD':>5} {'TASKS':>8} {'READY':>7} {'IN FLIGHT':>9} {'TIMERS':>8} {'TURNS/S':>9} "
               f"{'CALLS/S':>9} {'OPS/S':>9} {'DELAY P50':>9} {'P99':>8} {'LONGEST':>8} {'SLOW':>5}")
        for row in sorted(self.contexts, key=_order(sort)):
            if matching and matching not in row['name'] and not self.dump:
                continue
            yield (f"{row['name'][:16]:<16} {row['load'] * 100:>4.0f}% {row['tasks']:>8} {row['ready']:>7} "
                   f"{row['in_flight']:>9} {row['timers']:>8} {row['turns']:>9.0f} {row['calls']:>9.0f} "
                   f"{row['operations']:>9.0f} {_time(row['delay_p50']):>9} {_time(row['delay_p99']):>8} "
                   f"{_time(row['longest']):>8} {row['slow_turns']:>5}")
        if self.dump:
            yield from self._task_lines(matching, most)

    def _task_lines(self, matching, most):
        dump = self.dump
        for name in dump.blocked:
            yield f'{name}: no answer within 2 s: a coroutine blocks its thread'
        if not dump.is_complete:
            yield 'Not all tasks are counted below: see --limit.'
        for title, counts in (('TASKS BY WHAT THEY WAIT FOR', dump.waits), ('TASKS BY NAME', dump.labels())):
            yield ''
            yield title
            shown = [(name, count) for name, count in counts.most_common() if matching in name]
            yield from _cut([f'{count:>8} {name}' for name, count in shown], most)
        yield ''
        yield 'FRAMES BY FUNCTION'
        shown = [row for row in dump.frames() if matching in row[0]]
        yield from _cut([f"{count:>8} {size(total) if total else 'unknown':>8} {name}" for name, count, total in shown], most)


def _cut(lines, most):
    yield from lines[:most]
    if len(lines) > most:
        yield f'         and {len(lines) - most} more'


def _time(seconds):
    return '-' if seconds is None else duration(seconds)


def _order(key):
    if key == 'name':
        return lambda row: row['name']
    name = {'delay': 'delay_p99'}.get(key, key)
    return lambda row: -(row[name] or 0)
