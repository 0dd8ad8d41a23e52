#!/usr/bin/env bash
# scout_batch where the machine does not play along: folders, disks, caches, and reports of others.
source "${ROOT:?}/tests/cli/lib.sh"
source "$ROOT/tests/cli/scout.sh"
echo '{"a": {"op": "gemm", "shape": [64, 64, 64]}, "b": {"op": "gemm", "shape": [64, 64, 32]}}' >ops.json
# a target: without one, a list of few operations goes on for a second of the host's
scripted ops.json --precision fp32 --target-ci 1% -o warm -q
check "warm: exit 0" exits 0

CEILING_SCOUT_FAULTS=crash,wrong scripted ops.json --custom-kernel "$SCRIPTED/faults.so" --precision fp32 --no-cache
check "candidates that fail: exit 1" exits 1
check "candidates that fail: the one that took its worker along is named" says "a: fault_crash: "
check "candidates that fail: the table names them" prints "a: fault_crash CRASHED, fault_wrong WRONG"
: >file
scripted ops.json --precision fp32 -o file/out
check "a folder under a file: exit 4" exits 4
check "a folder under a file: one line" one_line
scripted ops.json --precision fp32 -o /proc/nothing
check "a folder that cannot be made: exit 4" exits 4
check "a folder that cannot be made: one line" one_line
scripted ops.json --precision fp32 -o nowhere/out.json --only a
check "a report in no folder: exit 4" exits 4
if ((EUID != 0)); then
    mkdir locked && chmod 555 locked
    scripted ops.json --precision fp32 -o locked
    check "an unwritable folder: exit 4" exits 4
    check "an unwritable folder: one line" one_line
else
    skip "root may write everywhere: no unwritable folder"
fi

# a disk that is full: a size limit stands for it, which also spares what was written before
mkdir out && cp -r warm/. out/
cat >full.sh <<'END'
ulimit -f 1
trap '' XFSZ
exec "$@"
END
run bash full.sh "$SCOUT" --custom-kernel "$SCRIPTED/device.so" --device scripted:0 ops.json --precision fp32 -o out --regime burst
check "a full disk: exit 4" exits 4
check "a full disk: says which file" says "out/"
check "a full disk: what was there stays" diff -qr warm/reports out/reports
check "a full disk: nothing half written" test -z "$(find out -name '*.part')"

scripted ops.json --precision fp32 -o dark --cache-dir file/cache
check "no cache: a warning" says "warning: "
check "no cache: exit 0" exits 0
for entry in cache/ceiling-scout/*/*; do echo "torn" >"$entry"; done
scripted ops.json --precision fp32 --target-ci 1% -o torn
check "a torn cache: measures again" exits 0
check "a torn cache: the same results" diff <(timeless warm/reports/*) <(timeless torn/reports/*)

touch torn/.run.json.999999-3.part "torn/reports/.a.json.999999-0.part" "torn/reports/.a.json.$$-0.part"
scripted ops.json --precision fp32 --target-ci 1% -o torn
check "a dead writer's file is swept" absent torn/reports/.a.json.999999-0.part
check "a dead writer's run.json is swept" absent torn/.run.json.999999-3.part
check "a living one's stays" test -e "torn/reports/.a.json.$$-0.part"

check "standard output is full: exit 4" test "$("$SCOUT" --custom-kernel "$SCRIPTED/device.so" --device scripted:0 ops.json --precision fp32 \
    2>&1 >/dev/full </dev/null | grep -c 'standard output cannot be written')" = 1
CEILING_SCOUT_SCRIPTED_LOST=$PWD/lost scripted ops.json --precision fp32 -o gone --no-cache
check "a device that is there: exit 0" exits 0
echo 0 >lost
CEILING_SCOUT_SCRIPTED_LOST=$PWD/lost scripted ops.json --precision fp32 -o gone --no-cache
check "a device that went away: exit 4" exits 4
check "a device that went away: what was finished stays" test "$(find gone/reports -name '*.json' | wc -l)" = 2

# ---- a library that is there and cannot be loaded ----
mkdir broken
echo "no library" >broken/libdnnl.so.2
told() { grep -c "warning: .*broken/libdnnl.so.2: .*; it was skipped" stderr.txt || true; }
scout --list-devices --library-path "$PWD/broken"
check "a broken library: the search goes on" exits 0
check "a broken library: said once" test "$(told)" = 1
scout --op gemm --shape 16,16,16 --precision fp32 --device cpu --regime burst --budget 1 --library-path "$PWD/broken" -o broken.json
check "a broken library: a run goes on" test "$EXIT" -le 1
check "a broken library: a run says it once, whatever its workers say" test "$(told)" = 1
scout --list-candidates -q --library-path "$PWD/broken"
check "a broken library: --quiet" test "$(told)" = 0

# ---- a model that went away: what its weights hold is not known, and that is said ----
cp "$ROOT/models/transformer_block.onnx" moved.onnx
"$EXTRACT_OPS" -q moved.onnx --batch 1 --seq 16 -o moved.json
lost="moved.onnx, the model of these operations, cannot be read here"
scripted moved.json --only gemm --budget 2 -o there
check "a model that is there: nothing is said" test "$(grep -c "$lost" stderr.txt)" = 0
rm moved.onnx
scripted moved.json --only gemm --budget 2 -o moved
check "a model that went away: the run goes on" test "$EXIT" -le 1
check "a model that went away: said once" test "$(grep -c "$lost" stderr.txt)" = 1
finish
