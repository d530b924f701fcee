"""CPU time, memory and system calls of a process, from the kernel."""

import ctypes
import os
import re
import struct
import subprocess
import tempfile
import time

from .process import Failure

_libc = ctypes.CDLL(None, use_errno=True)

# The system call number of perf_event_open(2) by machine, and its arguments.
_PERF_EVENT_OPEN = {"x86_64": 298, "aarch64": 241, "riscv64": 241}
_TYPE_TRACEPOINT = 2
_FLAG_INHERIT = 1 << 1
_ATTR_SIZE = 112


def cpu_ns(pid):
    """CPU time of all threads of a process, kernel workers of its ring included, in nanoseconds."""
    return time.clock_gettime_ns((~pid << 3) | 2) # as clock_getcpuclockid(3) computes it


def private_bytes(pid):
    """Resident memory that belongs to this process alone."""
    total = 0
    with open(f"/proc/{pid}/smaps_rollup") as lines:
        for line in lines:
            if line.startswith("Private_"):
                total += int(line.split()[1]) * 1024
    return total


def _sys_enter_id():
    """The id of the tracepoint raw_syscalls:sys_enter. Mounts tracefs temporarily if necessary."""
    name = "events/raw_syscalls/sys_enter/id"
    for root in ("/sys/kernel/tracing", "/sys/kernel/debug/tracing"):
        try:
            with open(f"{root}/{name}") as file:
                return int(file.read())
        except OSError:
            continue
    with tempfile.TemporaryDirectory() as root:
        mounted = subprocess.run(["mount", "-t", "tracefs", "none", root], capture_output=True)
        if mounted.returncode != 0:
            raise Failure("tracefs is not mounted, and only root may mount it")
        try:
            with open(f"{root}/{name}") as file:
                return int(file.read())
        except OSError as error:
            raise Failure(f"no tracepoint for system calls: {error}") from None
        finally:
            subprocess.run(["umount", root], capture_output=True)


class SystemCalls:
    """Counts the system calls of a process while open, with the tracepoint raw_syscalls:sys_enter.

    The kernel counts without stopping the process. Counting makes each call slightly more expensive, so the timed rounds
    run without it. Raises Failure if the kernel does not permit it.
    """

    def __init__(self, pid):
        number = _PERF_EVENT_OPEN.get(os.uname().machine)
        if number is None:
            raise Failure(f"perf_event_open is not known for {os.uname().machine}")
        attr = bytearray(_ATTR_SIZE)
        struct.pack_into("=IIQ", attr, 0, _TYPE_TRACEPOINT, _ATTR_SIZE, _sys_enter_id())
        struct.pack_into("=Q", attr, 40, _FLAG_INHERIT)
        raw = (ctypes.c_char * _ATTR_SIZE).from_buffer(attr)
        self.files = []
        for thread in os.listdir(f"/proc/{pid}/task"):
            fd = _libc.syscall(number, raw, int(thread), -1, ctypes.c_long(-1), ctypes.c_ulong(0))
            if fd < 0:
                error = ctypes.get_errno()
                self.close()
                raise Failure(f"perf_event_open: {os.strerror(error)} (kernel.perf_event_paranoid)")
            self.files.append(fd)

    def read(self):
        return sum(struct.unpack("=Q", os.read(fd, 8))[0] for fd in self.files)

    def close(self):
        for fd in self.files:
            os.close(fd)
        self.files = []

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()


def machine():
    """One line that describes the machine."""
    model = "unknown CPU"
    try:
        with open("/proc/cpuinfo") as file:
            found = re.search(r"^model name\s*:\s*(.+)$", file.read(), re.M)
            model = found.group(1) if found else model
    except OSError:
        pass
    return f"{model}, {len(os.sched_getaffinity(0))} CPUs, Linux {os.uname().release}"
