# SPDX-License-Identifier: MIT
"""Many workers: starting them, what they cost while nothing happens, stopping them."""
import time

import keepers
import processes
from rounds import Measure, Subject


class Many(Subject):
    """A point is the number of workers. Each turn starts and stops all of them."""

    def __init__(self, name, make, role="peer", idle_seconds=2, rounds=None, skips=()):
        self.name, self.make, self.role = name, make, role
        self.idle_seconds, self.rounds, self.skips = idle_seconds, rounds, skips

    def missing(self):
        return self.make(1).missing()

    def turn(self, n):
        with self.make(n) as keeper:
            begin = time.monotonic()
            keeper.start()
            keeper.wait_all()
            found = {"start_ms": (time.monotonic() - begin) * 1e3}
            time.sleep(0.5)  # what only follows the start is not idling
            found |= self.idle(keeper)
            found |= {f"{key}_kib_per_worker": bytes / n / 1024 for key, bytes in self.per_worker(keeper).items()}
            begin = time.monotonic()
            keeper.stop()
            found["stop_ms"] = (time.monotonic() - begin) * 1e3
        return found

    def idle(self, keeper):
        pids = keeper.supervision()
        wakeups, cpu = sum(map(processes.switches, pids)), sum(map(processes.cpu_ns, pids))
        time.sleep(self.idle_seconds)
        return {"idle_wakeups_per_s": (sum(map(processes.switches, pids)) - wakeups) / self.idle_seconds,
                "idle_cpu_percent": (sum(map(processes.cpu_ns, pids)) - cpu) / self.idle_seconds / 1e7}

    def per_worker(self, keeper):
        return keeper.memory()


class ManyOfTroupe(Many):
    """What it takes with one worker is not the workers'. It is measured alone: the program of two daemons would be shared, and
    then be private to the one that is left."""
    base = None

    def turn(self, n):
        if self.base is None:
            with self.make(1) as small:
                small.start().wait_all()
                time.sleep(0.5)
                self.base = small.memory()
        return super().turn(n)

    def per_worker(self, keeper):
        if keeper.n == 1:
            return {}
        return {key: bytes - self.base[key] for key, bytes in keeper.memory().items()}

    def idle(self, keeper):
        """The workers are Troupe's library, so they count."""
        pids = [keeper.process.pid, *processes.children(keeper.process.pid)]
        before = sum(map(processes.switches, pids))
        return {**super().idle(keeper), "idle_wakeups_per_s": (sum(map(processes.switches, pids)) - before) /
                self.idle_seconds}


def measures(quick):
    seconds = 1 if quick else 3
    peers = {"runit": keepers.Runit, "s6": keepers.S6}
    subjects = [
        Many("floor: vfork and exec", lambda n: keepers.Floor("many", n), "floor", 0.1),
        ManyOfTroupe("Troupe", keepers.TroupeKeeper, "troupe", seconds),
        *(Many(name, make, idle_seconds=seconds, rounds=1 if quick else 2, skips=(1000,) if quick else ())
          for name, make in peers.items()),
        Many("supervisord", keepers.Supervisord, idle_seconds=max(seconds, 3), rounds=1, skips=(1000,) if quick else ()),
    ]
    shown = {"start_ms": "start, ms", "stop_ms": "stop, ms", "pss_kib_per_worker": "PSS, KiB/worker",
             "private_kib_per_worker": "private, KiB/worker", "idle_wakeups_per_s": "idle wake-ups/s",
             "idle_cpu_percent": "idle CPU, %"}
    return [Measure("many", "Many workers", subjects, "start_ms", "ms", [100, 1000] if quick else [1, 10, 100, 1000],
                    axis="workers", shown=shown)]
