# SPDX-License-Identifier: MIT
"""Jobs of five kinds, and the worker that does them.

elastic.py                 the worker
elastic.py SOCKET KIND     has a group "work" do all jobs of a kind: jobs per second
"""
import json
import random
import sys
import time

import troupe

# The jobs of each kind: (seconds on a CPU, MiB of memory, seconds of waiting).
KINDS = {
    "short": [(0.001, 0, 0.002)] * 9000,
    "long": [(0, 0, 1.0)] * 192,
    "bimodal": [(0, 0, 0.3 if n % 10 == 0 else 0.02) for n in range(3600)],
    "bursty": [(0, 0, 0.1)] * 800,
    "memory-heavy": [(0, 24, 0.1)] * 1200,
}
BURST, PAUSE = 80, 1.5  # of bursty jobs


def work(job):
    cpu, memory, wait = json.loads(job.payload)
    end = time.thread_time() + cpu
    kept = bytearray(memory << 20)
    while time.thread_time() < end:
        pass
    time.sleep(wait)
    return str(len(kept))


def measure(socket, kind):
    jobs, client = list(KINDS[kind]), troupe.Client(socket)
    random.Random(1).shuffle(jobs)
    began, ids = time.monotonic(), []
    for n, job in enumerate(jobs):
        if kind == "bursty" and n and n % BURST == 0:
            time.sleep(PAUSE)
        ids.append(client.create("work", json.dumps(job)))
    for id in ids:
        client.wait(id)
    return {"jobs_per_s": len(jobs) / (time.monotonic() - began)}


if __name__ == "__main__":
    if len(sys.argv) == 1:
        troupe.run(work)
    else:
        print(json.dumps(measure(*sys.argv[1:])))
