"""The children of combinators, scopes and supervisors.

coil enumerates the children of an await with virtual functions. A debugger must not call them, and cannot
for a core file. So this module searches the memory for the children: each child, and no other object, holds
the addresses of the await's child_group and of its stop source."""

import struct

from .memory import Unreadable

FRAME_HEADER = 16
OWNER = 1  # promise_base::is_owner
KIND_MASK = 7  # promise_base::kind_mask
GROUP_WITHIN = 256  # where in an await its child_group begins
MOST_BYTES = 20 * 1024
MOST_CHILDREN = 1 << 20


class Children:
    def __init__(self, memory, layout):
        self.memory = memory
        self.layout = layout
        self.embedded = set()

    def owner(self, root):
        """The task_owner of a root."""
        origin = self.memory.word(root + self.layout.offset('promise_base', 'origin_'))
        if origin & KIND_MASK != OWNER:
            raise Unreadable('no root')
        return origin & ~KIND_MASK

    def is_owned_by(self, root, owner):
        try:
            return self.owner(root) == owner
        except Unreadable:
            return False

    def is_embedded(self, root):
        """Whether a child is not a task: its promise is then a part of the child object."""
        return root in self.embedded

    # ---- of scopes and supervisors

    def of_nursery(self, group):
        """The roots of the children that run."""
        base = self.layout.offset('nursery', 'listed_children')
        child = self.memory.word(group - base + self.layout.offset('nursery', 'children_'))
        next_at = self.layout.offset('child_state_base', 'list_node<')
        coroutine_at = self.layout.size('child_state_base')  # the first member of child_state<T>
        roots = []
        owners_at = self.layout.offset('child_state_base', 'owners_')
        while child != 0 and len(roots) < MOST_CHILDREN:
            if self.memory.read(child + owners_at, 1) != b'\0':  # otherwise the cursor of a dump that is being taken
                roots.append(self.memory.word(child + coroutine_at) + FRAME_HEADER)
            child = self.memory.word(child + next_at)
        return roots

    # ---- of combinators

    def of_await(self, await_, awaiting):
        """The roots of the children of the nested_await at `await_`, which the task `awaiting` awaits."""
        group = self.find_group(await_, awaiting)
        if group is None:
            return []
        found = self.search(self.memory.up_to(await_, MOST_BYTES), await_, group)
        return found or self.of_array(await_, group)

    def find_group(self, await_, awaiting):
        awaiting_at = self.layout.offset('child_group', 'awaiting_')
        waiter_at = self.layout.offset('child_group', 'waiter_')
        data = self.memory.up_to(await_, GROUP_WITHIN)
        for at in range(0, len(data) - 7, 8):
            if struct.unpack_from('<Q', data, at)[0] != awaiting:
                continue
            group = await_ + at - awaiting_at
            if self.memory.word(group + waiter_at) == awaiting - FRAME_HEADER:
                return group
        return None

    def search(self, data, begin, group, limit=MOST_CHILDREN):
        """The roots of the children of a group that are in `data`, a copy of the memory at `begin`."""
        group_at = self.layout.offset('child_base', 'group_')
        token_at = self.layout.offset('child_base', 'token')
        source = struct.pack('<Q', group + self.layout.offset('child_group', 'stop_'))
        pattern = struct.pack('<Q', group)
        roots = []
        at = data.find(pattern)
        while at >= 0 and len(roots) < limit:
            child = at - group_at
            if child >= 0 and child % 8 == 0 and data[child + token_at:child + token_at + 8] == source:
                root = self.root_of(begin + child)
                if root is not None:
                    roots.append(root)
            at = data.find(pattern, at + 1)
        return roots

    def root_of(self, child):
        """The root of a child: the promise of its task or, if the child is not a task, of its own. None if it has not begun
        or has ended."""
        after = child + self.layout.size('child_base')
        if self.is_owned_by(after + FRAME_HEADER, child):
            self.embedded.add(after + FRAME_HEADER)
            return after + FRAME_HEADER
        try:
            coroutine = self.memory.word(after + 8)  # after the reference to the task
        except Unreadable:
            return None
        return coroutine + FRAME_HEADER if self.is_owned_by(coroutine + FRAME_HEADER, child) else None

    def of_array(self, await_, group):
        """The children of a range of awaitables are in memory of their own: begin, size, size."""
        group_at = self.layout.offset('child_base', 'group_')
        behind = group + self.layout.size('child_group')
        for at in (behind + 8 * i for i in range(8)):
            try:
                begin, size, in_use = struct.unpack('<QQQ', self.memory.read(at, 24))
                if 0 < in_use <= size < MOST_CHILDREN and self.memory.word(begin + group_at) == group:
                    return self.search(self.memory.up_to(begin, self.stride(begin, group) * in_use), begin, group)
            except Unreadable:
                continue
        return []

    def stride(self, begin, group):
        """The distance of two children of an array: the second has the same class and group."""
        group_at = self.layout.offset('child_base', 'group_')
        expected = (self.memory.word(begin), group)
        data = self.memory.up_to(begin, MOST_BYTES)
        for at in range(8, len(data) - group_at - 7, 8):
            if (struct.unpack_from('<Q', data, at)[0], struct.unpack_from('<Q', data, at + group_at)[0]) == expected:
                return at
        return len(data)
