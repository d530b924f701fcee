"""Progress, tables, targets, JSON, and the common end of all scripts."""

import json
import os
import pathlib
import statistics
import sys
import time

from . import comparison, plot


def median(values):
    values = [v for v in values if v is not None]
    return statistics.median(values) if values else None


class Ratio(float):
    """The median of the ratios of paired rounds, which cancels drift over a run. `rounds` has all ratios."""

    def __new__(cls, rounds):
        self = super().__new__(cls, statistics.median(rounds))
        self.rounds = list(rounds)
        return self


def ratios(mine, theirs):
    pairs = [a / b for a, b in zip(mine, theirs) if a is not None and b]
    return Ratio(pairs) if pairs else None


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

    def shows(self, text, value, digits=2):
        """A figure without a target."""
        self._add(text, value, "", None, digits, True)

    def _add(self, text, value, sign, limit, digits, reached):
        verdict = "NOT MEASURED" if value is None else "FAIL" if not reached else "PASS" if sign else ""
        line = {"target": text, "measured": figure(value, digits), "limit": f"{sign} {limit:g}" if sign else "",
                "verdict": verdict, "value": value}
        if isinstance(value, Ratio):
            line["rounds"] = value.rounds
        self.lines.append(line)

    def all_pass(self):
        return bool(self.lines) and all(line["verdict"] in ("PASS", "") for line in self.lines)

    def text(self):
        return table(["target", "measured", "limit", ""],
                     [[line["target"], line["measured"], line["limit"], line["verdict"]] for line in self.lines])


def write_json(path, data):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(data, indent=2, ensure_ascii=False) + "\n")


def add_options(parser, name):
    """The options that all scripts have. The JSON is BUILD/bench/NAME.json."""
    parser.add_argument("--check", action="store_true", help="exit with 1 unless every target is reached")
    parser.add_argument("--json", type=pathlib.Path, help=f"where the JSON goes (BUILD/bench/{name}.json)")
    parser.add_argument("--plot", action="store_true", help=f"draw the ratios of all rounds: BUILD/bench/{name}.svg")
    parser.add_argument("--compare", type=pathlib.Path, metavar="FILE",
                        help=f"the JSON of an earlier run, or a directory with its {name}.json: say what has changed")
    parser.set_defaults(name=name)


def read_options(parser, name_of=None):
    """Parses the command line. `name_of(options)` is the name of the JSON if that depends on the options."""
    options = parser.parse_args()
    options.name = name_of(options) if name_of else options.name
    options.json = options.json or options.build / "bench" / f"{options.name}.json"
    options.earlier = None
    if options.compare is not None: # before it is overwritten
        path = options.compare / f"{options.name}.json" if options.compare.is_dir() else options.compare
        try:
            options.earlier = json.loads(path.read_text())
        except (OSError, ValueError) as error:
            parser.error(f"--compare: {path}: {error}")
    return options


def finish(options, data, targets):
    """Writes the JSON; draws and compares if the options ask for it. Returns the exit code."""
    write_json(options.json, {**data, "targets": targets.lines})
    print(f"\nall figures: {options.json}")
    earlier = options.earlier and options.earlier.get("targets", [])
    if options.plot:
        path = options.json.with_suffix(".svg")
        if plot.write_ratios(path, options.name, targets.lines, earlier or []):
            print(f"plot: {path}")
        else:
            print("no plot: no ratio was measured")
    if earlier is not None:
        print(f"\nCompared with {options.compare}:\n\n{comparison.text(earlier, targets.lines)}")
    return 1 if options.check and not targets.all_pass() else 0
