# SPDX-License-Identifier: MIT
"""A trouped with a configuration and a directory of its own."""
import os
import select
import shutil
import socket
import tempfile
from pathlib import Path

import processes
import programs


def group(exec_start, **sections):
    """A group file: group("/bin/x", Pool={"Size": 2})."""
    lines = []
    sections["Group"] = {"ExecStart": exec_start, **sections.get("Group", {})}
    for section, keys in sections.items():
        lines += [f"[{section}]", *(f"{key}={value}" for key, value in keys.items())]
    return "\n".join(lines) + "\n"


class Daemon:
    program = None  # other than the trouped that was built
    def __init__(self, groups, options=(), wrapper=(), conf=""):
        self.groups, self.options, self.wrapper, self.conf = groups, options, wrapper, conf
        self.process = None

    def missing(self):
        return None

    def prepare(self):
        """All but the start."""
        self.directory = tempfile.mkdtemp(prefix="troupe-bench-")
        os.chmod(self.directory, 0o755)
        self.socket = os.path.join(self.directory, "socket")
        self.log = os.path.join(self.directory, "log")
        configuration = os.path.join(self.directory, "etc")
        os.mkdir(configuration)
        for name, text in [("troupe.conf", self.conf), *((name + ".group", t) for name, t in self.groups.items())]:
            Path(os.path.join(configuration, name)).write_text(text, encoding="utf-8")
        self.notify = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_CLOEXEC)
        self.notify.bind(os.path.join(self.directory, "notify"))
        self.command = [*self.wrapper, self.program or programs.product("trouped"), "--config", configuration, "--socket",
                        self.socket, *self.options]
        return self

    def start(self):
        """Returns when it is ready."""
        with open(self.log, "ab") as log:
            self.process = programs.start(self.command, stdout=log, stderr=log,
                                          env={"NOTIFY_SOCKET": os.path.join(self.directory, "notify")})
        pidfd = os.pidfd_open(self.process.pid)
        try:
            poll = select.poll()
            poll.register(self.notify, select.POLLIN)
            poll.register(pidfd, select.POLLIN)
            while True:
                ready = [fd for fd, _ in poll.poll(programs.LIMIT * 1000)]
                if self.notify.fileno() in ready:
                    if "READY=1" in self.notify.recv(65536).decode().split("\n"):
                        return self
                else:
                    raise programs.Failed("trouped is not ready: " + (self.last_words() or "no word from it"))
        finally:
            os.close(pidfd)

    @property
    def supervisor_pid(self):
        """The process with the event loop: a child of the main process, the keeper. None between two of them."""
        return next((pid for pid in processes.children(self.process.pid)
                     if processes.name(pid) == "trouped-supervi"), None)

    @property
    def worker_pids(self):
        others = {self.supervisor_pid, *processes.children(self.supervisor_pid)}
        return [pid for pid in processes.children(self.process.pid) if pid not in others]

    def last_words(self):
        return Path(self.log).read_text(encoding="utf-8", errors="replace")[-500:].strip()

    def __enter__(self):
        self.prepare()
        try:
            return self.start()
        except BaseException:
            self.__exit__()
            raise

    def __exit__(self, *_):
        if self.process:
            programs.stop(self.process)
        self.notify.close()
        shutil.rmtree(self.directory, ignore_errors=True)
