# SPDX-License-Identifier: MIT
"""troupe-nats with a server that sends what no server sends, and a service manager that does not read."""
import contextlib
import json
import os
import shutil
import socket
import subprocess
import tempfile
import unittest

import nats
from test_nats import Case, actor
from troupe import ACTOR, LIMIT, TestCase, ini

INFO = {"server_id": "hostile", "version": "2.10.0", "headers": True, "jetstream": True, "max_payload": 1 << 20, "proto": 1}
SUBSCRIPTIONS = 5


class Server:
    """One connection, to whose subscriptions it sends anything."""

    def __init__(self, test):
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.listener.settimeout(LIMIT)
        self.url = f"nats://127.0.0.1:{self.listener.getsockname()[1]}"
        test.addCleanup(self.listener.close)
        self.test, self.subjects = test, {}

    def accept(self):
        connection, _ = self.listener.accept()
        connection.settimeout(LIMIT)
        self.test.addCleanup(connection.close)
        self.lines = connection.makefile("rb")
        self.test.addCleanup(self.lines.close)
        self.send = connection.sendall
        self.send(b"INFO " + json.dumps(INFO).encode() + b"\r\n")
        while len(self.subjects) < SUBSCRIPTIONS:
            self.read()

    def refuse(self):
        connection, _ = self.listener.accept()
        with connection, connection.makefile("rb") as lines:
            connection.sendall(b"INFO " + json.dumps(INFO).encode() + b"\r\n")
            self.test.assertIn(b"PING\r\n", iter(lines.readline, b""))
            connection.sendall(b"-ERR 'Authorization Violation'\r\n")

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
            self.lines.read(int(words[-1]) + 2)
        return words[0]

    def synchronize(self):
        """Returns once all that was sent before has been taken, as it reads on only then."""
        for _ in range(2):
            self.send(b"PING\r\n")
            while self.read() != b"PONG":
                pass


class Hostile(TestCase):
    def bridged(self):
        nats.require()
        s = self.supervisor({"actor": ini(ACTOR)}).start()
        server = Server(self)
        s.bridge = nats.Bridge(self, s, server, "actor").start()
        server.accept()
        return s, server

    def test_N6_a_subject_that_was_not_subscribed_to_does_no_harm(self):
        s, server = self.bridged()
        for sid, subject in server.subjects.items():
            inbox = subject.rsplit(b".", 2)[0] if b"*" in subject else subject.rsplit(b".", 1)[0]
            for wrong in b"elsewhere", inbox, inbox + b".p", inbox + b".a", inbox + b".x.y", subject:
                server.send(b"MSG %s %s 2\r\n{}\r\n" % (wrong, sid))
                server.synchronize()
        self.assertIsNone(s.bridge.process.poll())


class Refusals(TestCase):
    def test_N8_who_is_refused_once_tries_again(self):
        nats.require()
        server = Server(self)
        with open(os.path.join(tempfile.mkdtemp(prefix="troupe-nats-"), "nats.conf"), "w", encoding="ascii") as file:
            file.write(f"[Nats]\nURL={server.url}\n")
        self.addCleanup(shutil.rmtree, os.path.dirname(file.name))
        with subprocess.Popen([nats.TROUPE_NATS, "--config", file.name, "create", "actor"], stdin=subprocess.DEVNULL,
                              stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True) as process:
            for _ in range(2):
                server.refuse()
            self.assertIn("NATS refuses this user", process.communicate(timeout=LIMIT)[1])


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


if __name__ == "__main__":
    unittest.main()
