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
WARM_UP, ROUNDS = 5, 20


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
    low = client._low()
    low.ask(client.find("counted"), "echo", b"forgotten")


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


for _ in range(WARM_UP):
    one_round()
before = references(), resident()
for _ in range(ROUNDS):
    one_round()
after = references(), resident()
print(json.dumps({"references": after[0] - before[0], "bytes": after[1] - before[1], "rounds": ROUNDS}))
