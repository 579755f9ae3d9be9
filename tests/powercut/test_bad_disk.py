# SPDX-License-Identifier: MIT
"""Disks that are full, or die, under durable jobs."""
import errno
import os
import shutil
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "e2e"))
import disk  # pylint: disable=wrong-import-position
from troupe import ACTOR, Bell, TestCase, Varlink, VarlinkError, ini  # pylint: disable=wrong-import-position

BIG = "\n\n" + 100000 * "x"


def fill(directory):
    """Takes all the space that is left. Returns the file that has it."""
    path = os.path.join(directory, "filler")
    with open(path, "wb", buffering=0) as file:
        for size in (1 << 20, 4096, 1):
            try:
                while True:
                    file.write(bytes(size))
            except OSError as error:
                if error.errno != errno.ENOSPC:
                    raise
    return path


class BadDisk(TestCase):
    def setUp(self):
        reason = disk.why_impossible()
        if reason:
            self.skipTest(reason)
        self.directory = tempfile.mkdtemp(prefix="troupe-bad-disk-")
        self.addCleanup(shutil.rmtree, self.directory)
        disk.private_mounts()

    def started_on(self, mount):
        """A supervisor with a durable group, and a plain one."""
        groups = {"kept": ini(ACTOR, Pool={"Size": 2}, Jobs={"Durable": "yes", "ResultTTLSec": "1d"}),
                  "plain": ini(ACTOR)}
        return self.started(groups, conf=f"[Supervisor]\nStateDirectory={mount}/state\n")

    def create_until_refused(self, s, ids):
        """Adds the ids of what is accepted."""
        while len(ids) < 10000:
            try:
                ids.append(s.create("kept", f"echo {len(ids)}{BIG}"))
            except VarlinkError as error:
                self.assertEqual(error.name, "StoreFull")
                return
        self.fail("nothing was refused")

    def test_D5_a_full_disk_refuses_additions_lets_ends_through_and_recovers(self):
        mount = self.enterContext(disk.small(self.directory, 48 << 20))
        s = self.started_on(mount)
        s.call("Pause", target="kept")
        ids = [s.create("kept", f"echo {i}{BIG}") for i in range(100)]
        filler = fill(mount)  # but for what the supervisor has reserved
        self.create_until_refused(s, ids)
        self.assertEqual(s.do("plain", "echo fine")["state"], "succeeded")
        s.call("Resume", target="kept")
        for i, id in enumerate(ids):
            self.assertEqual(s.wait_job(id)["result"]["data"], str(i))
        self.refused("StoreFull", s.create, "kept", "echo no")
        os.unlink(filler)
        s.wait_event("store.open", count=2)
        id = s.create("kept", "echo again")
        self.assertEqual(s.wait_job(id)["state"], "succeeded")
        s.kill()
        s.start()
        self.assertEqual({s.job(id)["state"] for id in ids}, {"succeeded"})
        s.stop()

    def test_D6_a_disk_that_dies_stops_what_is_durable_and_nothing_else(self):
        dying = self.enterContext(disk.Disk(self.directory))
        s = self.started_on(dying.mount)
        begun, may_end = Bell(s, "begun"), Bell(s, "may-end")
        id = s.create("kept", f"ring {begun.path}\nwait {may_end.path}\necho done")
        begun.wait()
        with Varlink(s.socket_path) as waiter:
            waiter.send("Wait", {"id": id})
            dying.die()
            self.refused("StoreFailed", s.create, "kept", "echo no")
            s.wait_event("store.failed")
            may_end.ring()
            s.until(lambda: s.group("kept")["running"] == 0)  # no event tells of it
            self.assertEqual(s.do("plain", "echo fine")["state"], "succeeded")
            self.refused("StoreFailed", s.create, "kept", "echo no")
            waiter.send("Get", {"id": id})
            waiter.socket.settimeout(0.1)
            with self.assertRaises(TimeoutError, msg="an end was told that is not on disk"):
                waiter.receive()
        s.kill()
