# SPDX-License-Identifier: MIT
"""Durable jobs beyond those in memory: they wait on disk only."""
import collections
import contextlib
import errno
import grp
import os
import subprocess
import time
import unittest
from pathlib import Path

from test_access import SUBMITTER, user
from test_durable import HOUR, Case, actor
from test_takeover import crash, upgrade
from troupe import ACTOR, QUICK, SANITIZED, Bell, Varlink, helper, ini, text

IN_MEMORY = 1000

class Backlog(Case):
    calls = collections.Counter()

    @staticmethod
    def fill(s, jobs, connections=128, group="kept"):
        """Creates jobs, each (data, options), many in a commit."""
        with contextlib.ExitStack() as stack:
            free = [stack.enter_context(Varlink(s.socket_path)) for _ in range(connections)]
            for begin in range(0, len(jobs), connections):
                batch = list(zip(free, jobs[begin:begin + connections]))
                for connection, (data, options) in batch:
                    connection.send("Create", {"group": group, "payload": text(data), "options": options})
                for connection, _ in batch:
                    connection.reply()

    def noted(self, s, numbers, **options):
        """Jobs that note their numbers in a file, in the order in which they run."""
        return [(f"note {s.path('notes')} {number}", options) for number in numbers]

    @staticmethod
    def notes(s):
        with open(s.path("notes"), encoding="ascii") as file:
            return [int(line) for line in file]

    def run_all(self, s, count):
        s.call("Resume", target="kept")
        s.until(lambda: s.group("kept")["succeeded"] == count)

    def test_D8_jobs_beyond_a_bound_wait_on_disk_and_all_run_once(self):
        s = self.durable(QueueMax=100000).start()
        s.call("Pause", target="kept")
        self.fill(s, self.noted(s, range(4 * IN_MEMORY)))
        self.assertEqual(s.group("kept")["queued"], 4 * IN_MEMORY)
        self.run_all(s, 4 * IN_MEMORY)
        self.assertEqual(sorted(self.notes(s)), list(range(4 * IN_MEMORY)))
        self.assertEqual(self.rows(s), [])

    def test_D8_jobs_on_disk_run_in_their_order(self):
        s = self.durable(QueueMax=100000).start()
        s.call("Pause", target="kept")
        count = 5 * IN_MEMORY // 2
        self.fill(s, self.noted(s, range(count)), connections=1)
        self.run_all(s, count)
        self.assertEqual(self.notes(s), list(range(count)))

    def test_D8_a_job_on_disk_whose_priority_is_set_twice_has_left_its_first_place(self):
        s = self.durable(QueueMax=100000).start()
        s.call("Pause", target="kept")
        count = IN_MEMORY + 200
        self.fill(s, [(data, {"id": f"job-{n}"}) for n, (data, _) in enumerate(self.noted(s, range(count)))], connections=1)
        moved = [count - 150, count - 1]
        for priority in 40, 32:
            for n in moved:
                s.call("io.troupe.Jobs.Set", id=f"job-{n}", priority=priority)
        self.run_all(s, count)
        self.assertEqual(self.notes(s), [n for n in range(count) if n not in moved] + moved)

    def test_Q9_jobs_that_are_tied_to_others_wait_on_disk_too(self):
        s = self.durable(QueueMax=100000).start()
        done = s.create("kept", "echo")
        s.wait_job(done)
        s.call("Pause", target="kept")
        batch = s.call("io.troupe.Jobs.OpenBatch", group="kept")["id"]
        released = self.noted(s, range(3 * IN_MEMORY // 2), after=done, batch=batch)
        self.fill(s, [(data, {**options, "id": f"job-{n}"}) for n, (data, options) in enumerate(released)])
        parents = range(0, len(released), 10)
        count = len(released) + len(parents)
        self.fill(s, [(f"note {s.path('notes')} {len(released) + n}", {"after": f"job-{n}"}) for n in parents])
        s.call("io.troupe.Jobs.CloseBatch", id=batch)
        for happens in lambda: None, s.crash:
            happens()
            s.until_restored()
            self.assertEqual(s.job(batch)["members"]["live"], len(released))
            self.assertEqual(s.group("kept")["pending"], 1 + len(parents))
        s.call("Resume", target="kept")
        s.wait_job(batch)
        s.until(lambda: s.group("kept")["succeeded"] == count + 1)
        notes = self.notes(s)
        self.assertEqual(len(set(notes)), count)
        for n in parents:
            self.assertLess(notes.index(n), notes.index(len(released) + n))

    def test_D8_jobs_that_wait_on_disk_for_room_are_not_read_again_and_again(self):
        s = self.durable(QueueMax=100000, QueueMemoryMax="64K").start()
        s.call("Pause", target="kept")
        jobs = [(f"{data}\n".ljust(10000, "#"), {"wait_usec": HOUR}) for data, _ in self.noted(s, range(20))]
        self.fill(s, jobs, connections=1)
        self.assert_idle(s, s.supervisor_pid)
        self.run_all(s, 20)
        self.assertEqual(self.notes(s), list(range(20)))

    def test_D9_jobs_with_a_deadline_keep_their_places_when_they_are_read(self):
        s = self.durable(QueueMax=100000).start()
        s.call("Pause", target="kept")
        jobs = self.noted(s, range(10))
        self.fill(s, [(data, {"deadline_usec": HOUR} if n % 2 else {}) for n, (data, _) in enumerate(jobs)], connections=1)
        self.restart(s)
        s.until(lambda: s.group("kept")["succeeded"] == 10)
        self.assertEqual(self.notes(s), list(range(10)))

    def reading(self):
        """A supervisor that has three jobs to read from disk, until "fault" is removed."""
        s = self.durable(QueueMax=100000)
        s.write("passing.group", actor())
        s.with_faults("@" + s.path("fault")).start()
        s.call("Pause", target="kept")
        self.fill(s, self.noted(s, range(3)), connections=1)
        s.kill()
        Path(s.path("fault")).write_text(f"restore:1+={errno.EAGAIN}", encoding="ascii")
        return s.start()

    def test_D9_jobs_of_a_group_that_comes_while_others_are_read_count_once(self):
        s = self.reading()
        s.write("late.group", actor(Durable="yes", QueueMax=100000))
        s.call("Reload")
        s.call("Pause", target="late")
        count = 2 * IN_MEMORY
        self.fill(s, self.noted(s, range(count)), group="late")
        os.unlink(s.path("fault"))
        s.until(lambda: not s.group("late").get("restoring") and s.group("kept")["succeeded"] == 3)
        self.assertEqual(s.group("late")["queued"], count)
        s.call("Resume", target="late")
        s.until(lambda: s.group("late")["succeeded"] == count)
        self.assertEqual(s.group("late")["queued"], 0)
        s.ctl("drain", "late", check=True)

    def test_D9_new_jobs_follow_those_that_have_not_been_read(self):
        s = self.reading()
        with s.connect() as waiting:
            waiting.send("Do", {"group": "kept", "payload": text(f"note {s.path('notes')} 3")})
            self.fill(s, self.noted(s, range(4, 6)), connections=1)
            s.create("kept", f"note {s.path('notes')} 6", id="last", deadline_usec=HOUR)
            self.assertEqual([wait["cause"] for wait in s.call("io.troupe.Jobs.Explain", id="last")["waits"]],
                             ["store_reading", "queue"])
            self.assertIn("older jobs of kept are being read from disk", s.ctl("why", "last", check=True).stdout)
            self.assertIn("reads its jobs from disk", s.ctl("status", check=True).stdout)
            self.assertTrue(s.group("kept")["restoring"])
            self.assertNotIn("restoring", s.group("passing"))
            os.unlink(s.path("fault"))
            self.assertEqual(waiting.reply()[0]["job"]["state"], "succeeded")
        self.assertEqual(s.wait_job("last")["state"], "succeeded")
        self.assertEqual(self.notes(s), list(range(7)))
        self.assertEqual(self.rows(s), [])

    def test_D8_more_urgent_jobs_overtake_those_in_memory_and_on_disk(self):
        s = self.durable(QueueMax=100000).start()
        s.call("Pause", target="kept")
        for priority in (32, 63, 10, 32, 5):
            first = 10000 * priority + 1000 * self.calls[priority]
            self.calls[priority] += 1
            self.fill(s, self.noted(s, range(first, first + 700), priority=priority), connections=1)
        self.run_all(s, 3500)
        self.assertEqual(self.notes(s), sorted(self.notes(s)))

    @unittest.skipIf(SANITIZED, "a sanitizer keeps what was freed")
    def test_D8_a_job_on_disk_costs_at_most_200_bytes(self):
        s = self.durable(QueueMax=100000).start()
        s.call("Pause", target="kept")
        jobs = [("echo\n\n" + 4096 * "x", {})] * 10000
        self.fill(s, jobs)
        before = s.status_field("VmRSS", s.supervisor_pid)
        # What waits to be written for a moment, up to 3 MB, would count much for fewer jobs.
        self.fill(s, jobs * 4)

        cost = (s.status_field("VmRSS", s.supervisor_pid) - before) * 1024 / (4 * len(jobs))
        print(cost, "bytes each")
        self.assertLess(cost, 200)

    @unittest.skipIf(SANITIZED, "a sanitizer keeps what was freed")
    def test_D8_a_job_that_begins_much_later_costs_at_most_200_bytes(self):
        s = self.durable(QueueMax=100000).start()
        jobs = [("echo\n\n" + 1024 * "x", {"delay_usec": HOUR})] * 10000
        self.fill(s, jobs)
        before = s.status_field("VmRSS", s.supervisor_pid)
        self.fill(s, jobs * 4)
        cost = (s.status_field("VmRSS", s.supervisor_pid) - before) * 1024 / (4 * len(jobs))
        print(cost, "bytes each")
        self.assertLess(cost, 200)
        s.crash()
        s.until(lambda: s.group("kept")["waiting"] == 5 * len(jobs))
        cost = (s.status_field("VmRSS", s.supervisor_pid)) * 1024 / (5 * len(jobs))
        print(cost, "bytes each, with all that a supervisor takes")
        self.assertLess(cost, 1000)

    def test_D8_a_job_that_begins_much_later_is_found_and_changed(self):
        s = self.durable(QueueMax=100000).start()
        later = [s.create("kept", f"note {s.path('notes')} {n}", delay_usec=HOUR) for n in range(4)]
        self.assertEqual(s.group("kept")["waiting"], 4)
        for id in later:
            self.assertEqual(s.job(id)["state"], "delayed")
        self.assertEqual(s.group("kept")["waiting"], 4)
        s.call("Cancel", id=later[0])
        s.call("io.troupe.Jobs.RunNow", id=later[1])
        for take_over in (crash, upgrade):
            s.until(lambda: (s.group("kept")["waiting"], s.group("kept")["queued"]) == (2, 0))
            take_over(s)
        s.until(lambda: s.group("kept")["waiting"] == 2)
        s.call("Cancel", id=later[2])
        s.call("io.troupe.Jobs.RunNow", id=later[3])
        s.until(lambda: s.group("kept")["waiting"] == 0 and s.job(later[3])["state"] == "succeeded")
        self.assertEqual(self.notes(s), [1, 3])
        self.assertEqual(self.rows(s), [])

    def test_D4_jobs_that_wait_on_disk_begin_at_their_time(self):
        """12 s is more than a job waits in memory."""
        s = self.durable(QueueMax=100000, ResultTTLSec="1h").start()
        self.fill(s, [(f"note {s.path('notes')} {n}", {"delay_usec": 12000000}) for n in range(500)])
        some = s.create("kept", f"note {s.path('notes')} 500", delay_usec=12000000)
        self.assertEqual(s.group("kept")["waiting"], 501)
        s.crash()
        s.until(lambda: s.group("kept")["succeeded"] == 501)
        self.assertEqual(sorted(self.notes(s)), list(range(501)))
        job = s.job(some)
        self.assertGreaterEqual(job["started_at"] - job["created_at"], 12000000)

    def test_Q9_a_delayed_job_waits_for_others_even_if_the_queue_lets_it_late(self):
        s = self.durable(QueueMax=100000).start()
        s.call("Pause", target="kept")
        self.fill(s, self.noted(s, range(IN_MEMORY)))
        parent = s.create("kept", f"note {s.path('notes')} 8000", delay_usec=HOUR)
        child = s.create("kept", f"note {s.path('notes')} 9000", after=parent, delay_usec=11000000)
        due = time.time() + 12
        s.until(lambda: s.group("kept")["waiting"] < 2 and time.time() > due)
        s.call("Resume", target="kept")
        s.until(lambda: s.group("kept")["succeeded"] >= IN_MEMORY)
        self.assertEqual(s.job(child)["state"], "pending")
        s.call("io.troupe.Jobs.RunNow", id=parent)
        self.assertEqual(s.wait_job(child)["state"], "succeeded")
        self.assertEqual(self.notes(s)[-2:], [8000, 9000])

    def test_D8_jobs_that_are_asked_for_when_their_time_comes_all_run(self):
        """The supervisor needs several turns for so many. Those asked for are the last."""
        s = self.durable(QueueMax=100000).start()
        at = int((time.time() + 16) * 1000000)
        self.fill(s, self.noted(s, range(5000), at=at))
        ids = [s.create("kept", f"note {s.path('notes')} {5000 + n}", at=at) for n in range(50)]
        self.assertEqual(s.group("kept")["waiting"], 5050)
        with contextlib.ExitStack() as stack:
            free = [stack.enter_context(Varlink(s.socket_path)) for _ in ids]
            s.until(lambda: time.time() * 1000000 > at - 2500000)
            with s.stopped():
                for connection, id in zip(free, ids):
                    connection.send("Get", {"id": id})
                time.sleep(3)
            for connection in free:
                connection.reply()
        s.until(lambda: s.group("kept")["succeeded"] == 5050)
        self.assertEqual(sorted(self.notes(s)), list(range(5050)))

    def test_D8_a_job_on_disk_is_found_waited_for_and_cancelled_by_its_id(self):
        s = self.durable(QueueMax=100000).start()
        s.call("Pause", target="kept")
        count = 2 * IN_MEMORY
        self.fill(s, self.noted(s, range(count)))
        made = s.create("kept", f"note {s.path('notes')} {count}")
        s.create("kept", f"note {s.path('notes')} {count + 1}", id="chosen")
        for id in (made, "chosen"):
            self.assertEqual(s.job(id)["state"], "queued")
        self.refused("JobExists", s.create, "kept", id="chosen")
        self.refused("NoSuchJob", s.job, "unknown")
        with Varlink(s.socket_path) as waiting:
            waiting.send("Wait", {"id": made})
            s.call("Cancel", id="chosen")
            self.assertEqual(s.job("chosen")["state"], "cancelled")
            self.refused("AlreadyEnded", s.call, "Cancel", id="chosen")
            self.run_all(s, count + 1)
            self.assertEqual(waiting.reply()[0]["job"]["state"], "succeeded")
        self.assertEqual(sorted(self.notes(s)), list(range(count + 1)))

    def test_D8_jobs_on_disk_are_cancelled_by_a_filter_and_stay_so(self):
        s = self.durable(QueueMax=100000).start()
        s.call("Pause", target="kept")
        count = 3 * IN_MEMORY
        self.fill(s, [job for n in range(count) for job in self.noted(s, [n], key="odd" if n % 2 else "even")])
        self.assertEqual(s.call("io.troupe.Jobs.CancelAll", group="kept", key="odd", dry_run=True)["cancelled"], count // 2)
        self.assertEqual(s.group("kept")["queued"], count)
        self.assertEqual(s.call("io.troupe.Jobs.CancelAll", group="kept", key="odd"), {"cancelled": count // 2, "failed": 0})
        self.assertEqual(s.group("kept")["queued"], count // 2)
        s.crash()
        s.until(lambda: s.group("kept")["queued"] == count // 2)
        self.run_all(s, count // 2)
        self.assertEqual(sorted(self.notes(s)), list(range(0, count, 2)))
        self.assertEqual(self.rows(s), [])

    def test_D8_a_cancellation_is_answered_when_it_is_on_disk(self):
        s = self.durable(QueueMax=100000).with_failing_syncs().start()
        s.call("Pause", target="kept")
        self.fill(s, self.noted(s, range(2 * IN_MEMORY)))
        Path(s.path("fails")).touch()
        with Varlink(s.socket_path) as canceller:
            canceller.send("io.troupe.Jobs.CancelAll", {"group": "kept"})
            s.wait_event("store.failed")
            self.refused("StoreFailed", s.call, "io.troupe.Jobs.CancelAll", group="kept")
            os.unlink(s.path("fails"))
            self.assertEqual(canceller.reply()[0], {"cancelled": 2 * IN_MEMORY, "failed": 0})
        self.assertEqual(self.rows(s), [])

    def test_D8_a_job_that_waits_on_disk_for_another_attempt_is_found_by_its_id(self):
        s = self.durable(QueueMax=100000).start()
        bell = Bell(s, "bell")
        s.create("kept", f"before 2 wait {bell.path}\nbefore 2 exit 1\necho x", id="retried")
        s.until(lambda: s.job("retried").get("started_at"))
        s.call("Pause", target="kept")
        self.fill(s, self.noted(s, range(2 * IN_MEMORY)))
        bell.ring()
        s.until(lambda: s.group("kept")["queued"] == 2 * IN_MEMORY + 1)
        self.assertEqual(s.job("retried")["state"], "queued")
        self.run_all(s, 2 * IN_MEMORY + 1)
        self.assertEqual(s.job("retried")["attempt"], 2)

    @unittest.skipIf(os.geteuid() != 0, "needs root to be several users")
    def test_D8_a_submitter_reads_all_that_a_job_on_disk_wrote(self):
        group = ini(ACTOR, Restart=QUICK, Jobs={"Durable": "yes", "QueueMax": 100000, "BackoffMinSec": "1ms"},
                    Worker={"LogRateLimitBurst": 0})
        s = self.durable({"kept": group}, conf="AdminGroup=daemon\n").start()
        bell = Bell(s, "bell")
        lines = [f"{number} {100 * 'x'}" for number in range(800)]
        with user(SUBMITTER, grp.getgrnam("daemon").gr_gid):
            s.create("kept", "\n".join([*(f"before 2 complain {line}" for line in lines), f"before 2 wait {bell.path}",
                                         "before 2 exit 1"]), id="retried", priority=63)
        s.until(lambda: len(s.call("GetLog", job="retried")["lines"]) == len(lines))
        s.call("Pause", target="kept")
        self.fill(s, self.noted(s, range(2 * IN_MEMORY)))
        bell.ring()
        s.until(lambda: s.group("kept")["queued"] == 2 * IN_MEMORY + 1)
        with user(SUBMITTER), Varlink(s.socket_path) as reader:
            for _ in range(8):
                reader.send("GetLog", {"job": "retried"}, more=True)  # more than fits into the connection
            s.call("GetInfo")
            for _ in range(8):
                found, continues = [], True
                while continues:
                    part, continues = reader.reply()
                    found += part["lines"]
                self.assertEqual(len(found), len(lines))
        with user(SUBMITTER + 1):
            self.refused("NotPermitted", s.call, "GetLog", job="retried")

    def test_D1_a_job_that_is_refused_as_its_id_is_on_disk_does_not_run(self):
        s = self.durable({"quick": actor(Durable="yes")}, QueueMax=100000).start()
        s.call("Pause", target="kept")
        self.fill(s, [("echo", {})] * 2 * IN_MEMORY)
        for number in range(20):
            s.create("kept", "echo", id=f"chosen-{number}")
        for number in range(20):
            self.refused("JobExists", s.create, "quick", f"note {s.path('notes')} {number}", id=f"chosen-{number}")
        s.create("quick", f"note {s.path('notes')} 20", id="another")
        s.wait_job("another")
        self.assertEqual(self.notes(s), [20])

    def test_D8_a_job_on_disk_whose_id_is_taken_keeps_no_others_from_running(self):
        s = self.durable({"plain": actor(ResultTTLSec="1h")}, QueueMax=100000).start()
        s.call("Pause", target="kept")
        count = 2 * IN_MEMORY
        self.fill(s, self.noted(s, range(count)))
        s.create("kept", f"note {s.path('notes')} {count + 1}", id="chosen")
        self.fill(s, self.noted(s, [count]))
        self.refused("JobExists", s.create, "plain", "echo", id="chosen")
        with self.blocked(s):
            s.crash()
            s.create("plain", "echo", id="chosen")  # not durable, and the rows have not been read
        self.run_all(s, count + 1)
        self.assertEqual(s.group("kept")["queued"], 1)
        s.write("plain.group", actor(ResultsMax=0))
        s.call("Reload")
        self.run_all(s, count + 2)
        self.assertEqual(sorted(self.notes(s)), list(range(count + 2)))

    def by_id(self, s, *arguments):
        return subprocess.Popen([helper("client"), s.socket_path, *arguments], stdout=subprocess.PIPE, text=True)

    def test_D8_a_client_cancels_and_awaits_jobs_on_disk_by_their_ids(self):
        s = self.durable(QueueMax=100000).start()
        s.call("Pause", target="kept")
        self.fill(s, [("echo", {})] * 2 * IN_MEMORY)
        ids = [s.create("kept", "echo", id=name) for name in ("a", "b")] + [s.create("kept", "echo")]
        with self.by_id(s, "cancel", "a", "unknown", "a") as client:
            self.assertEqual(client.stdout.read().split(), ["0", str(errno.ESRCH), str(errno.ESRCH)])
        with self.by_id(s, "wait", *ids, "unknown") as client:
            self.assertEqual(client.stdout.readline(), "2\n")  # cancelled
            s.call("Resume", target="kept")
            self.assertEqual(client.stdout.read().split(), ["0", "0", str(errno.ESRCH)])

    def test_D8_each_job_is_listed_once_wherever_it_waits(self):
        s = self.durable({"other": actor()}, QueueMax=100000, ResultTTLSec="1h").start()
        s.do("kept", "echo")
        ended = s.create("kept", "echo", id="ended")
        s.wait_job(ended)
        s.call("Pause", target="kept")
        s.call("Pause", target="other")
        self.fill(s, [("echo", {"key": f"k{number % 2}"}) for number in range(2 * IN_MEMORY)])
        names = [s.create("kept", "echo", id=f"name-{number}", priority=40) for number in range(3)]
        others = [s.create("other", "echo") for _ in range(3)]
        for limit in (1000, 300):
            jobs, _ = s.pages("List", "jobs", limit=limit)
            ids = [job["id"] for job in jobs]
            self.assertEqual(len(ids), len(set(ids)))
            self.assertEqual(len(ids), 2 * IN_MEMORY + 6)
            self.assertLessEqual({*names, *others}, set(ids))
            self.assertEqual({job["state"] for job in jobs}, {"queued"})
            ids += [ended]
            self.assertEqual(sorted(job["id"] for job in s.pages("List", "jobs", limit=limit, ended=True)[0]), sorted(ids))
        self.assertEqual(len(s.pages("List", "jobs", group="kept")[0]), 2 * IN_MEMORY + 3)
        self.assertEqual(len(s.pages("List", "jobs", group="other")[0]), 3)
        self.assertEqual(len(s.pages("List", "jobs", state="queued")[0]), 2 * IN_MEMORY + 6)
        self.assertEqual(len(s.pages("List", "jobs", state="running")[0]), 0)
        by_name = {job["id"]: job for job in s.pages("List", "jobs", group="kept")[0]}
        for name in names:
            job = s.job(name)
            self.assertEqual((job.pop("payload_start"), job.pop("payload_bytes")), (text("echo"), 4))
            self.assertEqual(by_name[name], job)

    def test_D4_jobs_on_disk_come_back_in_their_order(self):
        s = self.durable(QueueMax=100000).start()
        s.call("Pause", target="kept")
        count = 6 * IN_MEMORY // 5
        self.fill(s, self.noted(s, range(count, 2 * count)), connections=1)
        self.fill(s, self.noted(s, range(count), priority=1), connections=1)
        self.restart(s)
        s.until(lambda: s.group("kept")["succeeded"] == 2 * count)
        self.assertEqual(self.notes(s), list(range(2 * count)))
