#!/usr/bin/env bash
# A night in parts, as machines of a cluster measure it: parts beside each other, one that is killed and one that never
# ran, what tells of all of them, and the same night by one process. On the scripted device, whose figures cost no time.
# shellcheck disable=SC2016 # Markdown has code in backquotes
source "${ROOT:?}/tests/cli/lib.sh"
source "$ROOT/tests/cli/scout.sh"

bin=$(dirname "$EXTRACT_OPS")
mkdir -p house/bin house/lib/ceiling-scout m
cp "$bin/ceiling-scout" "$EXTRACT_OPS" "$bin/analyze" house/bin/
cp "$ROOT"/scripts/{profile,zoo_fetch}.sh house/lib/ceiling-scout/
cat >house/bin/scout_batch <<SCRIPT
#!/usr/bin/env bash
if [[ \$1 == */third@*/ops.json ]]; then while [[ -e ${PWD@Q}/hold ]]; do touch ${PWD@Q}/held; sleep 0.05; done; fi
exec ${SCOUT@Q} --custom-kernel ${SCRIPTED@Q}/device.so "\$@"
SCRIPT
chmod +x house/bin/scout_batch
zoo() { run house/bin/ceiling-scout zoo m/zoo.json "$@"; }
cp "$ROOT/models/transformer_block.onnx" m/first.onnx
cp "$ROOT/models/transformer_block.onnx" m/second.onnx
cp "$ROOT/models/pruned_mlp.onnx" m/third.onnx
cp "$ROOT/models/quantised_mlp.onnx" m/fourth.onnx
echo '{"schema": "ceiling-scout/zoo/1", "defaults": {"device": "scripted:0", "regime": "burst"}, "models": [
    {"model": "first.onnx", "dims": [{"batch": 1, "seq": 8}]}, {"model": "second.onnx", "dims": [{"batch": 1, "seq": 8}]},
    {"model": "third.onnx", "dims": [{"batch": 4}]}, {"model": "fourth.onnx", "dims": [{"batch": 4}]}]}' >m/zoo.json

# ---- what is no part ----
for part in 0/4 5/4 1 1/ /4 one/4 1/4x -1/4; do
    zoo "--part=$part"
    check "--part $part: exit 2" exits 2
    check "--part $part: what one is" says 'say 3/13, the third of 13'
done
zoo --part 1/5
check "a part of another list: exit 3" exits 3
check "a part of another list: what to do" says 'has 4 models and sizes now; begin the night again'
for other in --tell --digest --only=first --notify=true; do
    zoo --part 1/4 "$other"
    check "--part with $other: exit 2" exits 2
done
check "nothing was made" absent out

# ---- three of four at once; one of them is killed, and goes on ----
touch hold
house/bin/ceiling-scout zoo m/zoo.json --again --part 1/4 >one.txt 2>&1 &
one=$!
house/bin/ceiling-scout zoo m/zoo.json --again --part 2/4 >two.txt 2>&1 &
two=$!
house/bin/ceiling-scout zoo m/zoo.json --again --part 3/4 >three.txt 2>&1 &
three=$!
for ((k = 0; k < 400; k++)); do if [[ -e held ]]; then break; fi; sleep 0.05; done
check "a part is measured beside others" test -e held
wait_for() { EXIT=0; wait "$1" 2>/dev/null || EXIT=$?; }
wait_for "$one"
check "the first: not worse than not complete" test "$EXIT" -le 1
wait_for "$two"
check "the second: not worse than not complete" test "$EXIT" -le 1
check "a part says what it did" grep -qE '^zoo: 1 of 1 done, [1-9][0-9]* operations, .*; first@b1_s8_scripted:0_burst: [0-9]+ measured' one.txt
night=$(<out/zoo/night)
check "both are of one night" test "$(<"out/first@b1_s8_scripted:0_burst/.night")$(<"out/second@b1_s8_scripted:0_burst/.night")" = "$night$night"
check "a part tells nothing" absent out/zoo/digest.md
check "a part is no night of the history" absent out/zoo/history.db
zoo
check "a whole zoo beside parts: exit 4" exits 4
check "a whole zoo beside parts: what is there" says 'a zoo is running there, or parts of one are'
kill -KILL "$three"
wait_for "$three"
rm -f hold held
zoo --again --part 3/4
check "a part that was killed goes on" test "$EXIT" -le 1
check "... in the same night" test "$(<out/third@b4_scripted:0_burst/.night)" = "$night"
stamps() { stat -c '%n %y' out/*@*/run.json; }
stamps >before.txt

# ---- what tells of them ----
zoo --again --tell
check "--tell: not complete" exits 1
check "--tell: what is missing, and where to look" says 'fourth@b4_scripted:0_burst: it was not measured in this night; the log of its part says why'
check "--tell: in all" grep -qE '^zoo: 4 of 4 done, 3 measured, 0 up to date; .* not complete' stdout.txt
check "--tell: nothing is measured" same <(stamps) before.txt
check "--tell: the digest has what is missing" contains out/zoo/digest.md '`fourth@b4_scripted:0_burst`: it was not measured in this night'
check "--tell: and a row of the others" test "$(grep -c '^| `' out/zoo/digest.md)" = 3
check "--tell: the history has the night" present out/zoo/history.db
check "--tell: the night has ended" absent out/zoo/night
check "--tell: and its cache is gone" absent out/zoo/cache
zoo --again --tell
check "--tell without parts: nothing is of its night" test "$(grep -c 'was not measured in this night' stderr.txt)" = 4

# ---- the next night is another one, and comes to what one process makes of it ----
for part in 4 3 2 1; do
    zoo --again --part "$part/4"
    check "the next night, part $part: measured" test "$EXIT" -le 1
done
check "the next night is another" test "$(<out/zoo/night)" != "$night"
zoo --again --tell
check "the next night: nothing is missing" test "$(grep -c 'was not measured' stderr.txt)" = 0
codes=$EXIT

# ---- one table of all models, and what has changed in it ----
deploy() { run make -s -C "$ROOT" "ANALYZE=$PWD/house/bin/analyze" PROGRAMS= "OUT=${1:-$PWD/out}" dispatch; }
mkdir nothing
deploy "$PWD/nothing"
check "make dispatch: nothing was measured: not done" test "$EXIT" -ne 0
check "make dispatch: what to do" says 'has a dispatch table; say make zoo'
deploy
check "make dispatch: a table" test -s out/dispatch.json -a -s out/dispatch.h
check "make dispatch: all models are in it" python3 -c 'import json; m = json.load(open("out/dispatch.json"))["models"]; assert len(m) == 4 and "third@b4_scripted:0_burst" in m, m'
check "make dispatch: the first has none before it" test "$(grep -c '  since ' stdout.txt)" = 0
deploy
check "make dispatch: what has changed since" grep -qE "^  since .*/out/dispatch.json: 0 proven now, 0 no longer proven, 0 run as another, 0 new, 0 gone$" stdout.txt
zoo --again -o whole
check "one process ends with the same code" exits "$codes"
check "by one process: the same models, operations and figures" python3 - <<'CODE'
import json

def read(folder):
    index = json.load(open(folder + "/zoo/index.json"))
    models = [[m["model"], m["operations"], m["time_us"]] for m in sorted(index["models"], key=lambda m: m["model"])]
    return index["operations"], models

(many, parts), (all_of_them, whole) = read("out"), read("whole")
assert many == all_of_them and len(parts) == len(whole) > 1, (parts, whole)
for part, one in zip(parts, whole):
    assert part[:2] == one[:2] and abs(part[2] / one[2] - 1) < 0.01, (part, one)
CODE
finish
