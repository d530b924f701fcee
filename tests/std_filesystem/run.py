#!/usr/bin/env python3
"""Builds and runs the tests of std::filesystem of libstdc++ and libc++, each in four worlds:

    standard   on the installed standard library itself
    ring       on coil::fs, with io_uring
    epoll      on coil::fs, with the epoll backend
    own        on coil::fs, with io_uring; what coil::fs leaves to the standard library is called from coil's own
               definitions, which it otherwise uses in simulated worlds

and compares the results with a table of the programs that do not pass everywhere, with the reason. A difference, in
either direction, is a failure.

    run.py SOURCES PROGRAMS TABLE [--compiler CXX] [-R REGEX] [--write]

SOURCES has the folders libstdc++ and libc++; PROGRAMS has filesystem_on_coil and filesystem_on_standard. A test is built as a
shared library, of which the program calls main(): see operations.cpp. Tests of path and of the other types are left out:
coil::fs uses the standard library's.

Results: pass; fail (the exit status); abort; crash (another signal); hang; build (it does not compile with the installed
standard library). A test continues after a failed assertion: its result is followed by the lines of these, as in
fail:40,57. In the table, = stands for the result in the column before, and | separates alternatives. The table's line "# libstdc++: VERSION" names the version that it describes. With another
one, the results of `standard` are not compared, and a test may pass where the table says that it does not.

Root runs the tests as an unprivileged user: they expect permissions to be enforced.
"""
import argparse
import concurrent.futures
import hashlib
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import tempfile

sys.dont_write_bytecode = True
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "support"))
from outside_tests import has_io_uring, read_table, run_limited

WORLDS = ("standard", "ring", "epoll", "own")
ENVIRONMENT = {"standard": {}, "ring": {"COIL_BACKEND": "io_uring"}, "epoll": {"COIL_BACKEND": "epoll"},
               "own": {"COIL_BACKEND": "io_uring", "COIL_JUDGED": "own"}}
TRIES = 3 # how often a test with an unexpected result is run
NOBODY = 65534


class Suite:
    """Tests of one library: where they are, and how they are compiled."""

    def __init__(self, name, tests, folders, pattern, options):
        self.name, self.tests, self.folders, self.pattern, self.options = name, tests, folders, pattern, options

    def files(self, sources):
        root = sources / self.name / self.tests
        for folder in self.folders:
            yield from ((path, f"{self.name}/{path.relative_to(root).as_posix().split(self.pattern)[0]}")
                        for path in sorted((root / folder).rglob("*" + self.pattern)) if self.runs(path))

    def runs(self, path):
        """Whether the test is to be run, and not only compiled."""
        if self.name == "libc++":
            return not path.name.endswith(".compile.pass.cpp")
        return "dg-do run" in path.read_text(errors="replace")


SUITES = (
    Suite("libstdc++", "testsuite/27_io/filesystem", ("operations", "iterators", "directory_entry"), ".cc",
          ["-I{}/testsuite/util", "-w"]),
    Suite("libc++", "test/std/input.output/filesystems",
          ("fs.op.funcs", "class.directory_iterator", "class.rec.dir.itr", "class.directory_entry"), ".pass.cpp",
          ["-I{}/test/support", "-w"]),
)


def version_of_libstdcxx(compiler):
    macros = subprocess.run([compiler, "-x", "c++", "-std=c++20", "-dM", "-E", "-include", "version", os.devnull],
                            check=True, capture_output=True, text=True).stdout
    return re.search(r"#define _GLIBCXX_RELEASE (\d+)", macros)[1]


def build(compiler, suite, sources, path, library):
    """Builds a test unless it is up to date; returns whether it compiles."""
    command = [compiler, "-std=c++20", "-O0", "-g1", "-fPIC", "-shared", "-pthread", "-o", str(library), str(path)]
    command.append(f"-I{pathlib.Path(__file__).resolve().parent / 'include'}")
    command += [option.format(sources / suite.name) for option in suite.options]
    log = library.with_suffix(".log")
    key = hashlib.sha256(repr(command).encode() + path.read_bytes()).hexdigest()
    if log.exists() and log.read_text(errors="replace").startswith(key):
        return library.exists()
    library.parent.mkdir(parents=True, exist_ok=True)
    library.unlink(missing_ok=True)
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    log.write_text(f"{key}\n{done.stderr}")
    return done.returncode == 0


class Runner:
    """Runs built tests, from a directory that an unprivileged user can reach."""

    def __init__(self, given, place):
        self.limit, self.logs, self.place = given.limit, pathlib.Path(given.log).resolve(), pathlib.Path(place)
        self.directory = given.directory
        for program in ("filesystem_on_coil", "filesystem_on_standard"):
            shutil.copy(pathlib.Path(given.programs) / program, self.place)
        self.place.chmod(0o755)

    def log(self, name, world):
        return self.logs / f"{name.replace('/', '.')}.{world}.log"

    def run_in(self, name, library, worlds):
        copy = self.place / (name.replace("/", ".") + ".so")
        shutil.copy(library, copy)
        return {(name, world): self.run(name, copy, world) for world in worlds}

    def run(self, name, library, world):
        program = self.place / ("filesystem_on_standard" if world == "standard" else "filesystem_on_coil")
        user = {"user": NOBODY, "group": NOBODY, "extra_groups": []} if os.geteuid() == 0 else {}
        with tempfile.TemporaryDirectory(prefix="coil-filesystem-", dir=self.directory,
                                         ignore_cleanup_errors=True) as home, \
                open(self.log(name, world), "wb") as output:
            if user:
                os.chown(home, NOBODY, NOBODY)
            environment = os.environ | ENVIRONMENT[world] | {"TMPDIR": home, "COIL_WATCHDOG": "off"}
            status = run_limited([program, library], self.limit, cwd=home, env=environment, stdout=output, **user)
        if status is None:
            return "hang"
        kind = "abort" if status == -signal.SIGABRT else "crash" if status < 0 else "fail"
        failed = re.findall(rb"^FAILED [^\n]*?:(\d+): ", self.log(name, world).read_bytes(), re.MULTILINE)
        lines = ",".join(map(str, sorted(set(map(int, failed)))))
        return "pass" if status == 0 else f"{kind}:{lines}" if lines else kind


def build_all(given, sources, selected):
    """Returns the libraries by name; None for a test that does not compile."""
    out, built = pathlib.Path(given.built).resolve(), {}
    with concurrent.futures.ThreadPoolExecutor(given.jobs) as pool:
        running = {pool.submit(build, given.compiler, suite, sources, path, out / (name + ".so")): name
                   for suite, path, name in selected}
        for n, future in enumerate(concurrent.futures.as_completed(running), 1):
            name = running[future]
            built[name] = out / (name + ".so") if future.result() else None
            if n % 50 == 0:
                print(f"filesystem: built [{n}/{len(running)}]", file=sys.stderr, flush=True)
    return built


def run_all(runner, built, worlds, jobs):
    found = {}
    with concurrent.futures.ThreadPoolExecutor(jobs) as pool:
        for results in pool.map(lambda one: runner.run_in(*one, worlds),
                                [(name, library) for name, library in built.items() if library]):
            found |= results
    return found | {(name, world): "build" for name, library in built.items() if not library for world in worlds}


def compare(runner, built, found, table, worlds, same_version):
    """The differences from the table. A test is repeated before it counts."""
    failures = []
    for name, world in sorted(found):
        wanted = table.get(name, {}).get(world, "pass")
        for _ in range(TRIES - 1):
            if found[name, world] in wanted.split("|") or not built[name]:
                break
            found[name, world] = runner.run_in(name, built[name], [world])[name, world]
        got = found[name, world]
        if got in wanted.split("|") or not same_version and (world == "standard" or got == "pass" or wanted == "build"):
            continue
        reason = table.get(name, {}).get("reason", "")
        failures.append(f"{name} on {world}: {got}, expected {wanted} {reason} ({runner.log(name, world)})")
    return failures + [f"{name} is in the table but not among the tests" for name in sorted(table.keys() - built.keys())]


def write_table(found, names, table):
    for name in names:
        here = [found.get((name, world), "pass") for world in WORLDS]
        if set(here) != {"pass"}:
            here = here[:1] + ["=" if one == before else one for before, one in zip(here, here[1:])]
            print(f"{name} {' '.join(here)} {table.get(name, {}).get('reason', '?')}")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("sources")
    parser.add_argument("programs")
    parser.add_argument("expected")
    parser.add_argument("--compiler", default=os.environ.get("CXX", "c++"))
    parser.add_argument("--built", default="build/filesystem/tests")
    parser.add_argument("--log", default="build/log/filesystem")
    parser.add_argument("--directory", help="where the tests make their files")
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    parser.add_argument("--limit", type=float, default=60)
    parser.add_argument("--only", "-R", default="", help="a regular expression: these tests alone")
    parser.add_argument("--write", action="store_true", help="print a table of what was found instead of comparing")
    given = parser.parse_args()
    worlds = [w for w in WORLDS if w in ("standard", "epoll") or has_io_uring()]

    table, version = read_table(given.expected, WORLDS, "libstdc++")
    sources = pathlib.Path(given.sources).resolve()
    selected = [(suite, path, name) for suite in SUITES for path, name in suite.files(sources)
                if re.search(given.only, name)]
    built = build_all(given, sources, selected)
    pathlib.Path(given.log).mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="coil-filesystem-") as place:
        runner = Runner(given, place)
        found = run_all(runner, built, worlds, given.jobs)
        if given.write:
            write_table(found, [name for _, _, name in selected], table)
            return 0
        if given.only:
            table = {name: row for name, row in table.items() if name in built}
        failures = compare(runner, built, found, table, worlds, version_of_libstdcxx(given.compiler) == version)
    for failure in failures:
        print(f"FAILED: {failure}")
    for world in worlds:
        results = [found[name, world] for name in built]
        print(f"filesystem on {world}: {results.count('pass')} of {len(results)} pass", file=sys.stderr)
    print(f"{len(found) - len(failures)} passed, {len(failures)} failed")
    return 1 if failures else 0


sys.exit(main())
