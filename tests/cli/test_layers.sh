#!/usr/bin/env bash
# Every row names the layers of the model that it stands for, as ops.json beside the reports has them: in all formats, in
# analyze explain, which finds an operation by them, and whatever a model calls them.
source "${ROOT:?}/tests/cli/lib.sh"
source "$ROOT/tests/cli/scout.sh"
source "$ROOT/tests/cli/analyze.sh"

python3 "$MADE" named
python3 - named/ops.json "$ROOT/tests/cli" <<'END'
import json, sys
sys.dont_write_bytecode = True
sys.path.insert(0, sys.argv[2])
from made_reports import NASTY
query = [f"/encoder/layer.{k}/attention/self/query/MatMul" for k in range(12)]
ops = [{"id": "gemm_proven", "count": 10, "nodes": query},
       {"id": "gemm_optimal", "count": 20, "nodes": ["/decoder/ffn=up/MatMul"]},
       {"id": "attention_open", "count": 5, "nodes": NASTY},
       {"id": "gemm_part", "count": 0, "nodes": query[:1]},
       {"id": "gemm_near", "count": 15, "nodes": ["/a/MatMul", "/b/MatMul", "/c/MatMul"]}]
json.dump({"schema": "ceiling-scout/ops/1", "model": {"name": "m"}, "ops": ops}, open(sys.argv[1], "w"))
END
first=/encoder/layer.0/attention/self/query/MatMul

analyze named
check "text: the first, and how many more" prints "     $first and 11 more"
check "text: some of several" prints "     among /a/MatMul and 2 more"
check "text: no control of a hostile name" test -z "$(LC_ALL=C tr -d '\n -~\200-\377' <stdout.txt)"
analyze named --format json
cp stdout.txt named.json
check "json: fits" fits_schema named.json
layers() { field named.json "next(o for o in r['groups'][0]['operations'] if o['operation'] == '$1')$2"; }
check "json: all of them, in order" test "$(layers gemm_proven '["layers"][3]')" = "${first/layer.0/layer.3}"
check "json: hostile ones as they are" test \
    "$(layers attention_open '["layers"] == json.load(open("named/ops.json"))["ops"][2]["nodes"]')" = True
check "json: among them" test "$(layers gemm_near '["layers_among"]')" = True
check "json: of others nothing" test "$(layers gemm_rival '.get("layers")')" = None
for format in csv junit md; do
    analyze named --format $format --top 0
    cp stdout.txt named.$format
    run python3 -B "$ROOT/tests/cli/analyze_formats.py" $format named/reports named.$format
    check "$format: others read it" exits 0
done
csv() { # FILE EXPRESSION of rows
    python3 -c 'import csv, sys; rows = list(csv.DictReader(open(sys.argv[1], newline=""))); print(eval(sys.argv[2]))' "$1" "$2"
}
check "csv: all of them in one field" test "${first/layer.0/layer.11}" = \
    "$(csv named.csv 'next(r for r in rows if r["operation"] == "gemm_proven")["layers"].split("; ")[11]')"
check "csv: a formula is text" test "'=cmd|" = \
    "$(csv named.csv 'next(r for r in rows if r["operation"] == "attention_open")["layers"][:6]')"
check "junit: in its output" contains named.junit "layers: $first and 11 more"
check "md: in a column of their own" contains named.md "| \`gemm_proven\` | \`$first and 11 more\` |"
analyze named -o page --format html
check "html: in the table" contains page/report.html "<span class=\"soft\">$first and 11 more</span>"
check "html: all of them" grep -qxF "${first/layer.0/layer.11}</p></details>" page/report.html
check "html: hostile ones as text" grep -qxF "&#60;script&#62;alert(1)&#60;/script&#62;" page/report.html

# ---- explain ----

for name in "${first/layer.0/layer.3}" layer.7/attention/self/query ffn=up '=cmd|'; do
    analyze explain named "$name"
    check "explain $name: exit 0" exits 0
    check "explain $name: its layers" prints "Layers of the model"
done
check "explain: of hostile names each is a line" prints "  <script>alert(1)</script>"
analyze explain named $first --top 2
check "explain: a part of another is not meant" prints $'gemm_proven\n'
check "explain --top: the rest is counted" prints "… 10 more (--top 0 shows all)"
analyze explain named /a/MatMul
check "explain: among others" prints "Layers of the model, among which it is"
analyze explain "$ROOT/tests/golden/reports/bert_base@b8_s128" gemm_gelu
check "explain: what a fusion joins, and where" prints $'Joins\n  gemm_1024x3072x768_fp16_ff54e53359\n    node_MatMul_114 and 11 more'
analyze_refused "a layer of several" 2 explain named MatMul
check "a layer of several: they are named" says "3 operations have layers with 'MatMul'; give one of their ids: gemm_near, gemm_optimal, gemm_proven"
analyze_refused "no layer" 2 explain named /nowhere/

# ---- weights that differ in their zeros: each is the layer of its weight ----

analyze "$ROOT/tests/golden/reports/mlp_sparse" --format csv
check "an entry in parts: each has its layer" test \
    "node_linear=DENSE node_linear_1=UNSTRUCTURED node_linear_2=STRUCTURED_24 node_linear_3=BLOCK_SPARSE" = \
    "$(csv stdout.txt '" ".join(sorted(r["layers"] + "=" + r["pattern"] for r in rows))')"

# ---- several folders; files that are none ----

cp -r named other
sed -i 's,/encoder/,/other/,g' other/ops.json
analyze named other
check "two models: the layers of both" prints "$first and 23 more"
analyze named/reports
check "a folder of reports: the file above it" prints "$first and 11 more"
odd() { # WHAT CONTENT SAID
    printf '%s' "$2" >other/ops.json
    analyze other
    check "$1: exit 1" exits 1
    check "$1: no layer" test "$(grep -c MatMul stdout.txt)" = 0
    check "$1: what is left out" test "$(grep -c 'ops.json: ' stdout.txt)" = "$3"
}
odd "cut short" '{"schema": "ceiling-scout/ops/1", "ops": [{"id": "gemm_proven", "nodes": ["/a/MatMul"' 1
odd "no names" '{"schema": "ceiling-scout/ops/1", "ops": [1, {"id": "gemm_proven", "nodes": {"a": "MatMul"}, "weights": 3}, {"id": 1}]}' 0
odd "by hand" '{"gemm_proven": {"op": "gemm", "shape": [64, 64, 64]}, "ops": [{"id": "gemm_proven", "nodes": ["MatMul"]}]}' 0
odd "another version" '{"schema": "ceiling-scout/ops/2", "ops": [{"id": "gemm_proven", "nodes": ["MatMul"]}]}' 0
rm other/ops.json
ln -s ../named/ops.json other/ops.json
analyze other
check "a link: is left out" prints "ops.json: is a link; put the file itself there"
check "a link: is not read" test "$(grep -c MatMul stdout.txt)" = 0
finish
