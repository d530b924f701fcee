"""One reading of a program, compared with the previous one, as a document and as lines of text."""

import time

from .client import Missing
from .metrics import Interval, parse
from .stalls import Stalls
from .tasks import Dump, duration, size

SORT_KEYS = ('name', 'load', 'tasks', 'enters', 'operations', 'delay', 'longest')
ORDERS = ('count', 'name', 'size')  # of the tables of tasks and frames; with 'size', tasks are sorted by 'count'
DELAY_BOUNDS = (1e-6, 4e-6, 16e-6, 64e-6, 256e-6, 1e-3, 4e-3, 16e-3, 64e-3, 256e-3)


class Reader:
    """Reads a program repeatedly; rates cover the time since the previous reading."""

    def __init__(self, client, limit):
        self.client = client
        self.limit = limit
        self.before = {}
        self.time = None

    def read(self):
        process = self.client.process()
        page = self.client.metrics()
        contexts = parse(page)
        now = time.monotonic()
        seconds = now - self.time if self.time is not None else process['uptime_s']
        dump = Dump(self.client.tasks(self.limit)) if self.limit else None
        rows = [_row(Interval(each, self.before.get(each.name), seconds), dump) for each in contexts]
        self.before = {each.name: each for each in contexts}
        self.time = now
        pools = [{'name': pool.name} | {key.removeprefix('pool_').removesuffix('_total'): int(value)
                                        for key, value in pool.values.items()} for pool in parse(page, 'pool')]
        return Reading(process, rows, pools, self._stalls(), dump)

    def _stalls(self):
        try:
            return Stalls(self.client.stalls())
        except Missing:  # a program with an older version of coil
            return Stalls({'watching': False, 'stalls': []})


def _row(interval, dump):
    now = interval.now
    return {
        'name': now.name,
        'load': interval.rate('turn_seconds_sum'),
        'tasks': int(now.get('tasks')),
        'ready': int(now.get('ready')),
        'in_flight': int(now.get('in_flight')),
        'descriptors': dump.descriptors(now.name) if dump else None,
        'timers': int(now.get('timers')),
        'turns': interval.rate('turn_seconds_count'),
        'enters': interval.rate('enters_total'),
        'operations': interval.rate('completions_total'),
        'delay_p50': interval.quantile('ready_delay_seconds', 0.5),
        'delay_p99': interval.quantile('ready_delay_seconds', 0.99),
        'delays': _buckets(interval.histogram('ready_delay_seconds')),
        'turn_p99': interval.quantile('turn_seconds', 0.99),
        'turn_lengths': _buckets(interval.histogram('turn_seconds')),
        'longest': now.get('longest_turn_seconds'),
        'slow_turns': _slow_turns(interval),
        'exceptions': int(now.get('unhandled_exceptions_total')),
    }


def _buckets(histogram):
    """`up_to` is None in the last bucket, which has no bound."""
    return [{'up_to': bound if bound != float('inf') else None, 'count': count} for bound, count in histogram]


def _slow_turns(interval):
    """The number of turns longer than about 17 ms, which is the upper bound of a bucket."""
    def up_to(context):
        return max((count for bound, count in context.buckets.get('turn_seconds', []) if bound < 0.02), default=0.0)
    total = interval.count('turn_seconds_count')
    return int(total - (up_to(interval.now) - up_to(interval.before)))


class Reading:
    def __init__(self, process, contexts, pools, stalls, dump):
        self.process = process
        self.contexts = contexts
        self.pools = pools
        self.stalls = stalls
        self.dump = dump

    def document(self, most=50):
        result = {'process': self.process, 'contexts': self.contexts, 'pools': self.pools,
                  'watching': self.stalls.is_watching, 'stalls': [stall.document() for stall in self.stalls.all[:most]]}
        if self.dump:
            result |= {
                'blocked': self.dump.blocked,
                'complete': self.dump.is_complete,
                'locks': [lock.document() for lock in self.dump.locks()[:most]],
                'waits': dict(self.dump.waits.most_common(most)),
                'names': dict(self.dump.labels().most_common(most)),
                'frames': [{'function': name, 'count': count, 'bytes': total}
                           for name, count, total in self.dump.frames()[:most]],
            }
        return result

    def lines(self, sort='name', matching='', most=12, order='count'):
        process = self.process
        yield (f"{process['name']} (pid {process['pid']})  up {duration(process['uptime_s'])}  "
               f"{process['threads']} threads  {process['descriptors']} of {process['descriptor_limit']} descriptors  "
               f"{size(process['resident_bytes'])} resident")
        yield ''
        rows = [row for row in sorted(self.contexts, key=_order(sort))
                if self.dump or not matching or matching in row['name']]
        yield (f"{'CONTEXT':<16} {'LOAD':>5} {'TASKS':>8} {'READY':>7} {'IN FLIGHT':>9} {'FDS':>7} {'TIMERS':>8} {'TURNS/S':>9} "
               f"{'ENTERS/S':>9} {'OPS/S':>9} {'DELAY P50':>9} {'P99':>8} {'LONGEST':>8} {'SLOW':>5}")
        for row in rows:
            descriptors = '-' if row['descriptors'] is None else row['descriptors']
            yield (f"{row['name'][:16]:<16} {row['load'] * 100:>4.0f}% {row['tasks']:>8} {row['ready']:>7} "
                   f"{row['in_flight']:>9} {descriptors:>7} {row['timers']:>8} {row['turns']:>9.0f} {row['enters']:>9.0f} "
                   f"{row['operations']:>9.0f} {_time(row['delay_p50']):>9} {_time(row['delay_p99']):>8} "
                   f"{_time(row['longest']):>8} {row['slow_turns']:>5}")
        yield ''
        yield f"{'READY DELAY':<16} " + ''.join(f'{_bound(bound):>8}' for bound in DELAY_BOUNDS) + '    more'
        yield from map(_delay_line, rows)
        if self.pools:
            yield from self._pool_lines()
        yield from self._stall_lines(matching, most)
        if self.dump:
            yield from self._task_lines(matching, most, order)

    def _pool_lines(self):
        yield ''
        yield f"{'POOL':<16} {'THREADS':>8} {'IDLE':>6} {'QUEUED':>8} {'WAITING':>8} {'DELAYED':>9} {'FULL':>5}"
        for pool in self.pools:
            yield (f"{pool['name'][:16]:<16} {pool['threads']:>8} {pool['idle_threads']:>6} {pool['queued']:>8} "
                   f"{pool['waiting']:>8} {pool['delayed']:>9} {pool['full_reports']:>5}")

    def _stall_lines(self, matching, most):
        shown = self.stalls.matching(matching)
        if shown:
            yield ''
            yield 'STALLS, THE LONGEST FIRST'
            yield from _cut([stall.line() for stall in shown], most)

    def _task_lines(self, matching, most, order):
        dump = self.dump
        for name in dump.blocked:
            yield f'{name}: no answer within 2 s: a coroutine blocks its thread'
        if not dump.is_complete:
            yield 'Not all tasks are counted below: see --limit.'
        locks = [lock.line() for lock in dump.locks()]
        if shown := [line for line in locks if matching in line]:
            yield ''
            yield 'TASKS THAT WAIT FOR A LOCK'
            yield from _cut(shown, most)
        for title, counts in (('TASKS BY WHAT THEY WAIT FOR', dump.waits), ('TASKS BY NAME', dump.labels())):
            yield ''
            yield title
            shown = _in_order([(name, count, 0) for name, count in counts.items() if matching in name], order)
            yield from _cut([f'{count:>8} {name}' for name, count, _ in shown], most)
        yield ''
        yield 'FRAMES BY FUNCTION'
        shown = _in_order([row for row in dump.frames() if matching in row[0]], order)
        yield from _cut([f"{count:>8} {size(total) if total else 'unknown':>8} {name}" for name, count, total in shown], most)


def _in_order(rows, order):
    """Sorts rows of (name, count, size). Each name occurs once."""
    keys = {'count': lambda row: (-row[1], row[0]), 'name': lambda row: row[0], 'size': lambda row: (-row[2], -row[1], row[0])}
    return sorted(rows, key=keys[order])


def _bound(seconds):
    return f'<{seconds * 1e3:.0f} ms' if seconds >= 1e-3 else f'<{seconds * 1e6:.0f} us'


def _delay_line(row):
    """The share of the samples in each range."""
    shares, total = [0] * (len(DELAY_BOUNDS) + 1), 0
    for bucket in row['delays']:
        # The bounds of buckets are powers of two nanoseconds, a little more than those of the columns.
        at = next((number for number, bound in enumerate(DELAY_BOUNDS)
                   if bucket['up_to'] is not None and bucket['up_to'] < bound * 1.1), len(DELAY_BOUNDS))
        shares[at] += bucket['count']
        total += bucket['count']
    return f"{row['name'][:16]:<16} " + ''.join(
        f"{'.' if count == 0 else f'{count / total * 100:.0f}%':>8}" for count in shares) + (
            f'  of {total} samples' if total else '  no samples')


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
    return lambda row: (-(row[name] or 0), row['name'])
