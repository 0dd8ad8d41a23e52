#!/usr/bin/env bash
# A night in parts, as machines of a cluster measure it: parts beside each other, one that is killed and one that never
# ran, what tells of all of them, and the same night by one process. On the scripted device, whose figures cost no time.
# shellcheck disable=SC2016 # Markdown has code in backquotes
source "${ROOT:?}/tests/cli/lib.sh"
source "$ROOT/tests/cli/scout.sh"

make_house "$(holding_at third)"
mkdir m
zoo() { run house/bin/ceiling-scout zoo m/zoo.json "$@"; }
cp "$ROOT/models/transformer_block.onnx" m/first.onnx
cp "$ROOT/models/transformer_block.onnx" m/second.onnx
cp "$ROOT/models/pruned_mlp.onnx" m/third.onnx
cp "$ROOT/models/quantised_mlp.onnx" m/fourth.onnx
python3 -B "$ROOT/tests/cli/product_model.py" m/fifth.onnx # complete on this device; of the sixth the file is missing
echo '{"schema": "ceiling-scout/zoo/1", "defaults": {"device": "scripted:0", "regime": "burst"}, "models": [
    {"model": "first.onnx", "dims": [{"batch": 1, "seq": 8}]}, {"model": "second.onnx", "dims": [{"batch": 1, "seq": 8}]},
    {"model": "third.onnx", "dims": [{"batch": 4}]}, {"model": "fourth.onnx", "dims": [{"batch": 4}]},
    {"model": "fifth.onnx"}, {"model": "sixth.onnx", "sha256": "0000000000000000000000000000000000000000000000000000000000000000"}]}' >m/zoo.json

# ---- what is no part ----
for part in 0/6 7/6 1 1/ /6 one/6 1/6x -1/6; do
    zoo --night first "--part=$part"
    check "--part $part: exit 2" exits 2
    check "--part $part: what one is" says 'say 3/13, the third of 13'
done
zoo --night first --part 1/7
check "a part of another list: exit 3" exits 3
check "a part of another list: what to do" says 'has 6 models and sizes now; submit the night again'
for other in --tell --digest --only=first --again --notify=true; do
    zoo --night first --part 1/6 "$other"
    check "--part with $other: exit 2" exits 2
done
for how in '--part 1/6' --tell '--night first'; do
    # shellcheck disable=SC2086 # two words
    zoo $how
    check "$how alone: exit 2" exits 2
    check "$how alone: what goes together" says 'say --night NAME, the same for all of them'
done
for name in '' . .. a/b 'a b' -x "$(printf 'x%.0s' {1..81})"; do
    zoo "--night=$name" --tell
    check "a night called ${name@Q}: exit 2" exits 2
done
check "nothing was made" absent out

# ---- three at once; one of them is killed, and goes on ----
touch hold
house/bin/ceiling-scout zoo m/zoo.json --night first --part 1/6 >one.txt 2>&1 &
one=$!
house/bin/ceiling-scout zoo m/zoo.json --night first --part 2/6 >two.txt 2>&1 &
two=$!
house/bin/ceiling-scout zoo m/zoo.json --night first --part 3/6 >three.txt 2>&1 &
three=$!
for ((k = 0; k < 400; k++)); do if [[ -e held ]]; then break; fi; sleep 0.05; done
check "a part is measured beside others" test -e held
wait_for() { EXIT=0; wait "$1" 2>/dev/null || EXIT=$?; }
wait_for "$one"
check "the first: not complete" exits 1
check "... and says so" contains one.txt 'ceiling-scout: first@b1_s8_scripted:0_burst is not complete; out/first@b1_s8_scripted:0_burst/summary.txt tells what is missing'
wait_for "$two"
check "the second: not complete" exits 1
check "a part says what it did" grep -qE '^zoo: 1 of 1 done, [1-9][0-9]* operations, .*; first@b1_s8_scripted:0_burst: [0-9]+ measured' one.txt
check "both are of one night" test "$(cat out/{first,second}@*/.night | tr '\n' ' ')" = "first first "
check "a part tells nothing" absent out/zoo/digest.md
check "a part is no night of the history" absent out/zoo/history.db
zoo
check "a whole zoo beside parts: exit 4" exits 4
check "a whole zoo beside parts: what is there" says 'a zoo is running there, or parts of one are'
kill -KILL "$three"
wait_for "$three"
zoo --night first --tell -o early
check "--tell where no part was: all are missing" test "$(grep -c 'its part did not end in this night' stderr.txt)" = 6
check "--tell where no part was: nothing of the night stays" absent early/zoo/nights/first
rm -f hold held
zoo --night first --part 3/6
check "a part that was killed goes on" exits 1
check "... in the same night" test "$(<out/third@b4_scripted:0_burst/.night)" = first
zoo --night first --part 5/6
check "a part that is complete: exit 0" exits 0
check "... and silent" test -z "$STDERR"
zoo --night first --part 6/6
check "a part without its file: exit 3" exits 3
cp m/zoo.json kept.json
sed -i 's/"batch": 4/"batch": 5/' m/zoo.json
zoo --night first --part 4/6
check "a part, and the list is another one: exit 3" exits 3
check "a part, and the list is another one: what to do" says 'm/zoo.json: has other models and sizes than when night first began; submit the night again'
mv kept.json m/zoo.json
find out/zoo/nights -exec touch -d '3 days ago' {} +
stamps() { stat -c '%n %y' out/*@*/run.json; }
stamps >before.txt

# ---- links ----
mkdir elsewhere
for link in nights nights/first; do
    rm -rf linked && mkdir -p "$(dirname "linked/zoo/$link")" && ln -s "$PWD/elsewhere" "linked/zoo/$link"
    zoo --night first --part 1/6 -o linked
    check "a link in the place of $link: exit 4" exits 4
    check "a link in the place of $link: says so" says 'is a link, and nothing is written through links; move it away'
    check "a link in the place of $link: nothing is made where it leads" test -z "$(ls elsewhere)"
done

# ---- what tells of them, days later ----
zoo --night first --tell
check "--tell: the worst code of all parts" exits 3
check "--tell: what is missing, and where to look" says 'fourth@b4_scripted:0_burst: its part did not end in this night; what started that part has a log of it'
check "--tell: what went wrong, and why" says 'sixth@scripted:0_burst: ended with 3: m/sixth.onnx: is not there'
check "--tell: in all" grep -qE '^zoo: 6 of 6 done, 4 measured, 0 up to date; .* 1 wrong .*, 4 not complete' stdout.txt
check "--tell: nothing is measured" same <(stamps) before.txt
check "--tell: the digest has what is missing" contains out/zoo/digest.md '`fourth@b4_scripted:0_burst`: its part did not end in this night'
check "--tell: and what went wrong" contains out/zoo/digest.md '`sixth@scripted:0_burst` ended with 3: '
check "--tell: and a row of the others" test "$(grep -c '^| `' out/zoo/digest.md)" = 4
check "--tell: the history has the night" present out/zoo/history.db
check "--tell: the night has ended" absent out/zoo/nights/first

# ---- a part that is being ended still holds the folder: what tells of the night waits for it ----
exec {part}>>out/zoo/.lock
flock -s "$part"
(
    sleep 2
    flock -u "$part"
) &
zoo --night late --tell
check "a part that is being ended: waited for" exits 1
exec {part}>&-
wait

# ---- the next night is another one, and comes to what one process makes of it ----
cp "$ROOT/models/small_conv.onnx" m/sixth.onnx
sum=$(sha256sum <m/sixth.onnx)
sed -i "s/\"sha256\": \"[0-9a-f]*\"/\"sha256\": \"${sum%% *}\"/" m/zoo.json
for part in 6 5 4 3 2 1; do
    zoo --night second --part "$part/6"
    check "the next night, part $part: measured" test "$EXIT" -le 1
done
check "the next night is another" test "$(sort -u out/*@*/.night)" = second
zoo --night second --tell
check "the next night: nothing is missing" test "$(grep -c 'did not end in' stderr.txt)" = 0
codes=$EXIT counted=$(grep -oE '[0-9]+ not complete' stdout.txt)
zoo --again -o whole
check "one process ends with the same code" exits "$codes"
check "... of as many that are not complete" test "$(grep -oE '[0-9]+ not complete' stdout.txt)" = "$counted"
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

# ---- one table of all models, and what has changed in it ----
deploy() { run make -s -C "$ROOT" "ANALYZE=$PWD/house/bin/analyze" PROGRAMS= "OUT=${1:-$PWD/out}" "${@:2}" dispatch; }
mkdir nothing
deploy "$PWD/nothing"
check "make dispatch: nothing was measured: not done" test "$EXIT" -ne 0
check "make dispatch: what to do" says 'has a dispatch table; say make zoo'
deploy
check "make dispatch: a table" test -s out/dispatch.json -a -s out/dispatch.h
check "make dispatch: all models are in it" python3 -c 'import json; m = json.load(open("out/dispatch.json"))["models"]; assert len(m) == 6 and "third@b4_scripted:0_burst" in m, m'
check "make dispatch: the first has none before it" test "$(grep -c '  since ' stdout.txt)" = 0
deploy
check "make dispatch: what has changed since" grep -qE "^  since .*/out/dispatch.json: 0 proven now, 0 no longer proven, 0 run as another, 0 new, 0 gone$" stdout.txt
if command -v ssh-keygen >/dev/null; then
    ssh-keygen -q -t ed25519 -N '' -f key
    deploy "$PWD/out" "SIGN=$PWD/key"
    check "make dispatch SIGN=: a signature" ssh-keygen -q -Y check-novalidate -n ceiling-scout -s out/dispatch.json.sig -f key.pub <out/dispatch.json
else
    skip "ssh-keygen is not installed: nothing is signed"
fi
finish
