#!/usr/bin/env bash
# What files of others may cost: lists that are refused, folders of reports, and a limit on memory.
source "${ROOT:?}/tests/cli/lib.sh"
source "$ROOT/tests/cli/scout.sh"
source "$ROOT/tests/cli/analyze.sh"
bounded() { run python3 -B "$ROOT/tests/cli/bounded.py" "$@"; } # MEGABYTES SECONDS COMMAND…

# ---- a list that is refused: 256 MB, and a second for each 10 MB and one to begin with ----

mkdir lists
python3 -B "$ROOT/tests/cli/hostile_lists.py" lists
for list in lists/*.json; do
    bounded 256 "$((2 + $(stat -c %s "$list") / 10000000))" "$SCOUT" "$list" -o out -q
    check "$list: exit 3 within 256 MB and a second for 10 MB" exits 3
    check "$list: one line" test "$(wc -l <stderr.txt)" = 1
    check "$list: no folder" absent out
done
rm -r lists

# ---- as many hostile reports as good ones: three times as long, and a second ----

reports=2000
mkdir folders
mapfile -t kinds < <(PYTHONPATH=$ROOT/tests/cli python3 -B "$ROOT/tests/cli/hostile_reports.py" folders "$reports")
spent() { python3 -c 'import resource, subprocess, sys
subprocess.run(sys.argv[1:], stdout=subprocess.DEVNULL, check=True)
took = resource.getrusage(resource.RUSAGE_CHILDREN)
print(f"{1 + 3 * (took.ru_utime + took.ru_stime):.2f}")' "$@"; }
seconds=$(spent "$ANALYZE" folders/good)
for kind in "${kinds[@]}"; do
    bounded 128 "$seconds" "$ANALYZE" "folders/$kind"
    check "$reports reports, $kind: in $seconds s and 128 MB" test "$EXIT" -lt 5
    bounded 128 "$seconds" "$ANALYZE" "folders/$kind" --group
    check "$reports reports, $kind, --group: in $seconds s and 128 MB" test "$EXIT" -lt 5
done
rm -r folders

# ---- a limit on memory: no library that would ask for more without end ----

echo '{"a": {"op": "gemm", "shape": [64, 64, 64]}}' >ops.json
for limit in 150000 250000 350000; do
    # shellcheck disable=SC2016 # that shell's own arguments
    run bash -c 'ulimit -v "$1"; shift; exec "$@"' limited "$limit" timeout 30 "$SCOUT" ops.json --precision fp32 --device cpu --budget 1 --no-cache
    check "ulimit -v $limit: ends by itself" test "$EXIT" -le 4
    check "ulimit -v $limit: no worker is lost" test "$STDERR" = "${STDERR/sign of life/}"
done
finish
