#!/usr/bin/env bash
# A night that is killed at any moment, or whose disk fills at any point: the next run completes it, and history, index
# and tables are those of an undisturbed night. KILLS: how many moments (4), POINTS: how many points (4).
source "${ROOT:?}/tests/cli/lib.sh"
source "$ROOT/tests/cli/scout.sh"

make_house "" # nothing first
mkdir m
cp "$ROOT/models/transformer_block.onnx" "$ROOT/models/pruned_mlp.onnx" m/
echo '{"schema": "ceiling-scout/zoo/1", "defaults": {"device": "scripted:0", "regime": "burst"}, "models": [
    {"model": "transformer_block.onnx", "dims": [{"batch": 1, "seq": 8}]}, {"model": "pruned_mlp.onnx", "dims": [{"batch": 4}]}]}' >m/zoo.json
night() { run house/bin/ceiling-scout zoo m/zoo.json --again -o "$1"; }
# Index, history and tables of two folders are alike: what does not depend on when it was, figures to half a percent, as they vary.
alike() { # FOLDER FOLDER
    python3 - "$@" <<'CODE'
import glob, json, math, sqlite3, sys

def read(folder):
    index = json.load(open(folder + "/zoo/index.json"))
    db = sqlite3.connect(folder + "/zoo/history.db")
    points = "SELECT night, key, us, ceiling_us, again_us FROM point JOIN series ON series.id = series ORDER BY night, key"
    return [[index[k] for k in ("nights", "operations", "figures", "suspects", "last_night")],
            [[m.get(k) for k in ("model", "operations", "time_us", "us_by_night")] for m in index["models"]],
            [list(row) for row in db.execute(points)], list(db.execute("PRAGMA integrity_check").fetchone()),
            [[path[len(folder):], [[e.get(k) for k in ("key", "choice", "implementation", "variant", "expected_us")] for e in json.load(open(path))["entries"]]]
             for path in sorted(glob.glob(folder + "/*@*/dispatch.json"))]]

def same(a, b):
    if isinstance(a, float) and isinstance(b, float):
        return math.isclose(a, b, rel_tol=5e-3, abs_tol=2e-3)
    if isinstance(a, list) and isinstance(b, list):
        return len(a) == len(b) and all(map(same, a, b))
    if isinstance(a, dict) and isinstance(b, dict):
        return a.keys() == b.keys() and all(same(a[k], b[k]) for k in a)
    return a == b

def differing(a, b, at):  # the first place, for the log
    if isinstance(a, (list, dict)) and type(a) is type(b) and len(a) == len(b) and (isinstance(a, list) or a.keys() == b.keys()):
        for k in range(len(a)) if isinstance(a, list) else a:
            if not same(a[k], b[k]):
                return differing(a[k], b[k], at + [k])
    return f"{at}: {a!r:.200} and {b!r:.200}"

one, other = map(read, sys.argv[1:3])
if not same(one, other):
    sys.exit("differ at " + differing(one, other, []))
CODE
}

began=$EPOCHREALTIME
night first
took=$(python3 -c 'import sys; print(float(sys.argv[2]) - float(sys.argv[1]))' "$began" "$EPOCHREALTIME")
cp -r first whole
night whole
check "an undisturbed second night" test "$(field whole/zoo/index.json 'r["nights"]')" = 2
check "which is not the first one" eval '! alike first whole 2>/dev/null'
for ((k = 0; k < ${KILLS:-4}; k++)); do
    rm -rf cut && cp -r first cut
    house/bin/ceiling-scout zoo m/zoo.json --again -o cut >night.txt 2>&1 &
    child=$!
    sleep "$(python3 -c 'import random, sys; r = random.Random(int(sys.argv[1])); print(r.random() * float(sys.argv[2]))' "$k" "$took")"
    kill -KILL "$child" 2>/dev/null || true
    wait "$child" 2>/dev/null || true
    ended=$(test -e cut/zoo/night && echo no || echo yes) # it had come to its end, or had not begun
    nights=$(python3 -c 'import sqlite3, sys; print(*sqlite3.connect(sys.argv[1]).execute("SELECT count(*) FROM night").fetchone())' cut/zoo/history.db)
    if [[ $ended == no || $nights == 1 ]]; then night cut; fi
    check "killed, moment $k: as the undisturbed night" alike cut whole
    check "killed, moment $k: nothing is left of it" test -z "$(find cut -name '*.part' -o -name '*.tmp*' -o -name again -o -name cache)"
done
for ((k = 0; k < ${POINTS:-4}; k++)); do
    rm -rf cut && cp -r first cut
    EXIT=0
    (ulimit -f "$((8 + 24 * k))" && exec house/bin/ceiling-scout zoo m/zoo.json --again -o cut) >stdout.txt 2>stderr.txt || EXIT=$?
    STDOUT=$(<stdout.txt) STDERR=$(<stderr.txt)
    check "files of $((8 + 24 * k)) KiB at most: it is told" test "$EXIT" != 0
    if [[ -e cut/zoo/night ]]; then
        night cut
        check "files of $((8 + 24 * k)) KiB at most: with room as the undisturbed night" alike cut whole
    fi
done
finish
