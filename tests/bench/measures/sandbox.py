# SPDX-License-Identifier: MIT
"""What [Sandbox] costs: from the kill of a worker, or from the start of a bwrap, to main(); and one job."""
import os
import shutil
import signal
import statistics
import tempfile
import time

import keepers
import processes
import programs
from loads import Troupe
from measures.round_trip import Apart
from rounds import Measure, Subject

NOBODY = {"User": "nobody"}
KEPT_TMP = "Troupe, strict, PrivateTmp=yes"  # not emptied after each job
PROFILES = [("Troupe, plain", "none"), ("Troupe, basic", "basic"), ("Troupe, strict", "strict")]
DEATHS = 20


def profile(name, *paths, **keys):
    """Sections of a group; strict is shown what its program needs."""
    sandbox = {"Profile": name, **keys}
    if name == "strict":
        sandbox.update({"ReadOnlyPaths": programs.BUILD} | ({"ReadWritePaths": " ".join(paths)} if paths else {}))
    return {} if name == "none" else {"Sandbox": sandbox}


class Keeper(keepers.TroupeKeeper):
    """One whose worker is not root. In a PID namespace it stamps another pid than it has here."""

    def __init__(self, name):
        super().__init__()
        self.profile = name

    def arguments(self):
        self.sections = profile(self.profile, self.directory)
        command = super().arguments()
        path = os.path.join(self.daemon.directory, "etc", "victim.group")
        with open(path, "r+", encoding="utf-8") as file:
            text = file.read().replace("[Group]\n", "[Group]\nUser=nobody\n", 1)
            file.seek(0)
            file.write(text)
        return command


class Floor(keepers.Floor):
    @property
    def worker_pids(self):
        return processes.children(self.process.pid)


class Starts(keepers.Subject):
    def __enter__(self):
        super().__enter__()
        self.keeper.stamps.take(1)
        return self

    def turn(self, _point):
        """The same from death to death: what the daemon does about one is in it."""
        return {"p50_ms": statistics.median(self.one() for _ in range(DEATHS))}

    def one(self):
        time.sleep(self.keeper.healthy_ms / 1e3)
        [pid] = self.keeper.worker_pids
        before = time.monotonic_ns()
        os.kill(pid, signal.SIGKILL)
        [(_, ns)] = self.keeper.stamps.take(1)
        return (ns - before) / 1e6


class Spawns(Subject):
    """A process of this one: a floor, or with bwrap in front of it."""

    def __init__(self, name, wrapped):
        self.name, self.wrapped = name, wrapped
        self.role = "peer" if wrapped else "floor"

    def missing(self):
        return programs.absent("bwrap", "bubblewrap") if self.wrapped else None

    def __enter__(self):
        self.directory = tempfile.mkdtemp(prefix="troupe-bench-")
        self.stamps = keepers.Stamps(self.directory)
        return self

    def __exit__(self, *_):
        self.stamps.close()
        shutil.rmtree(self.directory, ignore_errors=True)

    def command(self):
        program = programs.ours("floors/stamp")
        if not self.wrapped:
            return [program]
        binds = [part for path in ("/usr", "/etc", programs.BUILD) for part in ("--ro-bind", path, path)]
        links = [part for name in ("bin", "lib", "lib64") if os.path.islink("/" + name)
                 for part in ("--symlink", os.readlink("/" + name), "/" + name)]
        return [shutil.which("bwrap"), "--unshare-all", "--die-with-parent", "--cap-drop", "ALL", *binds, *links, "--dev",
                "/dev", "--proc", "/proc", "--tmpfs", "/tmp", "--bind", self.directory, self.directory, program]

    def turn(self, _point):
        return {"p50_ms": statistics.median(self.one() for _ in range(DEATHS))}

    def one(self):
        command, environment = self.command(), {**os.environ, **self.stamps.environment}
        before = time.monotonic_ns()
        pid = os.posix_spawn(command[0], command, environment)
        try:
            [(_, ns)] = self.stamps.take(1)
        finally:
            os.kill(pid, signal.SIGKILL)
            os.waitpid(pid, 0)
        return (ns - before) / 1e6


def measures(_quick):
    starts = [
        Spawns("floor: posix_spawn", False),
        Starts("floor: vfork and exec", Floor("exec"), "floor"),
        Starts("floor: clone and exec, confined", Floor("confined"), "floor"),
        *(Starts(name, Keeper(of), "troupe") for name, of in PROFILES),
        Spawns("bwrap", True),
    ]
    jobs = [
        *(Apart(name, Troupe(Group=NOBODY, **profile(of)), "troupe") for name, of in PROFILES),
        Apart(KEPT_TMP, Troupe(Group=NOBODY, **profile("strict", PrivateTmp="yes")), "troupe"),
    ]
    return [
        Measure("sandbox", "From kill -9 of a worker, or from posix_spawn, to main() in a sandbox", starts, "p50_ms", "ms"),
        Measure("sandbox-job", "One job of a worker in a sandbox, the server on a CPU of its own: round trip", jobs, "p50_us", "µs",
                shown={"p50_us": "p50", "p99_us": "p99"}),
    ]
