"""Reports of products for the tests of dispatch tables. Usage: made_tables.py FOLDER KIND

kinds: plain    M of 64, 128, 1024 proven by one algorithm, 2048 by another, 256 not proven, one without a baseline
       rival    the same key as M = 64 and 256 of plain: another winner that is proven worse, and one where plain has none
       hostile  names in every text that a table takes, made to break C, C++, JSON and terminals
       odd      what cannot stand in a table
       driver   plain on a driver of another branch
"""
import json
import os
import sys

from made_reports import DEVICE, NASTY, report, row, unmeasured, write

LIBRARY = {"library": "cublaslt", "version": "13.1.0"}


def config(algo, **more):
    return {**LIBRARY, "algo": algo * 64, "waves": 1.5, "weight": "as_is", **more}


def product(m, best=None, algo="42", ci=0.006, **more):
    made = report(f"gemm_{m}", us=100.0, ceiling=60.0, best=best, op="gemm", shape=[m, 4096, 4096], method=5,
                  key=f"gemm;shape={m},4096,4096;layout=nn;type=fp16;weight=fp16;weight_side=b")
    made["candidates"][0]["config"] = config("00")
    made["config"] = config("00")
    if best:
        made.update(ratio_ci=ci, config=config(algo, weight="transposed"))
        made["candidates"][1].update(config=made["config"], pack_us=12.5, pack_bytes=4096, workspace_bytes=8)
    made.update(more)
    return made


def plain():
    yield product(64, 90.0)
    yield product(128, 91.0)
    yield product(1024, 92.0)
    yield product(2048, 93.0, algo="43")
    yield product(256, 98.5)  # inside of the margin: nothing is proven
    yield product(512, 97.9, ci=0.02)  # its interval reaches over the margin
    kernel = product(16, 50.0, best_approach="CUSTOM_KERNEL", config={"kernel": "mine", "threads": 256})
    kernel["candidates"][1].update(config=kernel["config"], plugin="/home/somebody/mine.so", plugin_hash="0123456789abcdef")
    yield kernel
    yield {**unmeasured("gemm_part", "SKIPPED", "not_asked", "a part", count=0), "method": 5}


def rival():
    yield product(64, 95.0, algo="44")
    yield product(256, 80.0, algo="44")


def hostile():
    # The class stands in a comment of the header, where a name that ends it is code.
    nasty = {**DEVICE, "class": DEVICE["class"] + ";also=*/ int x; /* ??/ // \\"}
    for k, text in enumerate([*NASTY, "??/", "??=", "\\", '"', "\\u0022", "%n%s", "a\\", "é\\x41", "\U0001f600", "\\\n"]):
        key = "gemm;shape=%d,1,1;what=" % (k + 1) + "".join(c if " " < c != "\x7f" else "%20" for c in text)
        made = product(k + 1, 50.0, key=key.encode("utf-8", "replace").decode("utf-8"), operation=text + str(k))
        made["best"] = made["candidates"][1]["name"] = text
        made["best_variant"] = made["candidates"][1]["variant"] = text
        made["config"] = made["candidates"][1]["config"] = {**LIBRARY, "weight": text, text: [text, {text: text}]}
        yield {**made, "device": nasty}
    yield {**product(77, 50.0), "operation": "fine", "device": nasty}


def odd():
    yield product(1, key="gemm; not canonical")
    yield product(2, key="gemm;" + "x" * 2000)
    deep = product(3)
    deep["candidates"][0]["config"] = json.loads("[" * 40 + "]" * 40)
    deep["candidates"][0]["config"] = {"a": deep["candidates"][0]["config"]}
    yield deep
    large = product(4)
    large["candidates"][0]["config"] = {"a": "x" * 5000}
    yield large
    foreign = product(5)
    foreign["candidates"][0]["config"] = {"library": "cublaslt", "version": "12.0"}
    yield foreign
    yield product(6)


def driver():
    other = {**DEVICE, "class": DEVICE["class"].replace("driver=580", "driver=570"), "driver": "570.1"}
    yield {**product(64, 90.0), "device": other}


for number, one in enumerate({"plain": plain, "rival": rival, "hostile": hostile, "odd": odd, "driver": driver}[sys.argv[2]]()):
    write(os.path.join(sys.argv[1], "reports"), one, f"made_{number}")
