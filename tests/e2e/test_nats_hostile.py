# SPDX-License-Identifier: MIT
"""troupe-nats with a server that sends what no server sends, and a service manager that does not read."""
import base64
import contextlib
import json
import os
import select
import shutil
import signal
import socket
import subprocess
import tempfile
import time
import types
import unittest

import nats
from test_nats import Case, actor
from troupe import ACTOR, LIMIT, QUICK, SANITIZED, Bell, TestCase, ini

INFO = {"server_id": "hostile", "version": "2.10.0", "headers": True, "jetstream": True, "max_payload": 1 << 20, "proto": 1}
API = "io.nats.jetstream.api.v1."
CONSUMER = {"type": API + "consumer_info_response", "config": {"ack_policy": "explicit", "ack_wait": 10**10}}
QUESTION = b"$JS.API.CONSUMER.INFO.JOBS.actor"
SUBSCRIPTIONS = 2
ENDLESS = 2 << 30
BRIEF = 6
BRIEF_PAUSES = 1.5
UNAVAILABLE = {"type": CONSUMER["type"], "error": {"code": 503, "err_code": 10008, "description": "JetStream system temporarily unavailable"}}
QUESTIONS = 12


class Server:
    """One connection, to whose subscriptions it sends anything."""

    def __init__(self, test):
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.listener.settimeout(LIMIT)
        self.url = f"nats://127.0.0.1:{self.listener.getsockname()[1]}"
        test.addCleanup(self.listener.close)
        self.test, self.subjects, self.published, self.replies, self.pauses = test, {}, set(), {}, []

    def accept(self):
        self.subjects.clear()
        self.connection, _ = self.listener.accept()
        connection = self.connection
        connection.settimeout(LIMIT)
        self.test.addCleanup(connection.close)
        self.end = lambda: connection.shutdown(socket.SHUT_RDWR)
        self.lines = connection.makefile("rb")
        self.test.addCleanup(self.lines.close)
        self.send = connection.sendall
        self.send(b"INFO " + json.dumps(INFO).encode() + b"\r\n")
        while len(self.subjects) < SUBSCRIPTIONS:
            self.read()

    def accept_again(self):
        """Ends the connection, and takes the next one."""
        self.connection.shutdown(socket.SHUT_RDWR)
        self.published.clear()
        self.accept()

    def refuse(self):
        connection, _ = self.listener.accept()
        with connection, connection.makefile("rb") as lines:
            connection.sendall(b"INFO " + json.dumps(INFO).encode() + b"\r\n")
            self.test.assertIn(b"PING\r\n", iter(lines.readline, b""))
            connection.sendall(b"-ERR 'Authorization Violation'\r\n")

    def answer_all(self, data):
        """Serves one connection, to its end: each request is answered so."""
        connection, _ = self.listener.accept()
        with connection, connection.makefile("rb") as lines, contextlib.suppress(ConnectionResetError):
            connection.sendall(b"INFO " + json.dumps(INFO).encode() + b"\r\n")
            for line in lines:
                verb, *words = line.split()
                if verb == b"PING":
                    connection.sendall(b"PONG\r\n")
                elif verb == b"SUB":
                    sid = words[-1]
                elif verb == b"PUB":
                    lines.read(int(words[-1]) + 2)
                    connection.sendall(b"MSG %s %s %d\r\n%s\r\n" % (words[1], sid, len(data), data))

    def subscription(self, to_messages):
        """The number of the subscription for messages of a stream, or of that for answers."""
        return next(sid for sid, subject in self.subjects.items() if (subject.count(b".") > 2) == to_messages)

    def answer(self, document, subject=None):
        """An answer to the last question about the consumer, or something that looks like one."""
        data = json.dumps(document).encode()
        self.send(b"MSG %s %s %d\r\n%s\r\n" % (subject or self.replies[QUESTION], self.subscription(False), len(data), data))

    def deliver(self, numbers, data, subject=b"jobs.actor.any", headers=b"NATS/1.0\r\n\r\n"):
        """Messages of a stream that nobody has asked for. Returns how many of them are given back."""
        before, sid = len(self.pauses), self.subscription(True)
        for number in numbers:
            reply = b"$JS.ACK.JOBS.actor.1.%d.%d.1700000000000000000.0" % (number, number)
            size = len(headers) + len(data)
            self.send(b"HMSG %s %s %s %d %d\r\n%s%s\r\n" % (subject, sid, reply, len(headers), size, headers, data))
            if number % 100 == 0:
                self.synchronize()
        self.synchronize()
        return len(self.pauses) - before

    def flood(self, head):
        """Sends more and more of something until the connection ends."""
        self.send(head)
        with contextlib.suppress(OSError):
            for _ in range(ENDLESS >> 20):
                self.send(bytes(1 << 20).replace(b"\0", b"a"))
            self.test.fail("troupe-nats takes all of it")

    def read(self):
        """Returns the next operation."""
        words = self.lines.readline().split()
        if not words:
            self.test.fail("troupe-nats has closed the connection")
        if words[0] == b"PING":
            self.send(b"PONG\r\n")
        elif words[0] == b"SUB":
            self.subjects[words[-1]] = words[1]
        elif words[0] in (b"PUB", b"HPUB"):
            data = self.lines.read(int(words[-1]) + 2)
            self.published.add(words[1])
            self.replies[words[1]] = words[2]
            if data.startswith(b"-NAK"):
                self.pauses.append(json.loads(data[4:].strip() or b'{"delay": 0}')["delay"] / 1e9)
        return words[0]

    def read_until(self, subject):
        """Returns once something was published there."""
        while subject not in self.published:
            self.read()

    def synchronize(self):
        """Returns once all that was sent before has been taken, as it reads on only then."""
        for _ in range(2):
            self.send(b"PING\r\n")
            while self.read() != b"PONG":
                pass


class HostileCase(TestCase):
    def bridged(self, configuration="", group=None):
        nats.require()
        s = self.supervisor({"actor": group or ini(ACTOR)}).start()
        server = Server(self)
        s.bridge = nats.Bridge(self, s, server, "actor", configuration).start()
        server.accept()
        return s, server


class Hostile(HostileCase):
    def test_N6_a_subject_that_was_not_subscribed_to_does_no_harm(self):
        s, server = self.bridged()
        for sid, subject in server.subjects.items():
            inbox = subject.rsplit(b".", 2)[0] if b"*" in subject else subject.rsplit(b".", 1)[0]
            for wrong in b"elsewhere", inbox, inbox + b".p", inbox + b".a", inbox + b".x.y", subject:
                server.send(b"MSG %s %s 2\r\n{}\r\n" % (wrong, sid))
                server.synchronize()
        self.assertIsNone(s.bridge.process.poll())

    def test_N6_what_the_server_answers_to_a_sender_says_nothing_about_the_consumer(self):
        s, server = self.bridged()
        server.read_until(QUESTION)
        server.answer({"type": API + "stream_msg_get_response", "error": {"err_code": 10059, "description": "of others"}})
        server.answer(CONSUMER)
        s.bridge.wait_told("Takes messages")
        self.assertNotIn("of others", s.bridge.log())

    def test_N2_what_the_server_answers_to_others_about_their_consumer_says_nothing_about_this_one(self):
        s, server = self.bridged()
        server.read_until(QUESTION)
        first = server.replies[QUESTION]
        server.answer(CONSUMER)
        s.bridge.wait_told("Takes messages")
        server.accept_again()
        server.read_until(QUESTION)
        inbox = first.rpartition(b".")[0]
        for seen in first, inbox + b".0", inbox + b".", inbox:
            server.answer({"type": CONSUMER["type"], "error": {"err_code": 10014, "description": "of others"}}, seen)
        server.answer(CONSUMER)
        s.bridge.wait_told("Takes messages")
        self.assertNotIn("of others", s.bridge.log())

    def assert_peak(self, s, limit):
        """troupe-nats has never had so much memory, in MiB."""
        if not SANITIZED:  # that keeps what was freed
            self.assertLess(s.status_field("VmHWM", s.bridge.process.pid) >> 10, limit)

    def test_N6_more_messages_than_were_asked_for_are_given_back(self):
        s, server = self.bridged()
        self.assertGreaterEqual(server.deliver(range(1, 1001), b"echo hello"), 1000 - 4 * 64)
        self.assertLessEqual(len(s.pages("List", "jobs")[0]), 4 * 64)
        self.assertEqual(s.do("actor", "echo local")["state"], "succeeded")

    def test_N6_large_messages_that_nobody_asked_for_are_given_back(self):
        s, server = self.bridged("InFlight=1024\n")
        self.assertGreater(server.deliver(range(1, 401), b"echo hello\n".ljust(1 << 20)), 200)
        self.assert_peak(s, 300)

    def test_N6_messages_with_large_headers_that_nobody_asked_for_are_given_back(self):
        for n_messages, n, size in (400, 8000, 1), (3000, 1, 60000):  # libnats keeps much more of short ones than their text
            with self.subTest(n=n):
                s, server = self.bridged("InFlight=1024\n")
                headers = "".join(f"{number}:{'x' * size}\r\n" for number in range(n))
                n_back = server.deliver(range(1, n_messages + 1), b"echo hello", headers=f"NATS/1.0\r\n{headers}\r\n".encode())
                self.assertGreater(n_back, 200)
                self.assert_peak(s, 300)

    @unittest.skipIf(SANITIZED, "its memory has no limit there")
    def test_N6_a_message_of_a_gigabyte_ends_the_connection_only(self):
        s, server = self.bridged()
        server.flood(b"MSG a %s 1000000000\r\n" % server.subscription(True))
        server.accept()
        self.assertIsNone(s.bridge.process.poll())
        self.assert_peak(s, 600)
        self.assertEqual(s.do("actor", "echo local")["state"], "succeeded")


class Silent(TestCase):
    def bridged(self):
        """Two servers, the first of which the bridge has connected to."""
        nats.require()
        s = self.supervisor({"actor": ini(ACTOR)}).start()
        servers = [Server(self), Server(self)]
        both = types.SimpleNamespace(url=",".join(server.url for server in servers))
        s.bridge = nats.Bridge(self, s, both, "actor", "AckWaitSec=1s\n").start()
        [listener], _, _ = select.select([server.listener for server in servers], [], [], LIMIT)
        servers.sort(key=lambda server: server.listener is not listener)
        servers[0].accept()
        return s, *servers

    def test_N6_a_server_over_which_the_consumer_does_not_answer_is_left_for_the_next_one(self):
        s, _, second = self.bridged()
        second.accept()
        self.assertIn("consumer actor of stream JOBS does not answer over this server; tries the next one", s.bridge.log())
        self.assertEqual(s.do("actor", "echo local")["state"], "succeeded")

    def test_N6_a_server_that_says_it_does_not_reach_the_consumer_is_left_for_the_next_one(self):
        s, first, second = self.bridged()
        first.read_until(QUESTION)
        first.answer(CONSUMER)
        with contextlib.suppress(AssertionError):  # it closes the connection
            for _ in range(QUESTIONS):
                first.published.clear()
                first.read_until(QUESTION)
                first.answer(UNAVAILABLE)
        self.assertIn("consumer actor of stream JOBS does not answer over this server; tries the next one", s.bridge.log())
        second.accept()
        second.read_until(QUESTION)
        second.answer(UNAVAILABLE)
        s.bridge.wait_told("Waits for the consumer")
        self.assertIn("temporarily unavailable; too few servers are up or reach each other, or they elect a leader", s.bridge.log())

    def test_N6_a_server_that_ends_each_connection_is_tried_with_growing_pauses(self):
        nats.require()
        s = self.supervisor({"actor": ini(ACTOR)}).start()
        server = Server(self)
        nats.Bridge(self, s, server, "actor").start()
        began = time.monotonic()
        for _ in range(BRIEF):
            server.accept()
            server.end()
        self.assertGreater(time.monotonic() - began, BRIEF_PAUSES)


class Refusals(TestCase):
    def server(self):
        nats.require()
        server = Server(self)
        with open(os.path.join(tempfile.mkdtemp(prefix="troupe-nats-"), "nats.conf"), "w", encoding="ascii") as file:
            file.write(f"[Nats]\nURL={server.url}\n")
        self.addCleanup(shutil.rmtree, os.path.dirname(file.name))
        server.config = file.name
        return server

    def troupe_nats(self, server, *arguments):
        return subprocess.Popen([nats.TROUPE_NATS, "--config", server.config, *arguments], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                                stderr=subprocess.PIPE, text=True)

    def test_N8_who_is_refused_once_tries_again(self):
        server = self.server()
        for verb in ["cluster"], ["serve", "actor"]:
            with self.troupe_nats(server, *verb) as process:
                for _ in range(2):
                    server.refuse()
                self.assertIn("NATS wants a user", process.communicate(timeout=LIMIT)[1])

    def test_an_answer_that_does_not_tell_how_a_stream_is_ends_nobody_by_a_signal(self):
        server = self.server()
        for verb, said, status in (["setup", "actor"], "stream JOBS exists", 0), (["cluster"], "TROUPE_STATE: Protocol Error", 3):
            with self.troupe_nats(server, *verb) as process:
                server.answer_all(b"{}")
                self.assertIn(said, process.communicate(timeout=LIMIT)[1])
                self.assertEqual(process.returncode, status)


class Senders(Case):
    def test_N5_a_message_that_looks_as_if_nobody_answered_is_done_as_others_are(self):
        s = self.bridged(configuration="AckWaitSec=1s\n")
        numbers = {s.client.store("jobs.actor.any", "", headers) for headers in (["Status: 503"], {"Status": "503 No"})
                   for _ in range(20)}
        numbers.add(s.client.store("jobs.actor.any", "echo other"))
        self.wait_results(s, numbers)
        self.wait_empty(s)

    def test_N3_what_another_consumer_delivers_is_no_job(self):
        s = self.bridged(configuration="AckWaitSec=60min\n")
        s.client.api("STREAM.CREATE.OTHER", name="OTHER", subjects=["other"])
        s.client.api("CONSUMER.DURABLE.CREATE.OTHER.actor", stream_name="OTHER", config={"durable_name": "actor", "ack_policy": "explicit"})
        for _ in range(2):
            s.client.store("other", "echo forged")
        number = s.client.store("jobs.actor.any", "echo first")
        inbox = s.client.next(s.results).reply.rpartition(".")[0]
        for n in range(1, 4):
            s.client.publish("$JS.API.CONSUMER.MSG.NEXT.OTHER.actor", "2", reply=f"{inbox}.m{n}.77")
        s.client.until(lambda: s.client.api("CONSUMER.INFO.OTHER.actor")["num_ack_pending"] == 2)
        s.client.store("jobs.actor.any", "echo second")
        self.assertEqual(self.result(s)[::2], (number + 1, "second"))

    def test_N1_what_another_stream_answers_to_a_sender_confirms_no_result(self):
        s = self.bridged(configuration="AckWaitSec=60min\n")
        s.client.api("STREAM.CREATE.OTHER", name="OTHER", subjects=["other"], max_msg_size=10)
        s.client.store("jobs.actor.any", "echo first")
        self.result(s)
        self.wait_empty(s)
        s.client.api("STREAM.DELETE.TROUPE")
        s.client.store("jobs.actor.any", "echo hello")
        published = s.client.next(s.results)  # and stored nowhere
        for forged in "x", "x" * 11:
            s.client.publish("other", forged, reply=published.reply)
            s.client.pending(s.results)
        s.bridge.setup()
        self.wait_empty(s)
        stored = s.client.api("STREAM.MSG.GET.TROUPE", last_by_subj="troupe.result.JOBS.2")["message"]
        self.assertEqual(base64.b64decode(stored["data"]), b"hello")

    def test_N4_a_sender_cannot_have_its_dead_letter_refused(self):
        s = self.bridged(configuration="InFlight=1\n")
        s.client.store("jobs.actor.any", "", ["Troupe-Priority: 99", "two lines", "Nats-Expected-Stream: JOBS"])
        number = s.client.store("jobs.actor.any", "echo hello")
        self.wait_results(s, {number})
        self.wait_empty(s)
        stored = s.client.api("STREAM.MSG.GET.TROUPE", last_by_subj="troupe.dead.actor.JOBS.1")["message"]
        self.assertNotIn(b"Nats-Expected-Stream", base64.b64decode(stored["hdrs"]))

    def test_N1_what_the_server_answers_to_a_sender_in_the_place_of_a_result_is_replaced_by_it(self):
        s = self.bridged(actor(MaxRetries=0))
        s.client.publish("jobs.actor.any", "echo first", reply="troupe.result.JOBS.2")
        s.client.publish("jobs.actor.any", "echo second", reply="troupe.dead.actor.JOBS.3")
        s.client.until(lambda: s.client.messages("TROUPE") >= 4)  # with the results of both, if the second one does not count
        s.client.store("jobs.actor.any", "crash kill")
        self.wait_empty(s)
        for subject, data in ("troupe.result.JOBS.2", b"second"), ("troupe.dead.actor.JOBS.3", b"crash kill"):
            message = s.client.api("STREAM.MSG.GET.TROUPE", last_by_subj=subject)["message"]
            self.assertEqual(base64.b64decode(message["data"]), data)

    def test_N2_messages_with_very_many_headers_do_not_keep_others_from_being_told_in_progress(self):
        s = self.bridged(configuration="AckWaitSec=10s\n")
        acknowledgements = s.client.subscribe("$JS.ACK.JOBS.actor.>")
        bell = Bell(s, "bell")
        number = s.client.store("jobs.actor.any", f"wait {bell.path}")
        self.wait_state(s, f"JOBS:{number}", "running")
        for n in range(20):
            names = ["a"] * 13000 if n % 2 else [f"same{n:04}" for n in range(5000)]  # the hash of libnats is that of "same"
            s.client.store("jobs.actor.any", "", ["Troupe-Priority: 99", *(name + ":1" for name in names)])
        s.client.until(lambda: s.client.messages("TROUPE") == 40)  # letters and results
        bell.ring()
        self.wait_results(s, {number})
        told = [message.subject.split(".") for message in s.client.pending(acknowledgements)]
        self.assertEqual({delivery for *_, delivery, sequence, _, _, _ in told if sequence == str(number)}, {"1"})

    def test_a_key_without_room_does_not_hold_up_other_keys(self):
        for bound, other in ({"Jobs": {"QueueMax": 2}}, "busy"), ({"Pool": {"Cells": "by-key", "CellsMax": 2}}, "other{}"):
            s = self.bridged(ini(ACTOR, Restart=QUICK, **{"Pool": {"Cells": "by-key"}, **bound}), "AckWaitSec=60min\n")
            bell = Bell(s, "bell")
            s.client.store("jobs.actor.mine", "echo mine")
            self.result(s)
            s.client.until(lambda: s.client.messages("KV_TROUPE_STATE") == 1)  # it knows the group
            s.client.store("jobs.actor.busy", f"wait {bell.path}")
            self.wait_state(s, "JOBS:2", "running")
            for n in range(20):
                s.client.store("jobs.actor." + other.format(n), f"wait {bell.path}")
            mine = s.client.store("jobs.actor.mine", "echo mine")
            self.assertEqual(self.result(s)[0], mine)
            s.bridge.end(signal.SIGKILL)

    def test_a_key_that_waits_for_its_limit_does_not_hold_up_other_keys(self):
        s = self.bridged(ini(ACTOR, Restart=QUICK, Pool={"Size": 2}, Limits={"Running": 1, "RunningPer": "key"}),
                         "AckWaitSec=60min\nInFlight=8\n")
        bell = Bell(s, "bell")
        for _ in range(20):
            s.client.store("jobs.actor.busy", f"wait {bell.path}")
        mine = s.client.store("jobs.actor.mine", "echo mine")
        self.assertEqual(self.result(s)[0], mine)
        s.bridge.end(signal.SIGKILL)
        s.bridge.start()  # takes over the jobs, with their keys
        mine = s.client.store("jobs.actor.mine", "echo mine")
        self.assertEqual(self.result(s)[0], mine)
        s.until(lambda: len(s.call("List", group="actor")["jobs"]) == 4)


class Manager(Case):
    def test_N4_a_service_manager_that_does_not_read_holds_up_no_job(self):
        s = self.supervisor({"actor": actor()}).start()
        s.nats = nats.Server(self).start()
        s.bridge = nats.Bridge(self, s, s.nats, "actor").setup()
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as others, contextlib.suppress(BlockingIOError):
            others.setblocking(False)
            others.connect(s.bridge.environment["NOTIFY_SOCKET"])
            while True:
                others.send(b"STATUS=of others")
        s.bridge.start()
        s.client = nats.Client(self, s.nats)
        s.results = s.client.subscribe("troupe.result.JOBS.*")
        s.client.store("jobs.actor.any", "echo hello")
        self.assertEqual(self.result(s)[2], "hello")
        s.bridge.wait_told("READY=1")
        self.wait_empty(s)
        self.assertEqual(s.bridge.end(), 0)
