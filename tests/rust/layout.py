"""A C program that prints of each structure of scout_run.h what the crate's ffi::layout does: size and offsets. The members
are those of the crate, in its order; one that the header does not have does not compile, and one that the crate lacks is
told by the size, unless it fits into padding. Usage: layout.py scout_run.h ffi.rs"""
import re
import sys

header, crate = (open(path, encoding="utf-8").read() for path in sys.argv[1:3])
NAMES = {"Error": "error", "Tensor": "tensor", "Options": "options", "Counts": "counts", "GemmMore": "gemm_more",
         "AttentionMore": "attention_more", "ConvMore": "conv_more", "NormMore": "norm_more", "OpInfo": "op_info"}
MEMBERS = {"kind": "type"}  # words that Rust keeps for itself
block = crate[crate.index("structures! {\n"):]
block = re.sub(r"#\[.*?\]", "", block[:block.index("\n}\n")])
found = re.findall(r"(\w+) \{(.*?)\}", block[len("structures! {"):], re.S)
assert [name for name, _ in found] == list(NAMES), found
print('#include "runtime/scout_run.h"\n#include <stdio.h>\nint main(void) {')
for name, inner in found:
    kind = "scout_run_" + NAMES[name]
    assert kind in header, kind
    print(f'    printf("{name} %zu", sizeof({kind}));')
    for member in re.findall(r"(\w+): ", re.sub(r"fn\(.*?\)", "fn", inner, flags=re.S)):
        print(f'    printf(" {member} %zu", offsetof({kind}, {MEMBERS.get(member, member)}));')
    print('    printf("\\n");')
print("    return 0;\n}")
