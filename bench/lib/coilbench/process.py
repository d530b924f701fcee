"""Starts and ends programs: pinned, with a time limit, and never left running."""

import ctypes
import errno
import os
import random
import resource
import signal
import socket
import subprocess
import sys
import tempfile
import time

PR_SET_PDEATHSIG = 1
LOOPBACK = "127.0.0.1"


class Failure(Exception):
    """A measurement failed; the message says why."""


_libc = ctypes.CDLL(None, use_errno=True)
_running = []


def allowed_cpus():
    return os.sched_getaffinity(0)


def choose_cpus(first=None, second=None):
    """(server's CPU, client's CPU): for each that is None, the first free one that this process may use."""
    allowed = sorted(os.sched_getaffinity(0))
    first = allowed[0] if first is None else first
    others = [cpu for cpu in allowed if cpu != first]
    if second is None:
        second = others[0] if others else first
    if first == second:
        print("warning: there is only one CPU; server and client share it, so the figures are not meaningful", file=sys.stderr)
    return first, second


def raise_descriptor_limit():
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    return hard


def require_descriptors(wanted, purpose):
    """Raises the limit of open files; raises Failure if one process may not have as many as are wanted."""
    hard = raise_descriptor_limit()
    if hard < wanted:
        raise Failure(f"{purpose} need {wanted} open files in one process, and its hard limit is {hard} (ulimit -Hn). As root, "
                      f"raise it with `ulimit -n {wanted}` in this shell, or permanently in /etc/security/limits.conf "
                      "(nofile); or measure fewer connections")


def require_ports(wanted, purpose):
    """Raises Failure if there are fewer ephemeral ports than connections to one port of a server."""
    with open("/proc/sys/net/ipv4/ip_local_port_range") as file:
        first, last = (int(number) for number in file.read().split())
    if last - first + 1 < wanted:
        raise Failure(f"{purpose} need {wanted} ephemeral ports, and there are {last - first + 1}. As root: "
                      "`sysctl net.ipv4.ip_local_port_range=\"30000 65535\"`; or measure fewer connections")


def io_uring_is_forbidden():
    """Whether io_uring is forbidden, as in a container. A call with a bad address shows it and creates no ring."""
    io_uring_setup = 425
    return _libc.syscall(io_uring_setup, 1, None) < 0 and ctypes.get_errno() in (errno.EPERM, errno.ENOSYS)


def start(command, cpu=None, stdout=subprocess.DEVNULL, stdin=subprocess.DEVNULL):
    """A child that ends when this script ends, however that happens. `cpu` is a number, a set of numbers, or None for any. Its
    messages go to child.messages."""
    parent = os.getpid()

    def prepare():
        _libc.prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
        if os.getppid() != parent:
            os._exit(1)
        if cpu is not None:
            os.sched_setaffinity(0, {cpu} if isinstance(cpu, int) else cpu)

    messages = tempfile.TemporaryFile("w+", errors="replace")
    # A separate session: Ctrl-C reaches only this script, which then ends its children in order.
    child = subprocess.Popen([str(part) for part in command], stdin=stdin, stdout=stdout, stderr=messages,
                             start_new_session=True, preexec_fn=prepare)
    child.messages = messages
    child.name = os.path.basename(str(command[0]))
    _running.append(child)
    return child


def said(child):
    child.messages.seek(0)
    return child.messages.read().strip()


def end(child):
    """Sends SIGTERM and, two seconds later, SIGKILL to a child that start() has started, by its process id."""
    if child.returncode is None and child.poll() is None:
        child.terminate()
        try:
            child.wait(2)
        except subprocess.TimeoutExpired:
            child.kill()
            child.wait()
    forget(child)


def forget(child):
    if child in _running:
        _running.remove(child)
    if child.stdout:
        child.stdout.close()
    child.messages.close()


def end_all():
    for child in list(_running):
        end(child)


def run(command, timeout, cpu=None, check=True, needs=None):
    """Runs a program to its end and returns its standard output. Raises Failure, with the program's messages, if it fails, if the
    time limit expires, or if `needs`, the child that it talks to, ends."""
    child = start(command, cpu, stdout=subprocess.PIPE)
    deadline = time.monotonic() + timeout
    try:
        while True:
            try:
                out, _ = child.communicate(timeout=min(1.0, max(0.0, deadline - time.monotonic())))
                break
            except subprocess.TimeoutExpired:
                if needs is not None and needs.poll() is not None:
                    raise Failure(f"{needs.name} ended with {needs.returncode}: {said(needs)}") from None
                if time.monotonic() >= deadline:
                    raise Failure(f"{child.name} did not end within {timeout:.0f} s") from None
        if check and child.returncode != 0:
            raise Failure(f"{child.name} ended with {child.returncode}: {said(child) or out.decode()}")
        return out.decode()
    finally:
        end(child)


def wait_for_end(child, timeout):
    """Waits for a child; returns its exact CPU seconds (the kernel's own sum, not ticks)."""
    deadline = time.monotonic() + timeout
    while True:
        pid, status, usage = os.wait4(child.pid, os.WNOHANG)
        if pid != 0:
            child.returncode = os.waitstatus_to_exitcode(status)
            break
        if time.monotonic() > deadline:
            raise Failure(f"{child.name} did not end within {timeout:.0f} s")
        time.sleep(0.002)
    if child.returncode != 0:
        raise Failure(f"{child.name} ended with {child.returncode}: {said(child)}")
    return usage.ru_utime + usage.ru_stime


def free_port():
    """An unused loopback port outside the ephemeral range."""
    for _ in range(200):
        port = random.randrange(20000, 30000)
        with socket.socket() as probe:
            try:
                probe.bind((LOOPBACK, port))
                return port
            except OSError:
                continue
    raise Failure("found no free port")


def listening(port):
    """Whether something listens on the port. Asks the kernel: some servers take a test connection for their only client."""
    wanted = f":{port:04X}"
    for table in ("/proc/net/tcp", "/proc/net/tcp6"):
        try:
            with open(table) as lines:
                next(lines)
                for line in lines:
                    _, local, _, state = line.split(None, 4)[:4]
                    if state == "0A" and local.endswith(wanted):
                        return True
        except FileNotFoundError:
            continue
    return False


def wait_until_listening(child, port, timeout=10):
    deadline = time.monotonic() + timeout
    while not listening(port):
        if child.poll() is not None:
            raise Failure(f"{child.name} ended with {child.returncode} before it listened: {said(child)}")
        if time.monotonic() > deadline:
            raise Failure(f"{child.name} does not listen on port {port} after {timeout} s")
        time.sleep(0.01)


def main(body):
    """Runs body() -> exit code; ends every child before the script ends, on Ctrl-C and SIGTERM as well."""

    def interrupt(*_):
        raise KeyboardInterrupt

    # Python installs no SIGINT handler if a shell started this in the background, with SIGINT ignored.
    signal.signal(signal.SIGINT, interrupt)
    signal.signal(signal.SIGTERM, interrupt)
    code = 1
    try:
        code = body()
    except KeyboardInterrupt:
        print("\ninterrupted", file=sys.stderr)
        code = 130
    except Failure as failure:
        print(f"\nfailed: {failure}", file=sys.stderr)
    finally:
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        end_all()
    sys.exit(code)
