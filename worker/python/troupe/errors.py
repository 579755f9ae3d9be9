# SPDX-License-Identifier: MIT
"""Errors of jobs. Errors of the connection are OSError, with its subclasses and numbers."""
from __future__ import annotations

import re

from troupe import _troupe
from troupe._troupe import Result


class Error(Exception):
    """The base of all exceptions of this package, except OSError, RuntimeError and Cancelled."""


class Reject(Error):
    """A handler raises it to reject its job, which is final. `data` is the job's result."""

    def __init__(self, data: object = b"", code: int = 1) -> None:
        super().__init__(data, code)
        self.data = data
        self.code = code


class Retry(Error):
    """
    A handler raises it for another attempt after a pause of its choice: `after` seconds, at most 366 days. The attempt
    counts as failed.
    """

    def __init__(self, reason: str = "", after: float = 0, code: int = 1) -> None:
        super().__init__(reason, after, code)
        if not 0 <= after <= 366 * 24 * 3600:
            raise ValueError(f"after is {after}: it must be a number of seconds from 0 to 31622400 (366 days)")
        self.reason = reason
        self.after = after
        self.code = code


class Cancelled(BaseException):
    """Raised in a handler whose job's cancellation was requested. Not an Exception, so that `except Exception` lets it pass."""


class JobError(Error):
    """A job ended without success, as described by `result`."""

    def __init__(self, result: Result) -> None:
        verb = "is" if result.end == "dead" else "was"
        said = f"job {result.id} {verb} "
        if not result.reason.startswith(result.end):  # such as "cancelled by uid 0"
            said += result.end + (": " if result.reason else "")
        super().__init__(said + result.reason)
        self.result = result


class Rejected(JobError):
    """Its handler rejected it. `result.data` and `result.code` are the handler's."""


class Dead(JobError):
    """No other attempt is made: `result.cause` is attempts or payload_lost. `result.reason` describes the last attempt."""


class JobCancelled(JobError):
    """It was cancelled: `result.cause` is requested, withdrawn, deadline or group."""


ENDS: dict[str, type[JobError]] = {"rejected": Rejected, "cancelled": JobCancelled, "dead": Dead}


def is_own(error: BaseException) -> bool:
    """Whether the extension's call itself raised the exception, not a callback in it. Called where it is caught."""
    return error.__traceback__ is not None and error.__traceback__.tb_next is None


def refused(error: int | None, group: str, reason: str = "") -> OSError:
    """Makes the error for a group that has refused a job, with the text that troupectl prints, and our names of options."""
    reason = re.sub(r"^(\w+)_usec:", r"\1:", reason)
    return OSError(error, _troupe.explain_refused(error or 0, group, reason))


def checked(result: Result, group: str | None = None) -> Result:
    """Returns the result of a job that succeeded; otherwise raises an exception that says how the job ended."""
    if result.error:
        raise refused(result.error, group, result.reason) if group else OSError(result.error, result.reason)
    if result.end in ENDS:
        raise ENDS[result.end](result)
    return result
