# SPDX-License-Identifier: MIT
"""The budgets: what Troupe must reach, as ratios to floor and peers of the same run.

They are judged and printed, and nothing fails by them: figures of a noisy machine decide nothing.
"""
import medians


class Absent(Exception):
    """A subject of the ratio was not measured."""


class Results:
    def __init__(self, measures):
        self.measures = measures

    def samples(self, measure, subject, metric, point=None):
        try:
            kept = self.measures[measure]["subjects"][subject]["points"]
            return kept["" if point is None else str(point)]["samples"][metric]
        except KeyError:
            raise Absent(f"{measure}: {subject}{'' if point is None else f' at {point}'}") from None

    def value(self, measure, subject, metric, point=None):
        return medians.of({"": self.samples(measure, subject, metric, point)})[""]

    def ratio(self, above, below):
        return medians.ratio(self.samples(*above), self.samples(*below))

    def best(self, measure, metric, point=None, but=lambda name: False):
        """The peer with the best median."""
        if measure not in self.measures:
            raise Absent(measure)
        key = "" if point is None else str(point)
        found = {name: medians.of(kept["points"][key]["samples"])[metric]
                 for name, kept in self.measures[measure]["subjects"].items()
                 if kept["role"] == "peer" and not but(name) and
                 metric in kept["points"].get(key, {}).get("samples", {})}
        if not found:
            raise Absent(f"{measure}: peers")
        choose = min if self.measures[measure]["less_is_better"] else max
        return choose(found, key=found.get)


class Budget:
    """`find` takes Results and returns a number, or (number, remark)."""

    def __init__(self, text, relation, target, find, unit="×"):
        self.text, self.relation, self.target, self.find, self.unit = text, relation, target, find, unit

    def judge(self, results):
        judged = {"budget": self.text, "relation": self.relation, "target": self.target, "unit": self.unit,
                  "measured": None, "met": None, "remark": ""}
        try:
            found = self.find(results)
        except Absent as error:
            return {**judged, "remark": f"not measured: {error}"}
        measured, judged["remark"] = found if isinstance(found, tuple) else (found, "")
        if measured is None:
            return {**judged, "remark": "not measured"}
        judged["measured"] = measured
        judged["met"] = measured <= self.target if self.relation == "<=" else measured >= self.target
        return judged


TRIP = "round-trip"
HAND = "Troupe, 64 in hand"


def in_hand(name):
    return "in hand" in name


def trip_over_best(results):
    best = results.best(TRIP, "p50_us")
    return results.ratio((TRIP, "Troupe", "p50_us"), (TRIP, best, "p50_us")), f"best peer: {best}"


def tail(results):
    return medians.ratio(results.samples(TRIP, "Troupe", "p99_us"), results.samples(TRIP, "Troupe", "p50_us"))


def beside_cells(metric):
    return lambda results: results.ratio(("cells", "Troupe, 1000 idle cells", metric),
                                         ("cells", "Troupe, 1 idle cell", metric))


def flood_over_best(but):
    def find(results):
        best = results.best("window-2", "jobs_per_s", 256, but)
        return results.ratio(("window-2", HAND, "jobs_per_s", 256), ("window-2", best, "jobs_per_s", 256)), \
            f"best peer: {best}"
    return find


BUDGETS = [
    Budget("one job, p50, to the floor of four hops", "<=", 1.25, lambda r: r.ratio(
        (TRIP, "Troupe", "p50_us"), (TRIP, "floor: four hops", "p50_us"))),
    Budget("one job, p50, to the best peer", "<=", 0.8, trip_over_best),
    Budget("one job, p99, to its own p50", "<=", 2, tail),
    Budget("one job, p50, beside 1000 idle cells, to beside one", "<=", 1.1, beside_cells("p50_us")),
    Budget("one job, CPU of the supervisor, beside 1000 idle cells, to beside one", "<=", 1.1,
           beside_cells("server_cpu_us_per_job")),
    Budget("window 256, 2 workers", ">=", 1e6, lambda r: r.value("window-2", HAND, "jobs_per_s", 256), "jobs/s"),
    Budget("window 256, to the best peer that answers one by one", ">=", 8, flood_over_best(in_hand)),
    Budget("window 256, to the best peer with 64 in hand", ">=", 8, flood_over_best(lambda name: not in_hand(name))),
    Budget("window 256, to the floor of four hops", ">=", 0.3, lambda r: r.ratio(
        ("window-2", HAND, "jobs_per_s", 256), ("window-2", "floor: four hops", "jobs_per_s", 256))),
]


def judge(measures):
    results = Results(measures)
    return [budget.judge(results) for budget in BUDGETS]
