# SPDX-License-Identifier: MIT
"""rounds.py SOCKET: does everything with clients, again and again, and prints what grew meanwhile, as JSON."""
import asyncio
import gc
import json
import os
import sys

import troupe
from troupe import _troupe, aio

SOCKET = sys.argv[1]
WARM_UP, ROUNDS, TIMES = 5, 10, 3


def references():
    gc.collect()
    return sys.gettotalrefcount() if hasattr(sys, "gettotalrefcount") else 0


def resident():
    with open("/proc/self/statm", encoding="ascii") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def refused(function, *arguments, **options):
    try:
        function(*arguments, **options)
    except (OSError, RuntimeError, TypeError, ValueError, troupe.Error):
        return
    raise AssertionError(f"{function} went on")


def with_jobs(client):
    for result in client.map("counted", ["x" * 100] * 50, window=20, key=b"k"):
        assert len(result.data) == 200
    for verb in ("fail", "reject"):
        refused(client.do, "counted", verb, max_retries=0)
    refused(client.do, "missing")
    refused(client.do, "counted", b"", id="not valid!")
    refused(client.cancel, "nobody")
    assert client.wait(client.create("counted", b"y" * 200_000)).data == b"y" * 400_000
    list(client.jobs("counted", ended=True))
    refused(client.job, "nobody")


def with_messages(client):
    client.on_message(lambda message: None)
    client.tell(client.reference, "self", b"data")
    while client.turn(0):
        pass
    assert client.ask("counted", "echo", b"data").data == b"data"
    refused(client.ask, "counted", "fail", "why")
    refused(client.ask, "counted", "unknown")
    assert client.cancel_timer(client.tell_after(3600, "counted", "echo"))
    client.begin_ask("counted", "echo", "forgotten")
    client.monitor("counted")
    client.begin_ask("counted", "echo").then(lambda asked: asked.wait())
    client.pause("counted")
    client.resume("counted")
    exchange = client.new_exchange("made", "pattern")
    refused(client.new_exchange, "made", "pattern")
    refused(client.new_exchange, "made", "no kind")
    client.delete_exchange(exchange)
    client.on_silence(3600, lambda: None)


def with_errors():
    refused(_troupe.Client, SOCKET + ".missing")
    refused(_troupe.Worker)
    closed = _troupe.Client(SOCKET)
    actor = closed.actor()
    future = actor.ask(actor.self(), "never", b"")
    future.then(print)
    future.drop()
    closed.close()
    refused(closed.next, 0)
    refused(actor.address)
    del closed
    refused(actor.address)


async def with_asyncio():
    async with aio.Client(SOCKET) as client:
        await asyncio.gather(*(client.do("counted", str(n)) for n in range(20)))
        await asyncio.gather(*(client.ask("counted", "echo", str(n)) for n in range(20)))
        task = asyncio.create_task(client.do("counted", "z", delay=3600))
        await asyncio.sleep(0)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


def one_round():
    with troupe.Client(SOCKET) as client:
        with_jobs(client)
        with_messages(client)
    with_errors()
    asyncio.run(with_asyncio())


def growth():
    before = references(), resident()
    for _ in range(ROUNDS):
        one_round()
    return references() - before[0], resident() - before[1]


for _ in range(WARM_UP):
    one_round()
# What leaks grows every time, caches of the interpreter now and then.
grown = [growth() for _ in range(TIMES)]
print(json.dumps({"references": min(each[0] for each in grown), "bytes": min(each[1] for each in grown), "rounds": ROUNDS}))
