"""Line charts as SVG."""

import html
import math

COLOURS = ("#1b6ca8", "#c8553d", "#588157", "#7b5ea7")
WIDTH, HEIGHT, MARGIN, GAP = 300, 200, 46, 44


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
    for x in xs:
        out.append(f'<text x="{x_of(x):.1f}" y="{top + HEIGHT + 16}" class="middle">{x}</text>')
    out.append(f'<text x="{left + WIDTH / 2}" y="{top + HEIGHT + 32}" class="middle">{html.escape(x_label)}</text>')
    out.append(f'<text transform="translate({left - 36} {top + HEIGHT / 2}) rotate(-90)" class="middle">{html.escape(y_label)}</text>')
    for number, line in enumerate(chart["lines"]):
        path = "L".join(f"{x_of(x):.1f} {y_of(y):.1f}" for x, y in line["points"])
        dash = ' stroke-dasharray="5 4"' if line.get("dashed") else ""
        out.append(f'<path d="M{path}" class="line" stroke="{COLOURS[number % len(COLOURS)]}"{dash}/>')
    return out


def write(path, charts, columns, x_label, y_label):
    """Charts have a title and lines; a line has a name, points (x, y) and may be dashed. y is logarithmic, the values of x are
    equally spaced. All charts have the same lines, which the legend names."""
    rows = math.ceil(len(charts) / columns)
    width = columns * (MARGIN + WIDTH + 14)
    height = rows * (HEIGHT + 2 * GAP) + 24
    out = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}">',
           "<style>text{font:12px sans-serif;fill:#333}.title{font-weight:bold}.end{text-anchor:end}.middle{text-anchor:middle}"
           ".grid{stroke:#ddd;fill:none}.line{fill:none;stroke-width:2}</style>",
           f'<rect width="{width}" height="{height}" fill="#fff"/>']
    for number, chart in enumerate(charts):
        left = number % columns * (MARGIN + WIDTH + 14) + MARGIN
        out += _chart(chart, left, number // columns * (HEIGHT + 2 * GAP) + GAP - 16, x_label, y_label)
    x = MARGIN
    for number, line in enumerate(charts[0]["lines"]):
        dash = ' stroke-dasharray="5 4"' if line.get("dashed") else ""
        out.append(f'<path d="M{x} {height - 14}h24" class="line" stroke="{COLOURS[number % len(COLOURS)]}"{dash}/>')
        out.append(f'<text x="{x + 30}" y="{height - 10}">{html.escape(line["name"])}</text>')
        x += 60 + 7 * len(line["name"])
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("\n".join(out) + "\n</svg>\n")
