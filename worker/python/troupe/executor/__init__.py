# SPDX-License-Identifier: MIT
"""A concurrent.futures.Executor that a killed process does not break."""
from troupe.executor.executor import Executor
from troupe.executor.tasks import TaskTimeout, WorkerDied

__all__ = ["Executor", "TaskTimeout", "WorkerDied"]
