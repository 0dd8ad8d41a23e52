#!/usr/bin/env bash
# Blocks: every one of them by --samples, their quartiles and outliers in reports, and candidates beside each other.
source "${ROOT:?}/tests/cli/lib.sh"
source "$ROOT/tests/cli/scout.sh"
ANALYZE=${ANALYZE:-$(dirname "$EXTRACT_OPS")/analyze}

scripted --op gemm --shape 64,64,64 --samples blocks.csv -o alone
check "samples: exit 0" exits 0
check "samples: what the report says is made of them" python3 - alone/reports blocks.csv <<'END'
import csv, glob, json, math, sys
(path,) = glob.glob(sys.argv[1] + "/*.json")
report = json.load(open(path))
rows = list(csv.DictReader(open(sys.argv[2])))
assert rows and list(rows[0]) == "operation candidate variant pass block time_us launches clock_mhz counts".split(), rows[:1]
assert {r["operation"] for r in rows} == {report["operation"]}
for c in report["candidates"]:
    if c["status"] != "OK":
        continue
    for p in c["passes"]:
        mine = [r for r in rows if (r["candidate"], r["variant"], r["pass"]) == (c["name"], c["variant"], str(p["pass"]))]
        if not mine and p.get("race"):
            continue # a look was enough
        assert [int(r["block"]) for r in mine] == list(range(1, len(mine) + 1))
        assert len(mine) == p["blocks"] + p.get("dropped", 0), (len(mine), p)
        logs = [math.log(float(r["time_us"])) for r in mine if r["counts"] == "1"]
        assert abs(math.exp(sum(logs) / len(logs)) / p["time_us"] - 1) < 1e-4, p
        assert sum(int(r["launches"]) for r in mine if r["counts"] == "1") == p["launches"]
        assert "samples" not in p
    t = c["time_us"]
    if "p25" not in t:
        assert c["passes"] == [p] and p["race"], c
        continue
    assert t["min"] <= t["p05"] <= t["p25"] <= t["p50"] <= t["p75"] <= t["p95"] and 0 <= t["outliers"] <= t["batches"], t
END
check "samples: schema" fits_schema alone/reports/*.json
check "blocks: on the terminal" grep -qE '^ +blocks +min [0-9.]+, 5 % [0-9.]+, quartiles [0-9.]+, [0-9.]+, [0-9.]+, 95 % [0-9.]+ us; [0-9]+ of [0-9]+ are outliers$' stdout.txt
lines=$(wc -l <blocks.csv)
scripted --op gemm --shape 64,64,64 --samples again.csv -o alone
check "samples: what is cached is measured again" test "$(wc -l <again.csv)" -ge "$((lines / 2))"
run "$ANALYZE" explain alone gemm
check "blocks: in explain" grep -qF 'The blocks of the baseline: min ' stdout.txt
scripted --op gemm --shape 64,64,64 --samples nowhere/blocks.csv -o refused
check "samples: no folder: exit 4" exits 4
check "samples: no folder: one line" test "$(grep -c nowhere <<<"$STDERR")" = 1
scripted --ceilings --samples refused.csv
check "samples of ceilings: exit 2" exits 2
check "samples of ceilings: no file" absent refused.csv
mkfifo pipe.csv
cat pipe.csv >piped.csv &
scripted --op gemm --shape 64,64,64 --samples pipe.csv
wait
check "samples into a pipe" test "$(head -n 1 piped.csv | cut -d , -f 1-3)" = operation,candidate,variant

# ---- beside each other ----
names=scripted_stream,scripted_sparse
scripted --op gemm --shape 16,64,64 --sparsity 0.5 --candidate "$names" --table -o beside
check "beside each other: exit 0" exits 0
check "beside each other: each is told against the fastest, as its ratios say" python3 - beside/reports "$names" stdout.txt <<'END'
import glob, json, math, re, sys
(path,) = glob.glob(sys.argv[1] + "/*.json")
r = json.load(open(path))
known = {}
for c in r["candidates"]:
    if c["status"] != "OK":
        continue
    base = (c["name"], c["variant"]) == (r["baseline"], r["baseline_variant"])
    if base or "ratio_ci" in c:
        known[(c["name"] + " " + c["variant"]).strip()] = (1, 0) if base else (c["ratio"], c["ratio_ci"])
assert {name.split()[0] for name in known} == set(sys.argv[2].split(",")) | {r["baseline"]}, known
best = min(known, key=lambda name: known[name][0])
text = open(sys.argv[3]).read()
assert f"  {best} ran\n" in text, best
told = {name: (float(times), float(half)) for times, half, name in
        re.findall(r"^    ([0-9.]+) ± ([0-9.]+) times faster than (.*?)(?:, which is not proven)?$", text, re.M)}
assert set(told) == set(known) - {best}, (told, known)
for name, (times, half) in told.items():
    ratio, ci = known[name]
    assert abs(times - ratio / known[best][0]) < 0.006, (name, times)
    assert abs(half - times * math.hypot(ci, known[best][1])) < 0.006, (name, half)
END
run "$ANALYZE" explain beside gemm
check "beside each other: in explain too" grep -qE '± [0-9.]+ times faster than ' stdout.txt
finish
