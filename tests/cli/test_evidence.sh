#!/usr/bin/env bash
# An archive of results: all of them are in it, unchanged, with what they came from; and it is whole or not there.
source "${ROOT:?}/tests/cli/lib.sh"
source "$ROOT/tests/cli/scout.sh"
source "$ROOT/tests/cli/analyze.sh"
make_house ''
cp "$ROOT"/scripts/collect_evidence.sh house/lib/ceiling-scout/
cp "$MODEL" "a model.onnx"
run house/bin/ceiling-scout profile "a model.onnx" --seq 8 --device scripted:0 -o o
folder="o/a model@s8_scripted:0"
check "results: exit 0 or 1" test "$EXIT" -le 1
mkdir "$folder/counters" && echo '"ID",' >"$folder/counters/x.best.csv"
ln -s "$MODEL" "$folder/reports/link.json" && echo secret >"$folder/note.txt"
evidence() { run house/bin/ceiling-scout evidence "$@"; }

evidence "$folder"
check "an archive: exit 0" exits 0
check "an archive: says where, and what to look at" prints "wrote a model@s8_scripted_0-evidence.tar.gz: "
check "an archive: says what to look at" prints 'look at it before you send it'
mkdir got && tar -C got -xzf "$PWD/a model@s8_scripted_0-evidence.tar.gz"
check "it is one folder" test "$(ls got)" = evidence
top="got/evidence/results/a model@s8_scripted:0"
check "each report is in it" test "$(find "$top/reports" -name '*.json' | wc -l)" = "$(find "$folder/reports" -type f -name '*.json' | wc -l)"
check "each group is in it" test "$(find "$top/fusions" -name '*.json' | wc -l)" = "$(find "$folder/fusions" -type f -name '*.json' | wc -l)"
check "counters are in it" same "$top/counters/x.best.csv" "$folder/counters/x.best.csv"
for name in ops.json run.json summary.json summary.txt report.html dispatch.json dispatch.h junit.xml; do
    check "$name is in it" same "$top/$name" "$folder/$name"
done
check "links are not, nor what is no result" test -z "$(find got -type l -o -name note.txt -o -name '*.onnx')"
check "the checksums hold" bash -c 'cd got/evidence && sha256sum --quiet -c sha256.txt'
check "each file has one" test "$(wc -l <got/evidence/sha256.txt)" = "$(find got -type f ! -name sha256.txt | wc -l)"
check "what was called" contains got/evidence/commands.txt 'extract_ops a\ model.onnx -o '
check "... run.json has the rest" contains got/evidence/commands.txt '--device=scripted:0'
for text in 'analyze 0.' 'scripted:0' 'PRETTY_NAME' 'Architecture' "$(sha256sum <"$ANALYZE" | cut -c 1-64)"; do
    check "the machine: $text" contains got/evidence/machine.txt "$text"
done
run "$ANALYZE" "$top" --format csv
check "it is read again: as before" test "$STDOUT" = "$("$ANALYZE" "$folder" --format csv || true)"
evidence "$folder" -o twice.tar.gz
mkdir again && tar -C again -xzf "$PWD/twice.tar.gz"
check "a name of one's own, and the same results" diff -r "$top" "again/evidence/results/a model@s8_scripted:0"

# ---- what goes wrong ----
evidence
check "no folder: exit 2" exits 2
evidence nowhere
check "a folder that is not there: exit 3" exits 3
check "a folder that is not there: what to do" says 'nowhere: has no run.json; name a folder that ceiling-scout profile wrote'
mkdir empty
evidence empty
check "no results: exit 3" exits 3
mkfifo pipe
for place in empty pipe; do
    evidence "$folder" -o "$place"
    check "$place for a file: exit 2" exits 2
    check "$place for a file: is said" says "$place: is no file"
    check "$place for a file: it stays" test ! -f "$place"
done
cp -r "$folder" bent && rm bent/run.json && ln -s "$PWD/$folder/run.json" bent/run.json
evidence bent
check "a link for run.json: exit 3" exits 3
rm bent/run.json && cp "$folder/run.json" bent/ && printf 'a\nsecret\nsecret\n' >key && ln -sf "$PWD/key" bent/.extract && ln -sf "$PWD/key" bent/.measure
CDPATH=$PWD/empty evidence bent -o bent.tar.gz
check "links for stamps: exit 0" exits 0
check "links for stamps: are not followed" test "$(tar -xOzf bent.tar.gz evidence/commands.txt | grep -c secret)" = 0
mkdir named && mv bent named/machine.txt
(umask 077 && evidence named/machine.txt -o named.tar.gz && echo "$EXIT $(stat -c %a named.tar.gz)" >code.txt)
check "a folder of any name, under any umask" test "$(<code.txt)" = "0 600"
evidence "$folder" -o missing/x.tar.gz
check "a folder that is missing: exit 4" exits 4
check "a folder that is missing: is said" says 'missing/x.tar.gz: cannot be written'
echo old >kept.tar.gz
(
    ulimit -f 16
    trap '' XFSZ
    evidence "$folder" -o kept.tar.gz
    echo "$EXIT" >code.txt
)
check "a full disk: exit 4" test "$(<code.txt)" = 4
check "a full disk: what was there stays" test "$(<kept.tar.gz)" = old
check "a full disk: nothing else is left" test -z "$(find . -maxdepth 1 -name '.evidence*')"
finish
