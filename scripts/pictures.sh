#!/usr/bin/env bash
# The pictures of the docs, made of the stored reports of an H200 (tests/golden/reports): the page at desktop and phone
# width, dark and on paper, several models, a comparison, and the summary on terminals of 80 and 140 columns. The two
# runs of the comparison are made up, because no model is stored twice. The page of Llama 2 itself is
# docs/results/h200/llama2_7b.html, which README links to. How a model ran is of docs/results/h200/resnet50.html.
# Usage: scripts/pictures.sh [FOLDER]   FOLDER is docs/pictures
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
if (($# > 1)); then
    echo "usage: scripts/pictures.sh [FOLDER]" >&2
    exit 2
fi
analyze=$here/bin/analyze
if [[ ! -x $analyze ]]; then
    echo "pictures: bin/analyze is not there; run make first" >&2
    exit 4
fi
mkdir -p "${1:-$here/docs/pictures}"
folder=$(cd "${1:-$here/docs/pictures}" && pwd)
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
made() { python3 -B "$here/tests/cli/made_runs.py" "$scratch/$1" "${@:2}"; }
made monday 120 1
made tuesday 120 2 compute=1.03 clock=1430 op_0007=1.06 op_0016=1.18 op_0031=0.93 op_0044:best=0.8 op_0052:status=CRASHED \
    op_0065:ceiling=0.5 op_0101=0.97
# Exit codes of 1 say that something is not whole, which pictures may show.
(cd "$scratch" && "$analyze" compare monday tuesday --format html -o comparison.html) || (($? == 1))
cd "$here/tests/golden/reports" # so that commands name folders as a user would
for model in llama2_7b@b1_s2048 resnet50@b1; do
    "$analyze" "$model" --format html -o "$scratch/${model%@*}.html" || (($? == 1))
done
if (($# == 0)); then cp "$scratch/llama2_7b.html" "$here/docs/results/h200/"; fi
cp "$here/docs/results/h200/resnet50.html" "$scratch/resnet50_h200.html"
"$analyze" ./* --each --format html -o "$scratch/models.html" || (($? == 1))
PYTHONPATH=$here/tests/page:$here/tests/cli python3 -B - "$analyze" "$scratch" "$folder" <<'PYTHON'
import html
import os
import re
import sys
import time

from browser import Browser, find
from pseudo_terminal import on_terminal

analyze, scratch, folder = sys.argv[1:]
if not find():
    sys.exit("pictures: Chromium is not installed; scripts/setup.sh does that")


def terminal(columns):
    """What a terminal shows, as a page: its colours are classes."""
    _, text = on_terminal([analyze, "llama2_7b@b1_s2048", "--top", "8"], columns)
    names = {"1": "bold", "2": "dim", "32": "green", "33": "yellow"}
    parts = re.split("\x1b\\[([0-9;]*)m", html.escape(text.replace("\r\n", "\n")))
    body = parts[0] + "".join(f'</span><span class="{names.get(code, "")}">{said}' for code, said in zip(parts[1::2], parts[2::2]))
    path = os.path.join(scratch, f"terminal_{columns}.html")
    with open(path, "w", encoding="utf-8") as out:
        out.write(f"""<!DOCTYPE html><meta charset="utf-8"><style>
            body {{ margin: 0; background: #14171a; color: #d4d8dc; }} pre {{ margin: 0; padding: 16px; width: {columns}ch; font: 14px/1.4 monospace; }}
            .bold {{ font-weight: bold; color: #fff; }} .dim {{ color: #8d949c; }} .green {{ color: #6fd3ae; }} .yellow {{ color: #e9bd72; }}
            </style><pre><span>$ ceiling-scout analyze llama2_7b@b1_s2048 --top 8\n\n{body}</span></pre>""")
    return path


# page, picture, width, height, what is different, what is brought to the top (none: the page's beginning) and unfolded
PICTURES = [("llama2_7b", "llama2_7b_desktop", 1280, 1640, {}, None), ("llama2_7b", "llama2_7b_phone", 375, 1500, {"phone": True}, None),
            ("llama2_7b", "llama2_7b_dark", 1280, 1100, {"dark": True}, "details.op"), ("llama2_7b", "llama2_7b_print", 794, 1123, {"paper": True}, None),
            ("resnet50", "resnet50_table", 1280, 1100, {}, ".tools"), ("resnet50_h200", "resnet50_run", 1280, 540, {}, "#run1"), ("models", "models", 1280, 620, {}, None),
            ("comparison", "comparison", 1280, 1640, {}, None), ("comparison", "comparison_phone", 375, 1100, {"phone": True, "dark": True}, None)]
with Browser() as browser:
    for name, picture, width, height, other, top in PICTURES:
        page = browser.open(f"file://{scratch}/{name}.html", width, height, dark=other.get("dark", False), phone=other.get("phone", False))
        if other.get("paper"):
            page.call("Emulation.setEmulatedMedia", media="print")
            page.run("document.body.style.margin = '14mm'")  # the page's own margin, which a window does not have
        for _ in range(2 if top else 0):  # what comes into view is laid out, and may move what was aimed at
            page.run(f"(e => {{ e.open = true; e.scrollIntoView(); }})(document.querySelector('{top}'))")
            time.sleep(0.3)
        page.picture(f"{folder}/{picture}.png")
        page.close()
    for columns in (80, 140):
        page = browser.open(f"file://{terminal(columns)}", 2000, 800)
        width, height = page.run("(e => [Math.ceil(e.width), Math.ceil(e.height)])(document.querySelector('pre').getBoundingClientRect())")
        page.call("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=False)
        page.picture(f"{folder}/terminal_{columns}.png")
        page.close()
print("\n".join(sorted(os.listdir(folder))))
PYTHON
