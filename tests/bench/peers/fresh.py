# SPDX-License-Identifier: MIT
"""Asks heavy.py or troupe/fresh.c for the pid of the process that answers.

fresh.py WHERE jobs COUNT     two clients, as fast as they get answers: answers per second, and from how many processes
fresh.py WHERE deaths COUNT   kills the only worker and asks again: the time until the answer, and the memory that no
                              other process shares with the one that answers
fresh.py - forks COUNT        the floor: a process that has loaded heavy.py forks, one child after the other

WHERE is a port for HTTP, or the socket of a trouped with a group "fresh".
"""
import contextlib
import http.client
import json
import os
import signal
import statistics
import sys
import threading
import time


def over_http(port):
    def ask():
        while True:
            connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
            with contextlib.closing(connection), contextlib.suppress(OSError, http.client.HTTPException):
                connection.request("GET", "/")
                return int(connection.getresponse().read())
            time.sleep(0.001)  # the worker that was to answer has ended

    return ask


def over_troupe(socket):
    import troupe
    client = troupe.Client(socket)
    return lambda: int(client.do("fresh", b"").data)


def connect(where):
    return over_http(int(where)) if where.isdigit() else over_troupe(where)


def jobs(where, count):
    pids, lock = set(), threading.Lock()

    def work():
        ask = connect(where)
        mine = {ask() for _ in range(count // 2)}
        with lock:
            pids.update(mine)

    threads = [threading.Thread(target=work) for _ in range(2)]
    began = time.monotonic()
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return {"jobs_per_s": count / (time.monotonic() - began), "jobs_per_process": count / len(pids)}


def private_mib(pid):
    with open(f"/proc/{pid}/smaps_rollup", encoding="ascii") as rows:
        return sum(int(row.split()[1]) for row in rows if row.startswith("Private_")) / 1024


def deaths(where, count):
    ask, times, memory = connect(where), [], []
    pid = ask()
    for _ in range(count):
        time.sleep(0.1)  # so that it counts as healthy, and a template has come up
        os.kill(pid, signal.SIGKILL)
        began = time.monotonic()
        while (new := ask()) == pid:
            pass
        times.append(1000 * (time.monotonic() - began))
        memory.append(private_mib(new))
        pid = new
    return {"p50_ms": statistics.median(times), "max_ms": max(times), "private_mib": statistics.median(memory)}


def forks(_where, count):
    import heavy  # loads
    assert heavy.data
    began = time.monotonic()
    for _ in range(count):
        child = os.fork()
        if child == 0:
            os._exit(0)
        os.waitpid(child, 0)
    return {"jobs_per_s": count / (time.monotonic() - began), "jobs_per_process": 1}


if __name__ == "__main__":
    print(json.dumps({"jobs": jobs, "deaths": deaths, "forks": forks}[sys.argv[2]](sys.argv[1], int(sys.argv[3]))))
