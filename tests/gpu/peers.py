#!/usr/bin/env python3
"""Models as a whole beside PyTorch on one device: eager, compiled as usual, and compiled with weights as constants (and,
where a network is of products, with max-autotune), each in one CUDA graph, as the replay of a plan is.

    peers.py [--no-autotune] RESULT.json NAME=MODEL.JSON...      e.g. resnet50@b8=part/resnet50@b8.json

NAME says the model and what its dimensions are bound to (MODEL@bBATCH or MODEL@bBATCH_sLENGTH); MODEL.JSON is what
scout_batch wrote of the same model as a whole. --no-autotune leaves out what takes a minute and more for each network. The networks are torchvision's and transformers', with random weights, in
fp16; convolutional ones with channels last. Prints a row for each, with the plan's time over the fastest of them.
"""
import json
import re
import statistics
import sys
import time

import torch

WARM_S, WINDOW_S, WINDOWS = 0.5, 0.3, 5
TIMES = ["eager_us", "compiled_us", "tuned_us", "default_us", "plan_us"]
# max-autotune takes 9 s for each shape of a product or convolution, and these have tens of them.
CONVOLUTIONAL = {"resnet50", "mobilenet_v3"}


def vision(name):
    import torchvision

    def make(batch, length):
        net = getattr(torchvision.models, name)(weights=None)
        form = torch.contiguous_format if name.startswith(("vit", "swin")) else torch.channels_last
        x = torch.randn(batch, 3, 224, 224, device="cuda").half().to(memory_format=form)
        return net.half().cuda().eval().to(memory_format=form), {"args": (x,)}

    return make


def language(kind, config, **settings):
    import transformers

    def make(batch, length):
        torch.set_default_dtype(torch.half)
        try:
            with torch.device("cuda"):
                net = getattr(transformers, kind)(getattr(transformers, config)(attn_implementation="sdpa", **settings))
        finally:
            torch.set_default_dtype(torch.float)
        words = torch.randint(0, 30000, (batch, length), device="cuda")
        given = {"input_ids": words}
        if kind == "BertModel":
            given["attention_mask"] = torch.ones_like(words)
        else:
            given["use_cache"] = False
        return net.eval(), {"kwargs": given}

    return make


NETS = {
    "resnet50": lambda: vision("resnet50"),
    "mobilenet_v3": lambda: vision("mobilenet_v3_large"),
    "swin_t": lambda: vision("swin_t"),
    "vit_base": lambda: vision("vit_b_16"),
    "bert_base": lambda: language("BertModel", "BertConfig"),
    "gpt2": lambda: language("GPT2LMHeadModel", "GPT2Config"),
    "llama2_7b": lambda: language("LlamaForCausalLM", "LlamaConfig"),
}
LENGTHS = {"bert_base": 128, "gpt2": 1024, "llama2_7b": 2048}


def microseconds(call):
    """Of a run in one CUDA graph, under load."""
    stream = torch.cuda.Stream()
    with torch.cuda.stream(stream):
        for _ in range(3):
            call()
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        call()
    graph.replay()
    torch.cuda.synchronize()
    began, runs = time.monotonic(), 0
    while time.monotonic() - began < WARM_S:
        graph.replay()
        torch.cuda.synchronize()
        runs += 1
    each, taken = max(1, int(runs * WINDOW_S / WARM_S)), []
    for _ in range(WINDOWS):
        first, last = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        first.record()
        for _ in range(each):
            graph.replay()
        last.record()
        torch.cuda.synchronize()
        taken.append(first.elapsed_time(last) * 1e3 / each)
    return statistics.median(taken)


def compiled_how(model, autotune):
    """By the time that it gives."""
    freezing, how = {"freezing": True}, {"compiled_us": {}}
    if model in CONVOLUTIONAL:
        how["tuned_us"] = {"options": freezing}
    elif autotune:
        how["tuned_us"] = {"options": {**freezing, "max_autotune": True}}
    return how


def measure(model, autotune, net, given, row):
    args, kwargs = given.get("args", ()), given.get("kwargs", {})
    row["eager_us"] = microseconds(lambda: net(*args, **kwargs))
    for name, how in compiled_how(model, autotune).items():
        began = time.monotonic()
        torch.compiler.reset()
        compiled = torch.compile(net, dynamic=False, **how)
        row[name] = microseconds(lambda: compiled(*args, **kwargs))
        row[name.replace("_us", "_s")] = time.monotonic() - began


def main():
    rows, autotune = [], sys.argv[1] != "--no-autotune"
    result, *arguments = sys.argv[1 if autotune else 2:]
    print(f"{torch.cuda.get_device_name()}, PyTorch {torch.__version__}; us")
    heads = "".join(f"{name.removesuffix('_us'):>10}" for name in TIMES)
    print(f"{'':22}{heads}  plan over the fastest")
    for argument in arguments:
        name, path = argument.split("=", 1)
        model, batch, length = re.fullmatch(r"(\w+?)@b(\d+)(?:_s(\d+))?", name).groups()
        whole = json.load(open(path))
        row = {"model": name, "default_us": whole["default"]["time_us"],
               "plan_us": (whole.get("best") or whole["default"])["time_us"]}
        try:
            with torch.no_grad():
                measure(model, autotune, *NETS[model]()(int(batch), int(length or LENGTHS.get(model, 0))), row)
        except Exception as error:  # whatever a library raises: the others are measured all the same
            row["error"] = str(error).strip().splitlines()[0][:160]
        torch.compiler.reset()
        torch.cuda.empty_cache()
        times = [row[k] for k in TIMES[:-2] if k in row]
        if times:
            row["ratio"] = row["plan_us"] / min(times)
        cells = "".join(f"{row[k]:10.1f}" if k in row else f"{'-':>10}" for k in TIMES)
        print(f"{name:22}{cells}  {row.get('ratio', float('nan')):.3f}  {row.get('error', '')}".rstrip(), flush=True)
        rows.append(row)
        json.dump(rows, open(result, "w"), indent=1)


if __name__ == "__main__":
    main()
