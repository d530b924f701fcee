"""Charts as SVG: lines, and ratios with their spread."""

import html
import math
import statistics

COLOURS = ("#1b6ca8", "#c8553d", "#588157", "#7b5ea7", "#b8860b", "#4d4d4d", "#d16ba5")
WIDTH, HEIGHT, MARGIN, GAP = 300, 200, 46, 44
MOST_LABELS = 12 # of the x axis


def _ticks(low, high):
    """Powers of ten times 1, 2 and 5 within a range."""
    values = [factor * 10.0**power for power in range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
              for factor in (1, 2, 5)]
    return [value for value in values if low <= value <= high]


def _chart(chart, left, top, x_label, y_label):
    points = [point for line in chart["lines"] for point in line["points"]]
    xs, ys = sorted({x for x, _ in points}), [y for _, y in points]
    low, high = min(ys) / 1.3, max(ys) * 1.3

    def x_of(x):
        return left + (WIDTH * xs.index(x) / max(1, len(xs) - 1))

    def y_of(y):
        return top + HEIGHT * (1 - math.log(y / low) / math.log(high / low))

    out = [f'<text x="{left}" y="{top - 8}" class="title">{html.escape(chart["title"])}</text>']
    for tick in _ticks(low, high):
        y = y_of(tick)
        out.append(f'<path d="M{left} {y:.1f}h{WIDTH}" class="grid"/>')
        out.append(f'<text x="{left - 6}" y="{y + 4:.1f}" class="end">{tick:g}</text>')
    for x in xs[::math.ceil(len(xs) / MOST_LABELS)]:
        out.append(f'<text x="{x_of(x):.1f}" y="{top + HEIGHT + 16}" class="middle">{x}</text>')
    out.append(f'<text x="{left + WIDTH / 2}" y="{top + HEIGHT + 32}" class="middle">{html.escape(x_label)}</text>')
    out.append(f'<text transform="translate({left - 36} {top + HEIGHT / 2}) rotate(-90)" class="middle">{html.escape(y_label)}</text>')
    for number, line in enumerate(chart["lines"]):
        if not line["points"]:
            continue
        path = "L".join(f"{x_of(x):.1f} {y_of(y):.1f}" for x, y in line["points"])
        dash = ' stroke-dasharray="5 4"' if line.get("dashed") else ""
        out.append(f'<path d="M{path}" class="line" stroke="{COLOURS[number % len(COLOURS)]}"{dash}/>')
        if len(line["points"]) == 1: # a path of one point draws nothing
            x, y = line["points"][0]
            out.append(f'<circle cx="{x_of(x):.1f}" cy="{y_of(y):.1f}" r="2.5" fill="{COLOURS[number % len(COLOURS)]}"/>')
    return out


def _legend(lines, width):
    """(x, row, line) for each line, in as many rows as the width needs."""
    places, x, row = [], MARGIN, 0
    for line in lines:
        space = 60 + 7 * len(line["name"])
        if x + space > width and x > MARGIN:
            x, row = MARGIN, row + 1
        places.append((x, row, line))
        x += space
    return places


def write(path, charts, columns, x_label, y_label):
    """Charts have a title and lines; a line has a name, points (x, y) and may be dashed. y is positive and logarithmic, the
    values of x are equally spaced. All charts have the same lines, which the legend names; a chart may have a `y_label` of its
    own. A chart needs at least one point."""
    rows = math.ceil(len(charts) / columns)
    width = columns * (MARGIN + WIDTH + 14)
    legend = _legend(charts[0]["lines"], width)
    above = rows * (HEIGHT + 2 * GAP)
    height = above + 24 * (legend[-1][1] + 1)
    out = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}">',
           "<style>text{font:12px sans-serif;fill:#333}.title{font-weight:bold}.end{text-anchor:end}.middle{text-anchor:middle}"
           ".grid{stroke:#ddd;fill:none}.line{fill:none;stroke-width:2}</style>",
           f'<rect width="{width}" height="{height}" fill="#fff"/>']
    for number, chart in enumerate(charts):
        left = number % columns * (MARGIN + WIDTH + 14) + MARGIN
        out += _chart(chart, left, number // columns * (HEIGHT + 2 * GAP) + GAP - 16, x_label, chart.get("y_label", y_label))
    for number, (x, row, line) in enumerate(legend):
        y = above + 24 * row
        dash = ' stroke-dasharray="5 4"' if line.get("dashed") else ""
        out.append(f'<path d="M{x} {y + 10}h24" class="line" stroke="{COLOURS[number % len(COLOURS)]}"{dash}/>')
        out.append(f'<text x="{x + 30}" y="{y + 14}">{html.escape(line["name"])}</text>')
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("\n".join(out) + "\n</svg>\n")


LABEL, ROW, AXIS = 470, 24, 330


def _lane(line, x_of, y, colour):
    """A ratio: a dot for each round, a bar for the middle half of them, a stroke for the median."""
    rounds = line["rounds"]
    low, middle, high = statistics.quantiles(rounds, n=4, method="inclusive") if len(rounds) > 1 else rounds * 3
    out = [f'<circle cx="{x_of(value):.1f}" cy="{y}" r="2" fill="{colour}" fill-opacity=".35"/>' for value in rounds]
    width = max(1.0, x_of(high) - x_of(low))
    out.append(f'<rect x="{x_of(low):.1f}" y="{y - 4}" width="{width:.1f}" height="8" fill="{colour}" fill-opacity=".45"/>')
    out.append(f'<path d="M{x_of(middle):.1f} {y - 6}v12" stroke="{colour}" stroke-width="2"/>')
    return out


def write_ratios(path, title, lines, earlier=()):
    """One row for each line that has `rounds`; a triangle is its limit. The rows of an earlier run are drawn below, in
    grey. Returns whether there was anything to draw."""
    lines = [line for line in lines if line.get("rounds")]
    before = {line["target"]: line for line in earlier if line.get("rounds")}
    if not lines:
        return False
    limits = {line["target"]: float(line["limit"].split()[1]) for line in lines if line["limit"]}
    shown = lines + [before[line["target"]] for line in lines if line["target"] in before]
    values = [value for line in shown for value in line["rounds"]] + list(limits.values()) + [1.0]
    low, high = min(values) / 1.1, max(values) * 1.1

    def x_of(value):
        return LABEL + AXIS * math.log(value / low) / math.log(high / low)

    height, top = len(lines) * ROW + 86, 40
    bottom = top + len(lines) * ROW
    width = LABEL + AXIS + 110
    out = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}">',
           "<style>text{font:12px sans-serif;fill:#333}.title{font-weight:bold}.end{text-anchor:end}.middle{text-anchor:middle}"
           ".grid{stroke:#ddd;fill:none}.one{stroke:#888;fill:none}</style>",
           f'<rect width="{width}" height="{height}" fill="#fff"/>',
           f'<text x="12" y="20" class="title">{html.escape(title)}</text>']
    for tick in sorted({*_ticks(low, high), 1.0}):
        out.append(f'<path d="M{x_of(tick):.1f} {top - 8}V{bottom}" class="{"one" if tick == 1 else "grid"}"/>')
        out.append(f'<text x="{x_of(tick):.1f}" y="{bottom + 16}" class="middle">{tick:g}</text>')
    for number, line in enumerate(lines):
        y = top + number * ROW + 6
        name = line["target"]
        out.append(f'<text x="{LABEL - 10}" y="{y + 4}" class="end">{html.escape(name if len(name) < 76 else name[:74] + "…")}</text>')
        if name in before:
            out += _lane(before[name], x_of, y + 7, "#999")
        out += _lane(line, x_of, y, COLOURS[1] if line["verdict"] == "FAIL" else COLOURS[0])
        if name in limits:
            out.append(f'<path d="M{x_of(limits[name]):.1f} {y - 3}l-5 -7h10z" fill="{COLOURS[2]}"/>')
        limit = f" ({line['limit']})" if line["limit"] else ""
        out.append(f'<text x="{LABEL + AXIS + 14}" y="{y + 4}">{line["value"]:.2f}{html.escape(limit)}</text>')
    out.append(f'<text x="12" y="{height - 10}">dots: rounds; bar: their middle half; triangle: the target'
               f'{"; grey: the earlier run" if before else ""}</text>')
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("\n".join(out) + "\n</svg>\n")
    return True
