# shellcheck shell=bash
# bench/figures compares a stored run with an earlier one, and draws it. The two runs are in figures/: one ratio is 20 %
# larger, one has too few rounds, the others differ by noise.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
figures=$here/../../bench/figures
fail() {
    echo "FAIL: $*" >&2
    exit 1
}
command -v python3 >/dev/null || {
    echo "SKIP: python3 is not installed"
    exit 77
}
directory=$(mktemp -d)
trap 'rm -rf "$directory"' EXIT

# says TEXT PATTERN...
says() {
    local text=$1 pattern
    for pattern in "${@:2}"; do
        grep -qE "$pattern" <<<"$text" || fail "'$pattern' is not in: $text"
    done
}

text=$("$figures" "$here/figures/after.json" --compare "$here/figures/before.json" --plot "$directory/plot.svg")
says "$text" \
    'CPU per request: × C by hand .*\+2[0-9]\.[0-9]%: CHANGED' \
    'a channel: rate × Asio .* the same$' \
    'few rounds: time × by hand .*too few rounds to say' \
    'bytes of a coroutine .*one figure has no spread' \
    '^1 of 6 figures changed beyond noise: CPU per request: × C by hand\.$'

text=$("$figures" "$here/figures/before.json" --compare "$here/figures/before.json")
says "$text" '^0 of 6 figures changed beyond noise\.$'

python3 - "$directory/plot.svg" <<'PYTHON' || fail "the plot is wrong"
import sys
import xml.etree.ElementTree as xml

svg = xml.parse(sys.argv[1]).getroot()
name = "{http://www.w3.org/2000/svg}"
texts = [each.text for each in svg.iter(name + "text")]
assert "CPU per request: × C by hand" in texts and "bytes of a coroutine" not in texts, texts
assert len(list(svg.iter(name + "circle"))) == 2 * (9 + 9 + 9 + 3), "a dot for each round of both runs"
width, height = float(svg.get("width")), float(svg.get("height"))
for each in svg.iter(name + "circle"):
    assert 0 < float(each.get("cx")) < width and 0 < float(each.get("cy")) < height, each.attrib
PYTHON

# Measurements without a ratio are reported, not drawn.
echo '{"targets": [{"target": "a", "measured": "1", "limit": "", "verdict": "", "value": 1}]}' >"$directory/none.json"
says "$("$figures" "$directory/none.json" --plot "$directory/none.svg")" '^no plot: no ratio was measured$'
[[ ! -e $directory/none.svg ]] || fail "a plot of nothing"

# bench/alternate runs two trees alternately and compares them. These differ by 20 % in one row, on a machine that slows down.
# tree NAME PERCENT
tree() {
    mkdir -p "$directory/$1/bench/bin"
    cat >"$directory/$1/bench/bin/bench_micro" <<PYTHON
#!/usr/bin/env python3
import json, pathlib, random, sys
round_file = pathlib.Path("$directory/$1/round")
number = int(round_file.read_text()) if round_file.exists() else 0
round_file.write_text(str(number + 1))
noise = random.Random(f"$1 {number}")
drift = 1 + number / 4
times = {"spawn_coil": 100 * $2 / 100, "call_coil": 20, "spawn_floor": 300}
print(json.dumps({"benchmarks": [{"name": name, "cpu_time": time * drift * noise.uniform(0.99, 1.01)}
                                 for name, time in times.items()]}))
PYTHON
    chmod +x "$directory/$1/bench/bin/bench_micro"
}
tree before 100
tree after 120
alternate() { "$here/../../bench/alternate" "$directory/before" "$directory/after" --only micro "$@" 2>&1; }
status=0
text=$(alternate --check) || status=$?
[[ $status == 1 ]] || fail "--check ended with $status: $text"
says "$text" \
    'micro spawn_coil, CPU ns .*\+(19|20|21)\.[0-9]%: CHANGED' \
    'micro call_coil, CPU ns .* the same$' \
    '^1 of 3 rows changed beyond noise: micro spawn_coil, CPU ns\.$'
says "$(alternate --rounds 5 --check)" 'spawn_coil.*too few rounds to say' '^0 of 3 rows'
tree after 100
says "$(alternate --check)" '^0 of 3 rows changed beyond noise\.$'
