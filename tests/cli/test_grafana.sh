#!/usr/bin/env bash
# The dashboard for Grafana: Grafana's model of one reads it whole, and it asks for what a night writes.
# shellcheck disable=SC2016 # variables of Grafana's
source "${ROOT:?}/tests/cli/lib.sh"
source "$ROOT/tests/cli/analyze.sh"
PYTHON=$ROOT/out/venv/bin/python
dashboard=$ROOT/scripts/grafana/dashboard.json
if [[ ! -x $PYTHON ]] || ! "$PYTHON" -c 'import grafana_foundation_sdk, promql_parser' 2>/dev/null; then
    skip "Grafana's model: $PYTHON has no packages grafana-foundation-sdk and promql-parser; scripts/setup.sh installs them"
    finish
    exit
fi
python3 -B "$ROOT/tests/cli/made_runs.py" night/bert 40 1 taken=2026-01-01T01:00:00Z
run "$ANALYZE" history h.db night/bert -o w --format metrics
check "a night: its metrics" present w/night.prom
holds() { run "$PYTHON" -B "$ROOT/tests/cli/grafana_dashboard.py" "$1" w/night.prom; }
holds "$dashboard"
check "the dashboard holds" exits 0
check "... without a word" test -z "$STDOUT$STDERR"

wrong() { # WHAT FAULT SED
    sed "$3" "$dashboard" >wrong.json
    check "$1: it is another one" test "$(cmp -s "$dashboard" wrong.json && echo same)" = ''
    holds wrong.json
    check "$1: is a fault" exits 1
    check "$1: which" contains stdout.txt "$2"
}
wrong "a slip in a member" '.timeZone: is not known' 's/"timezone"/"timeZone"/'
wrong "a metric that is not there" 'History: no night writes ceiling_scout_history_megabytes' 's/ceiling_scout_history_bytes/ceiling_scout_history_megabytes/'
wrong "a metric that nothing shows" 'ceiling_scout_history_bytes: no panel shows it' 's/ceiling_scout_history_bytes/ceiling_scout_night_timestamp_seconds/'
wrong "no PromQL" 'Since the last night: ' 's/"time() - /"time() - - \//'
wrong "a label that is not there" 'Got slower: ceiling_scout_operations has no label status' 's/{state=\\"slower\\"}/{status=\\"slower\\"}/'
wrong "a variable that is not there" '$models: there is no such variable' 's/\$model\\"/$models\\"/'
wrong "panels on each other" 'lies on ' 's/"x": 12,/"x": 11,/'
finish
