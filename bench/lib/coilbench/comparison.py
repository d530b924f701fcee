"""Compares the ratios of a run with those of an earlier one, and two programs that took turns."""

import math
import statistics

CHANCE = 0.01   # the probability of reporting a change although there is none
SMALLEST = 0.03 # a smaller difference is not worth a mention


def chance(first, second):
    """The two-sided probability that two samples of one distribution differ in their ranks at least as much as these: the
    exact test of Mann and Whitney."""
    n, m = len(first), len(second)
    wins = sum((a > b) + (a == b) / 2 for a in first for b in second)
    extreme = int(min(wins, n * m - wins)) if n and m else 0
    # ways[j][u]: orders of i values of the first and j of the second sample in which the first wins u times
    ways = [[1] + [0] * (n * m) for _ in range(m + 1)]
    for _ in range(n):
        for j in range(1, m + 1):
            # The largest value is one of the first sample, which wins against all j, or of the second.
            ways[j] = [(ways[j][u - j] if u >= j else 0) + ways[j - 1][u] for u in range(n * m + 1)]
    total = sum(ways[m])
    return min(1.0, 2 * sum(ways[m][:extreme + 1]) / total)


def verdict(earlier, now):
    """Returns (whether it is a change, its description) for two lines of Targets."""
    before, after = earlier.get("value"), now.get("value")
    if not before or not after:
        return False, "not measured"
    change = after / before - 1
    if "rounds" not in earlier or "rounds" not in now:
        if abs(change) < SMALLEST:
            return False, "the same"
        return False, f"{change:+.1%}, but one figure has no spread"
    p = chance(earlier["rounds"], now["rounds"])
    if abs(change) < SMALLEST:
        return False, "the same"
    if p > CHANCE:
        few = chance(range(len(earlier["rounds"])), [value + 1e6 for value in range(len(now["rounds"]))]) > CHANCE
        return False, f"{change:+.1%}: {'too few rounds to say' if few else 'noise'}"
    return True, f"{change:+.1%}: CHANGED (p = {p:.2g})"


def paired_chance(ratios):
    """The two-sided probability that ratios of pairs lie as much to one side of 1 if both members of a pair are alike: the exact
    signed-rank test of Wilcoxon. A ratio of 1 counts for neither side."""
    logs = sorted((math.log(ratio) for ratio in ratios if ratio != 1), key=abs)
    ranks = range(1, len(logs) + 1)
    smaller = min(sum(rank for rank, log in zip(ranks, logs) if log > 0), sum(rank for rank, log in zip(ranks, logs) if log < 0))
    ways = [1] + [0] * sum(ranks) # ways[s]: choices of signs for which the ranks with a plus add up to s
    for rank in ranks:
        for total in range(len(ways) - 1, rank - 1, -1):
            ways[total] += ways[total - rank]
    return min(1.0, 2 * sum(ways[:smaller + 1]) / 2 ** len(logs))


def paired_verdict(ratios, smallest=SMALLEST):
    """Returns (whether it is a change, its description) for the ratios of pairs that were measured in turn."""
    change = statistics.median(ratios) - 1
    p = paired_chance(ratios)
    if 2 / 2 ** len(ratios) > CHANCE:
        return False, f"{change:+.1%}: too few rounds to say"
    if abs(change) < smallest:
        return False, "the same"
    return (True, f"{change:+.1%}: CHANGED (p = {p:.2g})") if p <= CHANCE else (False, f"{change:+.1%}: noise (p = {p:.2g})")


def spread(line, digits=2):
    if "rounds" not in line or len(line["rounds"]) < 2:
        return ""
    low, _, high = statistics.quantiles(line["rounds"], n=4, method="inclusive")
    return f"{low:.{digits}f}–{high:.{digits}f}"


def text(earlier, now):
    """A table of all ratios, and a sentence."""
    from .report import figure, table
    by_name = {line["target"]: line for line in earlier}
    rows, changed = [], []
    for line in now:
        if "value" not in line:
            continue
        before = by_name.pop(line["target"], None)
        if before is None:
            rows.append([line["target"], "", "", figure(line["value"], 2), spread(line), "new"])
            continue
        is_change, words = verdict(before, line)
        changed += [line["target"]] if is_change else []
        rows.append([line["target"], figure(before.get("value"), 2), spread(before), figure(line["value"], 2),
                     spread(line), words])
    rows += [[name, figure(line["value"], 2), spread(line), "", "", "gone"] for name, line in by_name.items() if "value" in line]
    sentence = f"{len(changed)} of {len(rows)} figures changed beyond noise" + (f": {'; '.join(changed)}." if changed else ".")
    return table(["", "before", "middle half", "now", "middle half", ""], rows) + "\n\n" + sentence
