# SPDX-License-Identifier: MIT
"""What the kernel knows about running processes."""
import contextlib
import os
import re
import select
import time
from pathlib import Path


def children(pid):
    """All that descend from it."""
    found = []
    with contextlib.suppress(FileNotFoundError, ProcessLookupError):
        for task in os.listdir(f"/proc/{pid}/task"):
            with open(f"/proc/{pid}/task/{task}/children", encoding="ascii") as file:
                for child in file.read().split():
                    found += [int(child), *children(int(child))]
    return found


def cpu_ns(pid):
    """CPU time of all its threads, user and system."""
    total = 0
    for task in os.listdir(f"/proc/{pid}/task"):
        with contextlib.suppress(FileNotFoundError, ProcessLookupError):
            total += int(Path(f"/proc/{pid}/task/{task}/schedstat").read_text(encoding="ascii").split()[0])
    return total


def switches(pid):
    """How often one of its threads gave up a CPU or was taken off it: at least once per wake-up."""
    total = 0
    for task in os.listdir(f"/proc/{pid}/task"):
        with contextlib.suppress(FileNotFoundError, ProcessLookupError):
            with open(f"/proc/{pid}/task/{task}/status", encoding="ascii") as file:
                total += sum(int(n) for n in re.findall(r"ctxt_switches:\s*(\d+)", file.read()))
    return total


def memory(pid):
    """Bytes: {"pss", "private"} of a process."""
    with open(f"/proc/{pid}/smaps_rollup", encoding="ascii") as file:
        fields = {name: int(kib) << 10 for name, kib in re.findall(r"^(\w+):\s+(\d+) kB", file.read(), re.M)}
    return {"pss": fields["Pss"], "private": fields["Private_Clean"] + fields["Private_Dirty"]}


def mapped(pid, part):
    """PSS, bytes, of those mappings whose name contains `part`."""
    total, counts = 0, False
    with open(f"/proc/{pid}/smaps", encoding="utf-8", errors="replace") as file:
        for line in file:
            if re.match(r"[0-9a-f]+-[0-9a-f]+ ", line):
                counts = part in line
            elif counts and line.startswith("Pss:"):
                total += int(line.split()[1]) << 10
    return total


def machine():
    """A description, for whoever reads the figures."""
    models = re.findall(r"^model name\s*:\s*(.*)$", Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace"), re.M)
    kib = int(re.search(r"MemTotal:\s+(\d+)", Path("/proc/meminfo").read_text(encoding="ascii")).group(1))
    system = ""
    with contextlib.suppress(OSError):
        system = re.search(r'PRETTY_NAME="?([^"\n]*)', Path("/etc/os-release").read_text(encoding="utf-8")).group(1)
    return {"cpus": os.cpu_count(), "cpu": models[0] if models else os.uname().machine, "memory_mib": kib >> 10,
            "kernel": os.uname().release, "system": system}


def program(pid):
    """The path of the program that it runs, or None."""
    try:
        return os.readlink(f"/proc/{pid}/exe")
    except OSError:
        return None


def name(pid):
    """What the kernel calls it, 15 characters at most, or None."""
    try:
        return Path(f"/proc/{pid}/comm").read_text(encoding="utf-8", errors="replace").rstrip("\n")
    except OSError:
        return None


def wait_gone(pids, limit=30):
    """Until all of them have ended, or after so many seconds."""
    until = time.monotonic() + limit
    for pid in pids:
        with contextlib.suppress(ProcessLookupError), os.fdopen(os.pidfd_open(pid)) as end:
            select.select([end], [], [], max(0, until - time.monotonic()))
