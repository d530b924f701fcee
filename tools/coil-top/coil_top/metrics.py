"""The page of metrics: samples of each context and pool, rates between two pages, histograms."""

import re

_SAMPLE = re.compile(r'^(\w+)(?:\{(.*)\})? (\S+)$')
_LABEL = re.compile(r'(\w+)="((?:\\.|[^"\\])*)"')
_ESCAPES = {'\\\\': '\\', '\\"': '"', '\\n': '\n'}


def _unescaped(text):
    return re.sub(r'\\.', lambda m: _ESCAPES.get(m.group(), m.group()), text)


class Source:
    """The samples of one context or pool, without the prefix `coil_`."""

    def __init__(self, name):
        self.name = name
        self.values = {}
        self.buckets = {}  # of a histogram: [(upper bound in seconds, number of values up to it)]

    def get(self, name):
        return self.values.get(name, 0.0)


def parse(page, kind='context'):
    """The contexts or pools of a page, in its order."""
    found = {}
    for line in page.splitlines():
        match = _SAMPLE.match(line)
        if line.startswith('#') or not match:
            continue
        labels = {key: _unescaped(value) for key, value in _LABEL.findall(match.group(2) or '')}
        if kind not in labels:
            continue
        name = labels[kind]
        if 'number' in labels:
            name += '#' + labels['number']
        source = found.setdefault(name, Source(name))
        key, value = match.group(1).removeprefix('coil_'), float(match.group(3))
        if key.endswith('_bucket') and 'le' in labels:
            source.buckets.setdefault(key.removesuffix('_bucket'), []).append((float(labels['le']), value))
        else:
            source.values[key] = value
    return list(found.values())


class Interval:
    """The activity of a context between two pages or, without an earlier page, since its creation."""

    def __init__(self, now, before, seconds):
        self.now = now
        self.before = before or Source(now.name)
        self.seconds = seconds

    def count(self, name):
        return max(self.now.get(name) - self.before.get(name), 0.0)

    def rate(self, name):
        return self.count(name) / self.seconds if self.seconds > 0 else 0.0

    def _cumulative(self, histogram):
        earlier = dict(self.before.buckets.get(histogram, []))
        return [(bound, count - earlier.get(bound, 0.0)) for bound, count in self.now.buckets.get(histogram, [])]

    def histogram(self, name):
        """[(upper bound in seconds, number of values)] of the buckets that have values; the last bound may be infinite."""
        counts, before = [], 0.0
        for bound, count in self._cumulative(name):
            if count > before:
                counts.append((bound, int(count - before)))
            before = max(before, count)
        return counts

    def quantile(self, histogram, q):
        """The upper bound of the bucket with that quantile, in seconds; None without values."""
        counts = self._cumulative(histogram)
        if not counts or counts[-1][1] <= 0:
            return None
        wanted = q * counts[-1][1]
        finite = [bound for bound, _ in counts if bound != float('inf')]
        return next((min(bound, finite[-1]) for bound, count in counts if count >= wanted), finite[-1])
