"""Receivers of one TCP stream and their costs."""

import hashlib
import json
import os
import pathlib
import select
import shutil
import statistics
import subprocess

from . import process
from .process import Failure

# stream_source repeats this block.
BLOCK = bytes(ord("!") + i % 90 for i in range(256 * 1024))

SOCAT_LISTENS = "TCP4-LISTEN:PORT,bind=127.0.0.1"


class Receiver:
    def __init__(self, key, title, command, missing=None):
        self.key, self.title, self.command, self.missing = key, title, command, missing


def all_receivers(build):
    sink = build / "bench" / "net" / "raw_sink"
    netcat = build / "examples" / "netcat"
    nc, traditional, socat = (shutil.which(name) for name in ("nc.openbsd", "nc.traditional", "socat"))

    def built(path):
        return None if path.exists() else "not built"

    return [
        Receiver("coil", "coil netcat", [netcat, "-l", "PORT"], built(netcat)),
        Receiver("nc", "OpenBSD nc", [nc or "nc.openbsd", "-d", "-l", "127.0.0.1", "PORT"],
                 None if nc else "not installed (netcat-openbsd)"),
        Receiver("traditional", "traditional nc", [traditional or "nc.traditional", "-l", "-s", "127.0.0.1", "-p", "PORT"],
                 None if traditional else "not installed (netcat-traditional)"),
        Receiver("socat", "socat", [socat or "socat", "-u", SOCAT_LISTENS, "STDOUT"],
                 None if socat else "not installed (socat)"),
        Receiver("raw_copy", "raw C, recv and write 64 KiB", [sink, "PORT"], built(sink)),
        Receiver("raw_splice", "raw C, splice", [sink, "PORT", "--splice"], built(sink)),
    ]


class Steadiness:
    """Mean and standard deviation of a quantity over the seconds of a stream. There are at least two."""

    def __init__(self, values):
        self.mean = statistics.mean(values)
        self.deviation = statistics.stdev(values)
        self.lowest = min(values)
        self.empty = sum(value == 0 for value in values)

    def relative(self):
        return self.deviation / self.mean if self.mean else None


class Streamer:
    def __init__(self, build, receiver_cpu, sender_cpu, by_sendfile=False):
        self.source = pathlib.Path(build) / "bench" / "net" / "stream_source"
        if not self.source.exists():
            raise Failure(f"{self.source} is not built")
        self.options = ["--sendfile"] if by_sendfile else []
        self.receiver_cpu, self.sender_cpu = receiver_cpu, sender_cpu

    def _start(self, receiver, stdout):
        port = process.free_port()
        command = [{"PORT": port, SOCAT_LISTENS: SOCAT_LISTENS.replace("PORT", str(port))}.get(part, part)
                   for part in receiver.command]
        child = process.start(command, self.receiver_cpu, stdout)
        process.wait_until_listening(child, port)
        return child, port

    def measure(self, receiver, mib):
        """MB/s as the sender saw it until the receiver closed, and the receiver's CPU seconds per GB, start included."""
        child, port = self._start(receiver, subprocess.DEVNULL)
        try:
            sent = json.loads(process.run([self.source, port, mib, *self.options], timeout=30 + mib / 50,
                                          cpu=self.sender_cpu))
            cpu = process.wait_for_end(child, timeout=10)
        finally:
            process.end(child)
        return {"mb_per_s": sent["mb_per_s"], "cpu_s_per_gb": cpu / (sent["bytes"] / 1e9), "cpu_s": cpu,
                "seconds": sent["seconds"]}

    def measure_seconds(self, receiver, seconds):
        """Streams for a number of seconds; returns the bytes and the receiver's CPU seconds of each, and the receiver's whole
        CPU time, start included."""
        child, port = self._start(receiver, subprocess.DEVNULL)
        try:
            sent = json.loads(process.run([self.source, port, "--seconds", seconds, "--receiver", child.pid, *self.options],
                                          timeout=seconds + 30, cpu=self.sender_cpu))
            cpu = process.wait_for_end(child, timeout=10)
        finally:
            process.end(child)
        return {"mb_per_s": [count / 1e6 for count in sent["bytes_of_seconds"]],
                "cpu_s": sent["receiver_cpu_s_of_seconds"], "cpu_s_per_gb": cpu / (sent["bytes"] / 1e9)}

    def verify(self, receiver, mib=32):
        """Checks that every byte arrives, in order. Returns None or a message."""
        child, port = self._start(receiver, subprocess.PIPE)
        source = process.start([self.source, port, mib, *self.options], self.sender_cpu)
        try:
            got, count = hashlib.sha256(), 0
            while select.select([child.stdout], [], [], 20)[0]:
                chunk = os.read(child.stdout.fileno(), 1 << 20)
                if not chunk:
                    break
                got.update(chunk)
                count += len(chunk)
        finally:
            process.end(source)
            process.end(child)
        wanted = hashlib.sha256()
        for _ in range(mib * 4):
            wanted.update(BLOCK)
        if got.digest() != wanted.digest():
            return f"{receiver.title} did not pass on what was sent: {count} of {mib << 20} bytes"
        return None
