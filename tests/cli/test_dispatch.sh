#!/usr/bin/env bash
# analyze dispatch: what a table holds and what it leaves out, merging, and headers that compile whatever names are in them.
source "${ROOT:?}/tests/cli/lib.sh"
source "$ROOT/tests/cli/scout.sh"
source "$ROOT/tests/cli/analyze.sh"

for kind in plain rival hostile odd driver; do python3 "$ROOT/tests/cli/made_tables.py" $kind $kind; done
dispatch() { analyze dispatch "$@"; }
dispatch_refused() { # WHAT CODE ARGUMENTS…
    local what=$1 code=$2
    shift 2
    rm -f refused.json refused.h
    analyze_refused "$what" "$code" dispatch "$@"
    check "$what: nothing is written" absent refused.json
    check "$what: no header either" absent refused.h
}
entry() { # FILE M EXPRESSION of e
    field "$1" "[($3) for e in r['entries'] if e['key'].startswith('gemm;shape=$2,')][0]"
}

# ---- what is in a table ----
dispatch plain -o plain.json --header plain.h --prefix plain
check "plain: exit 0" exits 0
check "plain: what it says" prints "4 by a tuned library, 1 by another kernel, 2 by the default; 1 proven ranges"
check "plain: fits its schema" fits_schema plain.json
check "plain: the proven one replaces the default" test "$(entry plain.json 64 '(e["choice"], e["variant"], e["default"]["variant"])')" = \
    "('tuned', 'algo=7', 'algo=0')"
check "plain: its algorithm" test "$(entry plain.json 64 'e["algo"] == "42" * 64 and e["config"]["version"]')" = 13.1.0
check "plain: its packing" test "$(entry plain.json 64 'e["packing"]')" = "{'how': 'transposed', 'us': 12.5, 'bytes': 4096}"
check "plain: its proof" test "$(entry plain.json 64 '(e["proof"]["ratio"], e["proof"]["launches"], e["default_us"])')" = "(0.9, 400, 100.0)"
check "plain: within the margin the default stays" test "$(entry plain.json 256 '(e["choice"], e["variant"], e["expected_us"], e["proof"]["ratio"])')" = \
    "('default', 'algo=0', 100.0, 1.0)"
check "plain: what touches the margin stays too" test "$(entry plain.json 512 'e["choice"]')" = default
check "plain: a custom kernel by its file's name" test "$(entry plain.json 16 '(e["choice"], e["plugin"]["file"], "library" in e)')" = "('custom', 'mine.so', False)"
check "plain: one range, where two neighbours agree" test "$(entry plain.json 64 'e["ranges"]')" = \
    "[{'places': [0], 'from': 64, 'to': 128, 'step': 16, 'upper': 'gemm;shape=128,4096,4096;layout=nn;type=fp16;weight=fp16;weight_side=b'}]"
dispatch plain -o wide.json --margin 0.06
check "plain: the margin is an option" test "$(entry wide.json 2048 'e["choice"]')$(entry wide.json 2048 'e["choice"]')" = tunedtuned
dispatch plain -o wide.json --margin 0.075
check "plain: and decides" test "$(entry wide.json 2048 'e["choice"]') $(entry wide.json 64 'e["choice"]')" = "default tuned"

# ---- the same input, the same bytes ----
mkdir -p again/reports
for file in $(find plain/reports -name '*.json' | sort -r); do cp "$file" "again/reports/z${RANDOM}_${file##*/}"; done
mv plain first && mv again plain
dispatch plain -o again.json --header again.h --prefix plain
check "the same bytes, whatever the files are called" same plain.json again.json
check "the same header" same plain.h again.h
dispatch first plain -o both.json
check "the same twice is no conflict" test -z "$STDERR"
check "each folder's name is there" test "$(field both.json 'r["models"]')" = "['first', 'plain']"
check "the same twice is once" test "$(field both.json 'len(r["entries"])')" = 7

# ---- fusions alone ----
mkdir alone && cp "$(find plain/reports -name '*.json' | sed -n 1p)" one.json
python3 -c 'import json; r = json.load(open("one.json")); r["fusion"] = {"pattern": "gemm+bias", "how": "sequence"}; json.dump(r, open("alone/one.json", "w"))'
dispatch_refused "a folder of fusions" 3 alone -o refused.json
check "a folder of fusions: says what is missing" says "no report of an operation"

# ---- what must not be written over ----
cp -r plain kept
report=$(find kept/reports -name '*.json' | sort | sed -n 1p)
cp "$report" report.before
dispatch_refused "a report in the table's place" 2 kept -o "$report"
check "a report in the table's place: says so" says "is one of the reports"
dispatch_refused "a report in the header's place" 2 kept -o refused.json --header "kept/../$report"
check "a report: it is as before" same "$report" report.before
ln -s refused.json link.h
dispatch_refused "table and header in one place" 2 plain -o refused.json --header ./refused.json
dispatch_refused "table and header in one place, by a link" 2 plain -o refused.json --header link.h

# ---- merging ----
dispatch rival -o rival.json
check "rival: exit 0" exits 0
dispatch plain -o merged.json --merge rival.json
check "merge: exit 0" exits 0
check "merge: the conflicts are told" test "$(grep -c '^analyze: conflict: gemm;shape=' stderr.txt)" = 2
check "merge: the better proof stays" test "$(entry merged.json 64 'e["algo"][:2]')" = 42
check "merge: proven beats not proven" test "$(entry merged.json 256 '(e["choice"], e["algo"][:2])')" = "('tuned', '44')"
check "merge: ranges are those of all" test "$(field merged.json '[len(e["ranges"]) for e in r["entries"] if e["ranges"]]')" = "[1]"
check "merge: both models" test "$(field merged.json 'r["models"]')" = "['plain', 'rival']"
check "merge: fits its schema" fits_schema merged.json
dispatch rival -o swapped.json --merge plain.json
check "merge: the order makes no difference" test "$(field merged.json 'r["entries"]')" = "$(field swapped.json 'r["entries"]')"
dispatch driver -o driver.json
check "driver: exit 0" exits 0
dispatch_refused "another driver branch" 3 plain -o refused.json --header refused.h --merge driver.json
check "another driver branch: both are named" says "driver=570;"
check "another driver branch: both are named" says "driver=580;"
dispatch_refused "devices that differ" 3 plain driver -o refused.json
check "devices that differ: what to do, and no option that it lacks" says "make a table of each"
sed 's/"regime": "sustained-model-graph"/"regime": "burst-cold-graph"/' rival.json >burst.json
dispatch_refused "another regime" 3 plain -o refused.json --merge burst.json
check "another regime: both are named" says burst-cold-graph
sed 's/"method": 5/"method": 4/' rival.json >older.json
dispatch_refused "another method" 3 plain -o refused.json --merge older.json
head -c 2000 rival.json >cut.json
dispatch_refused "half a table" 3 plain -o refused.json --merge cut.json
dispatch_refused "no table" 3 plain -o refused.json --merge nothing.json
dispatch_refused "a report is no table" 3 plain -o refused.json --merge "$(find plain/reports -name '*.json' | sed -n 1p)"

# ---- what has changed since ----
dispatch plain -o since.json --since plain.json
check "since itself: exit 0" exits 0
check "since itself: nothing has" prints "  since plain.json: 0 proven now, 0 no longer proven, 0 run as another, 0 new, 0 gone"
check "since itself: one line more" test "$(wc -l <<<"$STDOUT")" = 4
dispatch plain -o since.json --margin 0.075 --since plain.json
check "what is no longer proven is told" prints "  no longer proven: the default again: gemm;shape=2048,4096,4096;layout=nn;type=fp16;weight=fp16;weight_side=b: "
check "with what it ran as" prints "algo=0, before "
dispatch plain -o plain_again.json --since since.json
check "what is proven now is told" prints "  proven now: gemm;shape=2048,"
dispatch rival -o since.json --since plain.json
check "what is gone is counted" prints "1 proven now, 0 no longer proven, 1 run as another, 0 new, 5 gone"
check "what runs as another is told" prints "  runs as another: gemm;shape=64,"
check "what is gone is told" prints "  gone: gemm;shape=1024,"
dispatch plain -o since.json --since since.json
check "the table that is written may be the earlier one" prints "1 run as another, 5 new, 0 gone"
cp since.json kept.json
dispatch_refused "since a table of another device" 3 driver -o refused.json --since since.json
check "since a table of another device: both are named" says "tables of one device class go together"
dispatch_refused "since no table" 3 plain -o refused.json --since "$report"
dispatch_refused "since what is not there" 3 plain -o refused.json --since missing.json
dispatch hostile -o since.json
dispatch hostile -o other.json --since since.json
check "since hostile names: nothing has changed" prints "0 proven now, 0 no longer proven, 0 run as another, 0 new, 0 gone"

# ---- signing: tests/dispatch holds what is signed against the library ----
if command -v ssh-keygen >/dev/null; then
    for key in "ed25519 mine" "ecdsa old"; do ssh-keygen -q -t "${key% *}" -N '' -f "${key#* }"; done
    dispatch plain -o signed.json --sign mine
    check "signed: exit 0" exits 0
    check "signed: a signature of ssh-keygen's" grep -qx -- '-----BEGIN SSH SIGNATURE-----' signed.json.sig
    cp signed.json.sig before.sig
    dispatch plain -o signed.json
    check "not signed again: exit 0" exits 0
    check "not signed again: the old signature is told" prints "signs the table that was here before; --sign KEY makes a new one"
    check "not signed again: it stays" same signed.json.sig before.sig
    dispatch rival -o signed.json --sign mine.pub # the private key lies beside it
    check "by the public half's name: exit 0" exits 0
    check "by the public half's name: another table, another signature" test -n "$(cmp signed.json.sig before.sig)"
    mkdir -p none
    cp signed.json kept.json && cp signed.json.sig kept.json.sig
    unsigned() { # WHAT CODE COMMAND…
        cp kept.json unsigned.json && cp kept.json.sig unsigned.json.sig
        run "${@:3}" dispatch plain -o unsigned.json --sign "$key" --header unsigned.h
        check "$1: exit $2" exits "$2"
        check "$1: no table is written, and said so" says "no table is written"
        check "$1: the table that was there" same unsigned.json kept.json
        check "$1: its signature" same unsigned.json.sig kept.json.sig
        check "$1: no header" absent unsigned.h
    }
    key=old
    unsigned "a key of another type" 2 "$ANALYZE"
    check "a key of another type: what to do" says "name a plain key of ssh-keygen -t ed25519"
    key=nowhere
    unsigned "no key" 4 "$ANALYZE"
    check "no key: ssh-keygen says why" says "ssh-keygen says why above"
    key=mine
    unsigned "no ssh-keygen" 4 env "PATH=$PWD/none" "$ANALYZE"
    check "no ssh-keygen: what to do" says "there is no ssh-keygen in PATH; install OpenSSH's client"
    printf '#!/bin/sh\necho nonsense\n' >none/ssh-keygen && chmod +x none/ssh-keygen
    unsigned "one that says something else" 2 env "PATH=$PWD/none:$PATH" "$ANALYZE"
    printf '#!/bin/sh\nkill -9 $$\n' >none/ssh-keygen
    unsigned "one that is killed" 4 env "PATH=$PWD/none:$PATH" "$ANALYZE"
    # What it signs is what was written, whatever lies in the table's place meanwhile.
    printf '#!/bin/sh\ncp kept.json swapped.json\nexec %q "$@"\n' "$(command -v ssh-keygen)" >none/ssh-keygen
    cp kept.json swapped.json
    run env "PATH=$PWD/none:$PATH" "$ANALYZE" dispatch plain -o swapped.json --sign mine
    check "another table in its place: exit 0" exits 0
    check "another table in its place: the new one is there, and signed" ssh-keygen -q -Y check-novalidate -n ceiling-scout -s swapped.json.sig -f mine.pub <swapped.json
    check "another table in its place: it is not the other one" test -n "$(cmp swapped.json kept.json)"
    mkdir -p folder.json.sig
    dispatch plain -o folder.json --sign mine
    check "a folder in the signature's place: exit 4" exits 4
    check "a folder in the signature's place: no table" absent folder.json
    run "$ANALYZE" dispatch plain -o /dev/stdout --sign mine
    check "standard output cannot be signed" exits 2
    check "standard output cannot be signed: nothing is there" test -z "$STDOUT" -a ! -e /dev/stdout.sig
else
    skip "ssh-keygen is not installed: nothing is signed"
fi

# ---- what cannot be ----
dispatch_refused "no output" 2 plain
dispatch_refused "no folder" 2 -o refused.json
dispatch_refused "header and table are one" 2 plain -o refused.json --header refused.json
dispatch_refused "a prefix that is no name" 2 plain -o refused.json --header refused.h --prefix 'a b'
dispatch_refused "a prefix of code" 2 plain -o refused.json --header refused.h --prefix 'x;int'
dispatch_refused "the library's prefix" 2 plain -o refused.json --prefix scout_dispatch_x
dispatch_refused "a folder that is not there" 3 nowhere -o refused.json
mkdir -p empty/reports
dispatch_refused "an empty folder" 3 empty -o refused.json
dispatch_refused "a folder that is not there to write to" 4 plain -o nowhere/refused.json
dispatch odd -o odd.json
check "odd: exit 1" exits 1
check "odd: one is left" test "$(field odd.json '[e["operation"] for e in r["entries"]]')" = "['gemm_6']"
check "odd: the others are named" test "$(grep -c '^analyze: left out: gemm_' stderr.txt)" = 5

# ---- what scout_batch measured ----
echo '{"a": {"op": "gemm", "shape": [64, 64, 64]}, "b": {"op": "gemm", "shape": [8, 64, 64]}, "c": {"op": "gemm", "shape": [16, 64, 64]}}' >ops.json
scripted ops.json -o measured
check "measured: exit 0" exits 0
dispatch measured -o measured.json
check "measured: a table" exits 0
check "measured: fits its schema" fits_schema measured.json
check "measured: the device" test "$(field measured.json '(r["device"]["name"], r["device"]["driver"], r["device"]["units"])')" = "('Scripted One', '7.1', 4)"
check "measured: a library's other algorithm" test "$(entry measured.json 64 '(e["choice"], e["implementation"], e["variant"])')" = "('tuned', 'scripted_blas', 'algo=1')"
check "measured: another kernel" test "$(entry measured.json 8 '(e["choice"], e["implementation"])')" = "('custom', 'scripted_stream')"
check "measured: it is the better one" test "$(entry measured.json 8 'e["expected_us"] < e["default_us"] and e["proof"]["launches"] > 200')" = True
check "measured: a range where both agree" test "$(entry measured.json 8 '[(x["from"], x["to"], x["step"]) for x in e["ranges"]]')" = "[(8, 16, 8)]"

# ---- headers ----
dispatch hostile -o hostile.json --header hostile.h --prefix hostile
check "hostile: exit 1, for some do not fit" exits 1
check "hostile: fits its schema" fits_schema hostile.json
check "hostile: the terminal is left alone" test -z "$(LC_ALL=C grep -n '[[:cntrl:]]' stderr.txt stdout.txt)"
cp "$ROOT/tests/cli/table_use.c" table_use.c
cp table_use.c table_use.cc
warnings=(-Wall -Wextra -Wpedantic -Wshadow -Wconversion -Wsign-conversion -Wfloat-conversion -Wcast-qual -Wcast-align -Wundef
    -Wformat=2 -Wdouble-promotion -Wmissing-declarations -Wunused -Wwrite-strings -Werror)
c=(-std=c11 -Wstrict-prototypes -Wmissing-prototypes -Wc++-compat)
cc=(-std=c++17 -Wold-style-cast -Wzero-as-null-pointer-constant -Wextra-semi -Woverloaded-virtual)
python3 - >expected.txt <<'PY'
import json
for e in json.load(open("hostile.json"))["entries"]:
    texts = [e["key"], e["operation"], e["implementation"], e["variant"], json.dumps(e["config"], ensure_ascii=False, separators=(",", ":")),
             e["packing"]["how"]]
    print(*(t.encode().hex() for t in texts), len(e.get("algo", "")) // 2, "%.17g" % e["proof"]["ratio"])
PY
compiles() { # NAME COMPILER ARGUMENTS…   without a word, and what it makes finds everything
    local name=$1
    shift
    if ! command -v "$1" >/dev/null; then
        skip "$name: $1 is not installed"
        return
    fi
    run "$@" "${warnings[@]}" -O1 -o use
    check "$name: compiles" exits 0
    check "$name: without a word" silent
    run ./use
    check "$name: finds what is there, and nothing else" exits 0
    check "$name: another driver is told in a line" test "$STDERR" = \
        "the table was measured with driver 580.1, here it is 570.2: it is not used; measure here (scout_batch) and make one (analyze dispatch)"
    # what JSON may write in more ways than one is compared as it is in python
    check "$name: every text as it was" python3 -c '
import json, sys
def rows(path):
    for line in open(path):
        parts = line.split(" ")
        yield [json.loads(bytes.fromhex(p)) if k == 4 else p for k, p in enumerate(parts)]
sys.exit(list(rows("expected.txt")) != list(rows("stdout.txt")))'
}
compiles gcc gcc "${c[@]}" table_use.c
compiles clang clang "${c[@]}" table_use.c
compiles g++ g++ "${cc[@]}" -Wuseless-cast table_use.cc
compiles clang++ clang++ "${cc[@]}" table_use.cc
finish
