#!/usr/bin/env bash
# What a report leaves open, in every form that analyze writes: a figure of one pass, one that depends on addresses, a
# gain over an own kernel, a ceiling from beside it, and a row that an older version gave no figure.
source "${ROOT:?}/tests/cli/lib.sh"
source "$ROOT/tests/cli/analyze.sh"
source "$ROOT/tests/cli/scout.sh"

python3 "$MADE" made open
analyze made -o made --top 0
check "all formats: exit 1, for one has no baseline" exits 1
check "the reports fit their schema" fits_schema made/reports/gemm_{once,addresses,close}.json
check "the summary fits its schema" fits_schema made/summary.json
outcome() { [[ $(field made/summary.json "[o['outcome'] for o in r['groups'][0]['operations'] if o['operation'] == '$1'][0]") == "$2" ]]; }
sum() { field made/summary.json "round(r['groups'][0]['totals']['$1'], 6)"; }

check "one pass: undecided" outcome gemm_once undecided
check "one pass: nothing is proven of it" contains made/summary.txt "Open: lib algo=7 took 50.0 % less in one pass."
check "one pass: no interval is made up" test "$(field made/summary.json "['baseline_ci' in o for o in r['groups'][0]['operations'] if o['operation'] == 'gemm_once']")" = "[False]"
check "one pass: it counts as any in the model's time" test "$(field made/summary.json "0.09 < r['groups'][0]['totals']['model_ci'] < 0.3")" = True
check "the total has its interval: text" contains made/summary.txt "± "
check "the total has its interval: md" contains made/summary.md "| by default | 1.000 ms ± "
check "the total has its interval: csv" contains made/summary.csv ",model_us,model_ci,"
check "the total has its interval: junit" contains made/junit.xml '<property name="model_ci" value="0.'
check "the total has its interval: page" contains made/report.html '<span class="soft">± '

mkdir -p alone/reports && cp made/reports/gemm_once.json alone/reports/
analyze alone -o alone
check "no interval is known: text" contains alone/summary.txt "100.0 us ± ? a run"
check "no interval is known: md" contains alone/summary.md "| by default | 100.0 us ± ?"
check "no interval is known: csv" grep -q ',100,,"Test GPU"' alone/summary.csv
check "no interval is known: junit" test "$(grep -c model_ci alone/junit.xml)" = 0

check "own kernels: an outcome of its own" outcome rotary_own own
check "own kernels: in no sum of what is proven" test "$(sum proven_us)" = 40.0
check "own kernels: counted apart" test "$(sum own_us)" = 40.0
check "own kernels: text" contains made/summary.txt "besides, over the project's own kernels where no library has one: 40.00 us"
check "own kernels: md" contains made/summary.md "| gained over the project's own kernels | 40.00 us |"
check "own kernels: page" contains made/report.html "Over the project's own kernels, where no library has one, 40.00 µs"

check "a ceiling from beside: its interval alone decides" outcome gemm_close optimal
check "an older row without a figure: SKIPPED" test "$(field made/summary.json "r['groups'][0]['missing'][0]['status']")" = SKIPPED
check "an older row without a figure: no failed one" test "$(sum with_bad_rows)" = 0
check "an older row without a figure: so says the page" test "$(grep -c UNSTABLE made/report.html)" = 0

explain() { # what it says without its line breaks
    analyze explain "$@"
    STDOUT=$(tr -s ' \n' ' ' <stdout.txt)
}
explain made gemm_addresses
check "addresses: the recommendation" prints "Its time depends on memory addresses: between 0.860 and 0.970 of the default's time."
check "addresses: the verdict is of the middle" prints "the verdict holds for the middle"
check "passes: how its time was come by" prints "The best: its time is taken at the clock that its own load holds, its interval from 4 passes: 0.890, 0.900, 0.910, 0.920 of the baseline's time; 6 of 86 blocks were disturbed and dropped."
check "the table: every loser, by time" prints "lib algo=49 101.00 ± 2.0 % 9901.0 1.000 1.010 ± 2.0 % wide lib algo=48 102.00"
check "the table: beyond ten the rest is counted" prints "times faster than lib algo=41 and 21 more"
check "addresses: the page" contains made/report.html "between 0.860 and 0.970 of the default's time, by the placement of its memory"
check "the table: a wide interval stands on the page as it is" contains made/report.html "± 123 %"
check "the table: the same of a ratio" contains made/report.html "1.300 ± 140 %"
check "the table: the page" contains made/report.html "<h4>All variants, fastest first</h4>"
explain made gemm_once
check "open: what was not decided" prints "Not decided when the run ended: winner, ceiling, time. A larger --budget or --target-ci 0.5% goes on."
check "open: it may be any" prints "lib is at about 60.0 % of the ceiling, from one pass only"
check "open: the rule" prints "yes at the ceiling or not: open efficiency is 60.0 %, or any other"
explain made gemm_close
check "a ceiling from beside: where from" prints "It follows from a probe in neighbouring blocks, at this operation's clock"
check "a ceiling from beside: how near" prints "efficiency 92.0 ± 0.1 %"
finish
