#!/usr/bin/env bash
# The template of a night on Kubernetes: it fits the published schema, and what its containers run is a night. There is no
# Kubernetes here: each command runs by itself, with the variable that Kubernetes gives it.
# shellcheck disable=SC2016 # for other shells, and for the template
source "${ROOT:?}/tests/cli/lib.sh"
source "$ROOT/tests/cli/scout.sh"
template=$ROOT/scripts/kubernetes/night.yaml
if [[ ! -x $PYTHON ]] || ! "$PYTHON" -c 'import importlib.util as u, yaml, sys; sys.exit(u.find_spec("kubernetes") is None)' 2>/dev/null; then
    skip "Kubernetes' schema: $PYTHON has no packages yaml and kubernetes; scripts/setup.sh installs them"
    finish
    exit
fi
schema() { run "$PYTHON" -B "$ROOT/tests/cli/kubernetes_schema.py" "$@"; }
make_house ''
submit() { run env PATH="$PWD/house/bin:$PATH" EVERY=0 "$ROOT/scripts/kubernetes/submit.sh" "$@"; }
mkdir nights && cp "$ROOT/models/pruned_mlp.onnx" "$ROOT/models/quantised_mlp.onnx" nights/
python3 -B "$ROOT/tests/cli/product_model.py" nights/product.onnx
echo '{"schema": "ceiling-scout/zoo/1", "defaults": {"device": "scripted:0", "regime": "burst"}, "models": [
    {"model": "pruned_mlp.onnx", "dims": [{"batch": 4}]}, {"model": "quantised_mlp.onnx", "dims": [{"batch": 4}]}, {"model": "product.onnx"}]}' >nights/zoo.json
given=(nights/zoo.json registry/ceiling-scout:1 nights 2026-11-27)

# ---- the schema ----
submit --print "${given[@]}"
check "--print: exit 0" exits 0
cp stdout.txt night.yaml
schema night.yaml
check "the template fits the schema" exits 0
check "nothing of it is left to fill" test "$(grep -v '^#' night.yaml | grep -c '\${')" = 0
check "what is to be filled is told at its head" contains "$template" 'fills NIGHT, PARTS, IMAGE and CLAIM'
check "as many parts as lines of the list" test "$(grep -c '^  completions: 3$' night.yaml)" = 1
wrong() { # WHAT FAULT SED
    sed "$3" night.yaml >wrong.yaml
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
check "rules are of containers that are there" test "$(field '[j["podFailurePolicy"]["rules"][1]["onExitCodes"]["containerName"] == j["template"]["spec"]["containers"][0]["name"] for j in (a, b)]')" = '[True, True]'
check "a rule for each index, and for a whole job" test "$(field '[j["podFailurePolicy"]["rules"][1]["action"] for j in (a, b)]')" = "['FailIndex', 'FailJob']"
check "no more indexes fail than there are" test "$(field 'a["maxFailedIndexes"] <= a["completions"]')" = True
check "rules need pods that are not restarted" test "$(field 'a["template"]["spec"]["restartPolicy"], b["template"]["spec"]["restartPolicy"]')" = "('Never', 'Never')"
check "volumes that are mounted are there" test "$(field '{m["name"] for s in (a, b) for c in s["template"]["spec"]["containers"] + s["template"]["spec"].get("initContainers", []) for m in c["volumeMounts"]}')" = "{'nights'}"
check "names are as long as Kubernetes takes them" test "$(grep -cE '^  name: [a-z0-9-]{1,63}$' night.yaml)" = 2

# ---- what the containers run ----
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
container 1 tell
check "the night is told" contains stdout.txt 'zoo: 3 of 3 done, 3 measured'
check "... and its digest" contains stdout.txt '# Zoo of '

# ---- submitting: by a kubectl that is played, which tells how the first job goes ----
cat >house/bin/kubectl <<'KUBECTL'
#!/usr/bin/env bash
echo "$*" >>asked.txt
if [[ $1 == create ]]; then
    cat >"created_$(find . -maxdepth 1 -name 'created_*' | wc -l).yaml"
    if [[ -e refused ]]; then exit 1; fi
fi
if [[ $1 == get ]]; then
    state=$(sed -n 1p states.txt)
    sed -i 1d states.txt
    if [[ $state == lost ]]; then exit 1; fi
    printf %s "$state"
fi
KUBECTL
chmod +x house/bin/kubectl
night() { # STATES ARGUMENT…
    rm -f created_* asked.txt && printf %b "$1" >states.txt
    submit "${@:2}"
}
for end in Complete Failed 'FailureTarget Failed'; do
    night "\nlost\nSuspended\n$end\n" "${given[@]}"
    check "$end: exit 0" exits 0
    check "$end: first the parts, then what tells" test "$(grep -hE '^  name: ' created_0.yaml created_1.yaml | tr -d '\n')" = "  name: ceiling-scout-2026-11-27  name: ceiling-scout-tell-2026-11-27"
    check "$end: it was looked at until then" test "$(tail -n +2 asked.txt | grep -c '^get job ceiling-scout-2026-11-27 ')/$(tail -n 1 asked.txt)" = "4/create -f -"
    cat created_0.yaml <(echo ---) created_1.yaml >both.yaml
    schema both.yaml
    check "$end: both fit the schema" exits 0
done
night 'Complete\n' --tell 2026-11-27 "${given[@]:0:3}"
check "--tell: what tells alone" test "$(grep -h '^  name: ' created_*.yaml)" = "  name: ceiling-scout-tell-2026-11-27"
night "$(printf 'lost\\n%.0s' {1..30})" "${given[@]}"
check "a cluster that is gone: exit 4" exits 4
check "a cluster that is gone: what to do" says 'go on later with: submit.sh --tell 2026-11-27 nights/zoo.json registry/ceiling-scout:1 nights'
touch refused && night '' "${given[@]}"
check "a job that is refused: exit 4" exits 4
check "a job that is refused: nothing is waited for" test "$(wc -l <asked.txt)" = 1
rm refused
night '' nights/zoo.json registry/ceiling-scout:1 nights 'A night'
check "a name that is none: exit 2" exits 2
night '' nights/zoo.json 'image"; rm' nights
check "an image that is none: exit 2" exits 2
night '' nights/zoo.json
check "too few words: exit 2" exits 2
night '' nowhere.json registry/ceiling-scout:1 nights
check "a list that is not there: exit 3" exits 3
check "nothing was asked then" absent asked.txt
finish
