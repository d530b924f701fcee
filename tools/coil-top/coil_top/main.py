"""The command line."""

import argparse
import json
import sys
import time

from .client import Client, Unreachable
from .report import ORDERS, SORT_KEYS, Reader
from .screen import Screen, printable
from .stalls import Stalls
from .tasks import Dump
from .web import serve


def arguments():
    parser = argparse.ArgumentParser(
        prog='coil-top', description='Shows what the contexts of a running program do. The program chooses the path of '
        'its socket: io_context_options::admin_socket.')
    parser.add_argument('socket', help='the path of the admin socket')
    parser.add_argument('-d', '--delay', type=float, default=1.0, metavar='SECONDS', help='between two readings (1)')
    parser.add_argument('--limit', type=int, metavar='N',
                        help='read at most N tasks of each context, the newest and the oldest (10000, with --tasks and --locks '
                        '1000000); 0: do not read the tasks')
    parser.add_argument('--filter', default='', metavar='TEXT', help='show what contains TEXT')
    parser.add_argument('--sort', choices=SORT_KEYS, default='name', help='the order of the contexts')
    parser.add_argument('--order', choices=ORDERS, default='count', help='the order of the tables of tasks and frames')
    what = parser.add_mutually_exclusive_group()
    what.add_argument('--once', action='store_true', help='print one screen and end; the default without a terminal')
    what.add_argument('--json', action='store_true', help='the same as JSON')
    what.add_argument('--tasks', action='store_true', help='print a line for each task, and end')
    what.add_argument('--locks', action='store_true',
                      help='print the locks that tasks wait for, with the tasks that hold them, and end')
    what.add_argument('--stalls', action='store_true',
                      help='print what has blocked contexts, the longest first, with the stacks, and end')
    what.add_argument('--web', type=int, metavar='PORT', help='serve the screen as a page on http://localhost:PORT')
    parser.add_argument('--idle', type=float, metavar='SECONDS',
                        help='with --tasks: those that wait for a TCP peer that has sent nothing for so long, the longest first')
    given = parser.parse_args()
    if given.limit is None:
        given.limit = 1_000_000 if given.tasks or given.locks else 10_000
    if given.delay <= 0 or given.limit < 0:
        parser.error('--delay must be positive, --limit not negative')
    if given.idle is not None and not given.tasks:
        parser.error('--idle needs --tasks')
    return given


def main():
    given = arguments()
    try:
        return _run(given)
    except Unreachable as error:
        print(f'coil-top: {error}', file=sys.stderr)
        return 1
    except (KeyboardInterrupt, BrokenPipeError):
        return 0


def _run(given):
    client = Client(given.socket)
    if given.stalls:
        return _print_stalls(client, given)
    if given.tasks or given.locks:
        return _print_tasks(client, given)
    reader = Reader(client, given.limit)
    reading = reader.read()  # reports an error immediately
    if given.web is not None:
        serve(reader, given.web)
    elif given.json or given.once or not (sys.stdin.isatty() and sys.stdout.isatty()):
        time.sleep(given.delay)  # rates need a second reading
        reading = reader.read()
        if given.json:
            print(json.dumps(reading.document(), indent=2))
        else:
            for line in reading.lines(given.sort, given.filter, order=given.order):
                print(printable(line))
    else:
        Screen(reader, given.delay, given.filter, given.sort, given.order).run()
    return 0


def _print_stalls(client, given):
    stalls = Stalls(client.stalls())
    for stall in stalls.matching(given.filter):
        for line in stall.lines():
            print(printable(line))
    if not stalls.is_watching:
        print('coil-top: the watchdog has not run in this program: start it with COIL_WATCHDOG=on', file=sys.stderr)
    return 0 if stalls.is_watching else 1


def _print_tasks(client, given):
    dump = Dump(client.tasks(given.limit))
    if given.locks:
        for lock in dump.locks():
            lines = list(lock.lines())
            if any(given.filter in line for line in lines):
                print('\n'.join(printable(line) for line in lines))
    else:
        for task in dump.matching(given.filter, given.idle):
            # Children follow their parents, unless the order is another one.
            print(('  ' * task.level if given.idle is None else '') + printable(task.line()))
    for name in dump.blocked:
        print(f'{printable(name)}: no answer within 2 s: a coroutine blocks its thread', file=sys.stderr)
    if not dump.is_complete:
        print('coil-top: not all tasks are shown: see --limit', file=sys.stderr)
    return 1 if dump.blocked else 0
