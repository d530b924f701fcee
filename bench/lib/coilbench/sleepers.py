"""Programs that run many sleeping coroutines."""

import json

from . import process


class Sleepers:
    def __init__(self, key, title, program, package=None, options=()):
        self.key, self.title, self.program, self.options = key, title, program, options
        self.missing = None if program.exists() else f"not installed ({package})" if package else "not built"

    def measure(self, count, cpu, memory=False):
        options = [*self.options, "--memory"] if memory else self.options
        return json.loads(process.run([self.program, count, *options], timeout=120, cpu=cpu))


def bare_ticks(build, cpu):
    """The cost and lateness of waking up every 100 µs on this machine, without a runtime."""
    return json.loads(process.run([build / "bench" / "timers" / "bare_ticks"], timeout=60, cpu=cpu))


def all_sleepers(build):
    timers = build / "bench" / "timers"
    return [Sleepers("coil", "coil", timers / "coil_sleepers"),
            Sleepers("precise", "coil, timer_slack 66 µs", timers / "coil_sleepers", options=["--slack-us", "66"]),
            Sleepers("timerfd", "a heap and a timerfd, by hand", timers / "timerfd_sleepers"),
            Sleepers("asio", "Asio", timers / "asio_sleepers", "libasio-dev")]
