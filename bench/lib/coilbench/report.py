"""Progress, tables, targets, JSON."""

import json
import os
import statistics
import sys
import time


def median(values):
    values = [v for v in values if v is not None]
    return statistics.median(values) if values else None


def ratios(mine, theirs):
    """Median of the ratios of paired rounds, which cancels drift over a run."""
    pairs = [a / b for a, b in zip(mine, theirs) if a is not None and b]
    return statistics.median(pairs) if pairs else None


class Progress:
    """One line that is overwritten on a terminal; elsewhere a line every few seconds."""

    def __init__(self, steps):
        self.steps, self.done, self.begin, self.spoke = steps, 0, time.monotonic(), 0.0
        self.terminal = sys.stderr.isatty()

    def step(self, text):
        self.done += 1
        now = time.monotonic()
        line = f"[{self.done}/{self.steps}] {now - self.begin:3.0f} s  {text}"
        if self.terminal:
            width = os.get_terminal_size(sys.stderr.fileno()).columns - 1
            sys.stderr.write("\r\033[K" + line[:width])
            sys.stderr.flush()
        elif now - self.spoke >= 5 or self.done == 1:
            self.spoke = now
            print(line, file=sys.stderr, flush=True)

    def clear(self):
        if self.terminal:
            sys.stderr.write("\r\033[K")
            sys.stderr.flush()


def figure(value, digits=0, scale=1.0, suffix=""):
    return "–" if value is None else f"{value * scale:,.{digits}f}{suffix}"


def table(head, rows):
    """A table with columns of minimal width; the first is left-aligned, the others right-aligned."""
    cells = [head] + [[str(cell) for cell in row] for row in rows]
    widths = [max(len(row[i]) for row in cells) for i in range(len(head))]

    def line(row):
        padded = [row[0].ljust(widths[0])] + [cell.rjust(width) for cell, width in zip(row[1:], widths[1:])]
        return "  ".join(padded).rstrip()

    return "\n".join([line(cells[0]), "  ".join("-" * width for width in widths)] + [line(row) for row in cells[1:]])


class Targets:
    """Figures and their targets."""

    def __init__(self):
        self.lines = []

    def at_most(self, text, value, limit, digits=2):
        self._add(text, value, "≤", limit, digits, value is not None and value <= limit)

    def at_least(self, text, value, limit, digits=2):
        self._add(text, value, "≥", limit, digits, value is not None and value >= limit)

    def holds(self, text, value, detail=""):
        verdict = "NOT MEASURED" if value is None else "PASS" if value else "FAIL"
        self.lines.append({"target": text, "measured": detail, "limit": "", "verdict": verdict})

    def _add(self, text, value, sign, limit, digits, reached):
        verdict = "NOT MEASURED" if value is None else "PASS" if reached else "FAIL"
        self.lines.append({"target": text, "measured": figure(value, digits), "limit": f"{sign} {limit:g}",
                           "verdict": verdict})

    def all_pass(self):
        return bool(self.lines) and all(line["verdict"] == "PASS" for line in self.lines)

    def text(self):
        return table(["target", "measured", "limit", ""],
                     [[line["target"], line["measured"], line["limit"], line["verdict"]] for line in self.lines])


def write_json(path, data):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(data, indent=2, ensure_ascii=False) + "\n")
