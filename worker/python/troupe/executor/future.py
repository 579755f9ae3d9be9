# SPDX-License-Identifier: MIT
"""The futures of an executor."""
import concurrent.futures
import logging
import threading
import time
from collections.abc import Callable
from typing import Any, Protocol

LOGGER = logging.getLogger("concurrent.futures")
PATIENCE = 0.001  # seconds for which a thread that waits for a result does the work of the background thread


class Owner(Protocol):
    """The interface of the dispatcher for futures."""

    def attend(self, future: "Future", deadline: float | None) -> None:
        """Works for the executor for a moment, as long as other tasks end, or until the future is done."""

    def call_back(self, callback: Callable[[], object]) -> None:
        """Makes the background thread call it."""

    def take_back(self, futures: "list[Future]") -> None:
        """Calls withdraw() for tasks that no worker has."""


class Future(concurrent.futures.Future[Any]):
    """Waits like any other future, but first works for its executor for a moment."""

    _condition: threading.Condition
    _state: str
    _result: Any
    _exception: BaseException | None
    _done_callbacks: list[Callable[[Any], object]]

    def __init__(self, owner: Owner, timeout: float | None = None) -> None:
        super().__init__()
        self.owner, self.timeout = owner, timeout

    def is_over(self) -> bool:
        """Like done(), but without the lock: only for callers that check again."""
        return self._state not in ("PENDING", "RUNNING")

    def take(self) -> bool:
        """Returns whether to run the task: it was not cancelled, and no longer can be. Idempotent."""
        with self._condition:
            if self._state == "PENDING":
                self._state = "RUNNING"
            elif self._state == "CANCELLED":
                return self.set_running_or_notify_cancel()
            return self._state == "RUNNING"

    def cancel(self) -> bool:
        """Also takes back a task that the supervisor has queued; only a task that a worker has cannot be cancelled."""
        if not super().cancel() and not self.is_over():
            self.owner.take_back([self])
        return self.cancelled()

    def withdraw(self) -> None:
        """Cancels a task that was sent to the supervisor and has not begun. Idempotent."""
        with self._condition:
            if self._state == "RUNNING":
                self._state = "PENDING"
        if super().cancel():
            self.take()

    def end(self, value: Any, error: BaseException | None = None) -> None:
        """Idempotent: the first end counts. Call it again if Ctrl-C has stopped it."""
        try:
            if error is not None:
                self.set_exception(error)
            else:
                self.set_result(value)
        except concurrent.futures.InvalidStateError:
            pass

    def result(self, timeout: float | None = None) -> Any:
        deadline = None if timeout is None else time.monotonic() + timeout
        if self._state != "FINISHED" and (timeout is None or timeout >= PATIENCE):
            self.owner.attend(self, deadline)
        if self._state == "FINISHED" and self._exception is None:  # both are final once the state is this
            return self._result
        return super().result(None if deadline is None else max(deadline - time.monotonic(), 0))

    def _invoke_callbacks(self) -> None:
        """The background thread runs callbacks, since they may need locks that the current thread holds."""
        if not self._done_callbacks:
            return
        if self.cancelled():
            self.call_each()
        else:
            self.owner.call_back(self.call_each)

    def call_each(self) -> None:
        """Calls all callbacks, even if one of them raises SystemExit."""
        for callback in self._done_callbacks:
            try:
                callback(self)
            except BaseException:  # pylint: disable=broad-except
                LOGGER.exception("exception calling callback for %r", self)
