"""lldb commands and summaries for programs that use coil: `help coil`.

    command script import /usr/share/coil/coil_lldb.py
"""

import os
import sys
import time

import lldb

sys.path.insert(0, os.path.dirname(os.path.realpath(__file__)))

from coil_debug import commands, printers  # noqa: E402
from coil_debug.memory import COIL, Layout, Memory, Unreadable  # noqa: E402


class Lldb:
    """The debugger interface that coil_debug.memory describes."""

    def __init__(self, target):
        self.target = target
        self.process = target.GetProcess()
        self.types = {}
        self.members = {}
        self.layout = Layout(self)

    def read(self, address, size):
        error = lldb.SBError()
        data = self.process.ReadMemory(address, size, error)
        if error.Fail():  # a core file may lack constants, which the program's file has
            data = self.target.ReadMemory(self.at(address), size, lldb.SBError())
        if not data:
            raise Unreadable('no memory at 0x%x' % address)
        return data

    def type(self, name):
        if not isinstance(name, str):
            return name.GetCanonicalType()
        if name not in self.types:
            found = [kind for kind in self.target.FindTypes(name) if kind.IsTypeComplete() and kind.GetByteSize() > 0]
            if not found:
                raise Unreadable('there is no debug information of ' + name)
            self.types[name] = found[0].GetCanonicalType()
        return self.types[name]

    def fields(self, kind):
        kind = self.type(kind)
        bases = [kind.GetDirectBaseClassAtIndex(i) for i in range(kind.GetNumberOfDirectBaseClasses())]
        fields = [kind.GetFieldAtIndex(i) for i in range(kind.GetNumberOfFields())]
        return ([(base.GetType().GetCanonicalType().GetName(), base.GetOffsetInBytes(), True, base.GetType())
                 for base in bases] +
                [(field.GetName() or '', field.GetOffsetInBytes(), False, field.GetType()) for field in fields])

    def size(self, kind):
        return self.type(kind).GetByteSize()

    def variable(self, name):
        address = self.target.FindFirstGlobalVariable(name).GetLoadAddress()
        if address == lldb.LLDB_INVALID_ADDRESS:
            raise Unreadable('there is no ' + name)
        return address

    def at(self, address):
        return lldb.SBAddress(address, self.target)

    def symbol(self, address):
        return self.at(address).GetSymbol().GetName() or ''

    def line(self, address):
        entry = self.at(address).GetLineEntry()
        return (str(entry.GetFileSpec()), entry.GetLine()) if entry.IsValid() else None

    def clock_ns(self):
        """CLOCK_MONOTONIC where the program runs, or None: it is a core file, or on another machine."""
        is_here = self.process.GetPluginName() != 'elf-core' and self.target.GetPlatform().GetName() == 'host'
        return time.clock_gettime_ns(time.CLOCK_MONOTONIC) if is_here else None

    def threads(self):
        return [(describe(thread), current_loop(thread)) for thread in self.process]

    def frame_type(self, resume):
        """The type of the frame: that of the variable __coro_frame (clang) or frame_ptr (GCC) in the function that resumes."""
        if resume not in self.members:
            function = self.at(resume).GetFunction()
            self.members[resume] = None
            for value in function.GetBlock().GetVariables(self.target, True, True, True) if function.IsValid() else []:
                if value.GetName() == '__coro_frame':
                    self.members[resume] = value.GetType()
                elif value.GetName() == 'frame_ptr':
                    self.members[resume] = value.GetType().GetPointeeType()
        return self.members[resume]

    def label_line(self, function, name):
        """lldb does not read the labels of a program."""
        del function, name

    def show(self, kind, address):
        value = self.target.CreateValueFromAddress('value', self.at(address), kind)
        return value.GetSummary() or value.GetValue() or ' '.join(
            line.strip() for line in str(value).partition(' = ')[2].split('\n')) or '<unknown>'


def describe(thread):
    name = thread.GetName()
    return 'thread %d (LWP %d%s)' % (thread.GetIndexID(), thread.GetThreadID(), ', "%s"' % name if name else '')


def current_loop(thread):
    """The loop that a thread runs: that of the functions on its stack."""
    for frame in thread:
        if (frame.GetFunctionName() or '').startswith(COIL + 'event_loop::'):
            this = frame.FindVariable('this')
            if this.IsValid() and this.GetError().Success():
                return this.GetValueAsUnsigned()
    return 0


class Coil:
    """The command `coil`."""

    def __init__(self, debugger, internal):
        pass

    def __call__(self, debugger, command, context, result):
        try:
            for line in commands.run(Lldb(context.GetTarget()), command):
                print(line, file=result)
        except commands.Misuse as error:
            result.SetError(str(error))

    def get_short_help(self):
        return 'Tasks of a program that uses coil.'

    def get_long_help(self):
        return commands.HELP


class Value:
    """The value interface that coil_debug.printers describes."""

    def __init__(self, value):
        self.value = value.GetNonSyntheticValue()
        self.debugger = Lldb(value.GetTarget())

    def number(self, path):
        value = self.value
        for name in path.split('.'):
            value = value.GetChildMemberWithName(name).GetNonSyntheticValue()
        while value.GetType().GetCanonicalType().GetTypeClass() in (lldb.eTypeClassClass, lldb.eTypeClassStruct):
            value = value.GetChildAtIndex(0).GetNonSyntheticValue()
        if not value.IsValid():
            raise Unreadable('there is no ' + path)
        return value.GetValueAsSigned()

    def memory(self):
        return Memory(self.debugger)


def summary_of(which):
    def summary(value, internal):
        del internal
        try:
            return which(Value(value))
        except Unreadable as error:
            return '<%s>' % error

    return summary


for _name, _, _summary in printers.SUMMARIES:
    globals()['summary_of_' + _name] = summary_of(_summary)


def __lldb_init_module(debugger, internal):
    debugger.HandleCommand('command script add --overwrite --class %s.Coil coil' % __name__)
    for name, pattern, _ in printers.SUMMARIES:
        debugger.HandleCommand("type summary add --category coil --python-function %s.summary_of_%s --regex '%s'" %
                               (__name__, name, pattern))
    debugger.HandleCommand('type category enable coil')
