# SPDX-License-Identifier: MIT
"""A worker upon troupe._troupe alone. A job's payload is a name of what to do, and its argument."""
import os
import sys

from troupe import _troupe

worker = _troupe.Worker()
kept = []


def handle(job):
    verb, _, argument = job.payload.partition(b" ")
    if verb == b"echo":
        job.succeed(argument)
    elif verb == b"reject":
        job.reject(7, argument)
    elif verb == b"retry":
        if job.attempt < job.max_attempts:
            job.retry(5, argument.decode())
        job.succeed(b"attempt %d of %d" % (job.attempt, job.max_attempts))
    elif verb == b"raise":
        raise ValueError(argument.decode())
    elif verb == b"describe":
        job.succeed(repr((job.id, job.key, job.attempt, worker.name, worker.generation > 0)).encode())
    elif verb == b"nothing":
        pass
    elif verb == b"twice":
        job.succeed(b"first")
        try:
            job.succeed(b"second")
        except OSError as error:
            worker.publish(str(error.errno).encode())
    elif verb == b"spin":
        worker.publish(b"spinning")
        while not job.cancelled:
            pass
        job.cancel()
    elif verb == b"keep":
        kept.append(job)
    elif verb == b"kept":
        try:
            kept.pop().succeed(b"late")
        except RuntimeError as error:
            job.succeed(str(error).encode())
    elif verb == b"fork":
        job.succeed(fork(job))
    elif verb == b"escape":
        escape(job)
    elif verb == b"crash":
        job.crashed(os.getpid(), 11, command="convert")
    elif verb == b"kill":
        os.kill(os.getpid(), 9)


def fork(job):
    """What each call says in a child."""
    reader, writer = os.pipe()
    pid = os.fork()
    if pid == 0:
        said = []
        for call in (lambda: job.succeed(b"child"), lambda: worker.publish(b"child"), lambda: worker.turn(0),
                     lambda: worker.name, worker.heartbeat, worker.wake, lambda: job.payload):
            try:
                call()
                said.append("went on")
            except RuntimeError as error:
                said.append(str(error))
        os.write(writer, "\n".join(sorted(set(said))).encode())
        os._exit(0)
    os.close(writer)
    with open(reader, "rb") as file:
        said = file.read()
    os.waitpid(pid, 0)
    return said


def escape(job):
    """A child that returns from the handler, as only the parent should."""
    pid = os.fork()
    if pid == 0:
        return
    job.succeed(b"%d" % os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))


try:
    worker.run(handle)
except ValueError as error:
    sys.exit(f"ended by {error}")
