# SPDX-License-Identifier: MIT
"""Notices workers that end before they are ready: otherwise their tasks would only seem to take long."""
import json
import select
from collections.abc import Callable

from troupe._troupe import Query

FAILURES_MAX = 10  # permitted in a row once a worker has been ready, since a few may have been killed on purpose


class Starts:
    """Reads the supervisor's events about workers. Only for the background thread."""

    def __init__(self, watch: Callable[[], Query | None], poll: select.poll) -> None:
        self.watch, self.poll = watch, poll
        self.came_up = False
        self.begin()

    def begin(self) -> None:
        self.query = self.watch()
        if self.query is not None:
            self.poll.register(self.query.fd(), select.POLLIN)
        self.ready: dict[str, int] = {}  # the last generation that was ready, by worker
        self.failures = 0

    def look(self) -> str | None:
        """Reads new events. Returns why no worker becomes ready, or None."""
        while self.query is not None:
            try:
                text = self.query.next(0)
            except BlockingIOError:
                return None
            except OSError:  # read too late, or the supervisor has crashed
                self.poll.unregister(self.query.fd())
                self.begin()
                return None
            if text is not None and self.fails(event := json.loads(text)):
                return str(event.get("death", {}).get("detail") or event.get("message"))
        return None

    def fails(self, event: dict[str, object]) -> bool:
        worker, generation = str(event.get("worker")), event.get("generation", 0)
        assert isinstance(generation, int)
        if event["type"] in ("worker.ready", "worker.adopted"):
            self.ready[worker] = generation
            self.failures, self.came_up = 0, True
        elif event["type"] == "worker.spawn-failed" or (
                event["type"] == "worker.died" and self.ready.get(worker, -1) < generation):
            self.failures += 1
        return self.failures > (FAILURES_MAX if self.came_up else 0)
