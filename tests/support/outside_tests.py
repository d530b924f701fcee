"""Shared by the scripts that run other projects' tests and compare the results with a table."""
import ctypes
import errno
import os
import pathlib
import signal
import subprocess
import sys


def has_io_uring():
    setup = 425
    ctypes.CDLL(None, use_errno=True).syscall(setup, 0, None)
    return ctypes.get_errno() not in (errno.EPERM, errno.ENOSYS)


def run_limited(command, limit, **options):
    """Runs a command in a session of its own, all of which ends with it; returns its status, or None after `limit`
    seconds."""
    child = subprocess.Popen(command, stdin=subprocess.DEVNULL, stderr=subprocess.STDOUT, start_new_session=True, **options)
    try:
        status = child.wait(timeout=limit)
    except subprocess.TimeoutExpired:
        status = None
    try:
        os.killpg(child.pid, signal.SIGKILL)
    except ProcessLookupError:
        pass
    if status is None:
        child.wait()
    return status


def read_table(path, worlds, described):
    """The table, and the version on its line "# DESCRIBED: VERSION". Each other line is a name, the results in the
    worlds, of which `=` stands for the one before, and the reason."""
    table, version = {}, ""
    for number, line in enumerate(pathlib.Path(path).read_text().splitlines(), 1):
        if line.startswith(f"# {described}: "):
            version = line.split()[-1]
        if not line or line.startswith("#"):
            continue
        name, *results = line.split(None, len(worlds) + 1)
        if len(results) != len(worlds) + 1:
            sys.exit(f"{path}:{number}: a line is: NAME {' '.join(w.upper() for w in worlds)} REASON")
        for n, result in enumerate(results[:-1]):
            results[n] = results[n - 1] if result == "=" else result
        table[name] = dict(zip(worlds, results), reason=results[-1])
    return table, version
