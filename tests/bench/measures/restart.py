# SPDX-License-Identifier: MIT
"""From kill -9 of a healthy process to its replacement's main(); and what a submitter sees of a worker's death."""
import figures
import keepers
import programs
from rounds import Measure, Subject


class Restarts(keepers.Subject):
    pid = 0

    def turn(self, _point):
        found = programs.measure(programs.ours("peers/restarts"), self.keeper.stamps.path, self.pid, self.count,
                                 self.keeper.healthy_ms)
        self.pid = found.pop("pid")
        return figures.in_ms(found)


class Deaths(Restarts):
    """A point is "idle", "spare", or the MiB that the busy worker has touched."""

    def turn(self, point):
        idle = point in ("idle", "spare")
        found = programs.measure(
            programs.ours("troupe/deaths"), self.keeper.daemon.socket, self.keeper.stamps.path, self.pid,
            self.count if idle or point < 100 else max(2, self.count // 4), self.keeper.healthy_ms,
            point if idle else point << 20)
        self.pid = found.pop("pid")
        return figures.in_ms(found)


class IdleDeaths(Deaths):
    def __init__(self, name, keeper, how="idle"):
        super().__init__(name, keeper, "troupe")
        self.how = how

    def turn(self, point):
        """main_p50_ms is what the others call p50_ms; with a spare it is the first that this does."""
        return {metric.removeprefix("main_"): value for metric, value in super().turn(point or self.how).items()}


class Lost(Subject):
    """How soon a death can be known; not of an idle process, since nobody waits for it."""
    role, skips = "floor", ("idle",)

    def __init__(self, name, how, count):
        self.name, self.how, self.count = name, how, count

    def turn(self, point):
        return figures.in_ms(programs.measure(programs.ours("floors/lost"), self.how, self.count, point << 20))


def measures(quick):
    slow = 1 if quick else 5
    idle = [
        Restarts("floor: a spare process", keepers.Floor("spare"), "floor"),
        Restarts("floor: fork", keepers.Floor("fork"), "floor"),
        Restarts("floor: vfork and exec", keepers.Floor("exec"), "floor"),
        IdleDeaths("Troupe", keepers.TroupeKeeper()),
        IdleDeaths("Troupe, with a spare", keepers.TroupeKeeper(Pool={"Size": 1, "Spare": 1}), "spare"),
        Restarts("Troupe, a service", keepers.TroupeKeeper(service=True), "troupe"),
        Restarts("runit", keepers.Runit(), count=slow),
        Restarts("s6", keepers.S6(), count=slow),
        Restarts("supervisord", keepers.Supervisord(), count=slow),
    ]
    deaths = [Lost("floor: a robust futex", "robust", 10), Lost("floor: a pidfd", "pidfd", 10),
              Deaths("Troupe", keepers.TroupeKeeper(), "troupe", 8 if quick else 20)]
    points = ["idle", 0, 16, 256]
    return [
        Measure("restart", "From kill -9 of an idle process to its replacement's main()", idle, "p50_ms", "ms"),
        Measure("death", "From kill -9 to the result of the next job", deaths, "served_p50_ms", "ms", points,
                axis="MiB touched", shown={"known_p50_ms": "lost job known", "ended_p50_ms": "its end at the submitter",
                                           "main_p50_ms": "replacement's main()",
                                           "served_p50_ms": "next job served"}),
    ]
