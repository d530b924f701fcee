"""The terminal screen: redrawn at each interval, with escape sequences of ECMA-48."""

import os
import select
import shutil
import sys
import termios
import time
import tty

from .client import Unreachable
from .report import ORDERS, SORT_KEYS

HELP = 'q quits   s sorts contexts by {}   o orders tasks by {}   / filters{}   space reads at once'


class Screen:
    def __init__(self, reader, interval, matching, sort, order):
        self.reader = reader
        self.interval = interval
        self.matching = matching
        self.sort = sort
        self.order = order

    def run(self):
        descriptor = sys.stdin.fileno()
        before = termios.tcgetattr(descriptor)
        sys.stdout.write('\x1b[?1049h\x1b[?25l')  # the other screen, without a cursor
        try:
            tty.setcbreak(descriptor)
            self._loop(descriptor)
        finally:
            termios.tcsetattr(descriptor, termios.TCSADRAIN, before)
            sys.stdout.write('\x1b[?25h\x1b[?1049l')
            sys.stdout.flush()

    def _loop(self, descriptor):
        while True:
            try:
                reading = self.reader.read()
                lines = list(reading.lines(self.sort, self.matching, order=self.order))
            except Unreachable as error:
                lines = [str(error), 'Has the program ended? It is asked again.']
            self._draw(lines)
            if not self._wait(descriptor, time.monotonic() + self.interval):
                return

    def _wait(self, descriptor, deadline):
        """Handles keys until the deadline. False: the user quits."""
        while (left := deadline - time.monotonic()) > 0:
            if not select.select([descriptor], [], [], left)[0]:
                return True
            key = os.read(descriptor, 1).decode(errors='replace')
            if key in ('q', ''):
                return False
            if key == 's':
                self.sort = SORT_KEYS[(SORT_KEYS.index(self.sort) + 1) % len(SORT_KEYS)]
                return True
            if key == 'o':
                self.order = ORDERS[(ORDERS.index(self.order) + 1) % len(ORDERS)]
                return True
            if key == '/':
                self.matching = self._read_filter(descriptor)
                return True
            if key == ' ':
                return True
        return True

    def _read_filter(self, descriptor):
        text = ''
        while True:
            self._status(f'filter: {text}')
            key = os.read(descriptor, 1).decode(errors='replace')
            if key in ('\n', '\r', '\x1b', ''):
                return text if key != '\x1b' else ''
            text = text[:-1] if key in ('\x7f', '\b') else text + key

    def _draw(self, lines):
        width, height = shutil.get_terminal_size()
        shown = [printable(line)[:width] for line in lines[:height - 1]]
        sys.stdout.write('\x1b[H' + ''.join(line + '\x1b[K\r\n' for line in shown) + '\x1b[J')
        filtered = f' ({self.matching})' if self.matching else ''
        self._status(HELP.format(self.sort, self.order, filtered))

    @staticmethod
    def _status(text):
        width, height = shutil.get_terminal_size()
        sys.stdout.write(f'\x1b[{height};1H\x1b[7m{printable(text)[:width]:<{width}}\x1b[0m')
        sys.stdout.flush()


def printable(text):
    """Names come from the program: they must not control the terminal."""
    return ''.join(character if character.isprintable() else '?' for character in text)
