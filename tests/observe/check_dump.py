#!/usr/bin/env python3
"""Parses a dump of tasks: `check_dump.py FILE` prints a line for each context, scope and task, or what is wrong."""

import json
import sys

NUMBER, TEXT, FLAG = (int, float), str, bool
CONTEXT = {'name': TEXT, 'answered': FLAG}
ANSWERED = {'count': int, 'arriving': int, 'complete': FLAG, 'omitted': int, 'tasks': list, 'groups': list}
GROUP = {'address': TEXT, 'waiting': int, 'omitted': int, 'children': list}
GROUP_MAY = {'joined_by': TEXT, 'owner': TEXT, 'omitted_behind': int}
ANSWERED_MAY = {'omitted_behind': int, 'more_groups': FLAG}
TASK = {'frame': TEXT, 'name': TEXT, 'waits_for': TEXT, 'awaits': list, 'children': list}
TASK_MAY = {'file': TEXT, 'line': int, 'limit_s': NUMBER, 'age_s': NUMBER}
# The fields that describe a wait, in the order of the output.
WAIT_MAY = {'call': TEXT, 'fd': int, 'direct': FLAG, 'peer': TEXT, 'local': TEXT, 'path': TEXT, 'idle_s': NUMBER, 'call_limit_s': NUMBER,
            'call_limit_total_s': NUMBER, 'left_s': NUMBER, 'object': TEXT, 'address': TEXT, 'locked_by': TEXT,
            'locked_shared': FLAG, 'elements': int, 'capacity': int, 'unbounded': FLAG, 'waits_s': NUMBER}
COROUTINE = {'function': TEXT, 'module': TEXT, 'offset': int}


def check(value, must, *may):
    allowed = dict(must)
    for more in may:
        allowed |= more
    missing = must.keys() - value.keys()
    if missing:
        sys.exit('%s is missing in %s' % (sorted(missing), value))
    for key, member in value.items():
        if key not in allowed or not isinstance(member, allowed[key]) or (
                isinstance(member, bool) and allowed[key] is not FLAG):
            sys.exit('%s: %s' % (key, value))


def no_key_twice(pairs):
    if len(pairs) != len(dict(pairs)):
        sys.exit('a key twice: %s' % pairs)
    return dict(pairs)


def show_tasks(what, tasks):
    for task in tasks:
        check(task, TASK, TASK_MAY, WAIT_MAY)
        for coroutine in task['awaits']:
            check(coroutine, COROUTINE, {'bytes': int})
        details = ''.join(' %s=%s' % (key, task[key]) for key in WAIT_MAY if key in task)
        place = ' %s:%d' % (task['file'], task['line']) if 'file' in task else ''
        print('%s %s: %s%s%s awaits %s' % (what, task['name'], task['waits_for'], details, place,
                                           ' < '.join(one['function'] for one in task['awaits'])))
        show_tasks('child', task['children'])


def main(path):
    with open(path, encoding='utf-8') as file:
        contexts = json.load(file, object_pairs_hook=no_key_twice)['contexts']
    for context in contexts:
        if not context['answered']:
            check(context, CONTEXT)
            print('context %s: no answer' % context['name'])
            continue
        check(context, CONTEXT | ANSWERED, ANSWERED_MAY)
        print('context %s: %d tasks, %d arriving, %s' % (
            context['name'], context['count'], context['arriving'],
            'complete' if context['complete'] else '%d omitted' % context['omitted']))
        show_tasks('task', context['tasks'])
        for group in context['groups']:
            check(group, GROUP, GROUP_MAY)
            print('group: %d children, %d waiting, %d omitted' % (
                len(group['children']), group['waiting'], group['omitted']))
            show_tasks('child', group['children'])


if __name__ == '__main__':
    main(sys.argv[1])
