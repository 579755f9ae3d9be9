# SPDX-License-Identifier: MIT
"""Peers that are job servers: each on a loopback port and in a directory of its own, with its workers."""
import shutil
import socket
import tempfile
import time

import programs


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


class Server:
    """`client`: our small program that talks to it, as submitter and as worker."""
    command = package = client = None

    def __init__(self, workers=1, depth=1, result_max=1 << 30):
        self.workers, self.depth, self.result_max = workers, depth, result_max
        self.started = []
        self.directory = None

    def make_directory(self):
        return tempfile.mkdtemp(prefix="troupe-bench-")

    def missing(self):
        return programs.absent(self.command, self.package)

    def arguments(self, port):
        raise NotImplementedError

    def connect(self):
        until = time.monotonic() + 20
        while True:
            try:
                socket.create_connection(("127.0.0.1", self.port), 1).close()
                return
            except OSError:
                if time.monotonic() > until or self.started[0].poll() is not None:
                    raise programs.Failed(f"{self.command} does not listen on port {self.port}") from None
                time.sleep(0.02)

    def __enter__(self):
        self.port = free_port()
        self.directory = self.make_directory()
        try:
            self.started = [programs.start([self.command, *self.arguments(self.port)], cwd=self.directory)]
            self.connect()
            self.start_workers()
            programs.run(*self.load("round-trip", 20, 64, self.result_max), limit=20)
        except BaseException:
            self.__exit__()
            raise
        return self

    def start_workers(self):
        for _ in range(self.workers):
            self.started.append(programs.start_ready(self.load("work", self.depth, self.result_max)))

    def __exit__(self, *_):
        for process in reversed(self.started):
            programs.stop(process, 10)
        shutil.rmtree(self.directory, ignore_errors=True)

    def load(self, *arguments):
        return [programs.ours("peers/" + self.client), str(self.port), *map(str, arguments)]

    @property
    def server_pid(self):
        return self.started[0].pid

    @property
    def worker_pids(self):
        return [process.pid for process in self.started[1:]]


class Beanstalkd(Server):
    command, package, client = "beanstalkd", "beanstalkd", "beanstalkd"

    def arguments(self, port):
        return ["-l", "127.0.0.1", "-p", str(port), "-z", str(1 << 30)]


class Redis(Server):
    command, package, client = "redis-server", "redis-server", "redis"

    def arguments(self, port):
        return ["--bind", "127.0.0.1", "--port", str(port), "--save", "", "--appendonly", "no"]


class Gearmand(Server):
    command, package, client = "gearmand", "gearman-job-server", "gearmand"

    def arguments(self, port):
        return ["--listen=127.0.0.1", f"--port={port}", "--log-file=none"]


class Nats(Server):
    command, package, client = "nats-server", "nats-server", "nats"

    def arguments(self, port):
        with open(f"{self.directory}/nats.conf", "w", encoding="ascii") as file:
            file.write(f"max_payload: {64 << 20}\nmax_pending: {256 << 20}\n")
        return ["-a", "127.0.0.1", "-p", str(port), "-c", "nats.conf"]


class OnDisk:
    """Mixed into one that writes what it has accepted into its directory."""

    def make_directory(self):
        return programs.directory_on_disk()


class BeanstalkdOnDisk(OnDisk, Beanstalkd):
    def arguments(self, port):
        return [*super().arguments(port), "-b", ".", "-f0"]


class RedisOnDisk(OnDisk, Redis):
    def arguments(self, port):
        return [*super().arguments(port), "--appendonly", "yes", "--appendfsync", "always"]


class JetStream(OnDisk, Nats):
    """Writes into files, and syncs them every two minutes."""

    def arguments(self, port):
        return [*super().arguments(port), "-js", "-sd", "."]

    def load(self, *arguments):
        command, port, *others = super().load(*arguments)
        return [command, "jetstream:" + port, *others]
