#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Pools and queues of Python under the same work.

    pools.py KIND round-trip COUNT BYTES
    pools.py KIND window COUNT BYTES WINDOW WORKERS
    pools.py celery@PORT|rq@PORT chords COUNT MEMBERS

KIND: pool, executor (of Python), troupe (its executor), celery@PORT, rq@PORT (whose workers and redis run already).
Prints one JSON object, as the programs in C do.
"""
import collections
import concurrent.futures
import contextlib
import json
import multiprocessing
import statistics
import sys
import time


def echo(data):
    return data


def round_trips(submit, count, size):
    data, times = b"x" * size, []
    overhead = statistics.median(-(time.perf_counter_ns() - time.perf_counter_ns()) for _ in range(1001))
    for i in range(count + count // 20 + 1):
        begin = time.perf_counter_ns()
        if submit(data)() != data:
            raise ValueError("another result than the payload")
        if i > count // 20:
            times.append(max(0, time.perf_counter_ns() - begin - overhead) / 1e3)
    times.sort()

    def quantile(q):
        return times[min(len(times) - 1, int(len(times) * q))]
    return {"count": count, "mean_us": statistics.fmean(times), "p50_us": quantile(0.5), "p90_us": quantile(0.9),
            "p99_us": quantile(0.99), "p999_us": quantile(0.999), "max_us": times[-1]}


def window(submit, count, size, in_flight):
    data, pending, begin = b"x" * size, collections.deque(), 0.0
    warm = count // 20 + 1
    for i in range(warm + count):
        if i == warm:
            begin = time.perf_counter()
        if len(pending) == in_flight:
            if pending.popleft()() != data:
                raise ValueError("another result than the payload")
        pending.append(submit(data))
    for result in pending:
        result()
    seconds = time.perf_counter() - begin
    return {"count": count, "seconds": seconds, "jobs_per_s": count / seconds, "bytes_per_s": count * size / seconds}


@contextlib.contextmanager
def pool(workers):
    with multiprocessing.Pool(workers) as opened:
        yield lambda data: opened.apply_async(echo, (data,)).get


@contextlib.contextmanager
def executor(workers, kind=concurrent.futures.ProcessPoolExecutor):
    with kind(workers) as opened:
        yield lambda data: opened.submit(echo, data).result


def troupe(workers):
    from troupe.executor import Executor
    return executor(workers, Executor)


@contextlib.contextmanager
def celery(_, port):
    import celery_echo
    task = celery_echo.make(port)
    yield lambda data: task.delay(data).get


@contextlib.contextmanager
def rq(_, port):
    import redis
    from rq import Queue
    queue = Queue(connection=redis.Redis(port=int(port)))

    def submit(data):
        job = queue.enqueue("rq_echo.echo", data)

        def wait():
            while not (result := job.latest_result()):
                time.sleep(0.001)
            return result.return_value
        return wait
    yield submit


def celery_chord(port, members):
    import celery
    import celery_echo
    task = celery_echo.make(port)
    return lambda: celery.chord([task.s(b"x")] * members)(task.si(b"")).get()


def rq_chord(port, members):
    import redis
    from rq import Queue
    queue = Queue(connection=redis.Redis(port=int(port)))

    def run():
        parents = [queue.enqueue("rq_echo.echo", b"x") for _ in range(members)]
        last = queue.enqueue("rq_echo.echo", b"", depends_on=parents)
        while not last.latest_result():
            time.sleep(0.001)
    return run


def chords(kind, port, count, members):
    """`members` tasks and one that follows all of them, again and again."""
    run = {"celery": celery_chord, "rq": rq_chord}[kind](port, members)
    run()
    begin = time.perf_counter()
    for _ in range(count):
        run()
    return {"edges_per_s": count * members / (time.perf_counter() - begin)}


def main():
    kind, _, port = sys.argv[1].partition("@")
    what, count, size = sys.argv[2], int(sys.argv[3]), int(sys.argv[4])
    if what == "chords":
        print(json.dumps(chords(kind, port, count, size)))
        return
    workers = int(sys.argv[6]) if what == "window" else 1
    opened = {"pool": pool, "executor": executor, "troupe": troupe, "celery": celery, "rq": rq}[kind]
    with opened(workers, *([port] if port else [])) as submit:
        submit(b"")()
        if what == "window":
            result = window(submit, count, size, int(sys.argv[5]))
        else:
            result = round_trips(submit, count, size)
    print(json.dumps(result))


if __name__ == "__main__":
    main()
