# SPDX-License-Identifier: MIT
"""What a supervisor has promised about jobs, each with the position in the disk's log at which the promise was made."""
import contextlib
import re

from troupe import VarlinkError

LARGE = 512 << 10
ENDS = ("succeeded", "rejected", "cancelled", "dead")


class Kind:
    """Jobs of one kind. `commands` are for tests/e2e/workers/actor.c; %s is the job's own text.

    Payloads have `size` bytes at least.
    """

    def __init__(self, commands, end, chance, worker_ends=True, size=0, **options):
        self.size = size
        self.commands, self.end, self.chance, self.options = commands, end, chance, options
        self.worker_ends = worker_ends  # without being asked


# max_retries is part of the promise: a dead job has had one attempt more.
KINDS = {
    "echo": Kind("echo %s", "succeeded", 40),
    "reject": Kind("reject 3 %s", "rejected", 10),
    "again": Kind("before 2 retry 1 not yet\necho %s", "succeeded", 10),
    "give-up": Kind("retry 1 %s", "dead", 10, max_retries=1),
    "crash": Kind("crash kill", "dead", 3, max_retries=0),
    "soon": Kind("echo %s", "succeeded", 10, delay_usec=20000),
    "late": Kind("echo %s", "succeeded", 5, worker_ends=False, delay_usec=24 * 3600 * 1000000),
    "hold": Kind("until-cancelled", "cancelled", 3, worker_ends=False),
    "big": Kind("echo %s\n\n" + 100000 * "x", "succeeded", 4),
    "large": Kind("echo %s\n\n", "succeeded", 4, size=LARGE),
}


class Job:
    """A job and what was promised about it. Positions: None = not promised."""

    def __init__(self, number, kind, options):
        self.text, self.kind = f"text-{number}", KINDS[kind]
        self.options = {**self.kind.options, **options}
        self.id = None
        self.shown = None  # the job as the supervisor has shown it after it was created
        self.created = None
        self.cancel_asked = False
        self.cancelled = None  # the request was accepted
        self.ended = None
        self.end = None  # the job as it was shown at its end

    @property
    def payload(self):
        payload = f"complain ran {self.text}\n" + self.kind.commands.replace("%s", self.text)
        return payload.ljust(self.kind.size, "x")

    def __str__(self):
        return f"job {self.id} ({self.payload[:60]!r})"

    def may_end(self):
        """The states in which it may end."""
        return {self.kind.end, "cancelled"} if self.cancel_asked else {self.kind.end}


class Broken(Exception):
    """A promise that was not kept."""


def made(position, now):
    return position is not None and position <= now


def expect(condition, job, problem, found=None):
    if not condition:
        raise Broken(f"{job} {problem}: {found}")


def check_end(job, found):
    """Compares a job that has ended with what its kind promises."""
    expect(found["state"] in job.may_end(), job, f"ends in none of the states {sorted(job.may_end())}", found)
    if found["state"] in ("succeeded", "rejected"):
        expect(found.get("result", {}).get("data", job.text) == job.text, job, "has another result", found)
    if found["state"] == "dead":
        expect(found["failed_attempts"] >= found["max_attempts"], job, "is dead after too few attempts", found)


def check_same(job, found, now):
    """Compares what the supervisor shows after the cut, before the job goes on, with what it has shown before."""
    if made(job.ended, now):
        for member in ("state", "attempt", "result", "code"):
            expect(found.get(member) == job.end.get(member, found.get(member)), job,
                   f"has another {member} than it had at its end", found)
        return
    for member in "priority", "key", "created_at", "max_attempts":
        expect(not job.shown or found[member] == job.shown[member], job, f"has another {member} than at first", found)
    if found["state"] == "delayed" and job.shown and job.shown["state"] == "delayed":
        expect(found["next_attempt_at"] == job.shown["next_attempt_at"], job, "has another date than at first", found)
    if made(job.cancelled, now) and found["state"] not in ENDS:
        expect(found["cancel_requested"], job, "is not cancelled any more", found)


class Check:
    """Checks a supervisor that was started after a cut at position `now`, and stops it."""

    def __init__(self, supervisor, jobs, now):
        self.supervisor, self.now = supervisor, now
        self.done = [job for job in jobs if made(job.ended, now)]
        self.promised = [job for job in jobs if made(job.created, now)]

    def shown(self):
        jobs, _ = self.supervisor.pages("List", "jobs", ended=True)
        found = {}
        for job in jobs:
            if job["id"] in found:
                raise Broken(f"job {job['id']} is there twice: {found[job['id']]}, {job}")
            found[job["id"]] = job
        return found

    def run(self):
        found = self.shown()
        for job in self.promised:
            if job.id not in found:  # List does not wait until all is loaded
                found[job.id] = self._get(job)
            check_same(job, found[job.id], self.now)
        for job in self.done:
            expect(found.get(job.id, job.end)["state"] in ENDS, job, "is there again after its end", found.get(job.id))
        for job in self.promised:
            if found[job.id]["state"] not in ENDS:
                self._see_it_end(job)
            elif not made(job.ended, self.now):
                check_end(job, found[job.id])
        self._end_the_others(found)
        self._check_dead_letters()
        self.supervisor.stop()
        self._check_runs()

    def _get(self, job):
        try:
            return self.supervisor.job(job.id)
        except VarlinkError as error:
            raise Broken(f"{job} is gone: {error}") from None

    def _see_it_end(self, job):
        if not job.kind.worker_ends:
            self._cancel(job)
        end = self._wait(job)
        check_end(job, end)
        expect(not made(job.cancelled, self.now) or end["state"] == "cancelled", job, "is not cancelled", end)

    def _wait(self, job):
        try:
            return self.supervisor.wait_job(job.id)
        except VarlinkError as error:
            raise Broken(f"{job} does not end: {error}") from None

    def _cancel(self, job):
        found = self._get(job)
        if found["state"] not in ENDS and not found["cancel_requested"]:
            self.supervisor.call("Cancel", id=job.id)
        job.cancel_asked = True

    def _end_the_others(self, found):
        """Jobs that were written, and not promised yet, may be there and end too."""
        promised = {job.id for job in self.promised}
        for id, other in found.items():
            if id not in promised and other["state"] not in ENDS:
                with contextlib.suppress(VarlinkError):  # it has ended, and is not kept
                    self.supervisor.call("Cancel", id=id)
                    self.supervisor.wait_job(id)

    def _check_runs(self):
        ran = set(re.findall(r"\] ran (\S+)", self.supervisor.log()))
        for job in self.done:
            expect(job.text not in ran, job, "has run again after its end was told", job.end)
        for job in self.promised:
            expect(not made(job.cancelled, self.now) or job.text not in ran, job, "has run although it was cancelled")

    def _check_dead_letters(self):
        letters, _ = self.supervisor.pages("io.troupe.Actors.ListDeadLetters", "letters")
        ids = [letter.get("job") for letter in letters]
        for job in {*self.promised, *self.done}:
            state = job.end["state"] if made(job.ended, self.now) else self._get(job)["state"]
            expect(ids.count(job.id) == (state == "dead"), job, f"is {state}, and has {ids.count(job.id)} dead letters")
