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
        self.asked = set()  # the measures that somebody wanted to know about

    def samples(self, measure, subject, metric, point=None):
        self.asked.add(measure)
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
        self.asked.add(measure)
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
        results.asked.clear()
        judged = {"measures": [], "budget": self.text, "relation": self.relation, "target": self.target, "unit": self.unit,
                  "measured": None, "met": None, "remark": ""}
        try:
            found = self.find(results)
        except Absent as error:
            return {**judged, "measures": sorted(results.asked), "remark": f"not measured: {error}"}
        judged["measures"] = sorted(results.asked)
        measured, judged["remark"] = found if isinstance(found, tuple) else (found, "")
        if measured is None:
            return {**judged, "remark": "not measured"}
        judged["measured"] = measured
        judged["met"] = measured <= self.target if self.relation == "<=" else measured >= self.target
        return judged


TRIP = "round-trip"
APART = "round-trip-apart"
FLOOR = "floor: four hops"
HAND = "Troupe, 64 in hand"
WARM = "Troupe, Python that loads for 300 ms, from a template"
EXECUTED = "Troupe, Python that loads for 300 ms, by exec"
EXECUTOR = "troupe.Executor"
CELL = "Troupe, the same cell beside idle ones"
ASLEEP = "Troupe, N idle beside it, SpinUsec=0"


def in_hand(name):
    return "in hand" in name


def trip_over_best(measure):
    def find(results):
        best = results.best(measure, "p50_us")
        return results.ratio((measure, "Troupe", "p50_us"), (measure, best, "p50_us")), f"best peer: {best}"
    return find


def flood_over_best(but):
    def find(results):
        best = results.best("window-2", "jobs_per_s", 256, but)
        return results.ratio(("window-2", HAND, "jobs_per_s", 256), ("window-2", best, "jobs_per_s", 256)), \
            f"best peer: {best}"
    return find


def size_to_best(measure):
    def find(results):
        best = results.best(measure, "jobs_per_s")
        return results.ratio((measure, "Size=2..16", "jobs_per_s"), (measure, best, "jobs_per_s")), f"best: {best}"
    return find


def ratio(measure, above, below, metric, point=None, below_point=None):
    """`above` to `below`, subjects of a measure."""
    return lambda results: results.ratio(
        (measure, above, metric, point), (measure, below, metric, point if below_point is None else below_point))


def tail(measure):
    """p99 to p50. What a machine does to everyone that is on it shows in the floor's, which has nothing of its own."""
    def find(results):
        least = results.ratio((measure, FLOOR, "p99_us"), (measure, FLOOR, "p50_us"))
        return results.ratio((measure, "Troupe", "p99_us"), (measure, "Troupe", "p50_us")), f"the floor's own: {least:.2f} ×"
    return find


def value(measure, subject, metric, point=None):
    return lambda results: results.value(measure, subject, metric, point)


def known(mib):
    def find(results):
        least = results.value("death", "floor: a robust futex", "known_p50_ms", mib)
        return results.value("death", "Troupe", "known_p50_ms", mib), f"floor: {least:.2f} ms"
    return find


def durable_over_best(syncs):
    def find(results):
        best = results.best("durable-window", "jobs_per_s", 256, lambda name: syncs and name == "JetStream")

        def over_best(name):
            return results.ratio(("durable-window", name, "jobs_per_s", 256), ("durable-window", best, "jobs_per_s", 256))
        return over_best("Troupe, create"), f"best peer: {best}; SQLite alone: {over_best('floor: SQLite alone'):.2f} ×"
    return find


def durable_over_sync(results):
    """One durable job, to one that is not durable and one sync."""
    durable, plain, sync, row = (
        results.samples("durable-one", name, "p50_us") for name in
        ("Troupe, create", "Troupe, not durable", "floor: one sync", "floor: SQLite alone, one row"))
    return (medians.ratio(durable, [a + b for a, b in zip(plain, sync)]),
            f"to not durable and one row of SQLite alone: {medians.ratio(durable, [a + b for a, b in zip(plain, row)]):.2f} ×")


def strict_job(results):
    def over_plain(name):
        return results.ratio(("sandbox-job", name, "p50_us"), ("sandbox-job", "Troupe, plain", "p50_us"))
    return over_plain("Troupe, strict"), f"with a /tmp that is not emptied: {over_plain('Troupe, strict, PrivateTmp=yes'):.2f} ×"


def beside_store(results):
    def beside(what):
        return results.ratio(("durable-beside", what, "p50_us"), ("durable-beside", "Troupe, the store idle", "p50_us"))
    least = beside("Troupe, another process's SQLite busy")
    return beside("Troupe, the store busy"), f"beside another process's SQLite: {least:.2f} ×"


BUDGETS = [
    Budget("one job, p50, to the floor of four hops", "<=", 1.25, ratio(TRIP, "Troupe", FLOOR, "p50_us")),
    Budget("the same, the server on a CPU of its own", "<=", 1.25, ratio(APART, "Troupe", FLOOR, "p50_us")),
    Budget("one job, p50, to the best peer", "<=", 0.8, trip_over_best(TRIP)),
    Budget("the same, the server on a CPU of its own", "<=", 0.8, trip_over_best(APART)),
    Budget("one job, p99, to its own p50", "<=", 2, tail(TRIP)),
    Budget("the same, the server on a CPU of its own", "<=", 2, tail(APART)),
    Budget("window 256, 2 workers", ">=", 1e6, value("window-2", HAND, "jobs_per_s", 256), "jobs/s"),
    Budget("window 256, to the best peer that answers one by one", ">=", 8, flood_over_best(in_hand)),
    Budget("window 256, to the best peer with 64 in hand", ">=", 8, flood_over_best(lambda name: not in_hand(name))),
    Budget("window 256, to the floor of four hops", ">=", 0.3, ratio("window-2", HAND, FLOOR, "jobs_per_s", 256)),
    Budget("tell, 64 bytes", ">=", 2e6, value("one-way", "Troupe, tell", "messages_per_s", 64), "messages/s"),
    Budget("1 KiB through one hop (a ring)", ">=", 2e9, value("one-way", "floor: Troupe's ring", "bytes_per_s", 1024),
           "bytes/s"),
    Budget("64 MiB handed over, to 256 KiB handed over", "<=", 2,
           ratio("payload", "Troupe, handed over", "Troupe, handed over", "p50_us", 64 << 20, 256 << 10)),
    Budget("death to main(), to the floor of vfork and exec", "<=", 1.5,
           ratio("restart", "Troupe", "floor: vfork and exec", "p50_ms")),
    Budget("the same with a spare, to the floor of a spare process", "<=", 1.5,
           ratio("restart", "Troupe, with a spare", "floor: a spare process", "p50_ms")),
    Budget("death to main() under Profile=strict, to none", "<=", 2.0, ratio("sandbox", "Troupe, strict", "Troupe, plain", "p50_ms")),
    Budget("one job under Profile=strict, p50, to none", "<=", 1.05, strict_job),
    *(Budget(f"a dead worker's job known lost, {mib} MiB resident", "<=", 0.3, known(mib), "ms")
      for mib in (0, 16, 256)),
    Budget("1000 workers started and ready, to the floor", "<=", 2,
           ratio("many", "Troupe", "floor: vfork and exec", "start_ms", 1000)),
    Budget("idle worker, the supervisor's own memory", "<=", 5, value("many", "Troupe", "private_kib_per_worker", 1000),
           "KiB"),
    Budget("idle worker, all that is Troupe's", "<=", 32, value("many", "Troupe", "pss_kib_per_worker", 1000), "KiB"),
    Budget("waiting job, beside its payload of 64 bytes", "<=", 320, value("backlog", "Troupe", "bytes_per_job", 64), "bytes"),
    *(Budget(f"window 256, {what}, to none", ">=", 0.9, ratio("queue-features", f"Troupe, {what}", "Troupe", "jobs_per_s", 256))
      for what in ("a unique key each", "a rate limit", "a limit of running jobs")),
    Budget("64 jobs that wait for 64 others", ">=", 200e3, value("edges", "Troupe", "edges_per_s", 64), "edges/s"),
    Budget("a job for later, p99 after its time", "<=", 1000, value("future", "Troupe", "late_p99_us"), "µs"),
    *(Budget(f"a job for later in memory{what}", "<=", 200, value("future", f"Troupe{what}", "bytes_per_job"), "bytes")
      for what in ("", ", durable")),
    Budget("jobs on disk, window 256, to SQLite alone", ">=", 0.6,
           ratio("store", "Troupe's storage thread", "floor: SQLite alone", "jobs_per_s", 256)),
    Budget("durable create to end, window 256, to SQLite alone", ">=", 0.6,
           ratio("durable-window", "Troupe, create", "floor: SQLite alone", "jobs_per_s", 256)),
    Budget("the same, to the best peer on disk", ">=", 2, durable_over_best(False)),
    Budget("the same, to the best peer that syncs", ">=", 15, durable_over_best(True)),
    Budget("durable jobs of 1 ms, window 256, to not durable", ">=", 0.9,
           ratio("durable-long", "Troupe, durable, 16 workers", "Troupe, not durable, 16 workers", "jobs_per_s", 256)),
    Budget("one durable job, p50, to not durable and one sync", "<=", 1.5, durable_over_sync),
    Budget("one job that is not durable, beside a busy store", "<=", 1.05, beside_store),
    Budget("longest gap, upgrade, 1000 workers", "<=", 100, value("gap", "Troupe, upgrade, 1000 workers", "gap_ms"), "ms"),
    Budget("longest gap, kill -9, durable jobs waiting", "<=", 200,
           value("gap", "Troupe, kill -9, durable jobs waiting", "gap_ms"), "ms"),
    Budget("from the start to the first answer, durable jobs on disk", "<=", 100,
           value("start", "Troupe, jobs that run at once", "socket_ms"), "ms"),
    Budget("from the start until all of them are there, while they run", "<=", 5000,
           value("start", "Troupe, jobs that run at once", "all_ms"), "ms"),
    Budget("wake-ups with 1000 idle workers", "<=", 0, value("many", "Troupe", "idle_wakeups_per_s", 1000), "/s"),
    *(Budget(f"one job, {n} idle cells beside its own, to none", "<=", 1.1,
             ratio("cells", CELL, CELL, "p50_us", n, 1)) for n in (100, 1000)),
    Budget("one job, 1000 idle workers beside it, to none", "<=", 1.1,
           ratio("workers", "Troupe, N idle beside it", "Troupe, N idle beside it", "p50_us", 1000, 1)),
    Budget("the supervisor's CPU time for it, to none", "<=", 1.1,
           ratio("workers", ASLEEP, ASLEEP, "server_cpu_us_per_job", 1000, 1)),
    Budget("troupectl status of 1000 workers, whole process", "<=", 20,
           value("status", "troupectl status, 1000 workers", "p50_ms"), "ms"),
    *(Budget(f"troupe.Executor, {what}, to {peer}", ">=", target, faster) for what, measure, metric, point in
      (("one by one", "python-round-trip", "p50_us", None), ("256 in flight", "python-window", "jobs_per_s", 256))
      for peer, target in (("Python ProcessPoolExecutor", 5), ("Celery", 10))
      for faster in [ratio(measure, *[peer, EXECUTOR] if point is None else [EXECUTOR, peer], metric, point)]),
    Budget("a fresh process for each job, Python from a template", ">=", 1000,
           value("fresh-jobs", WARM, "jobs_per_s"), "jobs/s"),
    Budget("kill -9 to the next answer, Python from a template", "<=", 3, value("fresh-deaths", WARM, "p50_ms"), "ms"),
    *(Budget(f"an elastic pool, {kind} jobs, to the best fixed size", ">=", 0.95, size_to_best(f"elastic-{kind}"))
      for kind in ("short", "long", "bimodal", "bursty", "memory-heavy")),
    Budget("memory of its own of a worker in Python from a template, to one by exec", "<=", 0.15,
           ratio("fresh-deaths", WARM, EXECUTED, "private_mib")),
    Budget("a worker in Python, to one in C", ">=", 0.3,
           ratio("python-worker", "worker in Python", "worker in C", "jobs_per_s", 256)),
    *(Budget(f"jobs of JetStream, {subject} to {peer}", ">=", target, ratio("nats", subject, peer, "jobs_per_s", 256))
      for subject, peer, target in (("troupe-nats, stores no results", "libnats, does nothing", 0.7),
                                    ("troupe-nats", "libnats, does nothing", 0.7),
                                    ("troupe-nats", "libnats, stores empty results", 0.7),
                                    ("troupe-nats", "Celery", 2), ("troupe-nats", "RQ", 2))),
    Budget("the socket's answer under full load, p99", "<=", 10, value("status", "Troupe: socket, full load", "p99_ms"),
           "ms"),
]


def judge(measures):
    results = Results(measures)
    return [budget.judge(results) for budget in BUDGETS]
