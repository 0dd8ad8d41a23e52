#!/usr/bin/env bash
# Opens report.html in Chromium and looks at it: tables, sections, contrast, names, hostile texts, 5,000 operations.
# Usage: tests/page/run.sh ANALYZE
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
analyze=$(realpath "${1:?usage: tests/page/run.sh ANALYZE}")
if ! python3 -B -c "import sys; sys.path.insert(0, '$here'); import browser; sys.exit(not browser.find())"; then
    echo "skipped: Chromium is not installed (scripts/setup.sh does that), so report.html is not looked at"
    echo "0 passed, 0 failed, 1 skipped"
    exit 0
fi
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
python3 -B "$here/test_page.py" "$analyze" "$scratch"
