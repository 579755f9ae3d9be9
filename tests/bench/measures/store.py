# SPDX-License-Identifier: MIT
"""Jobs on disk, without anything that runs them: SQLite alone, and the storage thread."""
import os
import tempfile

import programs
from rounds import Measure, Subject


class Store(Subject):
    """A point is the number of jobs in flight."""
    seconds = 0.5

    def __init__(self, name, mode, role):
        self.name, self.mode, self.role, self.rates = name, mode, role, {}

    def run(self, point, count):
        # Beside what is built: the usual place for temporary files may be in memory.
        with tempfile.TemporaryDirectory(prefix="store-", dir=programs.BUILD) as directory:
            return programs.measure(programs.ours("floors/store"), self.mode, os.path.join(directory, "db"),
                                    max(count, 20 * point), 64, point)

    def turn(self, point):
        if point not in self.rates:
            self.rates[point] = self.run(point, 1000)["jobs_per_s"]
        found = self.run(point, int(self.rates[point] * self.seconds))
        self.rates[point] = found["jobs_per_s"]
        return found


def measures(quick):
    subjects = [Store("floor: SQLite alone", "bare", "floor"), Store("Troupe's storage thread", "module", "troupe")]
    return [Measure("store", "Jobs on disk: added, and removed once they are there", subjects, "jobs_per_s", "jobs/s",
                    [1, 256] if quick else [1, 16, 64, 256, 1024], False, "window",
                    {"jobs_per_s": "", "cpu_us_per_job": "CPU time, µs/job"})]
