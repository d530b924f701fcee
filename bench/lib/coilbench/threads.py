"""Programs that cross between threads."""

import json

from . import process


class Crossing:
    """One variant of a program."""

    def __init__(self, build, key, title, program, *arguments):
        path = build / "bench" / "threads" / program
        self.key, self.title = key, title
        self.command = [path, *arguments]
        self.missing = None if path.exists() else "not built"

    def measure(self):
        return json.loads(process.run(self.command, timeout=120))


def hops(build, cpus, batches, sleeping_batches):
    """Hops between two threads, each on its own CPU."""
    return [Crossing(build, "bare_spin", "atomic word, spinning", "bare_hops", "atomic", batches, *cpus),
            Crossing(build, "bare_object", "address of an object, spinning", "bare_hops", "object", batches, *cpus),
            Crossing(build, "coil_spin", "coil, spinning", "coil_hops", "spin", batches, *cpus),
            Crossing(build, "bare_park", "eventfd, blocking read", "bare_hops", "eventfd", sleeping_batches, *cpus),
            Crossing(build, "coil_park", "coil, parked", "coil_hops", "park", sleeping_batches, *cpus)]


def posts(build, cpus, messages, producers):
    """Messages from many threads to one: unpinned, and with the consumer on a CPU of its own."""
    programs = [("coil_node", "coil, nodes", "coil_posts", "node"),
                ("coil_spawn", "coil, a task each", "coil_posts", "spawn"),
                ("mutex_one", "mutex + deque, one at a time", "mutex_posts", "one"),
                ("mutex_all", "mutex + deque, all at once", "mutex_posts", "all")]
    return [Crossing(build, f"{key}{suffix}", f"{title}{note}", program, variant, messages, producers, *places)
            for suffix, note, places in (("", "", (-1, -1)), ("_pinned", ", pinned", cpus))
            for key, title, program, variant in programs]


def spawns(build, tasks):
    """Top-level tasks that complete immediately."""
    return [Crossing(build, key, title, "coil_spawns", key, tasks)
            for key, title in (("burst", "one context, 100 at a time, from a task"),
                               ("heap", "one context, all at once, from a task"),
                               ("inbox", "one context, by main, before run()"),
                               ("before", "runtime of 2, by main, before run()"),
                               ("during", "runtime of 2, by main, during run()"))]
