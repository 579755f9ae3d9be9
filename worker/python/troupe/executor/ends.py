# SPDX-License-Identifier: MIT
"""Maps the end of a task's job to the end of its future."""
import errno
import os
import threading
from concurrent.futures.process import BrokenProcessPool
from typing import Any

from troupe._troupe import Result
from troupe.executor.tasks import TIRED, UNFIT, TaskTimeout, WorkerDied, load_exception, load_value

TIMEOUT_REASON = "ran out of time"
# A worker that gets a task after its last one exits, which counts as an attempt although the task has not begun.
TIRED_REASON, TIRED_MAX = f"exited with status {TIRED}", 20


def broken_by(error: BaseException) -> BrokenProcessPool:
    said = str(error) if isinstance(error, Exception) else ""  # that of SystemExit is a number
    reason = isinstance(error, OSError) and error.strerror or said or repr(error)
    broken = BrokenProcessPool(f"the executor cannot continue: {reason}")
    broken.__cause__ = error
    return broken


def is_tired(result: Result, before: int) -> bool:
    """Whether to send the task again, after so many workers ended because of max_tasks_per_child instead of beginning it."""
    return result.end == "dead" and result.reason == TIRED_REASON and before < TIRED_MAX


def is_unfit(result: Result) -> bool:
    """Whether no task can run."""
    return result.end == "rejected" and result.code == UNFIT


def is_withdrawn(result: Result) -> bool:
    """Whether no worker had the task when the executor took it back."""
    return result.end == "cancelled" and result.cause == "withdrawn"


def outcome(result: Result, socket: str | None) -> tuple[Any, BaseException | None]:
    """`socket` is the supervisor's."""
    try:
        return value_or_error(result, socket)
    except BaseException as unfit:  # pylint: disable=broad-except
        if is_ctrl_c(unfit, result):
            raise
        return None, unfit


def is_ctrl_c(error: BaseException, result: Result) -> bool:
    """Replaces the exception that the pickle itself raises with each attempt to load it."""
    if not isinstance(error, KeyboardInterrupt) or threading.current_thread() is not threading.main_thread():
        return False
    try:
        value_or_error(result, None)
    except KeyboardInterrupt:
        return False
    except BaseException:  # pylint: disable=broad-except
        pass
    return True


def value_or_error(result: Result, socket: str | None) -> tuple[Any, BaseException | None]:
    if result.error not in (0, errno.ECONNRESET):
        return None, OSError(result.error, result.reason or os.strerror(result.error))
    if result.error or result.end in ("dead", "cancelled"):
        died = TaskTimeout if TIMEOUT_REASON in result.reason else WorkerDied
        return None, died(result.reason, result.attempts, result.id, socket)
    return (None, load_exception(result.data)) if result.end == "rejected" else (load_value(result.data), None)
