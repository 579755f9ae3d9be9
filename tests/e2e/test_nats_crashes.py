# SPDX-License-Identifier: MIT
"""troupe-nats, its supervisor or the server are killed, and nothing is lost or done twice."""
import os
import signal

import nats
from test_nats import Case, actor
from troupe import Bell, ended


class Crashes(Case):
    def done_once(self, s, count):
        """Expects that each of so many jobs was done once, and has one result."""
        self.wait_empty(s)
        self.assertEqual(s.client.messages("TROUPE"), count)
        with open(s.path("notes"), encoding="ascii") as file:
            self.assertEqual(sorted(map(int, file)), list(range(count)))

    def test_N7_a_bridge_that_is_killed_costs_nothing(self):
        s = self.bridged(actor(2, MaxRetries=20), "InFlight=16\nAckWaitSec=2s\n")
        for n in range(300):
            crash = "before 2 crash kill\n" if n % 10 == 0 else ""
            s.client.publish("jobs.actor.any", f"{crash}note {s.path('notes')} {n}")
        for n in range(5):
            for _ in range(40):
                self.result(s)
            s.bridge.end(signal.SIGKILL)
            s.bridge.start().wait_told("Takes messages")
        self.done_once(s, 300)

    def test_N3_a_job_that_is_here_is_recognised(self):
        for durable in "no", "yes":
            s = self.bridged(actor(Durable=durable), "AckWaitSec=1s\n")
            bell = self.hold(s, f"note {s.path('notes')} 0")
            s.bridge.end(signal.SIGKILL)
            s.client.api("CONSUMER.DELETE.JOBS.actor")
            s.bridge.setup().start()
            s.client.until(lambda: self.consumer(s)["delivered"]["consumer_seq"] > 0)
            bell.ring()
            self.done_once(s, 1)
            s.bridge.end()
            s.stop()

    def running(self, configuration, *lines, group=None):
        """A job that runs until a bell rings; the acknowledgements of its message are heard."""
        s = self.bridged(group, configuration)
        s.acks = s.client.subscribe("$JS.ACK.>")
        s.bell = Bell(s, "bell")
        s.client.store("jobs.actor.any", "\n".join((f"wait {s.bell.path}", *lines)))
        self.wait_state(s, "JOBS:1", "running")
        return s

    def kill_bridge(self, s):
        """Starts it again. Returns once it has said that the job is in progress."""
        s.bridge.end(signal.SIGKILL)
        s.client.api("INFO")
        s.client.clear(s.acks)
        s.bridge.start()
        self.assertEqual(s.client.next(s.acks).data, b"+WPI")

    def test_N2_what_a_killed_bridge_had_stays_here_though_InFlight_is_less_now(self):
        s = self.bridged(actor(2), "AckWaitSec=60min\n")
        bell = Bell(s, "bell")
        for number in 1, 2:
            s.client.store("jobs.actor.any", f"wait {bell.path}\necho hello")
            self.wait_state(s, f"JOBS:{number}", "running")
        s.bridge.end(signal.SIGKILL)
        with open(s.bridge.config, "a", encoding="utf-8") as file:
            file.write("InFlight=1\n")
        s.bridge.start()
        s.client.until(lambda: "jobs of an earlier run" in s.bridge.log())
        bell.ring(2)
        self.wait_results(s, [1, 2])
        s.client.store("jobs.actor.any", "echo third")
        self.wait_results(s, [3])
        self.wait_empty(s)

    def test_N2_what_a_killed_bridge_had_stays_here_while_its_worker_lives(self):
        s = self.running("AckWaitSec=4s\n", "pid")
        self.kill_bridge(s)
        second = self.bridged(server=s.nats)
        ended(s.pidfd, 10)  # more than twice AckWait
        self.assertEqual(second.call("List")["jobs"], [])
        s.bell.ring()
        self.assertEqual(int(self.result(s)[2]), s.worker("actor/0")["pid"])
        self.wait_empty(s)
        self.assertEqual(self.consumer(s)["delivered"]["consumer_seq"], 1)

    def test_N4_what_a_killed_bridge_had_and_is_dead_has_a_letter_with_its_message(self):
        s = self.running("AckWaitSec=1s\n", "crash kill", group=actor(MaxRetries=0))
        self.kill_bridge(s)
        s.bell.ring()
        self.assertIn(b"crash kill", s.client.next(s.letters).data)
        self.assertEqual(self.result(s)[1]["Troupe-End"], "dead")
        self.wait_empty(s)
        # Another machine might have it by then.
        self.assertNotIn(b"-NAK", [message.data for message in s.client.pending(s.acks)])

    def test_N3_a_result_that_was_kept_is_published_later(self):
        s = self.bridged(configuration="AckWaitSec=1s\n")
        bell = self.hold(s, f"note {s.path('notes')} 0")
        s.bridge.end(signal.SIGKILL)
        bell.ring()
        s.wait_job("JOBS:1")
        s.bridge.start().wait_told("Takes messages")
        self.done_once(s, 1)

    def test_a_supervisor_that_crashes_costs_nothing(self):
        for durable in "no", "yes":
            s = self.bridged(actor(2, Durable=durable), "InFlight=16\nAckWaitSec=2s\n")
            for n in range(100):
                s.client.publish("jobs.actor.any", f"note {s.path('notes')} {n}")
            for _ in range(30):
                self.result(s)
            s.crash()
            self.wait_empty(s)
            self.assertEqual(s.client.messages("TROUPE"), 100)
            s.bridge.end()
            s.stop()

    def test_N4_a_job_whose_worker_dies_after_the_supervisor_has_crashed_is_no_dead_one(self):
        s = self.bridged()
        bell = self.hold(s, "echo done")
        s.crash()
        os.kill(s.worker("actor/0")["pid"], signal.SIGKILL)
        dead = s.wait_job("JOBS:1")
        self.assertEqual((dead["state"], dead["reason"]), ("dead", "its payload is lost: the supervisor has crashed; killed by SIGKILL"))
        bell.ring()
        _, headers, data = self.result(s)
        self.assertEqual((headers["Troupe-End"], headers["Troupe-Job"], data), ("succeeded", "JOBS:1:1", "done"))
        self.wait_empty(s)

    def ended_and_not_stored(self, durable):
        """A job that has ended, and whose result the engine cannot store."""
        s = self.bridged(actor(Durable=durable), "AckWaitSec=1s\n")
        s.client.api("STREAM.DELETE.TROUPE")
        s.client.store("jobs.actor.any", f"note {s.path('notes')} 0")
        self.result(s)  # published, and nobody stores it
        s.client.until(lambda: "cannot be published" in s.bridge.log())
        return s

    def test_a_supervisor_that_crashes_between_an_end_and_its_acknowledgement_costs_nothing(self):
        for durable in "no", "yes":
            s = self.ended_and_not_stored(durable)
            s.crash()
            self.assertEqual(s.do("actor", "echo local")["state"], "succeeded")
            s.bridge.setup()
            self.done_once(s, 1)
            s.bridge.end()
            s.stop()

    def test_N7_a_durable_job_is_done_once_though_supervisor_and_bridge_crash_before_its_acknowledgement(self):
        s = self.ended_and_not_stored("yes")
        s.bridge.end(signal.SIGKILL)
        s.crash()
        s.bridge.setup().start().wait_told("Takes messages")
        self.done_once(s, 1)

    def test_N6_a_durable_result_waits_for_the_engine_though_supervisor_and_bridge_are_restarted(self):
        s = self.bridged(actor(Durable="yes"), "AckWaitSec=1s\n")
        bell = self.hold(s, f"note {s.path('notes')} 0")
        s.nats.end()
        s.bridge.wait_told("NATS is away")
        bell.ring()
        s.wait_job("JOBS:1")
        s.bridge.end(signal.SIGKILL)
        s.stop()
        s.start()
        s.nats.start()
        s.bridge.start().wait_told("Takes messages")
        s.client = nats.Client(self, s.nats)
        self.done_once(s, 1)

    def test_an_idle_bridge_costs_nothing_after_a_crash_of_the_supervisor(self):
        s = self.bridged(actor(MaxRetries=0))
        s.client.store("jobs.actor.any", "crash kill")
        self.assertIn("Troupe-Deaths", s.client.next(s.letters).headers)  # it has asked the supervisor
        self.wait_empty(s)
        s.crash()
        self.assertEqual(s.do("actor", "echo local")["state"], "succeeded")
        before = s.bridge.reads()
        ended(s.pidfd, 2)
        self.assertLess(s.bridge.reads() - before, 100)
        s.client.store("jobs.actor.any", "crash kill")
        self.assertIn("Troupe-Deaths", s.client.next(s.letters).headers)
        self.wait_empty(s)

    def test_N6_a_bridge_costs_nothing_though_the_engine_went_away_before_the_supervisor_answered(self):
        s = self.bridged(configuration="StateSec=1s\n")
        os.kill(s.supervisor_pid, signal.SIGSTOP)
        ended(s.pidfd, 2)  # it is asked for its groups meanwhile
        s.nats.end()
        s.bridge.wait_told("NATS is away")
        os.kill(s.supervisor_pid, signal.SIGCONT)
        s.call("GetStatus")
        self.assert_idle(s, s.bridge.process.pid)
