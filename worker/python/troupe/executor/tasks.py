# SPDX-License-Identifier: MIT
"""Tasks and their ends as pickles, made by cloudpickle if pickle cannot and cloudpickle is installed."""
import copyreg
import importlib
import io
import pickle
import sys
import time
import traceback
from concurrent.futures import process
from concurrent.futures.process import BrokenProcessPool
from multiprocessing.reduction import ForkingPickler
from typing import Any, cast

from troupe.client import records
from troupe.questions import ask

PROTOCOL = 5
# Codes of rejected jobs: the task's exception, or the reason why no task can run in this worker.
RAISED, UNFIT = 1, 2
TIRED = 125  # the exit status of a worker that has done all tasks that it may do

# In front of a value's pickle: other groups' answers do not begin with it.
VALUE = b"troupe.executor\n"

loads = pickle.loads
with_traceback: Any = process._ExceptionWithTraceback


class WorkerDied(BrokenProcessPool):
    """The process that did the task has ended; only this task has failed, and the executor continues.

    `reason` describes the end; `signal` is the name of the signal that killed it ("SIGKILL") or None; `attempts` counts the
    processes that the task has ended; where() and deaths() have details while the executor is open.
    """

    def __init__(self, reason: str, attempts: int = 1, job: str = "", socket: str | None = None) -> None:
        super().__init__(reason, attempts, job, socket)
        self.reason, self.attempts = reason, attempts
        self._job, self._socket = job, socket
        self.signal = reason.partition("killed by ")[2].partition(" ")[0] or None

    def deaths(self) -> list[Any]:
        """Reports of the deaths of these processes, the newest first: records of type Death in troupe-varlink(7), with pid,
        signal, resource usage, and standard error, which has faulthandler's traceback. OSError: the supervisor has ended."""
        return list(records(ask(self._socket, "Supervisor.ListDeaths", "deaths", False, {"job": self._job})))

    def where(self, timeout: float = 1) -> str | None:
        """Where the last process crashed, or hung, in one line: "parse_chunk, image.c:311"; None if that is not known. This
        follows the death by milliseconds: waits `timeout` seconds for it. deaths() has all threads as "stack"."""
        end = time.monotonic() + timeout
        while True:
            last: dict[str, Any] = next(iter(self.deaths()), {})
            if "stack" in last or "stack_missing" in last or time.monotonic() >= end:
                return cast("str | None", last.get("top"))
            time.sleep(0.02)

    def __str__(self) -> str:
        return f"the worker process ended: {self.reason}" + (f" ({self.attempts} attempts)" if self.attempts > 1 else "")


class TaskTimeout(WorkerDied, TimeoutError):
    """The task took longer than its time-out, so its process was ended."""


def by_value(value: object, error: Exception) -> bytes:
    try:
        cloudpickle = importlib.import_module("cloudpickle")
    except ImportError:
        raise error from None
    try:
        return bytes(cloudpickle.dumps(value, PROTOCOL))
    except Exception:
        raise error from None


def dumps(value: object) -> bytes:
    """Also pickles objects that multiprocessing can reduce: connections, sockets, partial functions."""
    buffer = io.BytesIO()
    pickler = pickle.Pickler(buffer, PROTOCOL)
    pickler.dispatch_table = reducers
    try:
        pickler.dump(value)
    except (pickle.PicklingError, AttributeError, TypeError) as error:
        return by_value(value, error)
    return buffer.getvalue()


reducers: dict[type, Any] = {**copyreg.dispatch_table, **ForkingPickler._extra_reducers}  # type: ignore[attr-defined]


def main_is_importable() -> bool:
    """Whether a worker finds the definitions in __main__: not if they were typed in or given with -c."""
    main = sys.modules.get("__main__")
    return getattr(main, "__spec__", None) is not None or hasattr(main, "__file__")


def pack_call(call: tuple[Any, ...]) -> bytes:
    function = call[0]
    if getattr(function, "__module__", None) == "__main__" and not main_is_importable():
        return by_value(call, pickle.PicklingError(f"{function!r} is in a __main__ that workers cannot import; "
                                                   "put it into a file, or install cloudpickle"))
    return dumps(call)


def pack_exception(error: BaseException) -> bytes:
    """Pickles it with its traceback as the text of its cause, like ProcessPoolExecutor; and as text, in case the pickle
    cannot be loaded."""
    text = "".join(traceback.format_exception(error))
    try:
        packed = dumps(with_traceback(error, error.__traceback__))
    except BaseException as unfit:  # pylint: disable=broad-except
        packed = dumps(RuntimeError(f"an exception that cannot be pickled ({unfit!r}):\n{text}"))
    return dumps((packed, text))


def load_value(answer: bytes) -> object:
    if not answer.startswith(VALUE):
        raise TypeError("the group's answer is no result of a task; its workers must run python3 -m troupe.executor.worker")
    return loads(memoryview(answer)[len(VALUE):])


def load_exception(packed: bytes) -> BaseException:
    inner, text = loads(packed)
    try:
        error: BaseException = loads(inner)
    except Exception as unfit:  # pylint: disable=broad-except
        return RuntimeError(f"an exception that cannot be unpickled ({unfit!r}):\n{text}")
    return error
