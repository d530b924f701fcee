#!/usr/bin/env python3
"""Checks the debuggers' commands.

    check.py gdb|lldb PROGRAM COUNT
    check.py gdb PROGRAM --page [--update]
    check.py gdb PROGRAM --auto-load BUILD-DIRECTORY

PROGRAM is built from server.cpp. It runs in the debugger, which makes a core file; the commands must say the same about
both as dump_tasks() does in the program. --page: the session in docs/guide/observing.md is what gdb prints.
--auto-load: gdb loads the installed script with the program."""

import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
from collections import Counter

from sessions import DEBUGGERS, Skip

HERE = pathlib.Path(__file__).resolve().parent
PAGE = HERE.parent.parent / 'docs' / 'guide' / 'observing.md'
# For each kind of wait the number of tasks in all contexts, with COUNT connections of each kind: COUNT * first + second.
KINDS = {'recv': (1, 2), 'sleep': (3, 2), 'mutex': (1, 2), 'channel::recv': (1, 0), 'event': (1, 5), 'semaphore': (1, 0),
         'the children of the scope or supervisor': (1, 0), 'work on another thread': (1, 0), 'children': (0, 3),
         'running, or suspended for an unknown reason': (0, 1)}
PAUSE = 0.3  # seconds
problems = []


def expect(condition, text):
    if not condition:
        problems.append(text)


# ---- what dump_tasks() says


def kind_of(text):
    """The kind of a wait: its text without descriptors, addresses and times."""
    text = re.sub(r', locked by task 0x[0-9a-f]+ .*$', '', text)
    text = re.sub(r'(?: at 0x[0-9a-f]+(?:, \d+ of \d+)?|, some time left)$', '', text)
    return re.sub(r'^\d+ child(?:ren)?$', 'children', re.sub(r' fd \d+.*$', '', text))


def without_peer(text):
    return re.sub(r'( fd \d+) 127\.0\.0\.1:\d+(?:, nothing received for -?[0-9.]+ s)?', r'\1', text)


def without_time(text):
    text = re.sub(r', for [0-9.]+ s(?=, limit )', ', for some time', text)
    text = re.sub(r", limit in -?[0-9.]+ s(?: at the context's last turn)?", ', limit in some time', text)
    return re.sub(r"-?[0-9.]+ s left(?: at the context's last turn)?", 'some time left', text)


def dumped(path):
    """The tasks by their addresses: name, wait and last coroutine."""
    found, last = {}, None
    for line in path.read_text().splitlines():
        task = re.match(r" +(?:task|child) (0x[0-9a-f]+)(?: '(.*?)')?(?: spawned at .*?)?: (.*)$", line)
        function = re.match(r' +#0 (.*) \[.*\]$', line)
        if task:
            last = task[1]
            # The limit of a task is known to dump_tasks() only, that of an operation to both.
            wait = task[3] if ' fd ' in task[3] else task[3].partition(', limit in ')[0]
            found[last] = (task[2] or '', without_time(without_peer(wait)), '')
        elif function:
            found[last] = found[last][:2] + (function[1],)
    return found


def listed(output):
    """The same from what `coil tasks` prints."""
    found = {}
    for line in output.splitlines():
        task = re.match(r" *\[\d+\] (?:task|child) (0x[0-9a-f]+)(?: '(.*?)')?: (.*)$", line)
        if task:
            wait, _, function = task[3].partition(' in server::')
            found[task[1]] = (task[2] or '', without_time(wait), 'server::' + function if function else '')
    return found


def summed(output):
    counts = Counter()
    for line in output.splitlines():
        count = re.match(r' +(\d+) (.*)$', line)
        if count:
            counts[count[2]] += int(count[1])
    return counts


# ---- the tests


def check_tasks(where, said, path, count):
    tasks = dumped(path)
    lists = listed(said['coil tasks'])
    wrong = [one for one in tasks.keys() | lists.keys() if tasks.get(one) != lists.get(one)]
    expect(not wrong, '%s: %d tasks differ from dump_tasks(): %s' % (
        where, len(wrong), [(one, tasks.get(one), lists.get(one)) for one in wrong[:3]]))
    counts = Counter(kind_of(wait) for _, wait, _ in tasks.values())
    expect(summed(said['coil tasks --summary']) == counts, '%s: %s instead of %s' % (
        where, said['coil tasks --summary'], counts))
    wanted = Counter({kind: times * count + more for kind, (times, more) in KINDS.items()})
    expect(counts == wanted, 'dump_tasks(): %s instead of %s' % (counts, wanted))
    # A debugger does not ask the kernel, so it shows no peers.
    peers = re.findall(r"'connection \d+' spawned at .*: recv fd \d+ 127\.0\.0\.1:(\d+), nothing received for ",
                       path.read_text())
    expect(len(set(peers)) == len(peers) == count, 'dump_tasks() shows %d peers: %s' % (len(set(peers)), peers[:3]))
    filtered = said["coil tasks 'connection 0'"]
    expect(len(listed(filtered)) == 1 and ': recv fd ' in filtered, where + ': the filter: ' + filtered)


def line_with(text):
    return next(n for n, line in enumerate((HERE / 'server.cpp').read_text().splitlines(), 1) if text in line)


def check_chain(debugger, where, said):
    """Clang's labels tell where a coroutine is suspended, and gdb reads them; otherwise it is where it is defined."""
    exact = debugger == 'gdb' and os.environ.get('COIL_KNOWS_LINES') == '1'
    lines = [('receives(int)', line_with('co_await io::recv(fd') if exact else line_with('task<int> receives(')),
             ('serves(coil::net::socket, int)', line_with('co_await receives(client') if exact else line_with('task<> serves('))]
    bt = said['coil bt connection 0']
    for number, (function, line) in enumerate(lines):
        wanted = r'^#%d +0x[0-9a-f]+ server::%s at server.cpp:%d$' % (number, re.escape(function), line)
        expect(re.search(wanted, bt, re.M), '%s: no %s:%d in %s' % (where, function, line, bt))
    expect("'connection 0' spawned at server.cpp:%d: recv fd " % line_with('co_spawn(serves(') in bt, where + ': ' + bt)
    children = said['coil bt in scope 0']
    expect(re.search(r'^#0 .*sleeps.*\n#1 .*joins', children, re.M), where + ': ' + children)


def check_holder(where, said):
    expect(re.search(r"^task 0x[0-9a-f]+ 'the waiter'.*: mutex at 0x[0-9a-f]+, locked by task 0x[0-9a-f]+ 'the holder'$",
                     said['coil bt the waiter'], re.M), where + ': ' + said['coil bt the waiter'])


def check_variables(where, said, program):
    variables = said["coil locals 'connection 0' 1"]
    expect('serves(coil::net::socket, int)' in variables, where + ': ' + variables)
    # Clang describes them at -O0 only.
    if program.endswith('O0') or os.environ.get('COIL_KNOWS_LOCALS') == '1':
        for text in ('line = "a line of connection 0"', 'connection = 0'):
            expect(text in variables, '%s: no %s in %s' % (where, text, variables))


def check_clock(where, said, is_live):
    """A sleep's time goes on while the program is stopped, but not in a core file, which says so."""
    shown = [re.search(r"'in scope 0': sleep, ([0-9.]+) s left(.*?) in server::", said[command])
             for command in ('coil tasks', 'coil tasks in scope 0')]
    expect(all(shown), where + ': ' + said['coil tasks in scope 0'])
    if all(shown):
        passed = float(shown[0][1]) - float(shown[1][1])
        expect(passed >= PAUSE if is_live else passed == 0, '%s: %s s less are left' % (where, passed))
        expect(shown[1][2] == ('' if is_live else " at the context's last turn"), where + ': ' + shown[1][0])


def check_printers(where, said, program, count):
    texts = {'server::held_mutex': 'locked, %d waiting' % (count + 2),
             'server::empty_channel': '0 of 1 elements, receivers wait', 'server::quiet_socket': 'fd '}
    if program.endswith('O0'):
        texts |= {'some_task': 'server::sleeps(), not started, 0x', 'some_result': '-ECONNRESET (-104)'}
    for name, text in texts.items():
        expect(text in said['print ' + name], '%s: %s is %s' % (where, name, said['print ' + name]))


def check_contexts(where, said, count):
    contexts = said['coil contexts']
    expect(re.search(r'^context main: %d tasks, running on thread \d+ \(LWP [^)]*\), event' % (8 * count + 6), contexts, re.M),
           where + ': ' + contexts)
    expect(re.search(r'^context other: %d tasks?, running on thread \d+ \(LWP' % count, contexts, re.M),
           where + ': ' + contexts)
    expect(contexts.count('scope or supervisor 0x') == count, where + ': ' + contexts)


def check(debugger, program, count, folder):
    session = DEBUGGERS[debugger](program)
    commands = ['coil contexts', 'coil tasks', 'coil tasks --summary', "coil tasks 'connection 0'",
                'coil bt connection 0', 'coil bt in scope 0', 'coil bt the waiter', "coil locals 'connection 0' 1",
                'print server::held_mutex', 'print server::empty_channel', 'print server::quiet_socket',
                'print some_task', 'print some_result', session.pause % PAUSE, 'coil tasks in scope 0']
    said = session.live(commands, [str(count), str(folder / 'dump')], folder / 'core')
    after = session.core(commands, folder / 'core')
    for where, one in ((debugger, said), (debugger + ', core file', after)):
        check_tasks(where, one, folder / 'dump', count)
        check_contexts(where, one, count)
        check_chain(debugger, where, one)
        check_holder(where, one)
        check_variables(where, one, program)
        check_printers(where, one, program, count)
        check_clock(where, one, one is said)
    nowhere = session.without_process(['coil tasks'])
    expect('coil: ' in nowhere and 'Traceback' not in nowhere, 'without a process: ' + nowhere)


# ---- the page


def normal(text):
    """The text without what differs from run to run: addresses, process ids, times."""
    text = re.sub(r'0x[0-9a-f]{5,}', '0x7ffff7...', text)
    text = re.sub(r'LWP \d+', 'LWP 4711', text)
    text = re.sub(r'\bfd (= )?\d+', r'fd \g<1>17', text)
    return re.sub(r'"debugged_O0"', '"server"', re.sub(r'\d+\.\d+ s left', '3599.970 s left', text))


def check_page(program, folder, update):
    if os.environ.get('COIL_KNOWS_LINES') != '1':
        raise Skip('the page shows lines of suspensions, which need Clang 22')
    block = re.compile(r'(<!-- session -->\n```text\n)(.*?)(```\n)', re.S)
    page = PAGE.read_text()
    shown = block.search(page)[2]
    commands = re.findall(r'^\(gdb\) (.*)$', shown, re.M)
    said = DEBUGGERS['gdb'](program).live(commands, ['625', str(folder / 'dump')], folder / 'core')
    made = ''.join('(gdb) %s\n%s\n' % (command, said[command].strip('\n')) for command in commands)
    made = shorten(normal(made))
    if update:
        PAGE.write_text(block.sub(lambda m: m[1] + made + m[3], page))
    expect(update or made == shown, 'docs/guide/observing.md shows\n%s\ninstead of\n%s' % (shown, made))


def shorten(text):
    """Equal lines in a row are shown once."""
    lines = []
    for line in text.splitlines():
        if not line.startswith('  scope or supervisor') or 'scope or supervisor' not in lines[-1]:
            if lines and line.startswith('  scope or supervisor'):
                line = '  scope or supervisor ...'
            lines.append(line)
    return '\n'.join(lines) + '\n'


# ---- auto-load


def check_auto_load(program, folder, build):
    """The program names the script of the configured installation; its copy names the one installed here."""
    if shutil.which('objcopy') is None:
        raise Skip('objcopy is not installed: binutils')
    section, copy = folder / 'section', folder / 'program'
    subprocess.run(['cmake', '--install', build, '--prefix', folder / 'prefix', '--component', 'debuggers'],
                   check=True, stdout=subprocess.DEVNULL)
    subprocess.run(['objcopy', '--dump-section', '.debug_gdb_scripts=%s' % section, program, copy], check=True)
    named = section.read_bytes()
    expect(named.startswith(b'\1/') and named.endswith(b'/gdb/auto-load/coil_gdb.py\0'), 'the program names %s' % named)
    script = next(folder.glob('prefix/**/auto-load/coil_gdb.py'))
    section.write_bytes(b'\1' + bytes(script) + b'\0')
    subprocess.run(['objcopy', '--update-section', '.debug_gdb_scripts=%s' % section, program, copy], check=True)
    gdb = DEBUGGERS['gdb'](program)
    for trusted, wanted in ((script.parent, 'coil tasks --summary'), ('/nowhere', 'auto-loading has been declined')):
        said = gdb.run(['-nx', '-batch', '-iex', 'set auto-load safe-path %s' % trusted, str(copy), '-ex', 'help coil'])
        expect(wanted in said, 'with safe-path %s: %s' % (trusted, said))


def main():
    debugger, program, *rest = sys.argv[1:]
    with tempfile.TemporaryDirectory() as name:
        try:
            if rest[0] == '--page':
                check_page(program, pathlib.Path(name), '--update' in rest)
            elif rest[0] == '--auto-load':
                check_auto_load(program, pathlib.Path(name), rest[1])
            else:
                check(debugger, program, int(rest[0]), pathlib.Path(name))
        except Skip as reason:
            print('SKIP: %s' % reason)
            return 77
    print('\n'.join(problems))
    return 1 if problems else 0


if __name__ == '__main__':
    sys.exit(main())
