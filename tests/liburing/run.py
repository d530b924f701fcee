#!/usr/bin/env python3
"""Runs liburing's test programs on io_uring and on the epoll backend and compares the results with a table.

usage: run.py PROGRAMS-DIRECTORY SHIM EXPECTED [--jobs N] [--limit SECONDS] [--only REGEX] [--write]

A program's result is pass, skip (status 77), fail, crash (a signal) or hang (the time limit). A line of the table is

    NAME LINUX EPOLL REASON

for a program that does not pass on both; every other program is expected to pass on both. A program whose result is
not the expected one is run again, alone, before it counts. A result that is better than the table says fails as well, so
that the table stays true. A program whose result differs from run to run has `any` in its place.
"""
import argparse
import concurrent.futures
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import tempfile

WORLDS = ("linux", "epoll")


def run(program, shim, limit, log):
    environment = dict(os.environ)
    if shim:
        environment["LD_PRELOAD"] = shim
    with tempfile.TemporaryDirectory(prefix="coil-liburing-") as place, open(log, "wb") as output:
        child = subprocess.Popen([program], cwd=place, env=environment, stdin=subprocess.DEVNULL, stdout=output,
                                 stderr=subprocess.STDOUT, start_new_session=True)
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
            return "hang"
    if status == 77:
        return "skip"
    if status < 0:
        return "crash"
    return "pass" if status == 0 else "fail"


def read_table(path):
    table = {}
    for line in pathlib.Path(path).read_text().splitlines():
        if not line or line.startswith("#"):
            continue
        name, linux, epoll, reason = line.split(None, 3)
        table[name] = {"linux": linux, "epoll": epoll, "reason": reason}
    return table


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("programs")
    parser.add_argument("shim")
    parser.add_argument("expected")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--limit", type=float, default=30)
    parser.add_argument("--only", "-R", default="", help="a regular expression: these programs alone")
    parser.add_argument("--log", default="build/log/liburing")
    parser.add_argument("--world", action="append", choices=WORLDS)
    parser.add_argument("--write", action="store_true", help="print a table of what was found instead of comparing")
    given = parser.parse_args()
    worlds = given.world or WORLDS

    table = read_table(given.expected)
    programs = sorted(p for p in pathlib.Path(given.programs).resolve().glob("*.t") if re.search(given.only, p.stem))
    shim = {"linux": None, "epoll": str(pathlib.Path(given.shim).resolve())}
    logs = pathlib.Path(given.log).resolve()
    if not given.only:
        shutil.rmtree(logs, ignore_errors=True)
    logs.mkdir(parents=True, exist_ok=True)

    def expected(name, world):
        return table.get(name, {}).get(world, "pass")

    def once(program, world):
        return run(str(program), shim[world], given.limit, logs / f"{program.stem}.{world}.log")

    found = {}
    todo = [(p, w) for p in programs for w in worlds]
    with concurrent.futures.ThreadPoolExecutor(given.jobs) as pool:
        results = pool.map(lambda one: once(*one), todo)
        for n, ((program, world), result) in enumerate(zip(todo, results), 1):
            found[program.stem, world] = result
            if n % 50 == 0:
                print(f"liburing: [{n}/{len(todo)}]", file=sys.stderr, flush=True)

    surprises = []
    for program, world in todo:
        wanted = expected(program.stem, world)
        if wanted == "any" or found[program.stem, world] == wanted:
            continue
        if not given.write:
            found[program.stem, world] = once(program, world)
        if found[program.stem, world] != wanted:
            surprises.append((program.stem, world, wanted, found[program.stem, world]))

    names = [p.stem for p in programs]
    if given.write:
        for name in names:
            here = [found.get((name, w), "pass") for w in WORLDS]
            if here != ["pass", "pass"]:
                print(f"{name:32} {here[0]:5} {here[1]:5} {table.get(name, {}).get('reason', '?')}")
    else:
        for name, world, wanted, got in surprises:
            reason = table.get(name, {}).get("reason", "")
            print(f"FAILED: {name} on {world}: {got}, expected {wanted} {reason} ({logs}/{name}.{world}.log)")
        for name in table.keys() - set(names) if not given.only else ():
            surprises.append((name, "", "", ""))
            print(f"FAILED: {name} is in the table but not among the programs")
    for world in worlds:
        counts = {}
        for name in names:
            counts[found[name, world]] = counts.get(found[name, world], 0) + 1
        print(f"liburing on {world}: " + ", ".join(f"{n} {what}" for what, n in sorted(counts.items())), file=sys.stderr)
    if set(worlds) == set(WORLDS):
        there = [n for n in names if found[n, "linux"] == "pass"]
        both = sum(found[n, "epoll"] == "pass" for n in there)
        print(f"liburing: of {len(there)} that pass on Linux, {both} pass on epoll", file=sys.stderr)
    skipped = sum(found[n, w] == "skip" for n in names for w in worlds)
    print(f"{len(todo) - skipped - len(surprises)} passed, {len(surprises)} failed, {skipped} skipped")
    return 0 if given.write or not surprises else 1


sys.exit(main())
