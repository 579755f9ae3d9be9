# SPDX-License-Identifier: MIT
"""A ring client that waits for a job's end and has its result kept as well."""
import errno
import subprocess

from troupe import LIMIT, TestCase, actor, helper


class Keep(TestCase):
    def started(self, durable):
        s = self.supervisor(state=True)
        s.write("actor.group", actor(Jobs={"BackoffMinSec": "1ms", "Durable": durable}))
        return s.start()

    def submit(self, s, *arguments):
        return subprocess.run([helper("client"), s.socket_path, "keep", "actor", *arguments], capture_output=True, text=True,
                              check=True, timeout=LIMIT).stdout.strip()

    def test_a_result_is_told_and_kept_if_its_submitter_asks_for_both(self):
        for durable in "no", "yes":
            s = self.started(durable)
            self.assertEqual(self.submit(s, "kept", "echo yes", "keep"), "0")
            self.assertEqual(s.call("Get", id="kept")["job"]["result"]["data"], "yes")
            self.assertEqual(self.submit(s, "kept", "echo yes", "keep"), str(errno.EEXIST))
            self.assertEqual(self.submit(s, "gone", "echo yes"), "0")
            self.refused("NoSuchJob", s.call, "Get", id="gone")
            s.stop()

    def test_a_kept_result_is_there_when_its_submitter_ended_first(self):
        for durable in "no", "yes":
            s = self.started(durable)
            self.submit(s, "left", "echo yes", "leave")
            self.assertEqual(s.call("Wait", id="left")["job"]["result"]["data"], "yes")
            self.assertEqual(s.call("Get", id="left")["job"]["state"], "succeeded")
            s.stop()
