# SPDX-License-Identifier: MIT
"""A pool whose size follows its work, beside pools of fixed sizes, of which the best one is not known before."""
import programs
import troupe_daemon
from rounds import Measure, Subject

PROGRAM = f"{programs.TOP}/tests/bench/peers/elastic.py"
KINDS = "short", "long", "bimodal", "bursty", "memory-heavy"
FIXED = 8, 16  # smaller ones are slower with all of these


class Pool(Subject):
    rounds = 1  # a turn takes ten seconds and more

    def __init__(self, kind, name, role, **pool):
        self.kind, self.name, self.role = kind, name, role
        self.system = troupe_daemon.Daemon({"work": troupe_daemon.group(
            f"{programs.PYTHON or 'python3'} {PROGRAM}", Group={"Environment": f"PYTHONPATH={programs.BUILD}/python"}, Pool=pool)})

    def missing(self):
        return programs.absent_module("troupe._troupe", "python3-dev, then make python")

    def turn(self, _point):
        return programs.measure(*programs.python(PROGRAM, self.system.socket, self.kind))


def measures(quick):
    return [] if quick else [
        Measure(f"elastic-{kind}", f"A pool whose size follows its work: {kind} jobs",
                [Pool(kind, "Size=2..16", "troupe", Size="2..16", TargetWaitSec="100ms", IdleSec="2s"),
                 *(Pool(kind, f"Size={n}", "peer", Size=n) for n in FIXED)],
                "jobs_per_s", "jobs/s", less_is_better=False) for kind in KINDS]
