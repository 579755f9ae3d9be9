# SPDX-License-Identifier: MIT
"""The payload's size: there and eight bytes back; and one direction only."""
import os
import tempfile

import programs
import servers
from loads import HandingOver, RoundTrips, Tell, Troupe
from rounds import Measure, Subject

RESULT = 8


class Payloads(RoundTrips):
    result = RESULT


class OneWay(Subject):
    """A program that prints messages_per_s, given a number and a size."""

    def __init__(self, name, command, role="peer", package=None):
        self.name, self.command, self.role, self.package = name, command, role, package
        self.directory = None
        self.rates = {}

    def missing(self):
        return None if os.path.exists(self.command()[0]) else f"not built: package {self.package}"

    def turn(self, point):
        if point not in self.rates:
            self.rates[point] = programs.measure(*self.command(), 20000, point)["messages_per_s"]
        count = int(min(self.rates[point], 1e8) * 0.3) + 1000
        found = programs.measure(*self.command(), count, point)
        self.rates[point] = found["messages_per_s"]
        return found


class ZeroMq(OneWay):
    def __init__(self):
        super().__init__("ZeroMQ PUSH/PULL", self.pushing, package="libzmq3-dev")

    def __enter__(self):
        self.directory = tempfile.TemporaryDirectory(prefix="troupe-bench-")
        return self

    def __exit__(self, *_):
        self.directory.cleanup()

    def pushing(self):
        return [programs.ours("peers/zeromq"), f"ipc://{self.directory.name}/socket"] if self.directory else \
            [programs.ours("peers/zeromq")]


class Telling(Subject):
    """Two hops: worker, supervisor, worker."""
    name, role = "Troupe, tell", "troupe"

    def __init__(self):
        self.system, self.counts = Tell(), {}

    def turn(self, point):
        found = self.system.tell(self.counts.get(point, 10000), point)
        self.counts[point] = int(found["messages_per_s"] * 0.3) + 1000
        return found


def measures(quick):
    sizes = [64, 1 << 10, 16 << 10, 256 << 10, 4 << 20, 64 << 20]
    small = [64, 1 << 10, 16 << 10]
    if quick:
        sizes, small = [64, 256 << 10, 64 << 20], [64, 1 << 10]
    subjects = [
        Payloads("Troupe", Troupe(result_max=RESULT), "troupe"),
        Payloads("Troupe, handed over", HandingOver(result_max=RESULT), "troupe", skips=[s for s in sizes if s < 1 << 16]),
        *(Payloads(name, server(result_max=RESULT), skips=sizes[-1:] if quick else ()) for name, server in
          (("redis", servers.Redis), ("beanstalkd", servers.Beanstalkd), ("NATS", servers.Nats),
           ("gearmand", servers.Gearmand))),
    ]
    one_way = [OneWay("floor: Troupe's ring", lambda: [programs.ours("floors/one-way")], "floor"), Telling(), ZeroMq()]
    return [Measure("payload", "A payload there, eight bytes back", subjects, "p50_us", "µs", sizes, axis="bytes"),
            Measure("one-way", "Messages, one direction: ring and ZeroMQ one hop, Troupe two", one_way, "messages_per_s", "messages/s", small, False, "bytes")]
