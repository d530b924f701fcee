"""Reading files: the parts of bench/fs/run. A part has `variants` (each with a `key`, a `title`, `missing`, which is a reason
or None, and `measure()`), the `head` and `columns` of its table, and `add_targets(targets, runs)`."""

import json
import os
import pathlib
import random
import shutil
import time

from . import process, report


class Command:
    """A program that prints its figures as JSON."""

    def __init__(self, build, cpu, key, title, program, *arguments):
        path = build / "bench" / "fs" / program
        self.key, self.title, self.cpu = key, title, cpu
        self.command = [path, *arguments]
        self.missing = None if path.exists() else "not built"

    def measure(self):
        return json.loads(process.run(self.command, timeout=300, cpu=self.cpu))


class Dd:
    """dd of a file to /dev/null."""

    key, title = "dd", "dd bs=1M of=/dev/null"

    def __init__(self, cpu, name):
        self.command, self.cpu = ["dd", f"if={name}", "bs=1M", "of=/dev/null", "status=none"], cpu
        self.missing = None if shutil.which("dd") else "not installed"

    def measure(self):
        begin = time.monotonic()
        child = process.start(self.command, self.cpu)
        try:
            cpu = process.wait_for_end(child, timeout=300)
        finally:
            process.end(child)
        return {"seconds": time.monotonic() - begin, "cpu_s": cpu}


def of(runs, key, name):
    return [run[name] for run in runs.get(key, [])]


class SmallFiles:
    """10,000 files of 1 to 8 KiB in 100 directories, in the page cache, one thread on one CPU."""

    title = "small files"
    head, columns = ["each file", "wall µs", "CPU µs"], [("us_per_file", 2), ("cpu_us_per_file", 2)]

    def __init__(self, build, cpu, directory, quick):
        chance, total = random.Random(1), 0
        root = pathlib.Path(directory) / "small"
        for number in range(10 if quick else 100):
            folder = root / f"{number:02}"
            folder.mkdir(parents=True)
            for name in range(100):
                data = os.urandom(chance.randint(1024, 8192))
                (folder / f"{name:02}").write_bytes(data)
                total += len(data)
        self.variants = [Command(build, cpu, key, title, "small_files", key, root, total) for key, title in
                     (("iterators", "std::ifstream, istreambuf_iterator"),
                      ("stringstream", "std::ifstream, rdbuf to stringstream"),
                      ("size", "std::ifstream, seek to the end, read"),
                      ("calls", "open, read, read, close"),
                      ("coil", "fs::read_file, one after the other"),
                      ("coil32", "fs::read_file, 32 at once"))]

    def add_targets(self, targets, runs):
        for mine, said in (("coil", "one after the other"), ("coil32", "32 at once")):
            for theirs, by in (("iterators", "istreambuf_iterator"), ("stringstream", "rdbuf"), ("size", "seek and read")):
                ratio = report.ratios(of(runs, mine, "files_per_s"), of(runs, theirs, "files_per_s"))
                targets.at_least(f"small files, {said}: files/s × std::ifstream, {by}", ratio, 1.5)


class BigFile:
    """One file, read to its end, from the page cache if it fits."""

    title = "one file"
    head, columns = ["the file", "wall s", "CPU s"], [("seconds", 3), ("cpu_s", 3)]

    def __init__(self, build, cpu, directory, quick):
        name = pathlib.Path(directory) / "big"
        block = os.urandom(1 << 20)
        with open(name, "wb") as out:
            for _ in range(256 if quick else 4096):
                out.write(block)
            os.fsync(out.fileno())
        self.variants = [Dd(cpu, name), Command(build, cpu, "file", "fs::file::read, 1 MiB", "big_file", "file", name, 1024),
                     Command(build, cpu, "file128", "fs::file::read, 128 KiB", "big_file", "file", name, 128),
                     Command(build, cpu, "string", "fs::read_file", "big_file", "string", name, 0)]

    def add_targets(self, targets, runs):
        ratio = report.ratios(of(runs, "dd", "seconds"), of(runs, "file", "seconds"))
        targets.at_least("one file, 1 MiB at a time: throughput × dd bs=1M", ratio, 1.0)
