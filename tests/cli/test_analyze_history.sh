#!/usr/bin/env bash
# analyze history: nights are kept, suspects are settled by repetitions, every format says what changed; what is no
# history, of another program or damaged; and a limit on the size of files.
source "${ROOT:?}/tests/cli/lib.sh"
source "$ROOT/tests/cli/scout.sh"
source "$ROOT/tests/cli/analyze.sh"

made() { python3 -B "$ROOT/tests/cli/made_runs.py" "$@"; }
history() { run "$ANALYZE" history "$@"; }
prints() { [[ $STDOUT == *"$1"* ]]; }
night() { # N CHANGE…   a night's run of bert, in the folder night_N/bert
    made "night_$1/bert" 40 "$1" "taken=2026-01-$(printf %02d "$1")T01:00:00Z" "${@:2}"
}
again() { # FOLDER CHANGE…   eight repetitions of op_0004 in the folder
    local k
    for ((k = 0; k < 8; k++)); do
        made repeated 40 "10$k" "${@:2}"
        mkdir -p "$1/bert/op_0004/$k/reports"
        mv repeated/reports/op_0004.json "$1/bert/op_0004/$k/reports/"
        rm -r repeated
    done
}

sql() { # FILE TEXT   what SQLite says
    python3 -c 'import sqlite3, sys; d = sqlite3.connect(sys.argv[1]); print(*(r[0] for r in d.execute(sys.argv[2])), sep="\n", end=""); d.commit()' "$@"
}

# ---- nights ----
for ((n = 1; n <= 11; n++)); do
    night "$n"
    history h.db "night_$n/bert"
done
check "eleven quiet nights: exit 0" exits 0
check "eleven quiet nights: what there is" prints "11 nights, 40 operations, 440 figures"
check "eleven quiet nights: nothing changed" prints "last night (2026-01-11 01:00): 0 operations got slower, 0 faster"
history h.db night_11/bert
check "the same night again: it is no new one" prints "11 nights, 40 operations, 440 figures"
history h.db night_3/bert
check "an earlier one again: neither" prints "11 nights, 40 operations, 440 figures"
cp h.db quiet.db
# Nights of small models may lie within one second.
for at in 250 750 750 250; do
    night 12 "taken=2026-01-12T01:00:00.${at}Z"
    history short.db night_12/bert
    rm -r night_12
    printf '%s\n' "$STDOUT" >>short.txt
done
check "two nights within one second are two" test "$(sed -n 's/.*, \([0-9]* figures\).*/\1/p' short.txt | tr '\n' ' ')" = "40 figures 80 figures 80 figures 80 figures "
night 12 op_0004=1.2 driver=580.2 op_0005=1.03
history h.db night_12/bert -o w --format json,html
check "what is out: exit 0, for it is only suspect" exits 0
check "what is out: both are suspect" test "$(field w/index.json '[s["operation"] for s in r["suspects"]]')" = "['op_0004', 'op_0005']"
check "what is out: its folder" test "$(field w/index.json 'r["suspects"][0]["folder"]')" = night_12/bert
again again op_0004=1.2
history h.db --again again -o w
check "measured again: exit 1" exits 1
check "measured again: one line says it" test "$STDERR" = "analyze: 1 operation got slower, 0 faster; 1 suspect and not measured again"
check "measured again: text" contains w/history.txt "SLOWER  +20."
check "measured again: what differs" contains w/history.txt "driver 580.1 to 580.2"
check "measured again: JUnit" contains w/night.xml 'failures="1"'
check "measured again: metrics" contains w/night.prom 'ceiling_scout_operations{state="slower"} 1'
check "measured again: page" contains w/index.html ">SLOWER<"
check "measured again: nothing is suspect any more" test "$(field w/index.json 'r["suspects"]')" = "[]"
check "measured again: what was lost" test "$(field w/index.json 'round(r["changes"][0]["lost_us"])')" = 15
check "measured again: CSV has a line for each figure" test "$(wc -l <w/history.csv)" = 481
check "measured again: CSV, the repetitions" test "$(grep -c '^2026-01-12 01:00,12,bert,op_0004,gemm,"NVIDIA H200",.*,lib,580.2,"cublaslt 13.1.0",' w/history.csv)" = 1
check "measured again: the page has no script of its own" test "$(grep -c '<script' w/index.html)" = 1
history h.db --only op_0004
check "--only: every night" test "$(grep -c '^  2026-01-.* of its ceiling' stdout.txt)" = 12
check "--only: what changed when" prints "<- slower: driver 580.1 to 580.2"
history h.db --only nothing_has_this
check "--only: nothing" prints "nothing has that in its name"
history h.db --only op_0004 --format csv -o one.csv
check "--only: CSV" test "$(wc -l <one.csv)" = 13
check "--only: CSV of something gives no warning" test "$STDERR" = "${STDERR/warning/}"
history h.db --only nothing_has_this --format csv -o none.csv
check "--only: CSV of nothing says so" test "${STDERR%%$'\n'*}" = "analyze: warning: --only: nothing has that in its id, model or key; the table is empty"
night 13 op_0004=1.2 op_0005=1.03
history h.db night_13/bert --format json -o w
check "the new level is the level: not suspect again" test "$(field w/index.json '"op_0004" in str(r["suspects"])')" = False

# ---- not confirmed, and the program of the night before ----
cp quiet.db h2.db
history h2.db night_12/bert
again not
history h2.db --again not
check "not confirmed: exit 0" exits 0
check "not confirmed: it is told" prints "1 measured again and as before"
cp quiet.db h3.db
history h3.db night_12/bert
again with op_0004=1.2
again earlier
for ((k = 0; k < 8; k++)); do mv "earlier/bert/op_0004/$k" "with/bert/op_0004/$k-before"; done
history h3.db --again with
check "by the program of the night before it is as it was" prints "with the program of the night before it is as it was"
cp quiet.db h3.db
history h3.db night_12/bert
for ((k = 0; k < 8; k++)); do rm -r "with/bert/op_0004/$k-before" && cp -r "with/bert/op_0004/$k" "with/bert/op_0004/$k-before"; done
history h3.db --again with
check "by the program of the night before it is the same" prints "not the program"

# ---- the machine ----
cp quiet.db h4.db
night 14 machine=1.06
history h4.db night_14/bert -o w --format json
check "all are slower: the machine is suspect, by its witnesses" test "$(field w/index.json 'len(r["suspects"])')" = 16
for operation in $(field w/index.json '" ".join(s["operation"] for s in r["suspects"])'); do
    for ((k = 0; k < 8; k++)); do
        if [[ ! -e machine_$k ]]; then made "machine_$k" 40 "20$k" machine=1.06; fi
        mkdir -p "machine/bert/$operation/$k/reports"
        cp "machine_$k/reports/$operation.json" "machine/bert/$operation/$k/reports/"
    done
done
history h4.db --again machine
check "all are slower: exit 1" exits 1
check "all are slower: told once" test "$(grep -c SLOWER stdout.txt)" = 1
check "all are slower: what it is" prints "the device as a whole on NVIDIA H200"
check "all are slower: the ceilings" prints "its ceilings did not move"

# ---- several models that share operations ----
alex() { # N   the same operations in another model, taken an hour later
    made "night_$1/alex" 40 "$1" "taken=2026-01-$(printf %02d "$1")T02:00:00Z" "${@:2}"
}
alex 1
history two.db night_1/bert night_1/alex
history two.db night_1/bert night_1/alex
check "reports that did not change: no second night" prints "1 night, 40 operations"
for ((n = 2; n <= 11; n++)); do
    alex "$n"
    history two.db "night_$n/bert"
done
alex 12 op_0004=1.2
history two.db night_12/alex -o w --format json
check "a model that is gone: what is there is measured again" test "$(field w/index.json '[s["folder"] for s in r["suspects"]]')" = "['night_12/alex']"
history two.db --keep 1 --format metrics -o w
check "--keep: a model that is gone has no operations" test "$(sql two.db 'SELECT DISTINCT name FROM part JOIN model ON model.id = model')" = alex
check "--keep: nor does its number" test "$(sql two.db 'SELECT count(*) FROM part WHERE model NOT IN (SELECT id FROM model)')" = 0
sql two.db "INSERT INTO place SELECT 99, device || ' as before', name, regime, method FROM place LIMIT 1" >/dev/null
sql two.db 'INSERT INTO run SELECT 99, model, night, setting, operations, count, us, ci, proven_us, potential_us, ceiling_us, clock_mhz FROM run' >/dev/null
history two.db --format metrics -o w
check "two devices of one name: no series is there twice" test -z "$(grep -v '^#' w/night.prom | sed 's/ [^ ]*$//' | sort | uniq -d)"

# ---- room ----
history h.db --keep 3
check "--keep: as many are left" prints "3 nights, 40 operations"
check "--keep: the file is smaller" test "$(stat -c %s h.db)" -lt "$(stat -c %s quiet.db)"
check "no night, no page: exit 0" "$ANALYZE" history empty.db night_1/bert --keep 1 -o e --format html

# ---- a limit on the size of files, at each of many points ----
whole=$(sql quiet.db 'SELECT count(*) FROM point')
for limit in 1 20 40 60 80 100 120 140 160; do
    cp quiet.db full.db
    EXIT=0
    (ulimit -f "$limit" && exec "$ANALYZE" history full.db night_12/bert) >stdout.txt 2>stderr.txt || EXIT=$?
    STDOUT=$(<stdout.txt) STDERR=$(<stderr.txt)
    if ((EXIT != 0)); then check "files of $limit KiB: exit 4, and one line" test "$EXIT:$(wc -l <stderr.txt)" = 4:1; fi
    history full.db
    check "files of $limit KiB: the night is there or is not" test "$(sql full.db 'SELECT count(*) FROM point')" = "$((EXIT == 0 && $(sql full.db 'SELECT count(*) FROM night') == 12 ? whole + 41 : whole))"
    history full.db night_12/bert --format json -o full
    check "files of $limit KiB: with room it is completed" test "$(field full/index.json 'r["figures"]')" = 480
done

# ---- killed at any time ----
for ((k = 0; k < 20; k++)); do
    cp quiet.db killed.db
    "$ANALYZE" history killed.db night_12/bert >/dev/null 2>&1 &
    child=$!
    sleep "0.0$((k / 4))$((k % 4 * 25))"
    kill -KILL "$child" 2>/dev/null || true
    wait "$child" 2>/dev/null || true
    history killed.db night_12/bert --format json -o killed
    if ! cmp -s killed/index.json full/index.json; then break; fi
    rm -f killed.db*
done
check "killed at 20 moments: the next run completes it" test "$k" = 20

# ---- what is no history ----
history none.db
check "no such file: exit 3" exits 3
history none.db --keep 3
check "no such file, and no night for it: exit 3" exits 3
check "no such file, and no night for it: none is made" absent none.db
history quiet.db --again nowhere
check "no such repetitions: exit 3" exits 3
cp quiet.db tables.db
sql tables.db 'DROP TABLE part' >/dev/null
history tables.db
check "a table is missing: exit 3" exits 3
check "a table is missing: what to do" says "tables.db: is damaged"
history tables.db night_12/bert
check "a table is missing, with a night: begun anew" exits 0
mkdir 'shared 5% #1?' && cp quiet.db 'shared 5% #1?/h.db' && chmod -R a+rX,a-w 'shared 5% #1?'
if ((EUID != 0)); then
    history 'shared 5% #1?/h.db'
elif command -v setpriv >/dev/null; then
    run setpriv --bounding-set=-dac_override,-dac_read_search "$ANALYZE" history 'shared 5% #1?/h.db'
fi
check "in a folder that is another's: it can be read" prints "11 nights, 40 operations"
chmod -R u+w 'shared 5% #1?'
history quiet.db nowhere
check "no such folder: exit 3" exits 3
echo "no database at all, and long enough to be looked at: $(seq 1000)" >text.db
history text.db
check "no database: exit 3" exits 3
check "no database: what to do" says "text.db: is damaged"
history text.db night_1/bert
check "no database, with a night: exit 0" exits 0
check "no database, with a night: it is told" says "warning: text.db: is damaged"
check "no database, with a night: it is set aside" contains text.db.damaged "no database at all"
check "no database, with a night: a new one begins" prints "1 night, 40 operations"
cp quiet.db broken.db
python3 -c '
data = bytearray(open("broken.db", "rb").read())
for at in range(4096, len(data), 4096): data[at:at + 64] = bytes(range(64))
open("broken.db", "wb").write(data)'
history broken.db
check "damaged pages: exit 3" exits 3
history broken.db night_1/bert night_2/bert
check "damaged pages, with a night: begun anew" prints "1 night, 40 operations"
# A bad page in the middle: what lies on the others is kept.
for page in 11 16 20 22 24; do
    cp quiet.db page.db
    python3 -c '
import sys
data = bytearray(open("page.db", "rb").read())
at = int(sys.argv[1]) * 4096
data[at:at + 4096] = bytes(k % 251 for k in range(4096))
open("page.db", "wb").write(data)' "$page"
    touch page.db-wal # a program that did not end as it should: it is looked through
    history page.db night_12/bert --format json -o page
    check "page $page is bad: exit 0" exits 0
    check "page $page is bad: what can be read is kept" test "$(field page/index.json '300 < r["figures"] <= 480 and r["nights"] == 12')" = True
    check "page $page is bad: the new one is whole" test "$(sql page.db 'PRAGMA integrity_check')" = ok
    rm -f page.db*
done
sql other.db 'CREATE TABLE mine(x)'
history other.db night_1/bert
check "of another program: exit 3" exits 3
check "of another program: it is left alone" test "$(sql other.db 'SELECT name FROM sqlite_schema')" = mine
cp quiet.db newer.db
sql newer.db 'PRAGMA user_version = 99' >/dev/null
history newer.db night_12/bert
check "of a newer program: exit 3" exits 3
check "of a newer program: it says so" says "is of a newer program"
ln -s quiet.db link.db
history link.db night_12/bert
check "a link: exit 4" exits 4
history quiet.db --format json,html
check "several formats to standard output: exit 2" exits 2
python3 - <<'CODE' &
import sqlite3, time
db = sqlite3.connect("quiet.db", isolation_level=None)
db.execute("BEGIN IMMEDIATE")
open("writing", "w").close()
time.sleep(30)
CODE
writer=$!
for ((k = 0; k < 100; k++)); do if [[ -e writing ]]; then break; fi; sleep 0.1; done
history quiet.db
check "while another writes it can be read" exits 0
history quiet.db night_12/bert
check "while another writes: exit 4" exits 4
check "while another writes: it says so" says "another program is writing to it"
kill "$writer"
wait "$writer" 2>/dev/null || true

# ---- names that lead elsewhere ----
night 15 "op_0001:id=<b>../../x" "op_0002:key=machine" "model=<script>x</script>"
history hostile.db night_15/bert -o hostile
check "hostile names: exit 0" exits 0
check "hostile names: none becomes markup" test "$(grep -cE '<b>|<script>x' hostile/index.html hostile/night.xml | grep -vc ':0')" = 0
if [[ -x $PYTHON ]]; then
    check "index.json fits its schema" fits_schema w/index.json full/index.json hostile/index.json
else
    skip "$PYTHON is not there: no schema"
fi
finish
