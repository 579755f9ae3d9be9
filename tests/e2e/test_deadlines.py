# SPDX-License-Identifier: MIT
"""Deadlines: the supervisor first reads what was sent in time, and counts from the right moment."""
import contextlib
import os
import signal
import time

from troupe import QUICK, Bell, TestCase, actor, helper, ini, text

MS = 1000


@contextlib.contextmanager
def stopped(pid):
    os.kill(pid, signal.SIGSTOP)
    try:
        yield
    finally:
        os.kill(pid, signal.SIGCONT)


class Prefetched(TestCase):
    def test_a_job_behind_a_long_one_ends_at_its_deadline(self):
        s = self.started({"actor": actor(Pool={"Prefetch": "4"})})
        bell, begun = Bell(s, "bell"), Bell(s, "begun")
        long = s.create("actor", f"ring {begun.path}\nwait {bell.path}\necho")
        begun.wait()
        short = s.create("actor", "echo", deadline_usec=100 * MS)
        self.assertEqual(s.wait_job(short)["state"], "cancelled")
        self.assertEqual(s.job(long)["state"], "running")
        bell.ring()
        self.assertEqual(s.wait_job(long)["state"], "succeeded")


class Late(TestCase):
    """The supervisor itself is late: what was sent in time counts."""

    def test_a_worker_that_answered_in_time_is_not_killed(self):
        for wake in "futex", "eventfd":
            s = self.started({"actor": actor()}, options=["--wake", wake])
            bell, begun = Bell(s, "bell"), Bell(s, "begun")
            for i in range(2):
                id = s.create("actor", f"ring {begun.path}\nwait {bell.path}\necho {i}", timeout_usec=2000 * MS)
                begun.wait()
                with s.stopped():
                    bell.ring()
                    time.sleep(2.2)  # its deadline passes
                job = s.wait_job(id)
                self.assertEqual((job["state"], job["attempt"], job["result"]), ("succeeded", 1, text(str(i))))
            self.assertEqual((s.worker("actor/0")["generation"], s.deaths()), (1, []))
            s.stop()

    def test_a_service_that_gave_its_sign_of_life_in_time_is_not_killed(self):
        s = self.started({"web": ini(helper("workers/notifier"), Group={"Type": "service"},
                                     Worker={"WatchdogSec": "2s"}, Restart=QUICK)})
        s.wait_worker("web/0", "idle")
        for _ in range(2):
            with s.stopped():
                time.sleep(2.2)
            s.call("GetInfo")
        self.assertEqual((s.worker("web/0")["generation"], s.deaths()), (1, []))

    def test_a_worker_that_got_ready_in_time_is_not_killed(self):
        s = self.supervisor()
        bell = Bell(s, "bell")
        s.write("actor.group", actor(program=f"{helper('hostile')} slow", Worker={"TimeoutStartSec": "4s"},
                                     Group={"Environment": f"BRIEF_BELL={bell.path}"}))
        s.start()
        os.kill(s.worker("actor/0")["pid"], signal.SIGKILL)
        s.until(lambda: s.worker("actor/0")["generation"] == 2 and s.worker("actor/0").get("pid"))
        with s.stopped():
            bell.ring()
            time.sleep(4.2)
        s.wait_worker("actor/0", "idle")
        self.assertEqual((s.worker("actor/0")["generation"], len(s.deaths())), (2, 1))

    def test_one_that_is_hung_is_still_found_out(self):
        s = self.started({"actor": actor()})
        begun = Bell(s, "begun")
        id = s.create("actor", f"ring {begun.path}\nwait {Bell(s, 'never').path}", timeout_usec=300 * MS, max_retries=0)
        begun.wait()
        with s.stopped():
            time.sleep(0.5)
        self.assertEqual(s.wait_job(id)["state"], "dead")
        self.assertEqual([death["cause"] for death in s.deaths()], ["job_timeout"])


class Ends(TestCase):
    def test_a_large_result_arrives_although_its_worker_died_with_large_payloads_unread(self):
        s = self.started({"actor": actor(Worker={"InlineMax": "4K"}, Pool={"Prefetch": 3})})
        begun, bell, never = (Bell(s, name) for name in ("begun", "bell", "never"))
        first = s.create("actor", f"ring {begun.path}\nwait {bell.path}\nblob 100000", max_retries=0)
        begun.wait()
        second = s.create("actor", f"ring {begun.path}\nbefore 2 wait {never.path}\necho second", max_retries=1)
        third = s.create("actor", "before 0 x\n" * 1000 + "echo third")
        pid = s.worker("actor/0")["pid"]
        with s.stopped():
            bell.ring()
            begun.wait()  # the payload of the third job is unread now
            os.kill(pid, signal.SIGKILL)
        job = s.wait_job(first)
        self.assertEqual((job["state"], job["attempt"], job["result"]["encoding"]), ("succeeded", 1, "base64"))
        self.assertEqual([s.wait_job(id)["state"] for id in (second, third)], ["succeeded", "succeeded"])
        self.assertEqual([death["signal"] for death in s.deaths()], ["SIGKILL"])


class Begin(TestCase):
    def test_the_time_of_a_job_begins_when_its_worker_begins_it(self):
        s = self.started({"actor": actor()})
        bell = Bell(s, "bell")
        with stopped(s.worker("actor/0")["pid"]):
            id = s.create("actor", f"wait {bell.path}\necho done", timeout_usec=4000 * MS, max_retries=0)
            time.sleep(3)
        s.until(lambda: s.job(id).get("started_at"))
        time.sleep(1.2)  # together longer than its limit, counted from the hand-over
        bell.ring()
        self.assertEqual(s.wait_job(id)["state"], "succeeded")

    def test_a_watchdog_bites_soon_after_its_time(self):
        s = self.started({"actor": actor(Worker={"WatchdogSec": "2s"}, Resources={"LimitCORE": 0})})
        begun, never = Bell(s, "begun"), Bell(s, "never")
        for n in 1, 2, 3:
            before = time.monotonic()
            s.create("actor", f"ring {begun.path}\nwait {never.path}", max_retries=0)
            begun.wait()
            since = time.monotonic()
            s.wait_event("worker.died", "actor", n)
            now = time.monotonic()
            self.assertEqual([death["cause"] for death in s.deaths()], ["watchdog"] * n)
            self.assertGreater(now - before, 1.9)
            if now - since < 3.5:
                break  # other load on the machine makes single tries worthless
        self.assertLess(now - since, 3.5)


class Unbegun(TestCase):
    """Jobs in the ring of a worker that dies before it begins them."""

    def test_a_job_that_was_never_begun_is_charged_no_attempt(self):
        for prefetch in 1, 4:
            with self.subTest(prefetch=prefetch):
                s = self.started({"actor": actor(Jobs={"MaxRetries": 0}, Pool={"Size": 1, "Prefetch": prefetch})})
                pid = s.worker("actor/0")["pid"]
                os.kill(pid, signal.SIGSTOP)
                jobs = [s.create("actor", "attempt") for _ in range(6)]
                s.until(lambda: s.group("actor")["running"] == prefetch)
                os.kill(pid, signal.SIGKILL)
                for id in jobs:
                    job = s.wait_job(id)
                    self.assertEqual((job["state"], job["attempt"], job["result"]), ("succeeded", 1, text("1")))
                [death] = s.deaths()
                self.assertNotIn("job", death)
                s.stop()

    def test_the_one_that_was_begun_is_charged_and_those_behind_it_are_not(self):
        s = self.started({"actor": actor(Jobs={"MaxRetries": 0}, Pool={"Size": 1, "Prefetch": 4})})
        begun = Bell(s, "begun")
        first = s.create("actor", f"ring {begun.path}\nwait {Bell(s, 'never').path}")
        jobs = [s.create("actor", "attempt") for _ in range(3)]
        begun.wait()
        s.until(lambda: s.group("actor")["running"] == 4)
        os.kill(s.worker("actor/0")["pid"], signal.SIGKILL)
        self.assertEqual(s.wait_job(first)["state"], "dead")
        for id in jobs:
            job = s.wait_job(id)
            self.assertEqual((job["state"], job["attempt"]), ("succeeded", 1))

    def test_J4_a_job_over_which_worker_after_worker_dies_before_it_begins_ends_all_the_same(self):
        s = self.started({"actor": actor(program=f"{helper('hostile')} faint")})
        job = s.do("actor", "x", max_retries=1)
        self.assertEqual((job["state"], job["attempt"]), ("dead", 2))
        self.assertEqual(len(s.deaths()), 3 + 2)
