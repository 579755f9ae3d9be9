# SPDX-License-Identifier: MIT
"""A fleet of machines with trouped that take jobs from streams of NATS JetStream, in steps of a second.

Jobs are an amount, not single ones: a million a second are too many to follow. What is followed are the streams, each
with its queue, its leader and the machines that take from it, and failures, which come at random. Costs are measured
(costs.json, made by measure). Nothing here knows Troupe's code; README.md says what is left out.
"""
import collections
import dataclasses
import heapq
import random

SECOND_US = 1e6


@dataclasses.dataclass
class Costs:
    """CPU time in µs per job."""
    leader: float  # of the server that leads the stream: job stored, delivered, acknowledged, result stored
    follower: float  # of each other server that has the stream
    bridge: float  # troupe-nats
    supervisor: float  # trouped
    job_bytes: float = 600  # on the disk of each server that has the stream, and over its network, job and result


@dataclasses.dataclass
class Fleet:
    jobs_per_s: float = 1e6
    machines: int = 1000
    machine_cores: float = 16
    job_us: float = 5000  # CPU time of the job itself
    in_flight: int = 64  # of a machine: InFlight=
    streams: int = 100
    servers: int = 60
    server_cores: float = 16
    stream_cores: float = 1.0  # a server works on a stream in one thread at a time
    replicas: int = 3
    server_disk_bytes_per_s: float = 1e9
    ack_wait_s: float = 30
    machine_mtbf_s: float = 30 * 86400.0
    machine_repair_s: float = 600
    server_mtbf_s: float = 30 * 86400.0
    server_repair_s: float = 600
    election_s: float = 5  # without a leader


class Stream:
    """Its jobs: those that wait, and those that dead machines had, by when the server delivers them again."""

    def __init__(self, machines):
        self.machines = machines
        self.waiting = 0.0
        self.lost = collections.deque()
        self.n_lost = 0.0
        self.leaderless_until = 0
        self.arrived = self.done = self.again = 0.0
        self.marks = collections.deque()  # (arrived by then, time): gives the age of what is done


class Simulation:
    def __init__(self, fleet, costs, seed=1):
        self.fleet, self.costs, self.random = fleet, costs, random.Random(seed)
        self.now = 0
        base, more = divmod(fleet.machines, fleet.streams)
        self.streams = [Stream(base + (i < more)) for i in range(fleet.streams)]
        self.servers_up = fleet.servers
        self.returns = []  # (time, what comes back)
        self.delays = collections.Counter()  # seconds: jobs
        self.longest_queue = 0.0
        self.busiest = collections.Counter()  # what limited a stream that had jobs waiting: seconds

    # ---- what limits a stream ----

    def limits(self, stream):
        """Jobs per second that each part can do for this stream now."""
        fleet, costs = self.fleet, self.costs
        share = self.servers_up / fleet.streams
        of_servers = costs.leader + (fleet.replicas - 1) * costs.follower
        of_machine = fleet.job_us + costs.bridge + costs.supervisor
        leads = fleet.stream_cores if self.now >= stream.leaderless_until else 0
        return {
            "leader": leads * SECOND_US / costs.leader,
            "server CPU": share * fleet.server_cores * SECOND_US / of_servers,
            "server disk": share * fleet.server_disk_bytes_per_s / (costs.job_bytes * fleet.replicas),
            "machines": stream.machines * fleet.machine_cores * SECOND_US / of_machine,
            "bridge": stream.machines * SECOND_US / costs.bridge,
        }

    # ---- failures ----

    def fails(self, count, mtbf_s):
        """How many of so many fail in a second."""
        expected, n = count / mtbf_s, 0
        while expected > 0 and self.random.random() < min(expected, 1):
            n, expected = n + 1, expected - 1
        return n

    def fail(self):
        fleet = self.fleet
        for _ in range(self.fails(sum(stream.machines for stream in self.streams), fleet.machine_mtbf_s)):
            self.lose_machine(self.random.choices(self.streams, [stream.machines for stream in self.streams])[0])
        for _ in range(self.fails(self.servers_up, fleet.server_mtbf_s)):
            self.lose_server()
        while self.returns and self.returns[0][0] <= self.now:
            _, _, comes_back = heapq.heappop(self.returns)
            comes_back()

    def later(self, seconds, action):
        heapq.heappush(self.returns, (self.now + seconds, self.random.random(), action))

    def lose_machine(self, stream):
        """What it had in hand is delivered again after AckWait."""
        def comes_back():
            stream.machines += 1
        had = min(self.fleet.in_flight, stream.done / max(self.now, 1) / stream.machines * self.fleet.job_us / SECOND_US
                  + self.fleet.in_flight * (stream.waiting > 0))
        stream.machines -= 1
        # They were counted as done when they were handed out.
        had = min(had, stream.done)
        stream.done -= had
        stream.again += had
        stream.lost.append((self.now + self.fleet.ack_wait_s, had))
        stream.n_lost += had
        self.later(self.fleet.machine_repair_s, comes_back)

    def lose_server(self):
        """The streams that it leads have no leader for a while. That a stream keeps its majority is assumed."""
        def comes_back():
            self.servers_up += 1
        led = max(1, round(self.fleet.streams / self.fleet.servers))
        for stream in self.random.sample(self.streams, min(led, len(self.streams))):
            stream.leaderless_until = self.now + self.fleet.election_s
        self.servers_up -= 1
        self.later(self.fleet.server_repair_s, comes_back)

    # ---- a second ----

    def step(self):
        self.fail()
        for stream in self.streams:
            self.step_stream(stream)
        self.now += 1

    def step_stream(self, stream):
        arrivals = self.fleet.jobs_per_s / self.fleet.streams
        stream.arrived += arrivals
        stream.waiting += arrivals
        stream.marks.append((stream.arrived, self.now))
        while stream.lost and stream.lost[0][0] <= self.now:
            back = stream.lost.popleft()[1]
            stream.n_lost -= back
            stream.waiting += back
        limits = self.limits(stream)
        narrow = min(limits, key=limits.get)
        done = min(stream.waiting, limits[narrow])
        stream.waiting -= done
        stream.done += done
        if stream.waiting > 0:
            self.busiest[narrow] += 1
        self.longest_queue = max(self.longest_queue, stream.waiting)
        self.note_delay(stream, done)

    def note_delay(self, stream, done):
        """In the order of arrival: as old as the oldest that was not done."""
        while len(stream.marks) > 1 and stream.marks[0][0] <= stream.done:
            stream.marks.popleft()
        self.delays[self.now - stream.marks[0][1]] += done

    def run(self, seconds):
        for _ in range(seconds):
            self.step()
        return self

    # ---- what came of it ----

    def total(self, what):
        return sum(getattr(stream, what) for stream in self.streams)

    def delay(self, share):
        """Seconds within which this share of the jobs was done."""
        left = share * sum(self.delays.values())
        for seconds in sorted(self.delays):
            left -= self.delays[seconds]
            if left <= 0:
                return seconds
        return max(self.delays, default=0)


def first_limit(fleet, costs):
    """(what breaks first when everything is up, the jobs per second at which it does)."""
    limits = Simulation(fleet, costs).limits
    each = {name: rate * fleet.streams for name, rate in limits(Stream(fleet.machines / fleet.streams)).items()}
    narrow = min(each, key=each.get)
    return narrow, each[narrow]
