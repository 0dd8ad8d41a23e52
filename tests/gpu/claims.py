"""The claims of claims.json beside what scout_batch has measured.

claims.py --check | --calls | --list | --write [RESULTS]

--check says what is wrong with the data file. --calls prints the calls for claims.sh: name, tab, arguments. --list
prints every claim with what decides it. --write prints docs/claims.md; without RESULTS its figures are left out.
A claim has "take", one of TAKES below; "of": CALL/NAME, patterns; "bound": least and most, null where there is none.
Beside them: "candidate" and "over", candidates; "beside", what the figure is divided by; "where", which figures count;
"at", a number that "take" needs; "some", where one figure is enough; "hardware", whose figure it is; "stand_in".
"""
import fnmatch
import glob
import json
import os
import re
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
GROUPS = {"sparse": ("gemm_block_sparse", "cusparse_bsr", "cusparse_ell", "cusparse_csr", "cusparselt"),
          "own": ("attention_tiled", "attention_decode", "attention_naive")}
MEMBERS = {"id", "from", "claim", "hardware", "stand_in", "take", "at", "candidate", "over", "of", "beside", "where",
           "some", "bound", "missing"}
NONE = "–"


class NoFigure(Exception):
    """Why the program's output has no such figure."""


def load(path):
    with open(path, encoding="utf-8") as file:
        return json.load(file)


# ---- figures: (value, relative half width; 0: counted, not measured) ----

def row_of(report, who):
    """The fastest row of a candidate, of a group of them, or of the baseline's own variant."""
    rows = report.get("candidates", [])
    if who == "baseline":
        rows = [row for row in rows if row["name"] == report.get("baseline")
                and row["variant"] == (report.get("baseline_variant") or "")]
    else:
        rows = [row for row in rows if row["name"] in GROUPS.get(who, (who,))]
    good = [row for row in rows if row["status"] == "OK"]
    if good:
        return min(good, key=lambda row: row["time_us"]["median"])
    reason = (rows[0].get("reason") or {}) if rows else {}
    raise NoFigure(f"{who}: {rows[0]['status']}, {reason.get('text', '')}" if rows else f"{who} is not in the report")


def interval(row):
    return row["time_us"].get("rel_ci95", float("inf"))


def ratio(report, claim):
    """Times of two rows over each other: by their ratios to the baseline, from neighbouring blocks, where there are."""
    rows = row_of(report, claim["candidate"]), row_of(report, claim["over"])
    baseline = row_of(report, "baseline")
    if all(row is baseline or "ratio" in row for row in rows):
        (a, x), (b, y) = ((1, 0) if row is baseline else (row["ratio"], row.get("ratio_ci", float("inf")))
                          for row in rows)
    else:
        (a, x), (b, y) = ((row["time_us"]["median"], interval(row)) for row in rows)
    return a / b, x + y


def best_ratio(report, _):
    """Of the best, or of what came nearest to winning, to the baseline."""
    changed = (report["best"], report.get("best_variant")) != (report["baseline"], report.get("baseline_variant"))
    said = report if changed else report.get("rival") or {}
    if "ratio" not in said:
        raise NoFigure("nothing ran beside the baseline")
    return said["ratio"], said.get("ratio_ci", float("inf"))


def efficiency(report, _):
    if "efficiency" not in report:
        raise NoFigure("no efficiency is known")
    ci = report.get("ceiling_ci", float("inf"))
    if report.get("ceiling_from") != "probe":
        ci += interval(row_of(report, "baseline"))
    return report["efficiency"], ci


def rate(report, claim, member="tflops"):
    row = row_of(report, claim.get("candidate", "baseline"))
    return row.get(member, row["tflops"]), interval(row)


def us_per_head(report, claim):
    row = row_of(report, claim.get("candidate", "baseline"))
    return row["time_us"]["median"] / (report["shape"][0] * report["shape"][1]), interval(row)


def rate_of_datasheet(report, claim):
    peaks = {one["precision"]: one for one in report["peaks"]}
    sheet = peaks.get(report["precision"], {}).get("datasheet_tflops")
    if not sheet:
        raise NoFigure("no datasheet's figure is known of this device")
    return report["flops"] / claim["at"] / 1e6 / sheet, 0


def rank(report, _):
    """Where in the list of variants the fastest one stands."""
    rows = report["candidates"]
    good = [row for row in rows if row["status"] == "OK"]
    if not good:
        raise NoFigure("nothing ran")
    return 1 + rows.index(min(good, key=lambda row: row["time_us"]["median"])), 0


def counted(report, _):
    return sum(row["status"] == "OK" for row in report["candidates"]), 0


def blocks_left(report, claim):
    work = ((report.get("weight") or {}).get("convert_to_bsr") or {}).get("work", {})
    if str(claim["at"]) not in work:
        raise NoFigure("the weight was not looked at")
    return work[str(claim["at"])], 0


def speedup(report, _):
    told = report["fusion"]
    if "speedup" not in told:
        raise NoFigure((told.get("why") or {}).get("text", "not measured"))
    return told["speedup"], told.get("speedup_ci", float("inf"))


def kernels_saved(report, _):
    told = report["fusion"]
    if "kernels_parts" not in told or "kernels_fused" not in told:
        raise NoFigure((told.get("why") or {}).get("text", "kernels were not counted"))
    return told["kernels_parts"] - told["kernels_fused"], 0


def peak(ceilings, _):
    for one in ceilings.get("peaks", []):
        if one["precision"] == "fp16":
            return one["tflops"], one.get("rel_ci95", float("inf"))
    raise NoFigure("no peak is known")


def peak_of_datasheet(ceilings, claim):
    value, ci = peak(ceilings, claim)
    sheet = next(one.get("datasheet_tflops") for one in ceilings["peaks"] if one["precision"] == "fp16")
    if not sheet:
        raise NoFigure("no datasheet's figure is known of this device")
    return value / sheet, ci


def points(ceilings):
    found = {point["shape"][2]: point for point in (ceilings.get("sweep") or {}).get("points", [])}
    if len(found) < 2:
        raise NoFigure("there is no K sweep")
    return found


def sweep_tflops(ceilings, claim):
    point = points(ceilings).get(claim["at"])
    if not point:
        raise NoFigure(f"K = {claim['at']} was not measured")
    return point["tflops"], point.get("rel_ci95", float("inf"))


def sweep_over_rest(ceilings, claim):
    """One depth over the best of all others."""
    found = points(ceilings)
    depth = max(found, key=lambda k: found[k]["tflops"]) if claim["at"] == "best" else claim["at"]
    one = sweep_tflops(ceilings, {"at": depth})
    rest = max((point for k, point in found.items() if k != depth), key=lambda point: point["tflops"])
    return one[0] / rest["tflops"], one[1] + rest.get("rel_ci95", float("inf"))


# What is taken: of which files, how, its unit (%: a fraction is shown as percent), and which members it needs.
TAKES = {
    "ratio": ("reports", ratio, "x", ("candidate", "over")),
    "best_ratio": ("reports", best_ratio, "x", ()),
    "efficiency": ("reports", efficiency, "%", ()),
    "tflops": ("reports", rate, "TFLOP/s", ()),
    "dense_tflops": ("reports", lambda r, c: rate(r, c, "dense_equivalent_tflops"), "TFLOP/s as dense", ("candidate",)),
    "us_per_head": ("reports", us_per_head, "us a head", ()),
    "rate_of_datasheet": ("reports", rate_of_datasheet, "x", ("at",)),
    "zeros": ("reports", lambda report, _: (report["sparsity"], 0), "%", ()),
    "seconds": ("reports", lambda report, _: (report["seconds"], 0), "s", ()),
    "rows": ("reports", counted, "x", ("beside",)),
    "rank": ("reports", rank, "in the list", ()),
    "blocks_left": ("reports", blocks_left, "%", ("at",)),
    "speedup": ("fusions", speedup, "x", ()),
    "kernels_saved": ("fusions", kernels_saved, "kernels", ()),
    "peak": ("ceilings_*.json", peak, "TFLOP/s", ()),
    "peak_of_datasheet": ("ceilings_*.json", peak_of_datasheet, "%", ()),
    "sweep_tflops": ("ceilings_*.json", sweep_tflops, "TFLOP/s", ("at",)),
    "sweep_over_rest": ("ceilings_*.json", sweep_over_rest, "x", ("at",)),
}


# ---- results ----

class Results:
    """What the calls have left in a folder; each file is read once."""

    def __init__(self, folder):
        self.folder, self.kept = folder, {}

    def files(self, call, kind):
        """[(name, content)] of a call's reports, fusions or ceilings."""
        key = call, kind
        if key not in self.kept:
            inside = f"{kind}/*.json" if not kind.endswith(".json") else kind
            found = [load(path) for path in sorted(glob.glob(f"{self.folder}/{call}/{inside}"))]
            for report in found:
                report["peaks"] = report.get("peaks") or self.peaks(call)
            self.kept[key] = [(self.name(report), report) for report in found]
        return self.kept[key]

    @staticmethod
    def name(report):
        told = report.get("fusion")
        if told:
            return re.sub(r"\W+", "_", told["pattern"])
        if "name" not in report:
            return ""
        return report["name"] if report["name"] != report["op"] else f"{100 * report['sparsity']:.0f} % zeros"

    def peaks(self, call):
        path = f"{self.folder}/{call}/run.json"
        devices = load(path).get("devices", []) if os.path.exists(path) else []
        return (devices[0].get("ceilings") or {}).get("peaks", []) if devices else []

    def matching(self, of, kind):
        call, _, pattern = of.partition("/")
        return [(name or call, report) for name, report in self.files(call, kind)
                if not pattern or fnmatch.fnmatchcase(name, pattern)]

    def seconds(self, call):
        path = f"{self.folder}/{call}.seconds"
        if not os.path.exists(path):
            return None
        with open(path, encoding="utf-8") as file:
            return float(file.read().split()[0])


def several(value):
    return value if isinstance(value, list) else [value]


def one_figure(results, claim, report):
    _, how, _, _ = TAKES[claim["take"]]
    value, ci = how(report, claim)
    if "beside" in claim:
        others = results.matching(claim["beside"], TAKES[claim["take"]][0])
        if not others:
            raise NoFigure(f"{claim['beside']} was not measured")
        other, its = how(others[0][1], claim)
        if not other:
            raise NoFigure(f"{claim['beside']}: its figure is 0")
        value, ci = value / other, ci + its
    return value, ci


def counts(claim, report):
    """Whether a figure is of those that the claim is about."""
    where = claim.get("where")
    if not where:
        return True
    value, _ = TAKES[where["take"]][1](report, {})
    return where.get("least", -float("inf")) <= value <= where.get("most", float("inf"))


def figures_of(results, claim):
    """([(name, value, half width)], [why one is missing])."""
    found, missing = [], []
    for of in claim["of"]:
        matching = results.matching(of, TAKES[claim["take"]][0])
        if not matching:
            missing.append(f"{of} was not measured")
        for name, report in matching:
            if len({one.partition("/")[0] for one in claim["of"]}) > 1:
                name = f"{of.partition('/')[0]} {name}"
            for wanted in several(claim.get("candidate")):
                for at in several(claim.get("at")):
                    one = dict(claim, candidate=wanted or "baseline", at=at)
                    label = " ".join([name] + [str(part) for part, member in ((wanted, "candidate"), (at, "at"))
                                               if isinstance(claim.get(member), list)])
                    try:
                        if counts(claim, report):
                            found.append((label, *one_figure(results, one, report)))
                    except (NoFigure, KeyError) as error:
                        missing.append(f"{label}: {error}")
    return found, missing


def says_of(value, ci, bound):
    """holds where all of the interval is on the claim's side, refuted where all of it is beyond, else open."""
    least, most = (-float("inf") if bound[0] is None else bound[0]), (float("inf") if bound[1] is None else bound[1])
    half = value * ci
    low, high = value - half, value + half
    if least <= low and high <= most:
        return "holds"
    return "refuted" if high < least or low > most else "open"


def fits(hardware, device):
    return not hardware or all(word in device.split() for word in hardware.split())


def verdict_of(claim, found, missing, device):
    said = [says_of(value, ci, claim["bound"]) for _, value, ci in found]
    enough, against = ("holds", "refuted") if claim.get("some") else ("refuted", "holds")
    if not found:
        return "open"
    if not fits(claim.get("hardware"), device):
        return "other hardware"
    if enough in said:
        return enough
    return against if not missing and all(one == against for one in said) else "open"


# ---- what is printed ----

def number(value, unit):
    return f"{100 * value:.1f} %" if unit == "%" else f"{value:.4g}"


def unit_of(claim):
    return "x" if "beside" in claim else TAKES[claim["take"]][2]


def bound_said(claim):
    unit = unit_of(claim)
    low, high = (None if one is None else number(one, unit) for one in claim["bound"])
    plain = "" if unit == "%" else f" {unit}"
    if low is None:
        return f"at most {high}{plain}"
    return f"at least {low}{plain}" if high is None else f"{low} to {high}{plain}"


def with_unit(value, unit):
    return number(value, unit) + ("" if unit == "%" else f" {unit}")


def interval_said(value, ci, unit):
    if ci == 0 or ci == float("inf"):
        return "exact" if ci == 0 else "not known"
    return f"{number(value - value * ci, unit)} to {number(value + value * ci, unit)}"


def cells(claim, results, device):
    """Figure, interval, verdict."""
    if not results:
        return NONE, NONE, NONE
    found, missing = figures_of(results, claim)
    unit = unit_of(claim)
    shown = sorted(found, key=lambda one: one[1])
    if len(shown) > 2:
        shown = [shown[0], shown[-1]]
    link = " … " if len(found) > 2 else "; "
    figures = link.join(with_unit(value, unit) + (f" ({name})" if len(found) > 1 else "") for name, value, _ in shown)
    halves = link.join(interval_said(value, ci, unit) for _, value, ci in shown)
    why = [f"no figure: {missing[0]}" + (f" (and {len(missing) - 1} more)" if missing[1:] else "")] if missing else []
    said = [figures] * bool(found) + why or ["nothing of that kind was met"]
    return "; ".join(said), halves or NONE, verdict_of(claim, found, missing, device)


def commands_of(claim):
    calls = dict.fromkeys(one.partition("/")[0] for one in claim["of"] + several(claim.get("beside", [])))
    return ", ".join(f"`{call}`" for call in calls)


def escaped(text):
    return re.sub(r"\s+", " ", str(text)).replace("|", "\\|")


def row(*columns):
    return "| " + " | ".join(escaped(column) for column in columns) + " |"


HEAD = """# Claims

{total} quantitative claims of the five documents that this project started from (S0 to S4), and what `scout_batch`
says of them. All figures come from `tests/gpu/claims.sh`, which runs the commands below on a machine with a GPU and
reads their reports. {state}

- **holds**: all of the interval is on the claim's side. **refuted**: all of it is on the other side.
- **open**: the interval touches, or there is no figure.
- **other hardware**: an absolute figure of another card. This card's figure stands beside it and decides nothing.

Of several figures all must hold, or one where the claim says "some"; the least and the greatest are shown. A claim that
names one figure is taken as within a tenth of it. Intervals are of 95 %; those of a quotient are added up.
The claims and what decides them stand in `tests/gpu/claims.json`.
"""


def measured(results, data):
    """All reports of operations that were reached, in the order of the calls."""
    return [report for call in data["calls"] for _, report in results.files(call, "reports") if "taken" in report]


def state_of(found, verdicts):
    if not found:
        return "It has not been run yet for this table: its cells of figures are empty."
    device = found[0]["device"]
    tally = ", ".join(f"{verdicts.count(kind)} {kind}" for kind in ("holds", "refuted", "open", "other hardware"))
    libraries = ", ".join(f"{one['name']} {one['version']}" for one in found[0]["libraries"])
    day = min(report["taken"] for report in found)[:10]
    return f"Measured on {device['model']}, driver {device['driver']}, {libraries}, {day}: {tally}."


def write(data, results, out):
    tested = [claim for claim in data["claims"] if "missing" not in claim]
    found = measured(results, data) if results else []
    device = found[0]["device"]["model"] if found else ""
    told = [cells(claim, results if found else None, device) for claim in tested]
    out.write(HEAD.format(total=len(data["claims"]), state=state_of(found, [one[2] for one in told])))
    out.write(f"\n## What a command can test ({len(tested)})\n\n")
    out.write(row("id", "from", "claim", "tested as", "command", "figure", "interval", "verdict") + "\n")
    out.write("|---" * 8 + "|\n")
    for claim, (figure, half, verdict) in zip(tested, told):
        notes = [f"some: {bound_said(claim)}" if claim.get("some") else bound_said(claim)]
        notes += [f"a figure of an {claim['hardware']}"] if "hardware" in claim else []
        notes += [claim["stand_in"]] if "stand_in" in claim else []
        out.write(row(claim["id"], claim["from"], claim["claim"], "; ".join(notes), commands_of(claim), figure, half,
                      verdict) + "\n")
    out.write("\n## The commands\n\n")
    out.write("`tests/gpu/claims.sh` adds `--device`, `--library-path`, `--cache-dir` and `-o`.\n\n")
    out.write(row("command", "scout_batch", "seconds") + "\n|---|---|---|\n")
    for call, arguments in data["calls"].items():
        took = results.seconds(call) if found else None
        out.write(row(f"`{call}`", f"`{arguments}`", NONE if took is None else f"{took:.0f}") + "\n")
    rest = [claim for claim in data["claims"] if "missing" in claim]
    out.write(f"\n## What none of these commands can test ({len(rest)})\n\n")
    out.write(row("id", "from", "claim", "what is missing") + "\n|---|---|---|---|\n")
    for claim in rest:
        out.write(row(claim["id"], claim["from"], claim["claim"], claim["missing"]) + "\n")


# ---- whether the data file is well formed ----

def names_of(arguments):
    """The operations that a call measures, as its reports will be called; None: they are not known before."""
    path = arguments.split()[0]
    if path.startswith("--"):
        return None, None
    ops = load(os.path.join(ROOT, path))
    fused = [re.sub(r"\W+", "_", one["pattern"]) for one in ops.get("fusions", [])]
    names = [one["id"] for one in ops["ops"]] if "schema" in ops else list(ops)
    only = re.search(r"--only (\S+)", arguments)
    return [name for name in names if not only or name == only.group(1)], fused


def wrong_with(claim, data):
    if set(claim) - MEMBERS:
        yield f"unknown members {sorted(set(claim) - MEMBERS)}"
    if "missing" in claim:
        if "of" in claim or "take" in claim:
            yield "is tested, and says what is missing"
        return
    if claim.get("take") not in TAKES:
        yield f"take {claim.get('take')} is not known"
        return
    kind, _, _, needs = TAKES[claim["take"]]
    for member in needs + ("of", "bound"):
        if not claim.get(member):
            yield f"{claim['take']} needs {member}"
    bound = claim.get("bound", [])
    if len(bound) != 2 or bound == [None, None] or (None not in bound and bound[0] > bound[1]):
        yield f"bound {bound} is none"
    if "where" in claim and (claim["where"].get("take") not in TAKES or not {"least", "most"} & set(claim["where"])):
        yield f"where {claim['where']} is not known"
    for of in claim.get("of", []) + several(claim.get("beside", [])):
        call, _, pattern = of.partition("/")
        if call not in data["calls"]:
            yield f"call {call} is not known"
            continue
        names, fused = names_of(data["calls"][call])
        names = fused if kind == "fusions" else names
        if names is not None and not fnmatch.filter(names, pattern):
            yield f"{of} is not in that call's list"


def check(data):
    """What is wrong, one line each."""
    ids = [claim.get("id") for claim in data["claims"]]
    wrong = [f"{one} stands there twice" for one in set(ids) if ids.count(one) > 1]
    for claim in data["claims"]:
        wrong += [f"{claim.get('id')}: {what}" for what in wrong_with(claim, data)]
    used = {of.partition("/")[0] for claim in data["claims"]
            for of in claim.get("of", []) + several(claim.get("beside", []))}
    return wrong + [f"call {call} serves no claim" for call in data["calls"] if call not in used]


def main(arguments):
    data = load(f"{HERE}/claims.json")
    what = arguments[0] if arguments else ""
    if what == "--check":
        wrong = check(data)
        print("\n".join(wrong) or f"{len(data['claims'])} claims are well formed")
        return 1 if wrong else 0
    if what == "--calls":
        print("\n".join(f"{call}\t{text}" for call, text in data["calls"].items()))
    elif what == "--list":
        for claim in data["claims"]:
            how = (f"missing: {claim['missing']}" if "missing" in claim else
                   f"{claim['take']} of {' '.join(claim['of'])}, {bound_said(claim)}")
            print(f"{claim['id']:4s} {claim['claim']}: {how}")
    elif what == "--write" and len(arguments) <= 2:
        write(data, Results(arguments[1]) if arguments[1:] else None, sys.stdout)
    else:
        print(__doc__.strip(), file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
