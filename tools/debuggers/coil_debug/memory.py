"""The memory of the program, and the layout of its types.

A debugger provides both as an object with these functions. They raise Unreadable for memory, types and symbols
that it does not have.

    read(address, size)     -> bytes, at least one
    fields(type)            -> [(name, offset, is_base, type)] of a class, without static members; the
                               name of an anonymous union is empty. A type is a name or a `type` of such a result.
    size(type)              -> bytes
    variable(name)          -> address of a variable of coil
    symbol(address)         -> demangled name of the symbol there, or ''
    line(address)           -> (file, line) of a machine instruction, or None
    threads()               -> [(description, address of the loop that it runs, or 0)]
    frame_type(resume)      -> type of a coroutine's frame, or None
    label_line(address, l)  -> (file, line) of a label of the function there, or None
    show(type, address)     -> text of the value there
"""

import struct

COIL = 'coil::detail::'
PAGE = 4096


class Unreadable(Exception):
    """There is no such memory, type or symbol."""


class Memory:
    """Reads the memory by pages, each once. Used for one command, because the program may run between two commands."""

    def __init__(self, debugger):
        self.debugger = debugger
        self.pages = {}

    def page(self, number):
        if number not in self.pages:
            try:
                self.pages[number] = self.debugger.read(number * PAGE, PAGE)
            except Unreadable:
                self.pages[number] = b''
        return self.pages[number]

    def up_to(self, address, size):
        """At most `size` bytes from an address; fewer if those that follow cannot be read."""
        parts = []
        while size > 0:
            number, begin = divmod(address, PAGE)
            part = self.page(number)[begin:begin + size] or self.rest_of_page(address, min(size, PAGE - begin))
            if not part:
                break
            parts.append(part)
            address += len(part)
            size -= len(part)
        return b''.join(parts)

    def rest_of_page(self, address, size):
        """A core file may lack constants. The debugger reads those from the program's file, section by section."""
        try:
            return self.debugger.read(address, min(size, 64))
        except Unreadable:
            return b''

    def read(self, address, size):
        data = self.up_to(address, size)
        if len(data) < size:
            raise Unreadable('no memory at 0x%x' % address)
        return data

    def number(self, address, code):
        return struct.unpack('<' + code, self.read(address, struct.calcsize(code)))[0]

    def word(self, address):
        return self.number(address, 'Q')

    def text(self, address, limit=4096):
        """A string that ends with a zero."""
        return self.up_to(address, limit).split(b'\0', 1)[0].decode(errors='replace')

    def string(self, address, limit=4096):
        """A std::string of libstdc++."""
        begin, size = self.word(address), self.word(address + 8)
        if size > limit:
            raise Unreadable('no string at 0x%x' % address)
        return self.read(begin, size).decode(errors='replace') if size > 0 else ''


class Layout:
    """The offsets of members, which are looked up once."""

    def __init__(self, debugger):
        self.debugger = debugger
        self.known = {}

    def size(self, name):
        key = (name, None)
        if key not in self.known:
            self.known[key] = self.debugger.size(COIL + name)
        return self.known[key]

    def offset(self, name, member):
        """The offset of a member of a class or of its bases, or of a base: offset('event_loop', 'tasks_.away_')."""
        key = (name, member)
        if key not in self.known:
            at, of = 0, COIL + name
            for part in member.split('.'):
                found = self.search(of, part)
                if found is None:
                    raise Unreadable('%s has no %s' % (COIL + name, member))
                at, of = at + found[0], found[1]
            self.known[key] = at
        return self.known[key]

    def search(self, of, member):
        """Breadth first, as in C++: a class's own members hide those of its bases."""
        within = [(0, of)]
        while within:
            nested = []
            for begin, one in within:
                for name, offset, is_base, type_ in self.debugger.fields(one):
                    if name == member or (is_base and matches_base(name, member)):
                        return begin + offset, type_
                    if is_base or not name:
                        nested.append((begin + offset, type_))
            within = nested
        return None


def matches_base(name, wanted):
    """Whether `name` is `wanted`, or an instance of it if that is a template such as `list_node<`."""
    plain = name[len(COIL):] if name.startswith(COIL) else name
    return plain == wanted or (wanted.endswith('<') and plain.startswith(wanted))
