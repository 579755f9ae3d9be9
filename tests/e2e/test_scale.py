# SPDX-License-Identifier: MIT
"""Many workers, big payloads, many clients."""
import resource
import subprocess
import unittest

from troupe import ACTOR, LIMIT, SANITIZED, TestCase, Varlink, ended, helper, ini, limit, text


class Scale(TestCase):
    @unittest.skipIf(SANITIZED, "a thousand instrumented processes are too much for a small machine")
    @limit(240)
    def test_a_thousand_workers_start_idle_and_stop(self):
        soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        if hard != resource.RLIM_INFINITY and hard < 16384:
            self.skipTest("not enough descriptors allowed")
        s = self.started({"many": ini(ACTOR, Pool={"Size": 1000}, Worker={"MailboxSize": "16K", "InlineMax": "4K"})})
        group = s.group("many")
        self.assertEqual([w["state"] for w in group["workers"]], ["idle"] * 1000)
        self.assertEqual(len(s.children()), 1000)
        for i in range(50):
            self.assertEqual(s.do("many", f"echo {i}")["result"], text(str(i)))
        before = s.status_field("voluntary_ctxt_switches")
        ended(s.pidfd, 2)  # nothing is expected to happen for so long
        self.assertLessEqual(s.status_field("voluntary_ctxt_switches") - before, 2)

    def test_the_descriptor_table_does_not_grow_while_workers_start(self):
        s = self.started({"one": ini(ACTOR)})
        before = s.status_field("FDSize")
        s.write("many.group", ini(ACTOR, Pool={"Size": 100}))
        s.call("Reload")
        s.until(lambda: all(w["state"] == "idle" for w in s.group("many")["workers"]))
        self.assertEqual(s.status_field("FDSize"), before)

    @limit(240)
    def test_64_mib_go_both_ways_through_the_fast_path(self):
        s = self.started({"actor": ini(ACTOR)})
        before = s.status_field("VmHWM")
        process = subprocess.run([helper("client"), s.socket_path, "large", "actor", str(64 << 20)], text=True,
                                 capture_output=True, timeout=LIMIT, check=False)
        self.assertEqual((process.returncode, process.stdout), (0, "ok\n"), process.stderr)
        if not SANITIZED:  # passed on, not copied
            self.assertLess(s.status_field("VmHWM") - before, 32 << 10)

    def test_many_clients_at_a_time(self):
        s = self.started({"actor": ini(ACTOR, Pool={"Size": 2})})
        clients = [Varlink(s.socket_path) for _ in range(100)]
        for i, client in enumerate(clients):
            client.send("Do", {"group": "actor", "payload": text(f"echo {i}")})
        for i, client in enumerate(clients):
            self.assertEqual(client.reply()[0]["job"]["result"], text(str(i)))
            client.close()

    @limit(120)
    def test_many_jobs_through_the_fast_path(self):
        s = self.started({"actor": ini(ACTOR, Pool={"Size": 2}), })
        process = subprocess.run([helper("chaos"), s.socket_path, "actor", "20000", "256"], text=True,
                                 stdin=subprocess.DEVNULL, capture_output=True, timeout=100, check=False)
        self.assertEqual(process.returncode, 0, process.stdout + process.stderr)
        self.assertIn('"succeeded": 20000', process.stdout)
