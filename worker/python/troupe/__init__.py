# SPDX-License-Identifier: MIT
"""
Workers and clients of Troupe. See troupe-python(7).

    @troupe.job
    def digest(job: troupe.Job) -> str:
        return hashlib.sha256(job.payload).hexdigest()

    troupe.run()

    with troupe.Client() as client:
        print(client.do("digest", b"hello").data)
"""
from typing import TYPE_CHECKING

from troupe._troupe import Result, version
from troupe.actor import Actor, Message, Pending, Reply, on
from troupe.client import Client, ClientPool
from troupe.data import Options
from troupe.errors import Cancelled, Dead, Error, JobCancelled, JobError, Reject, Rejected, Retry
from troupe.job import Job, job, run
from troupe.template import warm

if TYPE_CHECKING:
    from troupe.executor import Executor, TaskTimeout, WorkerDied

__all__ = ["Actor", "Cancelled", "Client", "ClientPool", "Dead", "Error", "Executor", "Job", "JobCancelled", "JobError",
           "Message", "Options", "Pending", "Reject", "Rejected", "Reply", "Result", "Retry", "TaskTimeout", "WorkerDied", "job",
           "on", "run", "version", "warm"]
__version__ = version()


def __getattr__(name: str) -> object:
    """The executor needs multiprocessing, which takes time to import."""
    if name in ("Executor", "TaskTimeout", "WorkerDied"):
        from troupe import executor
        return getattr(executor, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
