# SPDX-License-Identifier: MIT
"""troupe-nats: jobs from NATS JetStream, N1 to N8."""
import base64
import contextlib
import json
import os
import re
import shutil
import signal
import subprocess
import tempfile
import time
import unittest

import nats
import nkeys
from test_life import QUICK
from troupe import ACTOR, LIMIT, SANITIZED, Bell, TestCase, VarlinkError, ended, helper, ini

JOBS = "JOBS"


def actor(size=1, **jobs):
    return ini(ACTOR, Pool={"Size": size}, Restart=QUICK, Jobs={"BackoffMinSec": "1ms", **jobs})


class Case(TestCase):
    def setUp(self):
        nats.require()

    def bridged(self, group=None, configuration="", server=None, supervisor=""):
        """A supervisor with a group "actor", a NATS server, the bridge between them, and a client of the server."""
        s = self.supervisor({"actor": group or actor()})
        s.write("troupe.conf", f"[Supervisor]\nStateDirectory={s.path('state')}\n{supervisor}")
        s.start()
        s.nats = server or nats.Server(self).start()
        s.client = nats.Client(self, s.nats)
        s.results = s.client.subscribe("troupe.result.JOBS.*")
        s.letters = s.client.subscribe("troupe.dead.actor")
        s.client.api("INFO")  # the server has the subscriptions before the bridge can publish
        s.bridge = nats.Bridge(self, s, s.nats, "actor", configuration).setup().start()
        s.bridge.wait_told("Takes messages")
        return s

    def result(self, s):
        """The next result: the number of its job, its headers and its data."""
        message = s.client.next(s.results)
        return int(message.subject.rpartition(".")[2]), message.headers, message.data.decode()

    def wait_results(self, s, numbers):
        """Until each of these jobs has a result; who listens may hear one twice."""
        left = set(numbers)
        while left:
            left.discard(self.result(s)[0])

    def consumer(self, s):
        return s.client.api("CONSUMER.INFO.JOBS.actor")

    def wait_state(self, s, id, state):
        """Until a job, which may not have come yet, is in this state."""
        s.until(lambda: any((job["id"], job["state"]) == (id, state) for job in s.call("List")["jobs"]))

    def wait_empty(self, s):
        """Until all jobs have been acknowledged, which removes them from the stream."""
        s.client.until(lambda: s.client.messages(JOBS) == 0)


class Work(Case):
    def test_N1_a_message_is_done_and_acknowledged_once_its_result_is_stored(self):
        s = self.bridged()
        number = s.client.store("jobs.actor.any", "echo hello")
        done, headers, data = self.result(s)
        self.assertEqual((done, data), (number, "hello"))
        self.assertEqual((headers["Troupe-End"], headers["Troupe-Job"], headers["Nats-Msg-Id"]),
                         ("succeeded", f"JOBS:{number}", f"JOBS:{number}"))
        self.wait_empty(s)
        stored = s.client.api("STREAM.MSG.GET.TROUPE", last_by_subj=f"troupe.result.JOBS.{number}")
        self.assertIn("hdrs", stored["message"])

    def test_N1_nothing_is_acknowledged_while_its_result_cannot_be_stored(self):
        s = self.bridged()
        s.client.api("STREAM.DELETE.TROUPE")
        number = s.client.store("jobs.actor.any", "echo hello")
        self.assertEqual(self.result(s)[0], number)  # published, and nobody stores it
        s.client.until(lambda: "cannot be published" in s.bridge.log())
        s.bridge.wait_told("results are not stored, see the log; group actor")
        self.assertEqual(s.client.messages(JOBS), 1)
        s.bridge.setup()
        s.bridge.wait_told("Takes messages from NATS; group actor")
        self.wait_empty(s)
        self.assertEqual(s.client.messages("TROUPE"), 1)

    def test_a_result_that_cannot_be_stored_is_logged_once_while_others_are(self):
        s = self.bridged()
        stream = s.client.api("STREAM.INFO.TROUPE")["config"]
        s.client.api("STREAM.UPDATE.TROUPE", **{**stream, "subjects": ["troupe.result.JOBS.2", "troupe.dead.*.*.*"]})
        s.client.store("jobs.actor.any", "echo hello")
        s.client.until(lambda: "cannot be published" in s.bridge.log())
        s.client.store("jobs.actor.any", "echo other")
        s.client.until(lambda: s.client.messages(JOBS) == 1)
        s.client.clear(s.results)
        for _ in range(3):
            self.assertEqual(self.result(s)[0], 1)  # again, and in vain
        log = s.bridge.log()
        self.assertEqual((log.count("cannot be published"), log.count("published again")), (1, 0))
        s.client.api("STREAM.UPDATE.TROUPE", **stream)
        self.wait_empty(s)
        s.client.until(lambda: "published again" in s.bridge.log())

    def test_results_that_nobody_wants_are_not_published(self):
        s = self.bridged(actor(MaxRetries=0), "Results=errors\n")
        s.client.store("jobs.actor.any", "echo unwanted")
        s.client.store("jobs.actor.any", "crash kill")
        self.assertEqual(self.result(s)[1]["Troupe-End"], "dead")
        self.wait_empty(s)
        s.bridge.end()
        with open(s.bridge.config, "a", encoding="utf-8") as file:
            file.write("Results=none\n")
        s.bridge.start()
        s.client.store("jobs.actor.any", "echo unwanted")
        s.client.store("jobs.actor.any", "crash kill")
        self.wait_empty(s)
        self.assertEqual([s.wait_job(f"JOBS:{n}")["state"] for n in (1, 2, 3, 4)], ["succeeded", "dead"] * 2)
        stored = s.client.api("STREAM.INFO.TROUPE", subjects_filter="troupe.>")["state"]["subjects"]
        self.assertEqual(sorted(stored), ["troupe.dead.actor.JOBS.2", "troupe.dead.actor.JOBS.4", "troupe.result.JOBS.2"])

    def test_a_job_without_a_result_that_ends_without_the_engine_is_acknowledged_later(self):
        s = self.bridged(configuration="Results=none\n")
        bell = Bell(s, "bell")
        s.client.store("jobs.actor.any", f"wait {bell.path}")
        self.wait_state(s, "JOBS:1", "running")
        s.nats.end()
        s.bridge.wait_told("NATS is away")
        bell.ring()
        s.wait_job("JOBS:1")
        s.nats.start()
        s.client = nats.Client(self, s.nats)
        self.wait_empty(s)
        self.assertEqual(s.client.messages("TROUPE"), 0)

    def test_headers_and_the_subject_choose_how_a_job_is_done(self):
        s = self.bridged(ini(ACTOR, Pool={"Cells": "by-key"}, Restart=QUICK, Jobs={"MaxRetries": 0}))
        s.client.store("jobs.actor.acme", "name")
        self.assertEqual(self.result(s)[2], "actor/acme/0")
        s.client.store("jobs.actor.big.any", "name", {"Troupe-Key": "other"})
        self.assertEqual(self.result(s)[2], "actor/other/0")
        s.client.store("jobs.actor.acme", "until-cancelled", {"Troupe-Timeout": "100ms"})
        self.assertEqual(self.result(s)[1]["Troupe-End"], "dead")

    def test_the_header_Troupe_Priority_chooses_who_is_first(self):
        s = self.bridged()
        bell = Bell(s, "bell")
        s.client.store("jobs.actor.any", f"wait {bell.path}\necho first")
        self.wait_state(s, "JOBS:1", "running")
        for priority in "63", "40", "0":
            s.client.store("jobs.actor.any", f"echo {priority}", {"Troupe-Priority": priority})
        s.client.store("jobs.actor.any", "echo default")
        for number in 2, 3, 4, 5:
            self.wait_state(s, f"JOBS:{number}", "queued")
        bell.ring()
        self.assertEqual([self.result(s)[2] for _ in range(5)], ["first", "0", "default", "40", "63"])

    def test_the_header_Troupe_Delay_lets_a_job_wait(self):
        s = self.bridged()
        for number, delay in (1, 0.9), (2, 2):  # a moment: on the machine; longer: on the server
            begun = time.time()
            s.client.store("jobs.actor.any", "echo later", {"Troupe-Delay": f"{int(delay * 1000)}ms"})
            self.assertEqual(self.result(s)[2], "later")
            self.assertGreaterEqual(s.job(f"JOBS:{number}")["started_at"] / 1e6, begun + delay)
        self.assertEqual(self.consumer(s)["delivered"]["consumer_seq"], 3)

    def test_jobs_that_are_due_later_do_not_hold_up_others(self):
        s = self.bridged(configuration="InFlight=2\n")
        for _ in range(3):
            s.client.store("jobs.actor.any", "echo later", {"Troupe-Delay": "60min"})
        s.client.store("jobs.actor.any", "echo now")
        self.assertEqual(self.result(s)[2], "now")
        s.client.until(lambda: self.consumer(s)["num_ack_pending"] == 3)

    def test_a_message_that_can_never_be_a_job_becomes_a_dead_letter(self):
        s = self.bridged()
        number = s.client.store("jobs.actor.any", "echo", {"Troupe-Priority": "64", "My": "own"})
        letter = s.client.next(s.letters)
        self.assertEqual(letter.data, b"echo")
        self.assertEqual(letter.headers["My"], "own")
        self.assertEqual(letter.headers["Troupe-Reason"],
                         "Troupe-Priority: no valid value; allowed: a number from 0 (first) to 63")
        done, headers, _ = self.result(s)
        self.assertEqual((done, headers["Troupe-End"]), (number, "refused"))
        self.wait_empty(s)

    def test_a_flood_of_messages_that_can_never_be_jobs_is_a_few_lines_with_a_count(self):
        s = self.bridged()
        for _ in range(500):
            s.client.publish("jobs.actor.any", "echo hello", {"Troupe-Priority": "64"})
        self.wait_empty(s)

        def logged():
            log = s.bridge.log()
            return log.count("Troupe-Priority: no valid value"), sum(map(int, re.findall(r"(\d+) more messages of stream JOBS", log)))
        s.client.until(lambda: sum(logged()) == 500)
        self.assertLess(logged()[0], 500)
        self.assertEqual(len(s.client.api("STREAM.INFO.TROUPE", subjects_filter="troupe.dead.>")["state"]["subjects"]), 500)

    def test_a_header_does_not_choose_another_key_than_the_subject(self):
        s = self.bridged(ini(ACTOR, Pool={"Cells": "by-key"}, Restart=QUICK))
        s.client.store("jobs.actor.acme", "name", {"Troupe-Key": "other"})
        self.assertEqual(s.client.next(s.letters).headers["Troupe-Reason"],
                         "Troupe-Key: the subject has another key; allowed: a subject that ends in .any")
        self.assertEqual(self.result(s)[1]["Troupe-End"], "refused")
        s.client.store("jobs.actor.acme", "name", {"Troupe-Key": "acme"})
        self.assertEqual(self.result(s)[2], "actor/acme/0")

    def refused(self, s, payload, headers):
        """Stores a message that can never be a job, and returns its dead letter once it is acknowledged."""
        number = s.client.store("jobs.actor.any", payload, headers)
        letter = s.client.next(s.letters)
        self.assertEqual(self.result(s)[0], number)
        self.wait_empty(s)
        return letter

    def test_a_dead_letter_leaves_out_what_is_too_large(self):
        s = self.bridged(server=nats.Server(self, "max_payload: 8192\n").start())
        letter = self.refused(s, "x" * 1000, {"Troupe-Priority": "64", "My": "y" * 7000})
        self.assertEqual((letter.data, letter.headers["My"]), (b"", "y" * 7000))
        self.assertEqual(letter.headers["Troupe-Missing"], "the payload: too large, or malformed")
        letter = self.refused(s, "x" * 10, {"Troupe-Priority": "64", "My": "y" * 8000})
        self.assertEqual(letter.data, b"x" * 10)
        self.assertNotIn("My", letter.headers)
        self.assertEqual(letter.headers["Troupe-Missing"], "the sender's headers: too large, or malformed")

    def test_a_dead_letter_has_no_headers_of_its_sender_that_look_like_its_own(self):
        s = self.bridged()
        letter = self.refused(s, "x", ["Troupe-Priority: 64", "Troupe-Deaths: {}", "troupe-missing: all", "NATS-Rollup: all",
                                      "Status: 503", "troupe-Key: mine", "My: own"])
        self.assertEqual({name: value for name, value in letter.headers.items() if name not in
                          ("", "Nats-Msg-Id", "Troupe-Job", "Troupe-End", "Troupe-Reason", "Troupe-Subject")},
                         {"Troupe-Priority": "64", "troupe-Key": "mine", "My": "own"})

    def test_a_dead_letter_has_all_values_of_a_header_of_its_sender(self):
        s = self.bridged()
        self.refused(s, "x", ["Troupe-Priority: 64", "My: own", "My: other", "My: own"])
        stored = s.client.api("STREAM.MSG.GET.TROUPE", last_by_subj="troupe.dead.actor.JOBS.1")["message"]
        lines = base64.b64decode(stored["hdrs"]).decode().split("\r\n")
        self.assertEqual([line for line in lines if line.startswith("My:")], ["My: own", "My: other", "My: own"])

    def test_a_dead_letter_has_no_more_headers_than_a_stream_takes(self):
        s = self.bridged()
        letter = self.refused(s, "x", {"Troupe-Priority": "64", "My": "y" * 65450})
        self.assertEqual((letter.data, letter.headers["Troupe-End"]), (b"x", "refused"))
        self.assertNotIn("My", letter.headers)

    def test_a_message_with_malformed_headers_becomes_a_dead_letter(self):
        s = self.bridged()
        letter = self.refused(s, "x", ["My: own", "no colon"])
        self.assertEqual((letter.data, letter.headers["Troupe-Reason"]), (b"x", "the headers are malformed"))

    def test_N4_a_dead_job_becomes_a_dead_letter_with_its_deaths(self):
        s = self.bridged(actor(MaxRetries=1))
        number = s.client.store("jobs.actor.any", "complain last words\ncrash kill")
        letter = s.client.next(s.letters)
        self.assertEqual((letter.data, letter.headers["Troupe-Subject"]), (b"complain last words\ncrash kill", "jobs.actor.any"))
        job = json.loads(letter.headers["Troupe-Deaths"])
        self.assertEqual([attempt["cause"] for attempt in job["attempts"]], ["signal", "signal"])
        self.assertEqual([(death["attempt"], death["signal"], death["job"]) for death in job["deaths"]],
                         [(2, "SIGKILL", f"JOBS:{number}"), (1, "SIGKILL", f"JOBS:{number}")])
        self.assertIn("last words", job["deaths"][0]["stderr"])
        done, headers, _ = self.result(s)
        self.assertEqual((done, headers["Troupe-End"], headers["Troupe-Attempts"]), (number, "dead", "2"))
        self.wait_empty(s)

    def test_N4_a_dead_letter_is_stored_once_though_the_bridge_dies_before_the_result_is(self):
        s = self.bridged(actor(MaxRetries=0), "AckWaitSec=1s\n")
        stream = s.client.api("STREAM.INFO.TROUPE")["config"]
        without = {**stream, "subjects": ["troupe.dead.*.*.*"], "duplicate_window": 100000000}
        s.client.api("STREAM.UPDATE.TROUPE", **without)
        s.client.store("jobs.actor.any", "crash kill")
        self.assertEqual(s.client.next(s.letters).data, b"crash kill")
        s.client.until(lambda: "cannot be published" in s.bridge.log())  # the result
        s.bridge.end(signal.SIGKILL)
        ended(s.pidfd, 1)  # the stream forgets the ids of messages
        s.client.api("STREAM.UPDATE.TROUPE", **{**stream, "duplicate_window": 100000000})
        s.bridge.start()
        self.wait_empty(s)
        self.assertEqual(s.client.api("STREAM.INFO.TROUPE", subjects_filter=">")["state"]["subjects"],
                         {"troupe.dead.actor.JOBS.1": 1, "troupe.result.JOBS.1": 1})
        self.assertEqual(s.client.pending(s.letters), [])

    def test_it_fetches_no_more_than_the_group_has_room_for(self):
        s = self.bridged(actor(QueueMax=2))
        numbers = {s.client.store("jobs.actor.any", f"echo {n}") for n in range(200)}
        self.wait_results(s, numbers)
        self.wait_empty(s)
        self.assertEqual(s.client.messages("TROUPE"), len(numbers))


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
            bell = Bell(s, "bell")
            s.client.store("jobs.actor.any", f"wait {bell.path}\nnote {s.path('notes')} 0")
            self.wait_state(s, "JOBS:1", "running")
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
        s.client.until(lambda: "goes on with" in s.bridge.log())
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
        bell = Bell(s, "bell")
        s.client.store("jobs.actor.any", f"wait {bell.path}\nnote {s.path('notes')} 0")
        self.wait_state(s, "JOBS:1", "running")
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
        bell = Bell(s, "bell")
        s.client.store("jobs.actor.any", f"wait {bell.path}\necho done")
        self.wait_state(s, "JOBS:1", "running")
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
        bell = Bell(s, "bell")
        s.client.store("jobs.actor.any", f"wait {bell.path}\nnote {s.path('notes')} 0")
        self.wait_state(s, "JOBS:1", "running")
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


class Life(Case):
    def test_N2_a_message_is_not_delivered_again_while_its_worker_lives(self):
        s = self.bridged(configuration="AckWaitSec=4s\n")
        bell = Bell(s, "bell")
        s.client.store("jobs.actor.any", f"wait {bell.path}\necho done")
        self.wait_state(s, "JOBS:1", "running")
        ended(s.pidfd, 10)  # more than twice AckWait, of which a busy machine may delay a good part
        self.assertEqual(self.consumer(s)["num_redelivered"], 0)
        with s.stopped():  # nobody says that the worker lives
            s.client.until(lambda: self.consumer(s)["num_redelivered"] > 0)
        bell.ring()
        self.assertEqual(self.result(s)[2], "done")
        self.wait_empty(s)

    def test_N5_what_a_dead_machine_had_is_done_by_another(self):
        first = self.bridged(configuration="AckWaitSec=1s\n")
        bell = Bell(first, "bell")
        first.client.store("jobs.actor.any", f"wait {bell.path}\npid")
        first.client.store("jobs.actor.any", "pid")
        self.wait_state(first, "JOBS:1", "running")
        self.wait_state(first, "JOBS:2", "queued")
        second = self.bridged(server=first.nats)
        worker = os.pidfd_open(first.worker("actor/0")["pid"])
        self.addCleanup(os.close, worker)
        first.bridge.end(signal.SIGKILL)
        first.kill()
        self.assertTrue(ended(worker, LIMIT))  # it would hear the bell
        bell.ring()
        pid = second.worker("actor/0")["pid"]
        self.assertEqual(sorted((number, int(data)) for number, _, data in (self.result(second), self.result(second))),
                         [(1, pid), (2, pid)])
        self.wait_empty(second)

    def test_N5_what_a_dead_or_frozen_machine_had_is_taken_over_within_twice_AckWait(self):
        for blow in signal.SIGKILL, signal.SIGSTOP:
            first = self.bridged(configuration="AckWaitSec=4s\n")
            second = self.bridged(server=first.nats)
            first.bridge.process.send_signal(blow)
            begun = time.monotonic()
            for _ in range(8):  # a part of them goes to the first, which has asked for messages
                second.client.store("jobs.actor.any", "pid")
            pid = second.worker("actor/0")["pid"]
            self.assertEqual([int(self.result(second)[2]) for _ in range(8)], [pid] * 8)
            self.assertLess(time.monotonic() - begun, 2 * 4 + 2)  # the last is delivered within 8 s, and done after that
            # The first delivery, and one more of what the first machine had.
            self.assertLessEqual(self.consumer(second)["delivered"]["consumer_seq"], 2 * 8)
            first.bridge.end(signal.SIGKILL)
            second.bridge.end()

    def freeze_until_done_elsewhere(self, server=None, configuration=""):
        first = self.bridged(configuration="AckWaitSec=2s\n" + configuration, server=server)
        second = self.bridged(configuration=configuration, server=first.nats)
        first.bridge.process.send_signal(signal.SIGSTOP)
        numbers = {second.client.store("jobs.actor.any", "pid") for _ in range(8)}
        self.wait_results(second, numbers)
        self.wait_empty(second)
        self.assertGreater(self.consumer(second)["delivered"]["consumer_seq"], len(numbers))  # the first machine had some
        second.bridge.end()
        first.bridge.process.send_signal(signal.SIGCONT)
        number = first.client.store("jobs.actor.any", "pid")
        self.wait_results(first, {number})
        self.assertEqual([job["id"] for job in first.call("List", ended=True)["jobs"]], [f"JOBS:{number}"])

    def test_N2_what_a_frozen_machine_had_and_another_has_done_is_not_done_again(self):
        self.freeze_until_done_elsewhere()

    @unittest.skipUnless(shutil.which("openssl"), "openssl is missing")
    def test_N2_what_a_frozen_machine_had_and_another_has_done_is_not_done_again_with_TLS(self):
        certificate, key = nkeys.certificate(self)
        server = nats.Server(self, f'tls {{ cert_file: "{certificate}", key_file: "{key}" }}\n', certificate=certificate).start()
        self.freeze_until_done_elsewhere(server, f"CAFile={certificate}\n")

    def test_N5_a_job_that_waits_too_long_is_given_back(self):
        first = self.bridged(configuration="AckWaitSec=1s\nGiveBackSec=1s\n")
        first.call("Pause", target="actor")
        first.client.store("jobs.actor.any", "pid")
        self.wait_state(first, "JOBS:1", "queued")
        second = self.bridged(server=first.nats)
        self.assertEqual(int(self.result(second)[2]), second.worker("actor/0")["pid"])
        self.wait_empty(second)

    def test_N5_a_machine_that_stops_gives_back_what_has_not_begun(self):
        first = self.bridged()
        bell = Bell(first, "bell")
        first.client.store("jobs.actor.any", f"wait {bell.path}\necho first")
        self.wait_state(first, "JOBS:1", "running")
        first.client.store("jobs.actor.any", "pid")
        self.wait_state(first, "JOBS:2", "queued")
        second = self.bridged(server=first.nats)
        first.bridge.process.terminate()
        number, _, pid = self.result(second)
        self.assertEqual((number, int(pid)), (2, second.worker("actor/0")["pid"]))
        bell.ring()
        self.assertEqual(self.result(second)[2], "first")
        self.assertEqual(first.bridge.process.wait(LIMIT), 0)
        self.wait_empty(second)

    def test_N5_a_machine_that_stops_gives_back_what_it_has_no_room_for(self):
        first = self.bridged(actor(QueueMax=1), "AckWaitSec=60min\n")
        bell = Bell(first, "bell")
        first.client.store("jobs.actor.any", f"wait {bell.path}\necho first")
        self.wait_state(first, "JOBS:1", "running")
        first.client.store("jobs.actor.any", "pid")
        self.wait_state(first, "JOBS:2", "queued")
        with first.stopped():
            first.client.store("jobs.actor.any", "pid")
            first.client.until(lambda: self.consumer(first)["num_ack_pending"] == 3)
            second = self.bridged(server=first.nats)
            first.bridge.process.terminate()
            first.bridge.wait_told("STOPPING=1")
        pid = second.worker("actor/0")["pid"]
        self.assertEqual({(number, int(data)) for number, _, data in (self.result(second) for _ in range(2))}, {(2, pid), (3, pid)})
        bell.ring()
        self.assertEqual(first.bridge.process.wait(LIMIT), 0)
        self.wait_empty(second)

    def wait_given_back(self, s):
        """Until this machine has given a message back; it writes metrics.prom."""
        def is_written():
            with contextlib.suppress(FileNotFoundError), open(s.path("metrics.prom"), encoding="ascii") as file:
                return re.search(r"^troupe_nats_given_back_total.* 1$", file.read(), re.MULTILINE)
            return False
        s.until(is_written)

    def withdrawing(self, ack_wait):
        """A machine that has a job in its queue, and gives it back once its group stops. It writes metrics.prom."""
        s = self.supervisor({"actor": actor()}).start()
        s.nats, s.client = (server := nats.Server(self).start()), nats.Client(self, server)
        s.bridge = nats.Bridge(self, s, server, "actor", f"AckWaitSec={ack_wait}\nMetricsFile={s.path('metrics.prom')}\n").setup().start()
        s.bridge.wait_told("Takes messages")
        s.bell = Bell(s, "bell")
        s.call("Pause", target="actor")
        s.client.store("jobs.actor.any", f"wait {s.bell.path}\necho first")
        self.wait_state(s, "JOBS:1", "queued")
        return s

    def test_N2_what_is_given_back_while_the_engine_is_away_is_not_given_back_later(self):
        s = self.withdrawing("60min")
        s.nats.end()
        s.bridge.wait_told("NATS is away")
        s.call("Stop", target="actor")
        self.wait_given_back(s)
        s.call("Resume", target="actor")
        s.call("Start", target="actor")
        s.nats.start()
        s.bridge.wait_told("Takes messages")
        s.client = nats.Client(self, s.nats)
        s.results = s.client.subscribe("troupe.result.JOBS.*")
        s.bell.ring()
        s.client.store("jobs.actor.any", "echo second")
        self.assertEqual(self.result(s)[::2], (2, "second"))
        self.assertEqual(self.consumer(s)["delivered"]["consumer_seq"], 2)

    def test_N2_a_machine_that_was_frozen_does_not_give_back_what_another_one_has(self):
        first = self.withdrawing("2s")
        first.bridge.process.send_signal(signal.SIGSTOP)
        second = self.bridged(server=first.nats)
        self.wait_state(second, "JOBS:1", "running")
        of_first = second.client.subscribe("$JS.ACK.JOBS.actor.1.1.>")
        second.client.pending(of_first)
        first.call("Stop", target="actor")
        first.bridge.process.send_signal(signal.SIGCONT)
        self.wait_given_back(first)
        first.bridge.end()
        self.assertNotIn(b"-NAK", [message.data for message in second.client.pending(of_first)])
        first.bell.ring()
        self.assertEqual(self.result(second)[::2], (1, "first"))

    def test_N5_what_was_given_back_is_done_when_it_comes_again(self):
        s = self.bridged()
        bell = Bell(s, "bell")
        s.client.store("jobs.actor.any", f"wait {bell.path}\necho first")
        self.wait_state(s, "JOBS:1", "running")
        s.client.store("jobs.actor.any", "echo second")
        self.wait_state(s, "JOBS:2", "queued")
        s.bridge.process.terminate()
        s.wait_job("JOBS:2")  # cancelled
        bell.ring()
        self.assertEqual(s.bridge.process.wait(LIMIT), 0)
        s.bridge.start()
        self.assertEqual([self.result(s)[2] for _ in range(2)], ["first", "second"])
        self.wait_empty(s)

    def test_N3_what_was_given_back_and_has_come_again_is_recognised_though_the_first_result_is_gone(self):
        s = self.bridged(actor(2, ResultsMax=1), "AckWaitSec=1s\n")
        started, bell = Bell(s, "started"), Bell(s, "bell")
        s.call("Pause", target="actor")
        s.client.store("jobs.actor.any", f"ring {started.path}\nwait {bell.path}\necho done")
        self.wait_state(s, "JOBS:1", "queued")
        self.assertEqual(s.bridge.end(), 0)  # gives it back
        s.call("Resume", target="actor")
        s.bridge.start()
        self.wait_state(s, "JOBS:1:1", "running")
        s.wait_job(s.create("actor", "echo local"))  # its result takes the place of that of the first one
        with self.assertRaises(VarlinkError):
            s.job("JOBS:1")
        s.bridge.end(signal.SIGKILL)
        bell.ring()
        s.wait_job("JOBS:1:1")
        s.bridge.start()
        self.wait_empty(s)
        self.assertEqual(os.read(started.fd, 100), b"rung\n")

    FAILS = {**QUICK, "StartLimitBurst": 3, "StartLimitIntervalSec": "1h"}

    @unittest.skipIf(SANITIZED, "needs a library before all others")
    def test_what_has_come_again_is_done_though_the_store_of_other_groups_has_failed(self):
        s = self.supervisor({"actor": actor(), "kept": actor(Durable="yes")})
        s.write("troupe.conf", f"[Supervisor]\nStateDirectory={s.path('state')}\n")
        s.environment.update(LD_PRELOAD=helper("preload/failing-sync.so"), FAILING_SYNC=s.path("fails"))
        s.start()
        server = nats.Server(self).start()
        s.client = nats.Client(self, server)
        s.results, taken = s.client.subscribe("troupe.result.JOBS.*"), s.client.subscribe("taken")
        bridge = nats.Bridge(self, s, server, "actor").setup()
        s.client.store("jobs.actor.any", "echo hello")
        s.client.publish("$JS.API.CONSUMER.MSG.NEXT.JOBS.actor", reply="taken")
        s.client.publish(s.client.next(taken).reply, "-NAK")
        with open(s.path("fails"), "w", encoding="ascii"):
            pass
        with self.assertRaises(VarlinkError):
            s.create("kept", "echo")
        bridge.start()
        self.assertEqual(self.result(s)[2], "hello")
        self.assertNotIn("takes no jobs", bridge.log())

    def fail_group(self, s):
        """Kills the worker until its group has failed."""
        def next_state(generation):
            worker = s.worker("actor/0")
            return worker if worker["state"] == "failed" or (worker["generation"], worker["state"]) == (generation, "idle") else None
        worker = s.worker("actor/0")
        while worker["state"] != "failed":
            os.kill(worker["pid"], signal.SIGKILL)
            worker = s.wait_for(lambda: next_state(worker["generation"] + 1), "actor")

    # In these, nothing comes again by itself: AckWait is an hour.

    def test_N5_a_group_that_has_failed_gives_its_jobs_to_another_machine_at_once(self):
        first = self.bridged(ini(ACTOR, Restart=self.FAILS, Jobs={"BackoffMinSec": "1h", "BackoffMaxSec": "1h"}),
                             "AckWaitSec=60min\n")
        first.client.store("jobs.actor.any", "before 2 retry 1 again\npid")
        self.wait_state(first, "JOBS:1", "backoff")
        first.call("Pause", target="actor")
        first.client.store("jobs.actor.any", "pid")
        self.wait_state(first, "JOBS:2", "queued")
        first.client.store("jobs.actor.any", "pid", {"Troupe-Delay": "100ms"})
        first.client.until(lambda: self.consumer(first)["num_ack_pending"] == 3)
        second = self.bridged(server=first.nats)
        self.fail_group(first)
        pid = second.worker("actor/0")["pid"]
        self.assertEqual({(number, int(data)) for number, _, data in (self.result(second) for _ in range(3))},
                         {(1, pid), (2, pid), (3, pid)})
        self.wait_empty(second)

    def test_N5_a_group_that_has_failed_takes_nothing_until_it_is_reset(self):
        s = self.bridged(ini(ACTOR, Restart=self.FAILS), "AckWaitSec=60min\n")
        self.fail_group(s)
        s.bridge.wait_told("Gives messages back")
        s.client.store("jobs.actor.any", "echo later")
        ended(s.pidfd, 7)  # it asks again every 5 seconds
        # By the request that was open, if it was quick; it is given back then, and pending all the same.
        self.assertLessEqual(self.consumer(s)["delivered"]["consumer_seq"], 1)
        s.call("Reset", target="actor")
        self.assertEqual(self.result(s)[2], "later")
        self.wait_empty(s)

    def test_N5_a_stopped_group_gives_its_jobs_to_another_machine(self):
        first = self.bridged(configuration="AckWaitSec=60min\n")
        first.call("Pause", target="actor")
        first.client.store("jobs.actor.any", "pid")
        self.wait_state(first, "JOBS:1", "queued")
        second = self.bridged(server=first.nats)
        first.call("Stop", target="actor")
        self.assertEqual(int(self.result(second)[2]), second.worker("actor/0")["pid"])
        self.wait_empty(second)

    def test_N5_a_supervisor_that_stops_gives_what_it_refuses_to_another_machine(self):
        for durable in "no", "yes":
            first = self.bridged(actor(Durable=durable), "AckWaitSec=60min\n")
            bell = Bell(first, "bell")  # the job that waits for it may come to the other machine, too
            first.client.store("jobs.actor.any", f"wait {bell.path}\necho first")
            self.wait_state(first, "JOBS:1", "running")
            first.terminate()
            first.wait_told("STOPPING=1")
            first.client.store("jobs.actor.any", "pid")
            first.client.until(lambda: "takes no jobs" in first.bridge.log())
            second = self.bridged(actor(2), server=first.nats)
            # By the first one's subscription, which was there before the other bridge has started.
            self.assertIn(int(self.result(first)[2]), [second.worker(f"actor/{n}")["pid"] for n in range(2)])
            bell.ring()
            first.bridge.end(signal.SIGKILL)
            second.bridge.end()

    def test_N2_a_durable_job_is_not_done_elsewhere_while_its_supervisor_stops(self):
        first = self.bridged(actor(Durable="yes"), "AckWaitSec=1s\n")
        bell = Bell(first, "bell")
        first.client.store("jobs.actor.any", f"wait {bell.path}\necho first")
        self.wait_state(first, "JOBS:1", "running")
        first.client.store("jobs.actor.any", "pid")
        self.wait_state(first, "JOBS:2", "queued")
        second = self.bridged(server=first.nats)
        first.terminate()
        first.wait_told("STOPPING=1")
        first.client.until(lambda: "takes no jobs" in first.bridge.log())
        ended(first.pidfd, 4)  # it hears of no life for longer than AckWait
        self.assertEqual(second.client.pending(second.results), [])
        self.assertEqual(self.consumer(second)["num_redelivered"], 0)
        bell.ring()
        first.bridge.end()

    def test_a_message_without_a_key_is_refused_as_no_group_takes_it(self):
        s = self.bridged()
        self.assertIn("503", s.client.request("jobs.actor", "echo").headers[""])
        s.client.store("jobs.actor.any", "echo done")
        self.assertEqual(self.result(s)[2], "done")

    def test_setup_says_what_is_new_and_how_what_exists_differs(self):
        server = nats.Server(self).start()
        client = nats.Client(self, server)
        bridge = nats.Bridge(self, self.supervisor({}), server, "actor")

        def said(configuration=""):
            with open(bridge.config, "w", encoding="utf-8") as file:
                file.write(f"[Nats]\nURL={server.url}\n{configuration}")
            done = bridge.run("setup", "actor")
            self.assertEqual(done.returncode, 0, done.stderr)
            return done.stderr.replace("troupe-nats: ", "").splitlines()
        everything = ["stream JOBS", "stream TROUPE", "consumer actor", "bucket TROUPE_STATE", "bucket TROUPE_MACHINES"]
        self.assertEqual(said(), [f"info: {what} is new" for what in everything])
        self.assertEqual(said(), [f"info: {what} exists" for what in everything])
        differs = " exists, and is left as it is, though it differs: "
        self.assertEqual(said("Replicas=3\nAckWaitSec=1500ms\nStateSec=1s\nFilter=jobs.actor.big.>\n"), [
            f"warning: stream JOBS{differs}replicas 1, not 3",
            f"warning: stream TROUPE{differs}replicas 1, not 3",
            f"warning: consumer actor{differs}filter jobs.actor.>, not jobs.actor.big.>; ack wait 30s, not 1.5s",
            f"warning: bucket TROUPE_STATE{differs}replicas 1, not 3; max age 30s, not 3s",
            f"warning: bucket TROUPE_MACHINES{differs}replicas 1, not 3"])
        client.api("STREAM.DELETE.JOBS")
        client.api("STREAM.CREATE.JOBS", name="JOBS", subjects=["jobs.>", "x"], storage="memory")
        client.api("CONSUMER.DURABLE.CREATE.JOBS.actor", stream_name="JOBS",
                   config={"durable_name": "actor", "ack_policy": "all", "ack_wait": 30 * 10**9, "max_deliver": 5,
                           "max_ack_pending": 100})
        self.assertEqual(said()[::2], [
            f"warning: stream JOBS{differs}subjects jobs.>,x, not jobs.*.>; retention limits, not workqueue; storage memory, not file; "
            "duplicate window 120s, not 600s",
            f"warning: consumer actor{differs}filter none, not jobs.actor.>; ack policy all, not explicit; max deliver 5, not -1; "
            "max ack pending 100, not 1000000",
            "info: bucket TROUPE_MACHINES exists"])

    def test_setup_does_not_make_a_stream_anew_whose_name_has_results(self):
        for subject, wildcard in (("troupe.result.JOBS.17", "troupe.result.JOBS.>"), ("troupe.dead.other.JOBS.17", "troupe.dead.*.JOBS.>")):
            server = nats.Server(self).start()
            client = nats.Client(self, server)
            supervisor = self.supervisor({})
            bridge = nats.Bridge(self, supervisor, server, "actor").setup()
            client.store("troupe.result.JOBS2.17")
            client.store("troupe.dead.JOBS.JOBS2.17")
            client.store(subject)
            bridge.setup()  # the stream exists, and has results of its own
            nats.Bridge(self, supervisor, server, "another").setup()
            for stream in "JOBS", "KV_TROUPE_STATE":
                client.api(f"STREAM.DELETE.{stream}")
            done = bridge.run("setup", "actor")
            self.assertEqual(done.returncode, 1)
            self.assertEqual(len(done.stderr.splitlines()), 1)
            for part in "stream JOBS: not made", subject, "Stream=", "ResultTTLSec=", f'{{"filter":"{wildcard}"}} to $JS.API.STREAM.PURGE.TROUPE':
                self.assertIn(part, done.stderr)
            self.assertEqual(sorted(client.api("STREAM.NAMES")["streams"]), ["KV_TROUPE_MACHINES", "TROUPE"])
            client.api("STREAM.PURGE.TROUPE", filter=wildcard)
            bridge.setup()
            self.assertEqual(client.messages("TROUPE"), 2)

    def test_setup_makes_no_stream_if_it_cannot_learn_of_results(self):
        server = nats.Server(self, 'authorization { users: [ { user: "troupe", password: "sesame", permissions: '
                             '{ publish: { deny: "$JS.API.STREAM.MSG.GET.>" } } } ] }\n').start()
        client = nats.Client(self, server, user="troupe", **{"pass": "sesame"})
        bridge = nats.Bridge(self, self.supervisor({}), server, "actor", environment={
            "NATS_URL": f"nats://troupe:sesame@127.0.0.1:{server.port}"})
        done = bridge.run("setup", "actor")
        self.assertEqual(done.returncode, 1)
        self.assertIn("stream JOBS: not made, as $JS.API.STREAM.MSG.GET.TROUPE does not say", done.stderr)
        self.assertFalse(client.api("STREAM.NAMES")["streams"])

    def test_setup_leaves_a_consumer_alone_that_it_cannot_learn_of(self):
        server = nats.Server(self).start()
        s = self.supervisor({})
        nats.Bridge(self, s, server, "actor", "AckWaitSec=1s\n").setup()
        server.end()
        server.configuration = ('authorization { users: [ { user: "troupe", password: "sesame", permissions: '
                                '{ publish: { deny: "$JS.API.CONSUMER.INFO.>" } } } ] }\n')
        server.start()
        client = nats.Client(self, server, user="troupe", **{"pass": "sesame"})
        with open(s.path("nats.conf"), "w", encoding="utf-8") as file:
            file.write("[Nats]\nAckWaitSec=2s\n")
        done = subprocess.run([nats.TROUPE_NATS, "--config", s.path("nats.conf"), "setup", "actor"], capture_output=True, text=True,
                              env={**os.environ, "NATS_URL": f"nats://troupe:sesame@127.0.0.1:{server.port}"}, timeout=LIMIT)
        self.assertEqual(done.returncode, 1)
        self.assertIn("consumer actor: ", done.stderr)
        [consumer] = client.api("CONSUMER.LIST.JOBS")["consumers"]
        self.assertEqual(consumer["config"]["ack_wait"], 10**9)

    def test_a_warning_tells_that_a_consumer_does_not_deliver_for_ever(self):
        s = self.bridged()
        self.assertNotIn("max deliver", s.bridge.log())
        s.bridge.end()
        s.client.api("CONSUMER.DELETE.JOBS.actor")
        s.client.api("CONSUMER.DURABLE.CREATE.JOBS.actor", stream_name=JOBS, config={"durable_name": "actor", "ack_policy": "explicit", "max_deliver": 5})
        s.bridge.start().wait_told("Takes messages")
        self.assertIn("consumer actor of stream JOBS: max deliver is 5, not -1", s.bridge.log())

    def test_a_consumer_that_needs_no_acknowledgement_of_each_message_is_not_used(self):
        s = self.supervisor({"actor": actor()}).start()
        server = nats.Server(self).start()
        client = nats.Client(self, server)
        client.api("STREAM.CREATE.JOBS", name=JOBS, subjects=["jobs.*.>"], storage="file")
        client.api("CONSUMER.DURABLE.CREATE.JOBS.actor", stream_name=JOBS, config={"durable_name": "actor", "ack_policy": "all"})
        bridge = nats.Bridge(self, s, server, "actor").start()
        bridge.wait_told("Waits for the consumer")
        self.assertIn('its ack policy is not explicit; "troupe-nats setup" makes it anew once it is deleted', bridge.log())

    def test_setup_says_that_a_server_has_no_JetStream(self):
        s = self.supervisor({"actor": actor()})
        server = nats.Server(self, "jetstream: false\n").start()
        done = nats.Bridge(self, s, server, "actor").run("setup", "actor")
        self.assertEqual(done.returncode, 1)
        self.assertIn("stream JOBS: the server has no JetStream, or is electing a leader", done.stderr)

    @unittest.skipUnless(os.geteuid() == 0, "needs root")
    def test_who_may_create_no_jobs_is_told_who_may(self):
        s = self.bridged()
        s.bridge.end()
        s.bridge.wrapper = "setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"
        self.assertEqual(s.bridge.start().process.wait(LIMIT), 1)
        self.assertIn("members of AdminGroup= may create jobs", s.bridge.log())

    def test_keys_are_pinned_to_machines_by_consumers_with_filters(self):
        s = self.bridged(configuration="Consumer=a\nFilter=jobs.actor.a.>\n")
        other = self.bridged(server=s.nats, configuration="Consumer=b\nFilter=jobs.actor.b.>\n")
        for n in range(10):
            for key in "a", "b":
                s.client.store(f"jobs.actor.{key}.{n}", "pid")
        pids = {}
        while len(pids) < 20:
            number, _, pid = self.result(s)
            pids[number] = int(pid)
        self.assertEqual(pids, {n: (s, other)[n % 2 == 0].worker("actor/0")["pid"] for n in range(1, 21)})
        for configuration, problem in (
                ("", "consumer actor: another consumer of stream JOBS has messages of jobs.actor.>, and must be removed first"),
                ("Consumer=c\nFilter=jobs.other.>\n", "nats.conf:4: Filter=: no valid value; allowed: jobs.GROUP.KEY with the group of the command, where"),
                ("Filter=jobs.actor.>.a\n", "nats.conf:3: Filter=: no valid"),
                ("Filter=jobs.actor.a..b\n", "nats.conf:3: Filter=: no valid"),
                ("Filter=jobs.actor.a*\n", "nats.conf:3: Filter=: no valid"),
                ("Consumer=a.b\n", "nats.conf:3: Consumer=: no valid value; allowed: a name of A-Z a-z")):
            with open(s.bridge.config, "w", encoding="utf-8") as file:
                file.write(f"[Nats]\nURL={s.nats.url}\n{configuration}")
            done = subprocess.run([nats.TROUPE_NATS, "--config", s.bridge.config, "setup", "actor"], capture_output=True,
                                  text=True, timeout=LIMIT)
            self.assertRegex(done.stderr, problem)
            self.assertEqual(done.returncode, 1)

    def test_N5_a_drained_group_gives_its_messages_to_another_machine(self):
        first = self.bridged()
        first.call("Drain", target="actor")
        first.client.store("jobs.actor.any", "pid")
        first.client.until(lambda: "takes no jobs" in first.bridge.log())
        second = self.bridged(server=first.nats)
        # By the first one's subscription, which was there before the other bridge has started.
        self.assertEqual(int(self.result(first)[2]), second.worker("actor/0")["pid"])

    def test_N5_a_group_that_drains_gives_back_what_waits_for_another_attempt_and_works_off_the_queue(self):
        first = self.bridged(actor(BackoffMinSec="60min", BackoffMaxSec="60min"), "AckWaitSec=3s\n")
        bell = Bell(first, "bell")
        crashed = first.client.store("jobs.actor.any", f"before 2 wait {bell.path}\nbefore 2 crash kill\nattempt")
        queued = first.client.store("jobs.actor.any", "pid")
        self.wait_state(first, f"JOBS:{queued}", "queued")
        first.call("Drain", target="actor")
        first.client.until(lambda: "takes no jobs" in first.bridge.log())
        second = self.bridged(server=first.nats)
        bell.ring()
        done, _, data = self.result(first)
        self.assertEqual((done, int(data)), (queued, first.worker("actor/0")["pid"]))
        self.wait_state(second, f"JOBS:{crashed}", "running")
        bell.ring()
        self.assertEqual(self.result(first)[0], crashed)

    def test_a_job_that_somebody_cancelled_is_not_done_when_it_comes_again(self):
        s = self.bridged(configuration="AckWaitSec=1s\n")
        s.client.store("jobs.actor.any", "until-cancelled")
        self.wait_state(s, "JOBS:1", "running")
        s.bridge.end(signal.SIGKILL)
        s.call("Cancel", id="JOBS:1")
        s.wait_job("JOBS:1")
        s.bridge.start()
        self.assertEqual(self.result(s)[1]["Troupe-End"], "cancelled")
        self.wait_empty(s)

    def test_a_job_that_somebody_cancels_is_not_done_elsewhere(self):
        s = self.bridged()
        s.client.store("jobs.actor.any", "until-cancelled")
        self.wait_state(s, "JOBS:1", "running")
        s.call("Cancel", id="JOBS:1")
        self.assertEqual(self.result(s)[1]["Troupe-End"], "cancelled")
        self.wait_empty(s)

    def test_a_durable_job_that_somebody_cancels_is_not_done_again_though_the_supervisor_crashes(self):
        s = self.bridged(actor(Durable="yes"), "AckWaitSec=1s\n")
        bell = Bell(s, "bell")
        s.client.store("jobs.actor.any", f"wait {bell.path}\necho done")
        self.wait_state(s, "JOBS:1", "running")
        s.call("Cancel", id="JOBS:1")
        s.crash()
        s.until(lambda: s.job("JOBS:1").get("cancel_requested"))
        bell.ring()
        self.assertEqual(self.result(s)[1]["Troupe-End"], "cancelled")
        self.wait_empty(s)

    def test_N2_a_consumer_whose_AckWait_becomes_shorter_hears_of_life_more_often(self):
        s = self.bridged(configuration="AckWaitSec=60min\n")
        consumer = self.consumer(s)["config"]
        s.client.api("CONSUMER.DURABLE.CREATE.JOBS.actor", stream_name=JOBS, config={**consumer, "ack_wait": 2 * 10**9})
        acknowledgements = s.client.subscribe("$JS.ACK.JOBS.>")
        bell = Bell(s, "bell")
        s.client.store("jobs.actor.any", f"wait {bell.path}")
        self.assertEqual(s.client.next(acknowledgements).data, b"+WPI")
        bell.ring()

    def test_a_consumer_that_is_made_anew_is_used_as_it_is_now(self):
        s = self.bridged(configuration="AckWaitSec=60min\n")
        s.client.api("CONSUMER.DELETE.JOBS.actor")
        s.bridge.wait_told("Waits for the consumer")
        self.assertEqual(s.bridge.log().count("consumer actor of stream JOBS: consumer not found"), 1)
        s.bridge.setup()
        s.bridge.wait_told("Takes messages")
        s.client.store("jobs.actor.any", "echo hello")
        self.assertEqual(self.result(s)[2], "hello")

    def test_a_consumer_with_a_tiny_AckWait_does_not_keep_the_bridge_from_its_work(self):
        s = self.supervisor({"actor": actor()})
        s.start()
        server = nats.Server(self).start()
        client = nats.Client(self, server)
        client.api("STREAM.CREATE.JOBS", name="JOBS", subjects=["jobs.>"], retention="workqueue", storage="file")
        client.api("CONSUMER.DURABLE.CREATE.JOBS.actor", stream_name="JOBS", config={
            "durable_name": "actor", "ack_policy": "explicit", "ack_wait": 2000, "filter_subject": "jobs.actor.>",
            "max_deliver": -1})
        bridge = nats.Bridge(self, s, server, "actor").setup().start()
        bridge.wait_told("Takes messages")
        results = client.subscribe("troupe.result.JOBS.*")
        bell = Bell(s, "bell")
        client.store("jobs.actor.any", f"wait {bell.path}\necho hello")
        self.wait_state(s, "JOBS:1", "running")
        bell.ring()
        self.assertEqual(client.next(results).data, b"hello")


class Engine(Case):
    def test_N6_a_result_waits_for_the_engine(self):
        s = self.bridged()
        bell = Bell(s, "bell")
        s.client.store("jobs.actor.any", f"wait {bell.path}\necho late")
        self.wait_state(s, "JOBS:1", "running")
        s.nats.end()
        s.bridge.wait_told("NATS is away")
        bell.ring()
        s.wait_job("JOBS:1")
        server = f"127.0.0.1:{s.nats.port}"
        s.bridge.wait_told(f"NATS is away, which was last at {server}, connects again; 1 result waits; group actor")
        self.assertIn(f"the connection to NATS at {server} is lost", s.bridge.log())
        self.assertEqual(s.do("actor", "echo local")["state"], "succeeded")
        s.nats.start()
        s.bridge.wait_told("Takes messages")
        s.client = nats.Client(self, s.nats)
        self.wait_empty(s)
        self.assertEqual(s.client.messages("TROUPE"), 1)

    def test_N6_metrics_tell_of_the_engine_and_of_results_that_wait_for_it(self):
        directory = tempfile.mkdtemp(prefix="troupe-nats-")
        self.addCleanup(shutil.rmtree, directory)
        path = os.path.join(directory, "nats.prom")

        def metrics():
            with contextlib.suppress(FileNotFoundError), open(path, encoding="ascii") as file:
                return {name[len("troupe_nats_"):]: int(value) for name, value in re.findall(
                    r'^(\w+){group="actor",stream="JOBS"} (\d+)$', file.read(), re.MULTILINE)}
            return {}

        def reach(s, **expected):
            s.until(lambda: expected.items() <= metrics().items())
        victim = os.path.join(directory, "victim")
        os.symlink(victim, path + ".new")  # by somebody who may write there, too
        s = self.bridged(actor(MaxRetries=0), f"MetricsFile={path}\n")
        s.client.store("jobs.actor.any", "echo")
        s.client.store("jobs.actor.any", "crash kill")
        reach(s, connected=1, taking=1, stalled=0, in_flight=0, unpublished=0, messages_total=2, redelivered_total=0, results_total=2,
              dead_total=1, given_back_total=0, connections_total=1, publish_failures_total=0)
        bell = Bell(s, "bell")
        s.client.store("jobs.actor.any", f"wait {bell.path}\necho late")
        reach(s, in_flight=1, unpublished=0)
        s.nats.end()
        reach(s, connected=0, taking=0)
        bell.ring()
        reach(s, unpublished=1)
        s.nats.start()
        reach(s, connected=1, unpublished=0, in_flight=0, results_total=3, connections_total=2)
        s.call("Stop", target="actor")
        reach(s, taking=0)
        s.bridge.end()
        self.assertEqual(os.listdir(directory), [])

    def test_N6_it_starts_without_the_engine(self):
        s = self.started({"actor": actor()})
        s.nats = nats.Server(self).start()
        s.nats.end()
        s.bridge = nats.Bridge(self, s, s.nats, "actor").start()
        s.bridge.wait_told("READY=1")
        s.nats.start()
        s.bridge.setup()
        s.client = nats.Client(self, s.nats)
        s.client.store("jobs.actor.any", "echo hello")
        self.wait_empty(s)

    def test_N8_a_password_is_in_no_log(self):
        server = nats.Server(self, 'authorization { user: "troupe", password: "sesame" }\n').start()
        s = self.started({"actor": actor()})
        s.bridge = nats.Bridge(self, s, server, "actor", environment={
            "NATS_URL": f"nats://troupe:sesame@127.0.0.1:{server.port}"}).setup().start()
        s.bridge.wait_told("Takes messages")
        server.end()
        s.bridge.wait_told("NATS is away")
        server.configuration = 'authorization { user: "troupe", password: "other" }\n'
        server.start()
        self.assertEqual(s.bridge.process.wait(LIMIT), 1)
        self.assertIn("NATS refuses the user or the password in URL=", s.bridge.log())
        self.assertNotIn("sesame", s.bridge.log())

    def test_it_runs_as_a_service_of_the_supervisor(self):
        server = nats.Server(self).start()
        s = self.supervisor({"actor": actor()})
        nats.Bridge(self, s, server, "actor").setup()
        s.write("nats.group", ini(
            f"{nats.TROUPE_NATS} --config {s.path('nats.conf')} serve actor",
            Group={"Type": "notify", "After": "actor", "Environment": f"TROUPE_SOCKET={s.socket_path}"}))
        s.start()
        s.until(lambda: "Takes messages" in s.worker("nats/0").get("status", ""))
        client = nats.Client(self, server)
        results = client.subscribe("troupe.result.JOBS.*")
        client.store("jobs.actor.any", "echo hello")
        self.assertEqual(client.next(results).data, b"hello")
        s.stop()

    @unittest.skipUnless(shutil.which("openssl"), "openssl is missing")
    def test_N8_it_speaks_TLS_with_certificates_on_both_sides(self):
        certificate, key = nkeys.certificate(self)
        server = nats.Server(self, f'tls {{ cert_file: "{certificate}", key_file: "{key}", ca_file: "{certificate}", '
                                   'verify: true }\n').start()
        s = self.started({"actor": actor()})
        bridge = nats.Bridge(self, s, server, "actor",
                             f"CAFile={certificate}\nCertificateFile={certificate}\nKeyFile={key}\n").setup().start()
        bridge.wait_told("Takes messages")

    @unittest.skipUnless(shutil.which("openssl"), "openssl is missing")
    def test_N8_it_proves_who_it_is_by_an_nkey(self):
        user = nkeys.Key(self, nkeys.USER)
        s, server = self.started({"actor": actor()}), nats.Server(self)
        server.configuration = f'authorization {{ users: [ {{ nkey: "{user.public}" }} ] }}\n'
        server.start()
        bridge = nats.Bridge(self, s, server, "actor", f"NKey={user.public}\nNKeyFile={user.seed_file()}\n")
        bridge.setup().start().wait_told("Takes messages")
        bridge.end()
        self.assertNotIn("can read a secret", bridge.log())
        os.chmod(user.seed_file(), 0o644)
        bridge.start().wait_told("Takes messages")
        self.assertIn(f"{user.seed_file()}: everybody can read a secret; leave it to the user of serve: "
                      f"chown root:troupe-nats {user.seed_file()} && chmod 640 {user.seed_file()}", bridge.log())
        stranger = nkeys.Key(self, nkeys.USER)
        with open(bridge.config, "w", encoding="utf-8") as file:
            file.write(f"[Nats]\nURL={server.url}\nNKey={stranger.public}\nNKeyFile={stranger.seed_file()}\n")
        bridge.end()
        self.assertEqual(bridge.start().process.wait(LIMIT), 1)
        self.assertIn("NATS refuses the user of NKey= and NKeyFile=", bridge.log())

    @unittest.skipUnless(shutil.which("openssl"), "openssl is missing")
    def test_N8_it_works_in_an_account_with_a_file_of_credentials(self):
        tree = nkeys.Tree(self)
        server = nats.Server(self, tree.server_configuration()).start()
        s = self.started({"actor": actor()})
        bridge = nats.Bridge(self, s, server, "actor", f"Credentials={tree.credentials('jobs')}\n")
        bridge.setup().start().wait_told("Takes messages")

        def run(*arguments):
            return subprocess.run([nats.TROUPE_NATS, "--config", bridge.config, *arguments], capture_output=True, text=True,
                                  input="echo hello", timeout=LIMIT)
        created = run("create", "actor")
        self.assertEqual((created.returncode, json.loads(created.stdout)["id"]), (0, "JOBS:1"), created.stderr)
        waited = run("wait", "JOBS:1")
        self.assertIn("succeeded", waited.stdout, waited.stderr)
        # Another account has streams of its own.
        with open(bridge.config, "w", encoding="utf-8") as file:
            file.write(f"[Nats]\nURL={server.url}\nCredentials={tree.credentials('other')}\n")
        self.assertNotEqual(run("create", "actor").returncode, 0)

    def test_N8_tls_in_a_URL_demands_TLS(self):
        server = nats.Server(self).start()
        for scheme in "tls", "TLS":
            s = self.started({"actor": actor()})
            bridge = nats.Bridge(self, s, server, "actor", environment={
                "NATS_URL": f"{scheme}://127.0.0.1:{server.port}"}).start()
            self.assertEqual(bridge.process.wait(LIMIT), 1)
            self.assertIn("the server has no TLS", bridge.log())
            self.assertNotIn("connected to NATS", bridge.log())
            s.stop()

    def test_more_servers_than_it_can_use_are_refused(self):
        s = self.started({"actor": actor()})
        bridge = nats.Bridge(self, s, nats.Server(self), "actor", "URL=" + "nats://host," * 17 + "\n").start()
        self.assertEqual(bridge.process.wait(LIMIT), 1)
        self.assertIn("URL=: no valid value; allowed: 1 to 16 servers with commas", bridge.log())

    def test_mistakes_in_the_configuration_are_reported_together(self):
        s = self.started({"actor": actor()})
        bridge = nats.Bridge(self, s, nats.Server(self), "actor", "InFlight=0\nInflight=1\nCAFile=ca.pem\nMachine=two words\n"
                             "Stream=a.b\nConsumer=a.b\nFilter=jobs.other.>\nNKey=SU\nCredentials=/missing\nURL=http://host:4222\n").start()
        self.assertEqual(bridge.process.wait(LIMIT), 1)
        for line in ("nats.conf:3: InFlight=: no valid value; allowed: a number from 1 to 65536",
                     'nats.conf:4: unknown key "Inflight"; allowed: URL, ',
                     "nats.conf:5: CAFile=: no valid value; allowed: the absolute path of a file",
                     "nats.conf:6: Machine=: no valid value; allowed: 1 to 64 characters of A-Z a-z 0-9 _ - and dots between them",
                     "nats.conf:7: Stream=: no valid value; allowed: 1 to 32 characters of A-Z a-z 0-9 _ -, not beginning with -",
                     "nats.conf:8: Consumer=: no valid value; allowed: a name of A-Z a-z 0-9 _ -, not beginning with -",
                     "nats.conf:9: Filter=: no valid value; allowed: jobs.GROUP.KEY with the group of the command, where parts of KEY may be * and the last part >",
                     "nats.conf:10: NKey=: no valid value; allowed: the public key of a user, 56 letters and digits that begin with U",
                     "Credentials=/missing: No such file or directory",
                     "nats.conf:12: URL=: no valid value; allowed: 1 to 16 servers with commas: nats://HOST:PORT or tls://HOST:PORT"):
            self.assertIn(line, bridge.log())

    def test_N8_no_part_of_a_password_that_stands_in_a_wrong_place_is_logged(self):
        s = self.started({"actor": actor()})
        for lines, reason in (
                ("URL=nats://me:sesame,more@127.0.0.1:1", "nats.conf:3: URL=: no valid value; allowed: 1 to 16 servers"),
                ("URL=nats://me:sesame more@127.0.0.1:1", "nats.conf:3: URL=: no valid value"),
                ("URL=nats://me:sesame", "nats.conf:3: URL=: no valid value"),
                ("URL=nats://me:sesame@127.0.0.1:", "nats.conf:3: URL=: no valid value"),
                ("URL=nats://me:sesame@[::1]:port", "nats.conf:3: URL=: no valid value"),
                ("URL=nats://127.0.0.1:1,\nnats://me:sesame==@127.0.0.1:1", 'nats.conf:4: no name of a key before the "="'),
                ("URL nats://me:sesame=@127.0.0.1:1", 'nats.conf:3: no name of a key before the "="'),
                ("Filter=jobs.other.>\nURL=nats://me:sesame=:@[::1],host,tls://[::1]:1,127.0.0.1", "nats.conf:3: Filter=: no valid value")):
            with self.subTest(lines=lines):
                bridge = nats.Bridge(self, s, nats.Server(self), "actor", lines + "\n")
                done = bridge.run("serve", "actor")
                self.assertIn(reason, done.stderr)
                self.assertNotIn("sesame", done.stderr)
                self.assertEqual("URL=: no" in done.stderr, "URL=: no" in reason)
                os.unlink(bridge.environment["NOTIFY_SOCKET"])

    def test_a_URL_has_a_scheme_of_NATS_or_none(self):
        s, server = self.supervisor({}), nats.Server(self).start()
        bridge = nats.Bridge(self, s, server, "actor")
        for url, right in (("http://127.0.0.1", False), ("ws://127.0.0.1", False), (f"{server.url}, tcp://127.0.0.1", False), ("nats://", False),
                           (",", False), (f"NATS://127.0.0.1:{server.port}", True), (f" 127.0.0.1:{server.port},", True)):
            bridge.environment["NATS_URL"] = url
            done = bridge.run("setup", "actor")
            self.assertEqual((done.returncode == 0, "NATS_URL: URL=: no valid value; allowed: 1 to 16" in done.stderr),
                             (right, not right), (url, done.stderr))

    def test_a_filter_for_another_group_does_not_keep_jobs_from_being_sent(self):
        s, server = self.supervisor({}), nats.Server(self).start()
        bridge = nats.Bridge(self, s, server, "actor", "Filter=jobs.actor.big.>\n").setup()
        self.assertEqual(bridge.run("create", "other").returncode, 0)


if __name__ == "__main__":
    unittest.main()
