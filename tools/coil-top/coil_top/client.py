"""Requests to an admin socket: HTTP/1.0 on a Unix socket."""

import http.client
import json
import socket


class Unreachable(Exception):
    """The message says which socket, and why."""


class Missing(Unreachable):
    """The program does not know the request."""


class _UnixConnection(http.client.HTTPConnection):
    def __init__(self, path, timeout):
        super().__init__('localhost', timeout=timeout)
        self.path = path

    def connect(self):
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.sock.settimeout(self.timeout)
        self.sock.connect(self.path)


class Client:
    # Contexts whose threads are blocked are reported one after the other, after two seconds each.
    def __init__(self, path, timeout=60):
        self.path = path
        self.timeout = timeout

    def get(self, target):
        connection = _UnixConnection(self.path, self.timeout)
        try:
            connection.request('GET', target)
            response = connection.getresponse()
            body = response.read().decode(errors='replace')
        except (OSError, http.client.HTTPException) as error:
            raise Unreachable(f'{self.path}: {error}') from error
        finally:
            connection.close()
        if response.status == 404:
            raise Missing(f'{self.path}: {target} is unknown to the program')
        if response.status != 200:
            raise Unreachable(f'{self.path}: {target}: {response.status} {response.reason}')
        return body

    def process(self):
        return json.loads(self.get('/process.json'))

    def metrics(self):
        return self.get('/metrics')

    def stalls(self):
        return json.loads(self.get('/stalls.json'))

    def tasks(self, limit):
        return json.loads(self.get(f'/tasks.json?limit={limit}'))
