# SPDX-License-Identifier: MIT
"""One job at a time in one cell, beside idle cells: what it costs must not grow with their number."""
import loads
import programs
from rounds import Measure

IDLE = (0, 1, 100, 1000)


class BesideCells(loads.Troupe):
    """The jobs' cell is `busy`; the others have a worker each, which has done one job."""

    def __init__(self, n_idle):
        self.n_idle = n_idle
        super().__init__(Pool={"Cells": "by-key", "CellsMax": n_idle + 1, "CellIdleSec": "infinity"})

    def start(self):
        super().start()
        for i in range(self.n_idle):
            programs.run(programs.ours("troupe/jobs"), f"echo/idle-{i}@{self.socket}", "round-trip", 1, 64, 64)
        return self

    def load(self, *arguments):
        return [programs.ours("troupe/jobs"), f"echo/busy@{self.socket}", *map(str, arguments)]

    @property
    def worker_pids(self):
        return []


def name(n_idle):
    return f"Troupe, {n_idle} idle cell{'s' * (n_idle != 1)}"


def measures(quick):
    subjects = [loads.RoundTrips(name(n), BesideCells(n), "troupe", seconds=0.8) for n in IDLE if not quick or n != 100]
    return [Measure("cells", "One job at a time, beside idle cells", subjects, "p50_us", "µs")]
