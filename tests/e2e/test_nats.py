# SPDX-License-Identifier: MIT
"""troupe-nats: jobs from NATS JetStream."""
import json
import re
import signal
import time

import nats
from troupe import ACTOR, QUICK, TROUPE_EXEC, Bell, TestCase, ended, ini

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

    def hold(self, s, end=""):
        """Stores the first job, which a worker has until the bell rings that is returned; then it does the rest."""
        bell = Bell(s, "bell")
        s.client.store("jobs.actor.any", f"wait {bell.path}\n{end}")
        self.wait_state(s, "JOBS:1", "running")
        return bell

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
        bell = self.hold(s)
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

    def test_X4_the_header_traceparent_names_the_senders_span(self):
        s = self.bridged(ini(f"{TROUPE_EXEC} -- /bin/sh -c {{}}"))
        parent = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"
        for header, seen in (parent, parent[:36] + "[0-9a-f]{16}-01"), (parent[:-1], "none"):
            s.client.store("jobs.actor.any", "printf %s ${TRACEPARENT-none}", {"traceparent": header})
            self.assertRegex(self.result(s)[2], f"^{seen}$")

    def test_the_header_Troupe_Priority_chooses_who_is_first(self):
        s = self.bridged()
        bell = self.hold(s, "echo first")
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
        number = s.client.store("jobs.actor.any", "echo", {"Troupe-Priority": "64"})
        letter = s.client.next(s.letters)
        self.assertEqual(letter.data, b"echo")
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
        letter = self.refused(s, "x" * 8100, {"Troupe-Priority": "64"})
        self.assertEqual((letter.data, letter.headers["Troupe-Priority"]), (b"", "64"))
        self.assertEqual(letter.headers["Troupe-Missing"], "the payload: too large")

    def test_a_dead_letter_has_the_headers_of_its_sender_that_are_for_jobs(self):
        s = self.bridged()
        letter = self.refused(s, "x", ["Troupe-Priority: 64", "traceparent: any", "Troupe-Deaths: {}", "Troupe-Key: mine", "NATS-Rollup: all", "My: own"])
        self.assertEqual({name: value for name, value in letter.headers.items() if name not in
                          ("", "Nats-Msg-Id", "Troupe-Job", "Troupe-End", "Troupe-Reason", "Troupe-Subject")},
                         {"Troupe-Priority": "64", "Troupe-Key": "mine", "traceparent": "any"})

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
