"""Configurations that are bent at random: each is answered with an exit code, within memory and time.
Usage: config_hostile.py PROGRAM COUNT CONFIG.json…"""
import json
import os
import random
import resource
import subprocess
import sys

VALUES = [None, True, False, 0, 1, -1, 2, 3, 7, 64, 1 << 16, 1 << 24, 1 << 31, 1 << 40, (1 << 63) - 1, 1 << 63, 1.5, 1e300, -0.5, "", "x",
          "llama", "gelu", "float16", "\x1b[2J\n", "é" * 5000, [], {}, [1], ["BertModel"], ["x"] * 100, [[[[]]]], {"a": {"b": {}}}]
EXTRA = ["num_key_value_heads", "head_dim", "n_embd", "n_inner", "sliding_window", "max_window_layers", "use_sliding_window", "hidden_activation",
         "torch_dtype", "dtype", "architectures", "id2label", "quantization_config", "rope_parameters", "partial_rotary_factor"]
SIZES = [[], ["--tokens", "1"], ["--tokens", "1,16,7"], ["--tokens", "1099511627776", "--batch", "1099511627776"],
         ["--tokens", "3", "--past", "1099511627776"], ["--batch", "3"]]


def bent(text, chance):
    config = json.loads(text)
    for _ in range(chance.randint(1, 4)):
        config[chance.choice(sorted(config) + EXTRA)] = chance.choice(VALUES)
    bytes_of = json.dumps(config).encode()
    if chance.random() < 0.1:
        at = chance.randrange(len(bytes_of))
        bytes_of = bytes_of[:at] + chance.choice([b"", b"\xff", b"\x00", b"{", b'"']) + bytes_of[at + chance.randint(0, 3):]
    return bytes_of


def limits():
    resource.setrlimit(resource.RLIMIT_CPU, (20, 20))


def main():
    program, count, paths = sys.argv[1], int(sys.argv[2]), sys.argv[3:]
    chance, codes, faults = random.Random(5), {}, 0
    seeds = [open(path, encoding="utf-8").read() for path in paths]
    for _ in range(count):
        with open("bent.json", "wb") as file:
            file.write(bent(chance.choice(seeds), chance))
        done = subprocess.run([program, "--config", "bent.json", "-q", "-o", "bent.ops.json", *chance.choice(SIZES)], capture_output=True,
                              preexec_fn=limits, check=False)
        codes[done.returncode] = codes.get(done.returncode, 0) + 1
        lines = done.stderr.decode().splitlines()
        if done.returncode not in (0, 2, 3) or (done.returncode and len(lines) != 1) or "\x1b" in done.stderr.decode():
            faults += 1
            print(done.returncode, lines[-1:], open("bent.json", "rb").read()[:500])
        if os.path.exists("bent.ops.json"):
            faults += done.returncode != 0
            os.remove("bent.ops.json")
    peak = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss // 1024
    print(f"{codes}, {peak} MB")
    sys.exit(faults > 0 or peak > 600 or min(codes.get(code, 0) for code in (0, 2, 3)) < count // 20)


main()
