#!/usr/bin/env bash
# analyze compare: the machine and the operations, what --fail-on names, what is refused, and hostile names in all formats.
source "${ROOT:?}/tests/cli/lib.sh"
source "$ROOT/tests/cli/scout.sh"
source "$ROOT/tests/cli/analyze.sh"

made() { python3 "$ROOT/tests/cli/made_runs.py" "$@"; }
compare() { analyze compare "$@"; }
compare_refused() { # WHAT CODE ARGUMENTS…
    local what=$1 code=$2
    shift 2
    rm -rf refused
    compare "$@" -o refused
    check "$what: exit $code" exits "$code"
    check "$what: one line on stderr" one_line
    check "$what: nothing is written" absent refused
}
flows() { [[ $(tr -s ' \n' ' ' <stdout.txt) == *"$1"* ]]; } # wherever its lines break
counts() { prints "compared: $1 SAME, $2 FASTER, $3 SLOWER, $4 AMBIGUOUS"; }

compare --help
check "--help: exit 0" exits 0
for option in --fail-on --format --output --top --alarms --least --ceiling --margin; do
    check "--help names $option" contains stdout.txt "$option"
done

made monday 300 1
made tuesday 300 2
compare monday tuesday --fail-on slower,verdict
check "two nights: exit 0" exits 0
check "two nights: the machine is the same" prints "machine     as fast as before"
check "two nights: all are the same" counts 300 0 0 0
check "two nights: nothing else is said" prints "Nothing changed."
check "two nights: what would have been seen" prints "of one operation is found in 99 comparisons of 100"
cp stdout.txt first.txt
made pair 2 1
made other 2 2
sed -i -E 's/"(rel_ci95|ratio_ci)": [0-9.e-]+/"\1": 0.9/g' pair/reports/*.json other/reports/*.json
compare pair other
check "two operations: nothing would have been seen" prints "seen        Too few operations are known well enough to find a slowdown of one"
compare monday tuesday
check "the same bytes again" same stdout.txt first.txt

made slow 300 3 machine=1.05 clock=1400
compare monday slow
check "a slower machine: exit 0 where nothing is to fail" exits 0
check "a slower machine is said once" prints "machine     slower: +5."
check "a slower machine: no operation is" counts 300 0 0 0
check "a slower machine: its ceilings are stored ones" prints "both runs have the same stored ceilings"
check "a slower machine: its clock" prints "clock       1470 -> 1400 MHz"
compare monday slow --fail-on slower
check "a slower machine: --fail-on slower" exits 5
check "a slower machine: --fail-on says what" says "--fail-on: the machine, and 0 operations"
compare slow monday --fail-on slower
check "a faster machine fails nothing" exits 0
made both 300 4 machine=1.05 ceilings=1.05
compare monday both
check "ceilings that moved alike" prints "it is the device"
made driver 300 5 machine=1.08 driver=590.44 class="name=NVIDIA H200;driver=590;cublaslt=13.2.0" op_0000:ceiling=1.0001
compare monday driver
check "ceilings that did not: something else" flows "something else that all operations share"
check "what differs: the driver in full" prints "differs     driver: 580.1 -> 590.44"
check "what differs: a library" prints "cublaslt: 13.1.0 -> 13.2.0"

made capped 300 10 compute=1.05 clock=1380 op_0001=1.05
compare monday capped -o capped_out --fail-on slower
check "a slower clock: exit 5" exits 5
check "a slower clock: says which" says "--fail-on: the machine, and 1 operation"
run cat capped_out/comparison.txt
check "a slower clock: what it does not bound is the same" prints "machine     as fast as before"
check "a slower clock: what it bounds is told once" prints "but what compute bounds (200 operations): slower: +5."
check "a slower clock: one of these is slower by itself" counts 298 0 1 1
run python3 "$ROOT/tests/cli/compared.py" capped_out
check "a slower clock: what others read of it" exits 0
check "a slower clock: comparison.json fits its schema" fits_schema capped_out/comparison.json

made changed 300 6 op_0100=1.03 op_0101:best=0.8 op_0102:status=CRASHED op_0103:id=renamed op_0104:gone op_0105:key=other \
    op_0106:ceiling=0.5 op_0107:status=UNSTABLE op_0108=0.9
compare monday changed --fail-on slower
check "changes: exit 5" exits 5
check "changes: how many" counts 293 2 1 2
check "changes: 3 % of one is found" prints "SLOWER"
check "changes: the best that appeared" prints "was run by lib, now by mine tile=64"
check "changes: what crashed" prints "no figure after: CRASHED"
check "changes: found under another name" test -z "$(grep renamed stdout.txt)"
check "changes: new and gone" prints "1 new, 2 gone"
check "changes: verdicts" prints "verdicts    2 worse, 1 better, 1 changed otherwise"
check "changes: the worst comes first" test "$(grep -E '^(SLOWER|FASTER|AMBIG|SAME)' stdout.txt | sed -n 1p | awk '{print $1, $NF}')" = "SLOWER op_0100"
compare monday changed
check "changes: exit 1, for two have no figure any more" exits 1
compare monday changed --fail-on verdict
check "changes: --fail-on verdict" exits 5
compare changed monday --fail-on slower
check "the other way round what was won is lost" exits 5
check "the other way round: by its old one" prints "was run by mine tile=64, now by lib"
compare monday changed --alarms 1e-300
check "--alarms: nothing is claimed" counts 293 0 0 5
compare monday changed --least 0.5
check "--least: a change below it is none" counts 296 0 0 2
compare monday changed --top 1
check "--top: the rest is counted" prints "more; --top 0 shows all"

compare monday changed -o out --fail-on slower,verdict
check "-o: exit 5" exits 5
check "-o: nothing is printed" test -z "$STDOUT"
for file in comparison.txt comparison.md comparison.json comparison.xml comparison.csv comparison.html; do check "-o: $file" present out/$file; done
check "-o: comparison.json fits its schema" fits_schema out/comparison.json
run python3 "$ROOT/tests/cli/compared.py" out
check "-o: what others read of it" exits 0
compare monday changed --format json
check "--format json: as in the file but for what fails" same <(grep -v '"failed"' stdout.txt) <(grep -v '"failed"' out/comparison.json)
compare monday changed --format text --format json -o two
check "--format twice: both" present two/comparison.txt
check "--format twice: no other" absent two/comparison.csv

made three 3 1 device=cuda:0
made three_slow 3 2 op_0001=1.03
compare three three_slow --fail-on slower
check "three operations, one 3 % slower: undecided" exits 0
check "three operations: so it says" flows "there are too few operations to learn the ordinary noise"
check "three operations: AMBIGUOUS" prints "AMBIGUOUS"
made three_gone 3 2 op_0001=1.3
compare three three_gone --fail-on slower
check "three operations, one 30 % slower: that is no drift" exits 5

# Fusions are compared as operations are, told apart from them, and in no sum.
made fused 60 1 fusions=12
made fused_same 60 2 fusions=12
made fused_after 60 3 fusions=12 fu_0001=1.2 fu_0002:best=1 fu_0003:status=UNSTABLE fu_0004:gone fu_0005:id=renamed fu_0006:key=other fu_0007=0.9
compare fused fused_same --fail-on slower,verdict
check "fusions of two nights: exit 0" exits 0
check "fusions of two nights: told" prints "fusions     12 compared: 12 SAME, 0 FASTER, 0 SLOWER, 0 AMBIGUOUS; 0 new, 0 gone"
check "fusions of two nights: nothing changed" prints "Nothing changed."
compare fused fused_after --fail-on slower -o fused_out
check "fusions that changed: exit 5" exits 5
check "fusions that changed: said" says "--fail-on: 0 operations, 2 fusions"
run cat fused_out/comparison.txt
check "fusions that changed: no operation did" prints "operations  60 compared: 60 SAME"
check "fusions that changed: how many" prints "fusions     10 compared: 6 SAME, 1 FASTER, 2 SLOWER, 1 AMBIGUOUS; 1 new, 2 gone"
check "fusions that changed: a table of their own" test "$(grep -cE 'per run (us|ms)  (operation|fusion)$' stdout.txt)" = 1
check "fusions that changed: the one that is no faster than its parts any more" prints "was run by mine tile=64, now by parts"
check "fusions that changed: its verdict" prints "verdict worse: approach FUSION to NONE"
check "fusions that changed: new and gone" test "$(grep -A 1 -E '^(New|Gone) fusions$' stdout.txt | grep -c '  fu_000[46]')" = 2
model=$(grep '^model' stdout.txt)
run python3 "$ROOT/tests/cli/compared.py" fused_out
check "fusions that changed: what others read of it" exits 0
check "fusions that changed: comparison.json fits its schema" fits_schema fused_out/comparison.json
check "fusions that changed: md has them" contains fused_out/comparison.md "| SLOWER | \`fu_0001\` |"
compare fused fused_after --fail-on verdict
check "fusions that changed: --fail-on verdict" exits 5
compare fused fused_after
check "fusions that changed: exit 1, for one has no figure any more" exits 1
cp -r fused bare && cp -r fused_after bare_after && rm -r bare/fusions bare_after/fusions
compare bare bare_after
check "no fusions: not a word of them" test -z "$(grep -i fusion stdout.txt)"
check "no fusions: the model takes the same time" prints "$model"

# Borderline rows keep their verdict, and a choice between two that are as fast is no change.
made edge 300 7 op_0001:borderline
made edge_after 300 8 op_0001=1.011 op_0001:borderline
compare edge edge_after --fail-on verdict
check "borderline: no verdict changes" exits 0
check "borderline: none is counted" prints "verdicts    0 worse, 0 better, 0 changed otherwise"

# Hostile names: read by others in every format.
nasty=$'=cmd|"/c calc"!A1`<script>alert(1)</script>|@all\n\e[31m--]]>\xe2\x80\xae'
long=$(printf 'x%.0s' {1..900})
made odd 60 1 "op_0007:id=$long" "op_0008:id=${long}y" fusions=3 "fu_0001:id=$nasty" "fu_0001:pattern=$nasty" "fu_0002:gone" "op_0001:id=$nasty" "driver=$nasty" "op_0002:key=a" "op_0003:gone"
made odd_after 60 2 "op_0007:id=$long" "op_0008:id=${long}y" fusions=3 "fu_0001:id=$nasty" "fu_0001:pattern=$nasty" fu_0001=1.5 "op_0001:id=$nasty" "op_0001=1.5" "driver=x$nasty" "op_0002:key=b" "class=name=$nasty;=;;x"
compare odd odd_after -o odd_out --fail-on slower
check "hostile names: exit 5" exits 5
run python3 "$ROOT/tests/cli/compared.py" odd_out
check "hostile names: what others read of it" exits 0
check "hostile names: comparison.json fits its schema" fits_schema odd_out/comparison.json
check "hostile names: the first line of text is whole" test "$(head -n 1 odd_out/comparison.txt)" = "before      odd  NVIDIA H200"

# With one format -o may name a file of it.
compare monday changed --format html -o page.html
check "-o FILE: the page" contains page.html "changed beside monday"
compare monday changed --format html -o here
check "-o DIR with one format: a folder" same page.html here/comparison.html
analyze monday --format md -o told.md
check "analyze -o FILE: that file" contains told.md "# "
mkdir folder.html
compare monday changed --format html -o folder.html
check "a folder that is called like a file is one" same page.html folder.html/comparison.html
compare monday changed --format html -o page.json/
check "-o FOLDER/ of any ending: a folder" same page.html page.json/comparison.html
compare monday changed -o ending.html
check "-o FILE without --format: what its ending says" same page.html ending.html
analyze monday changed --each -o all.html
check "analyze -o FILE without --format: what its ending says" contains all.html "<!DOCTYPE html>"
for wrong in "page.htm --format html" "other.json --format html" "two.html --format html,json" "page.htm"; do
    # shellcheck disable=SC2086 # words
    analyze_refused "-o $wrong" 2 compare monday changed -o $wrong
    check "-o $wrong: what to type" contains stderr.txt "; for a folder type ${wrong%% *}/"
done

# What cannot be compared, and what is not whole.
made burst 10 1 regime=burst-model-graph
made older 10 1 method=4
made h100 300 9 model="NVIDIA H100" class="name=NVIDIA H100;driver=580;cublaslt=13.1.0" machine=1.4
mkdir mixed empty
cp -r monday/reports mixed/
cp h100/reports/op_0001.json mixed/reports/other.json
compare_refused "another regime" 3 monday burst
check "another regime: names both" says "sustained-model-graph"
check "another regime: names both" says "burst-model-graph"
compare_refused "another method" 3 monday older
check "another method: names both" says "version 5 of the method"
compare_refused "a run of two devices" 3 mixed tuesday
check "a run of two devices: what to do, and no option that it lacks" says "keep each in its own folder"
compare_refused "an empty folder" 3 monday empty
compare_refused "no folder" 3 nowhere monday
made others 4 1 op_0000:key=x op_0001:key=y op_0002:key=z op_0003:key=w
compare_refused "nothing in common" 3 others monday
compare_refused "one run" 2 monday
compare_refused "three runs" 2 monday tuesday slow
compare_refused "an unknown format" 2 monday tuesday --format pdf
compare_refused "an unknown thing to fail on" 2 monday tuesday --fail-on faster
check "an unknown thing to fail on: the known ones" says "'faster' is not one of: slower, verdict"
compare_refused "an unknown format" 2 monday tuesday --format text,pdf
check "an unknown format: the known ones" says "'pdf' is not one of: text, md, json, junit, csv, html"
compare_refused "--alarms 0" 2 monday tuesday --alarms 0
compare_refused "--least -1" 2 monday tuesday --least -1
compare_refused "thresholds that contradict each other" 2 monday tuesday --medium-proven 0.5
compare monday tuesday --format text,json
check "two formats to standard output: exit 2" exits 2
compare monday h100
check "another device: exit 0" exits 0
check "another device: is said on top" prints "differs     name: NVIDIA H200 -> NVIDIA H100"
check "another device: is the machine's" prints "machine     slower: +4"
torn=$'torn\xff' # no UTF-8
made "$torn" 300 2 broken
compare monday "$torn"
check "a report cut short: exit 1" exits 1
check "a report cut short: is named" prints "1 file left out"
made whole 60 1
made half 60 2
head -c 500 half/reports/op_0007.json >cut.json && mv cut.json half/reports/op_0007.json
compare whole half
check "a report cut short in one run: it is left out" prints "1 file left out"
check "a report cut short in one run: it is not gone" prints "59 compared: 59 SAME, 0 FASTER, 0 SLOWER, 0 AMBIGUOUS; 0 new, 0 gone"
compare monday "$torn" -o torn_out
check "a report cut short, -o: is named" says "left out: torn"
run python3 "$ROOT/tests/cli/compared.py" torn_out
check "a report cut short: what others read of it" exits 0
check "a report cut short: comparison.json fits its schema" fits_schema torn_out/comparison.json
stored=$ROOT/tests/golden/reports/bert_base@b8_s128
compare "$stored" "$stored"
check "folded moves and parts have nothing to measure: not counted" test "$(grep -c 'operations\? ha.* no figure in either run' <<<"$STDOUT")" = 0
check "fusions that were not compared: counted" prints "9 fusions have no figure in either run"
run bash -c '"$0" compare monday tuesday >/dev/full' "$ANALYZE"
check "a full disk: exit 4" exits 4
mkdir -p locked && : >locked/comparison
compare monday tuesday -o locked/comparison
check "-o that is a file: exit 4" exits 4
finish
