# SPDX-License-Identifier: MIT
"""Subjects that do jobs: one at a time, or so many in flight."""
import shutil

import processes
import programs
import rounds
import servers
import troupe_daemon


class Hops(rounds.System):
    """The floor: the rings, the sleeping, and nothing else."""

    def __init__(self, hops):
        self.hops = hops

    def load(self, *arguments):
        return [programs.ours("floors/hops"), self.hops, *map(str, arguments)]


class Troupe(troupe_daemon.Daemon):
    """trouped with a group `echo`, and whatever else."""
    prefix = ""

    def __init__(self, workers=1, depth=1, result_max=1 << 40, job_us=0, beside=None, options=(), **sections):
        pool = {"Size": workers, "Prefetch": depth, **sections.pop("Pool", {})}
        text = troupe_daemon.group(f"{programs.ours('troupe/echo')} {result_max} {job_us}", Pool=pool, **sections)
        super().__init__({"echo": text, **(beside or {})}, options)

    def load(self, *arguments):
        return [programs.ours("troupe/jobs"), f"{self.prefix}echo@{self.socket}", *map(str, arguments)]

    @property
    def server_pid(self):
        return self.supervisor_pid


class Durable(Troupe):
    """Jobs on disk."""

    def __init__(self, *arguments, **sections):
        super().__init__(*arguments, **{**sections, "Jobs": {"Durable": "yes", **sections.get("Jobs", {})}})

    def prepare(self):
        self.state = programs.directory_on_disk()
        self.conf = f"[Supervisor]\nStateDirectory={self.state}\n"
        return super().prepare()

    def __exit__(self, *_):
        super().__exit__()
        shutil.rmtree(self.state, ignore_errors=True)


class Creating(Durable):
    """Jobs are created, and their ends waited for by id; results are kept."""
    prefix = "create:"


class HandingOver(Troupe):
    """Payloads are memory that is handed over."""
    prefix = "blob:"


class Unique(Troupe):
    """Each job has a unique key of its own."""
    prefix = "unique:"


class Celled(Troupe):
    """So many cells, each with a worker of its own. Jobs go round them, or all to the first of them."""

    def __init__(self, cells, round_them=True):
        super().__init__(Pool={"Cells": "by-key", "CellsMax": cells, "CellIdleSec": "infinity"})
        self.cells, self.round_them = cells, round_them

    def __enter__(self):
        super().__enter__()
        programs.run(*self.load_round("window", 2 * self.cells, 64, 64, self.cells))  # makes them
        return self

    def load_round(self, *arguments):
        self.prefix = f"cells={self.cells}:"
        return super().load(*arguments)

    def load(self, *arguments):
        if self.round_them:
            return self.load_round(*arguments)
        return [programs.ours("troupe/jobs"), f"echo/c0@{self.socket}", *map(str, arguments)]


class Tell(troupe_daemon.Daemon):
    """A worker that tells another one."""

    def __init__(self):
        program = programs.ours("troupe/tell")
        super().__init__({
            "listener": troupe_daemon.group(program + " listener", Worker={"Overflow": "block"}),
            "talker": troupe_daemon.group(program + " talker", Jobs={"TimeoutSec": "60s", "MaxRetries": 0})})

    def tell(self, count, size):
        return programs.measure(programs.product("troupectl"), "--socket", self.socket, "do", "talker", "--data",
                                f"{count} {size}")


class PythonPool(rounds.System):
    def __init__(self, kind="", workers=1):
        self.kind, self.workers = kind, workers

    def load(self, what, count, size, _result, *window):
        return programs.python(f"{programs.TOP}/tests/bench/peers/pools.py", self.kind, what, count, size, *window,
                               *([self.workers] if window else []))


class TroupeExecutor(PythonPool):
    def __init__(self, workers=1):
        super().__init__("troupe", workers)

    def missing(self):
        return programs.absent_module("troupe._troupe", "python3-dev, then make python")


class PythonQueue(servers.Redis):
    """Tasks of Python that go through redis."""
    module = package_of_module = None

    def missing(self):
        return super().missing() or programs.absent_module(self.module, self.package_of_module)

    def start_workers(self):
        for command in self.worker_commands():
            self.started.append(programs.start(command, cwd=self.directory))

    def load(self, *arguments):
        return PythonPool(f"{self.module}@{self.port}", self.workers).load(*arguments)


class Celery(PythonQueue):
    module, package_of_module = "celery", "python3-celery"

    def worker_commands(self):
        yield ["env", f"BENCH_REDIS={self.port}", "C_FORCE_ROOT=1",
               *programs.python("-m", "celery", "-A", "celery_echo", "worker", "--concurrency", self.workers)]


class Rq(PythonQueue):
    module, package_of_module = "rq", "python3-rq"

    def worker_commands(self):
        for _ in range(self.workers):
            yield programs.python("-m", "rq.cli", "worker", "--url", f"redis://127.0.0.1:{self.port}")


class PythonWorker(Troupe):
    """A worker in Python under the load of the client in C."""

    def __init__(self, workers=1, depth=1):
        super().__init__(workers, depth)
        command = f"{programs.PYTHON or 'python3'} {programs.TOP}/tests/bench/troupe/echo.py"
        self.groups["echo"] = troupe_daemon.group(command, Group={"Environment": f"PYTHONPATH={programs.BUILD}/python"},
                                                  Pool={"Size": workers, "Prefetch": depth})

    missing = TroupeExecutor.missing


class LoadSubject(rounds.Subject):
    """A system under the load program. The number of jobs is chosen so that a turn takes `seconds`."""

    seconds, size = 0.25, 64

    def __init__(self, name, system, role="peer", skips=()):
        self.name, self.system, self.role, self.skips = name, system, role, skips
        self.rates = {}

    def arguments(self, point, count):
        raise NotImplementedError

    def rate(self, result):
        raise NotImplementedError

    def load(self, *arguments):
        """The command."""
        return self.system.load(*arguments)

    def turn(self, point):
        for guess in () if point in self.rates else (3, None):  # how many jobs that is, nobody knows before the first
            count = guess or int(self.rates[point] * self.seconds / 10)
            if count >= 3:
                self.rates[point] = self.rate(programs.measure(*self.load(*self.arguments(point, count))))
        count = max(3, int(self.rates[point] * self.seconds))
        before = self.cpu()
        result = programs.measure(*self.load(*self.arguments(point, count)))
        for metric, ns in self.cpu().items():
            if "all_jobs" in result:
                result[metric] = (ns - before[metric]) / 1e3 / result["all_jobs"]
        self.rates[point] = self.rate(result)
        result = {metric: value for metric, value in result.items() if metric not in ("all_jobs", "count")}
        return result

    def cpu(self):
        """What server and workers have used so far, as {metric: ns}."""
        if not hasattr(self.system, "server_pid"):
            return {}
        return {"server_cpu_us_per_job": processes.cpu_ns(self.system.server_pid),
                "workers_cpu_us_per_job": sum(processes.cpu_ns(pid) for pid in self.system.worker_pids)}


class RoundTrips(LoadSubject):
    """One job at a time; a point is None or the payload's size."""
    result = 1 << 40

    def arguments(self, point, count):
        return "round-trip", count, point or self.size, self.result

    def rate(self, result):
        return 1e6 / max(result["mean_us"], 0.1)


class Windows(LoadSubject):
    """A point is the number of jobs in flight."""

    def arguments(self, point, count):
        return "window", max(count, 2 * point), self.size, 1 << 40, point

    def rate(self, result):
        return result["jobs_per_s"]


JOB_SERVERS = {"redis": servers.Redis, "beanstalkd": servers.Beanstalkd, "NATS": servers.Nats,
               "gearmand": servers.Gearmand}
DISK_SERVERS = {"redis, AOF always": servers.RedisOnDisk, "beanstalkd -f0": servers.BeanstalkdOnDisk,
                "JetStream": servers.JetStream}
PYTHON_POOLS = {"Python Pool": "pool", "Python ProcessPoolExecutor": "executor"}
