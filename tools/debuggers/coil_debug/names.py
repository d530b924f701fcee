"""The names of coroutines and of what they wait for."""

import os
import re

# The values of uring::opcode, with the names of the man pages.
CALLS = """
nop readv writev fsync read_fixed write_fixed poll poll_remove sync_file_range sendmsg recvmsg timeout timeout_remove
accept cancel link_timeout connect fallocate openat close files_update statx read write fadvise madvise send recv
openat2 epoll_ctl splice provide_buffers remove_buffers tee shutdown renameat unlinkat mkdirat symlinkat linkat msg_ring
fsetxattr setxattr fgetxattr getxattr socket socket_option send_zc sendmsg_zc read_multishot waitid futex_wait
futex_wake futex_waitv fixed_fd_install ftruncate bind listen recv_zc epoll_wait readv_fixed writev_fixed pipe
""".split()

# The values of waited_object.
OBJECTS = ['a synchronisation primitive', 'mutex', 'semaphore', 'shared_mutex', 'event', 'latch', 'barrier',
           'wait_group', 'condition_variable', 'channel::recv', 'channel::send', 'broadcast', 'oneshot',
           'shared_writer::write']

INTERNAL = 'coil::detail::callback_coroutine<'  # stands in for a coroutine


def fill(capacity, closed_bit, head, tail):
    """The elements in the ring of a channel: each lap has twice `closed_bit` positions, of which `capacity` are used."""
    def count(position):
        return position // (2 * closed_bit) * capacity + (position & (closed_bit - 1))
    return min(max(count(tail & ~closed_bit) - count(head), 0), capacity)


def name_in(names, number, otherwise):
    return names[number] if number < len(names) else otherwise


def coroutine(symbol):
    """The name of a coroutine without what compilers append to it for the function that resumes it.
    Clang: `f(int) (.resume)`; GCC: `f(f(int)::_Z1fi.Frame*) [clone .actor]`."""
    frame = symbol.rfind('.Frame*)')
    if frame >= 0:
        end = symbol.rfind('::_Z', 0, frame)
        begin = symbol.find('(')
        while 0 <= begin < end:
            if symbol[begin + 1:].startswith(symbol[:begin]):
                return symbol[begin + 1:end]
            begin = symbol.find('(', begin + 1)
    for suffix in (' (.resume)', ' [clone .resume]', ' [clone .actor]', ' (.actor)'):
        if symbol.endswith(suffix):
            return symbol[:-len(suffix)]
    return leading(symbol) or symbol


def leading(symbol):
    """The qualified name with which a mangled symbol begins, followed by `<...>` if template arguments follow it; nothing
    if it begins otherwise. Demanglers do not know the newest manglings, such as those of constrained templates, but these
    come behind the name. As leading_name() in src/core/symbols.cpp."""
    match = re.match(r'_Z(N[rVKRO]*)?', symbol)
    at, parts = match.end() if match else len(symbol), []
    while part := re.match(r'L?([1-9]\d*)', symbol[at:]):
        begin = at + part.end()
        at = begin + int(part[1])
        if at > len(symbol):
            break
        text = symbol[begin:at]
        parts.append('(anonymous namespace)' if text.startswith('_GLOBAL__N') else text)
    return '::'.join(parts) + ('<...>' if parts and symbol[at:at + 1] == 'I' else '')


def place(line):
    """` at server.cpp:41`, or nothing."""
    return ' at %s:%d' % (os.path.basename(line[0]), line[1]) if line else ''
