#!/usr/bin/env python3
"""scout.patch on whole models of transformers with random weights, each beside itself as it was.

    patch.py NAME=TABLE.json…     e.g. llama2_7b@b1_s2048=dispatch.json: what analyze dispatch made of that model

Says what was replaced, and both times as patch() measures them. Then, on an input that patch() has not seen, the outputs
of both, and their times in one CUDA graph each."""
import copy
import re
import sys

import torch

import ceiling_scout as scout
from peers import NETS, microseconds

FAR = 0.01  # of the norm


def first(output):
    return next(x for x in output.values() if torch.is_tensor(x)).double()


def patched(name, table):
    model, batch, length = re.fullmatch(r"(\w+?)@b(\d+)_s(\d+)", name).groups()
    before, example = NETS[model]()(int(batch), int(length))
    fresh = {key: torch.randint_like(x, 0, 30000) if key == "input_ids" else x for key, x in example["kwargs"].items()}
    after = copy.deepcopy(before)
    done = scout.patch(after, example["kwargs"], table=table, seconds=4)
    want, got = first(before(**fresh)), first(after(**fresh))
    off = ((got - want).norm() / want.norm()).item()
    del want, got
    times = [microseconds(lambda net=net: net(**fresh)) for net in (before, after)]
    print(f"{name}: kept {done.kept}, {len(done.replaced)} replaced; outputs {off:.2g} off; in a graph {times[0]:.1f} us "
          f"before, {times[1]:.1f} after: {times[1] / times[0]:.3f}")
    slower = done.kept and done.ratio is not None and done.ratio * (1 - (done.ratio_ci or 0)) > 1
    print(f"{'PASSED' if off <= FAR else 'FAILED'} {name}: outputs within {FAR} of their norm")
    print(f"{'FAILED' if slower else 'PASSED'} {name}: not slower by more than its interval", flush=True)


def main():
    for argument in sys.argv[1:]:
        with torch.no_grad():
            patched(*argument.split("=", 1))
        torch.cuda.empty_cache()


if __name__ == "__main__":
    main()
