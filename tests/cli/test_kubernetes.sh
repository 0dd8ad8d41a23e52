#!/usr/bin/env bash
# The template of a night on Kubernetes: it fits the published schema, and what its containers run is a night. There is no
# Kubernetes here: each command runs by itself, with the variable that Kubernetes gives it.
# shellcheck disable=SC2016 # for other shells, and for envsubst
source "${ROOT:?}/tests/cli/lib.sh"
source "$ROOT/tests/cli/scout.sh"
template=$ROOT/scripts/kubernetes/night.yaml
if [[ ! -x $PYTHON ]] || ! "$PYTHON" -c 'import importlib.util as u, yaml, sys; sys.exit(u.find_spec("kubernetes") is None)' 2>/dev/null; then
    skip "Kubernetes' schema: $PYTHON has no packages yaml and kubernetes; scripts/setup.sh installs them"
    finish
    exit
fi
schema() { run "$PYTHON" -B "$ROOT/tests/cli/kubernetes_schema.py" "$@"; }
filled() { # as envsubst fills it
    sed "s|\${NIGHT}|2026-11-27|g; s|\${PARTS}|3|g; s|\${IMAGE}|registry/ceiling-scout|g; s|\${CLAIM}|nights|g" "$template"
}

# ---- the schema ----
filled >night.yaml
schema night.yaml
check "the template fits the schema" exits 0
check "nothing of it is left to fill" test "$(grep -v '^#' night.yaml | grep -c '\${')" = 0
check "what must be filled is told at its head" contains "$template" "envsubst '\$NIGHT \$PARTS \$IMAGE \$CLAIM'"
wrong() { # WHAT FAULT SED
    filled | sed "$3" >wrong.yaml
    check "$1: it is another one" test "$(cmp -s night.yaml wrong.yaml && echo same)" = ''
    schema wrong.yaml
    check "$1: is a fault" exits 1
    check "$1: which" test "$STDOUT" = "$2"
}
wrong "a slip in a name" '[0].spec.backoffLimitPerIndexes: is not known' 's/backoffLimitPerIndex:/backoffLimitPerIndexes:/'
wrong "a text for a number" "[0].spec.completions: '3' is no int" 's/completions: 3$/completions: "3"/'
wrong "a container without a name" '[0].spec.template.spec.containers[0].name: must be there' 's/- name: part/- image: x/; /^          image: registry.*part/d'
wrong "another kind" '[1]: is no Job of batch/v1' '/^---/,$s/kind: Job/kind: CronJob/'

# ---- what the schema does not tell ----
field() { "$PYTHON" -c 'import sys, yaml; a, b = [one["spec"] for one in yaml.safe_load_all(open("night.yaml"))]; print(eval(sys.argv[1]))' "$1"; }
check "rules are of a container that is there" test "$(field 'a["podFailurePolicy"]["rules"][1]["onExitCodes"]["containerName"] == a["template"]["spec"]["containers"][0]["name"]')" = True
check "rules need pods that are not restarted" test "$(field 'a["template"]["spec"]["restartPolicy"], b["template"]["spec"]["restartPolicy"]')" = "('Never', 'Never')"
check "volumes that are mounted are there" test "$(field '{m["name"] for s in (a, b) for c in s["template"]["spec"]["containers"] + s["template"]["spec"].get("initContainers", []) for m in c["volumeMounts"]}')" = "{'nights'}"
check "names are as long as Kubernetes takes them" test "$(grep -cE '^  name: [a-z0-9-]{1,52}$' night.yaml)" = 2
check "the parts end before the other job waits no longer" test "$(field 'a["activeDeadlineSeconds"] < 1440 * 30')" = True

# ---- what the containers run ----
make_house ''
mkdir nights && cp "$ROOT/models/pruned_mlp.onnx" "$ROOT/models/quantised_mlp.onnx" nights/
python3 -B "$ROOT/tests/cli/product_model.py" nights/product.onnx
echo '{"schema": "ceiling-scout/zoo/1", "defaults": {"device": "scripted:0", "regime": "burst"}, "models": [
    {"model": "pruned_mlp.onnx", "dims": [{"batch": 4}]}, {"model": "quantised_mlp.onnx", "dims": [{"batch": 4}]}, {"model": "product.onnx"}]}' >nights/zoo.json
check "as many parts as lines of the list" test "$(house/bin/ceiling-scout zoo --list -o nights -- nights/zoo.json | wc -l)" = 3
container() { # JOB NAME [VARIABLE=…]…   its command, in a path and with a folder of this test
    local words
    "$PYTHON" -B "$ROOT/tests/cli/kubernetes_schema.py" night.yaml "$1" "$2" >words.txt
    mapfile -d '' -t words <words.txt
    run env PATH="$PWD/house/bin:$PATH" "${@:3}" "${words[@]}"
}
sed -i "/mountPath/!s|\([ (]\)/nights\([ ,/]\)|\1$PWD/nights\2|g" night.yaml
for k in 0 1 2; do
    container 0 part "JOB_COMPLETION_INDEX=$k"
    check "part $k: measured" test "$EXIT" -le 1
done
check "each part left how it ended" test "$(find nights/zoo/nights/2026-11-27 -maxdepth 1 -name '*.json' | wc -l)" = 3
# Its sleep is played: it says that it was called, and the part that is missing has ended then.
record=$(find nights/zoo/nights/2026-11-27 -maxdepth 1 -name 'product*.json')
printf '#!/usr/bin/env bash\necho "$1" >>%q\nmv %q %q\n' "$PWD/slept" "$PWD/ended" "$PWD/$record" >house/bin/sleep
chmod +x house/bin/sleep
container 1 wait
check "all have ended: nothing is waited for" absent slept
mv "$record" ended
container 1 wait
check "one has not: it is waited for" test "$(<slept)" = 30
container 1 tell
check "the night is told" contains stdout.txt 'zoo: 3 of 3 done, 3 measured'
check "... and its digest" contains stdout.txt '# Zoo of '
finish
