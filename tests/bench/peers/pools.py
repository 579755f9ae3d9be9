#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Python's own pools under the same work.

    pools.py pool|executor round-trip COUNT BYTES
    pools.py pool|executor window COUNT BYTES WINDOW WORKERS

Prints one JSON object, as the programs in C do.
"""
import collections
import concurrent.futures
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


def main():
    kind, what, count, size = sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4])
    workers = int(sys.argv[6]) if what == "window" else 1
    if kind == "pool":
        with multiprocessing.Pool(workers) as pool:
            def submit(data):
                return pool.apply_async(echo, (data,)).get
            result = window(submit, count, size, int(sys.argv[5])) if what == "window" else \
                round_trips(submit, count, size)
    else:
        with concurrent.futures.ProcessPoolExecutor(workers) as pool:
            def submit(data):
                return pool.submit(echo, data).result
            result = window(submit, count, size, int(sys.argv[5])) if what == "window" else \
                round_trips(submit, count, size)
    print(json.dumps(result))


if __name__ == "__main__":
    main()
