#!/usr/bin/env python3
"""Whole models in the time that a person waits: each from an empty cache (ceilings known), again from the cache, and once
more with a quarter of its seconds.

    tests/gpu/models_quick.py --make EXTRACT_OPS FROM TO      writes TO/NAME.json from the ONNX models of folder FROM
    tests/gpu/models_quick.py BIN MODELS RESULTS [NAME]...    BIN: a folder with scout_batch; MODELS: such a TO

Prints what each took and how well it is known, and what was missed. Ends with 1 where something was: an operation
without a figure, less than 95 % of the time within 1 %, a verdict open that is worth 1 % of the model, a row above the
physical bound or above what is attainable, the seconds, 1 s from the cache, 15 s for cold ceilings.
TORCH_LIBRARIES: where the libraries lie; those of PyTorch when it is not set.
"""
import json
import os
import pathlib
import subprocess
import sys
import time

HERE = pathlib.Path(__file__).parent
WANTED = {  # a list's name: its model, how its dimensions are bound, and the seconds that it may take
    "bert_base@b8_s128": {"file": "bert_base", "dims": ["--batch", "8", "--seq", "128"], "seconds": 8},
    "llama2_7b@b1_s2048": {"file": "llama2_7b", "dims": ["--batch", "1", "--seq", "2048"], "seconds": 12},
    "mobilenet_v3@b1": {"file": "mobilenet_v3", "dims": ["--batch", "1"], "seconds": 25},
    "swin_t@b8": {"file": "swin_t", "dims": ["--batch", "8"], "seconds": 30},
}
CACHED_S, CEILINGS_S, KNOWN, SHARE, OPEN = 1, 15, 0.01, 0.95, 0.01


def make(extract, source, target):
    pathlib.Path(target).mkdir(parents=True, exist_ok=True)
    for name, model in WANTED.items():
        subprocess.run([extract, f"{source}/{model['file']}.onnx", "-q", "--precision", "fp16", *model["dims"], "-o",
                        f"{target}/{name}.json"], check=True)


def library_path():
    if "TORCH_LIBRARIES" in os.environ:
        return os.environ["TORCH_LIBRARIES"]
    done = subprocess.run([sys.executable, HERE / "torch_libraries.py"], capture_output=True, text=True)
    return done.stdout.strip()


def read(folders):
    """A disk that nothing was read from yet is no part of what is timed: seconds for a gigabyte of libraries."""
    for folder in filter(None, folders.split(":")):
        for file in pathlib.Path(folder).glob("*.so*"):
            with open(file, "rb") as f:
                while f.read(1 << 24):
                    pass


def call(scout, results, name, arguments):
    began = time.monotonic()
    alone = [] if arguments[0] == "--ceilings" else ["--no-replay"]  # the model as a whole: part whole of run.sh
    done = subprocess.run([scout, *arguments, *alone, "--device", "cuda:0", "--cache-dir", results / "cache"],
                          capture_output=True, text=True)
    seconds = time.monotonic() - began
    (results / f"{name}.txt").write_text(done.stdout + done.stderr)
    return seconds, done.returncode


def row_of(report, which):
    names = (report.get(which), report.get(which + "_variant"))
    for row in report.get("candidates", []):
        if (row["name"], row["variant"]) == names:
            return row
    return {}


def look(folder):
    """What the reports of a run say: shares of the model's time, and rows that should not be."""
    seen = {"model_us": 0, "known_us": 0, "missing": [], "open": [], "above_physical": [], "above": [], "passes": 0}
    reports = [json.loads(p.read_text()) for p in sorted((folder / "reports").glob("*.json"))]
    for report in reports:
        time_us, count = report.get("baseline_time_us"), report.get("count", 0)
        if not time_us:
            part = count == 0 and report["reason"]["code"] == "not_asked"  # of another operation
            if not part and report["reason"]["code"] not in ("no_work", "no_candidate", "not_implemented"):
                seen["missing"].append(report["operation"])
            continue
        share = count * time_us
        ci = row_of(report, "baseline")["time_us"].get("rel_ci95", 1)
        seen["model_us"] += share
        seen["known_us"] += share if ci <= KNOWN else 0
        seen["passes"] += report.get("passes", 0)
        best_us, best_ci = report.get("best_time_us", time_us), row_of(report, "best")["time_us"].get("rel_ci95", 1)
        if best_us * (1 + best_ci) < report.get("physical_time_us", 0) * (1 - report.get("ceiling_ci", 1)):
            seen["above_physical"].append(report["operation"])
        if report.get("above_ceiling"):
            seen["above"].append(report["operation"])
    for report in reports:
        share = report.get("count", 0) * report.get("baseline_time_us", 0)
        if "winner" in report.get("undecided", []) and share >= OPEN * seen["model_us"]:
            ratio, ci = report.get("ratio", 1), report.get("ratio_ci", 0.04)
            rival = report.get("rival", {})
            least = min(ratio * (1 - ci), rival.get("ratio", 1) * (1 - rival.get("ratio_ci", 0.04)))
            if (1 - least) * share >= OPEN * seen["model_us"]:
                seen["open"].append(report["operation"])
    return seen


def main():
    if sys.argv[1:2] == ["--make"]:
        make(*sys.argv[2:5])
        return 0
    scout, models, results = pathlib.Path(sys.argv[1]).resolve() / "scout_batch", sys.argv[2], pathlib.Path(sys.argv[3])
    names, missed = sys.argv[4:] or list(WANTED), []
    results.mkdir(parents=True, exist_ok=True)
    libraries = library_path()
    library = ["--library-path", libraries] if libraries else []
    read(libraries)

    def want(name, what, good):
        if not good:
            missed.append(f"{name}: {what}")

    seconds, code = call(scout, results, "ceilings", ["--ceilings", "--precision", "fp16", *library])
    print(f"ceilings, cold: {seconds:.1f} s ({CEILINGS_S})")
    want("ceilings", f"{seconds:.1f} s", seconds <= CEILINGS_S and code == 0)
    for name in names:
        wanted_s, ops = WANTED[name]["seconds"], f"{models}/{name}.json"
        seconds, code = call(scout, results, name, [ops, "-o", results / name, *library])
        seen = look(results / name)
        share = seen["known_us"] / max(seen["model_us"], 1e-9)
        print(f"{name}: {seconds:.1f} s ({wanted_s}), exit {code}, {100 * share:.1f} % of {seen['model_us']:.1f} us "
              f"within 1 %, {seen['passes']} passes")
        want(name, f"{seconds:.1f} s", seconds <= wanted_s)
        want(name, f"{100 * share:.1f} % within 1 %", share >= SHARE)
        for key in ("missing", "open", "above_physical", "above"):
            want(name, f"{key}: {', '.join(seen[key][:5])} ({len(seen[key])})", not seen[key])
        seconds, code = call(scout, results, f"{name}_again", [ops, "-o", results / f"{name}_again", *library])
        print(f"    from the cache: {seconds:.2f} s ({CACHED_S})")
        want(name, f"{seconds:.2f} s from the cache", seconds <= CACHED_S)
        budget = wanted_s / 4
        seconds, code = call(scout, results, f"{name}_quarter", [ops, "-o", results / f"{name}_quarter", *library,
                                                                 "--no-cache", "--budget", f"{budget:g}"])
        quarter = look(results / f"{name}_quarter")
        print(f"    --budget {budget:g}: {seconds:.1f} s, {len(quarter['missing'])} operations without a figure")
        want(name, f"--budget {budget:g}: {', '.join(quarter['missing'][:5])}", not quarter["missing"])
    print("\n".join(f"MISSED {m}" for m in missed) or "nothing was missed")
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
