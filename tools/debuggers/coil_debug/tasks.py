"""The tasks of a program: what dump_tasks() reads (src/context/task_capture.cpp), read from outside."""

import struct

from . import names
from .children import Children
from .memory import COIL, Memory, Unreadable

FRAME_HEADER = 16  # the two functions at the start of a coroutine's frame; the promise follows
LONGEST_CHAIN = 10000
MOST_LEVELS = 64

# awaiter_base
PHASE_MASK, PENDING, DONE = 3, 1, 2
KIND_SHIFT, KIND_MASK = 4, 7
FLAGS_MASK = 127
OTHER, OPERATION, SLEEP, SYNC, STREAM, JOIN, CHILD = range(7)  # wait_kind

# leaf_search
FIRST_CHUNK, CHUNK, MOST_BYTES = 512, 4096, 20 * 1024

COMPLETED, SPECIAL, MARKS = 1, 4, 7  # sqe_slot
FIXED_FILE = 1  # uring::sqe_flag
QUEUED = 2  # op_state::phase
TIMED = 64  # op_state::trait
TIMEOUT_ABS = 1  # uring::timeout_flag
FROM_NOW = 0  # sleep_awaitable::from
LONGEST_SPAN = 1 << 60  # leaf_search
TICK_SHIFT = 15  # timer_wheel
LOCKED_SHARED = 1  # of a lock_holder
READY_CAPACITY = 2048  # ready_queue
USES = ['idle', 'running', 'serviced']  # listed_loop::use


class Wait:
    """The wait of the last coroutine of a chain: its text as in dump_tasks(), and its kind, which is the part of
    the text that all waits of one kind share."""

    def __init__(self, kind, details='', text=None, holder=0):
        self.kind = kind
        self.text = text or kind + details
        self.holder = holder  # the frame of the task that has locked the mutex, or 0


class Task:
    """A root: a top-level task, a child of a combinator, or a child of a scope or supervisor."""

    def __init__(self, frame):
        self.frame = frame
        self.name = ''
        self.spawned_at = None
        self.level = 0
        self.parent = None  # the task that waits for it, if known
        self.frames = [frame]  # of the chain of awaits, the root's first
        self.wait = Wait('unknown')
        self.number = 0


class Loop:
    """A context, or the part of a runtime that one thread runs."""

    def __init__(self, address):
        self.address = address
        self.name = 'io_context'
        self.state = 'idle'
        self.thread = ''
        self.arriving = 0
        self.top_level = 0
        self.tasks = []  # all of them, each before its children
        self.groups = {}  # the address of a scope or supervisor: its number of children, and of those that wait


class Tasks:
    """Reads everything once: `loops`."""

    def __init__(self, debugger):
        self.debugger = debugger
        self.memory = Memory(debugger)
        self.layout = debugger.layout
        self.children = Children(self.memory, self.layout)
        self.classes = {}
        self.symbols = {}
        self.loops = []
        threads = debugger.threads()
        first = self.memory.word(debugger.variable(COIL + '(anonymous namespace)::first_loop'))
        for listed in self.linked(first, self.layout.offset('listed_loop', 'next')):
            loop = Loop(listed - self.layout.offset('event_loop', 'listed_loop'))
            self.read_loop(loop, threads)
            self.loops.append(loop)
        self.loops.reverse()  # the oldest first
        by_frame = {task.frame: task for loop in self.loops for task in loop.tasks}
        for number, task in enumerate(task for loop in self.loops for task in loop.tasks):
            task.number = number
            self.add_holder(task, by_frame.get(task.wait.holder))

    def linked(self, first, next_at):
        """The members of a list. The program may have been stopped while it changed the list."""
        seen = set()
        while first != 0 and first not in seen:
            seen.add(first)
            yield first
            first = self.memory.word(first + next_at)

    def field(self, address, type_name, member, code='Q'):
        return self.memory.number(address + self.layout.offset(type_name, member), code)

    @staticmethod
    def add_holder(task, holder):
        """Adds the task that has locked the mutex that `task` waits for."""
        if holder is task:
            task.wait.text += ', locked by the task that waits'
        elif holder is not None:
            task.wait.text += ', locked by task 0x%x' % holder.frame + (" '%s'" % holder.name if holder.name else '')

    # ---- a loop

    def read_loop(self, loop, threads):
        at = loop.address
        options = self.field(at, 'event_loop', 'options_')
        name_at = self.layout.search('coil::io_context_options', 'name')[0]
        loop.name = self.memory.string(options + name_at) or loop.name
        loop.state = names.name_in(USES, self.field(at, 'event_loop', 'use_', 'B'), '?')
        loop.thread = ', '.join(text for text, runs in threads if runs == at)
        loop.arriving = (self.field(at, 'event_loop', 'sent_tasks_') -
                         self.field(at, 'event_loop', 'tasks_.received_')) & (2**64 - 1)
        self.current = loop
        is_simulated = self.field(at, 'event_loop', 'driver_.driver_') != 0
        self.now_ns = None if is_simulated else self.debugger.clock_ns()
        self.left = ''
        if self.now_ns is None:  # use the time that the context has read last
            self.now_ns = self.field(at, 'event_loop', 'timers_.current_') << TICK_SHIFT
            self.left = " at the context's last turn"
        self.ready = self.ready_frames(at)
        self.away = {self.field(node, 'away_node', 'root_') for node in self.linked(
            self.field(at, 'event_loop', 'tasks_.away_'), self.layout.offset('away_node', 'next'))}
        groups = list(self.linked(self.field(at, 'event_loop', 'tasks_.nurseries_'),
                                  self.layout.offset('listed_children', 'next')))
        groups = [group for group in groups if self.class_of(group) != 'group_cursor']
        self.joins = {}
        for group in groups:
            joiner = self.field(group, 'nursery', 'joiner_')
            if joiner != 0:
                self.joins[self.field(joiner, 'nursery::joiner', 'awaiting_')] = group
        next_task = self.layout.offset('promise_base', 'next_task')
        for member in ('tasks_.listed_.first_', 'tasks_.held_back_.first_'):
            roots = list(self.linked(self.field(at, 'event_loop', member), next_task))
            for root in roots[:-1]:  # the last one is the end of the list
                if self.is_cursor(root):
                    continue
                loop.top_level += 1
                self.add(root, 0)
        for group in groups:
            self.read_group(group)

    def is_cursor(self, root):
        """Whether this is not a task but the cursor of a dump that is being taken."""
        try:
            return self.class_of(self.children.owner(root)) == 'task_cursor'
        except Unreadable:
            return False

    def ready_frames(self, loop):
        head = self.field(loop, 'event_loop', 'ready_.head_', 'I')
        count = (self.field(loop, 'event_loop', 'ready_.tail_', 'I') - head) & 0xffffffff
        ring = loop + self.layout.offset('event_loop', 'ready_.ring_')
        frames = {self.memory.word(ring + 8 * ((head + i) % READY_CAPACITY)) for i in range(min(count, READY_CAPACITY))}
        # Behind the ring are nodes: in an array, and in a list.
        places, first, begin, end = (self.field(loop, 'event_loop', 'ready_.indexed_.' + member)
                                     for member in ('places_', 'first_', 'begin_', 'end_'))
        nodes = [self.memory.word(places + 8 * (place - first)) for place in range(begin, end)] if places else []
        nodes += self.linked(self.field(loop, 'event_loop', 'ready_.overflow_.head_'),
                             self.layout.offset('queue_node', 'next'))
        coroutine = self.layout.offset('queue_node', 'coroutine')
        frames.update(self.memory.word(node + coroutine) for node in nodes if node)
        return frames

    def read_group(self, group):
        try:
            roots = self.children.of_nursery(group)
        except Unreadable:
            return
        self.current.groups[group] = (len(roots), self.field(group, 'nursery', 'queued_'))
        joins = next((leaf - FRAME_HEADER for leaf, joined in self.joins.items() if joined == group), None)
        parent = next((task for task in self.current.tasks if joins in task.frames), None) if joins else None
        for root in roots:
            self.add(root, 1, parent)

    # ---- a task

    def add(self, root, level, parent=None):
        """Adds a root, and the children of the await at the end of its chain."""
        task = Task(root - FRAME_HEADER)
        task.level, task.parent = level, parent
        self.current.tasks.append(task)
        try:
            self.read_owner(task, self.children.owner(root))
            leaf = root
            below = self.field(leaf, 'promise_base', 'below_')
            while below != 0 and below & 1 == 0 and len(task.frames) < LONGEST_CHAIN:
                leaf = below
                task.frames.append(leaf - FRAME_HEADER)
                below = self.field(leaf, 'promise_base', 'below_')
            nested = []
            if below & 1 == 1:
                nested = [one for one in self.children.of_await(below - 1, leaf) if not self.has_ended(one)]
            task.wait = self.wait_of(leaf, root, below & 1 == 1, len(nested))
        except Unreadable as error:
            task.wait = Wait('unreadable', ': %s' % error)
            return
        for child in nested if level < MOST_LEVELS else []:
            self.add(child, level + 1, task)

    def has_ended(self, root):
        """Whether a child that is not a task has ended: its awaiter is complete, and it is not in the ready queue."""
        frame = root - FRAME_HEADER
        return self.children.is_embedded(root) and frame not in self.ready and self.leaf(frame).kind == 'ready'

    def read_owner(self, task, owner):
        kind = self.class_of(owner)
        if kind.startswith('child_state<'):
            name = self.field(owner - self.layout.offset('child_state_base', 'task_owner'), 'child_state_base', 'label_')
            if name != 0:
                self.read_name(task, name)
        elif kind.startswith('named_'):
            try:
                name = owner + self.layout.offset(kind, 'name_')
            except Unreadable:  # a type that the debugger spells in another way
                return
            self.read_name(task, name)

    def read_name(self, task, name):
        task.name = self.memory.string(name + self.layout.offset('task_name', 'text'))
        task.spawned_at = self.location(self.memory.word(name + self.layout.offset('task_name', 'spawned_at')))

    def location(self, implementation):
        """A std::source_location, whose layout is the same with all compilers: file, function, line."""
        file, _, line = struct.unpack('<QQI', self.memory.read(implementation, 20))
        return self.memory.text(file), line

    def class_of(self, address):
        """The class of a polymorphic object of coil, without the namespace."""
        table = self.memory.word(address)
        if table not in self.classes:
            symbol = self.symbol(table)
            prefix = 'vtable for ' + COIL
            self.classes[table] = symbol[len(prefix):] if symbol.startswith(prefix) else ''
        return self.classes[table]

    def symbol(self, address):
        if address not in self.symbols:
            self.symbols[address] = self.debugger.symbol(address)
        return self.symbols[address]

    # ---- a coroutine

    def function(self, frame):
        return names.coroutine(self.symbol(self.memory.word(frame))) or '?'

    def is_internal(self, frame):
        return names.INTERNAL in self.symbol(self.memory.word(frame))

    def line(self, frame):
        """Where it is suspended, or else where it is defined."""
        resume = self.memory.word(frame)
        index = self.suspension(frame, resume)
        if index is not None:
            label = '__coro_resume_%d' % index
            destroy = self.memory.word(frame + 8)  # the optimizer may leave the label here only
            found = self.debugger.label_line(resume, label) or self.debugger.label_line(destroy, label)
            if found:
                return found
        return self.debugger.line(resume)

    def suspension(self, frame, resume):
        kind = self.debugger.frame_type(resume)
        if kind is None:
            return None
        for name, offset, _, type_ in self.debugger.fields(kind):
            if name in ('__coro_index', '_Coro_resume_index'):
                size = self.debugger.size(type_)
                return int.from_bytes(self.memory.read(frame + offset, size), 'little')
        return None

    # ---- what it waits for

    def wait_of(self, leaf, root, is_nested, children):
        frame = leaf - FRAME_HEADER
        if frame in self.ready:
            return Wait('ready to run')
        if leaf in self.joins:
            return Wait('the children of the scope or supervisor', ' at 0x%x' % self.joins[leaf])
        if is_nested:
            return Wait('children', text='%d %s' % (children, 'child' if children == 1 else 'children'))
        wait = self.leaf(frame)
        if wait.kind == 'unknown':
            return Wait('work on another thread' if root in self.away else
                        'running, or suspended for an unknown reason')
        return Wait('ready to run') if wait.kind == 'ready' else wait

    def leaf(self, frame):
        """Finds the awaiter of a coroutine: nothing points to it, but it holds two known words."""
        word_at = self.layout.offset('awaiter_base', 'word_')
        coroutine_at = self.layout.offset('awaiter_base', 'coroutine')
        pattern = struct.pack('<Q', frame)
        data, size = b'', FIRST_CHUNK
        while len(data) < MOST_BYTES:
            begin = max(len(data) - word_at, 0)
            more = self.memory.up_to(frame + len(data), size)
            data += more
            at = data.find(pattern, begin)
            while at >= 0:
                awaiter = at - coroutine_at
                if awaiter >= 0 and awaiter % 8 == 0 and awaiter + word_at + 8 <= len(data):
                    word = struct.unpack_from('<Q', data, awaiter + word_at)[0]
                    if word & ~FLAGS_MASK == self.current.address and word & PHASE_MASK in (PENDING, DONE):
                        return self.describe(frame + awaiter, word)
                at = data.find(pattern, at + 1)
            if len(more) < size:
                break
            size = CHUNK
        return Wait('unknown')

    def describe(self, awaiter, word):
        if word & PHASE_MASK != PENDING:
            return Wait('ready')
        kind = (word >> KIND_SHIFT) & KIND_MASK
        if kind == OPERATION:
            op = awaiter - self.layout.offset('io_op', 'awaiter_base')
            is_timed = self.field(op, 'io_op', 'state_.traits_', 'B') & TIMED
            times = self.times(op - self.layout.offset('timed_op', 'io_op'), 'timed_op') if is_timed else ''
            return self.operation(op, times)
        if kind == STREAM:
            stream = awaiter - self.layout.offset('multishot_awaiter', 'awaiter_base')
            source = self.field(stream, 'multishot_awaiter', 'source_')
            return self.operation(source + self.layout.offset('multishot_source', 'io_op'),
                                  self.times(stream, 'multishot_awaiter'), 'stream of ')
        if kind == SLEEP:
            sleep = awaiter - self.layout.offset('sleep_awaiter', 'awaiter_base')
            tick = self.field(sleep, 'sleep_awaiter', 'word', 'q') >> 1
            return Wait('sleep', ', %.3f s left%s' % (((tick << TICK_SHIFT) - self.now_ns) / 1e9, self.left))
        if kind == SYNC:
            at = awaiter - self.layout.offset('described_wait', 'awaiter_base')
            what = names.name_in(names.OBJECTS, self.field(at, 'described_wait', 'object_', 'B'), names.OBJECTS[0])
            pointer = self.field(at, 'described_wait', 'object_at_', 'B')
            if pointer == 0:
                return Wait(what)
            address = self.memory.word(at + 8 * pointer)
            if what in ('channel::recv', 'channel::send'):
                return Wait(what, ' at 0x%x%s' % (address, self.fill(address)))
            # lock_holder, its first member
            root = self.memory.word(address) if what in ('mutex', 'shared_mutex') else 0
            if root == LOCKED_SHARED:
                return Wait(what, ' at 0x%x, locked shared' % address)
            return Wait(what, ' at 0x%x' % address, holder=root - FRAME_HEADER if root != 0 else 0)
        return Wait({JOIN: 'the end of a spawned task', CHILD: 'a child of a scope or supervisor'}.get(kind, 'unknown'))

    def fill(self, channel):
        """How many elements are in the buffer of a channel."""
        def number(member, code='Q'):
            return self.field(channel, 'described_channel', member, code)
        if number('unbounded_', 'B'):
            return ', unbounded'
        capacity, closed = number('ring_.capacity_'), number('ring_.closed_')
        return ', %d of %d' % (names.fill(capacity, closed, number('ring_.head_'), number('ring_.tail_')), capacity)

    def times(self, awaiter, kind):
        """How long the wait has lasted, and its limit, according to its timer."""
        timer = awaiter + self.layout.offset(kind, 'timer_node')
        if self.field(timer, 'timer_node', 'link') == 0:
            return ''
        deadline = (self.field(timer, 'timer_node', 'word', 'q') >> 1) << TICK_SHIFT
        span, text = self.field(awaiter, kind, 'ns_', 'q'), ''
        if self.field(awaiter, kind, 'origin_', 'B') == FROM_NOW and span < LONGEST_SPAN:
            text = ', for %.3f s' % max((self.now_ns - deadline + span) / 1e9, 0)
        return text + ', limit in %.3f s%s' % ((deadline - self.now_ns) / 1e9, self.left)

    def kernel_limit(self, entry):
        """The limit of a call in a chain; the kernel starts it with the call."""
        seconds, ns = struct.unpack('<qq', self.memory.read(self.field(entry, 'sqe_slot', 'request.addr'), 16))
        if self.field(entry, 'sqe_slot', 'request.timeout_flags', 'I') & TIMEOUT_ABS:
            return ', limit in %.3f s%s' % (seconds + (ns - self.now_ns) / 1e9, self.left)
        return ', limit of %d.%03d s' % (seconds, ns // 1000000)

    def following(self, entry):
        """The next entry of a chain, or 0."""
        return self.field(entry, 'sqe_slot', 'request.pad2') & ~MARKS

    def call(self, entry):
        return names.name_in(names.CALLS, self.field(entry, 'sqe_slot', 'request.opcode', 'B'), 'unknown')

    def operation(self, op, times, prefix=''):
        entry = self.field(op, 'io_op', 'first_')
        if entry == 0:
            return Wait(prefix + 'operation')
        following = self.following(entry)
        while following != 0 and self.field(entry, 'sqe_slot', 'request.user_data') & COMPLETED:
            entry, following = following, self.following(following)
        call = self.call(entry)
        fd = self.field(entry, 'sqe_slot', 'request.fd', 'i')
        flags = self.field(entry, 'sqe_slot', 'request.flags', 'B')
        details = '' if fd < 0 else ' %sfd %d' % ('direct ' if flags & FIXED_FILE else '', fd)
        if following != 0 and self.call(following) == 'link_timeout' and \
                self.field(following, 'sqe_slot', 'request.pad2') & SPECIAL:
            times += self.kernel_limit(following)
        if self.field(op, 'io_op', 'state_.phase_', 'B') == QUEUED:
            details += ', waits to be submitted'
        return Wait(prefix + call, details + times)
