#!/usr/bin/env bash
# A folder of results belongs to one run: nothing is written through links, a second run is refused, others may not change it.
source "${ROOT:?}/tests/cli/lib.sh"
source "$ROOT/tests/cli/scout.sh"
source "$ROOT/tests/cli/analyze.sh"
echo '{"a": {"op": "gemm", "shape": [64, 64, 64]}, "b": {"op": "gemm", "shape": [64, 64, 32]}}' >ops.json
scripted ops.json --precision fp32 -o good -q
check "a folder: exit 0" exits 0

# ---- links ----

mkdir outside
outside() { find outside -type f -exec cat {} + | cksum; }
linked() { # WHAT PLACE COMMAND…   the place in dir/ is a link to something outside, which stays as it was
    local what=$1 place=$2 kind before
    shift 2
    for kind in there dangling folder; do
        rm -rf dir outside && mkdir outside && cp -r good dir
        echo mine >outside/there && mkdir outside/folder && echo mine >outside/folder/a.json
        before=$(outside)
        rm -rf "dir/$place" && mkdir -p "$(dirname "dir/$place")" && ln -s "$PWD/outside/$kind" "dir/$place"
        run "$@"
        check "$what, a link ($kind): exit 4" exits 4
        check "$what, a link ($kind): is said" says "$place: is a link"
        check "$what, a link ($kind): nothing outside has changed" test "$before" = "$(outside)"
        check "$what, a link ($kind): nothing more is there" absent outside/dangling
        check "$what, a link ($kind): it stays" test -L "dir/$place"
    done
}
measure=("$SCOUT" --custom-kernel "$SCRIPTED/device.so" --device scripted:0)
for place in reports run.json reports/a.json; do
    linked "scout_batch, $place" "$place" "${measure[@]}" ops.json --precision fp32 -o dir -q
    linked "scout_batch --resume, $place" "$place" "${measure[@]}" ops.json --precision fp32 -o dir -q --resume
done
joined=$ROOT/tests/golden/transformer_block.ops.json # a list with fusions
scripted "$joined" -o joined -q
fusion=$(cd joined && printf '%s\n' fusions/*.json | sed -n 1p)
for place in fusions "$fusion"; do
    linked "scout_batch, $place" "$place" "${measure[@]}" "$joined" -o dir -q
done
linked "scout_batch --ceilings" ceilings_scripted0_sustained-graph.json "${measure[@]}" --ceilings --precision fp32 -o dir -q
for place in summary.txt summary.json report.html; do linked "analyze, $place" "$place" "$ANALYZE" good -o dir; done
cp "$MODEL" dir.onnx
for place in ops.json .model .extract .contents reports run.json; do
    linked "profile.sh, $place" "$place" env PROFILE_MODEL=dir.onnx PROFILE_OUT=. "$ROOT/scripts/profile.sh" "$EXTRACT_OPS" --quiet
done
rm -rf dir && ln -s good dir
scripted ops.json --precision fp32 -o dir -q
check "a folder that is a link itself: is the user's way" exits 0

# ---- two runs into one folder ----

echo '{"c": {"op": "gemm", "shape": [32, 32, 32]}}' >other.json
rm -rf both && cp -r good both
CEILING_SCOUT_PATIENCE=60 CEILING_SCOUT_FAULTS=hang "${measure[@]}" --custom-kernel "$SCRIPTED/faults.so" ops.json --precision fp32 -o both --no-cache -q >first.txt 2>&1 &
first=$!
for ((k = 0; k < 600; k++)); do if ! contains both/run.json '"state": "complete"'; then break; fi; sleep 0.05; done
scripted other.json --precision fp32 -o both -q --no-wait
check "a second run, --no-wait: exit 4" exits 4
check "a second run, --no-wait: is told so, and what to do" grep -qE "^scout_batch: both: process $first \(ops.json, since 20[0-9T:Z-]+\) is writing there; leave out --no-wait to wait for it, or name another folder$" stderr.txt
check "a second run: the first's reports stay" test -e both/reports/a.json -a -e both/reports/b.json
check "a second run: has none there" absent both/reports/c.json
scripted --op gemm --shape 8,8,8 --precision fp32 -o both -q --no-wait
check "a second run of one operation: exit 4" exits 4
scripted ops.json --precision fp32 -o elsewhere -q --no-wait
check "a second run elsewhere, that finds all in the cache: exit 0" exits 0
scripted ops.json --precision fp32 -o elsewhere -q --no-cache --no-wait
check "a second run elsewhere, on the same device: exit 4" exits 4
check "a second run elsewhere, on the same device: is told so, and what to do" grep -qE "^scout_batch: scripted:0: process $first \\(ops.json, since 20[0-9T:Z-]+\\) is measuring on it; leave out --no-wait to wait for it, or name another device$" stderr.txt
scout --custom-kernel "$SCRIPTED/device.so" --device scripted:1 other.json --precision fp32 -o elsewhere -q --no-wait
check "a second run elsewhere, on another device: exit 0" exits 0
kill -9 "$first"
wait "$first" 2>/dev/null || EXIT=$?
scripted ops.json --precision fp32 -o both -q --no-wait
check "after a run that was killed: exit 0" exits 0
check "after a run that was killed: no lock is left" absent both/.scout_lock

# ---- umask ----

umask 0
open() { find "$@" -perm /022 ! -type l; }
XDG_CACHE_HOME=$PWD/open/cache scripted ops.json --precision fp32 -o open/dir -q
analyze open/dir -o open/dir/more
analyze dispatch open/dir -o open/dir/dispatch.json --header open/dir/dispatch.h
run env PROFILE_MODEL=dir.onnx PROFILE_OUT=open/out "$ROOT/scripts/profile.sh" "$EXTRACT_OPS" --quiet
check "umask 0: there are files of each" test -e open/dir/run.json -a -e open/dir/more/report.html -a -e open/dir/dispatch.h -a -e open/out/dir/.extract -a -d open/cache
check "umask 0: no other user may write any" test -z "$(open open)"
finish
