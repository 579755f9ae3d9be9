# SPDX-License-Identifier: MIT
"""System calls per job, counted by the kernel's tracepoint (perf)."""
import os
import re
import tempfile

import programs
import servers
from loads import LoadSubject, Troupe
from rounds import Measure

EVENT = "raw_syscalls:sys_enter"


class Calls(LoadSubject):
    """A point is the window. Nested perfs count server, workers and submitter while the load runs."""

    def missing(self):
        reason = programs.absent("perf", "linux-perf") or self.system.missing()
        if not reason:
            try:
                programs.run("perf", "stat", "-e", EVENT, "true")
            except programs.Failed:
                reason = "perf may not count system calls here (kernel.perf_event_paranoid, root)"
        return reason

    def arguments(self, point, count):
        return "window", max(count, 4 * point), self.size, 1 << 40, point

    def turn(self, point):
        count = 2000 if point == 1 else 50000
        with tempfile.TemporaryDirectory(prefix="troupe-bench-") as directory:
            command, files = self.system.load(*self.arguments(point, count)), {}
            for who, pids in (("submitter", []), ("workers", self.system.worker_pids),
                              ("server", [self.system.server_pid])):
                files[who] = os.path.join(directory, who)
                command = ["perf", "stat", "-x,", "-e", EVENT, "-o", files[who],
                           *(["-p", ",".join(map(str, pids))] if pids else []), "--", *command]
            found = programs.measure(*command)
            return {f"{who}_calls_per_job": counted(path) / found["all_jobs"] for who, path in files.items()}


def counted(path):
    with open(path, encoding="utf-8") as file:
        return int(re.search(r"^(\d+),[^,]*," + EVENT, file.read(), re.M).group(1))


def measures(_quick):
    subjects = [Calls("Troupe, 64 in hand", Troupe(2, 64), "troupe"),
                *(Calls(f"{name}, 64 in hand", server(2, 64)) for name, server in
                  (("redis", servers.Redis), ("NATS", servers.Nats), ("gearmand", servers.Gearmand)))]
    return [Measure("calls", "System calls per job, two workers", subjects, "server_calls_per_job", "calls", [1, 256],
                    axis="window", shown={"server_calls_per_job": "server", "workers_calls_per_job": "workers",
                                          "submitter_calls_per_job": "submitter"})]
