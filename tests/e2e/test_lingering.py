# SPDX-License-Identifier: MIT
"""Descriptors whose last close blocks, wherever the supervisor may be the last to close them."""
import array
import contextlib
import os
import signal
import socket
import struct
import sys
import time
from pathlib import Path

from test_in_flight import copy_programs
from test_upgrade import upgrade_during
from troupe import ACTOR, LOCKED_PIPE, Bell, FAULTY_TROUPED, LIMIT, QUICK, TestCase, VERSION, Varlink, ended, helper, ini, text

LINGER = 40  # seconds that such a close blocks
BOUND = 10   # seconds: far beyond any turn on a busy machine

LINGERING = """
import array, os, socket, struct
def lingering():
    peer = socket.create_connection(("127.0.0.1", int(os.environ["PORT"])))
    peer.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 40))
    peer.setblocking(False)
    try:
        while True:
            peer.send(bytes(65536))
    except BlockingIOError:
        return peer
"""

SERVICE = LINGERING + """
peer = lingering()
notify = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
rights = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", [peer.fileno()]))]
with open(os.environ["BELL"], "w") as bell:
    bell.write("here\\n")
with open(os.environ["GO"]) as go:
    go.readline()
for i in range(5):
    notify.sendmsg([b"STATUS=x"], rights, 0, os.environ["NOTIFY_SOCKET"])
notify.sendmsg([b"READY=1"], [], 0, os.environ["NOTIFY_SOCKET"])
peer.close()
with open(os.environ["BELL"], "w") as bell:
    bell.write("done\\n")
os._exit(1) if "DIE" in os.environ else os.read(os.open(os.environ["GO"], os.O_RDWR), 1)
"""

SUBMITTER = LINGERING + """
peers = [lingering() for i in range(20)]
with open(os.environ["BELL"], "w") as bell:
    bell.write("here\\n")
with open(os.environ["GO"]) as go:
    go.readline()
for peer in peers:
    client = socket.socket(socket.AF_UNIX)
    client.connect(os.environ["TROUPE_SOCKET"])
    try:
        client.sendmsg([b"x"], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", [peer.fileno()]))])
    except PermissionError:
        peer.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 0, 0))
    peer.close()
    os.dup(client.fileno())
os.kill(os.getpid(), 9)
"""

LOCKER = LOCKED_PIPE + """
import array
notify = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
notify.connect(os.environ["NOTIFY_SOCKET"])
fd = locked_pipe()[0]
with open(os.environ["BELL"], "w") as bell:
    bell.write("here\\n")
with open(os.environ["GO"]) as go:
    go.readline()
try:
    notify.sendmsg([b"STATUS=x\\n"], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", [fd]))])
    os.close(fd)
except PermissionError:
    pass
notify.send(b"READY=1")
with open(os.environ["BELL"], "w") as bell:
    bell.write("done\\n")
os.read(os.open(os.environ["GO"], os.O_RDWR), 1)
"""


class Lingering(TestCase):
    program = None

    def supervisor(self, *args, **options):
        s = super().supervisor(*args, **options)
        copy_programs(s)
        return s

    def begin(self, groups=None):
        groups = {"actor": ini(ACTOR), **(groups or {})}
        if self.program:
            s = self.started(groups, program=self.program, environment={"TROUPE_FAULT": "passrights:1+"})
        else:
            s = self.started(groups)
        s.do("actor", "echo")
        self.before = s.n_fds_between_turns()
        return s

    def setUp(self):
        self.server = socket.create_server(("127.0.0.1", 0), backlog=64)
        self.addCleanup(self.server.close)

    def port(self):
        return self.server.getsockname()[1]

    def lingering(self):
        """A TCP socket with more to send than its peer takes."""
        fd = socket.create_connection(("127.0.0.1", self.port()))
        self.addCleanup(fd.close)
        fd.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, LINGER))
        fd.setblocking(False)
        with contextlib.suppress(BlockingIOError):
            while True:
                fd.send(bytes(65536))
        return fd

    def send(self, s, through, data, count=1):
        """Sends the data with a descriptor, and closes its copy here. Returns False if the kernel refuses it."""
        with s.stopped():  # until the sender has closed its copies: otherwise its own close would block
            return self.send_at_once(through, data, count)

    def send_at_once(self, through, data, count=1):
        fds = [self.lingering() for _ in range(count)]
        rights = array.array("i", [fd.fileno() for fd in fds])
        try:
            through.sendmsg([data], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, rights)])
        except PermissionError:
            for fd in fds:  # their close would block here
                fd.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 0, 0))
            return False
        finally:
            for fd in fds:
                fd.close()
        return True

    def nobody_waited(self, s, descriptors=None):
        """It answers, and had no long turn; the main process starts a worker that has died again."""
        former = s.worker("actor/0")
        began = time.monotonic()
        os.kill(former["pid"], signal.SIGKILL)
        s.wait_for(lambda: (lambda w: w["state"] == "idle" and w["pid"] != former["pid"])(s.worker("actor/0")), "actor")
        self.assertLess(time.monotonic() - began, BOUND)
        if descriptors is not None:
            s.until(lambda: len(s.fds()) <= descriptors)
        self.assertEqual(s.do("actor", "echo on")["result"], text("on"))
        info = s.call("GetInfo")
        self.assertLess(info["longest_turn_usec"], BOUND * 1000000)
        self.assertGreater(info["longest_turn_usec"], 0)
        self.assertLessEqual(info["recent_turn_usec"], info["longest_turn_usec"])

    # ---- clients

    def test_a_client_that_sends_one_with_a_request(self):
        s = self.begin()
        with Varlink(s.socket_path) as client:
            if self.send(s, client.socket, b'{"method":"io.troupe.Supervisor.GetInfo"}\0'):
                self.assertRaises((EOFError, ConnectionError), client.receive)
                self.assertIn("is cut off: it sent descriptors", s.log())
        self.nobody_waited(s, self.before)

    def test_a_client_that_sends_many_with_parts_of_requests(self):
        s = self.begin()
        with contextlib.ExitStack() as stack:
            for _ in range(5):
                client = stack.enter_context(Varlink(s.socket_path))
                client.send_raw(b'{"method":')
                self.send(s, client.socket, b'"', 4)
        self.nobody_waited(s, self.before)

    def test_a_client_that_leaves_one_behind_while_it_is_answered(self):
        s = self.begin()
        with Varlink(s.socket_path) as client:
            client.send("Watch", more=True)
            self.send(s, client.socket, b"{")
        self.nobody_waited(s, self.before)

    def test_a_client_that_sends_one_after_its_last_answer(self):
        s = self.begin()
        with Varlink(s.socket_path) as client:
            client.send_raw(b"no JSON\0")
            client.receive()
            with contextlib.suppress(ConnectionError):
                self.send(s, client.socket, b"x")
        self.nobody_waited(s, self.before)

    def attach(self, s):
        connection = Varlink(s.socket_path)
        self.addCleanup(connection.close)
        connection.send("Attach", {"version": VERSION})
        data, fds, _, _ = socket.recv_fds(connection.socket, 65536, 8)
        connection.buffer += data
        connection.reply()
        control = socket.socket(fileno=fds[2])
        for fd in fds[:2] + fds[3:]:
            os.close(fd)
        return connection, control

    def test_an_attached_client_that_leaves_one_in_its_control_socket(self):
        s = self.begin()
        connection, control = self.attach(s)
        with control:
            self.send(s, control, b"")
            self.send(s, control, bytes(8), 3)
        connection.close()
        self.nobody_waited(s, self.before)

    def test_clients_that_nobody_has_accepted_when_it_stops(self):
        s = self.begin()
        with contextlib.ExitStack() as stack:
            with s.stopped():  # until the sender has closed its copies: otherwise its own close would block
                for _ in range(40):
                    client = stack.enter_context(Varlink(s.socket_path))
                    self.send_at_once(client.socket, b"x")
                s.terminate()
            self.assertEqual(s.wait_end(LINGER - BOUND), 0)

    def test_clients_that_leave_many_do_not_use_up_the_descriptors(self):
        s = self.begin()
        before = s.n_fds_between_turns()
        self.server.listen(1024)
        with contextlib.ExitStack() as stack:
            with s.stopped():  # until the sender has closed its copies: otherwise its own close would block
                for _ in range(150):
                    client = stack.enter_context(Varlink(s.socket_path))
                    self.send_at_once(client.socket, b"x")
        self.nobody_waited(s, before + 20)

    # ---- workers

    def begin_with(self, deed):
        return self.begin({"culprit": ini(f"{helper('hostile')} {deed}", Restart=QUICK,
                                          Group={"Environment": f"PORT={self.port()}"})})

    def test_a_worker_that_hands_one_over_as_its_result_or_leaves_it_in_its_control_socket(self):
        for deed in "linger-result", "linger-unread":
            s = self.begin_with(deed)
            self.assertEqual(s.do("culprit", "x", max_retries=1)["state"], "dead")
            s.wait_worker("culprit/0", "idle")
            self.nobody_waited(s, self.before)

    # ---- one supervisor after another: the main process holds the sockets

    def leave(self, worker):
        """Has the worker leave a descriptor and die."""
        pidfd = os.pidfd_open(worker)
        self.addCleanup(os.close, pidfd)
        os.kill(worker, signal.SIGCONT)
        self.assertTrue(ended(pidfd, LIMIT))

    def begin_stopped(self):
        """Returns the supervisor, and the pid of a stopped worker that will leave a descriptor and die."""
        s = self.begin_with("linger-unread")
        worker = s.worker("culprit/0")["pid"]
        os.kill(worker, signal.SIGSTOP)
        s.create("culprit", "x", max_retries=0)
        s.until(lambda: s.group("culprit")["running"] == 1)
        return s, worker

    def crash_after(self, act):
        s, worker = self.begin_stopped()
        former = s.supervisor_pid
        with s.stopped():
            self.leave(worker)
            act(s)
            os.kill(former, signal.SIGKILL)
        s.until(lambda: s.supervisor_pid != former)
        self.nobody_waited(s)

    def test_a_worker_that_leaves_one_before_a_crash(self):
        self.crash_after(lambda s: None)
        self.crash_after(lambda s: os.unlink(os.path.join(s.config, "culprit.group")))

    def test_a_client_that_leaves_some_before_a_crash(self):
        s = self.begin()
        connection, control = self.attach(s)
        former = s.supervisor_pid
        with control, s.stopped():
            self.send_at_once(control, b"")
            self.send_at_once(control, bytes(8), 3)
            control.close()
            connection.close()
            os.kill(former, signal.SIGKILL)
        s.until(lambda: s.supervisor_pid != former)
        self.nobody_waited(s)

    def test_a_worker_that_leaves_one_during_an_upgrade_and_whose_group_is_gone(self):
        s, worker = self.begin_stopped()

        def act():
            self.leave(worker)
            os.unlink(os.path.join(s.config, "culprit.group"))
        upgrade_during(s, act)
        self.nobody_waited(s)

    # ---- services

    def service(self, s, *environment, program=SERVICE, crash=False, **group):
        """Runs it until it has sent everything, and nothing of that was read. It rings, or ends itself."""
        bell, go = Bell(s, "bell"), Bell(s, "go")
        path = s.path("service.py")
        Path(path).write_text(program, encoding="ascii")
        s.write("service.group", ini(f"{sys.executable} {path}", Restart={"MinSec": "1h", "MaxSec": "1h"}, Group={
            "Type": "service",
            "Environment": [f"PORT={self.port()}", f"BELL={bell.path}", f"GO={go.path}", *environment], **group}))
        s.call("Reload")
        self.assertEqual(bell.wait(), ["here"])
        pidfd = os.pidfd_open(s.worker("service/0")["pid"])
        self.addCleanup(os.close, pidfd)
        with s.stopped():  # until the sender has closed its copies: otherwise its own close would block
            go.ring()
            if program == SUBMITTER:
                self.assertTrue(ended(pidfd, LIMIT))
            else:
                self.assertEqual(bell.wait(), ["done"])
            if crash:
                os.kill(s.supervisor_pid, signal.SIGKILL)

    def test_a_service_that_sends_one_with_its_state(self):
        s = self.begin()
        self.service(s)
        s.wait_event("worker.ready", "service")
        self.nobody_waited(s)

    def test_a_service_that_leaves_some_unread_when_it_dies(self):
        s = self.begin()
        self.service(s, "DIE=1")
        s.wait_event("worker.died", "service")
        self.nobody_waited(s)

    def test_a_service_whose_connections_nobody_has_accepted_when_it_dies(self):
        s = self.begin()
        self.service(s, program=SUBMITTER, MaySubmit="actor")
        s.wait_event("worker.died", "service")
        self.nobody_waited(s)

    def test_a_service_whose_connections_nobody_has_accepted_before_a_crash(self):
        s = self.begin()
        self.service(s, program=SUBMITTER, crash=True, MaySubmit="actor")
        self.nobody_waited(s)

    def test_a_service_that_sends_a_pipe_that_it_has_locked(self):
        s = self.begin()
        self.service(s, program=LOCKER)
        s.wait_event("worker.ready", "service")
        s.ctl("upgrade", check=True)
        self.nobody_waited(s)
        os.kill(s.supervisor_pid, signal.SIGKILL)
        self.nobody_waited(s)


class LingeringOnOlderKernels(Lingering):
    """Where the kernel lets descriptors into every socket."""
    program = FAULTY_TROUPED
