# SPDX-License-Identifier: MIT
"""Why a job was cancelled, or is dead: as a C program, the socket and troupectl tell it, and as it is kept."""
import os
import signal
import subprocess

from test_in_flight import Flight, copy_programs
from troupe import Bell, TestCase, actor, helper

HOUR = 3600000000
KEPT = {"good": ("succeeded", None), "bad": ("rejected", None), "requested": ("cancelled", "requested"),
        "running": ("cancelled", "requested"), "withdrawn": ("cancelled", "withdrawn"), "late": ("cancelled", "deadline"),
        "tried": ("dead", "attempts")}
LOST = {"lost": ("dead", "payload_lost")}


class Causes(TestCase):
    def set_up(self, **jobs):
        s = self.supervisor({"actor": actor(Jobs={"MaxRetries": 0, **jobs})}, state=True)
        copy_programs(s)
        return s.start()

    def by_id(self, s, verb, *ids):
        return subprocess.run([helper("client"), s.socket_path, verb, *ids], check=True, capture_output=True, text=True).stdout.split()

    def hand_over(self, s, id, then):
        """Creates a job that lasts until its worker dies or it is cancelled."""
        begun = Bell(s, f"begun-{id}")
        s.create("actor", f"ring {begun.path}\n{then}", id=id)
        begun.wait()

    def end_each(self, s):
        s.create("actor", "echo", id="good")
        s.create("actor", "reject 1 no", id="bad")
        s.create("actor", "retry 1 bad", id="tried")
        for id in "requested", "withdrawn":
            s.create("actor", "echo", id=id, delay_usec=HOUR)
        s.create("actor", "echo", id="late", delay_usec=HOUR, deadline_usec=1000)
        s.call("Cancel", id="requested")
        self.assertEqual(self.by_id(s, "withdraw", "withdrawn"), ["0"])
        self.hand_over(s, "running", "until-cancelled")
        s.call("Cancel", id="running")
        for id in KEPT:
            s.wait_job(id)

    def lose_payload(self, s):
        self.hand_over(s, "lost", f"wait {Bell(s, 'never').path}")
        s.crash()
        os.kill(s.worker("actor/0")["pid"], signal.SIGKILL)
        s.wait_job("lost")

    def check(self, s, expected):
        s.until(lambda: len(s.call("List", ended=True)["jobs"]) == len(expected))
        told = {job["id"]: (job["state"], job.get("cause")) for job in s.call("List", ended=True)["jobs"]}
        self.assertEqual(told, expected)
        self.assertEqual(self.by_id(s, "why", *expected),
                         [f"{end}/{cause or 'none'}" for end, cause in expected.values()])
        for id, status in ("late", 8), ("requested", 1), ("tried", 1):
            self.assertEqual(s.ctl("wait", id).returncode, status)

    def test_each_cause_is_told_and_handed_over_an_upgrade(self):
        s = self.set_up()
        self.lose_payload(s)
        self.end_each(s)
        self.check(s, KEPT | LOST)
        s.ctl("upgrade", check=True)
        self.check(s, KEPT | LOST)

    def test_D4_causes_survive_an_upgrade_a_crash_and_a_restart(self):
        s = self.set_up(Durable="yes")
        self.end_each(s)
        self.check(s, KEPT)
        s.ctl("upgrade", check=True)
        self.check(s, KEPT)
        s.crash()
        self.check(s, KEPT)
        s.kill()
        s.start()
        self.check(s, KEPT)

    def test_a_job_ends_with_its_group_if_that_is_removed(self):
        s = self.supervisor({"actor": actor(), "other": actor()}).start()
        s.call("Stop", target="actor", wait=True)
        flight = Flight(s, "actor")
        flight.submit("echo")
        s.until(lambda: s.group("actor")["queued"] == 1)
        os.unlink(os.path.join(s.config, "actor.group"))
        s.call("Reload")
        self.assertEqual(flight.finish(), {0: ("-", "cancelled/group", "")})

    def test_a_job_without_payload_that_is_cancelled_is_not_dead_after_an_upgrade(self):
        s = self.set_up()
        self.hand_over(s, "job", f"wait {Bell(s, 'never').path}")
        s.crash()
        s.until(lambda: s.job("job")["state"] == "running")
        s.call("Cancel", id="job")
        s.ctl("upgrade", check=True)
        self.assertTrue(s.job("job")["cancel_requested"])
        os.kill(s.worker("actor/0")["pid"], signal.SIGKILL)
        job = s.wait_job("job")
        self.assertEqual((job["state"], job["cause"], job["reason"]),
                         ("cancelled", "requested", f"cancelled by uid {os.geteuid()}"))
