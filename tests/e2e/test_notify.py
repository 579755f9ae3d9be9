# SPDX-License-Identifier: MIT
"""Notify sockets of services: whose messages count."""
import os
import socket
import subprocess
import unittest

from troupe import LOCKED_PIPE, Bell, TestCase, ini

SPEAKER = """
import os, signal, socket, sys
open(sys.argv[1]).readline()
if sys.argv[2] == "child":
    if os.fork():
        signal.pause()
assert os.environ["NOTIFY_SOCKET"].startswith("/")  # as sd_notify(3) wants it
s = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
s.sendto(b"STATUS=said by the " + sys.argv[2].encode(), os.environ["NOTIFY_SOCKET"])
signal.pause()
"""


CLIENT = """
import os, signal, socket
s = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
s.sendto(b"READY=1\\nSTATUS=" + os.environ["TROUPE_SOCKET"].encode(), os.environ["NOTIFY_SOCKET"])
signal.pause()
"""


DAEMON = """
import os, signal, socket, sys
os.setgid(int(sys.argv[2]))
os.setuid(int(sys.argv[2]))
def tell(text): socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM).sendto(text, os.environ["NOTIFY_SOCKET"])
tell(b"READY=1")
open(sys.argv[1]).readline()
tell(b"STATUS=still heard")
signal.pause()
"""

STRANGER = LOCKED_PIPE + """
import array, itertools, sys
os.setgid(1)
os.setuid(1)
path, locks = sys.argv[1:]
s = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
s.connect(path)
for i in itertools.count():
    if i == 300:
        print("sent", flush=True)
    if locks:
        ends = locked_pipe()
        s.sendmsg([b"STATUS=x"], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", ends[:1]))])
        # Waits for the lock if the receiver has closed it before.
        threading.Thread(target=os.close, args=ends[:1], daemon=True).start()
    else:
        s.send(b"STATUS=x")
"""


class Clients(TestCase):
    def test_a_service_knows_the_socket_of_its_supervisor_unless_it_is_given_another(self):
        s = self.supervisor()
        script = s.write("client.py", CLIENT)
        for name, environment in ("own", {}), ("other", {"Environment": "TROUPE_SOCKET=/no/such"}):
            s.write(name + ".group", ini(f"/usr/bin/python3 {script}", Group={"Type": "notify", **environment}))
        s.command[s.command.index(s.socket_path)] = os.path.relpath(s.socket_path)
        s.start()
        s.wait_worker("own/0", "idle")
        s.wait_worker("other/0", "idle")
        self.assertEqual([s.worker(name).get("status") for name in ("own/0", "other/0")], [os.path.realpath(s.socket_path), "/no/such"])


@unittest.skipUnless(os.geteuid() == 0, "needs root")
class Strangers(TestCase):
    """A service that gives up root by itself has a socket that all users may send to."""

    def misused(self, locks, user):
        """A service that is ready as this user, its bell, the socket, and a stranger that sends to that."""
        s = self.supervisor()
        bell = Bell(s, "bell")
        os.chmod(bell.path, 0o666)
        s.write("web.group", ini(f"/usr/bin/python3 {s.write('daemon.py', DAEMON)} {bell.path} {user}", Group={"Type": "notify"}))
        s.start()
        s.wait_worker("web/0", "idle")
        path = os.path.join(s.directory, "notify-web-0.sock")
        stranger = subprocess.Popen(["/usr/bin/python3", "-c", STRANGER, path, locks], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
        self.addCleanup(stranger.communicate)
        self.addCleanup(stranger.kill)
        return s, bell, path, stranger

    def locked(self, s, path, owner):
        s.until(lambda: os.path.exists(path) and (os.stat(path).st_mode & 0o777, os.stat(path).st_uid) == (0o600, owner))

    def misuse(self, locks, user):
        s, bell, path, _ = self.misused(locks, user)
        self.locked(s, path, user)
        bell.ring()
        s.until(lambda: s.worker("web/0").get("status") == "still heard")
        self.assertEqual(s.worker("web/0")["generation"], 1)
        s.call("Restart", target="web")
        s.wait_for(lambda: s.worker("web/0")["generation"] == 2 and s.worker("web/0")["state"] == "idle")

    def test_a_stranger_who_floods_the_socket_or_whose_descriptors_do_not_close_is_locked_out(self):
        for locks, user in ("", 65534), ("locks", 65534), ("locks", 0):  # 0: while the service is root
            with self.subTest(locks=locks, user=user):
                self.misuse(locks, user)

    def test_a_socket_that_was_locked_stays_so_under_the_next_supervisor(self):
        for user in (65534, 0):
            s, bell, path, stranger = self.misused("locks", user)
            self.locked(s, path, user)
            stranger.kill()
            for take_over in (lambda: s.ctl("upgrade", check=True), s.crash):
                take_over()
                s.wait_worker("web/0", "idle")
                self.assertEqual(os.stat(path).st_mode & 0o777, 0o600)
            bell.ring()
            s.until(lambda: s.worker("web/0").get("status") == "still heard")  # pylint: disable=cell-var-from-loop
            self.assertEqual(s.worker("web/0")["generation"], 1)

    def test_a_locked_socket_is_open_to_another_user_of_the_group(self):
        s, bell, path, stranger = self.misused("locks", 65534)
        self.locked(s, path, 65534)
        stranger.kill()
        command = f"/usr/bin/python3 {s.write('daemon.py', DAEMON)} {bell.path} 2"
        s.write("web.group", ini(command, Group={"Type": "notify", "User": "2"}))
        s.ctl("reload", check=True)
        s.call("Restart", target="web")
        s.wait_for(lambda: s.worker("web/0")["generation"] > 1 and s.worker("web/0")["state"] == "idle")
        bell.ring()
        s.until(lambda: s.worker("web/0").get("status") == "still heard")

    def test_a_flood_does_not_take_away_the_socket_of_a_service_that_is_root(self):
        s, bell, path, stranger = self.misused("", 0)
        socket_before = os.stat(path)
        stranger.stdout.readline()
        bell.ring()
        s.until(lambda: s.worker("web/0").get("status") == "still heard")
        self.assertEqual(os.stat(path).st_ino, socket_before.st_ino)


class Notifications(TestCase):
    def speaker(self, who):
        s = self.supervisor()
        script = s.write("speaker.py", SPEAKER)
        bell = Bell(s, "bell")
        s.write("web.group", ini(f"/usr/bin/python3 {script} {bell.path} {who}", Group={"Type": "service"}))
        s.start()
        s.wait_worker("web/0", "idle")
        return s, bell

    def test_what_others_of_the_same_user_say_is_ignored(self):
        s, bell = self.speaker("service")
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as stranger:
            stranger.sendto(b"STATUS=forged\nWATCHDOG=trigger", os.path.join(s.directory, "notify-web-0.sock"))
        self.assertNotIn("status", s.worker("web/0"))
        bell.ring()
        s.until(lambda: s.worker("web/0").get("status") == "said by the service")
        self.assertEqual((s.worker("web/0")["generation"], s.deaths()), (1, []))
        self.assertIn(f"web/0: ignoring a message from process {os.getpid()} to NOTIFY_SOCKET", s.log())

    def test_its_children_may_speak_for_a_service(self):
        s, bell = self.speaker("child")
        bell.ring()
        s.until(lambda: s.worker("web/0").get("status") == "said by the child")

    def test_a_service_can_speak_when_the_socket_was_named_by_a_relative_path(self):
        s = self.supervisor()
        script = s.write("speaker.py", SPEAKER)
        bell = Bell(s, "bell")
        s.write("web.group", ini(f"/usr/bin/python3 {script} {bell.path} service", Group={"Type": "service"}))
        s.command[s.command.index(s.socket_path)] = os.path.relpath(s.socket_path)
        s.start()
        bell.ring()
        s.until(lambda: s.worker("web/0").get("status") == "said by the service")
