# SPDX-License-Identifier: MIT
"""Looking at it: the socket's answer when idle and under full load, and status as a whole program."""
import signal

import figures
import keepers
import programs
from loads import Troupe
from rounds import Measure, Subject


def ask(socket, count, pause_us):
    return figures.in_ms(programs.measure(programs.ours("troupe/ask"), socket, count, pause_us,
                                          "io.troupe.Supervisor.GetStatus", "{}"))


class Asking(Subject):
    """The socket's own answer. Under load: two workers, 64 jobs in hand each, 256 in flight."""
    role = "troupe"

    def __init__(self, name, loaded, count):
        self.name, self.loaded, self.count = name, loaded, count
        self.system = Troupe(2, 64)
        self.load = None

    def __enter__(self):
        self.system.__enter__()
        if self.loaded:
            self.load = programs.start(self.system.load("window", 1 << 40, 64, 64, 256))
            self.load.send_signal(signal.SIGSTOP)  # until it is its turn
        return self

    def __exit__(self, *_):
        if self.load:
            self.load.kill()
            self.load.wait()
        self.system.__exit__()

    def turn(self, _point):
        if self.load:
            self.load.send_signal(signal.SIGCONT)
        try:
            return ask(self.system.socket, self.count, 2000)
        finally:
            if self.load:
                self.load.send_signal(signal.SIGSTOP)


class Asked1000(Subject):
    role = "troupe"
    name = "Troupe: socket, 1000 workers"

    def __enter__(self):
        self.keeper = keepers.TroupeKeeper(1000)
        self.keeper.__enter__().start()
        return self

    def __exit__(self, *_):
        self.keeper.__exit__()

    def turn(self, _point):
        return ask(self.keeper.daemon.socket, 30, 5000)


class Program(Subject):
    """A status command as a whole process."""

    def __init__(self, name, keeper, role="peer", count=10):
        self.name, self.keeper, self.role, self.count = name, keeper, role, count

    def missing(self):
        return self.keeper.missing()

    def __enter__(self):
        self.keeper.__enter__().start().wait_all()
        return self

    def __exit__(self, *_):
        self.keeper.__exit__()

    def turn(self, _point):
        return figures.in_ms(programs.measure(programs.ours("peers/timed"), self.count,
                                              *self.keeper.status_command()))


def measures(quick):
    count = 100 if quick else 300
    subjects = [
        Asking("Troupe: socket, idle", False, count),
        Asking("Troupe: socket, full load", True, count),
        Asked1000(),
        Program("troupectl status, 1000 workers", keepers.TroupeKeeper(1000), "troupe"),
        Program("troupectl status, 100 workers", keepers.TroupeKeeper(100), "troupe"),
        Program("sv status, 100 services", keepers.Runit(100)),
        Program("supervisorctl status, 100 programs", keepers.Supervisord(100), count=3),
    ]
    return [Measure("status", "Looking at it", subjects, "p50_ms", "ms",
                    shown={"p50_ms": "p50", "p99_ms": "p99"})]
