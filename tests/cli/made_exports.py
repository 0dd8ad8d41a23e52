"""Reports of products for the tests of `analyze export`. Usage: made_exports.py FOLDER KIND [CUBLASLT] [DEVICE]

kinds: plain    of each sort one: types, layouts, a batch, a bias, and all that other programs cannot be told
       host     a processor, which has no cuBLASLt
       hostile  keys that are none of a product, and numbers that no algorithm has; DEVICE may be anything
"""
import sys

from made_reports import CLASS, DEVICE, NASTY, report, write

ALGO = "420000001f0000002300000001000000000000000000000007000000000005000100000034fc0100" + "0" * 48
ATTRIBUTES = [66, 31, 1, 0, 0, 7, 35, 0, 5]


def product(name, key, shape=(128, 256, 512), best=None, optimal=True, weight="as_is", cublaslt="13.1.0", device="Test GPU", **more):
    config = {"library": "cublaslt", "version": cublaslt, "algo": ALGO, "attributes": ATTRIBUTES, "weight": weight}
    made = report(name, us=100.0, ceiling=95.0 if optimal else 60.0, best=best, op="gemm", shape=list(shape), method=5,
                  key="gemm;shape=%d,%d,%d;" % tuple(shape) + key)
    for row in made["candidates"]:
        row.update(name="cublaslt", config=config)
    made.update(baseline="cublaslt", best="cublaslt", config=config)
    made["device"] = {**DEVICE, "model": device, "class": CLASS.replace("Test GPU", device).replace("13.1.0", cublaslt)}
    made["device"]["instance"] = made["device"]["class"] + ";uuid=GPU-0"
    if best:
        made["ratio_ci"] = 0.004
    if weight != "as_is":
        made["candidates"][-1].update(pack_us=1.0, pack_bytes=4)
    made.update(more)
    return made


def plain(**of):
    side = ";weight_side=b"
    yield product("default", "layout=nn;type=fp16;weight=fp16" + side, **of)
    yield product("tuned", "layout=nt;type=bf16;weight=bf16" + side, best=90.0, **of)
    yield product("packed", "layout=nn;type=bf16;weight=bf16" + side, (64, 256, 512), best=90.0, weight="transposed", **of)
    yield product("left", "layout=tn;type=fp32;weight=fp32;weight_side=a", **of)
    yield product("tf32", "layout=nn;type=fp32;math=tf32", **of)
    yield product("double", "layout=nn;type=fp64", optimal=False, **of)
    yield product("batch", "layout=nt;type=fp16;batch=12", **of)
    yield product("bias", "layout=nt;type=fp16;weight=fp16;bias=n" + side, **of)
    yield product("one_row", "layout=nt;type=fp16;weight=fp16" + side, (1, 256, 512), best=80.0, **of)
    # One to a consumer that knows shapes alone: alike, and not alike.
    yield product("zeros", "layout=nn;type=fp16;weight=fp16;weight_side=b;weight_threshold=0.01;zeros=ab", **of)
    yield product("other_a", "layout=nn;type=fp16;weight=fp16;weight_side=b;zeros=1", (32, 32, 32), **of)
    yield product("other_b", "layout=nn;type=fp16;weight=fp16;weight_side=b;zeros=2", (32, 32, 32), best=50.0, **of)
    # Not for other programs.
    yield product("sparse", "layout=nn;type=fp16;weight=fp16;weight_side=b;sparsity=0.9;sparse_pattern=BLOCK_SPARSE", **of)
    yield product("mixed", "layout=nn;type=fp16;out=fp32", **of)
    yield product("activation", "layout=nn;type=fp16;weight=fp16;activation=gelu", **of)
    yield product("int8", "layout=nn;type=int8;out=int8", **of)
    large = product("workspace", "layout=nn;type=fp16", (16, 16, 16), best=50.0, **of)
    large["candidates"][-1]["workspace_bytes"] = (1 << 20) + 1
    yield large
    older = product("older", "layout=nn;type=fp16", (17, 16, 16), best=50.0, **of)
    older["config"] = {k: v for k, v in older["config"].items() if k != "attributes"}
    older["candidates"][-1]["config"] = older["config"]
    yield older
    own = product("own", "layout=nn;type=fp16", (18, 16, 16), best=50.0, best_approach="CUSTOM_KERNEL", config={"kernel": "mine"}, **of)
    own["candidates"][-1].update(name="mine", config=own["config"])
    own["best"] = "mine"
    yield own
    norm = product("norm", "", **of)
    norm.update(op="norm", key="norm;what=rms;shape=128,256;type=fp16")
    yield norm


def host(**of):
    made = product("default", "layout=nn;type=fp16", **of)
    made["device"]["class"] = made["device"]["class"].replace(";cublaslt=", ";onednn=")
    for row in made["candidates"]:
        row.pop("config")
    made.pop("config")
    yield made


def hostile(**of):
    for k, text in enumerate([*NASTY, "layout=nx", "layout=", "type", "bias=n;bias=m", "batch=0", "batch=1x", "=", ";", "shape=1,2",
                              "math=", "weight_side=c", "type=fp16,fp16", "type=torch.float16"]):
        key = "".join(c if " " < c != "\x7f" else "%20" for c in text)
        yield product(f"key_{k}", "layout=nn;type=fp16;" + key, **of)
    for k, bad in enumerate([[], [1], ["x"] * 9, [1.5] * 9, [-1] * 9, [1 << 40] * 9, "9", {"a": 1}]):
        made = product(f"attributes_{k}", "layout=nn;type=fp16", (100 + k, 16, 16), best=50.0, **of)
        for row in made["candidates"]:
            row["config"] = {**row["config"], "attributes": bad}
        made["config"] = made["candidates"][-1]["config"]
        yield made
    yield product("large", "layout=nn;type=fp16", (1 << 40, 16, 16), **of)
    yield product("fine", "layout=nn;type=fp16", (7, 16, 16), **of)


if __name__ == "__main__":
    folder, kind, *more = sys.argv[1:]
    of = dict(zip(("cublaslt", "device"), more))
    for made in {"plain": plain, "host": host, "hostile": hostile}[kind](**of):
        write(f"{folder}/reports", made)
