# SPDX-License-Identifier: MIT
"""A back end of joblib whose processes may die: import troupe.joblib, then joblib.parallel_backend("troupe")."""
import os
from collections.abc import Callable
from typing import Any

from joblib.parallel import (AutoBatchingMixin, FallbackToBackend, ParallelBackendBase, SequentialBackend, cpu_count,
                             register_parallel_backend)

from troupe.executor import Executor


def set_environment(environment: dict[str, str], then: Callable[..., object] | None, arguments: tuple[Any, ...]) -> None:
    """Runs in each worker, before libraries that read the environment are loaded."""
    os.environ.update(environment)
    if then is not None:
        then(*arguments)


class Task:
    """What joblib expects of a task, for a future."""

    def __init__(self, future: Any) -> None:
        self.future = future

    def get(self, timeout: float | None = None) -> Any:
        return self.future.result(timeout)


class TroupeBackend(AutoBatchingMixin, ParallelBackendBase):  # type: ignore[misc]
    """The parameters of parallel_backend() beside n_jobs are those of troupe.Executor: retries, group, timeout ...

    A task whose process dies fails with troupe.WorkerDied, or is tried again up to `retries` times; no other task is affected.
    The workers stay from one call of joblib.Parallel to the next."""
    supports_timeout = True
    supports_retrieve_callback = True  # since joblib 1.3: results come with the callback, and may be a generator
    supports_return_generator = True
    supports_inner_max_num_threads = True

    def __init__(self, nesting_level: int | None = None, inner_max_num_threads: int | None = None,
                 initializer: Callable[..., object] | None = None, initargs: tuple[Any, ...] = (), **options: Any) -> None:
        super().__init__(nesting_level=nesting_level, inner_max_num_threads=inner_max_num_threads)
        self._initializer, self._initargs, self._options = initializer, initargs, options
        self._executor: Executor | None = None
        self._n_jobs = 0

    def effective_n_jobs(self, n_jobs: int | None) -> int:
        if n_jobs == 0:
            raise ValueError("n_jobs == 0 in Parallel has no meaning")
        if n_jobs is None:
            return 1
        return n_jobs if n_jobs > 0 else max(int(cpu_count()) + 1 + n_jobs, 1)

    def configure(self, n_jobs: int = 1, parallel: Any = None, prefer: Any = None, require: Any = None, **_: Any) -> int:
        n_jobs = self.effective_n_jobs(n_jobs)
        if n_jobs == 1:  # as with joblib's own back ends, tasks then run in this process
            raise FallbackToBackend(SequentialBackend(nesting_level=self.nesting_level))
        self.parallel = parallel
        if self._executor is None or n_jobs != self._n_jobs:
            self._close()
            arguments = (self._prepare_worker_env(n_jobs), self._initializer, self._initargs)
            self._executor = Executor(n_jobs, initializer=set_environment, initargs=arguments, **self._options)
            self._n_jobs = n_jobs
        return n_jobs

    def submit(self, func: Callable[..., Any], callback: Callable[[Any], object] | None = None) -> Task:
        assert self._executor is not None
        future = self._executor.submit(func)
        if callback is not None:
            future.add_done_callback(callback)
        return Task(future)

    apply_async = submit  # its name before joblib 1.5

    def retrieve_result_callback(self, out: Any) -> Any:
        return out.result()

    def terminate(self) -> None:
        self.reset_batch_stats()

    def abort_everything(self, ensure_ready: bool = True) -> None:
        """Ends the tasks that run: those of a group of another supervisor go on."""
        executor, self._executor = self._executor, None
        if executor is not None:
            executor.shutdown(wait=False, cancel_futures=True)
            if "group" not in self._options:
                executor.kill_workers()
        if ensure_ready:
            self.configure(n_jobs=self._n_jobs, parallel=self.parallel)

    def _close(self) -> None:
        if self._executor is not None:
            self._executor.shutdown(wait=False)
            self._executor = None


register_parallel_backend("troupe", TroupeBackend)
