# SPDX-License-Identifier: MIT
"""Jobs that belong together: chains and batches."""
from __future__ import annotations

import contextlib
from abc import ABC, abstractmethod
from collections.abc import Iterable
from typing import Unpack

from troupe.data import Options


class Creator(ABC):
    """Creates jobs, and chains of them."""

    @abstractmethod
    def create(self, group: str, data: object = None, **options: Unpack[Options]) -> str:
        """Returns the id of a new job when it is accepted."""

    @abstractmethod
    def cancel(self, id: str) -> None:
        """Requests the cancellation of a job."""

    def chain(self, steps: Iterable[tuple[str, object]], **options: Unpack[Options]) -> list[str]:
        """
        Creates a job for each step, a group with data, and returns their ids. A job begins when the one before has succeeded,
        and is cancelled when that can no longer be. The options are those of each job, except for `after`, which are the
        first one's. An exception cancels the jobs that have been created.
        """
        if options.get("id") is not None or options.get("condition") is not None:
            raise ValueError("chain() chooses the ids of its jobs and what they wait for")
        given, ids = options.copy(), list[str]()
        try:
            for group, data in steps:
                ids.append(self.create(group, data, **given))
                given["after"] = ids[-1]
        except BaseException:
            for id in reversed(ids):
                with contextlib.suppress(OSError):
                    self.cancel(id)
            raise
        return ids


class Batch:
    """A batch that is open. Its job, `id`, ends when it has been closed and all members have ended."""

    def __init__(self, creator: Creator, id: str) -> None:
        self._creator = creator
        self.id = id

    def create(self, group: str, data: object = None, **options: Unpack[Options]) -> str:
        """Returns the id of a new member when it is accepted."""
        options["batch"] = self.id
        return self._creator.create(group, data, **options)
