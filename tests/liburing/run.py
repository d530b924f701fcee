#!/usr/bin/env python3
"""Runs liburing's test programs on io_uring, on the epoll backend and through coil::uring::ring; compares with a table.

usage: run.py PROGRAMS-DIRECTORY SHIM EXPECTED [--jobs N] [--limit SECONDS] [--only REGEX] [--world WORLD] [--write]

A program's result is pass, skip (status 77), fail, crash (a signal), hang (the time limit), or fork (the shim ended it,
because a child process waits on its parent's ring). A line of the table is

    NAME LINUX EPOLL RING REASON

for a program that does not pass everywhere; every other program is expected to pass. A program whose result is not the
expected one is run again, alone and with a longer time limit, before it counts: the load of the machine must not decide.
A result that is better than the table says fails as well, so that the table stays true. `any`: the result differs
between runs, machines or loads. On Linux such a program is not run; elsewhere it is run for a few seconds, and only a
crash fails. The table's line "# Linux: VERSION" names the kernel that it describes. On another one, the result on Linux
is measured and not compared, and a program has to give the same through uring::ring if it does so in the table.

Of the programs that pass on Linux, LEAST_ON_EPOLL have to pass on the epoll backend, whatever the table says.
"""
import argparse
import concurrent.futures
import ctypes
import fcntl
import os
import pathlib
import platform
import re
import shutil
import socket
import struct
import sys
import tempfile
import time

sys.dont_write_bytecode = True
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "support"))
from outside_tests import has_io_uring, read_table, run_limited

WORLDS = ("linux", "epoll", "ring")
# Programs that take 5 to 20 s. They start first, before those of unknown duration.
SLOW = ("poll-mshot-update", "buf-ring-upgrade", "poll-many", "sq-poll-share", "cq-overflow", "pollfree", "timeout",
        "waitid", "wait-timeout", "sqwait", "epwait", "file-register", "resize-rings", "pipe-bug")
TRIES = 3 # how often a program with an unexpected result is run again before the result counts
PATIENCE = 4 # multiplies the time limit of these runs
LEAST_ON_EPOLL = 190 # see above

CLONE_NEWNET = 0x40000000


def isolate():
    """Gives the calling process a network of its own, so that programs that run at the same time do not use each
    other's ports. Without the privilege for it, it does nothing."""
    if ctypes.CDLL(None, use_errno=True).unshare(CLONE_NEWNET) != 0:
        return
    up = 1 # IFF_UP
    siocsifflags = 0x8914
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as s:
        fcntl.ioctl(s, siocsifflags, struct.pack("16sh22x", b"lo", up))


class Runner:
    def __init__(self, given):
        self.limit = given.limit
        self.logs = pathlib.Path(given.log).resolve()
        shim = str(pathlib.Path(given.shim).resolve())
        self.environment = {"linux": {}, "epoll": {"LD_PRELOAD": shim},
                            "ring": {"LD_PRELOAD": shim, "COIL_SHIM_RING": "1"}}

    def log(self, name, world):
        return self.logs / f"{name}.{world}.log"

    def run(self, program, world, times=1):
        """The result, and how long it took."""
        started = time.monotonic()
        return self.once(program, world, self.limit * times), time.monotonic() - started

    def run_in(self, program, worlds):
        """The program in one world after the other: it may use files or ports with fixed names. `worlds` are pairs of
        a name and the time limit's factor."""
        isolate()
        return [self.run(program, world, times) for world, times in worlds]

    def once(self, program, world, limit):
        log = self.log(program.stem, world)
        with tempfile.TemporaryDirectory(prefix="coil-liburing-", ignore_cleanup_errors=True) as place, \
                open(log, "wb") as output:
            status = run_limited([program], limit, cwd=place, env=os.environ | self.environment[world], stdout=output)
        if status is None:
            return "hang"
        if status == 77:
            return "skip"
        if status < 0:
            return "fork" if b"waits on its parent's ring" in log.read_bytes() else "crash"
        return "pass" if status == 0 else "fail"


def accepted(wanted, got, on_linux=None):
    """Whether a program may end like this. `on_linux` is the program's result there if its version is not the table's:
    it may then pass, skip, or do as on Linux, which may be newer or older than the program. So a program that the table
    does not know has to pass, or skip, wherever it passes on Linux."""
    if wanted == "any":
        return got != "crash"
    return got == wanted or on_linux is not None and got in ("pass", "skip", on_linux)


def describe_other_kernel(table, found, names):
    """Replaces what the table says about Linux by what was found there."""
    for name in names:
        row = table.setdefault(name, dict.fromkeys(WORLDS, "pass") | {"reason": ""})
        if (name, "linux") in found:
            row["ring"] = found[name, "linux"] if row["ring"] == row["linux"] else "any"
            row["linux"] = found[name, "linux"]


def run_all(runner, todo, jobs):
    """Runs (program, worlds) pairs in parallel; returns results and seconds by (name, world)."""
    found, seconds = {}, {}
    with concurrent.futures.ProcessPoolExecutor(jobs) as pool:
        running = {pool.submit(runner.run_in, *one): one for one in todo}
        for n, future in enumerate(concurrent.futures.as_completed(running), 1):
            program, worlds = running[future]
            for (world, _), (result, spent) in zip(worlds, future.result()):
                found[program.stem, world] = result
                seconds[program.stem, world] = spent
            if n % 50 == 0:
                print(f"liburing: [{n}/{len(todo)}]", file=sys.stderr, flush=True)
    return found, seconds


def pass_on_both(found, names, world):
    return sum(found.get((n, "linux")) == "pass" and found.get((n, world)) == "pass" for n in names)


def summary(found, names, worlds):
    for world in worlds:
        counts = {}
        for name in names:
            if (name, world) in found:
                counts[found[name, world]] = counts.get(found[name, world], 0) + 1
        listed = ", ".join(f"{n} {what}" for what, n in sorted(counts.items()))
        print(f"liburing on {world}: {listed}", file=sys.stderr)
    there = [n for n in names if found.get((n, "linux")) == "pass"]
    for world in worlds:
        if world != "linux" and there:
            print(f"liburing: of {len(there)} that pass on Linux, {pass_on_both(found, names, world)} pass on {world}",
                  file=sys.stderr)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("programs")
    parser.add_argument("shim")
    parser.add_argument("expected")
    parser.add_argument("--jobs", type=int, default=4)
    parser.add_argument("--limit", type=float, default=25)
    parser.add_argument("--only", "-R", default="", help="a regular expression: these programs alone")
    parser.add_argument("--log", default="build/log/liburing")
    parser.add_argument("--world", action="append", choices=WORLDS)
    parser.add_argument("--write", action="store_true", help="print a table of what was found instead of comparing")
    parser.add_argument("--other-version", action="store_true",
                        help="not the version of the table: programs may be missing, unknown, or do as on Linux")
    given = parser.parse_args()
    worlds = given.world or (WORLDS if has_io_uring() else ("epoll",))

    table, kernel = read_table(given.expected, WORLDS, "Linux")
    programs = sorted(p for p in pathlib.Path(given.programs).resolve().glob("*.t") if re.search(given.only, p.stem))
    names = [p.stem for p in programs]
    runner = Runner(given)
    if not given.only:
        shutil.rmtree(runner.logs, ignore_errors=True)
    runner.logs.mkdir(parents=True, exist_ok=True)

    def expected(program, world):
        return table.get(program.stem, {}).get(world, "pass")

    def worlds_of(program):
        return [(w, 0.2 if expected(program, w) == "any" else 1) for w in worlds
                if given.write or w != "linux" or expected(program, w) != "any"]

    todo = sorted(((p, worlds_of(p)) for p in programs), key=lambda one: one[0].stem not in SLOW)
    found, seconds = run_all(runner, todo, given.jobs)
    if given.write:
        for name in names:
            here = [found.get((name, w), "pass") for w in WORLDS]
            if set(here) != {"pass"}:
                print(f"{name:25} {' '.join(f'{w:5}' for w in here)} {table.get(name, {}).get('reason', '?')}")
        summary(found, names, worlds)
        return 0

    if not platform.release().startswith(kernel + "."):
        print(f"liburing: Linux {platform.release()} is not the table's {kernel}: not compared", file=sys.stderr)
        describe_other_kernel(table, found, names)
    def on_linux(program):
        return found.get((program.stem, "linux"), "pass") if given.other_version else None

    failures = []
    for program, world in [(p, w) for p, its_worlds in todo for w, _ in its_worlds]:
        wanted = expected(program, world)
        for _ in range(TRIES):
            if accepted(wanted, found[program.stem, world], on_linux(program)):
                break
            print(f"liburing: {program.stem} on {world}: {found[program.stem, world]}; again, alone", file=sys.stderr)
            isolate()
            found[program.stem, world], _ = runner.run(program, world, PATIENCE)
            if found[program.stem, world] == "hang":
                break
        if not accepted(wanted, found[program.stem, world], on_linux(program)):
            reason = table.get(program.stem, {}).get("reason", "(not in the table)")
            failures.append(f"{program.stem} on {world}: {found[program.stem, world]}, expected {wanted} {reason} "
                            f"({runner.log(program.stem, world)})")
    if not given.only and not given.other_version:
        both = pass_on_both(found, names, "epoll")
        same_kernel = platform.release().startswith(kernel + ".")
        if same_kernel and {"linux", "epoll"} <= set(worlds) and both < LEAST_ON_EPOLL:
            failures.append(f"{both} programs pass on Linux and on epoll, fewer than {LEAST_ON_EPOLL}")
        failures += [f"{name} is in the table but not among the programs" for name in sorted(table.keys() - set(names))]
    for failure in failures:
        print(f"FAILED: {failure}")
    summary(found, names, worlds)
    skipped = sum(result == "skip" for result in found.values())
    print(f"{len(found) - skipped - len(failures)} passed, {len(failures)} failed, {skipped} skipped")
    with open(runner.logs / "seconds", "w") as file:
        for (name, world), spent in sorted(seconds.items(), key=lambda one: -one[1]):
            file.write(f"{spent:7.2f} {name} {world}\n")
    return 1 if failures else 0


sys.exit(main())
