"""Uses coil-top as a person does: drive_coil_top.py screen|page|browser COIL-TOP SOCKET. For coil_top_test.cpp.

screen  on a terminal, with keys
page    the page, by HTTP
browser the page, in headless Chromium
"""

import fcntl
import json
import os
import pty
import re
import select
import struct
import subprocess
import sys
import tempfile
import termios
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
            fcntl.ioctl(1, termios.TIOCSWINSZ, struct.pack('HHHH', 40, 140, 0, 0))
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


def screen(command):
    terminal = Terminal(command + ['--delay', '0.2'])
    terminal.expect(r'CONTEXT +LOAD')
    terminal.expect(r'30 sleep\x1b')
    terminal.expect(r's sorts by name')
    terminal.press('s')
    terminal.expect(r's sorts by load')
    terminal.press('/')
    terminal.expect(r'filter: ')
    terminal.press('mut\x7ftex\n')
    terminal.expect(r'filters \(mutex\)')
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
        if reading['waits'].get('sleep') != 30 or {c['name'] for c in reading['contexts']} != {'main', 'other'}:
            fail(f'wrong: {reading}')
        if (status := status_of(url + '/', 'evil.example')) != 403:
            fail(f'a page of another site is answered with {status}')
        if (status := status_of(url + '/no', 'localhost')) != 404:
            fail(f'{status}')
    with_server(command, check)


def browser(command):
    with_server(command, in_chromium)


def in_chromium(url):
    """What the page shows after its script has run."""
    with tempfile.TemporaryDirectory(prefix='coil-chromium-') as profile:
        shown = subprocess.run(
            ['chromium', '--headless=new', '--no-sandbox', '--disable-gpu', '--disable-dev-shm-usage',
             f'--user-data-dir={profile}', '--window-size=390,800', '--virtual-time-budget=3000', '--enable-logging=stderr',
             '--dump-dom', url], capture_output=True, text=True, timeout=4 * PATIENCE)
    if 'CONSOLE' in shown.stderr:
        fail('the console of the page: ' + shown.stderr)
    for wanted in ('<td>sleep</td><td>30</td>', '<td>mutex</td><td>20</td>', '<td>main</td>', '<td>sleeper</td>'):
        if wanted not in shown.stdout:
            fail(f'no {wanted} in:\n{shown.stdout}')


if __name__ == '__main__':
    {'screen': screen, 'page': page, 'browser': browser}[sys.argv[1]]([sys.executable, '-B', *sys.argv[2:]])
