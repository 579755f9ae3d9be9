# SPDX-License-Identifier: MIT
"""Contents of jobs, states and messages."""
from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import Iterable
from typing import Any, TypedDict

from troupe._troupe import Result

Buffer = bytes | bytearray | memoryview


class Options(TypedDict, total=False):
    """
    Options of a job. All are optional: without an option, or with None, the group's configuration decides. Times are in seconds.

    id             the job's id, instead of a generated one; FileExistsError if a live job or a kept result has it
    key            the routing key, at most 255 bytes; it chooses the cell in a group with Cells=by-key
    max_retries    attempts after the first one
    timeout        for each attempt; math.inf: no limit
    backoff_min    the pause before the second attempt
    backoff_max    the longest pause
    priority       0 (first) to 63 (last) within its queue; 32 if not given
    delay          how long to wait before the first attempt
    at             the earliest start instead, in seconds since 1970
    wait           how long to wait for room in a full queue; math.inf: without limit; OSError EBUSY: there was no room
    deadline       the job is cancelled if it has not ended after this time, including all waits and attempts
    unique         no two live jobs of the group have the same unique key, at most 255 bytes; the group's Unique= makes one if
                   it is not given
    on_conflict    if a live job has that key: "existing" (it takes the place of this one), "reject" (OSError ENOTUNIQ),
                   "replace" (of a job that waits), "requeue" (one more run after the running one)
    debounce       with unique: the job replaces one that waits, and begins after this time
    debounce_max   with debounce: but not later than this time after the first of those
    cost           units that it takes of each limit of its group, 1 to 255
    after          the ids of up to 64 jobs, as a list or separated by commas: the job waits until all of them have ended
    condition      with after: as which end "success" (if not given), "failure" or "end" (either) counts; otherwise the job
                   is cancelled
    batch          the id of a batch of which the job becomes a member
    tags           up to eight words with blanks between, by which the history finds the job
    traceparent    the submitter's span, as a header traceparent of W3C Trace Context (version 00)
    keep_result    with do() and map(): also keep the result for ResultTTLSec=, like create()
    """

    id: str | None
    key: str | Buffer | None
    max_retries: int
    timeout: float | None
    backoff_min: float | None
    backoff_max: float | None
    priority: int
    delay: float | None
    at: float | None
    wait: float | None
    deadline: float | None
    keep_result: bool
    unique: str | Buffer | None
    on_conflict: str | None
    debounce: float | None
    debounce_max: float | None
    cost: int
    after: str | Iterable[str] | None
    condition: str | None
    batch: str | None
    tags: str | None
    traceparent: str | None


class Content(ABC):
    """An object with a payload."""

    __slots__ = ()

    @property
    @abstractmethod
    def payload(self) -> bytes:
        """A new copy with each call."""

    @property
    def text(self) -> str:
        """The payload as text."""
        return self.payload.decode()

    def json(self) -> Any:
        """The payload, which is JSON."""
        return json.loads(self.payload)


def _text(result: Result) -> str:
    """The result as text."""
    return result.data.decode()


def _json(result: Result) -> Any:
    """The result, which is JSON."""
    return json.loads(result.data)


Result.text = property(_text)  # type: ignore[assignment,method-assign,misc]
Result.json = _json  # type: ignore[assignment,method-assign]


def encode(value: object) -> Buffer:
    """Returns bytes unchanged, text as UTF-8, None as empty data, and other values as JSON."""
    if isinstance(value, (bytes, bytearray, memoryview)):
        return value
    if isinstance(value, str):
        return value.encode()
    return b"" if value is None else json.dumps(value).encode()
