#!/usr/bin/env python3
"""Prints a libFuzzer dictionary: the names of all operators that the table knows, of attributes, of external data's keys,
and numbers that hurt, each as the wire writes it."""
import re
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "hostile"))
from wire import num, varint  # noqa: E402

ATTRIBUTES = """axis axes perm to value value_int value_ints value_float pads strides dilations group kernel_shape
auto_pad ceil_mode output_shape output_padding keepdims noop_with_empty_axes num_outputs split equation body then_branch
else_branch num_scan_inputs scan_input_axes scan_output_axes hidden_size direction alpha beta transA transB blocksize mode
num_heads kv_num_heads q_num_heads is_causal qkv_hidden_sizes block_size bits K N allowzero start end batch_dims
sparse_value location offset length sizes scales num_groups epsilon batch seq sequence_length""".split()
NUMBERS = [0, 1, 2, 3, -1, -2, 64, 65, 4096, 1 << 31, 1 << 32, 1 << 40, 1 << 62, (1 << 63) - 1, -(1 << 63)]
DOMAINS = ["com.microsoft", "ai.onnx.ml", "ai.onnx", "local"]


def quoted(data):
    return '"%s"' % "".join("\\x%02x" % b for b in data)


def main():
    root = Path(__file__).resolve().parent.parent.parent
    table = (root / "extract/operators.c").read_text()
    names = sorted(set(re.findall(r'^    \{"[a-z.]*", "(\w+)"', table, re.M)))
    for name in names + ATTRIBUTES + DOMAINS:
        print(quoted(varint(len(name)) + name.encode()))
    for n in NUMBERS:
        print(quoted(varint(n)))
    for field in range(1, 27):
        print(quoted(num(field, 1)[:-1]))


if __name__ == "__main__":
    main()
