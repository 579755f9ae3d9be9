# SPDX-License-Identifier: MIT
"""What a waiting job costs the supervisor beside its payload."""
import processes
import programs
import troupe_daemon
from rounds import Measure, Subject


class Backlog(Subject):
    """A point is the size of the payload. Each turn fills the queue of a paused group."""
    name, role = "Troupe", "troupe"

    def __init__(self, count):
        self.count = count

    def turn(self, point):
        group = troupe_daemon.group(programs.ours("troupe/echo") + " 64", Pool={"Size": 1},
                                    Jobs={"QueueMax": 2 * self.count, "QueueMemoryMax": "8G"})
        with troupe_daemon.Daemon({"backlog": group}) as daemon:
            programs.run(programs.product("troupectl"), "--socket", daemon.socket, "pause", "backlog")
            before = processes.memory(daemon.supervisor_pid)["private"]
            programs.run(programs.ours("troupe/backlog"), daemon.socket, "backlog", self.count, point)
            after = processes.memory(daemon.supervisor_pid)["private"]
        return {"bytes_per_job": (after - before) / self.count - point}


def measures(quick):
    return [Measure("backlog", "Memory per waiting job, beside its payload", [Backlog(100_000 if quick else 1_000_000)],
                    "bytes_per_job", "bytes", [64, 1024], axis="payload")]
