#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Instructions per job in the supervisor, counted by callgrind: the same on a noisy machine as on a quiet one.

    tests/bench/instructions.py [--keep]

Each case runs twice, with N jobs and with 3 N, and the difference counts: start and end of the supervisor cancel out.
Everyone else has precedence over the supervisor on the one processor that all use: it finds all of what they can have
done, whatever else the machine does, and figures repeat to 0.2 %. With --keep the profiles stay, for callgrind_annotate.
"""
import json
import os
import re
import shutil
import subprocess
import sys

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import figures  # pylint: disable=wrong-import-position
import loads
import programs

# name: (jobs, workers, in hand, window, bytes)
CASES = {
    "one at a time": (2000, 1, 1, 1, 64),
    "window 256, 1 worker, 64 in hand": (20000, 1, 64, 256, 64),
    "window 256, 2 workers, 64 in hand": (20000, 2, 64, 256, 64),
    "window 256, 2 workers, one in hand": (5000, 2, 1, 256, 64),
    "window 256, 2 workers, 64 in hand, 1 KiB": (20000, 2, 64, 256, 1024),
    "tell, 64 bytes": (100000, None, None, None, 64),
}
CONF = "[Supervisor]\nSpinUsec=0\n"  # how long it looks before it sleeps, time decides


def under_callgrind(path):
    """A trouped that finds a supervisor's program beside it which counts the real one's instructions."""
    directory = path + ".programs"
    os.makedirs(directory, exist_ok=True)
    script = os.path.join(directory, "trouped-supervisor")
    preload = os.path.join(directory, "pidfds.so")
    subprocess.run([os.environ.get("HOSTCC", "gcc"), "-shared", "-fPIC", "-D_GNU_SOURCE", "-o", preload,
                    os.path.join(os.path.dirname(__file__), "pidfds.c")], check=True)
    with open(script, "w", encoding="utf-8") as file:
        file.write(f"#!/bin/sh\nLD_PRELOAD='{preload}' exec chrt --other 0 valgrind --tool=callgrind --callgrind-out-file='{path}' "
                   f"'{programs.product('trouped-supervisor')}' \"$@\"\n")
    os.chmod(script, 0o755)
    return shutil.copy(programs.product("trouped"), directory)


def collected(path, jobs, case):
    """Instructions that the supervisor has executed in its life, and the jobs it did."""
    _, workers, depth, window, size = case
    daemon = loads.Troupe(workers, depth, Worker={"TimeoutStartSec": "60s"}) if window else loads.Tell()
    daemon.conf = CONF
    daemon.program = under_callgrind(path)
    with daemon:
        if window:
            what = ("window", jobs, size, size, window) if window > 1 else ("round-trip", jobs, size, size)
            jobs = programs.measure(*daemon.load(*what))["all_jobs"]
        else:
            daemon.tell(jobs, size)
    with open(path, encoding="utf-8", errors="replace") as file:
        return int(re.search(r"^(?:summary|totals): (\d+)", file.read(), re.M).group(1)), jobs


def per_job(directory, name, case):
    path = os.path.join(directory, "callgrind." + re.sub(r"[^a-z0-9]+", "-", name.lower()))
    few, few_jobs = collected(path + ".few", case[0], case)
    many, many_jobs = collected(path, case[0] * 3, case)
    os.unlink(path + ".few")
    return (many - few) / (many_jobs - few_jobs)


def put_supervisor_last():
    """Otherwise the other load of the machine decides how many turns a job takes. Needs root."""
    os.sched_setaffinity(0, [min(os.sched_getaffinity(0))])
    try:
        os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(1))
    except PermissionError:
        print("not root: figures of jobs one by one vary by 10 %", file=sys.stderr)


def main():
    put_supervisor_last()
    reason = programs.absent("valgrind", "valgrind")
    if reason:
        sys.exit(reason)
    directory = os.path.join(programs.BUILD, "bench", "callgrind")
    shutil.rmtree(directory, ignore_errors=True)
    os.makedirs(directory)
    found = {}
    for name, case in CASES.items():
        print(f"{name} …", end=" ", file=sys.stderr, flush=True)
        found[name] = per_job(directory, name, case)
        print(f"{found[name]:.0f}", file=sys.stderr)
    print("\n".join(figures.table([["instructions per job (or message) in the supervisor", ""],
                                   *([name, f"{value:,.0f}"] for name, value in found.items())], (1,))))
    with open(os.path.join(programs.BUILD, "bench", "instructions.json"), "w", encoding="utf-8") as file:
        json.dump(found, file, indent=1)
    if "--keep" in sys.argv:
        print(f"profiles: {directory} (callgrind_annotate FILE)")
    else:
        shutil.rmtree(directory)


if __name__ == "__main__":
    main()
