"""Peers that misbehave, for the tests of the servers in examples/.

A test of a server is a Python script that begins with `from hostile import *`, and is started by `hostile_test` of
common.bash with the server's port, process id and output as arguments.
"""

import os
import re
import resource
import selectors
import signal
import socket
import struct
import sys
import threading
import time

PATIENCE = 60  # seconds to wait for something that must happen


def use_all_descriptors():
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))


def connect(port, receive_buffer=None):
    s = socket.socket()
    s.settimeout(PATIENCE)
    if receive_buffer is not None:
        s.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_buffer)
    s.connect(("127.0.0.1", port))
    return s


def reset(s):
    """Ends a connection as a crash of the peer does."""
    s.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    s.close()


def rest_of(s):
    """The data received until the connection ends or is reset."""
    data = b""
    try:
        while chunk := s.recv(65536):
            data += chunk
    except (ConnectionResetError, BrokenPipeError):
        pass
    return data


def never_reads(port, data=b""):
    """A client that sends and never receives. Its kernel buffers little."""
    s = connect(port, receive_buffer=2048)
    s.sendall(data)
    return s


class Drip(threading.Thread):
    """A client that sends a byte of an endless text at a time. `answer` is what it had received when it was ended."""

    def __init__(self, port, text, pause=0.05):
        super().__init__(daemon=True)
        self.socket, self.text, self.pause = connect(port), text, pause
        self.answer, self.lasted = None, None
        self.start()

    def run(self):
        begin, at = time.monotonic(), 0
        self.socket.settimeout(self.pause)
        answer = b""
        while True:
            try:
                chunk = self.socket.recv(4096)
                if not chunk:
                    break
                answer += chunk
            except TimeoutError:
                pass
            except OSError:
                break
            try:
                self.socket.send(self.text[at % len(self.text) :][:1])
                at += 1
            except OSError:
                pass  # what was received is still to be read
        self.lasted, self.answer = time.monotonic() - begin, answer

    def must_end(self):
        self.join(PATIENCE)
        assert not self.is_alive(), "a client that sends a byte at a time is served for ever"
        return self.answer


class Throughout(threading.Thread):
    """A well-behaved client: calls talk() again and again while others misbehave."""

    def __init__(self, talk):
        super().__init__(daemon=True)
        self.talk, self.calls, self.longest, self.error, self.over = talk, 0, 0.0, None, threading.Event()
        self.start()

    def run(self):
        while not self.over.wait(0.005):
            begin = time.monotonic()
            try:
                self.talk()
            except BaseException as error:
                self.error = error
                return
            self.calls += 1
            self.longest = max(self.longest, time.monotonic() - begin)

    def finish(self, limit=20.0):
        self.over.set()
        self.join(PATIENCE)
        assert self.error is None, f"the well-behaved client was not served: {self.error!r}"
        assert self.calls > 0 and not self.is_alive(), "the well-behaved client was not served"
        assert self.longest < limit, f"the well-behaved client waited {self.longest} s"


def crowd(server, question, is_answer=None, limit=120):
    """More clients at once than the server has descriptors for. Each sends the question, waits until is_answer(bytes
    received) and closes; without is_answer it shuts down its side and waits for the server to close. Clients that are
    refused or reset before that fail the test."""
    use_all_descriptors()
    count = crowd_size()
    waiting = selectors.DefaultSelector()
    for _ in range(count):
        s = socket.socket()
        s.setblocking(False)
        s.connect_ex(("127.0.0.1", server.port))
        waiting.register(s, selectors.EVENT_WRITE, bytearray())
    server.waits_for("held back", 1)
    deadline = time.monotonic() + limit
    left = count
    while left > 0:
        assert time.monotonic() < deadline, f"{left} of {count} clients without an answer"
        for key, events in waiting.select(1):
            s, got = key.fileobj, key.data
            if events & selectors.EVENT_WRITE:
                s.send(question)
                if is_answer is None:
                    s.shutdown(socket.SHUT_WR)
                waiting.modify(s, selectors.EVENT_READ, got)
                continue
            chunk = s.recv(65536)
            got += chunk
            if is_answer(bytes(got)) if is_answer else not chunk:
                waiting.unregister(s)
                s.close()
                left -= 1
            else:
                assert chunk, f"ended after {bytes(got)!r}"


def crowd_size():
    """Clients of crowd(): more than there are descriptors for."""
    return int(os.environ.get("HOSTILE_CLIENTS", "400"))


class Server:
    """The server under test, from the arguments of the script."""

    def __init__(self):
        self.port, self.pid, self.out = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3]

    def signal(self, number):
        os.kill(self.pid, number)

    def must_stop(self, within):
        """SIGTERM ends it in time, although the connections of this script are open."""
        self.signal(signal.SIGTERM)
        begin = time.monotonic()
        while self.is_running():
            assert time.monotonic() - begin < within, f"it has not stopped after {within} s"
            time.sleep(0.01)

    def is_running(self):
        try:
            with open(f"/proc/{self.pid}/stat") as file:
                return file.read().rsplit(")")[1].split()[0] != "Z"
        except (FileNotFoundError, ProcessLookupError):
            return False

    def metrics(self):
        """Its figures: {"accepted": 3, "reader too slow": 1, ...}."""
        before = os.path.getsize(self.out)
        self.signal(signal.SIGUSR1)
        deadline = time.monotonic() + PATIENCE
        text = ""
        while text.count("\n") < 2:
            assert time.monotonic() < deadline, "it does not report its metrics"
            time.sleep(0.01)
            with open(self.out) as file:
                file.seek(before)
                text = file.read()
        found = {name: int(n) for n, name in re.findall(r"(\d+) ([a-z][a-z ]*)", text)}
        found.update((name, int(n)) for name, n in re.findall(r"([a-z][a-z ]*): (\d+)", text))
        return found

    def waits_for(self, name, least):
        deadline = time.monotonic() + PATIENCE
        while (now := self.metrics())[name] < least:
            assert time.monotonic() < deadline, f"'{name}' is {now[name]}, not {least}: {now}"
            time.sleep(0.02)

    def waits_until_closed(self, most=0):
        deadline = time.monotonic() + PATIENCE
        while (now := self.metrics())["open"] > most:
            assert time.monotonic() < deadline, f"connections stay open: {now}"
            time.sleep(0.02)
