#!/usr/bin/env bash
# ceiling-scout zoo: a night, a second one that measures nothing, a third that does what was touched; what several models
# share is measured once; each bad input; a kill in the middle. On the scripted device, whose figures cost no time.
source "${ROOT:?}/tests/cli/lib.sh"
source "$ROOT/tests/cli/scout.sh"

make_house "$(holding_at second)"
mkdir m
zoo() { run house/bin/ceiling-scout zoo "$@"; }
list() { # FILE MODELS   a list with these models
    printf '{"schema": "ceiling-scout/zoo/1", "defaults": {"device": "scripted:0", "regime": "burst"}, "models": [%s]}\n' "$2" >"$1"
}
prints_line() { grep -qE "$1" stdout.txt; }

# ---- three nights ----
for name in first second third; do cp "$ROOT/models/transformer_block.onnx" "m/$name.onnx"; done
cp "$ROOT/models/pruned_mlp.onnx" m/third.onnx
list m/zoo.json '{"model": "first.onnx", "dims": [{"batch": 1, "seq": 8}, {"batch_size": 2, "sequence_length": 16}]},
    {"model": "second.onnx", "dims": [{"batch": 1, "seq": 8}]}, {"model": "third.onnx", "dims": [{"batch": 4}], "regime": "sustained"}'
tag=scripted:0_burst
zoo m/zoo.json --list
check "--list: exit 0" exits 0
check "--list: a line for each" test "$(wc -l <stdout.txt)" = 4
check "--list: what it is called" prints_line "^first@b1_s8_$tag +m/first.onnx +not measured yet$"
check "--list: nothing is made" absent out
zoo m/zoo.json
check "a night: not worse than not complete" exits 1
check "a night: one line on stderr" test "$(wc -l <stderr.txt)" = 1
check "a night: a line for each, and one for all" test "$(wc -l <stdout.txt)" = 5
check "a night: how far it is" prints_line "^zoo: 1 of 4 done, [1-9][0-9]* operations, .* left; first@b1_s8_$tag: [1-9][0-9]* measured, 0 from the cache$"
check "a night: what is shared is measured once" prints_line "second@b1_s8_$tag: 0 measured, [1-9][0-9]* from the cache$"
check "a night: in all" prints_line "^zoo: 4 of 4 done, 4 measured, 0 up to date; "
for folder in "first@b1_s8_$tag" "first@${tag},batch_size=2,sequence_length=16" "second@b1_s8_$tag" third@b4_scripted:0_sustained; do
    check "a night: $folder" present "out/$folder/summary.json"
    check "a night: a log of $folder" present "out/zoo/logs/$folder.log"
    check "a night: $folder is in the digest" contains out/zoo/digest.md "$folder"
done
check "a night: the digest has a row for each" test "$(grep -c '^| `' out/zoo/digest.md)" = 4
check "a night: the page has all models" test "$(grep -oE 'href="#group[1-4]"' out/zoo/all.html | sort -u | wc -l)" = 4
check "a night: nothing says that it still runs" absent out/zoo/running
zoo m/zoo.json --list
check "--list: when it was measured" prints_line '^third@b4_.* measured 20[0-9-]+T'
stamps() { stat -c '%n %y' out/*@*/run.json out/*@*/summary.json; }
stamps >before.txt
zoo m/zoo.json --digest
check "a second night: the same code" exits 1
check "a second night: measures nothing" prints_line "^zoo: 4 of 4 done, 0 measured, 4 up to date; "
check "a second night: --digest prints it" contains stdout.txt "# Zoo of \`m/zoo.json\`"
check "a second night: nothing is written again" same <(stamps) before.txt
cp "$ROOT/models/quantised_mlp.onnx" m/third.onnx
zoo m/zoo.json
check "after a change: just that one" prints_line "^zoo: 4 of 4 done, 1 measured, 3 up to date; "
check "after a change: it is the one" test "$(diff <(stamps) before.txt | grep '^<' | grep -vc third@)" = 0
touch m/first.onnx
zoo m/zoo.json
check "touched, the same operations: nothing is measured" prints_line "first@b1_s8_$tag: read again, the same operations$"
run house/bin/ceiling-scout profile m/first.onnx --batch 1 --seq 8 --device scripted:0 --regime burst
check "profile of one of them: nothing to do" test "$(grep -c 'is up to date' stdout.txt)" = 4
zoo m/zoo.json --only second
check "--only a model" prints_line "^zoo: 1 of 1 done, 0 measured, 1 up to date; "
check "--only: the digest tells of all" test "$(grep -c '^| `' out/zoo/digest.md)" = 4
zoo m/zoo.json --only "first@b1_s8_$tag" --budget 90
check "--only a folder, --budget: measured so" test "$(field "out/first@b1_s8_$tag/run.json" 'r["options"]["budget_s"]')" = 90.0
zoo m/zoo.json --only fourth
check "--only what is not there: exit 2" exits 2
check "--only what is not there: what to type" says "zoo --list"
sed -i 's/"failed": *0/"failed": 7/' "out/second@b1_s8_$tag/run.json"
python3 -c 'import json, sys; r = json.load(open(sys.argv[1])); r["groups"][0]["whole"] = {"proven": False}; json.dump(r, open(sys.argv[1], "w"))' \
    "out/first@b1_s8_$tag/summary.json"
zoo m/zoo.json --only second
check "operations that failed have no result" prints_line "^zoo: 1 of 1 done, 0 measured, 1 up to date; 4 operations; "
check "no gain of the model as a whole: told" grep -q '^| `first@b1_.* 0\.0 % | 0\.0 % .*as a whole no gain is proven |$' out/zoo/digest.md
check "no gain of the model as a whole: it is none of the most" test "$(grep '^- `' out/zoo/digest.md | grep -c first@b1_)" = 0
check "no gain of the model as a whole: others have theirs" test "$(grep '^- `' out/zoo/digest.md | grep -c second@)" = 1
whole='{"default": {"time_us": 2000.0, "ci": 0.004}, "best": {"time_us": 1500.0}, "ratio": 0.75, "ratio_ci": 0.01, "proven": True}'
python3 -c 'import json, sys; r = json.load(open(sys.argv[1])); g = r["groups"][0]; g["whole"] = eval(sys.argv[2]); del g["partial"]; json.dump(r, open(sys.argv[1], "w"))' \
    "out/second@b1_s8_$tag/summary.json" "$whole"
zoo m/zoo.json --only second
check "the model as a whole: its time, interval and gain" grep -q '^| .second@b1_.*. | 2\.000 ms | ± 0\.4 % | 25\.0 % | ' out/zoo/digest.md
check "the model as a whole: its gain is among the most" grep -q '^- .second@b1_.*.: 500\.0 us of 2\.000 ms a run (25\.0 %)$' out/zoo/digest.md
python3 -c 'import json, sys; r = json.load(open(sys.argv[1])); g = r["groups"][0]; g["whole"] = {"default": g["whole"]["default"]}; json.dump(r, open(sys.argv[1], "w"))' \
    "out/second@b1_s8_$tag/summary.json"
zoo m/zoo.json --only second
check "the model as a whole by its defaults alone: no gain, all the rest is potential" \
    grep -qE '^\| .second@b1_.*. \| 2\.000 ms \| ± 0\.4 % \| 0\.0 % \| [1-9][0-9.]* % \| ' out/zoo/digest.md
check "the model as a whole by its defaults alone: others have their gains" grep -q '^- .first@' out/zoo/digest.md
zoo m/zoo.json -o b --only first --budget 90
zoo m/zoo.json -o b --only second --budget 90
check "with a budget, too, what is shared is measured once" prints_line "second@b1_s8_$tag: 0 measured, [1-9][0-9]* from the cache$"
if [[ -x $PYTHON ]]; then
    check "the lists fit the schema" fits_schema m/zoo.json "$ROOT/models/zoo.json"
    "$PYTHON" -B - "$ROOT" house/bin/ceiling-scout m/zoo.json >terminal.txt <<'CODE'
import sys
sys.path.insert(0, sys.argv[1] + "/tests/cli")
from pseudo_terminal import on_terminal
print(on_terminal([sys.argv[2], "zoo", sys.argv[3]], 60)[1])
CODE
    check "on a terminal: one line, drawn over" contains terminal.txt $'\r\e[Kzoo: 1 of 4 done'
    check "on a terminal: the last line is what came of it" grep -q '^zoo: 4 of 4 done, 1 measured, 3 up to date' <(sed 's/\r/\n/g; s/\x1b\[K//g' terminal.txt | sed '/^$/d' | tail -n 2)
    check "on a terminal: no line is wider" test "$(sed 's/\r/\n/g; s/\x1b\[K//g' terminal.txt | grep '^zoo: [1-3] of' | awk '{ if (length($0) > 60) n++ } END { print n + 0 }')" = 0
else
    skip "$PYTHON is not there: no schema, no terminal"
fi

# ---- nights: kept, and what got slower is measured again ----
list m/one.json '{"model": "second.onnx", "budget_s": 300, "dims": [{"batch": 1, "seq": 8}]}'
zoo m/one.json -o n --again
check "a night: it is kept" test "$(field n/zoo/index.json 'r["nights"]')" = 1
check "a night: the digest says what changed" contains n/zoo/digest.md "The last of 1 nights: 0 operations got slower, 0 faster."
check "a night: the page" contains n/zoo/index.html '<a href="../second%40b1_s8_scripted%3A0_burst/report.html">'
check "a night: JUnit and metrics" test -s n/zoo/night.xml -a -s n/zoo/night.prom
check "a night: it is over" absent n/zoo/night
check "a night: its program is kept" test -x n/zoo/program/scout_batch
zoo m/one.json -o n
check "without --again: nothing is measured" prints_line "0 measured, 1 up to date"
check "without --again: it is no night" test "$(field n/zoo/index.json 'r["nights"]')" = 1
zoo m/one.json -o n --again
check "--again: all of it is measured" prints_line "1 measured, 0 up to date; .* [1-9][0-9]* measured, 0 from the cache"
check "--again: another night" test "$(field n/zoo/index.json 'r["nights"]')" = 2
# Eight nights before, in which one operation took a tenth less.
python3 - n/zoo/history.db <<'CODE'
import sqlite3, sys
db = sqlite3.connect(sys.argv[1])
for night in range(3, 11):
    db.execute("INSERT INTO night(id, at) VALUES(?, ?)", (night, 1700000000 + 86400 * night))
    db.execute("INSERT INTO point SELECT series, ?1, taken - 1000 * ?1, us * (1 + 0.002 * (?1 % 3 - 1)), ci, default_us, ceiling_us, clock_mhz, best, "
               "setting, NULL, NULL FROM point WHERE night = 2", (night,))
db.execute("UPDATE point SET us = 0.9 * us WHERE series = (SELECT series FROM part ORDER BY operation LIMIT 1)")
db.commit()
CODE
printf '\n# another program\n' >>house/bin/scout_batch
zoo m/one.json -o n --again
check "one got slower: exit 1" exits 1
check "one got slower: told at the end" prints_line "^zoo: 1 operation got slower, 0 faster"
check "one got slower: eight times again" test "$(field n/zoo/index.json 'r["changes"][0]["measured_again"]')" = 8
check "one got slower: by how much" test "$(field n/zoo/index.json '0.10 < r["changes"][0]["change"] < 0.13')" = True
check "one got slower: by the program of the night before as well" contains n/zoo/digest.md "not the program"
# shellcheck disable=SC2016 # Markdown's own quotes
check "one got slower: in the digest" grep -q '^- slower by +1[0-9.]* %: `.*` in `second@b1_s8' n/zoo/digest.md
check "one got slower: JUnit" contains n/zoo/night.xml 'failures="1"'
check "one got slower: the repetitions are gone" absent n/zoo/again
zoo m/one.json -o n
check "nothing is measured: it is told no second time" test "$(grep -c "got slower" stdout.txt)" = 0
sql='UPDATE change SET state = 0 WHERE night = (SELECT max(id) FROM night) AND state = 1'
python3 -c 'import sqlite3, sys; d = sqlite3.connect("n/zoo/history.db"); d.execute(sys.argv[1]); d.commit()' "$sql"
zoo m/one.json -o n # as a kill amid the repetitions leaves it
check "a night that is settled later keeps its alarm: exit 1" exits 1
check "a night that is settled later keeps its alarm: told" prints_line "^zoo: 1 operation got slower, 0 faster"
check "a night that is settled later keeps its alarm: nothing is measured" prints_line "0 measured, 1 up to date"
stat -c %i n/zoo/program/scout_batch >program.txt
printf '\n# and another\n' >>house/bin/scout_batch
zoo m/one.json -o n
check "without --again the program of the night stays" test "$(stat -c %i n/zoo/program/scout_batch)" = "$(<program.txt)"
zoo m/one.json -o n --again
check "the new level is no change" test "$(field n/zoo/index.json 'r["last_night"]["slower"]')" = 0
zoo m/one.json -o n --notify "cat >heard.md; echo \"\$CEILING_SCOUT_NIGHT\" >state.txt"
check "--notify: it gets the digest" same heard.md n/zoo/digest.md
check "--notify: and what the night was" contains state.txt incomplete
zoo m/one.json -o n --notify 'echo no such hook >&2; exit 7'
check "--notify that fails: told, and the code is the night's" test "$EXIT:$(grep -c -- '--notify: ended with 7: no such hook' stderr.txt)" = 1:1
list m/hung.json '{"model": "first.onnx", "dims": [{"batch": 1, "seq": 8}]}'
house/bin/ceiling-scout zoo m/hung.json -o hung --notify 'sleep 500 & sleep 400' >hung.txt 2>&1 & # looked at last
hung=$!
echo 'an old night' >n/zoo/night
rm -rf n/zoo/cache
zoo m/one.json -o n --again
check "a night that was interrupted goes on under its name" contains "n/second@b1_s8_$tag/.night" "an old night"
check "a night that was interrupted: told" prints_line "^zoo: goes on with the night of an"
echo 'a night of before' >n/zoo/night
touch -d '13 hours ago' n/zoo/night
zoo m/one.json -o n --again
check "a night of half a day ago is over" test "$(grep -c 'before' "n/second@b1_s8_$tag/.night")" = 0
echo "no database" >n/zoo/history.db
zoo m/one.json -o n --again
check "a damaged history: begun anew from the reports" test "$(field n/zoo/index.json 'r["nights"]')" = 1
check "a damaged history: set aside" present n/zoo/history.db.damaged
printf 'CREATE TABLE mine(x);' | python3 -c 'import os, sqlite3, sys; os.remove("n/zoo/history.db"); sqlite3.connect("n/zoo/history.db").executescript(sys.stdin.read())'
zoo m/one.json -o n
check "a history that cannot be kept: exit 4" exits 4
check "a history that cannot be kept: told, and the rest is done" says "the history was not kept: "

# ---- two at once, a kill in the middle ----
rm -rf out && touch hold
house/bin/ceiling-scout zoo m/zoo.json >night.txt 2>&1 &
night=$!
for ((k = 0; k < 200; k++)); do if [[ -e held ]]; then break; fi; sleep 0.05; done
zoo m/zoo.json
check "a second zoo: exit 4" exits 4
check "a second zoo: which process runs, and since when" says "a zoo is running there, process $night since 20"
check "a second zoo: one line" test "$(wc -l <stderr.txt)" = 1
kill -KILL "$night"
wait "$night" 2>/dev/null || true
rm hold
zoo m/zoo.json
check "after a kill: what was done is not done again" prints_line "first@b1_s8_$tag: up to date$"
check "after a kill: the rest is" prints_line "^zoo: 4 of 4 done, 2 measured, 2 up to date; "
check "after a kill: nothing is left half-written" test -z "$(find out -name '*.tmp*' -o -name '*.new')"
mkdir -p l2/zoo && printf 'process 999999999 since then' >l2/zoo/running
exec {lock}>>l2/zoo/.lock
flock "$lock"
house/bin/ceiling-scout zoo m/zoo.json -o l2 >night.txt 2>&1 &
night=$!
for ((k = 0; k < 200; k++)); do if [[ -e l2/zoo/models ]]; then break; fi; sleep 0.05; done
sleep 0.3
kill -TERM "$night"
EXIT=0
wait "$night" || EXIT=$?
exec {lock}<&-
check "asked to end while it waits: exit 1" exits 1
check "asked to end while it waits: the other's mark stays" contains l2/zoo/running "process 999999999 since then"
rm -rf out held && touch hold
house/bin/ceiling-scout zoo m/zoo.json >night.txt 2>&1 &
night=$!
for ((k = 0; k < 200; k++)); do if [[ -e held ]]; then break; fi; sleep 0.05; done
kill -TERM "$night"
EXIT=0
wait "$night" || EXIT=$?
check "asked to end: exit 1" exits 1
check "asked to end: what to type" contains night.txt "the same command goes on where it was"
check "asked to end: nothing goes on" test -z "$(rm -f held; sleep 0.3; ls held 2>/dev/null)"
rm hold

# ---- one that goes wrong: the rest goes on ----
echo "no model" >m/broken.onnx
list m/wrong.json '{"model": "broken.onnx", "dims": [{"<b>`|x": 1}]}, {"model": "gone.onnx"}, {"model": "third.onnx", "dims": [{"batch": 4}]},
    {"name": "nowhere", "model": "third.onnx", "device": "none"}'
sum=$(sha256sum <m/third.onnx)
sum=${sum%% *}
list m/sums.json "{\"name\": \"right\", \"model\": \"third.onnx\", \"sha256\": \"$sum\"}, {\"name\": \"other\", \"model\": \"first.onnx\", \"sha256\": \"$sum\"},
    {\"name\": \"url\", \"model\": \"file://$PWD/m/thi%72d.onnx\"}"
zoo m/wrong.json -o w
check "some go wrong: the worst code" exits 3
check "some go wrong: the others are done" present "w/third@b4_$tag/summary.json"
check "some go wrong: the last line" prints_line "^zoo: 4 of 4 done, 1 measured, .* 3 wrong \("
check "no model: told" says "broken@$tag,<b>''x=1: ended with 3: extract_ops: "
# shellcheck disable=SC2016 # the backquotes are Markdown's
check "no model: its names are code in the digest" test "$(sed 's/`[^`]*`//g' w/zoo/digest.md | grep -c '<b>')" = 0
check "a file that is not there: told" says "gone@$tag: ended with 3: extract_ops: m/gone.onnx: cannot be opened"
check "another device: told" says "nowhere@none_burst: ended with 2: scout_batch: --device none"
check "some go wrong: a line for each, and one" test "$(wc -l <stderr.txt)" = 4
check "some go wrong: in the digest" test "$(grep -c '^- `.* ended with ' w/zoo/digest.md)" = 3
zoo m/sums.json -o s
check "a checksum that differs: exit 3" exits 3
check "a checksum that differs: told" says "m/first.onnx: its sha256 is "
check "a checksum that differs: not used" absent "s/other@$tag"
check "the right checksum, and a file's URL: measured" prints_line "^zoo: 3 of 3 done, 2 measured, "
zoo m/sums.json -o s
check "again: up to date" prints_line "^zoo: 3 of 3 done, 0 measured, 2 up to date; "

# ---- loading that goes wrong by itself ----
list m/never.json "{\"model\": \"https://localhost:1/never.onnx\", \"sha256\": \"$sum\"}"
mkdir -p n/zoo/models/never.checked
zoo m/never.json -o n
check "what cannot be removed: exit 4" exits 4
check "what cannot be removed: told" says "never.checked: cannot be removed"
printf '#!/usr/bin/env bash\necho "not as it should be"\nexit 1\n' >house/lib/ceiling-scout/zoo_fetch.sh
zoo m/sums.json -o s --only right
check "a script that goes wrong: exit 4" exits 4
check "a script that goes wrong: its model is not up to date" says "right@$tag: ended with 4: not as it should be"
cp "$ROOT/scripts/zoo_fetch.sh" house/lib/ceiling-scout/
mkdir slow && cp m/third.onnx slow/
cat >slow/sha256sum <<SCRIPT
#!/usr/bin/env bash
$(type -P sha256sum)
echo more >>slow/third.onnx
SCRIPT
chmod +x slow/sha256sum
PATH="$PWD/slow:$PATH" run "$ROOT/scripts/zoo_fetch.sh" '' slow/third.onnx "$sum" slow/mark
check "a file that changes while it is read: exit 4" exits 4
check "a file that changes while it is read: told" says "slow/third.onnx: has changed while it was read"
check "a file that changes while it is read: no mark" absent slow/mark

# ---- what is loaded ----
if command -v openssl >/dev/null && command -v python3 >/dev/null && command -v curl >/dev/null; then
    openssl req -x509 -newkey rsa:2048 -nodes -keyout key.pem -out cert.pem -days 2 -subj /CN=localhost -addext subjectAltName=DNS:localhost 2>/dev/null
    mkdir served && cp m/third.onnx served/ && truncate -s 65G served/large.onnx
    printf 'proxy = "http://127.0.0.1:1"\n' >.curlrc
    export CURL_HOME=$PWD # no settings of a user's own count
    python3 -B "$ROOT/tests/cli/served.py" served port.txt >asked.txt &
    server=$!
    for ((k = 0; k < 100; k++)); do if [[ -s port.txt ]]; then break; fi; sleep 0.05; done
    export CURL_CA_BUNDLE=$PWD/cert.pem
    url=https://localhost:$(<port.txt)
    list m/loaded.json "{\"model\": \"$url/third.onnx?download=true\", \"sha256\": \"${sum^^}\"}, {\"model\": \"$url/gone.onnx\", \"sha256\": \"$sum\"}"
    mkdir -p l/zoo/models && head -c 3000 m/third.onnx >l/zoo/models/third.onnx.part
    zoo m/loaded.json -o l
    check "a URL: measured" present "l/third@$tag/summary.json"
    check "a URL: goes on where it was" contains asked.txt "/third.onnx bytes=3000-"
    check "a URL: nothing is left of loading" test "$(ls l/zoo/models)" = $'third.checked\nthird.onnx'
    check "a URL that is gone: exit 3" exits 3
    check "a URL that is gone: told" says "$url/gone.onnx: is not to be had: curl: (22)"
    list m/large.json "{\"model\": \"$url/large.onnx\", \"sha256\": \"$sum\"}"
    zoo m/large.json -o l
    check "a URL that is too large: exit 3" exits 3
    check "a URL that is too large: told" says "$url/large.onnx: is larger than 64 GiB"
    : >asked.txt
    echo other >served/third.onnx
    zoo m/loaded.json -o l --only third
    check "a URL again: not asked for" test ! -s asked.txt
    head -c 3000 m/first.onnx >l/zoo/models/third.onnx
    zoo m/loaded.json -o l --only third
    check "a file that differs: loaded again, and what came is refused" says "$url/third.onnx?download=true: its sha256 is "
    check "a file that differs: gone" test -z "$(ls l/zoo/models)"
    kill "$server"
    wait "$server" 2>/dev/null || true
    zoo m/loaded.json -o l --only third
    check "no server: exit 4" exits 4
    check "no server: told" says "could not be loaded: curl: (7)"
else
    skip "openssl, python3 or curl is not installed: nothing is loaded"
fi

# ---- a full disk ----
run bash -c 'ulimit -f 40; "$@" 2>&1 | cat' - house/bin/ceiling-scout zoo m/zoo.json -o full
check "a full disk: each is told" test "$(grep -c 'ended with 4: .*cannot be written' stdout.txt)" = 4
check "a full disk: the end is told" grep -q '^ceiling-scout: full/zoo/all.html: was not written\|^ceiling-scout: 4 of 4 went wrong\|^ceiling-scout: the history was not kept' stdout.txt
if [[ -w /dev/full ]]; then
    run bash -c 'exec "$@" >/dev/full' - house/bin/ceiling-scout zoo m/zoo.json --list
    check "a full disk under stdout: exit 4" exits 4
fi
mkdir -p linked/zoo && ln -s ../../m/zoo.json linked/zoo/digest.md
cp m/zoo.json kept.json
zoo m/zoo.json -o linked
check "a link in the digest's place: exit 4" exits 4
check "a link in the digest's place: what it leads to stays" same m/zoo.json kept.json
for link in models models/first.checked models/third.onnx.part logs/first.fetch.log; do
    rm -rf linked && mkdir -p linked/zoo/{logs,models}
    if [[ $link == models ]]; then rmdir linked/zoo/models; fi
    ln -s "$PWD/m" "linked/zoo/$link"
    zoo m/sums.json -o linked
    check "a link in the place of $link: told" says "linked/zoo/$link: is a link"
done
touch file
zoo m/zoo.json -o file
check "a file in the folder's place: exit 4" exits 4

# ---- a bad list ----
zoo -o made
check "no list at all: exit 2" exits 2
check "no list at all: what to type" says "say ceiling-scout zoo ZOO.json"
bad() { # CAUSE TEXT
    printf '%s\n' "$2" >m/bad.json
    zoo m/bad.json -o made
    check "$1: exit 3" exits 3
    check "$1: told" says "$1"
    check "$1: one line" test "$(wc -l <stderr.txt)" = 1
    check "$1: nothing is made" absent made
}
model() { bad "$1" "{\"schema\": \"ceiling-scout/zoo/1\", \"models\": [$2]}"; }
zoo m/none.json -o made
check "no list: exit 3" exits 3
check "no list: told" says "m/none.json: cannot be opened"
bad "bad.json: line" '{"schema": '
bad "ceiling-scout/zoo/1" '{"schema": "ceiling-scout/zoo/2", "models": []}'
bad "\"models\" is no list" '{"schema": "ceiling-scout/zoo/1", "models": {}}'
bad 'did you mean "models"' '{"schema": "ceiling-scout/zoo/1", "model": []}'
bad 'defaults: there is no member "precison"' '{"schema": "ceiling-scout/zoo/1", "defaults": {"precison": "fp16"}, "models": [{"model": "a.onnx"}]}'
model 'models[0]: "model" is missing' '{"name": "a"}'
model 'models[0]: is no object' '"a.onnx"'
model 'did you mean "dims"' '{"model": "a.onnx", "dim": [{"batch": 1}]}'
model 'needs a "sha256"' '{"model": "https://example.org/a.onnx"}'
model '"sha256" is no sum' '{"model": "a.onnx", "sha256": "abc"}'
model 'is loaded by no way' '{"model": "http://example.org/a.onnx"}'
model 'names no file' '{"model": "file://host/a.onnx"}'
model 'give a "name"' '{"model": "two words.onnx"}'
model 'give a "name"' '{"model": "a.onnx", "name": "../a"}'
model 'give a "name"' '{"model": "zoo.onnx"}'
model 'give a "name"' '{"model": "a.onnx", "name": "all"}'
model 'models[1]: is called a, and so is models[0]' '{"model": "x/a.onnx"}, {"model": "y/a.onnx"}'
model 'models[1]: a@b1 is there twice' '{"model": "a.onnx", "dims": [{"batch": 1}]}, {"model": "a.onnx", "dims": [{"batch": 2}, {"batch": 1}]}'
model '"precision" cannot be "fp12"' '{"model": "a.onnx", "precision": "fp12"}'
model '"regime" cannot be "steady"' '{"model": "a.onnx", "regime": "steady"}'
model '"budget_s" is no number' '{"model": "a.onnx", "budget_s": "2m"}'
model '"dims" is no list' '{"model": "a.onnx", "dims": {"batch": 1}}'
model '"dims" is no list' '{"model": "a.onnx", "dims": [3]}'
model '"batch" is no whole number' '{"model": "a.onnx", "dims": [{"batch": 0}]}'

list same.json '{"model": "made/zoo/models/a.onnx"}, {"model": "https://h/a.onnx", "sha256": "'"$sum"'"}'
zoo same.json -o made --list
check "a file where another is loaded to: exit 3" exits 3
check "a file where another is loaded to: told" says "models[1]: is called a, and so is models[0]"

# ---- make, and the models of this tree ----
if command -v make >/dev/null; then
    unset MAKEFLAGS MFLAGS MAKELEVEL
    make_zoo() { run make -s -C "$ROOT" "FRONT=$PWD/house/bin/ceiling-scout" PROGRAMS= "OUT=$PWD/made of make" "ZOO=$PWD/m/zoo.json" "$@"; }
    make_zoo zoo-list
    check "make zoo-list" prints_line "^first@b1_s8_$tag "
    make_zoo ONLY=third zoo
    check "make zoo: its folder" present "made of make/third@b4_scripted:0_sustained/summary.json"
    make_zoo ONLY=third BUDGET=30 nightly
    check "make nightly: the digest" contains stdout.txt "# Zoo of "
    check "make nightly: BUDGET" test "$(field "made of make/third@b4_scripted:0_sustained/run.json" 'r["options"]["budget_s"]')" = 30.0
else
    skip "make is not installed"
fi
run "$(dirname "$EXTRACT_OPS")/ceiling-scout" zoo "$ROOT/models/zoo.json" --list -o made
for model in "$ROOT"/models/*.onnx; do check "models/zoo.json has ${model##*/}" contains stdout.txt "/${model##*/} "; done
check "models/zoo.json: each is there" test "$(grep -c 'not measured yet' stdout.txt)" = "$(wc -l <stdout.txt)"
if [[ -x $PYTHON ]] && "$PYTHON" -c 'import onnx' 2>/dev/null; then
    run "$PYTHON" -B "$ROOT/scripts/make_models.py" again
    for model in "$ROOT"/models/*.onnx; do
        check "make_models.py makes ${model##*/} again" same "$model" "again/${model##*/}"
        check "${model##*/} is small" test "$(stat -c %s "$model")" -lt 300000
    done
    check "make_models.py makes no other" test "$(find again -name '*.onnx' | wc -l)" = "$(find "$ROOT/models" -name '*.onnx' | wc -l)"
else
    skip "Python's onnx is not there: models/ is not made again"
fi
# ---- a command that hangs, which began long ago ----
EXIT=0
wait "$hung" || EXIT=$?
check "--notify that hangs: it is ended, and the code is the night's" exits 1
check "--notify that hangs: told" contains hung.txt "--notify: did not end in 30 s, and was ended"
check "--notify that hangs: nothing of it is left" test -z "$(pgrep -f '^sleep [45]00$')"

# ---- the list that a GPU's night is measured by: its time is too short to find out there that it cannot be read ----
zoo "$ROOT/tests/gpu/zoo/zoo.json" --list
check "a GPU's list: is read" exits 0
check "a GPU's list: fifteen models at three sizes" test "$(wc -l <stdout.txt)" = 45
finish
