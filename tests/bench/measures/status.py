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
        super().__enter__()
        if self.loaded:
            self.load = programs.start(self.system.load("window", 1 << 40, 64, 64, 256))
            self.load.send_signal(signal.SIGSTOP)  # until it is its turn
        return self

    def __exit__(self, *_):
        if self.load:
            self.load.kill()
            self.load.wait()
        super().__exit__()

    def turn(self, _point):
        if self.load:
            self.load.send_signal(signal.SIGCONT)
        try:
            return ask(self.system.socket, self.count, 2000)
        finally:
            if self.load:
                self.load.send_signal(signal.SIGSTOP)


class Asked(keepers.Subject):
    def turn(self, _point):
        return ask(self.keeper.daemon.socket, self.count, 5000)


class Program(keepers.Subject):
    """A status command as a whole process."""

    def __init__(self, name, keeper, role="peer", count=10):
        super().__init__(name, keeper, role, count)

    def __enter__(self):
        super().__enter__()
        self.keeper.wait_all()
        return self

    def turn(self, _point):
        return figures.in_ms(programs.measure(programs.ours("peers/timed"), self.count,
                                              *self.keeper.status_command()))


def measures(quick):
    count = 100 if quick else 300
    subjects = [
        Asking("Troupe: socket, idle", False, count),
        Asking("Troupe: socket, full load", True, count),
        Asked("Troupe: socket, 1000 workers", keepers.TroupeKeeper(1000), "troupe", 30),
        Program("troupectl status, 1000 workers", keepers.TroupeKeeper(1000), "troupe"),
        Program("troupectl status, 100 workers", keepers.TroupeKeeper(100), "troupe"),
        Program("sv status, 100 services", keepers.Runit(100)),
        Program("supervisorctl status, 100 programs", keepers.Supervisord(100), count=3),
    ]
    return [Measure("status", "Looking at it", subjects, "p50_ms", "ms",
                    shown={"p50_ms": "p50", "p99_ms": "p99"})]
