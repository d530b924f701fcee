"""gdb commands and pretty printers for programs that use coil: `help coil`.

    source /usr/share/coil/coil_gdb.py
"""

import os
import sys
import time

import gdb
import gdb.printing

sys.path.insert(0, os.path.dirname(os.path.realpath(__file__)))

from coil_debug import commands, printers  # noqa: E402
from coil_debug.memory import COIL, Layout, Memory, Unreadable  # noqa: E402


class Gdb:
    """The debugger interface that coil_debug.memory describes."""

    def __init__(self):
        self.types = {}
        self.frame_types = {}
        self.layout = Layout(self)

    def read(self, address, size):
        try:
            return bytes(gdb.selected_inferior().read_memory(address, size))
        except gdb.MemoryError as error:
            raise Unreadable(str(error)) from error

    def type(self, name):
        if not isinstance(name, str):
            return name.strip_typedefs()
        if name not in self.types:
            try:
                self.types[name] = gdb.lookup_type(name).strip_typedefs()
            except gdb.error as error:
                raise Unreadable('there is no debug information of ' + name) from error
        return self.types[name]

    def fields(self, kind):
        return [(field.name or '', field.bitpos // 8, field.is_base_class, field.type)
                for field in self.type(kind).fields() if hasattr(field, 'bitpos')]

    def size(self, kind):
        return self.type(kind).sizeof

    def variable(self, name):
        try:
            return int(gdb.parse_and_eval("(unsigned long)&'%s'" % name))
        except gdb.error as error:
            raise Unreadable('there is no ' + name) from error

    def symbol(self, address):
        text = gdb.execute('info symbol 0x%x' % address, to_string=True)
        if text.startswith('No symbol matches'):
            return ''
        text = text.rsplit(' in section ', 1)[0]
        name, plus, offset = text.rpartition(' + ')
        return name if plus and offset.isdigit() else text

    def line(self, address):
        found = gdb.find_pc_line(address)
        return (found.symtab.filename, found.line) if found.symtab is not None and found.line else None

    def clock_ns(self):
        """CLOCK_MONOTONIC where the program runs, or None: it is a core file, or on another machine."""
        connection = getattr(gdb.selected_inferior(), 'connection', None)  # since gdb 11
        is_here = connection is not None and connection.type == 'native'
        return time.clock_gettime_ns(time.CLOCK_MONOTONIC) if is_here else None

    def threads(self):
        selected, frame = gdb.selected_thread(), None
        if selected is not None:
            frame = gdb.selected_frame()
        result = []
        for thread in gdb.selected_inferior().threads():
            if (thread.name or '').startswith(KERNEL_WORKER):
                continue
            thread.switch()
            result.append((describe(thread), self.current_loop()))
        if selected is not None:
            selected.switch()
            frame.select()
        return result

    def current_loop(self):
        """The loop of the selected thread. Thread-local variables may be out of reach in a core file."""
        try:
            return int(gdb.parse_and_eval("(unsigned long)'%scurrent_loop'" % COIL))
        except gdb.error:
            pass
        frame = gdb.newest_frame()
        while frame is not None:
            if (frame.name() or '').startswith(COIL + 'event_loop::'):
                try:
                    return int(frame.read_var('this'))
                except (gdb.error, ValueError):
                    pass
            frame = frame.older()
        return 0

    def frame_type(self, resume):
        if resume not in self.frame_types:
            self.frame_types[resume] = self.find_frame_type(resume)
        return self.frame_types[resume]

    def find_frame_type(self, resume):
        """The type of the frame: that of the variable __coro_frame (clang) or frame_ptr (GCC) in the function that resumes."""
        for symbol in symbols_of(resume):
            if symbol.name == '__coro_frame':
                return symbol.type.strip_typedefs()
            if symbol.name == 'frame_ptr' and symbol.type.code == gdb.TYPE_CODE_PTR:
                return symbol.type.target().strip_typedefs()
        return None

    def label_line(self, function, name):
        for symbol in symbols_of(function):
            if symbol.name == name:
                return symbol.symtab.filename, symbol.line
        return None

    def show(self, kind, address):
        try:
            value = gdb.Value(address).cast(gdb.lookup_type('unsigned long')).cast(kind.pointer()).dereference()
            return value.format_string(max_elements=200, max_depth=2)
        except (gdb.error, TypeError) as error:
            return '<%s>' % error


def symbols_of(address):
    """The variables and labels of the function at this address, and of its scopes."""
    block = gdb.block_for_pc(address)
    while block is not None and block.function is None:
        block = block.superblock
    if block is None:
        return
    yield from block
    pc, end = block.start, block.end
    seen = set()
    while pc < end:  # gdb has no function that returns the inner blocks
        inner = gdb.block_for_pc(pc)
        if inner is not None and inner.start not in seen:
            seen.add(inner.start)
            yield from inner
        pc += 1 if inner is None else max(1, min(inner.end, end) - pc)


# Of io_uring. Its registers are those of the thread that it works for, and so are its thread-local variables.
KERNEL_WORKER = 'iou-'


def describe(thread):
    process, lwp, _ = thread.ptid
    return 'thread %d (LWP %d%s)' % (thread.num, lwp or process, ', "%s"' % thread.name if thread.name else '')


class Value:
    """The value interface that coil_debug.printers describes."""

    debugger = None

    def __init__(self, value):
        self.value = value

    def number(self, path):
        value = self.value
        for name in path.split('.'):
            value = value[name]
        while value.type.strip_typedefs().code == gdb.TYPE_CODE_STRUCT:
            value = value[next(field for field in value.type.strip_typedefs().fields() if hasattr(field, 'bitpos'))]
        return int(value)

    def memory(self):
        return Memory(self.debugger)


class Printer:
    def __init__(self, value, summary):
        self.value = value
        self.summary = summary

    def to_string(self):
        try:
            return self.summary(Value(self.value))
        except (gdb.error, Unreadable, IndexError) as error:
            return '<%s>' % error


def add_printers():
    collection = gdb.printing.RegexpCollectionPrettyPrinter('coil')
    for name, pattern, summary in printers.SUMMARIES:
        collection.add_printer(name, pattern, lambda value, of=summary: Printer(value, of))
    gdb.printing.register_pretty_printer(None, collection, replace=True)


class Coil(gdb.Command):
    __doc__ = 'Tasks of a program that uses coil.\n\n' + commands.HELP

    def __init__(self):
        super().__init__('coil', gdb.COMMAND_STATUS, gdb.COMPLETE_NONE)
        self.debugger = Value.debugger = Gdb()

    def invoke(self, argument, from_tty):
        del from_tty
        try:
            for line in commands.run(self.debugger, argument):
                print(line)
        except commands.Misuse as error:
            raise gdb.GdbError(str(error)) from error


Coil()
add_printers()
