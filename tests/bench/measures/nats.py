# SPDX-License-Identifier: MIT
"""Jobs from NATS JetStream: troupe-nats beside a consumer that does nothing, and beside Python's queues."""
import os

import processes
import programs
import servers
from loads import Celery, Rq, Troupe, Windows
from rounds import Measure, Subject

IN_FLIGHT = 64


class Server(servers.JetStream):
    """Without workers of its own."""

    def start_workers(self):
        pass

    def load(self, *_):
        return ["true"]


class Stream(Subject):
    """A server with a stream on disk. Each turn publishes some thousand jobs, and ends when all are acknowledged. What the
    consumer does before it acknowledges one: "consume", nothing; "answer", it stores an empty result, as often as
    troupe-nats does, which is once."""

    def __init__(self, name, role, count, consumption="consume"):
        self.name, self.role, self.count, self.consumption = name, role, count, consumption
        self.server = Server()
        self.consumer = None

    def missing(self):
        if not os.path.exists(programs.product("troupe-nats")):
            return "troupe-nats is not built: package libnats-dev"
        return self.server.missing()

    def __enter__(self):
        self.server.__enter__()
        self.config = f"{self.server.directory}/troupe-nats.conf"
        with open(self.config, "w", encoding="ascii") as file:
            file.write(f"[Nats]\nURL=nats://127.0.0.1:{self.server.port}\nInFlight={IN_FLIGHT}\n")
        programs.run(programs.product("troupe-nats"), "--config", self.config, "setup", "echo")
        try:
            self.start()
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_):
        self.end()
        self.server.__exit__()

    def start(self):
        self.consumer = programs.start_ready([programs.ours("peers/stream"), str(self.server.port), self.consumption])

    def end(self):
        if self.consumer:
            programs.stop(self.consumer)

    def pids(self):
        """What works for a job, besides its worker."""
        return {"server": self.server.server_pid, "consumer": self.consumer.pid}

    def turn(self, _point):
        before = {name: processes.cpu_ns(pid) for name, pid in self.pids().items()}
        result = programs.measure(programs.ours("peers/stream"), self.server.port, "flow", self.count, 64)
        for name, pid in self.pids().items():
            result[f"{name}_cpu_us_per_job"] = (processes.cpu_ns(pid) - before[name]) / 1000 / self.count
        return result


class Bridge(Stream):
    """A group whose worker answers with what it got."""

    def __init__(self, name, role, count, results):
        super().__init__(name, role, count)
        self.results = results

    def start(self):
        with open(self.config, "a", encoding="ascii") as file:
            file.write(f"Results={self.results}\n")
        self.daemon = Troupe(depth=IN_FLIGHT)
        self.daemon.__enter__()
        self.consumer = programs.start([programs.product("troupe-nats"), "--config", self.config, "serve", "echo"],
                                       env={"TROUPE_SOCKET": self.daemon.socket})

    def pids(self):
        return {**super().pids(), "supervisor": self.daemon.supervisor_pid}

    def end(self):
        super().end()
        self.daemon.__exit__()


def measures(quick):
    count = 5_000 if quick else 20_000
    return [Measure("nats", f"A stream of {count} jobs of NATS JetStream; others with 256 in flight",
                    [Stream("libnats, does nothing", "floor", count),
                     Stream("libnats, stores empty results", "floor", count, "answer"),
                     Bridge("troupe-nats, stores no results", "troupe", count, "none"),
                     Bridge("troupe-nats", "troupe", count, "all"),
                     Windows("Celery", Celery()), Windows("RQ", Rq())],
                    "jobs_per_s", "jobs/s", [256], less_is_better=False, axis="window",
                    shown={"jobs_per_s": "", "server_cpu_us_per_job": "server CPU, µs",
                           "consumer_cpu_us_per_job": "consumer CPU, µs"})]
