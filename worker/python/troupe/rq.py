# SPDX-License-Identifier: MIT
"""Runs the jobs of RQ in supervised processes: rq worker --worker-class troupe.rq.Worker."""
import concurrent.futures
import random
from typing import Any, ClassVar

import rq
from rq import utils
from rq.worker import WorkerStatus

from troupe.executor import Executor

now = getattr(utils, "now", None) or utils.utcnow  # type: ignore[attr-defined] # before RQ 2

GRACE = 60  # seconds after a job's time-out: the process, which should have ended the job, is killed


class Horse(rq.SimpleWorker):  # type: ignore[misc]
    """Stands for the worker in the process that performs its job."""

    def perform(self, job_id: str, origin: str) -> None:
        random.seed()
        self._is_horse = True
        job = self.job_class.fetch(job_id, connection=self.connection, serializer=self.serializer)
        self.perform_job(job, self.queue_class(origin, connection=self.connection, job_class=self.job_class,
                                               serializer=self.serializer))


def perform(redis: tuple[Any, ...], worker: dict[str, Any], job_id: str, origin: str) -> None:
    """Runs in a worker of the executor."""
    client, pool, connection_class, arguments = redis
    connection = client(connection_pool=pool(connection_class=connection_class, **arguments))
    Horse([], connection=connection, prepare_for_work=False, **worker).perform(job_id, origin)


class Worker(rq.Worker):  # type: ignore[misc]
    """A worker of RQ whose jobs run in a process of troupe.Executor, which is replaced if it dies. Each job has a process of its
    own, as with RQ, forked from one that has loaded what the program's main module loads. A job whose process dies fails with
    the cause of death; RQ's options of jobs, such as time-outs and retries, apply.

    A class of your own may change `executor_options`, the arguments of troupe.Executor beside the number of workers, which is 1:
    for example an initializer that imports what jobs need."""
    executor_options: ClassVar[dict[str, Any]] = {"max_tasks_per_child": 1, "template": True}

    _executor: Executor | None = None

    def execute_job(self, job: Any, queue: Any) -> None:
        self.set_state(WorkerStatus.BUSY)
        if self._executor is None:
            self._executor = Executor(1, **self.executor_options)
        pool = self.connection.connection_pool
        worker = {"name": self.name, "job_class": self.job_class, "queue_class": self.queue_class,
                  "exception_handlers": list(self._exc_handlers), "serializer": self.serializer,
                  "disable_default_exception_handler": self.disable_default_exception_handler,
                  "default_result_ttl": self.default_result_ttl, "log_job_description": self.log_job_description}
        redis = type(self.connection), type(pool), pool.connection_class, pool.connection_kwargs
        future = self._executor.submit(perform, redis, worker, job.id, queue.name)
        self._await(job, queue, future)
        self.set_state(WorkerStatus.IDLE)

    def _await(self, job: Any, queue: Any, future: Any) -> None:
        started_at = now()
        while not concurrent.futures.wait([future], self.job_monitoring_interval).done:
            self.set_current_job_working_time((now() - started_at).total_seconds())
            if job.timeout not in (None, -1) and self.current_job_working_time > job.timeout + GRACE:
                self.kill_horse()
            self.maintain_heartbeats(job)
        error = future.exception()
        if error is not None:
            self._lose(job, queue, str(error))
        self.set_current_job_working_time(0)

    def _lose(self, job: Any, queue: Any, reason: str) -> None:
        job.started_at = job.started_at or now()
        job.ended_at = now()
        if self._stopped_job_id == job.id:
            reason = "Job stopped by user, its process was ended."
        self.log.warning("Job %s failed: %s", job.id, reason)
        self.handle_job_failure(job, queue=queue, exc_string=reason)

    def kill_horse(self, *_: Any) -> None:
        executor, self._executor = self._executor, None
        if executor is not None:
            executor.kill_workers()

    def teardown(self) -> None:
        if self._executor is not None:
            self._executor.shutdown()
            self._executor = None
        super().teardown()  # type: ignore[no-untyped-call]
