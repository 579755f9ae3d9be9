# SPDX-License-Identifier: MIT
"""Use, misuse and neglect of the control socket."""
import contextlib
import errno
import json
import os
import select
import shutil
import subprocess
import unittest

from troupe import ACTOR, LIMIT, SANITIZED, TestCase, Varlink, VarlinkError, helper, ini, text, user


class Misuse(TestCase):
    def setUp(self):
        self.s = self.started({"actor": ini(ACTOR, Restart={"StartLimitBurst": 0})})

    def tearDown(self):
        self.assertEqual(self.s.do("actor", "echo still there")["result"], text("still there"))
        self.s.until(lambda: self.s.call("GetInfo")["clients"] <= 1)

    def test_a_request_that_is_begun_and_not_completed_is_cut_off(self):
        s = self.started({"actor": ini(ACTOR)}, conf="[Supervisor]\nClientRequestSec=100ms\n")
        idle, waiting = s.connect(), s.connect()
        waiting.send("Do", {"group": "actor", "payload": text("until-cancelled"), "options": {"id": "long"}})
        waiting.send_raw(b'{"method":')
        with Varlink(s.socket_path) as half:
            half.send_raw(b'{"method":')
            self.assertRaises((EOFError, ConnectionError), half.receive)
        self.assertIn("is cut off: it began a request and did not complete it", s.log())
        self.assertEqual(idle.call("GetInfo")["clients"], 2)
        s.call("Cancel", id="long")
        self.assertEqual(waiting.reply()[0]["job"]["state"], "cancelled")
        self.assertRaises((EOFError, ConnectionError), waiting.receive)

    def test_half_requests_of_one_user_are_bounded(self):
        before = self.s.status_field("VmRSS")
        with contextlib.ExitStack() as stack:
            crowd = [stack.enter_context(Varlink(self.s.socket_path)) for _ in range(200)]
            for client in crowd:
                with contextlib.suppress(ConnectionError):
                    client.send_raw(b'{"method":"' + b"x" * 900000)
            self.s.until(lambda: "requests that are not complete take too much" in self.s.log())
            if not SANITIZED:
                self.assertLess(self.s.status_field("VmRSS") - before, 80 * 1024)
        self.assertEqual(self.s.do("actor", "echo on")["result"], text("on"))

    def test_answers_that_are_not_read_are_bounded_for_each_user(self):
        id = self.s.create("actor", "blob 900000")
        self.s.wait_job(id)
        before = self.s.status_field("VmRSS")
        with contextlib.ExitStack() as stack:
            crowd = [stack.enter_context(Varlink(self.s.socket_path)) for _ in range(230)]
            for client in crowd:
                client.send("Get", {"id": id})
            self.s.until(lambda: "answers that are not read take too much" in self.s.log())
            if not SANITIZED:
                self.assertLess(self.s.status_field("VmRSS") - before, 150 * 1024)
            self.assertEqual(self.s.call("GetInfo")["state"], "running")
        self.assertEqual(self.s.do("actor", "echo on")["result"], text("on"))

    def test_a_client_that_never_reads_is_held_up_and_cut_off_once_it_has_been_idle_for_too_long(self):
        s = self.started(conf="[Supervisor]\nClientIdleSec=1s\n")
        connection = Varlink(s.socket_path)
        call = b'{"method":"org.varlink.service.GetInterfaceDescription",' \
               b'"parameters":{"interface":"io.troupe.Supervisor"}}\0'
        before = s.status_field("VmRSS")
        try:
            with self.assertRaises(ConnectionError):
                for _ in range(100000):
                    connection.send_raw(call)
            if not SANITIZED:
                self.assertLess(s.status_field("VmRSS") - before, 4096)
        finally:
            connection.close()

    def test_one_that_asks_without_end_does_not_starve_the_others(self):
        noisy = Varlink(self.s.socket_path)
        noisy.socket.setblocking(False)
        call = b'{"method":"io.troupe.Jobs.Create","parameters":{"group":"actor","payload":{"encoding":"utf8",' \
               b'"data":"echo"}},"oneway":true}\0' * 500
        rest = b""  # a send may end within a call
        try:
            for _ in range(50):
                rest = rest or call
                try:
                    rest = rest[noisy.socket.send(rest):]
                except BlockingIOError:
                    pass
                self.assertEqual(self.s.call("GetInfo")["state"], "running")
        finally:
            noisy.close()
        self.s.until(lambda: self.s.group("actor")["queued"] == 0)


@unittest.skipUnless(os.geteuid() == 0, "needs root")
class Permissions(TestCase):
    """Reading is for everyone who can open the socket; changing is not."""

    def is_let_in(self, connection):
        try:
            connection.call("GetInfo")
            return True
        except (VarlinkError, OSError, EOFError):
            return False

    def test_strangers_cannot_lock_out_who_may_change_something(self):
        self.s = self.started({"actor": ini(ACTOR)}, conf="[Supervisor]\nClientsMax=16\n")
        crowd = [self.connect_as(65534) for _ in range(40)]
        self.assertEqual(sum(self.is_let_in(one) for one in crowd), 7)
        self.assertEqual(self.s.do("actor", "echo in")["result"], text("in"))
        self.s.call("Pause", target="actor")

    def test_a_user_has_half_of_the_places_and_the_idle_ones_of_who_has_most_go_first(self):
        self.s = self.started({"actor": ini(ACTOR)}, conf="[Supervisor]\nClientsMax=16\n")
        crowd = [self.connect_as(65534) for _ in range(7)]
        for connection in crowd:
            connection.call("GetInfo")
        crowd[0].send("Watch", {"replay": True}, more=True)
        crowd[0].receive()
        for connection in [self.connect_as(65533) for _ in range(6)]:
            connection.call("GetInfo")
        one_more = self.connect_as(65534)
        self.assertEqual(self.refused("TooManyClients", one_more.call, "GetInfo"), {"maximum": 7})
        self.assertEqual(self.connect_as(65532).call("GetInfo")["clients"], 14)
        # All places are taken: one of the first user's goes, but not the one that is at work.
        self.assertEqual(self.connect_as(65531).call("GetInfo")["state"], "running")
        self.assertRaises((EOFError, ConnectionError), crowd[1].call, "GetInfo")
        for connection in crowd[2:]:
            connection.call("GetInfo")
        self.s.call("Pause", target="actor")
        while "paused" not in json.dumps(crowd[0].receive()):
            pass

    def connect_as(self, uid):
        with user(uid):
            connection = Varlink(self.s.socket_path)
        self.addCleanup(connection.close)
        return connection

    def test_a_strangers_large_request_is_refused_before_it_is_read(self):
        self.s = self.started({"actor": ini(ACTOR)})
        stranger = self.connect_as(65534)
        stranger.send_raw(b'{"method":"io.troupe.Jobs.Create","x":"' + b"x" * 70000)
        self.refused("NotPermitted", stranger.reply)
        self.assertRaises((EOFError, ConnectionError), stranger.receive)

    def test_half_requests_of_strangers_are_bounded_together(self):
        self.s = self.started({"actor": ini(ACTOR)})
        self.s.do("actor", "echo")
        before = self.s.status_field("VmRSS")
        crowd = [self.connect_as(10000 + i % 50) for i in range(200)]
        for stranger in crowd:
            with contextlib.suppress(ConnectionError):
                stranger.send_raw(b'{"method":"' + b"x" * 60000)
        self.s.until(lambda: "requests that are not complete take too much" in self.s.log())
        if not SANITIZED:
            self.assertLess(self.s.status_field("VmRSS") - before, 12 * 1024)
        self.assertEqual(self.s.do("actor", "echo\n\n" + "x" * 900000)["state"], "succeeded")

    def test_strangers_with_half_requests_leave_room_for_those_of_others(self):
        self.s = self.started({"actor": ini(ACTOR)})
        for uid in 10000, 10001:
            for n, size in (75, 60000), (30, 10):
                crowd = [self.connect_as(uid) for _ in range(n)]
                for stranger in crowd:
                    with contextlib.suppress(ConnectionError):
                        stranger.send_raw(b'{"method":"' + b"x" * size)
                self.assertTrue(select.select([stranger.socket for stranger in crowd], [], [], LIMIT)[0])  # one is cut off
        other = self.connect_as(10002)
        for _ in range(3):
            self.assertEqual(other.call("GetInfo")["state"], "running")

    def test_a_client_that_leaves_the_admin_group_is_cut_off(self):
        self.s = self.started({"actor": ini(ACTOR)}, conf="[Supervisor]\nAdminGroup=daemon\n")
        member = subprocess.Popen([helper("client"), self.s.socket_path, "turns", "actor"], text=True, stdin=subprocess.PIPE,
                                  stdout=subprocess.PIPE, user=65534, group=65534, extra_groups=[1])
        self.addCleanup(member.wait, LIMIT)
        self.addCleanup(member.stdout.close)
        self.addCleanup(member.stdin.close)

        def turn():
            member.stdin.write("\n")
            member.stdin.flush()
            return int(member.stdout.readline())
        self.assertEqual(turn(), 0)
        self.s.write("troupe.conf", "[Supervisor]\nAdminGroup=bin\n")
        self.s.call("Reload")
        self.assertIn(turn(), (errno.EPIPE, errno.ECONNRESET))
        self.assertIn("its user may not change things any more", self.s.log())

    def test_a_member_of_the_admin_group_may_change_things(self):
        self.s = self.started({"actor": ini(ACTOR)}, conf="[Supervisor]\nAdminGroup=daemon\n")
        with user(65534, 1):
            self.s.call("Pause", target="actor")
        with user(65534):
            self.refused("NotPermitted", self.s.call, "Resume", target="actor")


class IndependentClients(TestCase):
    def test_varlinkctl_of_systemd_understands_it(self):
        varlinkctl = shutil.which("varlinkctl")
        if not varlinkctl:
            self.skipTest("varlinkctl is not here (systemd 257 has it)")
        s = self.started({"actor": ini(ACTOR)})

        def run(*arguments):
            return subprocess.run([varlinkctl, *arguments], capture_output=True, text=True, timeout=LIMIT, check=True).stdout
        self.assertIn("io.troupe.Jobs", run("info", s.socket_path))
        for interface in "io.troupe.Jobs", "io.troupe.Supervisor", "org.varlink.service":
            self.assertIn("interface " + interface, run("introspect", s.socket_path, interface))
        answer = run("call", "-j", s.socket_path, "io.troupe.Jobs.Do",
                     json.dumps({"group": "actor", "payload": text("echo hi")}))
        self.assertEqual(json.loads(answer)["job"]["result"], text("hi"))

    def test_python3_varlink_understands_it(self):
        try:
            import varlink
        except ImportError:
            self.skipTest("python3-varlink is not here (Debian 13 has it)")
        s = self.started({"actor": ini(ACTOR)})
        with varlink.Client.new_with_address("unix:" + s.socket_path) as client:
            with client.open("io.troupe.Jobs") as jobs:
                answer = jobs.Do(group="actor", payload=text("echo hi"))
                self.assertEqual(answer["job"]["result"], text("hi"))
                self.assertRaises(varlink.VarlinkError, jobs.Get, id="nobody")
            with client.open("io.troupe.Actors") as actors:
                self.assertEqual(actors.ListDeadLetters()["letters"], [])
            with client.open("io.troupe.Supervisor") as supervisor:
                self.assertEqual(supervisor.GetStatus()["groups"][0]["name"], "actor")
                events = supervisor.Watch(replay=True, _more=True)
                self.assertTrue(next(events)["events"])
