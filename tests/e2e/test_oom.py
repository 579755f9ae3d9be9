# SPDX-License-Identifier: MIT
"""OnOom=: a job that ran out of memory is tried once more, in a group with more.

No machine's memory runs out: a fault point says that a worker which was killed had none, and all else is real."""
import sqlite3
import threading
from troupe import ACTOR, FAULTY_TROUPED, LIMIT, QUICK, Bell, TestCase, Varlink, ini, text

HUNGRY = "before 2 crash kill\nname"  # in its first attempt


def group(**jobs):
    return ini(ACTOR, Restart=QUICK, Jobs={"BackoffMinSec": "1ms", **jobs})


class OnOom(TestCase):
    def start(self, kills="1+", conf="", **jobs):
        """Of the workers that are killed, these have run out of memory."""
        self.s = s = self.supervisor({"small": group(OnOom="big", **jobs), "big": group(**{**jobs, "MaxRetries": 3})},
                                     program=FAULTY_TROUPED, environment={"TROUPE_FAULT": f"oom:{kills}"}, conf=conf)
        s.start()
        return s

    def test_I5_a_job_that_ran_out_of_memory_succeeds_in_the_other_group(self):
        s = self.start()
        job = s.do("small", HUNGRY)
        self.assertEqual((job["state"], job["group"], job["attempt"], job["moved"]), ("succeeded", "big", 2, True))
        self.assertEqual(job["result"], text("big/0"))
        self.assertEqual([(a["worker"], a["cause"]) for a in job["attempts"]], [("small/0", "oom")])
        self.assertEqual([d["cause"] for d in s.deaths()], ["oom"])

    def test_I5_a_watcher_sees_where_it_goes_and_job_shows_it(self):
        s = self.start()
        seen = []
        with Varlink(s.socket_path) as watch:
            watching = watch.more("Watch", target="small", jobs=True, replay=True)
            next(watching)  # what has been: from here on it sees everything
            thread = threading.Thread(target=lambda: s.do("small", HUNGRY))
            thread.start()
            for reply in watching:
                seen += [event["type"] for event in reply["events"] if event["type"].startswith("job.")]
                if "job.moved" in seen:
                    break
            thread.join(LIMIT)
        self.assertEqual(seen, ["job.accepted", "job.started", "job.retried", "job.moved"])
        id = s.call("Create", group="small", payload=text(HUNGRY))["id"]
        s.wait_job(id)
        shown = s.ctl("job", id).stdout
        self.assertIn("Group: big, after it ran out of memory in another", shown)
        self.assertNotIn("last on small", shown)

    def test_I5_a_durable_job_stays_in_the_other_group_after_a_crash(self):
        s = self.started({"small": group(OnOom="big", Durable="yes", MaxRetries=0), "big": group(Durable="yes")},
                         program=FAULTY_TROUPED, environment={"TROUPE_FAULT": "oom:1+"}, state=True)
        s.call("Pause", target="big")
        id = s.call("Create", group="small", payload=text("crash kill"), options={"id": "hungry"})["id"]

        def row():
            with sqlite3.connect(f"file:{s.path('state/troupe.db')}?mode=ro", uri=True) as database:
                return database.execute("SELECT grp, moved, state, failed, cause FROM job").fetchall()
        s.until(lambda: row() == [("big", 1, 0, 1, 4)])
        s.kill()
        s.start()
        s.until(lambda: s.job(id)["group"] == "big")
        self.assertTrue(s.job(id)["moved"])
        s.call("Resume", target="big")
        job = s.wait_job(id)  # attempt 2 may have begun when everything was killed
        self.assertEqual((job["state"], job["attempt"], job["group"]), ("dead", 3, "big"))
        self.assertEqual(row(), [])
        s.crash()
        s.until(lambda: not any(group.get("restoring") for group in s.call("GetStatus")["groups"]))
        self.assertTrue(s.job(id)["moved"])

    def test_I5_a_durable_job_in_the_hands_of_its_new_worker_survives_a_crash_of_the_supervisor(self):
        s = self.started({"small": group(OnOom="big", Durable="yes"), "big": group(Durable="yes")},
                         program=FAULTY_TROUPED, environment={"TROUPE_FAULT": "oom:1"}, state=True)
        rings, waits = Bell(s, "rings"), Bell(s, "waits")
        id = s.call("Create", group="small",
                    payload=text(f"before 2 crash kill\nring {rings.path}\nwait {waits.path}\nname"))["id"]
        rings.wait()
        s.crash()
        waits.ring()
        job = s.wait_job(id)
        self.assertEqual((job["state"], job["group"], job["result"]), ("succeeded", "big", text("big/0")))

    def test_I5_a_job_that_was_read_from_disk_before_it_moved_keeps_its_id(self):
        s = self.started({"small": group(OnOom="big", Durable="yes"), "big": group(Durable="yes")},
                         program=FAULTY_TROUPED, environment={"TROUPE_FAULT": "oom:1+"}, state=True)
        s.call("Pause", target="small")
        s.call("Create", group="small", payload=text("before 3 crash kill\nname"), options={"id": "hungry"})
        s.kill()
        s.start()
        s.call("Resume", target="small")
        self.assertEqual(s.wait_job("hungry")["group"], "big")
        s.kill()
        s.start()
        s.until(lambda: not any(group.get("restoring") for group in s.call("GetStatus")["groups"]))
        self.assertEqual(s.job("hungry")["state"], "succeeded")

    def test_I5_a_job_that_has_moved_does_not_move_again_after_an_upgrade(self):
        s = self.start()
        s.call("Pause", target="big")
        id = s.call("Create", group="small", payload=text("crash kill"))["id"]
        s.until(lambda: s.job(id)["group"] == "big")
        s.ctl("upgrade", check=True)
        self.assertEqual([s.job(id)[member] for member in ("group", "moved", "attempt")], ["big", True, 1])
        s.call("Resume", target="big")
        job = s.wait_job(id)
        self.assertEqual((job["state"], job["attempt"], job["attempts"][-1]["worker"]), ("dead", 2, "big/0"))
