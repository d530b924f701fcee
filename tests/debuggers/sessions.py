"""Runs debuggers in batch mode."""

import pathlib
import re
import shutil
import subprocess

SCRIPTS = pathlib.Path(__file__).resolve().parents[2] / 'tools' / 'debuggers'
MARK = '---- coil test: '
# What debuggers print if a process may not be traced, as in some containers.
FORBIDDEN = re.compile(r'ptrace(?: failed)?: Operation not permitted|Could not trace the inferior process|'
                       r'ptrace\(PTRACE_TRACEME.*Operation not permitted|'
                       r'personality set failed: Operation not permitted|'
                       r'error: \'A\' packet returned an error')


class Skip(Exception):
    """The test cannot run here."""


class Session:
    def __init__(self, program):
        self.program = program

    def run(self, arguments):
        try:
            result = subprocess.run([self.path, *arguments], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                    stderr=subprocess.STDOUT, timeout=240, check=False)
        except subprocess.TimeoutExpired as error:
            output = (error.output or b'').decode(errors='replace')
            raise SystemExit('%s does not end:\n%s' % (self.path, output[-4000:])) from error
        return result.stdout.decode(errors='replace')

    def answers(self, output, commands):
        """The output after each command, which is printed before it."""
        if FORBIDDEN.search(output):
            raise Skip('processes may not be traced here (ptrace)')
        parts = {part.split('\n', 1)[0]: part.partition('\n')[2] for part in output.split(MARK)[1:]}
        missing = [command for command in commands if command not in parts]
        if missing:
            raise SystemExit('%s has not run %s:\n%s' % (self.path, missing, output[-4000:]))
        return parts


class Gdb(Session):
    pause = 'python import time; time.sleep(%s)'
    path = shutil.which('gdb')

    def __init__(self, program):
        super().__init__(program)
        if self.path is None:
            raise Skip('gdb is not installed: ./dev setup')
        if 'not supported' in self.run(['-nx', '-batch', '-ex', 'python print(1)']):
            raise Skip('this gdb has no Python')

    def batch(self, first, commands, last, arguments):
        lines = ['set debuginfod enabled off', 'set width 0', 'set pagination off', 'set style enabled off',
                 'source %s' % (SCRIPTS / 'coil_gdb.py'), *first]
        for command in commands:
            lines += ['echo \\n%s%s\\n' % (MARK, command), command]
        lines += ['echo \\n%send\\n' % MARK, *last]
        # A script of gdb ends at the first error; the commands of the command line do not.
        return self.run(['-nx', '-batch', *[word for line in lines for word in ('-ex', line)], *arguments])

    def live(self, commands, arguments, core):
        output = self.batch(['break all_wait', 'run', 'up 0'], commands, ['generate-core-file %s' % core, 'kill'],
                            ['--args', self.program, *arguments])
        return self.answers(output, commands)

    def core(self, commands, core):
        return self.answers(self.batch(['thread 1'], commands, [], [self.program, str(core)]), commands)

    def without_process(self, commands):
        return self.batch([], commands, [], [self.program])


class Lldb(Session):
    pause = 'script import time; time.sleep(%s)'
    path = next(filter(None, (shutil.which(name) for name in
                              ['lldb', *('lldb-%d' % version for version in range(22, 16, -1))])), None)

    def __init__(self, program):
        super().__init__(program)
        if self.path is None:
            raise Skip('lldb is not installed: ./dev setup')
        if 'unavailable' in self.run(['--no-lldbinit', '--batch', '-o', 'script print(1)']):
            raise Skip('this lldb has no Python')

    def batch(self, first, commands, last, arguments):
        lines = ['settings set use-color false', 'command script import %s' % (SCRIPTS / 'coil_lldb.py'), *first]
        for command in commands:
            spelled = re.sub(r'^print (some_.*)', r'frame variable \1', command)
            spelled = re.sub(r'^print ', 'target variable ', spelled)
            lines += ['script print("\\n%s%s")' % (MARK, command), spelled]
        lines += ['script print("\\n%send")' % MARK, *last]
        return self.run(['--no-lldbinit', '--batch', '--source-quietly',
                         *[word for line in lines for word in ('-o', line)], *arguments])

    def live(self, commands, arguments, core):
        output = self.batch(['breakpoint set --name all_wait', 'run'], commands,
                            ['process save-core --style full %s' % core, 'kill'], ['--', self.program, *arguments])
        return self.answers(output, commands)

    def core(self, commands, core):
        find = ('script [lldb.process.SetSelectedThread(t) for t in lldb.process '
                'if t.frame[0].name.startswith("all_wait")]')
        return self.answers(self.batch([find], commands, [], [self.program, '--core', str(core)]), commands)

    def without_process(self, commands):
        return self.batch([], commands, [], [self.program])


DEBUGGERS = {'gdb': Gdb, 'lldb': Lldb}
