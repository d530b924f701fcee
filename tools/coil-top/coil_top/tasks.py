"""The tasks of a dump: a flat list, and summaries of it."""

import collections

from .locks import locks_of


class Task:
    def __init__(self, record, context, level):
        self.context = context
        self.level = level
        self.name = record['name']
        self.frame = record['frame']
        self.age = record.get('age_s')
        self.limit = record.get('limit_s')
        self.place = f"{record['file']}:{record['line']}" if 'file' in record else None
        self.coroutines = record['awaits']  # the innermost first
        self.descriptor = -1 if record.get('direct') else record.get('fd', -1)  # -1: none, or a slot of the ring's table
        self.peer = record.get('peer')
        self.idle = record.get('idle_s')
        self.wait = _wait(record)
        self.object = record.get('object')  # 'mutex' and the like
        self.address = record.get('address')  # of the object
        self.is_locked_shared = record.get('locked_shared', False)
        self.holder = record.get('locked_by')  # the frame of a task

    @property
    def function(self):
        """The name of the innermost coroutine."""
        return short(self.coroutines[0]['function']) if self.coroutines else '?'

    @property
    def root_function(self):
        return short(self.coroutines[-1]['function']) if self.coroutines else '?'

    @property
    def label(self):
        return self.name or self.root_function

    def line(self):
        text = f"{self.context}: {self.label}: {self.wait} in {self.function}"
        if self.place:
            text += f', spawned at {self.place}'
        if self.age is not None:
            text += f' {duration(self.age)} ago'
        if self.limit is not None:
            text += f', limit in {duration(self.limit)}'
        return text


def short(function):
    """A function's name without its parameters: `chat::session` for `chat::session(int)`."""
    depth = 0
    for at, character in enumerate(function):
        if character == '<':
            depth += 1
        elif character == '>':
            depth -= 1
        elif character == '(' and depth == 0 and at > 0 and not function[at:].startswith('(anonymous namespace)'):
            return function[:at]
    return function


def duration(seconds):
    if seconds < 1e-3:
        return f'{seconds * 1e6:.0f} us'
    if seconds < 1:
        return f'{seconds * 1e3:.1f} ms'
    if seconds < 120:
        return f'{seconds:.1f} s'
    if seconds < 7200:
        return f'{seconds / 60:.0f} min'
    return f'{seconds / 3600:.1f} h'


def size(count):
    for unit in ('B', 'KB', 'MB'):
        if count < 1000:
            return f'{count:.3g} {unit}' if unit != 'B' else f'{count:.0f} B'
        count /= 1000
    return f'{count:.3g} GB'


def _wait(record):
    """What a task waits for, and the times that are known about it."""
    text = _object(record)
    if 'elements' in record:
        text += f", {record['elements']} of {record['capacity']}"
    if record.get('unbounded'):
        text += ', unbounded'
    if 'waits_s' in record:
        text += f", for {duration(record['waits_s'])}"
    if 'call_limit_s' in record:
        text += f", limit in {duration(record['call_limit_s'])}"
    if 'call_limit_total_s' in record:
        text += f", limit of {duration(record['call_limit_total_s'])}"
    return text


def _object(record):
    kind = record['waits_for']
    if kind in ('operation', 'queued', 'stream'):
        text = record['call'] + (f" fd {record['fd']}" if record['fd'] >= 0 else '')
        for key in ('peer', 'local', 'path'):
            if record.get(key):
                text += (' on ' if key == 'local' else ' ') + record[key]
        if 'idle_s' in record:
            text += f", nothing received for {duration(record['idle_s'])}"
        if kind == 'queued':
            text += ', waits to be submitted'
        return text
    if kind == 'sleep':
        return f"sleep, {duration(record['left_s'])} left"
    if kind == 'object':
        text = record['object'] + (f" at {record['address']}" if 'address' in record else '')
        if record.get('locked_shared'):
            return text + ', locked shared'
        return text + (f", locked by {record['locked_by']}" if record.get('locked_by') else '')
    return {
        'ready': 'ready to run',
        'join': 'the end of a spawned task',
        'child': 'a child',
        'group': f"the children of {record.get('address')}",
        'children': f"{len(record['children'])} children",
        'elsewhere': 'work on another thread',
    }.get(kind, 'running, or an unknown wait')


def wait_kind(record):
    """The key by which waits are counted: the call or the primitive, without descriptor and address."""
    kind = record['waits_for']
    if kind in ('operation', 'queued', 'stream'):
        return record['call']
    if kind == 'object':
        return record['object']
    return {'join': 'end of a task', 'child': 'a child', 'group': 'children', 'elsewhere': 'another thread',
            'unknown': 'running or unknown'}.get(kind, kind)


class Dump:
    """All tasks of all contexts, children after their parents."""

    def __init__(self, document):
        self.tasks = []
        self.is_complete = True
        self.blocked = []  # names of contexts that did not answer
        self.waits = collections.Counter()
        seen = collections.Counter()
        for context in document['contexts']:
            seen[context['name']] += 1
            # The page of metrics tells contexts of the same name apart in the same way.
            name = context['name'] + (f"#{seen[context['name']]}" if seen[context['name']] > 1 else '')
            if not context['answered']:
                self.blocked.append(name)
                continue
            self.is_complete = self.is_complete and context['complete']
            self._add(context['tasks'], name, 0)
            for group in context['groups']:
                self._add(group['children'], name, 1)
        names = {task.frame: task.label for task in self.tasks}
        for task in self.tasks:
            if task.holder in names:
                task.wait += f" '{names[task.holder]}'"

    def _add(self, records, context, level):
        for record in records:
            self.tasks.append(Task(record, context, level))
            self.waits[wait_kind(record)] += 1
            self._add(record['children'], context, level + 1)

    def labels(self):
        return collections.Counter(task.label for task in self.tasks)

    def descriptors(self, context):
        """How many descriptors the tasks of a context wait for."""
        return len({task.descriptor for task in self.tasks if task.context == context and task.descriptor >= 0})

    def frames(self):
        """[(function, frames, bytes)], the largest first. Bytes are those that the allocator knows."""
        counts, sizes = collections.Counter(), collections.Counter()
        for task in self.tasks:
            for coroutine in task.coroutines:
                name = short(coroutine['function'])
                counts[name] += 1
                sizes[name] += coroutine.get('bytes', 0)
        return sorted(((name, counts[name], sizes[name]) for name in counts), key=lambda row: (-row[2], -row[1], row[0]))

    def locks(self):
        return locks_of(self.tasks)

    def matching(self, text, idle):
        """With `idle`, the longest idle first."""
        if idle is None:
            return [task for task in self.tasks if text in task.line()]
        return sorted((task for task in self.tasks if task.idle is not None and task.idle >= idle and text in task.line()),
                      key=lambda task: -task.idle)
