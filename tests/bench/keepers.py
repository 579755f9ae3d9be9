# SPDX-License-Identifier: MIT
"""Peers that keep processes alive: runit, s6, supervisord. Each with a directory of its own and N times one program."""
import os
import select
import shutil
import signal
import struct
import subprocess
import tempfile

import processes
import programs
import rounds
import troupe_daemon

STAMP = struct.Struct("QQQ")  # struct stamp


class Stamps:
    """The FIFO by which the kept processes tell that they run."""

    def __init__(self, directory):
        self.path = os.path.join(directory, "stamps")
        os.mkfifo(self.path)
        os.chmod(self.path, 0o666)
        self.environment = {"BENCH_STAMPS": self.path}
        self.fd = os.open(self.path, os.O_RDWR | os.O_CLOEXEC)

    def take(self, n):
        """n of them: [(pid, ns)]."""
        found = []
        for _ in range(n):
            if not select.select([self.fd], [], [], programs.LIMIT)[0]:
                raise programs.Failed(f"{len(found)} of {n} processes have started within {programs.LIMIT} s")
            found.append(STAMP.unpack(os.read(self.fd, STAMP.size))[1:])
        return found

    def close(self):
        os.close(self.fd)


class Keeper:
    """Starts `n` processes of `program`; start() returns when it has been told to, and not when they run."""
    command = package = None
    stop_signal = signal.SIGTERM
    healthy_ms = 1100  # how long a process must have lived to be restarted at once

    def __init__(self, n=1):
        self.n = n
        self.process = None

    def missing(self):
        return programs.absent(self.command, self.package)

    def arguments(self):
        """The command; lays out what it needs in self.directory."""
        raise NotImplementedError

    def __enter__(self):
        self.directory = tempfile.mkdtemp(prefix="troupe-bench-")
        os.chmod(self.directory, 0o755)
        self.stamps = Stamps(self.directory)
        self.lay_out = self.arguments()
        return self

    def start(self):
        with open(self.path("log"), "ab") as log:
            self.process = programs.start(self.lay_out, env=self.stamps.environment, cwd=self.directory, stdout=log,
                                          stderr=log)
        return self

    def wait_all(self):
        self.stamps.take(self.n)

    def stop(self):
        if self.process and self.process.poll() is None:
            self.process.send_signal(self.stop_signal)
            try:
                self.process.wait(60)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()
        self.process = None

    def __exit__(self, *_):
        self.stop()
        self.stamps.close()
        shutil.rmtree(self.directory, ignore_errors=True)

    def path(self, name):
        return os.path.join(self.directory, name)

    def service_directories(self, name):
        for i in range(self.n):
            service = os.path.join(self.path(name), f"s{i}")
            os.makedirs(service)
            os.symlink(programs.ours("floors/stamp"), os.path.join(service, "run"))
        return self.path(name)

    def supervision(self):
        """The pids of the supervisor's side: all that is not the program kept alive."""
        return [self.process.pid] + [pid for pid in processes.children(self.process.pid)
                                     if processes.program(pid) != programs.ours("floors/stamp")]

    def memory(self):
        """Bytes of the supervisor's side."""
        found = [processes.memory(pid) for pid in self.supervision()]
        return {key: sum(one[key] for one in found) for key in ("pss", "private")}

    def status_command(self):
        """What shows the state of all."""


class Subject(rounds.Subject):
    """Something about a keeper that has started."""

    def __init__(self, name, keeper, role="peer", count=20):
        self.name, self.keeper, self.role, self.count = name, keeper, role, count
        self.system = keeper

    def __enter__(self):
        super().__enter__()
        self.keeper.start()
        return self


class Floor(Keeper):
    healthy_ms = 50

    def __init__(self, mode, n=1):
        super().__init__(n)
        self.mode = mode

    def missing(self):
        return None

    def arguments(self):
        return [programs.ours("floors/keeper"), self.mode, programs.ours("floors/stamp"),
                *([str(self.n)] if self.mode == "many" else [])]


class Runit(Keeper):
    command, package = "runsvdir", "runit"
    stop_signal = signal.SIGHUP

    def arguments(self):
        return ["runsvdir", self.service_directories("services")]

    def stop(self):
        supervised = processes.children(self.process.pid) if self.process else []
        super().stop()  # runsvdir does not wait for its children
        processes.wait_gone(supervised)

    def status_command(self):
        return ["sv", "status", *(os.path.join(self.path("services"), f"s{i}") for i in range(self.n))]


class S6(Keeper):
    command, package = "s6-svscan", "s6"

    def arguments(self):
        return ["s6-svscan", "-c", str(self.n + 10), self.service_directories("services")]


class Supervisord(Keeper):
    command, package = "supervisord", "supervisor"

    def arguments(self):
        with open(self.path("conf"), "w", encoding="utf-8") as file:
            file.write(f"[supervisord]\nnodaemon=true\nlogfile=/dev/null\nlogfile_maxbytes=0\nminfds=16384\n"
                       f"pidfile={self.path('pid')}\n[unix_http_server]\nfile={self.path('socket')}\n"
                       "[rpcinterface:supervisor]\n"
                       "supervisor.rpcinterface_factory=supervisor.rpcinterface:make_main_rpcinterface\n"
                       f"[supervisorctl]\nserverurl=unix://{self.path('socket')}\n"
                       f"[program:stamp]\ncommand={programs.ours('floors/stamp')}\nautorestart=true\n"
                       f"numprocs={self.n}\nprocess_name=%(program_name)s_%(process_num)d\n"
                       "stdout_logfile=NONE\nstderr_logfile=NONE\n")
        return ["supervisord", "-c", self.path("conf")]

    def status_command(self):
        return ["supervisorctl", "-c", self.path("conf"), "status"]


class TroupeKeeper(Keeper):
    """trouped with `n` workers of a group: `victim` by default, which takes jobs; "service" keeps the others' program."""
    healthy_ms = 50

    def __init__(self, n=1, service=False, **sections):
        super().__init__(n)
        self.service, self.sections = service, sections

    def missing(self):
        return None

    def arguments(self):
        environment = {"Environment": f"BENCH_STAMPS={self.stamps.path}"}
        if self.service:
            environment["Type"] = "service"
        sections = {"Pool": {"Size": self.n}, "Restart": {"ResetAfterSec": "10ms", "StartLimitBurst": 0},
                    **self.sections}
        if not self.service:
            sections.setdefault("Jobs", {"BackoffMinSec": "1us", "BackoffMaxSec": "1us"})
        text = troupe_daemon.group(programs.ours("floors/stamp" if self.service else "troupe/victim"),
                                   Group=environment, **sections)
        self.daemon = troupe_daemon.Daemon({"victim": text}).prepare()
        return self.daemon.command

    def start(self):
        """Ready means: all its workers are."""
        self.daemon.start()
        self.process = self.daemon.process
        return self

    def __exit__(self, *_):
        super().__exit__()
        self.daemon.__exit__()

    @property
    def worker_pids(self):
        return self.daemon.worker_pids

    def memory(self):
        """The keeper's and the supervisor's, and what workers share with it."""
        own = [processes.memory(pid) for pid in (self.process.pid, self.daemon.supervisor_pid)]
        shared = sum(processes.mapped(pid, "memfd:troupe-") for pid in self.worker_pids)
        return {"pss": sum(one["pss"] for one in own) + shared, "private": sum(one["private"] for one in own)}

    def status_command(self):
        return [programs.product("troupectl"), "--socket", self.daemon.socket, "status"]
