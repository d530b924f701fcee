"""Ping servers and their measurements."""

import csv
import io
import json
import pathlib
import select
import shutil
import socket
import time

from . import counters, process
from .process import LOOPBACK, Failure

REQUEST = b"*1\r\n$4\r\nPING\r\n"


class Server:
    """How to start a ping server. `missing` says why it cannot be started, or is None."""

    def __init__(self, key, title, command, missing=None):
        self.key, self.title, self.command, self.missing = key, title, command, missing


def all_servers(build, most_connections=8900):
    net = build / "bench" / "net"

    def ours(key, title, path, *options, package=None):
        missing = None if path.exists() else f"not installed ({package})" if package else "not built"
        return Server(key, title, [path, "PORT", *options], missing)

    def by_hand(key, title, *options):
        server = ours(key, title, net / "raw_uring", *options, package="liburing-dev")
        if process.io_uring_is_forbidden():
            server.missing = "io_uring is forbidden here"
        return server

    redis_ping = build / "examples" / "redis_ping"

    def with_environment(key, variable):
        return Server(key, f"coil redis_ping, {variable}", ["env", variable, redis_ping, "PORT"],
                      None if redis_ping.exists() else "not built")

    redis = shutil.which("redis-server")
    return [
        ours("coil", "coil redis_ping", redis_ping),
        ours("coil_park", "coil redis_ping --idle park", redis_ping, "--idle", "park"),
        with_environment("coil_watchdog", "COIL_WATCHDOG=on"),
        with_environment("coil_trace", "COIL_TRACE=/dev/null"),
        with_environment("coil_epoll", "COIL_BACKEND=epoll"),
        by_hand("raw_uring", "raw C io_uring"),
        by_hand("raw_uring_spin", "raw C io_uring, spins 50 µs", "--spin", "50"),
        by_hand("raw_uring_min_wait", "raw C io_uring, min-wait 16:20", "--min-wait", "16:20"),
        ours("raw_epoll", "raw C epoll", net / "raw_epoll"),
        ours("asio", "Asio", net / "asio_ping", package="libasio-dev"),
        ours("libuv", "libuv", net / "libuv_ping", package="libuv1-dev"),
        Server("redis", "redis-server",
               [redis or "redis-server", "--port", "PORT", "--bind", LOOPBACK, "--save", "", "--appendonly", "no",
                "--tcp-backlog", "4096", "--maxclients", str(most_connections + 100), "--daemonize", "no"],
               None if redis else "not installed (redis-server)"),
    ]


class Running:
    """A server that runs while the block does."""

    def __init__(self, server, cpu):
        self.port = process.free_port()
        command = [str(self.port) if part == "PORT" else part for part in server.command]
        self.child = process.start(command, cpu)
        self.pid = self.child.pid
        try:
            process.wait_until_listening(self.child, self.port)
        except BaseException:
            process.end(self.child)
            raise

    def __enter__(self):
        return self

    def __exit__(self, *_):
        process.end(self.child)


class Pinger:
    """Measures servers with the two clients, which are pinned to another CPU than the server. None means any CPU."""

    def __init__(self, build, server_cpu, client_cpu):
        self.load_program = pathlib.Path(build) / "bench" / "net" / "load"
        if not self.load_program.exists():
            raise Failure(f"{self.load_program} is not built")
        self.benchmark = shutil.which("redis-benchmark")
        self.server_cpu, self.client_cpu = server_cpu, client_cpu

    def running(self, server):
        return Running(server, self.server_cpu)

    def load(self, server, connections, seconds, warm_up=0.5, options=()):
        """The saturating client's JSON, server's CPU time included."""
        out = process.run([self.load_program, server.port, "-c", connections, "--seconds", seconds, "--warm-up", warm_up,
                           "--server-pid", server.pid, *options],
                          timeout=seconds + warm_up + 60, cpu=self.client_cpu, check=False, needs=server.child)
        try:
            return json.loads(out)
        except ValueError:
            raise Failure("load printed no result; did the server end?") from None

    def redis_benchmark(self, server, connections, requests, test="ping_mbulk", threads=1):
        """Requests/s and latencies from redis-benchmark, CPU per request from the kernel; None if it is not installed. With
        one thread it has a single event loop in the main thread."""
        if self.benchmark is None:
            return None
        before = counters.cpu_ns(server.pid)
        out = process.run([self.benchmark, "-h", LOOPBACK, "-p", server.port, "-c", connections, "-n", requests,
                           "-t", test, "--csv", *(["--threads", threads] if threads > 1 else [])],
                          timeout=30 + requests / 5000, cpu=self.client_cpu, needs=server.child)
        spent = counters.cpu_ns(server.pid) - before
        rows = [row for row in csv.DictReader(io.StringIO(out[out.find('"test"'):])) if "PING" in (row["test"] or "")]
        if len(rows) != 1:
            raise Failure(f"redis-benchmark printed no result: {out}")
        row = rows[0]
        return {"requests_per_second": float(row["rps"]), "mean_us": float(row["avg_latency_ms"]) * 1000,
                "p50_us": float(row["p50_latency_ms"]) * 1000,
                "p99_us": float(row["p99_latency_ms"]) * 1000, "server_cpu_us_per_request": spent / 1000 / requests}

    def system_calls_per_request(self, server, connections=50, seconds=1.0):
        """System calls per request, counted in a separate run; both numbers include connecting and warming up."""
        with counters.SystemCalls(server.pid) as calls:
            begin = calls.read()
            result = self.load(server, connections, seconds, warm_up=0)
            return (calls.read() - begin) / max(1, result["total_requests"])


def connect_many(port, count):
    found = []
    for _ in range(count):
        connection = socket.create_connection((LOOPBACK, port), timeout=10)
        found.append(connection)
    return found


def ask(connection, request):
    """Sends a request and receives until 2 ms pass without a reply: a long request may be answered once per receive."""
    connection.sendall(request)
    ready = select.poll()
    ready.register(connection, select.POLLIN)
    patience = 10_000
    while ready.poll(patience):
        if not connection.recv(65536):
            raise Failure("the server closed the connection")
        patience = 0 if len(request) < 100 else 2
    if patience == 10_000:
        raise Failure("the server did not answer within 10 s")


def idle_connection_bytes(server, request=REQUEST, count=1000):
    """Private memory of the server per connection that has had one request answered and is idle since.

    The first hundred connections are not counted: they include the server's one-time allocations.
    """
    connections = connect_many(server.port, 100)
    try:
        for connection in connections:
            ask(connection, request)
        time.sleep(0.1)
        before = counters.private_bytes(server.pid)
        new = connect_many(server.port, count)
        connections += new
        for connection in new:
            ask(connection, request)
        time.sleep(0.2)
        return (counters.private_bytes(server.pid) - before) / count
    finally:
        for connection in connections:
            connection.close()


def idle_cpu_ms(server, seconds, connections=1000):
    """CPU time of a server that only holds idle connections, after a load."""
    held = connect_many(server.port, connections)
    try:
        for connection in held:
            ask(connection, REQUEST)
        time.sleep(1)
        before = counters.cpu_ns(server.pid)
        time.sleep(seconds)
        return (counters.cpu_ns(server.pid) - before) / 1e6
    finally:
        for connection in held:
            connection.close()
