# SPDX-License-Identifier: MIT
"""A program that takes 300 ms to load, and answers with its pid: as a WSGI application, or as a worker of Troupe.

heavy:application; or heavy.py, in a group.
"""
import os
import time

data: list[bytes] = []


def load():
    began = time.monotonic()
    data.extend(bytes(1000) for _ in range(50000))  # beside the interpreter, 50 MiB
    time.sleep(max(0, 0.3 - (time.monotonic() - began)))


def application(_environment, start_response):
    body = str(os.getpid()).encode()
    start_response("200 OK", [("Content-Type", "text/plain"), ("Content-Length", str(len(body)))])
    return [body]


if __name__ == "__main__":
    import troupe
    troupe.warm(load)
    troupe.run(lambda job: str(os.getpid()))
else:
    load()
