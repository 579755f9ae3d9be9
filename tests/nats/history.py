#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""What happened to jobs in a cluster, noted from outside, and whether it may happen: in the manner of Jepsen.

    history.py FILE     checks a history that the test of the cluster has written

A history is a list of events. Times are nanoseconds of CLOCK_REALTIME, which all nodes share. A job is the sequence of
its message in the stream.

    published  job n at                         the cluster has accepted the message with the number n
    start      job machine attempt at           a worker has begun
    end        job machine attempt at           a worker has done all of it
    result     job end n at                     the cluster has stored a result
    blow       node kind from to hits engine gentle held    something was done to a node until `to`; to servers: until
                                                            there are leaders again that hear all
    has        job machine at                   the supervisor says that it has it to do, and did not have it before that time
    told       job what seq by at               a server has told a machine that it has stored a result, or that it has found it,
                                                or the like; seq: its number in the stream of results
    left       job where                        what was not finished at the end
    sign       job delivery what by at          a server has heard this of a machine about a delivery of a message; for people

A blow hits machines: the one to which it happens, or those whose server it took; the latter is one of the engine. It is
gentle if the machine is asked to leave, and keeps what its workers have in hand, however long. `held`: the jobs that the machine had when
it came; other machines must take them over.
"""
import collections
import json
import sys

SECOND = 10**9
WORKERS = 2  # of each machine
SETTLING = SECOND  # until the acknowledgement of a job whose result is stored has arrived
LONG = SECOND  # work for which it is worth to say when a worker is free
GAP = SECOND // 10  # in which a worker that is free may not get to what comes
LATE = SECOND  # an answer that takes longer is in doubt, and one that says that the result was there before
DOUBT = 2 * SECOND  # until the machine asks whether such a result is still there


class Job:
    """All that happened to one job."""

    def __init__(self):
        self.published, self.starts, self.ends, self.results, self.seen, self.told = [], [], [], [], [], []

    def first(self, machine):
        return min(start["at"] for start in self.starts if start["machine"] == machine)

    def machines(self):
        """In the order in which they started it."""
        return sorted({start["machine"] for start in self.starts}, key=self.first)

    def in_hand(self, machines, at):
        """Whether a worker of one of these machines had it then, and went on until it had done it."""
        for machine in machines:
            before = [start["at"] for start in self.starts if start["machine"] == machine and start["at"] <= at]
            after = [start["at"] for start in self.starts if start["machine"] == machine and start["at"] > at]
            ends = [end["at"] for end in self.ends if end["machine"] == machine and before and end["at"] >= before[-1]]
            if ends and at <= ends[0] <= min(after, default=float("inf")):
                return True
        return False

    def kept(self, machines, at):
        """Whether one of them had begun it then, and has done it, however often its workers died, and no other has begun it."""
        return any(any(start["at"] <= at for start in self.starts if start["machine"] == machine) and
                   any(end["at"] >= at for end in self.ends if end["machine"] == machine) and
                   not any(start["at"] > at for start in self.starts if start["machine"] != machine) for machine in machines)

    def had_until(self, machine):
        """When the machine had no more to do with it."""
        last = max(start["at"] for start in self.starts if start["machine"] == machine)
        done = [end["at"] for end in self.ends if end["machine"] == machine and end["at"] >= last]
        stored = [result["at"] for result in self.results[:1]]
        if not done or not stored:
            return float("inf")
        settled = max(done + stored) + SETTLING
        late = stored[0] - done[0] > LATE
        double = any(told["what"] == "double" and last <= told["at"] <= settled for told in self.told)
        return settled + (late or double) * DOUBT


class History:
    def __init__(self, events, ack_wait):
        """ack_wait: of the consumer, in seconds."""
        self.jobs = collections.defaultdict(Job)
        self.blows, self.left, self.ack_wait = [], [], int(ack_wait * SECOND)
        for event in sorted(events, key=lambda event: event.get("at", 0)):
            if event["type"] == "blow":
                self.blows.append(event)
            elif event["type"] == "left":
                self.left.append(event)
            elif event["type"] != "sign":
                job = self.jobs[event["job"]]
                {"published": job.published, "start": job.starts, "end": job.ends, "result": job.results,
                 "has": job.seen, "told": job.told}[event["type"]].append(event)
        self.work = self._work()
        self.done = {result["n"] for job in self.jobs.values() for result in job.results}

    def check(self):
        """Returns a sentence for each thing that must not happen."""
        problems = [f"job {left['job']} is left in {left['where']}" for left in self.left]
        for number, job in sorted(self.jobs.items()):
            problems += [f"job {number} {problem}" for problem in self._check_job(job)]
        return problems + [problem for blow in self.blows for problem in self._check_take_over(blow)]

    def _check_job(self, job):
        if self._was_renumbered(job):
            return
        if not job.published:
            yield "was never accepted"
            return
        yield from self._check_result(job)
        yield from self._check_repetition(job)
        machines = job.machines()
        for n, later in enumerate(machines):
            for earlier in machines[:n]:
                if not any(self._explains(blow, job, *pair) for blow in self.blows
                           for pair in ((earlier, later), (later, earlier))):
                    yield (f"was started on {earlier}, and on {later} {(job.first(later) - job.first(earlier)) / SECOND:.3f} s later, "
                           "although nothing had happened to either")

    def _check_result(self, job):
        if not job.results and self._was_lost_by_servers(job):
            return
        if len(job.results) != 1 and not self._was_stored_twice(job):
            yield f"has {len(job.results)} results"
            return
        result = job.results[0]
        if result["end"] != "succeeded":
            yield f"has ended as {result['end']}"
        if any(result["n"] != published["n"] for published in job.published):
            yield f"has the result of another one, {result['n']}"
        if not any(end["at"] <= result["at"] for end in job.ends):
            yield "has a result before a worker has done it"

    def _was_renumbered(self, job):
        """Whether the message with this number is not the one for which servers have confirmed it, and they were hurt before:
        after leaders have changed, replicas of nats-server 2.9 may number messages differently. Each message has its result."""
        sent, done = {published["n"] for published in job.published}, {result["n"] for result in job.results}
        if sent == done or len(job.results) > 1 or not done and not sent <= self.done:
            return False
        at = job.results[0]["at"] if done else job.published[0]["at"]
        return any(blow["engine"] and blow["hits"] and blow["from"] <= at for blow in self.blows)

    def lost_by_servers(self):
        """The numbers of those whose results servers have lost, or whose messages, in whose places they have others."""
        lost = [job for job in self.jobs.values() if self._was_lost_by_servers(job) or self._was_renumbered(job)]
        return {published["n"] for job in lost for published in job.published} - self.done

    def _was_stored_twice(self, job):
        """Whether a replica has stored one publication several times, at one time by its leader's clock, when servers were hurt: one
        of nats-server 2.9 may do once more what it has done already, when it starts again."""
        times = {result["at"] for result in job.results}
        return len(times) == 1 and any(blow["engine"] and blow["to"] >= min(times) for blow in self.blows)

    def _was_lost_by_servers(self, job):
        """Whether they said that they have the result, were hurt, and have it no more. nats-server 2.9 does that."""
        return not job.results and any(told["what"] in ("stored", "found") and any(
            blow["engine"] and blow["to"] >= told["at"] for blow in self.blows) for told in job.told)

    def _check_repetition(self, job):
        """A machine recognises what it has done, unless it was hurt meanwhile."""
        for end in job.ends:
            again = [start["at"] for start in job.starts if start["machine"] == end["machine"] and start["at"] > end["at"]]
            if again and not any(self._strikes(blow, end["machine"]) and blow["from"] <= again[0]
                                 and end["at"] <= blow["to"] + self.ack_wait for blow in self.blows):
                yield f"was done by {end['machine']}, and started there again"

    @staticmethod
    def _strikes(blow, machine):
        return machine in blow["hits"] and not blow["gentle"]

    def _explains(self, blow, job, hurt, other):
        """Whether a blow is why a job of the first machine was started on the other one, too."""
        if hurt not in blow["hits"] or job.first(other) < blow["from"] or job.had_until(hurt) < blow["from"]:
            return False
        if blow["gentle"]:  # it gives back what no worker has, or what a worker that died had
            return not any(end["machine"] == hurt for end in job.ends)
        began = job.first(hurt)
        # What was on its way to the machine may arrive afterwards: TCP's pauses double while nothing answers.
        arrived = blow["to"] + (blow["to"] - blow["from"]) + self.ack_wait
        return began <= blow["to"] or began <= arrived and job.published[0]["at"] <= blow["to"]

    def _check_take_over(self, blow):
        lasted = blow["to"] - blow["from"] >= 2 * self.ack_wait
        begin = blow["from"] if lasted else blow["to"]  # a machine that is back in time may go on itself
        deadline = self._deadline(begin, blow["hits"])
        away = [] if blow["gentle"] else blow["hits"]  # a machine that drains works off its queue
        for number in set(blow["held"]):
            job = self.jobs[number]
            if (blow["gentle"] or not lasted) and job.in_hand(blow["hits"], begin):
                continue
            if blow["gentle"] and job.kept(blow["hits"], begin):
                continue
            signs = [result["at"] for result in job.results]
            signs += [note["at"] for note in job.starts + job.ends + job.seen
                      if note["at"] >= blow["from"] and (not lasted or note["machine"] not in away)]
            if not signs or min(signs) > deadline:
                late = f"{(min(signs) - begin) / SECOND:.3f} s later" if signs else "never"
                yield (f"job {number}, which {blow['node']} had at its {blow['kind']}, was taken over {late}; "
                       f"bound: {(deadline - begin) / SECOND:.3f} s")

    def _deadline(self, begin, hurt):
        """Nothing is delivered while the servers elect leaders, or while all workers of the other machines are busy."""
        deadline = max(begin + 2 * self.ack_wait, self._room(begin + self.ack_wait, hurt) + SETTLING)
        for blow in sorted(self.blows, key=lambda blow: blow["from"]):
            if blow["engine"] and blow["hits"] and blow["from"] <= deadline and blow["to"] >= begin:
                deadline = max(deadline, blow["to"] + 2 * self.ack_wait)
        return deadline

    def _room(self, at, hurt):
        """The first time since then at which a worker of another machine is free."""
        return min((self._free(work, at) for machine, work in self.work.items() if machine not in hurt), default=at)

    @staticmethod
    def _free(work, at):
        """Short work that it has already may go before in between."""
        def ends(at):
            return [end for start, end in work if end - start >= LONG and start <= at < end]
        while len(ends(at)) == WORKERS or len(ends(at + GAP)) == WORKERS:
            at = min(ends(at) if len(ends(at)) == WORKERS else ends(at + GAP))
        return at

    def _work(self):
        """What workers did: the machine, and when the attempts began and ended that ended a job."""
        work = collections.defaultdict(list)
        for job in self.jobs.values():
            starts = {(start["machine"], start["attempt"]): start["at"] for start in job.starts}
            for end in job.ends:
                if begin := starts.get((end["machine"], end["attempt"])):
                    work[end["machine"]].append((begin, end["at"]))
        return work

    def figures(self):
        """What a run was like."""
        moved = [job for job in self.jobs.values() if len(job.machines()) > 1]
        done_twice = [job for job in moved if len({end["machine"] for end in job.ends}) > 1]
        take_overs = []
        for blow in self.blows:
            for number in set(blow["held"]):
                later = [start["at"] for start in self.jobs[number].starts
                         if blow["from"] <= start["at"] <= blow["to"] and start["machine"] not in blow["hits"]]
                take_overs += [(min(later) - blow["from"]) / SECOND] if later else []
        starts = sum(len(job.starts) for job in self.jobs.values())
        return {"jobs": len(self.jobs), "starts": starts, "crashes": starts - sum(len(job.ends) for job in self.jobs.values()),
                "on several machines": len(moved), "done twice": len(done_twice), "blows": len(self.blows),
                "messages with another number": sum(self._was_renumbered(job) for job in self.jobs.values()),
                "results stored twice by servers": sum(len(job.results) > 1 and self._was_stored_twice(job) for job in self.jobs.values()),
                "jobs lost by servers": len(self.lost_by_servers()),
                "found lost and published again": sum(any(told["what"] == "missing" for told in job.told) for job in self.jobs.values()),
                "taken over": len(take_overs), "slowest take-over": f"{max(take_overs, default=0):.2f} s"}


def main():
    with open(sys.argv[1], encoding="utf-8") as file:
        ack_wait, *events = [json.loads(line) for line in file]
    history = History(events, ack_wait)
    problems = history.check()
    print(*problems, history.figures(), sep="\n")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
