# SPDX-License-Identifier: MIT
"""What a supervisor had begun goes on under the next one, whether that comes by an upgrade or after a crash."""
import contextlib
import os
import signal
from pathlib import Path

from test_cells import keyed
from troupe import Bell, TestCase, Varlink, actor, ended, service, text

SLOW = {"Worker": {"TimeoutStopSec": "1h"}}
ONCE = {"MaxRetries": 0}
HOUR = 3600000000


def upgrade(s):
    s.ctl("upgrade", check=True)


def crash(s):
    s.crash()
    s.call("Reload")  # so that three crashes do not lead to safe mode


class Takeover:
    """The tests of both ways."""

    def take_over(self, s):
        raise NotImplementedError

    def end(self, s, ids, go):
        """Lets jobs end that have been in hand all the time, and waits for them."""
        with contextlib.ExitStack() as stack:
            watches = [stack.enter_context(Varlink(s.socket_path)).more("Get", id=id) for id in ids]
            for watch in watches:
                self.assertEqual(next(watch)["job"]["state"], "running")
            go.ring(len(ids))
            for watch in watches:
                *_, answer = watch
                job = answer["job"]
                self.assertEqual((job["state"], job["attempt"], job["result"]), ("succeeded", 1, text("done")))
        self.assertEqual([death["cause"] for death in s.deaths() if death["cause"] != "stop"], [])

    def states(self, s, group):
        return [worker["state"] for worker in s.workers(group)]

    def one_at_a_time(self, s, group, **options):
        """Expects that the group has one worker, and does one job at a time."""
        s.until(lambda: self.states(s, group) == ["idle"])
        started, go = Bell(s, "started-last"), Bell(s, "go-last")
        ids = [s.create(group, f"ring {started.path}\nwait {go.path}\necho done", **options) for _ in range(3)]
        started.wait()
        self.assertEqual((s.group(group)["running"], s.group(group)["queued"]), (1, 2))
        go.ring(3)
        for id in ids:
            s.wait_job(id)

    def test_a_group_that_shrinks_with_all_workers_at_work_goes_on_shrinking(self):
        s = self.started({"actor": actor(3, Jobs=ONCE)})
        ids, go = s.busy("actor", n=3)
        s.ctl("resize", "actor", "1", check=True)
        for _ in range(2):
            self.take_over(s)
            self.assertEqual(self.states(s, "actor"), ["busy", "stopping", "stopping"])
        self.end(s, ids, go)
        self.one_at_a_time(s, "actor")

    def test_the_cells_of_a_group_that_is_resized_as_a_whole_finish_their_jobs(self):
        s = self.started({"mail": keyed(3, Jobs=ONCE)})
        ids, go = s.busy("mail", n=3, key="a")
        s.call("Resize", target="mail", size=1)
        self.take_over(s)
        self.end(s, ids, go)
        self.one_at_a_time(s, "mail", key="a")
        self.take_over(s)
        self.assertEqual(self.states(s, "mail"), ["idle"])

    def test_a_single_cell_keeps_its_size_and_its_pause(self):
        s = self.started({"mail": keyed(1)})
        for key in "small", "large", "paused":
            s.do("mail", "echo", key=key)
        s.call("Resize", target="mail/large", size=3)
        s.call("Pause", target="mail/paused")
        s.until(lambda: self.states(s, "mail") == ["idle"] * 5)
        for _ in range(2):
            self.take_over(s)
            self.assertEqual({cell["key"]: (len(cell["workers"]), cell["state"]) for cell in s.group("mail")["cells"]},
                             {"small": (1, "running"), "large": (3, "running"), "paused": (1, "paused")})

    def test_cells_that_have_not_been_told_of_a_command_follow_it(self):
        s = self.supervisor({"mail": keyed(1)})
        s.with_faults(f"@{s.path('fault')}").start()
        for key in "abc":
            s.do("mail", "echo", key=key)
        s.call("Pause", target="mail/c")
        s.until(lambda: self.states(s, "mail") == ["idle"] * 3)
        Path(s.path("fault")).write_text("visits:1+", encoding="ascii")  # while it exists, no cell is told
        with contextlib.ExitStack() as stack:
            for method, event in ("Pause", "group.paused"), ("Resume", "group.resumed"), ("Resize", "group.resized"):
                size = {"size": 2} if method == "Resize" else {}
                stack.enter_context(Varlink(s.socket_path)).send(f"io.troupe.Supervisor.{method}", {"target": "mail", **size})
                s.wait_event(event, "mail")
            self.take_over(s)
        os.unlink(s.path("fault"))
        s.until(lambda: self.states(s, "mail") == ["idle"] * 6)
        self.assertEqual({cell["key"]: cell["state"] for cell in s.group("mail")["cells"]}, dict.fromkeys("abc", "running"))

    def test_no_job_begins_in_a_group_that_is_paused_or_stopped_before_its_cells_are_told(self):
        for method in "Pause", "Stop":
            with self.subTest(method=method):
                s = self.supervisor({"mail": keyed(1, Jobs={"Durable": "yes"})}, state=True)
                s.with_faults(f"@{s.path('fault')}").start()
                _, go = s.busy("mail", key="a")
                id = s.create("mail", "echo", key="a")
                Path(s.path("fault")).write_text("visits:1+", encoding="ascii")
                with Varlink(s.socket_path) as client:
                    client.send(f"io.troupe.Supervisor.{method}", {"target": "mail"})
                    s.until(lambda: s.call("GetStatus", brief=True)["groups"][0]["state"] != "running")
                    self.take_over(s)
                    os.unlink(s.path("fault"))
                go.ring()
                s.until(lambda: s.group("mail")["running"] == 0)
                self.assertEqual(s.job(id)["state"], "queued")
                s.call("Start" if method == "Stop" else "Resume", target="mail")
                self.assertEqual(s.wait_job(id)["state"], "succeeded")
                s.stop()

    def test_workers_beyond_a_size_that_was_lowered_in_the_file_finish_their_jobs(self):
        for reloads in True, False:
            with self.subTest(reloads=reloads):
                s = self.started({"actor": actor(3, Jobs=ONCE), "mail": keyed(3, Jobs=ONCE)})
                ids, go = s.busy("actor", n=3)
                others, away = s.busy("mail", n=3, key="a")
                s.write("actor.group", actor(1, Jobs=ONCE))
                s.write("mail.group", keyed(1, Jobs=ONCE))
                if reloads:
                    s.call("Reload")
                self.take_over(s)
                self.end(s, ids, go)
                self.end(s, others, away)
                s.until(lambda: self.states(s, "actor") == self.states(s, "mail") == ["idle"])
                s.stop()

    def test_Q12_the_pause_that_a_worker_chose_before_a_retry_stays(self):
        s = self.started({"actor": actor(Jobs={"Durable": "yes", "BackoffMinSec": "1ms", "BackoffMaxSec": "1ms"})},
                         state=True)
        id = s.create("actor", "later 3600 the service is busy")
        job = s.until(lambda: s.job(id)["state"] == "backoff" and s.job(id))
        self.assertGreater(job["next_attempt_at"] - job["attempts"][0]["at"], 3599 * 1000000)
        for _ in range(2):
            self.take_over(s)
            again = s.job(id)
            self.assertEqual((again["state"], again["failed_attempts"]), ("backoff", 1))
            self.assertAlmostEqual(again["next_attempt_at"], job["next_attempt_at"], delta=60 * 1000000)

    def test_the_limit_of_a_stop_stays(self):
        s = self.started({"actor": actor(**SLOW)})
        [id], _ = s.busy("actor", n=1, max_retries=0)
        s.call("Stop", target="actor", within_usec=1000000)
        for _ in range(2):
            self.take_over(s)
        s.wait_worker("actor/0", "stopped")
        self.assertEqual([death["cause"] for death in s.deaths()], ["stop"])

    def test_a_group_whose_file_says_another_kind_goes_on_as_it_was(self):
        s = self.started({"actor": actor(Jobs=ONCE), "mail": keyed(Jobs=ONCE), "web": service("/bin/sleep infinity")})
        ids, go = s.busy("actor", n=1)
        others, away = s.busy("mail", n=1, key="a")
        web = s.worker("web/0")["pid"]
        s.write("actor.group", keyed())
        s.write("mail.group", actor())
        s.write("web.group", actor())
        self.take_over(s)
        for name in "actor", "mail", "web":
            self.assertIn("Type= or Cells= has changed", s.group(name)["fault"])
        self.end(s, ids, go)
        self.end(s, others, away)
        self.assertEqual(s.worker("web/0")["pid"], web)
        self.refused("BadConfiguration", s.call, "Reload")
        s.write("actor.group", actor(2))
        s.until(lambda: self.states(s, "actor") == ["idle", "idle"])

    def test_a_removed_group_works_off_what_it_has(self):
        for reloads in True, False:
            with self.subTest(reloads=reloads):
                s = self.started({"gone": actor(2, Jobs=ONCE), "mail": keyed(Jobs=ONCE), "web": service("/bin/sleep infinity"), "other": actor()})
                ids, go = s.busy("gone", n=2)
                others, away = s.busy("mail", n=1, key="a")
                for name in "gone", "mail", "web":
                    os.unlink(os.path.join(s.config, f"{name}.group"))
                if reloads:
                    s.call("Reload")
                for _ in range(2):
                    self.take_over(s)
                    s.until(lambda: {group["name"]: group["state"] for group in s.call("GetStatus")["groups"]} ==
                            {"gone": "draining", "mail": "draining", "other": "running"})
                self.refused("NoSuchGroup", s.create, "gone", "echo")
                self.end(s, ids, go)
                self.end(s, others, away)
                s.until(lambda: [group["name"] for group in s.call("GetStatus")["groups"]] == ["other"])
                s.stop()

    def test_a_removed_group_that_comes_back_keeps_its_workers(self):
        s = self.started({"gone": actor(), "other": actor()})
        ids, go = s.busy("gone", n=1)
        pid = s.worker("gone/0")["pid"]
        file = os.path.join(s.config, "gone.group")
        os.rename(file, s.path("gone.group"))
        s.call("Reload")
        self.take_over(s)
        os.rename(s.path("gone.group"), file)
        s.call("Reload")
        self.end(s, ids, go)
        self.assertEqual((s.worker("gone/0")["pid"], s.do("gone", "echo on")["result"]), (pid, text("on")))

    def test_a_removed_group_works_off_its_durable_jobs(self):
        s = self.started({"gone": actor(Jobs={**ONCE, "Durable": "yes"}), "other": actor()}, state=True)
        [id], go = s.busy("gone", n=1)
        s.create("gone", f"note {s.path('notes')} queued", id="queued")
        os.unlink(os.path.join(s.config, "gone.group"))
        s.call("Reload")
        self.take_over(s)
        s.until(lambda: s.job("queued")["state"] == "queued")
        self.end(s, [id], go)
        s.until(lambda: os.path.exists(s.path("notes")))
        s.until(lambda: not any(group["running"] or group["queued"] for group in s.call("GetStatus")["groups"]))

    def test_no_worker_of_a_name_has_a_generation_twice(self):
        s = self.started({"actor": actor(3), "mail": keyed(2)})
        s.do("mail", "echo", key="a")
        for _ in range(2):
            s.ctl("restart", "actor/2", "--wait", check=True)
            s.ctl("restart", "mail/a/1", "--wait", check=True)
        s.until(lambda: s.worker("actor/2")["generation"] == s.worker("mail/a/1")["generation"] == 3)
        for group in "actor", "mail":
            s.call("Resize", target=group, size=1)
            s.until(lambda group=group: len(s.workers(group)) == 1)
        self.take_over(s)
        for group, size in ("actor", 3), ("mail", 2):
            s.call("Resize", target=group, size=size)
            s.until(lambda group=group, size=size: self.states(s, group) == ["idle"] * size)
        self.assertGreater(s.worker("actor/2")["generation"], 3)
        self.assertGreater(s.worker("mail/a/1")["generation"], 3)


    def test_a_removed_group_goes_on_ending_the_jobs_that_waited(self):
        s = self.supervisor({"plain": actor(), "kept": actor(Jobs={"Durable": "yes"}), "other": actor()}, state=True)
        Path(s.path("fault")).write_text("closing:1+", encoding="ascii")  # while it exists, no part of that is done
        s.with_faults(f"@{s.path('fault')}").start()
        for name in "plain", "kept":
            s.call("Stop", target=name, wait=True)
        ids = [s.create(name, "echo") for name in ("plain", "kept") for _ in range(2)]
        files = {name: Path(s.config, f"{name}.group") for name in ("plain", "kept")}
        kept = files["kept"].read_text(encoding="utf-8")
        for path in files.values():
            path.unlink()
        s.call("Reload")
        for name in files:
            self.assertEqual((s.group(name)["state"], s.group(name)["queued"]), ("draining", 2))
            self.refused("NoSuchGroup", s.create, name)
        self.take_over(s)
        os.unlink(s.path("fault"))
        s.until(lambda: {group["name"]: group["state"] for group in s.call("GetStatus")["groups"]} ==
                {"kept": "failed", "other": "running"})  # no file describes it, and its jobs are on disk
        files["kept"].write_text(kept, encoding="utf-8")
        s.call("Reload")
        for id in ids[2:]:
            self.assertEqual(s.wait_job(id)["state"], "succeeded")


class Upgrade(Takeover, TestCase):
    def take_over(self, s):
        upgrade(s)


class Crash(Takeover, TestCase):
    def take_over(self, s):
        s.crash()  # at most twice in a test: more of them lead to safe mode


class JobsInHand(TestCase):
    """What is known of jobs outlives the supervisor."""

    def started_job(self, s, group="actor", first="", **options):
        """A job that a worker has begun, and that goes on until its bell rings; it ignores a request to cancel it."""
        id, self.go = s.busy(group, first=first, **options)
        s.until(lambda: s.job(id).get("started_at"))
        return id

    def shown(self, s, id):
        """What outlives a crash, which loses the payload."""
        job = s.job(id)
        for field in "payload_start", "payload_bytes":
            job.pop(field, None)
        return job

    def test_all_that_is_shown_of_a_job_in_hand_stays_as_it_is(self):
        group = actor(Jobs={"MaxRetries": 3, "BackoffMinSec": "1ms"})
        for takeover in upgrade, crash:
            s = self.started({"actor": group})
            id = self.started_job(s, priority=7, key="some key", max_retries=4, deadline_usec=HOUR, timeout_usec=HOUR)
            before = self.shown(s, id)
            for next_takeover in takeover, takeover, upgrade, crash, upgrade:
                next_takeover(s)
                self.assertEqual(self.shown(s, id), before)
            self.go.ring()
            after = s.wait_job(id)
            self.assertEqual(after["state"], "succeeded")
            for field in "created_at", "started_at", "priority", "key", "max_attempts", "attempt":
                self.assertEqual(after[field], before[field])

    QUICK = actor(Worker={"TimeoutStopSec": "1s"})

    def test_a_group_whose_jobs_make_no_progress_is_watched_by_the_next_supervisor(self):
        group = actor(Jobs={"NoProgressSec": "1s", "MaxRetries": 0})
        for takeover in upgrade, crash:
            s = self.started({"actor": group})
            id = self.started_job(s)
            takeover(s)
            ended = s.wait_job(id)
            self.assertEqual((ended["state"], ended["attempts"][-1]["cause"]), ("dead", "no_progress"))

    def test_a_plain_job_whose_worker_dies_after_a_crash_is_dead_and_not_tried_again_without_its_payload(self):
        s = self.started({"actor": actor(Jobs={"MaxRetries": 5, "BackoffMinSec": "1ms"})})
        id = self.started_job(s)
        s.crash()
        os.kill(s.worker("actor/0")["pid"], signal.SIGKILL)
        ended = s.wait_job(id)
        self.assertEqual((ended["state"], ended["cause"], ended["attempt"]), ("dead", "payload_lost", 1))
