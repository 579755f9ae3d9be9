# SPDX-License-Identifier: MIT
"""The private supervisor of an executor, which ends with the program however that ends."""
import contextlib
import json
import os
import shutil
import socket
import subprocess
import sys
from collections.abc import Callable
from multiprocessing import resource_tracker
from typing import Any

from troupe._troupe import Client, Query
from troupe.executor import guardian, inherited
from troupe.executor.program import pack_program
from troupe.questions import ask

GROUP = "tasks"
PATH_MAX = 4096
SEARCHED = "/usr/local/sbin:/usr/sbin"
ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
BOOT = "import sys; sys.path.insert(0, {!r}); from troupe.executor.worker import main; main(sys.argv[1:])"

# A task has no time limit here, and is tried again only by the executor.
TASKS = """\
[Group]
ExecStart={command}
EnvironmentFile=@directory@/environment
[Pool]
Size={size}
MaxJobs={max_jobs}
MaxMemory={max_memory}
Template={template}
[Jobs]
MaxRetries=0
TimeoutSec=infinity
QueueMax=1000000
QueueMemoryMax=1T
ResultMax=1T
[Restart]
Restart=always
MinSec=0
[Worker]
TimeoutStartSec=infinity
TimeoutStopSec=5s
"""


def find_trouped() -> str:
    found = shutil.which("trouped", path=os.environ.get("PATH", os.defpath) + ":" + SEARCHED)
    if found is None:
        raise FileNotFoundError("trouped is not installed, but an executor without a socket needs it "
                                "(Debian: apt install troupe)")
    return found


def quoted(word: str) -> str:
    """A word of ExecStart=."""
    escaped = word.replace("\\", "\\\\").replace('"', '\\"').replace("%", "%%").replace("\n", "\\n")
    return f'"{escaped}"'


def environment() -> str:
    """The environment as an environment file, without variables that trouped sets or that such a file cannot hold."""
    lines = []
    for name, value in os.environ.items():
        # A worker's own socket (MaySubmit=) is a descriptor that the tasks do not have.
        socket_path = name == "TROUPE_SOCKET" and not value.startswith("/proc/self/")
        inherit = socket_path or not name.startswith("TROUPE_")
        if inherit and name.isascii() and name.isidentifier():
            lines.append(f"{name}='" + value.replace("'", "'\"'\"'") + "'\n")
    return "".join(lines)


def memory_file(content: bytes) -> int:
    fd = os.memfd_create("troupe-executor")
    with open(fd, "wb", closefd=False) as file:
        file.write(content)
    return fd


def tracker() -> int:
    """The descriptor of multiprocessing's resource tracker: shared memory that a worker attaches belongs to the program."""
    fd = resource_tracker.getfd()
    assert fd is not None
    return fd


def standard(fd: int) -> int:
    try:
        return os.dup(fd)
    except OSError:
        return os.open(os.devnull, os.O_WRONLY)


class Supervisor:
    """Workers end after `max_tasks` by themselves, or are replaced by the supervisor after `max_jobs`; 0: no limit."""

    def __init__(self, size: int, initializer: Callable[..., object] | None, initargs: tuple[Any, ...], *,
                 max_tasks: int = 0, max_jobs: int = 0, max_memory: str = "infinity", template: bool = False) -> None:
        self.size, self.template = size, "slot" if template else "no"
        self.program, self.command = (initializer, initargs, max_tasks), [find_trouped(), "--log-level", "error"]
        self.name, self.directory, self.max_jobs, self.max_memory = GROUP, "", max_jobs, max_memory
        self.socket: str | None = None

    def start(self) -> None:
        """Does not wait for the supervisor's start."""
        with inherited.collect() as descriptors:
            program = pack_program(*self.program)
            self.lifeline, theirs = socket.socketpair(type=socket.SOCK_SEQPACKET)
            with theirs:
                self.process = subprocess.Popen([sys.executable, "-I", "-S", guardian.__file__, inherited.directory or ""],
                                                stdin=theirs.fileno(), stdout=subprocess.DEVNULL, start_new_session=True)
            own = [memory_file(json.dumps(self.setup()).encode()), standard(1), standard(2), memory_file(program)]
            try:
                socket.send_fds(self.lifeline, [b"\0"], [*own, tracker(), *descriptors])
            finally:
                for fd in own:
                    os.close(fd)

    def setup(self) -> dict[str, Any]:
        python = [sys.executable, *subprocess._args_from_interpreter_flags()]  # type: ignore[attr-defined]
        command = " ".join(map(quoted, [*python, "-c", BOOT.format(ROOT), "@directory@"]))
        return {"command": self.command,
                "files": {"troupe.conf": "[Supervisor]\nStateDirectory=@directory@\n", "environment": environment(),
                          GROUP + ".group": TASKS.format(command=command, size=self.size, template=self.template,
                                                          max_jobs=self.max_jobs, max_memory=self.max_memory)}}

    def connect(self) -> tuple[Client, int]:
        said = self.lifeline.recv(PATH_MAX)
        if not said or said.startswith(guardian.NO):
            raise RuntimeError("the supervisor has not started: " +
                               (said[1:].decode(errors="replace") or "the process that was to start it has ended"))
        self.directory = os.fsdecode(said)
        self.socket = os.path.join(self.directory, "socket")
        try:
            client = Client(self.socket)
            return client, client.group(GROUP)
        except OSError as error:
            words = self.lifeline.recv(guardian.WORDS_MAX).decode(errors="replace").strip()
            raise RuntimeError(f"the supervisor has not started: {words or error.strerror}") from error

    def watch(self) -> Query:
        """All events of the workers."""
        assert self.socket is not None
        return ask(self.socket, "Supervisor.Watch", "events", True, {"target": GROUP, "replay": True})

    def resize(self, size: int) -> None:
        """Workers that are too many end after their tasks."""
        self.size = size
        if self.socket is not None:
            ask(self.socket, "Supervisor.Resize", "old_size", False, {"target": GROUP, "size": size}).next()

    def workers(self) -> list[int]:
        """The pids of the workers that are alive."""
        assert self.socket is not None
        text = ask(self.socket, "Supervisor.GetStatus", "groups", False, {"target": GROUP}).next()
        return [worker["pid"] for worker in json.loads(text or b"{}")["workers"] if worker.get("pid")]

    def close(self, kill: bool = False) -> None:
        """Returns when its processes and files are gone."""
        if not kill:
            with contextlib.suppress(OSError):  # it has ended before
                self.lifeline.send(b"\0")
        self.lifeline.close()
        self.process.wait()
        if self.directory:
            shutil.rmtree(self.directory, ignore_errors=True)  # the guardian has been killed

    def abandon(self) -> None:
        """Call it in a child of fork(), whose copy of the lifeline would keep the supervisor alive."""
        self.lifeline.close()
        self.process.returncode = 0
