"""Judges what whole models, other libraries than cuBLASLt and single launches left: parts models, agree_kinds,
end_to_end, sanitizer and checks of tests/gpu/run.sh."""
import glob
import os
import re

from judge_common import BAD, load, reports, row_said, seconds, text, verdict

PROMISED = "llama2_7b@b1_s2048"  # in so many seconds without cache
PROMISED_SECONDS = 60
KINDS = ("gemm", "conv", "attention", "norm", "softmax")  # each of them has a baseline, and it is OK
COVERED, CLOSE, WHOLE_CLOSE, ALIKE = 0.99, 0.03, 5, 0.5


# What the best own kernel reaches at least, by the operation's name: TB/s or TFLOP/s.
RATES = {**{f"{kind}_{size}{more}": ("tbps", 3.9) for kind in ("layer", "rms") for size in (8192, 16384)
            for more in ("", "_residual")},
         "softmax_8192": ("tbps", 3.7), "softmax_16384": ("tbps", 3.7), "swiglu_8192": ("tbps", 3.9),
         "decode_1": ("tbps", 3.0), "decode_32": ("tbps", 3.0), "full_4096": ("tflops", 200)}
UNITS = {"tbps": "TB/s", "tflops": "TFLOP/s"}
LIBRARIES = ("cublas", "cudnn", "cusparse")


def rate(report, alone):
    """Part targets: the best own kernel of an operation against what is promised of it, and the best library beside it.
    `alone`: its report of a run in which our own was confirmed whatever the race says; None: there is none."""
    if report["name"] not in RATES:
        return
    what, least = RATES[report["name"]]
    good = [row for one in (report, alone or {}) for row in one.get("candidates", []) if row["status"] == "OK"]
    own, other = (max((row for row in good if row["name"].startswith(LIBRARIES) == library), key=lambda row: row[what],
                      default=None) for library in (False, True))
    said = lambda row: f"{row['name']} {row['variant']} {row[what]:.2f} {UNITS[what]}" if row else "nothing measured"
    verdict(own and own[what] >= least, f"targets {report['name']}: {said(own)} ({least}); libraries: {said(other)}")


def reason_codes():
    return set(load("docs/schema/report.schema.json")["$defs"]["reason"]["properties"]["code"]["enum"])


def counted(found):
    """Reports of what runs at all: with work, and no part of another operation."""
    return [report for report in found.values()
            if report.get("count", 0) > 0 and (report.get("reason") or {}).get("code") != "no_work"]


def model(folder, name, codes):
    found, run = reports(f"{folder}/{name}"), load(f"{folder}/{name}/run.json")
    took, code = seconds(folder, name)
    real = counted(found)
    good = [report for report in real if report["status"] == "OK" and report.get("baseline_time_us")]
    covered = sum(report["count"] * report["baseline_time_us"] for report in good)
    whole = max(run["totals"]["model_us"], covered)  # of what has no baseline: its ceiling's time, at least
    alone = [report for report in real if report["op"] in KINDS and report not in good]
    others = [report for report in real if report not in good and report not in alone]
    rows = [(report, row) for report in real for row in report["candidates"] if row["status"] != "OK"]
    strange = [row_said(row) for _, row in rows if (row.get("reason") or {}).get("code") not in codes]
    strange += [report["name"] for report in real if report["status"] != "OK"
                and (report.get("reason") or {}).get("code") not in codes]
    bad = [f"{report['name']}: {row_said(row)}" for report, row in rows if row["status"] in BAD]
    for report in alone + others:
        reason = report.get("reason") or {}
        print(f"    no baseline: {report['count']} x {report['name']}: {report['status']} {reason.get('code', '')} "
              f"{reason.get('text', '')}"[:230])
    for line in bad:
        print(f"    {line[:230]}")
    statuses = {}
    for report in real:
        for row in report["candidates"]:
            statuses[row["status"]] = statuses.get(row["status"], 0) + 1
    told = ", ".join(f"{count} {status}" for status, count in sorted(statuses.items()))
    print(f"    {name}: {len(real)} operations, {covered / 1e3:.3f} ms by default, with the best "
          f"{run['totals']['best_us'] / 1e3:.3f}, at the ceilings {run['totals']['ceiling_us'] / 1e3:.3f}; rows: {told}")
    verdict(real and not alone, f"models {name}: {sum(r['op'] in KINDS for r in good)} gemm, conv, attention, norm and "
                                f"softmax have an OK baseline, {len(alone)} have none")
    verdict(whole > 0 and covered >= COVERED * whole, f"models {name}: OK rows cover {100 * covered / max(whole, 1e-9):.2f} % of "
                                                      f"the default time ({100 * COVERED:.0f})")
    verdict(real and not strange and run["state"] == "complete",
            f"models {name}: every other row has a listed reason{': not ' + '; '.join(strange)[:200] if strange else ''}")
    ours = [line for line in bad if not line.split(": ", 1)[1].startswith(LIBRARIES)]  # of a library's it is a finding
    verdict(not ours, f"models {name}: {len(ours)} of our rows wrong or failed, {len(bad) - len(ours)} of libraries'")
    if name == PROMISED:
        verdict(took < PROMISED_SECONDS and code <= 1, f"models {name}: {took:.1f} s without cache ({PROMISED_SECONDS})")
    else:
        print(f"    {name}: {took:.1f} s, exit {code}")


def models(folder):
    names = [os.path.basename(path)[:-5] for path in sorted(glob.glob(f"{os.environ.get('MODELS', 'out/models')}/*@*.json"))]
    codes = reason_codes()
    if not names:
        verdict(False, "models: there are none: MODELS is the folder that tests/gpu/model_ops.sh made")
    for name in names:
        if os.path.exists(f"{folder}/{name}/run.json"):
            model(folder, name, codes)
        else:
            print(f"SKIPPED models {name}: not reached")


def agree_kinds(folder):
    path = f"{folder}/agree_kinds.json"
    if not os.path.exists(path):
        print(text(f"{folder}/torch.err")[-1500:])
        return verdict(False, "agree_kinds: nothing was compared")
    result = load(path)
    verdict(result["same_library"], f"agree_kinds: one library file: {result['library']}")
    for row in result["rows"]:
        said = (f"agree_kinds {row['name']}: {row['scout_us']:.2f} us here, {row['other_us']:.2f} us by {row['by']}: "
                f"{100 * (row['ratio'] - 1):+.2f} %")
        close = abs(row["ratio"] - 1) <= CLOSE and row["right"]
        if close and not row["torch_picks_it"]:
            print(f"SKIPPED {said} (kernel names differ: only the plan of the report, replayed, could be compared)")
        else:
            verdict(close, said)
    wanted = len(load("tests/gpu/agree_ops.json"))
    alike = sum(row["torch_picks_it"] for row in result["rows"])
    return verdict(len(result["rows"]) == wanted, f"agree_kinds: {len(result['rows'])} of {wanted} compared, of {alike} of "
                                                  "them PyTorch launches the same kernels by itself")


def end_to_end(folder):
    """What both sides run by one kernel takes the same time, and no default takes more than PyTorch's call of the same."""
    found = sorted(glob.glob(f"{folder}/torch_*@*.err"))
    if not found:
        verdict(False, "end_to_end: nothing was run")
    for path in found:
        name = os.path.basename(path)[len("torch_"):-len(".err")]
        if not os.path.exists(f"{folder}/{name}.json"):
            print(text(path)[-1500:])
            verdict(False, f"end_to_end {name}: PyTorch did not run it")
            continue
        result = load(f"{folder}/{name}.json")
        missing, clocks = result["missing"], result["mhz"][0] / result["mhz"][1]
        verdict(not missing, f"end_to_end {name}: every operation has a time on both sides"
                f"{': not ' + ', '.join(missing)[:200] if missing else ''}")
        more = {side: 100 * (result[side][0] / max(result[side][1], 1e-9) - 1) for side in ("same", "library", "own", "all")}
        at_one = {side: 100 * (result[side][0] * clocks / max(result[side][1], 1e-9) - 1) for side in ("same", "library")}
        share = result["same"][1] / max(result["library"][1], 1e-9)
        verdict(share >= ALIKE and min(abs(more["same"]), abs(at_one["same"])) <= WHOLE_CLOSE,
                f"end_to_end {name}: the kernels that both run, {100 * share:.0f} % of PyTorch's products, convolutions and "
                f"attention ({100 * ALIKE:.0f}), take {more['same']:+.1f} %, at one clock {at_one['same']:+.1f} % ({WHOLE_CLOSE})")
        verdict(min(more["library"], at_one["library"]) <= WHOLE_CLOSE,
                f"end_to_end {name}: all of these take {more['library']:+.1f} %, at one clock {at_one['library']:+.1f} % (at most "
                f"{WHOLE_CLOSE}); all other operations {more['own']:+.1f} %, the run {more['all']:+.1f} %")


def sanitized(folder, tool):
    """What one tool found: (programs that ended well, launches, kernels, what is wrong)."""
    launches, kernels, wrong, well = 0, set(), [], 0
    for path in sorted(glob.glob(f"{folder}/{tool}-*.code")):
        name, code, said = os.path.basename(path)[:-5], text(path).strip(), text(path[:-5] + ".txt")
        found = re.findall(r"ERROR SUMMARY: (\d+) error|RACECHECK SUMMARY: (\d+) hazard", said)
        launched = re.findall(r"^launched \S+ (\S+)", said, re.M)
        launches += len(launched)
        kernels |= set(launched)
        if code == "0" and found and not any(int(a or b) for a, b in found):
            well += 1
            continue
        why = "not finished" if code in ("124", "137") else f"exit {code}"
        lines = [line for line in said.splitlines() if "=========" in line and line.strip("= ")] + [
            line for line in said.splitlines() if line.startswith("FAILED")]
        wrong.append(f"{name}: {why}, {sum(int(a or b) for a, b in found)} errors; " +
                     (said.strip().splitlines() or ["said nothing"])[-1][:120])
        for line in [line for line in lines if "COMPUTE-SANITIZER" not in line][:8]:
            print(f"    {name}: {line[:200]}")
    return well, launches, kernels, wrong


def own_candidates(folder):
    listed = re.findall(r"^\S+ +cuda +(\S+) .* own ", text(f"{folder}/candidates.txt"), re.M)
    return set(listed)


# A library's product and a kernel of ours, which has neither shared memory nor a barrier: nothing for these tools.
BEHIND, OF_SHARED = {"cublaslt_tail"}, ("racecheck", "synccheck")


def sanitizer(folder):
    tools = sorted({os.path.basename(path).split("-")[0] for path in glob.glob(f"{folder}/*.code")})
    own = own_candidates(folder)
    if not tools:
        print("SKIPPED sanitizer: compute-sanitizer or check_kernels is not here")
    for tool in tools:
        well, launches, kernels, wrong = sanitized(folder, tool)
        for line in wrong:
            print(f"    {line}")
        verdict(well and not wrong, f"sanitizer {tool}: {well} programs clean, {len(wrong)} not; {launches} launches of "
                                    f"{len(kernels)} own kernels")
        missed = own - kernels - (BEHIND if tool in OF_SHARED else set())
        if missed and os.environ.get("KINDS"):
            print("    only a part of the lists was run")
            continue
        but = f" but {', '.join(sorted(BEHIND))}, which shares nothing" if tool in OF_SHARED else ""
        verdict(not missed, f"sanitizer {tool}: every own kernel was launched{but}"
                            f"{': not ' + ', '.join(sorted(missed)) if missed else ''}")


def checks(folder):
    codes = sorted(glob.glob(f"{folder}/*.code"))
    launched = set()
    if not codes:
        print("SKIPPED checks: none were built (make gpu-checks)")
        return
    for path in codes:
        name = os.path.basename(path)[:-5]
        lines = text(f"{folder}/{name}.txt").strip().splitlines()
        launched.update(line.split()[2] for line in lines if re.match(r"launched \S+ \S", line))
        for line in [line for line in lines if line.startswith("FAILED")][:8]:
            print(f"    {name}: {line[:250]}")
        if any("counts are not compared" in line for line in lines):
            print(f"SKIPPED checks: {name}: no CUPTI, so kernels were counted and not compared")
        code, last = text(path).strip(), (lines or ["said nothing"])[-1][:120]
        verdict(code == "0", f"checks: {name}: {last}{'' if code in ('0', '1') else f' (exit {code})'}")
    listed = set(re.findall(r"^\S+ +cuda +(\S+)", text(f"{folder}/candidates.txt"), re.M))
    never = sorted(listed - launched)
    if os.environ.get("KINDS") or not launched:
        print("    only a part of the lists was run")
    else:
        verdict(listed and not never, f"checks: every candidate of {len(listed)} was launched"
                                      f"{': not ' + ', '.join(never) if never else ''}")
