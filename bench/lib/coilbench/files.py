"""Programs that read random blocks of a file, and the file."""

import json
import os
import shutil
import struct
import subprocess

from . import process
from .process import Failure

BLOCK = 4096
CANNOT_RUN_HERE = 77
IN_MEMORY = ("tmpfs", "ramfs")


def file_system_of(directory):
    """The type of the file system a directory is on, as the kernel names it."""
    best, found = "", "unknown"
    path = os.path.realpath(directory)
    with open("/proc/self/mountinfo") as mounts:
        for line in mounts:
            fields = line.split()
            mount = fields[4].encode().decode("unicode_escape") # a space is encoded as \040
            inside = path == mount or path.startswith(mount.rstrip("/") + "/")
            if inside and len(mount) >= len(best):
                best, found = mount, fields[fields.index("-") + 1]
    return found


def make(path, mib):
    """Creates a file in which every 64-bit word is the number of its block, and synchronizes it to disk."""
    with open(path, "wb") as file:
        for number in range(mib << 20 >> 12):
            file.write(struct.pack("=Q", number) * (BLOCK // 8))
        file.flush()
        os.fsync(file.fileno())


def warm(path):
    """Reads a file completely, so that it is in the page cache if it fits."""
    with open(path, "rb", buffering=0) as file:
        while file.read(1 << 20):
            pass


def cool(path):
    """Drops a file from the page cache, which O_DIRECT reads would search first."""
    with open(path, "rb") as file:
        os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)


def refuses_direct(path):
    """Why O_DIRECT reads are not possible, or None."""
    try:
        os.close(os.open(path, os.O_RDONLY | os.O_DIRECT))
    except OSError as error:
        return f"O_DIRECT: {error.strerror}"
    return None


class Reader:
    """A program of ours: `measure` returns what it printed, see bench/files/workload.c."""

    def __init__(self, key, title, program, *options, package=None, before=()):
        self.key, self.title, self.command = key, title, [*before, program, *options]
        self.missing = None if program.exists() else f"not installed ({package})" if package else "not built"

    def measure(self, path, depth, reads, cpu, direct=False):
        result = json.loads(process.run([*self.command, path, "--depth", depth, "--reads", reads,
                                         *(["--direct"] if direct else [])], timeout=60 + reads / 2000, cpu=cpu))
        result["cpu_us_per_read"] = result["cpu_s"] / reads * 1e6
        result["enters_per_read"] = result["enters"] / reads
        result["busy"] = result["cpu_s"] / result["seconds"]
        return result

    def try_out(self, path, depth, reads, cpu, direct=False):
        """Makes a few reads and verifies the data. A program that cannot run here is marked as missing."""
        child = process.start([*self.command, path, "--depth", depth, "--reads", reads,
                               *(["--direct"] if direct else [])], cpu, stdout=subprocess.PIPE)
        try:
            out, _ = child.communicate(timeout=60)
            if child.returncode == CANNOT_RUN_HERE:
                self.missing = process.said(child).split(": ", 1)[-1]
                return None
            if child.returncode != 0:
                raise Failure(f"{self.title}: {process.said(child)}")
            return json.loads(out)
        except subprocess.TimeoutExpired:
            raise Failure(f"{self.title} did not make {reads} reads within a minute") from None
        finally:
            process.end(child)


def all_readers(build):
    files = build / "bench" / "files"
    return [Reader("coil", "coil", files / "coil_reads"),
            Reader("raw", "raw C io_uring", files / "raw_reads", package="liburing-dev"),
            Reader("coil_epoll", "coil, COIL_BACKEND=epoll", files / "coil_reads", before=("env", "COIL_BACKEND=epoll")),
            Reader("pool", "a pool of blocking threads", files / "pool_reads"),
            Reader("libuv", "libuv", files / "libuv_reads", package="libuv1-dev"),
            Reader("coil_registered", "coil, registered", files / "coil_reads", "--registered"),
            Reader("raw_registered", "raw C io_uring, registered", files / "raw_reads", "--registered",
                   package="liburing-dev")]


class Fio:
    """fio's io_uring engine with `options`, on top of the settings that make it cheapest in every case."""

    key = "fio"

    def __init__(self, name, options):
        self.name, self.options = name, options
        self.missing = None if shutil.which("fio") else "not installed (fio)"
        self.title = "fio" if self.missing else f"fio, {name}"

    def measure(self, path, depth, seconds, cpu):
        # --invalidate=0: otherwise fio drops the file from the cache. --norandommap: blocks may repeat. --gtod_reduce:
        # no clock per read. Only the thread that reads is pinned; fio has others.
        out = process.run(["fio", "--name=reads", f"--filename={path}", "--readonly", "--rw=randread", "--bs=4k",
                           "--ioengine=io_uring", f"--iodepth={depth}", "--time_based",
                           f"--runtime={max(1, round(seconds * 1000))}ms", "--invalidate=0", "--norandommap",
                           "--gtod_reduce=1", "--thread", f"--cpus_allowed={cpu}", "--output-format=json",
                           *self.options], timeout=seconds + 60)
        try:
            job = json.loads(out[out.index("{"):])["jobs"][0]
            read = job["read"]
            if job["error"] or not read["total_ios"]:
                raise Failure(f"{self.title} failed: error {job['error']}")
            cpu_s = job["job_runtime"] / 1000 * (job["usr_cpu"] + job["sys_cpu"]) / 100
            return {"program": "fio", "reads": read["total_ios"], "reads_per_s": read["iops"], "cpu_s": cpu_s,
                    "cpu_us_per_read": cpu_s / read["total_ios"] * 1e6, "busy": (job["usr_cpu"] + job["sys_cpu"]) / 100}
        except (ValueError, KeyError, IndexError):
            raise Failure(f"fio's output is not what fio 3 prints: {out[:200]}") from None


def all_fio(depth):
    """The engine settings to try: how much it submits and awaits at a time."""
    batches = {"one at a time": [],
               f"batches of {depth}": [f"--iodepth_batch={depth}", "--iodepth_batch_complete_min=1",
                                       f"--iodepth_batch_complete_max={depth}"],
               f"batches of {depth // 2}, awaited whole": [f"--iodepth_batch={depth // 2}",
                                                           f"--iodepth_batch_complete_min={depth // 2}",
                                                           f"--iodepth_batch_complete_max={depth}"],
               f"batches of {depth}, awaited whole": [f"--iodepth_batch={depth}", f"--iodepth_batch_complete_min={depth}"]}
    registered = ["--registerfiles", "--fixedbufs"]
    return [Fio(name, options) for name, options in batches.items()] + \
        [Fio(f"registered, {name}", [*registered, *options]) for name, options in batches.items()]
