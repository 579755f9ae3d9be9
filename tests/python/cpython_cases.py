#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""CPython's own tests of process executors, from the `test` package of the Python that runs this, with troupe.Executor.

    cpython_cases.py [unittest's arguments]      PYTHONPATH must lead to troupe, PATH to trouped

What cannot apply is in DIFFERENT, with the reason; tests/python/test_executor.py has what is true instead.
"""
import functools
import importlib
import multiprocessing
import os
import signal
import unittest

import troupe.executor
from proctree import workers_of, is_alive, until

PACKAGE = "test.test_concurrent_futures"
# A file until Python 3.11, then a package.
PARTS = ["", ".util", ".executor", ".test_init", ".test_shutdown", ".test_wait", ".test_as_completed", ".test_process_pool",
         ".test_deadlock"]

EXTRA = "all workers are started at once, whatever the start method"
OWN = "the task fails with what its own pickle raised, and the executor goes on"
SINGLE = "lets the start of a second thread fail, and the executor has one"
NAMED = "runs a program that imports the executor from concurrent.futures by its name"

DIFFERENT = {
    "test_processes_terminate": EXTRA,
    "test_idle_process_reuse_one": EXTRA,
    "test_idle_process_reuse_multiple": EXTRA,
    "test_killed_child": "one killed process does not break the executor: that is what it is for",
    "test_exit_at_task_unpickle": OWN,
    "test_error_at_task_unpickle": OWN,
    "test_error_during_result_unpickle_in_result_handler": OWN,
    "test_exit_during_result_unpickle_in_result_handler": OWN,
    "test_python_finalization_error": SINGLE,
    "test_interpreter_shutdown": NAMED,
    "test_submit_after_interpreter_shutdown": NAMED,
    "test_hang_gh83386": NAMED,
}


class Process:
    """Of an executor's processes, what the tests use."""

    def __init__(self, pid):
        self.pid = pid

    def join(self):
        until(lambda: not is_alive(self.pid), f"the end of process {self.pid}")

    def terminate(self):
        os.kill(self.pid, signal.SIGTERM)


class Executor(troupe.executor.Executor):
    """With those of ProcessPoolExecutor's inner names that the tests look at."""

    class _call_queue:
        @staticmethod
        def join_thread():
            pass

    @property
    def _executor_manager_thread(self):
        return self._dispatcher.thread

    @property
    def _processes(self):
        if not self._dispatcher.thread:
            return {}
        pids = until(lambda: (pids := workers_of(self)) and len(pids) == self._max_workers and pids, "all workers")
        return {pid: Process(pid) for pid in pids}


def find(name):
    for part in PARTS:
        try:
            module = importlib.import_module(PACKAGE + part)
        except ImportError:
            continue
        if hasattr(module, name):
            return getattr(module, name)
    raise unittest.SkipTest(f"this Python's {PACKAGE} has no {name}")


class TroupeMixin(find("ExecutorMixin")):
    executor_type = Executor
    ctx = "spawn"

    def get_context(self):
        return multiprocessing.get_context(self.ctx)

    def create_event(self):
        """Since Python 3.13; the manager comes with the context."""
        return self.manager.Event()


def skipping(case):
    """Without the tests that cannot apply."""
    for name, reason in DIFFERENT.items():
        if hasattr(case, name):
            setattr(case, name, unittest.skip(reason)(functools.partial(getattr(case, name))))
    return case


def make(name):
    return skipping(type("Troupe" + name, (find(name), TroupeMixin, find("BaseTestCase")), {}))


TroupeInitializer = make("InitializerMixin")


class TroupeFailingInitializer(make("FailingInitializerMixin")):
    """What an initializer logs comes by a thread of its worker, and may come after the task has failed: waits for the first."""

    def setUp(self):
        super().setUp()
        take, first = self.log_queue.get_nowait, iter([self.log_queue.get])
        self.log_queue.get_nowait = lambda: next(first, take)()


TroupeShutdown = make("ProcessPoolShutdownTest")
TroupeWait = make("WaitTests")
TroupeAsCompleted = make("AsCompletedTests")
TroupeProcessPoolExecutorTest = make("ProcessPoolExecutorTest")
TroupeDeadlock = make("ExecutorDeadlockTest")

# These tests make executors by the name of the class.
find("futures").ProcessPoolExecutor = Executor

if __name__ == "__main__":
    unittest.main()
