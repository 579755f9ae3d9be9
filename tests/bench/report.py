# SPDX-License-Identifier: MIT
"""The report: a table per measure, and the budgets."""
import figures
import medians


def lines(results):
    machine = results["machine"]
    rounds = sorted({str(measure["rounds"]) for measure in results["measures"].values()})
    yield f"{machine['cpu']}, {machine['cpus']} CPUs, {machine['memory_mib']} MiB, Linux {machine['kernel']}, " \
          f"{machine['system']}; medians over {' or '.join(rounds)} rounds"
    for name, measure in results["measures"].items():
        yield ""
        yield from measure_lines(name, measure)
    if results["budgets"]:
        yield ""
        yield from budget_lines(results["budgets"])


def measure_lines(name, measure):
    headline = measure["headline"]
    points = sorted({point for kept in measure["subjects"].values() for point in kept["points"]},
                    key=lambda p: (p.isdigit(), len(p), p))
    measured = {subject: kept for subject, kept in measure["subjects"].items() if any("samples" in p for p in kept["points"].values())}
    yield f"{measure['title']} [{name}]" + f", {measure['unit']}"
    if not measured:
        return
    if points == [""]:
        rows = [["", *(title or measure["unit"] for title in measure["shown"].values()), "from", "to"]]
        for subject, kept in measured.items():
            point = kept["points"][""]
            rows.append([subject, *(figures.short(point["median"].get(metric)) for metric in measure["shown"]),
                         *map(figures.short, medians.spread(point["samples"][headline]))])
        yield from indented(rows)
        return
    for metric, title in measure["shown"].items():
        rows = [[f"{title + ', by ' if title else ''}{measure['axis']}", *points]]
        for subject, kept in measured.items():
            cells = [kept["points"].get(p, {}).get("median", {}).get(metric) for p in points]
            if any(cell is not None for cell in cells):
                rows.append([subject, *(figures.short(cell) for cell in cells)])
        yield from indented(rows)


def indented(rows):
    yield from ("  " + line for line in figures.table(rows, range(1, len(rows[0]))))


def budget_lines(judged):
    rows = [["Budget", "target", "measured", "", ""]]
    for one in judged:
        relation = {"<=": "≤", ">=": "≥"}[one["relation"]]
        unit = "×" if one["unit"] == "×" else " " + one["unit"]
        verdict = {True: "met", False: "NOT MET", None: "-"}[one["met"]]
        rows.append([one["budget"], f"{relation} {figures.short(one['target'])}{unit}",
                     figures.short(one["measured"]) + ("" if one["measured"] is None else unit), verdict,
                     one["remark"]])
    yield from figures.table(rows, (1, 2))
