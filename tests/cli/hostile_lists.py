"""Lists of operations that are refused, and large for what they say. Usage: hostile_lists.py FOLDER"""
import json
import pathlib
import sys

folder = pathlib.Path(sys.argv[1])
SIZE = 12_000_000


def many(text):
    return '{"a":[' + (text + ",") * (SIZE // (len(text) + 1)) + "0]}"


def entry(k):
    return {"id": f"gemm_{k}", "op": "gemm", "shape": [64, 64, 64], "dtype": "fp16", "count": 1, "nodes": [f"n{k}"], "macs": 1, "flops": 2}


lists = {
    "arrays": many("[]"),
    "objects": many("{}"),
    "nested": many("[[[]]]"),
    "members": many('{"a":1}'),
    "numbers": many("1"),
    "texts": many('""'),
    "names": "{" + ",".join(f'"{k:x}":1' for k in range(SIZE // 9)) + "}",
    "shorts": "{" + ",".join(f'"n{k}":{{"op":"gemm","shape":[64,64,64]}}' for k in range(SIZE // 42)) + "}",
    "text": '{"a":"' + "x" * 200_000_000 + '"}',
    "middling_text": '{"a":"' + "x" * 40_000_000 + '"}',
    "escapes": '{"a":"' + "\\u00e9" * (SIZE // 6) + '"}',
    "blanks": '{"a":' + " " * 40_000_000 + "1}",
    "cut": '{"a":[' + "1," * (SIZE // 8),
    "late": json.dumps({"schema": "ceiling-scout/ops/1", "ops": [entry(k) for k in range(90000)] + [{"id": "../x"}]}),
}


def graph(tensors, occurrences="[0,0,0,1,[],[]]"):
    memory = '{"weights":0,"activations":0,"at":0,"unsized":0}'
    return json.dumps({"schema": "ceiling-scout/ops/1", "ops": [entry(0)]})[:-1] + (
        ',"graph":{"memory":%s,"tensors":[%s],"occurrences":[%s],"cuts":[]}}' % (memory, tensors, occurrences))


INPUT = '["",  "input",null,null,-1,0,-1,0]'
lists |= {
    "graph_tensors": graph(",".join([INPUT] * 1_000_001)),
    "graph_edges": graph(INPUT, "[0,0,0,1,[" + "0," * 6_000_000 + "0],[]]"),
    "graph_operands": graph(INPUT, "[0,0,0,1,[0],[],[" + "0," * 6_000_000 + "0]]"),
    "graph_ranks": graph(",".join(['["","input",null,[' + "1," * 63 + '1],-1,0,-1,0]'] * (SIZE // 160)) + ",0"),
    "graph_nested": graph("[" * SIZE + "]" * SIZE),
    "graph_blanks": graph(" " * 60_000_000 + "0"),
}
for name, text in lists.items():
    (folder / f"{name}.json").write_text(text)
