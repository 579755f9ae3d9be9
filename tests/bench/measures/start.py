# SPDX-License-Identifier: MIT
"""From the start of a supervisor to the first answer of its socket, and to the last of the durable jobs on its disk."""
import json
import os
import shutil
import socket
import time

import programs
import troupe_daemon
from loads import Durable
from measures.gap import fill
from rounds import Measure, Subject

ECHO = programs.ours("troupe/echo")
# Its workers never become ready.
NEVER = "/bin/sleep infinity"
POLL = 0.002


class Stored(Durable):
    """Begins with a copy of the state that another one has left."""

    def __init__(self, state, exec_start, count):
        super().__init__(Jobs={"Durable": "no"}, beside={"stored": stored(exec_start, count)})
        self.origin = state

    def prepare(self):
        super().prepare()
        shutil.copytree(self.origin, self.state, dirs_exist_ok=True)
        os.sync()
        return self


class Start(Subject):
    """Each turn starts a supervisor whose disk has `count` jobs."""
    role = "troupe"

    def __init__(self, name, exec_start, count):
        self.name, self.exec_start, self.count = name, exec_start, count

    def __enter__(self):
        self.state = programs.directory_on_disk()
        daemon = Stored(self.state, NEVER, self.count)
        with daemon:
            fill(daemon, self.count, "stored")
            programs.stop(daemon.process)
            shutil.copytree(daemon.state, self.state, dirs_exist_ok=True)
        return self

    def __exit__(self, *_):
        shutil.rmtree(self.state, ignore_errors=True)

    def turn(self, _point):
        daemon = Stored(self.state, self.exec_start, self.count).prepare()
        try:
            begin = time.monotonic()
            daemon.process = programs.start(daemon.command)
            wait_for(daemon, lambda group: True)
            found = {"socket_ms": (time.monotonic() - begin) * 1e3}
            group = wait_for(daemon, is_complete)
            found["all_ms"] = (time.monotonic() - begin) * 1e3
        finally:
            daemon.__exit__()
        if sum(group.get(state, 0) for state in ("queued", "running", "ending", "succeeded")) < self.count:
            raise programs.Failed(f"jobs are missing: {group}")
        return found


def stored(exec_start, count):
    return troupe_daemon.group(exec_start, Jobs={"Durable": "yes", "QueueMax": count + 1, "QueueMemoryMax": "8G"})


def is_complete(group):
    return group is not None and "store_problem" not in group and not group.get("restoring")


def wait_for(daemon, condition):
    """Returns the group's status, or None while there is no such group."""
    until = time.monotonic() + programs.LIMIT
    while time.monotonic() < until:
        try:
            group = ask(daemon.socket)
            if condition(group):
                return group
        except (FileNotFoundError, ConnectionRefusedError):
            pass
        time.sleep(POLL)
    raise programs.Failed("the jobs are not there: " + daemon.last_words())


def ask(path):
    request = {"method": "io.troupe.Supervisor.GetStatus", "parameters": {"target": "stored", "brief": True}}
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as client:
        client.connect(path)
        client.sendall(json.dumps(request).encode() + b"\0")
        answer = b""
        while not answer.endswith(b"\0"):
            answer += client.recv(1 << 16)
    groups = json.loads(answer[:-1]).get("parameters", {}).get("groups")
    return groups[0] if groups else None


def measures(quick):
    count = 100_000 if quick else 1_000_000
    subjects = [Start("Troupe, jobs that wait", NEVER, count), Start("Troupe, jobs that run at once", ECHO, count)]
    return [Measure("start", f"A start with {count} durable jobs on disk", subjects, "all_ms", "ms",
                    shown={"socket_ms": "the socket answers", "all_ms": "all jobs are there"})]
