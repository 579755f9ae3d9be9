# SPDX-License-Identifier: MIT
"""Functions that handle jobs, one per group of that name."""
import os
import signal
import sys
import threading

import troupe


@troupe.job
def echo(job):
    if job.payload == b"emit":
        for item in "one", b"two", {"n": 3}:
            job.emit(item)
    return job.payload


@troupe.job
def order(job):
    """Has another group do it, by MaySubmit=."""
    client = troupe.Client()
    try:
        return client.do(job.text, "ordered").data
    except PermissionError:
        return "refused"
    finally:
        client.close()


@troupe.job
def traced(job):
    return {"traceparent": job.traceparent}


@troupe.job
def say(job):
    """What each kind of value becomes."""
    return {"text": "text", "nothing": None, "json": {"n": [1]}, "bytes": bytearray(b"bytes")}[job.text]


@troupe.job
def fail(job):
    verb = job.text
    if verb == "reject":
        raise troupe.Reject({"why": "never"}, 9)
    if verb == "number":
        raise FileNotFoundError(2, "no such thing")
    if verb == "long":
        raise ValueError("x\0" + "\udc80" + "y" * 3000 + " the end")
    if verb == "exit":
        sys.exit("bye")
    if verb == "object":
        return object()
    if job.payload == b"steps":
        done = job.step("first", lambda: f"in attempt {job.attempt}")
        if job.attempt > 1:
            raise troupe.Reject(f"{done}; {job.last_checkpoint.decode()}")
    if job.payload == b"later":
        raise troupe.Retry("busy", after=0 if job.attempt == 1 else 3600, code=7)
    if job.payload == b"too late":
        raise troupe.Retry(after=-1)
    raise ValueError(f"attempt {job.attempt} of {job.max_attempts}")


@troupe.job
def slow(job):
    """Until it is cancelled; "stubborn" tries not to hear of it."""
    job.publish({"id": job.id})
    if job.text == "publish":
        while True:
            job.publish("still here")
    try:
        while True:
            job.check()
    except Exception:
        return "went on"


@troupe.job
def stuck(job):
    """Knows nothing of Troupe any more."""
    while True:
        pass


@troupe.job
def environment(job):
    return {"variables": sorted(name for name in os.environ if name.startswith("TROUPE_")), "key": job.key.decode()}


@troupe.job
def thread(job):
    """What another thread may do."""
    said = []

    def look():
        said.append(job.cancelled)
        try:
            job.publish("from a thread")
        except RuntimeError as error:
            said.append(str(error))
    other = threading.Thread(target=look)
    other.start()
    other.join()
    return said


@troupe.job
def signals(job):
    """Has a handler of this program run while the worker waits for its next job."""
    def handler(number, _):
        worker_name.append(number)
    signal.signal(signal.SIGUSR1, handler)
    return {"pid": os.getpid(), "seen": len(worker_name)}


worker_name = []
troupe.run()
