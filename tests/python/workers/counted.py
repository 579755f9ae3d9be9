# SPDX-License-Identifier: MIT
"""A worker that tells how many references there are, between jobs and messages of all kinds."""
import gc
import sys

import troupe


class Counted(troupe.Actor):
    @troupe.on("echo")
    def echo(self, message):
        return message.payload

    @troupe.on("fail")
    def fail(self, message):
        raise ValueError(message.text)


@troupe.job
def work(job):
    if job.payload == b"count":
        gc.collect()
        return str(sys.gettotalrefcount() if hasattr(sys, "gettotalrefcount") else 0)
    if job.payload == b"fail":
        raise ValueError(job.id)
    if job.payload == b"reject":
        raise troupe.Reject(job.id)
    job.check()
    job.publish(job.key)
    return job.payload + job.text.encode()


troupe.run(actor=Counted())
