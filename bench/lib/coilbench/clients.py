"""Ping servers with few and many connections: one cell for each server, number of connections and client."""

from . import process, report

# The clients' titles by key.
CLIENTS = {"redis_benchmark": "redis-benchmark", "load": "load"}

# Of redis-benchmark, at least: with fewer, connecting would be part of the figure.
REQUESTS_PER_CONNECTION = 10


class Cell:
    """The runs of one server with one client and one number of connections. A run that failed is None; `failures` has the
    reason for each run in which not every connection was served throughout, whether or not it has figures."""

    def __init__(self):
        self.runs, self.failures = [], []

    def middle(self, name):
        return report.median([run[name] if run else None for run in self.runs])

    def works(self):
        return bool(self.runs) and not self.failures

    def text(self, name, digits, scale):
        """The median; `!` if a run had failed connections, FAILS if there is no figure at all."""
        if not self.runs:
            return ""
        value = self.middle(name)
        if value is None:
            return "FAILS"
        return report.figure(value, digits, scale) + ("" if self.works() else " !")

    def to_json(self):
        return {"runs": self.runs, "failures": self.failures}


def broken(result):
    """What went wrong with the connections of a run of `load`, or None."""
    problems = []
    if result["errors"]:
        problems.append(f"{result['errors']} connections lost or wrong replies")
    if result["stalled"]:
        problems.append("no reply to any connection for seconds")
    elif result["unserved"]:
        problems.append(f"{result['unserved']} connections without a reply in {result['seconds']:.1f} s")
    return ", ".join(problems) or None


class Measurement:
    """Runs the clients. Each run has a new server, so that no run meets connections that an earlier one has left behind."""

    def __init__(self, pinger, options):
        self.pinger, self.options = pinger, options
        self.cells = {} # (client's key, server's key, connections)

    def cell(self, client, server, count):
        return self.cells.setdefault((client, server.key, count), Cell())

    def run_load(self, server, count):
        cell = self.cell("load", server, count)
        try:
            with self.pinger.running(server) as running:
                result = self.pinger.load(running, count, self.options.seconds, warm_up=self.options.warm_up,
                                          options=["--inline"])
        except process.Failure as failure:
            cell.runs.append(None)
            cell.failures.append(str(failure))
            return
        problem = broken(result)
        # Without any request there is no rate, and no CPU time per request.
        cell.runs.append(result if result["requests"] else None)
        if problem or not result["requests"]:
            cell.failures.append(problem or "no request was answered")

    def run_redis_benchmark(self, server, count):
        if self.pinger.benchmark is None:
            return
        cell = self.cell("redis_benchmark", server, count)
        try:
            with self.pinger.running(server) as running:
                cell.runs.append(self.pinger.redis_benchmark(running, count, self.requests(count), "ping_inline",
                                                             self.options.threads))
        except process.Failure as failure: # it ends with an error when the server closes a connection
            cell.runs.append(None)
            cell.failures.append(str(failure))

    def requests(self, count):
        return max(self.options.requests, REQUESTS_PER_CONNECTION * count)

    def failures(self, titles):
        """One line for each failure of a run."""
        return [f"{CLIENTS[client]}, {count} connections, {titles[key]}: {failure}"
                for (client, key, count), cell in self.cells.items() for failure in cell.failures]
