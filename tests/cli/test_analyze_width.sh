#!/usr/bin/env bash
# What analyze prints fits the terminal, 100 columns elsewhere; it has colours where a terminal has them and NO_COLOR is
# not set; of a column of times all have one unit.
source "${ROOT:?}/tests/cli/lib.sh"
source "$ROOT/tests/cli/scout.sh"
source "$ROOT/tests/cli/analyze.sh"
STORED=$ROOT/tests/golden/reports

python3 "$MADE" plain
reason="no library here computes a convolution of this kind: its kernel is larger than its input, its groups are uneven, and its \
output would have to be written in a layout that none of them knows, nor does any kernel of this project; give it another layout"
sed -i "s/no library here does that/$reason/" plain/reports/conv_missing.json
cp -r "$STORED/bert_base@b8_s128" bert
for folder in plain bert; do
    run env -u NO_COLOR python3 -B "$ROOT/tests/cli/terminal_analyze.py" "$ANALYZE" "$folder"
    check "$folder on terminals" exits 0
    run env NO_COLOR=1 python3 -B "$ROOT/tests/cli/terminal_analyze.py" "$ANALYZE" "$folder"
    check "$folder on terminals, without colours" exits 0
    analyze "$folder"
    check "$folder in a pipe: 100 columns" test "$(wc -L <stdout.txt)" -le 100
    check "$folder in a pipe: no colours" test "$(grep -c $'\e' stdout.txt)" = 0
done
run env -u NO_COLOR TERM=dumb python3 -B -c 'import os, sys
sys.path.insert(0, sys.argv[1])
import pseudo_terminal
run_on = pseudo_terminal.run_on
def dumb(line, command):
    execv = os.execv
    os.execv = lambda path, words: (os.environ.update(TERM="dumb"), execv(path, words))
    run_on(line, command)
pseudo_terminal.run_on = dumb
print("\x1b[" in pseudo_terminal.on_terminal(sys.argv[2:], 80)[1])' "$ROOT/tests/cli" "$ANALYZE" plain
check "a terminal without colours" test "$STDOUT" = False
cp -r plain after
python3 - after/reports "$reason" <<'END'
import json, sys
def edit(name, change):
    with open(f"{sys.argv[1]}/{name}.json") as file:
        report = json.load(file)
    change(report)
    with open(f"{sys.argv[1]}/{name}.json", "w") as file:
        json.dump(report, file)
def fails(report):
    for key in ("baseline_time_us", "best_time_us", "efficiency", "best", "best_variant", "best_approach"):
        report.pop(key, None)
    report.update(status="UNSUPPORTED", reason={"code": "type", "text": sys.argv[2]}, best=None)
    report["candidates"] = [{"name": "lib", "variant": "algo=0", "status": "UNSUPPORTED", "reason": report["reason"]}]
edit("gemm_optimal", fails)
END
# shellcheck disable=SC2043
for colour in "-u NO_COLOR" NO_COLOR=1; do
    # shellcheck disable=SC2086 # two words
    run env $colour python3 -B "$ROOT/tests/cli/terminal_analyze.py" "$ANALYZE" after plain "no figure after: UNSUPPORTED, $reason" \
        "operations have no figure in either run"
    check "compare on terminals, $colour" exits 0
done
analyze compare plain after
check "compare in a pipe: 100 columns" test "$(wc -L <stdout.txt)" -le 100
check "compare: one unit, in the head" prints "before us  after us per run us  operation"
analyze plain
check "times: one unit, in the head" prints "operations    time, ms    share      proven gain, ms   only potential, ms"
check "times: figures as people write them" prints "together                            8       4.911                0.100"
finish
