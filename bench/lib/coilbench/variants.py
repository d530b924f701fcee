"""Programs with several variants: VARIANT COUNT CPU CPU (bench/lib/variants.hpp)."""

import json

from . import process


class Variant:
    """One variant of a program."""

    def __init__(self, build, folder, cpus, key, title, program, variant, count):
        path = build / "bench" / folder / program
        self.key, self.title = key, title
        self.command = [path, variant, count, *cpus]
        self.missing = None if path.exists() else "not built"

    def measure(self):
        return json.loads(process.run(self.command, timeout=120))
