# SPDX-License-Identifier: MIT
"""The processes of a private supervisor, seen from outside."""
import os
import time

LIMIT_SEC = 60


def until(condition, what, seconds=LIMIT_SEC):
    """Returns the first true value of a condition that nothing tells of."""
    deadline = time.monotonic() + seconds
    while not (value := condition()):
        if time.monotonic() > deadline:
            raise AssertionError(f"waited in vain for {what}")
        time.sleep(0.01)
    return value


def read(path):
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            return file.read()
    except OSError:
        return ""


def children(pid):
    return [int(child) for task in tasks(pid) for child in read(f"/proc/{pid}/task/{task}/children").split()]


def tasks(pid):
    try:
        return os.listdir(f"/proc/{pid}/task")
    except OSError:
        return []


def is_alive(pid):
    state = read(f"/proc/{pid}/stat").rpartition(")")[2].split()
    return bool(state) and state[0] not in "ZX"


def workers_of(executor):
    """The pids of the living workers of an executor with a supervisor of its own."""
    guardian = executor._dispatcher.place.process  # pylint: disable=protected-access
    return [pid for daemon in children(guardian.pid) for pid in children(daemon)
            if is_alive(pid) and "troupe.executor.worker" in read(f"/proc/{pid}/cmdline")]


def marked(mark):
    """The pids of the living processes whose environment has that text."""
    return [int(pid) for pid in os.listdir("/proc")
            if pid.isdigit() and int(pid) != os.getpid() and is_alive(int(pid)) and mark in read(f"/proc/{pid}/environ")]
