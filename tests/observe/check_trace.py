#!/usr/bin/env python3
"""Checks a trace in the format of Chrome's trace viewer: `check_trace.py FILE` prints "ok: ..." or what is wrong."""

import json
import re
import sys


def fail(text, event):
    sys.exit('%s: %s' % (text, event))


def main(path):
    with open(path, encoding='utf-8') as file:
        events = json.load(file)['traceEvents']
    processes, stacks, open_ones, threads = set(), {}, {}, set()
    counts = {}
    for event in events:
        counts[event['ph']] = counts.get(event['ph'], 0) + 1
        processes.add(event['pid'])
        if not isinstance(event['name'], str) or event['ts'] < 0 or event.get('dur', 0) < 0:
            fail('no name, or a negative time', event)
        if event['ph'] == 'M':
            if event['name'] == 'thread_name':
                threads.add(event['tid'])
        elif event['tid'] not in threads:
            fail('a thread without a name', event)
        if event['ph'] == 'X':
            stacks.setdefault(event['tid'], []).append((event['ts'], event['ts'] + event['dur'], event))
        elif event['ph'] in 'be':
            open_ones.setdefault((event['cat'], event['id']), []).append(event)
        elif event['ph'] not in 'iM':
            fail('an unknown phase', event)
    if len(processes) != 1:
        fail('several processes', processes)
    for key, pair in open_ones.items():
        if [event['ph'] for event in pair] != ['b', 'e'] or pair[0]['name'] != pair[1]['name']:
            fail('no pair', (key, pair))
        if pair[1]['ts'] < pair[0]['ts']:
            fail('ends before it begins', pair)
        if pair[0]['cat'] == 'span' and not re.fullmatch('00-[0-9a-f]{32}-[0-9a-f]{16}-0[01]', pair[0]['id']):
            fail('no W3C trace context', pair)
    for slices in stacks.values():
        check_nesting(slices)
    print('ok: %s' % counts)


def check_nesting(slices):
    """Resumptions of one thread follow each other, or are inside of one another."""
    above = []
    for begin, end, event in sorted(slices, key=lambda s: (s[0], -s[1])):
        while above and above[-1] <= begin + 0.0005:
            above.pop()
        if above and end > above[-1] + 0.0005:
            fail('overlaps another', event)
        above.append(end)


main(sys.argv[1])
