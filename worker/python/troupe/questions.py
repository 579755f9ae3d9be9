# SPDX-License-Identifier: MIT
"""Questions of clients over the control socket, with a connection for each question."""
from __future__ import annotations

import json
from abc import ABC, abstractmethod
from typing import Any, Generic, TypeVar

from troupe import _troupe

Record = dict[str, Any]
Many = TypeVar("Many")
One = TypeVar("One")


def ask(path: str | None, method: str, member: str | None, more: bool, parameters: Record) -> _troupe.Query:
    query = _troupe.Query(path)
    given = {name: value for name, value in parameters.items() if value is not None}
    query.call("io.troupe." + method, member, json.dumps(given), more)
    return query


def explained(error: OSError, path: str | None, method: str, **parameters: Any) -> OSError:
    """Returns the error with the text that troupectl prints, by repeating the call over the socket."""
    try:
        ask(path, method, None, False, parameters).next()
    except OSError as told:
        return OSError(error.errno, told.strerror)
    return error


class Questions(ABC, Generic[Many, One]):
    """Questions to the supervisor. Records are those of troupe-varlink(7), which also lists methods, parameters, filters."""

    _path: str | None

    @abstractmethod
    def _many(self, query: _troupe.Query) -> Many:
        """All records of the answer."""

    @abstractmethod
    def _one(self, query: _troupe.Query) -> One:
        """The only record."""

    def call(self, method: str, **parameters: Any) -> One:
        """
        Calls any method of troupe-varlink(7), such as "Supervisor.GetInfo", and returns its answer. Parameters that are None
        are omitted.
        """
        return self._one(ask(self._path, method, None, False, parameters))

    def job(self, id: str) -> One:
        """A job with its state: a record of type Job. ProcessLookupError: there is no such job."""
        return self._one(ask(self._path, "Jobs.Get", "job", False, {"id": id}))

    def jobs(self, group: str | None = None, *, state: str | None = None, ended: bool = False) -> Many:
        """
        Live jobs of a group or a cell, or all: records of type Job. `state`: only jobs in that state, such as "queued".
        `ended`: also ended jobs whose results are kept.
        """
        return self._many(ask(self._path, "Jobs.List", "jobs", False, {"group": group, "state": state, "ended": ended}))

    def history(self, group: str | None = None, **filter: Any) -> Many:
        """
        Ended jobs of groups with History=, the newest first: records of type Job. `filter`: parameters of Jobs.History, such
        as key="a", state="dead", text="timeout" or since_at=1767225600000000; `limit` is that of one answer.
        """
        return self._many(ask(self._path, "Jobs.History", "jobs", False, {"group": group, **filter}))

    def dead_letters(self, recipient: str | None = None, **filter: Any) -> Many:
        """
        Jobs and messages that were not handled, the newest first: records of type DeadLetter. `filter`: the other members
        of the type Filter, such as cause="oom" or since_at=1767225600000000.
        """
        given = {"recipient": recipient, **filter}
        return self._many(ask(self._path, "Actors.ListDeadLetters", "letters", False,
                              {"filter": {name: value for name, value in given.items() if value is not None}}))

    def move(self, id: str | None = None, *, to: str, dry_run: bool = False, **filter: Any) -> One:
        """
        Moves a job that waits to the group `to`, or all that match a filter: group and other members of the type JobFilter.
        Returns the answer of Jobs.Move: `changed` and `failed` are numbers. `dry_run`: only counts them.
        """
        return self._change("Jobs.Move", id, filter, dry_run, to=to)

    def set(self, id: str | None = None, *, priority: int | None = None, delay: float | None = None, dry_run: bool = False,
            **filter: Any) -> One:
        """Sets the priority of jobs that wait, or lets them begin no earlier than in `delay` seconds: otherwise like move()."""
        return self._change("Jobs.Set", id, filter, dry_run, priority=priority,
                            delay_usec=None if delay is None else max(1, round(delay * 1e6)))

    def run_now(self, id: str | None = None, *, dry_run: bool = False, **filter: Any) -> One:
        """Ends the delays of jobs, and the pauses between their attempts: otherwise like move()."""
        return self._change("Jobs.RunNow", id, filter, dry_run)

    def cancel_all(self, group: str, *, dry_run: bool = False, **filter: Any) -> One:
        """Cancels all live jobs that match a filter like that of move(). `cancelled` counts them."""
        return self._one(ask(self._path, "Jobs.CancelAll", None, False, {"group": group, "dry_run": dry_run or None, **filter}))

    def _change(self, method: str, id: str | None, filter: Record, dry_run: bool, **parameters: Any) -> One:
        return self._one(ask(self._path, method, None, False,
                             {"id": id, "filter": filter or None, "dry_run": dry_run or None, **parameters}))

    def requeue(self, letter: int | None = None, *, to: str | None = None, **filter: Any) -> One:
        """
        Sends a dead letter again, or all that match a filter like that of dead_letters(): to their recipients, or to `to`.
        Returns the answer of Actors.Requeue: `requeued` and `failed` are numbers, `job` is the new id of a single job.
        """
        if (letter is None) == (not filter):
            raise ValueError("requeue() takes either a dead letter's id or a filter")
        return self._one(ask(self._path, "Actors.Requeue", None, False, {"id": letter, "to": to, "filter": filter or None}))

    def stream(self, id: str, *, after: int = 0) -> Many:
        """
        What a job emits, until its end: records of type Item, with `at` and `data`. `after`: only items after that `at`.
        """
        return self._many(ask(self._path, "Jobs.Stream", "items", True, {"id": id, "after": after}))

    def pause_jobs(self, target: str) -> One:
        """Makes a group or a cell hand out no jobs until resume_jobs(). Jobs are accepted and queued."""
        return self.call("Supervisor.Pause", target=target)

    def resume_jobs(self, target: str) -> One:
        """Makes a group or a cell hand out jobs again, even a drained one."""
        return self.call("Supervisor.Resume", target=target)

    def deaths(self, target: str | None = None, *, job: str | None = None) -> Many:
        """
        Deaths of workers of a group or a cell, or all, the newest first: records of type Death. `job`: only workers that
        were running this job.
        """
        return self._many(ask(self._path, "Supervisor.ListDeaths", "deaths", False, {"target": target, "job": job}))

    def watch(self, target: str | None = None, *, jobs: bool = False, replay: bool = False) -> Many:
        """
        Events of a group, a cell, a worker, or all as they happen: records of type Event. `jobs`: also events of every job.
        `replay`: first the events that are kept.
        """
        return self._many(ask(self._path, "Supervisor.Watch", "events", True,
                              {"target": target, "jobs": jobs or None, "replay": replay or None}))
