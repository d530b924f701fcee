"""Uses coil-top as a person does: drive_coil_top.py screen|page|browser COIL-TOP SOCKET. For coil_top_test.cpp.

screen  on a terminal, with keys
page    the page, by HTTP
browser the page, in headless Chromium, by drive_page.js
"""

import fcntl
import http.server
import json
import os
import pathlib
import pty
import re
import select
import struct
import subprocess
import sys
import tempfile
import termios
import threading
import time
import urllib.error
import urllib.request

PATIENCE = 30


def fail(text):
    print(text)
    sys.exit(1)


class Terminal:
    def __init__(self, command):
        self.pid, self.fd = pty.fork()
        if self.pid == 0:
            fcntl.ioctl(1, termios.TIOCSWINSZ, struct.pack('HHHH', 48, 140, 0, 0))
            os.execvp(command[0], command)
        self.text = ''

    def expect(self, pattern):
        """Waits until the text since the last expectation matches."""
        deadline = time.monotonic() + PATIENCE
        while not (match := re.search(pattern, self.text)):
            left = deadline - time.monotonic()
            if left <= 0 or not select.select([self.fd], [], [], left)[0]:
                fail(f'no {pattern!r} in:\n{self.text}')
            try:
                self.text += os.read(self.fd, 65536).decode(errors='replace')
            except OSError:
                fail(f'ended before {pattern!r}:\n{self.text}')
        self.text = self.text[match.end():]
        return match

    def screen(self, status):
        """The lines of the next screen whose last line matches."""
        deadline = time.monotonic() + 2 * PATIENCE
        while time.monotonic() < deadline:
            match = self.expect(r'\x1b\[H((?:[^\x1b]|\x1b\[K)*)\x1b\[J\x1b\[\d+;1H\x1b\[7m([^\x1b]*)\x1b\[0m')
            if re.search(status, match[2]):
                return match[1].replace('\x1b[K', '').replace('\r', '').split('\n')
        fail(f'no screen with {status!r}')

    def press(self, keys):
        os.write(self.fd, keys.encode())

    def status(self):
        while True:
            try:
                if not os.read(self.fd, 65536):
                    break
            except OSError:
                break
        return os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])


def below(lines, title):
    """The lines of a table, each without its numbers."""
    start = lines.index(title) + 1
    end = lines.index('', start) if '' in lines[start:] else len(lines)
    return [re.sub(r'^ *\d+ ', '', line) for line in lines[start:end]]


def expect_order(lines, title, wanted):
    if (shown := below(lines, title)) != wanted:
        fail(f'{shown} instead of {wanted} below {title} in:\n' + '\n'.join(lines))


def contexts(lines):
    start = next(at for at, line in enumerate(lines) if line.startswith('CONTEXT ')) + 1
    return [line.split()[0] for line in lines[start:start + 2]]


def screen(command):
    waits = 'TASKS BY WHAT THEY WAIT FOR'
    terminal = Terminal(command + ['--delay', '0.2'])
    lines = terminal.screen('sorts contexts by name   o orders tasks by count')
    if contexts(lines) != ['main', 'other']:
        fail(f'{contexts(lines)} by name')
    expect_order(lines, waits, ['sleep', 'mutex', 'recv'])
    terminal.press('s')
    terminal.screen('sorts contexts by load')
    terminal.press('s')
    lines = terminal.screen('sorts contexts by tasks')
    if contexts(lines) != ['other', 'main']:
        fail(f'{contexts(lines)} by tasks')
    terminal.press('o')
    lines = terminal.screen('orders tasks by name')
    expect_order(lines, waits, ['mutex', 'recv', 'sleep'])
    expect_order(lines, 'TASKS BY NAME', ['extra', 'session', 'sleeper', 'watched::waits'])
    stalls = below(lines, 'STALLS, THE LONGEST FIRST')
    if not any("ms main: a coroutine blocked the thread in watched::blocks_for, task 'blocker'" in line for line in stalls):
        fail(f'stalls: {stalls}')
    terminal.press('/')
    terminal.expect(r'filter: ')
    terminal.press('mut\x7ftex\n')
    lines = terminal.screen(r'filters \(mutex\)')
    expect_order(lines, waits, ['mutex'])
    expect_order(lines, 'TASKS BY NAME', [])
    terminal.press('q')
    if (status := terminal.status()) != 0:
        fail(f'status {status}')


def status_of(url, host):
    request = urllib.request.Request(url, headers={'Host': host})
    try:
        with urllib.request.urlopen(request, timeout=PATIENCE) as response:
            return response.status
    except urllib.error.HTTPError as error:
        return error.code


def with_server(command, check):
    server = subprocess.Popen(command + ['--web', '0'], stdout=subprocess.PIPE, text=True)
    try:
        check(server.stdout.readline().strip().replace('localhost', '127.0.0.1'))
    finally:
        server.terminate()
        server.wait()


def page(command):
    def check(url):
        with urllib.request.urlopen(url + '/reading.json', timeout=PATIENCE) as response:
            reading = json.load(response)
        if reading['waits'].get('sleep') != 130 or {c['name'] for c in reading['contexts']} != {'main', 'other'}:
            fail(f'wrong: {reading}')
        if ('watched::blocks_for', 'blocker', False) not in [(s['function'], s['task'], s['lasts']) for s in reading['stalls']]:
            fail(f'wrong: {reading["stalls"]}')
        if not reading['watching'] or {c['name']: c['descriptors'] for c in reading['contexts']} != {'main': 1, 'other': 0}:
            fail(f'wrong: {reading["contexts"]}')
        if (status := status_of(url + '/', 'evil.example')) != 403:
            fail(f'a page of another site is answered with {status}')
        if (status := status_of(url + '/no', 'localhost')) != 404:
            fail(f'{status}')
    with_server(command, check)


class DrivingHandler(http.server.BaseHTTPRequestHandler):
    """The page of coil-top, and beside it one that uses it."""

    def do_GET(self):
        if self.path == '/drive':
            script = pathlib.Path(__file__).with_name('drive_page.js').read_text(encoding='utf-8')
            return self._reply(200, 'text/html; charset=utf-8', '<!doctype html><iframe width="390" height="800"></iframe>'
                               f'<script>{script}</script>'.encode())
        try:
            with urllib.request.urlopen(self.server.url + self.path, timeout=PATIENCE) as response:
                self._reply(response.status, response.headers['Content-Type'], response.read())
        except urllib.error.HTTPError as error:
            self._reply(error.code, 'text/plain', error.read())

    def do_POST(self):
        self.server.problems = json.loads(self.rfile.read(int(self.headers['Content-Length'])))
        self._reply(200, 'text/plain', b'')
        self.server.over.set()

    def _reply(self, status, kind, body):
        self.send_response(status)
        self.send_header('Content-Type', kind)
        self.send_header('Content-Length', str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format, *arguments):
        pass


def browser(command):
    with_server(command, in_chromium)


def in_chromium(url):
    """Sorts, filters and lists, as drive_page.js says."""
    with tempfile.TemporaryDirectory(prefix='coil-chromium-', ignore_cleanup_errors=True) as profile, \
            http.server.ThreadingHTTPServer(('127.0.0.1', 0), DrivingHandler) as server:
        server.url, server.problems, server.over = url, ['the page was not used to its end'], threading.Event()
        server.daemon_threads = True
        threading.Thread(target=server.serve_forever, daemon=True).start()
        said = []
        shown = subprocess.Popen(
            ['chromium', '--headless=new', '--no-sandbox', '--disable-gpu', '--disable-dev-shm-usage',
             '--disable-background-networking', '--no-first-run', f'--user-data-dir={profile}', '--window-size=800,900',
             '--enable-logging=stderr', f'http://127.0.0.1:{server.server_port}/drive'],
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, errors='replace')
        reader = threading.Thread(target=lambda: said.extend(shown.stderr), daemon=True)
        reader.start()
        server.over.wait(6 * PATIENCE)
        shown.terminate()
        shown.wait(PATIENCE)
        reader.join(PATIENCE)
        server.shutdown()
    console = [line for line in said if 'CONSOLE' in line]
    if server.problems or console:
        fail('\n'.join(server.problems + console))


if __name__ == '__main__':
    {'screen': screen, 'page': page, 'browser': browser}[sys.argv[1]]([sys.executable, '-B', *sys.argv[2:]])
