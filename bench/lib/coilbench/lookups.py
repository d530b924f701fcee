"""Lookups in data structures of several sizes."""

import json

from . import process

STRUCTURES = (("binary", "binary search", "std::lower_bound"), ("hash", "hash table with chains", "plain probe"),
              ("btree", "B-tree", "plain search"), ("chain", "linked list, 8 hops", "plain loop"))


def size_text(size):
    return f"{size >> 30} GiB" if size >= 1 << 30 else f"{size >> 20} MiB" if size >= 1 << 20 else f"{size >> 10} KiB"


class Lookups:
    """One structure of one size. A measurement has the keys plain, hand_WIDTH and coil_WIDTH: ns of CPU per lookup for each
    of the alternating rounds."""

    def __init__(self, build, structure, size, cpu):
        self.key, self.title, self.plain = structure
        self.size, self.cpu = size, cpu
        self.program = build / "bench" / "interleave" / "lookups"

    def measure(self, count, rounds, huge, widths):
        return json.loads(process.run([self.program, self.key, self.size, count, rounds, int(huge), *widths],
                                      timeout=1200, cpu=self.cpu))
