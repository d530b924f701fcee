"""Programs that measure executors."""

import json

from . import process
from .variants import Variant


class ManyCalls:
    """10 000 concurrent blocking calls on 64 threads, with a ticker on the same context."""

    key, title = "many", "10,000 blocking calls on 64 threads"

    def __init__(self, build):
        path = build / "bench" / "exec" / "many_calls"
        self.command = [path, 10_000, 64, 1000]
        self.missing = None if path.exists() else "not built"

    def measure(self):
        result = json.loads(process.run(self.command, timeout=120))
        each = result["ms"] * 1e6 / result["calls"]
        return {**result, "ns": each, "cpu_ns": result["cpu_ms"] * 1e6 / result["calls"]}


def variants(build, cpus, quick):
    fib = 22 if quick else 27
    count = 100_000 if quick else 1_000_000
    trips = 300 if quick else 3000
    return [ManyCalls(build)] + [Variant(build, "exec", cpus, *variant) for variant in
            (("fib", f"fib({fib}), coil::thread_pool", "fib", "coil", fib),
             ("fib_youngest", f"fib({fib}), mutex + deque, youngest first", "fib", "youngest", fib),
             ("fib_oldest", f"fib({fib}), mutex + deque, oldest first", "fib", "oldest", fib),
             ("execute", "execute, undisturbed, coil::thread_pool", "execute", "coil", count),
             ("mutex", "execute, undisturbed, mutex + deque", "execute", "mutex", count),
             ("stream", "execute and run, coil::thread_pool", "execute", "coil_stream", count),
             ("mutex_stream", "execute and run, mutex + deque", "execute", "mutex_stream", count),
             ("turns", "execute, wait until it ran, coil::thread_pool", "execute", "coil_turns", count // 10),
             ("mutex_turns", "execute, wait until it ran, mutex + deque", "execute", "mutex_turns", count // 10),
             ("eventfd", "a call there and back, eventfds", "blocking", "eventfd", trips),
             ("blocking", "blocking(f)", "blocking", "blocking", trips),
             ("parked", "blocking(f), context parks", "blocking", "parked", trips))]
