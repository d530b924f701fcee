"""Programs with several variants: WAY COUNT CPU CPU (bench/lib/ways.hpp)."""

import json

from . import process


class Way:
    """One variant of a program."""

    def __init__(self, build, folder, cpus, key, title, program, way, count):
        path = build / "bench" / folder / program
        self.key, self.title = key, title
        self.command = [path, way, count, *cpus]
        self.missing = None if path.exists() else "not built"

    def measure(self):
        return json.loads(process.run(self.command, timeout=120))
