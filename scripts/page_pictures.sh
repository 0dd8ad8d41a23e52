#!/usr/bin/env bash
# Pictures of a report.html for the docs: its top and one section, at desktop and phone width, light and dark.
# Usage: scripts/page_pictures.sh REPORT.HTML NAME [FOLDER]   writes FOLDER/NAME_desktop.png, …; FOLDER is docs/pictures
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
if (($# < 2 || $# > 3)); then
    echo "usage: scripts/page_pictures.sh REPORT.HTML NAME [FOLDER]" >&2
    exit 2
fi
page=$(realpath "$1")
folder=${3:-$here/docs/pictures}
mkdir -p "$folder"
PYTHONPATH=$here/tests/page python3 -B - "$page" "$folder/$2" <<'PYTHON'
import sys
import time

from browser import Browser, find

page, name = sys.argv[1:]
if not find():
    sys.exit("page_pictures: Chromium is not installed; scripts/setup.sh does that")
# name, width, height, dark, phone, what is brought to the top (none: the page's beginning) and unfolded
PICTURES = [("desktop", 1280, 1640, False, False, None), ("desktop_dark", 1280, 1640, True, False, None),
            ("desktop_table", 1280, 1100, False, False, ".tools"), ("desktop_operation", 1280, 1100, False, False, "details.op"),
            ("phone", 375, 1500, False, True, None), ("phone_dark", 375, 1500, True, True, "details.op")]
with Browser() as browser:
    for what, width, height, dark, phone, top in PICTURES:
        shown = browser.open(f"file://{page}", width, height, dark=dark, phone=phone)
        if top:
            # Twice: what comes into view is laid out, and may move what was aimed at.
            for _ in range(2):
                shown.run(f"(e => {{ e.open = true; e.scrollIntoView(); }})(document.querySelector('{top}'))")
                time.sleep(0.3)
        shown.picture(f"{name}_{what}.png")
        shown.close()
        print(f"{name}_{what}.png")
PYTHON
