# SPDX-License-Identifier: MIT
"""Contents of jobs, states and messages."""
from __future__ import annotations

import json
from abc import ABC, abstractmethod
from typing import Any, TypedDict

Buffer = bytes | bytearray | memoryview


class Options(TypedDict, total=False):
    """Of a job, as in troupe_job_options of troupe(3). Times are seconds."""

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


class Content(ABC):
    """What has a payload."""

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


def encode(value: object) -> Buffer:
    """Bytes as they are, text as UTF-8, None as nothing, all else as JSON."""
    if isinstance(value, (bytes, bytearray, memoryview)):
        return value
    if isinstance(value, str):
        return value.encode()
    return b"" if value is None else json.dumps(value).encode()
