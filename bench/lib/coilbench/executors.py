"""Programs about executors."""

import json

from . import process


class Way:
    """One program in one of its ways."""

    def __init__(self, build, cpus, key, title, program, way, count):
        path = build / "bench" / "exec" / program
        self.key, self.title = key, title
        self.command = [path, way, count, *cpus]
        self.missing = None if path.exists() else "not built"

    def measure(self):
        return json.loads(process.run(self.command, timeout=120))


def ways(build, cpus, quick):
    fib = 22 if quick else 27
    count = 100_000 if quick else 1_000_000
    return [Way(build, cpus, *way) for way in
            (("fib", f"fib({fib}), coil::thread_pool", "fib", "coil", fib),
             ("fib_youngest", f"fib({fib}), mutex + deque, youngest first", "fib", "youngest", fib),
             ("fib_oldest", f"fib({fib}), mutex + deque, oldest first", "fib", "oldest", fib),
             ("execute", "execute, undisturbed, coil::thread_pool", "execute", "coil", count),
             ("mutex", "execute, undisturbed, mutex + deque", "execute", "mutex", count),
             ("stream", "execute and run, coil::thread_pool", "execute", "coil_stream", count),
             ("mutex_stream", "execute and run, mutex + deque", "execute", "mutex_stream", count),
             ("turns", "execute, wait until it ran, coil::thread_pool", "execute", "coil_turns", count // 10),
             ("mutex_turns", "execute, wait until it ran, mutex + deque", "execute", "mutex_turns", count // 10))]
