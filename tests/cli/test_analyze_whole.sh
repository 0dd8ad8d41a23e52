#!/usr/bin/env bash
# The model as a whole: what every format says of model.json, and files of it that are none.
source "${ROOT:?}/tests/cli/lib.sh"
source "$ROOT/tests/cli/analyze.sh"
source "$ROOT/tests/cli/scout.sh"

python3 "$MADE" plain
python3 - <<'END'
import json, pathlib

report = json.loads(sorted(pathlib.Path("plain/reports").glob("gemm*.json"))[0].read_text())
path = pathlib.Path("plain/run.json")
run = json.loads(path.read_text())
run.update({"regime": report["regime"], "method": report["method"], "devices": [{"class": report["device"]["class"], "ceilings": None}]})
path.write_text(json.dumps(run))
END
write_model() { # PYTHON-STATEMENTS on m, what model.json holds   beside the reports of plain
    rm -rf plain/model.json
    python3 - "$1" <<'END'
import json, pathlib, sys

report = json.loads(sorted(pathlib.Path("plain/reports").glob("gemm*.json"))[0].read_text())
run = json.loads(pathlib.Path("plain/run.json").read_text())
m = {"schema": "ceiling-scout/model/1", "program": "test", "taken": "2026-11-25T00:00:00Z", "model": "plain",
     "device": {**{k: report["device"][k] for k in ("name", "class")}, "model": "Test GPU", "instance": "i", "driver": "d"},
     "regime": run["regime"], "method": run["method"], "plan": "0123456789abcdef", "ratio": 0.9, "ratio_ci": 0.002,
     "default": {"time_us": 1230.0, "ci": 0.004, "quality": "good", "sum_us": 1190.0, "sum_ci": 0.01},
     "best": {"time_us": 1107.0, "ci": 0.005, "quality": "good", "sum_us": 1050.0, "sum_ci": 0.01},
     "occurrences": 7, "launches": 7, "groups": {"operations": 7, "groups": 5, "fused": 2, "launches": 5}, "apart": [], "bound": {"found": 9, "of": 9}, "check": {"compared": 0}, "as_default": [],
     "memory": {"weight_bytes": 1, "packed_bytes": 0, "weight_copies": 1, "activation_bytes": 1, "activation_least_bytes": 1,
                "input_bytes": 1, "workspace_bytes": 0},
     "left_out": [{"operation": "conv_missing", "code": "type", "text": "no library here does that"}], "operations": [],
     "passes": [{"default_us": 1230.0, "best_us": 1107.0}]}
m["device"]["class"] = run["devices"][0]["class"]
exec(sys.argv[1])
json.dump(m, open("plain/model.json", "w"))
END
}
said() { tr -s ' \n' ' ' <"$1" | grep -F -- "$2" >/dev/null; }
sentence="1.230 ms by the libraries' defaults, 1.107 ms by the plan (7 operations in 5 groups, 2 fused; both measured as a whole; the sums of their parts are 1.190 ms and 1.050 ms; without 1 operation)"

analyze plain -o before --top 0
write_model ''
check "it is one by its schema" fits_schema plain/model.json
analyze plain -o with --top 0
check "text" said with/summary.txt "$sentence"
check "md" said with/summary.md "**The model: $sentence.**"
apostrophe="&#39;"
check "page" said with/report.html "${sentence//\'/"$apostrophe"}"
check "json" test "$(field with/summary.json "r['groups'][0]['whole']['ratio'], r['groups'][0]['whole']['default']['sum_us'], r['groups'][0]['whole']['left_out']")" = "(0.9, 1190.0, 1)"
check "the summary fits its schema" fits_schema with/summary.json

write_model 'm["best"] = None; del m["ratio"], m["ratio_ci"], m["default"]["ci"]'
analyze plain -o alone --top 0
check "nothing proven: one time" said alone/summary.txt "1.230 ms by the libraries' defaults (measured as a whole; the sum of its parts is 1.190 ms; without 1 operation)"
check "nothing proven: json has no best" test "$(field alone/summary.json "sorted(r['groups'][0]['whole'])")" = "['default', 'left_out']"
write_model 'm["elsewhere"] = True'
check "other numbers: a model by its schema" fits_schema plain/model.json
analyze plain -o elsewhere --top 0
check "other numbers: no gain, and why" said elsewhere/summary.txt "and 1.050 ms; without 1 operation; the plan computes other numbers, so no gain is proven)"
check "other numbers: the summary fits its schema" fits_schema elsewhere/summary.json
check "other numbers: in json too" test "$(field elsewhere/summary.json "r['groups'][0]['whole']['proven']")" = False
write_model 'm["default"]["sum_us"] = "much"'
analyze plain -o alone --top 0
check "no sums: none are told" said alone/summary.txt "1.230 ms by the libraries' defaults, 1.107 ms by the plan (7 operations in 5 groups, 2 fused; both measured as a whole; without 1 operation)"

write_model 'm["ratio_ci"] = 0.12'
analyze plain -o alone --top 0
check "a ratio whose interval holds 1: what operations prove is told as theirs" \
    said alone/summary.txt "proven operation by operation, and not of the model as a whole: "
check "a ratio whose interval holds 1: the page says so" said alone/report.html "the model as a whole does not confirm it"
check "a ratio whose interval holds 1: nothing is recommended" said alone/summary.txt "and 1.050 ms; without 1 operation; as a whole no gain is proven)"
check "a ratio whose interval holds 1: json" test "$(field alone/summary.json "r['groups'][0]['whole']['proven']")" = False

write_model 'm["left_out"] = []'
analyze plain -o alone --top 0
check "all operations take part: nothing is said of that" said alone/summary.txt "${sentence/; without 1 operation/}"

# Of something else than these reports: nothing is said of it, and nothing changes.
for other in 'm["device"]["class"] = "name=other"' 'm["regime"] = "burst-model-graph"' 'm["method"] = 1' 'm["device"] = 3'; do
    write_model "$other"
    analyze plain -o other --top 0
    check "$other: as without it" cmp -s before/summary.txt other/summary.txt
done
# What is none is named, and nothing else is lost.
for bad in 'm["default"]["time_us"] = -1' 'm["default"] = []' 'm["best"] = {}' 'm["default"]["time_us"] = 1e300' 'm["schema"] = "ceiling-scout/model/2"' 'm = [m]'; do
    write_model "$bad"
    analyze plain -o bad --top 0
    check "$bad: everything else is there" test -s bad/summary.json
    check "$bad: it is named" contains bad/summary.txt "model.json"
    check "$bad: no time of it" test "$(grep -c 'measured as a whole' bad/summary.txt)" = 0
done
printf '{"schema": "ceiling-scout/model/1", ' >plain/model.json
analyze plain -o bad --top 0
check "cut off: it is named" contains bad/summary.txt "model.json"
rm plain/model.json
ln -s /etc/passwd plain/model.json
analyze plain -o bad --top 0
check "a link: it is not followed" contains bad/summary.txt "is a link"
finish
