# SPDX-License-Identifier: MIT
"""The report: a table per measure, and the budgets."""
import figures
import medians


def lines(results):
    machine = results["machine"]
    yield f"{machine['cpu']}, {machine['cpus']} CPUs, {machine['memory_mib']} MiB, Linux {machine['kernel']}, " \
          f"{machine['system']}; medians over {results['rounds']} rounds"
    for name, measure in results["measures"].items():
        yield ""
        yield from measure_lines(name, measure)
    if results["budgets"]:
        yield ""
        yield from budget_lines(results["budgets"])


def extra_metrics(subjects):
    """What else is shown, beside the headline, of measures without points."""
    wanted = ("p99_us", "p999_us", "server_cpu_us_per_job")
    titles = {"p99_us": "p99", "p999_us": "p99.9", "server_cpu_us_per_job": "server CPU µs/job"}
    have = {metric for kept in subjects.values() for point in kept["points"].values() for metric in point["median"]}
    return [(metric, titles[metric]) for metric in wanted if metric in have]


def measure_lines(name, measure):
    headline = measure["headline"]
    points = sorted({point for kept in measure["subjects"].values() for point in kept["points"]},
                    key=lambda p: (len(p), p))
    measured = {subject: kept for subject, kept in measure["subjects"].items() if kept["points"]}
    yield f"{measure['title']} [{name}], {measure['unit']}"
    if not measured:
        return
    if points == [""]:
        extra = extra_metrics(measured)
        rows = [["", measure.get("headline_title", headline.removesuffix("_us")), "spread", *(t for _, t in extra)]]
        for subject, kept in measured.items():
            point = kept["points"][""]
            low, high = medians.spread(point["samples"][headline])
            rows.append([subject, figures.short(point["median"][headline]),
                         f"{figures.short(low)} to {figures.short(high)}",
                         *(figures.short(point["median"].get(metric)) for metric, _ in extra)])
    else:
        rows = [[measure["axis"], *points]]
        for subject, kept in measured.items():
            rows.append([subject, *(figures.short(kept["points"].get(p, {}).get("median", {}).get(headline))
                                    for p in points)])
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
