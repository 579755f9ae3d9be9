# SPDX-License-Identifier: MIT
"""troupe-nats with a consumer that has messages and delivers none."""
import json
import os
import shutil
import tempfile

import nats
from test_nats import Case, actor
from test_nats_hostile import CONSUMER, HostileCase
from troupe import Bell

NEXT = "$JS.API.CONSUMER.MSG.NEXT.JOBS.actor"
MORE = 20


class Stalls(Case):
    def fetch(self, s, batch):
        """Takes messages like a machine that dies immediately afterwards. Returns how many came before the request was over. The server
        says that it is over, or is silent for long if the request expired before the server looked at it."""
        s.client.publish(NEXT, json.dumps({"batch": batch, "expires": 100_000_000}), reply="dead.machine")
        n = 0
        while n < batch and s.client.comes(s.dead, 5) and "Nats-Pending-Messages" not in s.client.next(s.dead).headers:
            n += 1
        return n

    def restart(self, s):
        s.nats.start()
        s.client = nats.Client(self, s.nats)
        s.dead = s.client.subscribe("dead.machine")
        s.results = s.client.subscribe("troupe.result.JOBS.*")

    def consumers(self, s):
        """The directory in which the server keeps what it knows of the stream's consumers."""
        [found] = [path for path, _, _ in os.walk(s.nats.directory) if path.endswith("/JOBS/obs")]
        return found

    def losing(self, n_lost):
        """A supervisor, and a server whose consumer has messages in hand that are not in its stream any more, and others behind them, which
        are to be delivered again, as their machine is dead. Returns both, and the numbers of these others. The server forgets what was
        lost before the first message that it has: that one is a job that lasts until the bell."""
        s = self.supervisor({"actor": actor(2)}).start()
        s.bell = Bell(s, "bell")
        s.nats = nats.Server(self)
        self.restart(s)
        s.bridge = nats.Bridge(self, s, s.nats, "actor", "AckWaitSec=2s\n").setup()
        numbers = [s.client.store("jobs.actor.any", f"wait {s.bell.path}")]
        numbers += (s.client.store("jobs.actor.any", "echo hello") for _ in range(n_lost + MORE))
        self.assertEqual(self.fetch(s, len(numbers)), len(numbers))
        s.client.until(lambda: self.consumer(s)["num_ack_pending"] == len(numbers))
        s.nats.end()
        before = tempfile.mkdtemp(prefix="troupe-nats-")
        self.addCleanup(shutil.rmtree, before)
        shutil.copytree(self.consumers(s), before, dirs_exist_ok=True)
        self.restart(s)
        for number in numbers[1:n_lost + 1]:
            s.client.api("STREAM.MSG.DELETE.JOBS", seq=number, no_erase=True)
        s.nats.end()
        shutil.copytree(before, self.consumers(s), dirs_exist_ok=True)
        self.restart(s)
        self.assertEqual(self.consumer(s)["num_ack_pending"], len(numbers))
        while not self.fetch(s, 1):  # until AckWait is over
            pass
        self.fetch(s, 1)  # a nats-server before 2.10.25 comes to the first of those that are lost
        return s, set(numbers[n_lost + 1:])

    def finish(self, s, numbers):
        s.bridge.start()
        self.wait_results(s, numbers)
        s.bell.ring()
        self.wait_empty(s)

    def test_N5_messages_that_the_stream_has_lost_do_not_hold_up_new_ones(self):
        s, numbers = self.losing(100)
        self.finish(s, numbers | {s.client.store("jobs.actor.any", "echo hello") for _ in range(MORE)})

    def test_N5_messages_that_the_stream_has_lost_do_not_hold_up_those_of_a_dead_machine(self):
        self.finish(*self.losing(400))

    def test_a_consumer_that_has_all_in_hand_that_it_may_is_told_of(self):
        s = self.bridged(configuration="AckWaitSec=1s\n")
        s.client.api("CONSUMER.DELETE.JOBS.actor")
        config = {"durable_name": "actor", "ack_policy": "explicit", "ack_wait": 10**9, "max_deliver": -1, "max_ack_pending": 2}
        s.client.api("CONSUMER.DURABLE.CREATE.JOBS.actor", stream_name="JOBS", config=config)
        for _ in range(2):
            s.client.store("jobs.actor.any", "echo later", {"Troupe-Delay": "60min"})
        s.client.until(lambda: self.consumer(s)["num_ack_pending"] == 2)
        number = s.client.store("jobs.actor.any", "echo now")
        s.bridge.wait_told("As many messages are in hand as max_ack_pending allows; group actor, stream JOBS")
        self.assertIn("consumer actor of stream JOBS, in which 1 messages wait: As many", s.bridge.log())
        s.client.api("STREAM.MSG.DELETE.JOBS", seq=1)
        self.assertEqual(self.result(s)[0], number)
        s.bridge.wait_told("Takes messages")
        self.assertIn("delivers again", s.bridge.log())


class Endless(HostileCase):
    def test_a_consumer_that_never_delivers_what_it_has_is_told_of(self):
        s, server = self.bridged()
        for _ in range(3):  # when it starts, and after each request in vain
            server.published.clear()
            server.read_until(b"$JS.API.CONSUMER.INFO.JOBS.actor")
            server.answer({**CONSUMER, "config": {"ack_policy": "explicit", "ack_wait": 10**9}, "num_pending": 7, "num_ack_pending": 3})
        s.bridge.wait_told("The consumer has messages, and delivers none; group actor, stream JOBS")
        self.assertIn("consumer actor of stream JOBS, in which 7 messages wait: The consumer has", s.bridge.log())
        server.deliver([1], b"echo hello")
        s.bridge.wait_told("Takes messages")
