"""Holds what one part of tests/gpu/run.sh left against what is promised: judge.py PART FOLDER.

Prints a small table and one line PASSED, FAILED or SKIPPED for every promise.
"""
import glob
import os
import re
import sys

from judge_common import BAD, load, median, reports, row_said, rows_of, seconds, spread, text, verdict
from judge_sparse import sparse, sparse_targets
from judge_whole import agree_kinds, checks, end_to_end, models, rate, sanitizer

RUNS = int(os.environ.get("REPEAT_RUNS", "5"))


def devices(folder):
    verdict(re.search(r"^cuda:\d", text(f"{folder}/devices.txt"), re.M), "devices: a CUDA device is listed")
    said = text(f"{folder}/candidates.txt")
    for name in ("cublaslt", "gemm_stream"):
        verdict(name in said, f"devices: candidate {name} is listed")


def table(ceilings):
    cold = [row for row in ceilings["bandwidths"] if not row["resident"]]
    warm = [row for row in ceilings["bandwidths"] if row["resident"]]
    for row in sorted(cold, key=lambda row: (row["bytes"], -row["read_fraction"])):
        if row["read_fraction"] == 1:
            hot = [w["tbps"] for w in warm if w["bytes"] == row["bytes"] and w["read_fraction"] == 1]
            print(f"    read {row['bytes'] / 1e6:10.3f} MB  cold {row['tbps']:.3f}  "
                  f"resident {hot[0] if hot else float('nan'):.3f} TB/s")


def fastest(folder):
    """What any candidate of runs on cold memory in the folder has moved: (TB/s, of what)."""
    best = (0, "nothing")
    for path in glob.glob(f"{folder}/run*/reports/*.json"):
        report = load(path)
        for row in report.get("candidates", []):
            if row["status"] == "OK" and row.get("tbps", 0) > best[0]:
                best = (row["tbps"], f"{report['name']} by {row['name']}")
    return best


def not_above(part, folder, read):
    """No product on cold memory is faster than the read ceiling, which was measured by something else."""
    best, what = fastest(folder)
    if not best or not read:
        print(f"SKIPPED {part}: nothing to hold the read bandwidth against")
    else:
        verdict(0.99 * best <= read, f"{part}: read bandwidth {read:.3f} TB/s, fastest seen {best:.3f} ({what})")


def bandwidth(folder):
    path = f"{folder}/ceilings.json"
    if not os.path.exists(path):
        return verdict(False, "bandwidth: no ceilings were written")
    ceilings = load(path)
    table(ceilings)
    plateau = ceilings.get("plateau_bytes", 0)
    cold = [row for row in ceilings["bandwidths"] if not row["resident"] and row["bytes"] >= 0.99 * plateau]
    print(f"    launch {ceilings['launch_us']:.2f} us, plateau {plateau / 1e6:.0f} MB")
    for key, fraction in (("read_tbps", 1), ("copy_tbps", 0.5), ("write_tbps", 0)):
        best = max((row["tbps"] for row in cold if row["read_fraction"] == fraction), default=0)
        verdict(0.99 * best <= ceilings.get(key, 0) and best > 0,
                f"bandwidth: {key} {ceilings.get(key, 0):.3f} TB/s is the best of its table, {best:.3f}")
    others = [f"{os.path.dirname(folder) or '.'}/{part}" for part in ("stream", "repeat")]
    best, what = max(fastest(other) for other in others)  # of parts that ran before; those that come judge it as well
    if best:
        verdict(0.99 * best <= ceilings.get("read_tbps", 0), f"bandwidth: fastest seen {best:.3f} TB/s ({what})")
    return None


def audited(folder, load_name, precisions):
    for precision in precisions:
        path = f"{folder}/{precision}.json"
        if not os.path.exists(path):
            verdict(False, f"{load_name} {precision}: no ceilings were written")
            continue
        ceilings = load(path)
        peak = next((p for p in ceilings["peaks"] if p["precision"] == precision), None)
        said = text(f"{folder}/{precision}.txt")
        audit = (ceilings.get("audit") or {}).get(precision)
        ratio = audit["ratio"] if audit else None
        if ratio is None:
            match = re.search(rf"audit\s+{precision}\s+([\d.]+) % of the best of (\d+)", said)
            ratio = float(match.group(1)) / 100 if match else 0
        shape = "x".join(map(str, peak["shape"])) if peak else "none"
        tflops = peak["tflops"] if peak else 0
        verdict(ratio >= 0.995, f"{load_name} {precision}: {tflops:.1f} TFLOP/s at {shape} "
                                f"({peak['how'] if peak else ''}), {100 * ratio:.2f} % of the best of 500 random shapes")
        verdict(peak and peak["seconds"] < 30, f"{load_name} {precision}: found in "
                                               f"{peak['seconds'] if peak else 0:.1f} s (< 30)")


def sweep(folder):
    path = f"{folder}/sweep.json"
    points = load(path).get("sweep", {}).get("points", []) if os.path.exists(path) else []
    for point in points:
        print(f"    K {point['shape'][2]:7d}  {point['tflops']:.1f} TFLOP/s")
    wanted = list(range(65536, 262144 + 1, 16384))
    verdict([p["shape"][2] for p in points] == wanted, f"sweep: {len(points)} of {len(wanted)} depths measured")


def repeat(folder):
    runs = [reports(f"{folder}/run_{k}") for k in range(1, RUNS + 1)]
    names = list(load("tests/gpu/six_gemms.json"))
    verdict(all(set(run) == set(names) for run in runs), f"repeat: {RUNS} runs with {len(names)} reports each")
    if RUNS < 5:
        print(f"SKIPPED repeat: five runs are promised, {RUNS} were made")
    print("    operation      median us   spread   efficiency  spread   verdicts")
    for name in names:
        rows = [run[name] for run in runs if name in run]
        good = [row for row in rows if row.get("baseline_time_us") and row.get("efficiency")]
        if len(good) < RUNS:
            why = {row.get("status") for row in rows}
            verdict(False, f"repeat {name}: only {len(good)} of {RUNS} runs have a baseline and an efficiency ({why})")
            continue
        times = [row["baseline_time_us"] for row in good]
        efficiencies = [row["efficiency"] for row in good]
        said = [f"{row.get('priority')}/{row.get('approach')}" for row in good]
        borderline = any(row.get("borderline") for row in good)
        points = 100 * (max(efficiencies) - min(efficiencies))
        print(f"    {name:12s} {median(times):11.3f} {100 * spread(times):7.2f} % {100 * median(efficiencies):9.2f} % "
              f"{points:6.2f} pt   {' '.join(sorted(set(said)))}{' borderline' if borderline else ''}")
        verdict(spread(times) <= 0.02, f"repeat {name}: medians within {100 * spread(times):.2f} % (2 %)")
        verdict(points <= 1, f"repeat {name}: efficiencies within {points:.2f} points (1)")
        verdict(len(set(said)) == 1 or borderline, f"repeat {name}: one verdict")
    read = [(load(path).get("devices") or [{}])[0].get("ceilings", {}).get("read_tbps", 0)
            for path in glob.glob(f"{folder}/run_*/run.json")]
    not_above("repeat", folder, min(read, default=0))


def compared(part, result, names):
    """One line for each operation that PyTorch has timed as well. Two loops that power caps run at two clocks, and hotter
    cards at lower ones: where both clocks are known the times are compared at one, and both are told."""
    verdict(result["same_library"], f"{part}: one library file: {result['library']}")
    for row in result["rows"]:
        said = (f"{part} {row['name']}: {row['scout_us']:.3f} us here, {row['other_us']:.3f} us by {row['by']}: "
                f"{100 * (row['ratio'] - 1):+.2f} %")
        ratio = row.get("ratio_at_its_clock") or row["ratio"]
        if ratio != row["ratio"]:
            said += (f", at one clock {100 * (ratio - 1):+.2f} % ({row['scout_mhz']:.0f} and {row['other_mhz']:.0f} MHz)")
        said += f", {row['kernel'][:60]}"
        close = abs(ratio - 1) <= (0.01 if row["other_us"] > 20 else 0.03) and row["same_kernel"]
        if close and not row["torch_picks_it"]:
            # Right, and measured by PyTorch's graphs, but no kernel that PyTorch itself would launch.
            print(f"SKIPPED {said} (kernel names differ: only the replayed algorithm could be compared)")
        else:
            verdict(close, said)
    alike = sum(row["torch_picks_it"] for row in result["rows"])
    return verdict(len(result["rows"]) == names, f"{part}: {len(result['rows'])} of {names} compared, of {alike} of them "
                                                 "PyTorch launches the same kernel by itself")


def agree(folder):
    path = f"{folder}/agree.json"
    if not os.path.exists(path):
        return verdict(False, "agree: nothing was compared")
    return compared("agree", load(path), 6)


# What is one wider product, and what it is apart: name, how often.
MERGED = {"qkv_2048": ("q_2048", 3), "qkv_128": ("q_128", 3), "gate_up_2048": ("ffn_plain", 2),
          "gate_up_128": ("up_128", 2)}


def epilogue(folder):
    path, found = f"{folder}/agree.json", reports(f"{folder}/scout")
    if not os.path.exists(path):
        return verdict(False, "epilogue: nothing was compared")
    result = load(path)
    compared("epilogue", result, 4)
    # the gelu that cuBLASLt has no epilogue for: its baseline is the product, and one kernel behind it
    other = found.get("ffn_gelu_erf", {})
    two = other.get("baseline_time_us") if other.get("baseline") == "cublaslt_tail" else None
    verdict(two, f"epilogue ffn_gelu_erf: baseline {other.get('baseline')}, best {other.get('best')} "
                 f"{other.get('best_variant')}, {other.get('best_time_us', 0):.2f} us")
    for row in result["rows"]:
        apart = row["others_us"].get("separate")
        if apart and two:
            print(f"    {row['name']:12s} fused {row['scout_us']:.2f} us; product and one kernel behind it {two:.2f} "
                  f"({two / row['scout_us']:.3f} times as long); PyTorch fused {row['torch_us']:.2f}, in three kernels "
                  f"{apart:.2f} ({apart / row['torch_us']:.3f} times)")
        if row["name"] == "ffn_gelu":
            verdict(apart and two and apart > row["torch_us"] and two > row["scout_us"],
                    "epilogue ffn_gelu: fused is faster than apart, here and by PyTorch")
    for wide, (part, times) in MERGED.items():
        both = [found.get(name, {}).get("baseline_time_us") for name in (wide, part)]
        said = f"{both[0]:.2f} us as one, {times} times {both[1]:.2f} apart: {times * both[1] / both[0]:.3f} times as long" \
            if all(both) else "not measured"
        verdict(all(both), f"epilogue {wide}: {said}")
    return None


def stream(folder):
    run = load(f"{folder}/run/run.json") if os.path.exists(f"{folder}/run/run.json") else {}
    device = (run.get("devices") or [{}])[0]
    read = (device.get("ceilings") or {}).get("read_tbps", 0)
    found = reports(f"{folder}/run")
    not_above("stream", folder, read)
    for name in load("tests/gpu/stream_gemms.json"):
        report = found.get(name)
        own = [row for row in rows_of(report, "gemm_stream") if row["status"] == "OK"] if report else []
        if not own or not read:
            verdict(False, f"stream {name}: gemm_stream has no OK row, or the read ceiling is not known")
            continue
        best = min(own, key=lambda row: row["time_us"]["median"])
        time = best["time_us"]["median"]
        part = report.get("ceiling_time_us", 0) / time
        verdict(part >= 0.8, f"stream {name}: {time:.2f} us, {100 * part:.1f} % of its ceiling (80), "
                             f"{best['tbps']:.2f} TB/s = {100 * best['tbps'] / read:.1f} % of {read:.2f}")
        gains("stream", name, report)
    found = reports(f"{folder}/bytes")
    for name in load("tests/gpu/stream_bytes.json"):
        gains("stream of bytes", name, found.get(name, {}))


def gains(part, name, report):
    verdict(report.get("best") == "gemm_stream" and report.get("proven_gain_us", 0) > 0,
            f"{part} {name}: the verdict names {report.get('best')} ({report.get('approach')}), "
            f"proven gain {report.get('proven_gain_us', 0):.2f} us over {report.get('baseline_time_us', 0):.2f}")


def llama(folder):
    without, code = seconds(folder, "without")
    verdict(without < 20 and code <= 1, f"llama: without cache {without:.2f} s (20), exit {code}")
    cached, code = seconds(folder, "with")
    verdict(cached < 1 and code <= 1, f"llama: with cache {cached:.2f} s (1), exit {code}")
    first, second = reports(f"{folder}/without"), reports(f"{folder}/with")
    verdict(first and set(first) == set(second), f"llama: {len(first)} operations, the same ones both times")
    open_rows = [name for name, report in first.items() if not report.get("baseline_time_us")]
    verdict(first and not open_rows, f"llama: each has a baseline{': not ' + ', '.join(open_rows) if open_rows else ''}")
    for name, report in first.items():
        print(f"    {name:24s} {report.get('baseline_time_us', 0):10.2f} us "
              f"{100 * report.get('efficiency', 0):6.1f} %  {report.get('priority')} {report.get('approach')}")


# What each fault may come out as. A kernel that hangs or poisons may be found alone or in the worker that it shared.
FAULTS = {"faulty_hang": {"TIMEOUT"}, "faulty_crash": {"CRASHED"}, "faulty_bounds": {"CRASHED", "ERROR", "WRONG"},
          "faulty_wrong": {"WRONG"}, "faulty_hog": {"ERROR", "CRASHED", "UNSUPPORTED", "TIMEOUT", "SKIPPED"}}


def faults(folder):
    if not all(os.path.exists(f"{folder}/{name}.json") for name in ("without", "with")):
        return verdict(False, "faults: a report is missing")
    plain, full = load(f"{folder}/without.json"), load(f"{folder}/with.json")
    for name, allowed in FAULTS.items():
        rows = rows_of(full, name)
        said = ", ".join(f"{row['status']} {(row.get('reason') or {}).get('text', '')[:80]}" for row in rows)
        verdict(rows and all(row["status"] in allowed for row in rows), f"faults {name}: {said or 'no row'}")

    def others(report):
        return {(row["name"], row["variant"]): row["status"] for row in report["candidates"] if row["name"] not in FAULTS}

    # Which variants drop out of a race, or are left out for time, is a matter of a percent and not of the fault.
    tame = {"OK", "SKIPPED"}
    before, after = others(plain), others(full)
    changed = {key for key in before if key not in after or
               (before[key] != after[key] and not {before[key], after[key]} <= tame)}
    verdict(not changed and set(after) == set(before), f"faults: every other row as without ({len(before)} rows; "
                                                       f"changed: {sorted(changed)[:3]})")
    times = [report.get("baseline_time_us") for report in (plain, full)]
    if not all(times):  # an unsteady clock is no fault's doing
        print("SKIPPED faults: the baseline's time as without: a baseline is not OK "
              f"({plain.get('status')} without, {full.get('status')} with)")
        return None
    ratio = times[1] / times[0]
    return verdict(abs(ratio - 1) < 0.05, f"faults: the baseline's time as without ({100 * (ratio - 1):+.2f} %)")


def trace(folder):
    """What the engine takes for granted: whole seconds are alike after the first two. Halves and pairs are not."""
    said = text(f"{folder}/clock_trace.txt")
    for name, skip, held in (("halves", 4, None), ("pairs of 0.6 s", 0, None), ("pairs of 0.5 s", 0, None), ("seconds", 2, 0.61)):
        found = re.findall(rf"^  {re.escape(name)}[^+-]*((?:[+-][\d.]+ ?)+)$", said, re.M)
        percents = [abs(float(word)) for line in found for word in line.split()[skip:]]
        if held is None:
            print(f"    {name}: up to {max(percents, default=float('nan')):.2f} % off")
        else:
            verdict(percents and max(percents) <= held,
                    f"trace: {len(percents)} {name} after the first two within {max(percents, default=0):.2f} % ({held})")


def kinds(folder):
    """Of every file: what candidates made of its operations."""
    for path in sorted(glob.glob(f"{folder}/*.seconds")):
        name = os.path.basename(path)[:-8]
        if name == "ceilings":
            continue
        found, counts, bad, alone = reports(f"{folder}/{name}"), {}, [], []
        for report in found.values():
            for row in report.get("candidates", []):
                counts[row["status"]] = counts.get(row["status"], 0) + 1
                if row["status"] in BAD:
                    bad.append(f"{report['name']}: {row_said(row)}")
            if report["status"] in BAD or not report.get("baseline"):
                alone.append(f"{report['name']}: {report['status']} {(report.get('reason') or {}).get('text', '')}")
        told = ", ".join(f"{count} {status}" for status, count in sorted(counts.items()))
        for line in bad + alone:
            print(f"    {line[:230]}")
        verdict(found and not bad and not alone, f"kinds {name}: {len(found)} operations, {told}; "
                f"{len(bad)} wrong or failed, {len(alone)} without a baseline; {seconds(folder, name)[0]:.0f} s")


def targets(folder):
    """What is promised of operations by name: the least rate of the best of them, in its unit, be it in the run of all
    candidates or in one of our own alone."""
    for path in sorted(glob.glob(f"{folder}/*_targets.seconds")):
        name = os.path.basename(path)[:-8]
        alone = reports(f"{folder}/{name}_alone")
        for report in reports(f"{folder}/{name}").values():
            rows = [row for row in report.get("candidates", []) if row["status"] == "OK"]
            best = max(rows, key=lambda row: -row["time_us"]["median"], default=None)
            print(f"    {report['name']:24} " + "; ".join(
                f"{row['name']} {row['variant']} {row['time_us']['median']:.2f} us "
                f"{row['tbps']:.2f} TB/s {row['tflops']:.0f} TFLOP/s" for row in rows)[:300])
            verdict(best, f"targets {report['name']}: measured")
            rate(report, alone.get(report["name"]))
            if report.get("sparsity"):
                sparse_targets(report)


def custom(folder):
    """Each variant of the example is right, the comparison comes to a decision, and ncu's counters are in the report."""
    for path in sorted(glob.glob(f"{folder}/skinny_*.json")):
        report, name = load(path), os.path.basename(path)[:-5]
        rows, code = rows_of(report, "example_skinny"), text(f"{folder}/{name}.code").strip()
        outcome = report.get("comparison", {})
        good = {"KEEP": "0", "REVERT": "5", "UNDECIDED": "1"}.get(outcome.get("decision")) == code
        verdict(rows and not any(row["status"] in BAD for row in rows) and good,
                f"custom {name}: {outcome.get('decision')} (exit {code}), {outcome.get('text', '')[:120]}")
    code, told = text(f"{folder}/ncu.code").strip(), text(f"{folder}/ncu.txt").strip()
    if code == "4":
        print(f"SKIPPED custom ncu: {told[-200:]}")
        return
    rows = [row for report in reports(f"{folder}/whole").values() for row in report["candidates"] if "counters" in row]
    verdict(code == "0" and rows, f"custom ncu: exit {code}, {len(rows)} rows: {(told.splitlines() or ['nothing'])[-1]}")


def fusions(folder):
    """Of every fusion: the parts in sequence are right and timed, and so is what does all at once; kernels of both."""
    for name in ("awkward", "large"):
        for path in sorted(glob.glob(f"{folder}/{name}/fusions/*.json")):
            report = load(path)
            told, bad = report["fusion"], [row for row in report.get("candidates", []) if row["status"] in BAD]
            for row in bad:
                print(f"    {report['name']}: {row_said(row)}"[:230])
            what = (f"{told['parts_time_us']:.2f} us as {told.get('kernels_parts', '?')} kernels, "
                    f"{told.get('fused_time_us', float('nan')):.2f} us as {told.get('kernels_fused', '?')}, "
                    f"{told['speedup']:.3f}x +- {100 * told['speedup_ci']:.1f} %, worth it: {told['worth']}, "
                    f"{told.get('fused')} {told.get('fused_variant')}"
                    if "worth" in told else told["why"]["text"])
            verdict("worth" in told and not bad, f"fusions {report['name']}: {what}")


def claims(folder):
    """Every call was answered; what the claims come to is no promise."""
    said = text(f"{folder}/claims.txt")
    calls = re.findall(r"^(\w+): (\d+) s, exit (\d+)$", said, re.M)
    verdict(calls and "FAILED" not in said, f"claims: {len(calls)} calls in {sum(int(call[1]) for call in calls)} s (240)")
    rows = re.findall(r"\| (holds|refuted|open|other hardware) \|$", said, re.M)
    verdict(rows, f"claims: {', '.join(f'{rows.count(kind)} {kind}' for kind in sorted(set(rows))) or 'no verdict'}")


def quick(folder):
    """A line for what was missed, and one that says that nothing was."""
    said = text(f"{folder}/quick.txt")
    missed = re.findall(r"^MISSED (.*)$", said, re.M)
    for what in missed:
        verdict(False, f"quick {what}")
    verdict("nothing was missed" in said or missed, f"quick: {len(re.findall(r' within 1 %,', said))} models")


def whole(folder):
    """The sum of a model's operations beside the model as a whole: by the defaults as it is, and by these and the plan at
    the model's clock, where that is known. 5 % each, as far as the replay's own interval goes. The plan's numbers are not
    worse than the defaults' beside fp32."""
    found = sorted(glob.glob(f"{folder}/*.json"))
    for path in found:
        for lane, of in (("default", "sum_us"), ("default", "at_clock_us"), ("best", "at_clock_us")):
            time = load(path)[lane] or {}
            if of not in time:
                continue
            off, ci = time["time_us"] / time[of] - 1, time.get("over_sum_ci", 1)
            verdict(abs(off) <= 0.05 + ci, f"whole {os.path.basename(path)[:-5]} {lane}: {time['time_us']:.1f} us as a "
                                           f"whole, {100 * off:+.1f} % beside its {of}, to {100 * ci:.1f} %")
        exact = load(path).get("exact", {})
        told = exact.get("not", "not compared")
        if "worse" in exact:
            told = f"the plan {exact.get('best', float('inf')):.2g} of the norm off, the defaults {exact['default']:.2g}"
        verdict(exact.get("worse") is False, f"whole {os.path.basename(path)[:-5]} beside fp32: {told}")
    verdict(found, f"whole: {len(found)} models")


def peers(folder):
    """The plan takes no longer than the fastest of PyTorch's runs."""
    for row in load(f"{folder}/peers.json"):
        verdict(row.get("ratio", 2) <= 1, f"peers {row['model']}: {row['plan_us']:.1f} us by the plan, "
                                          f"{row.get('ratio', float('nan')):.3f} of the fastest of PyTorch's {row.get('error', '')}")


def plans(folder):
    """The program counts by itself; each model ran, launched and in a graph."""
    said = text(f"{folder}/check_plan.txt")
    counts = re.findall(r"^(\d+) passed, (\d+) failed$", said, re.M)
    ran = {os.path.basename(name) for name in re.findall(r"^ *(\S+), \S+, in a graph: .* off$", said, re.M)}
    wanted = {os.path.basename(os.path.dirname(path)) for path in glob.glob(f"{folder}/*/ops.json")}
    verdict(counts and counts[-1][1] == "0" and wanted and ran == wanted,
            f"plans: {len(ran)} of {len(wanted)} plans in a graph, {counts[-1][1] if counts else 'it did not end, no'} failed")


def runtime(folder):
    """The programs count by themselves. A launch costs at most half a microsecond more than the plan that it launches."""
    for name in ("check_run", "memcheck"):
        said = text(f"{folder}/{name}.txt")
        counts = re.findall(r"^(\d+) passed, (\d+) failed$", said, re.M)
        errors = re.findall(r"ERROR SUMMARY: (\d+) error", said)
        if name == "memcheck" and not said:
            print("SKIPPED runtime memcheck: compute-sanitizer is not here")
            continue
        verdict(counts and int(counts[-1][0]) > 0 and counts[-1][1] == "0" and (name != "memcheck" or set(errors) == {"0"}),
                f"runtime {name}: {' passed, '.join(counts[-1]) + ' failed' if counts else 'it did not end'}"
                + (f", {errors[-1]} errors" if errors else ""))
    launches = re.findall(r"^(.+?) +\d+ ns +([+-]\d+) ns +([+-]\d+) ns$", text(f"{folder}/bench_run.txt"), re.M)
    if not launches:
        print("SKIPPED runtime launches: bench_run is not there, or told nothing")
    for name, handle, front in launches:
        verdict(max(int(handle), int(front)) <= 500, f"runtime launch of {name}: {handle} ns by handle, {front} by tensors")
    if not os.path.exists(f"{folder}/torch.err"):
        print("SKIPPED runtime PyTorch: no WHEEL was given")
        return
    verdict(re.search(r"^OK", text(f"{folder}/torch.err"), re.M), "runtime PyTorch: test_torch.Cuda")
    patched = re.findall(r"^(PASSED|FAILED) (.*)$", text(f"{folder}/patch.txt"), re.M)
    verdict(len(patched) == 4, f"runtime patch: {len(patched)} of 4 verdicts on two models")
    for good, what in patched:
        verdict(good == "PASSED", f"runtime patch: {what}")


def allocations(folder):
    """The verdict of the processes stands at its end."""
    lines = text(f"{folder}/repeat_beside.txt").strip().splitlines() or ["nothing was said"]
    beyond = sum("<- beyond" in line for line in lines)
    verdict(beyond == 0 and len(lines) > 2, f"allocations: {beyond} operations beyond; {lines[-1]}")


def zoo(folder):
    """A night on one GPU is done in ten minutes; beside one on two GPUs that one is 1.8 times as fast, and tells the same."""
    nights = {}
    for path in sorted(glob.glob(f"{folder}/on_*.seconds")):
        name = os.path.basename(path)[:-8]
        took, code = seconds(folder, name)
        done = (re.findall(r"zoo: (\d+) of (\d+) done", text(f"{folder}/{name}.txt")) or [("0", "-")])[-1]
        of = {(os.path.relpath(one, f"{folder}/{name}"), report["name"]): report
              for one in glob.glob(f"{folder}/{name}/*@*/reports") for report in reports(os.path.dirname(one)).values()}
        without = [one for one, report in of.items() if report["count"] and report["status"] != "OK"
                   and (report.get("reason") or {}).get("code") != "no_work"]
        for one in without:
            print(f"    {one}: {of[one]['status']} {(of[one].get('reason') or {}).get('text', '')}"[:230])
        wholes = [load(path) for path in glob.glob(f"{folder}/{name}/*@*/model.json")]
        several = sum(len(one["passes"]) > 1 for one in wholes)
        nights[name] = took, of
        verdict(done[0] == done[1] and code <= 1 and not without, f"zoo {name}: {done[0]} of {done[1]} models and sizes, "
                f"{len(of)} operations, {len(without)} without a figure, {len(wholes)} measured as a whole, {several} of them in several passes, "
                f"exit {code}, {took:.0f} s")
    for name, (took, of) in nights.items():
        gpus = name.count(",") + 1
        if gpus == 1:
            verdict(of and took <= 600, f"zoo {name}: {took:.0f} s (600)")
        elif "on_0" in nights:
            alone, other = nights["on_0"]
            both = [(of[one], other[one]) for one in of if one in other]
            agree = sum(a["approach"] == b["approach"] or any(r.get("borderline") or r.get("undecided") for r in (a, b))
                        for a, b in both)
            verdict(alone / took >= 0.9 * gpus, f"zoo {name}: {alone / took:.2f} times as fast as one ({0.9 * gpus:.1f})")
            verdict(both and len(both) == len(of) and agree >= 0.98 * len(both),
                    f"zoo {name}: {agree} of {len(both)} verdicts are those of one GPU, or marked open (98 %)")


PARTS = {"zoo": zoo, "quick": quick, "whole": whole, "allocations": allocations, "peers": peers, "runtime": runtime, "plans": plans, "kinds": kinds, "custom": custom, "fusions": fusions, "claims": claims, "targets": targets,
         "models": models, "agree_kinds": agree_kinds, "end_to_end": end_to_end,
         "devices": devices, "checks": checks, "bandwidth": bandwidth, "sweep": sweep, "repeat": repeat, "agree": agree,
         "epilogue": epilogue, "sparse": sparse,
         "sustained": lambda folder: audited(folder, "sustained", ("fp16", "bf16", "fp8")),
         "burst": lambda folder: audited(folder, "burst", ("fp16", "bf16", "fp8")),
         "precisions": lambda folder: audited(folder, "sustained", ("tf32", "int8", "fp32")),
         "stream": stream, "llama": llama, "faults": faults, "trace": trace, "sanitizer": sanitizer}

if __name__ == "__main__":
    part = sys.argv[1]
    try:
        PARTS[part](sys.argv[2])
    except (OSError, ValueError, KeyError, TypeError, IndexError) as error:
        verdict(False, f"{part}: what it left cannot be read: {type(error).__name__}: {error}")
