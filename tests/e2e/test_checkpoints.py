# SPDX-License-Identifier: MIT
"""Checkpoints, from which the next attempt continues."""
import base64
import os
import signal
from pathlib import Path

from test_durable import Case
from test_takeover import upgrade
from troupe import ACTOR, TROUPE_EXEC, Bell, VarlinkError, ini, text

FAST = {"BackoffMinSec": "1ms", "BackoffMaxSec": "1ms"}


class Checkpoints(Case):
    def last(self, s, id):
        while True:
            try:
                return s.wait_job(id)["result"]["data"]
            except VarlinkError as error:  # its worker died before its row was read: the job comes back
                self.assertEqual(error.name, "Restarting")

    def begun(self, s, group, *commands, **options):
        """A job whose first attempt has run these commands, and waits. Returns its id and the worker's pid."""
        bell = Bell(s, f"begun-{options.get('id', group)}")
        lines = [f"before 2 {command}" for command in [*commands, f"ring {bell.path}", f"wait {s.path('never')}"]]
        self.endless(s)
        id = s.create(group, "\n".join([*lines, "last"]), **options)
        bell.wait()
        return id, s.worker(f"{group}/0")["pid"]

    def both(self, **jobs):
        return self.durable({"plain": ini(ACTOR, Jobs={**FAST, **jobs})}, **{**FAST, **jobs}).start()

    def test_Q11_the_next_attempt_gets_the_last_checkpoint_of_a_killed_one(self):
        s = self.both()
        for group in "plain", "kept":
            id = s.create(group, "before 2 checkpoint one\nbefore 2 checkpoint two\nbefore 2 crash kill\nlast")
            self.assertEqual(self.last(s, id), "two")
            self.assertEqual(self.last(s, s.create(group, "last")), "")  # not that of another job

    def test_Q11_a_checkpoint_has_up_to_64_KiB(self):
        s = self.both(MaxRetries=1)
        for group in "plain", "kept":
            id = s.create(group, "before 2 checkpoint-of 65536\nbefore 2 crash kill\nlast")
            result = s.wait_job(id)["result"]
            self.assertEqual((result["encoding"], base64.b64decode(result["data"])), ("base64", bytes(65536)))
            id = s.create(group, "checkpoint-of 65537")
            s.until(lambda id=id: s.job(id)["state"] == "dead")
            self.assertIn("exited with status 98", s.job(id)["reason"])

    def test_Q11_a_checkpoint_without_room_is_discarded_and_the_former_one_stays(self):
        s = self.both(QueueMemoryMax="64K")
        for group in "plain", "kept":
            id = s.create(group, "before 2 checkpoint one\nbefore 2 checkpoint-of 65536\nbefore 2 crash kill\nlast")
            self.assertEqual(self.last(s, id), "one")
            self.wait_logged(s, "a checkpoint of a job is lost: QueueMemoryMax=")

    def test_Q11_upgrades_keep_those_of_jobs_in_hand_and_of_jobs_that_wait(self):
        s = self.both(BackoffMaxSec="1h")
        waiting = {}
        for group in "plain", "kept":
            waiting[group] = s.create(group, "before 2 checkpoint far\nbefore 2 retry 1 later\nlast", backoff_min_usec=3 * 10**6)
            s.until(lambda group=group: s.job(waiting[group])["state"] == "backoff")
        ids = {group: self.begun(s, group, "checkpoint here") for group in waiting}
        for _ in range(2):
            upgrade(s)
        for id, pid in ids.values():
            os.kill(pid, signal.SIGKILL)
            self.assertEqual(self.last(s, id), "here")
        for id in waiting.values():
            self.assertEqual(self.last(s, id), "far")

    def test_Q11_a_crash_and_a_power_cut_keep_those_of_durable_jobs(self):
        s = self.both()
        id, pid = self.begun(s, "kept", "checkpoint first")
        s.until(lambda: self.rows(s, "bytes", "checkpoint") == [(b"first",)])
        s.crash()
        os.kill(pid, signal.SIGKILL)
        self.assertEqual(self.last(s, id), "first")
        id, _ = self.begun(s, "kept", "checkpoint second", id="other")
        s.until(lambda: (b"second",) in self.rows(s, "bytes", "checkpoint"))
        self.restart(s)
        self.assertEqual(self.last(s, id), "second")
        self.assertEqual(self.rows(s, "*", "checkpoint"), [])

    def test_Q11_commands_save_checkpoints_and_read_the_last_one(self):
        script = ("last=$(cat <&$TROUPE_LAST_CHECKPOINT_FD); [ $last ] || { echo 1 >&4; echo half >&$TROUPE_CHECKPOINT_FD; kill -9 $$; }; "
                  "echo from $last")
        command = f"{TROUPE_EXEC} --channels -- /bin/sh -c '{script}'"
        s = self.durable({"plain-command": ini(command, Jobs=FAST), "kept-command": ini(command, Jobs={"Durable": "yes", **FAST})}).start()
        for group in "plain-command", "kept-command":
            job = s.wait_job(s.create(group))
            self.assertEqual((job["attempt"], job["result"]), (2, text("from half\n")))

    def test_Q11_a_checkpoint_of_a_command_has_up_to_64_KiB_and_is_its_last_words(self):
        script = ("[ {attempt} = 1 ] && { for size in 65536 65537; do dd if=/dev/zero bs=$size count=1 >&4; done; exit 1; }; exec cat <&5")
        s = self.started({"command": ini(f"{TROUPE_EXEC} --channels -- /bin/sh -c '{script}'", Jobs=FAST)})
        result = s.do("command")["result"]
        self.assertEqual((result["encoding"], base64.b64decode(result["data"])), ("base64", bytes(65536)))
        self.wait_logged(s, "discarding a checkpoint of the command: the limits are 65536 bytes")
        script = "[ {attempt} = 1 ] && { echo half >&4; cat <&5; printf more >&4; exec python3 -c \"import os; os.write(4, b'')\"; }"
        s.write("empty.group", ini(f"{TROUPE_EXEC} --channels -- /bin/sh -c {{}}", Jobs=FAST))
        s.call("Reload")
        self.assertEqual(s.do("empty", script + "; exec cat <&5")["result"], text(""))

    def test_Q11_retries_reset_on_progress(self):
        s = self.both(MaxRetries=1, RetriesResetOnProgress="yes")
        for group in "plain", "kept":
            id = s.create(group, "before 6 checkpoint more\nbefore 6 crash kill\nlast")
            job = s.wait_job(id)
            self.assertEqual((job["state"], job["attempt"], job["result"]), ("succeeded", 6, text("more")))
            id = s.create(group, "before 3 checkpoint more\ncrash kill")
            s.until(lambda id=id: s.job(id)["state"] == "dead")
            self.assertEqual(s.job(id)["reason"], "killed by SIGKILL")
            self.assertEqual(s.group(group)["queue_bytes"], 0)

    def test_Q11_an_empty_one_leaves_nothing_on_disk(self):
        s = self.both()
        go, done = Bell(s, "go"), Bell(s, "done")
        id = s.create("kept", f"checkpoint-of 9\nwait {go.path}\ncheckpoint-of 0\nring {done.path}\nwait {go.path}\necho")
        s.until(lambda: self.rows(s, "bytes", "checkpoint") == [(bytes(9),)])
        go.ring()
        done.wait()
        s.until(lambda: self.rows(s, "checkpoint", "job") == [(None,)])
        self.assertEqual(self.rows(s, "*", "checkpoint"), [])
        go.ring()
        s.wait_job(id)
        id = s.create("kept", "before 2 checkpoint old\nbefore 2 checkpoint-of 0\nbefore 2 crash kill\nlast")
        self.assertEqual(self.last(s, id), "")

    def test_Q11_without_memory_one_is_lost_in_an_upgrade_but_not_from_disk(self):
        s = self.durable({"plain": ini(ACTOR, Jobs=FAST)}, **{**FAST, "BackoffMaxSec": "1h"})
        fault = Path(s.path("fault"))
        s.with_faults(f"@{fault}").start()
        id, pid = self.begun(s, "plain", "checkpoint here")
        before = s.group("plain")["queue_bytes"]
        fault.write_text("job-rare:1+", encoding="ascii")
        upgrade(s)
        self.assertEqual(s.group("plain")["queue_bytes"], before - len("here"))
        fault.unlink()
        os.kill(pid, signal.SIGKILL)
        self.assertEqual(self.last(s, id), "")
        self.assertEqual(s.group("plain")["queue_bytes"], 0)
        waiting = s.create("kept", "before 2 checkpoint far\nbefore 2 retry 1 later\nlast", backoff_min_usec=3 * 10**6)
        s.until(lambda: s.job(waiting)["state"] == "backoff")
        s.until(lambda: self.rows(s, "bytes", "checkpoint") == [(b"far",)])
        fault.write_text("job-rare:1", encoding="ascii")
        s.crash()
        self.assertEqual(self.last(s, waiting), "far")
        self.assertFalse(fault.exists())

    def test_Q11_an_upgrade_keeps_those_that_could_not_be_written(self):
        s = self.durable(size=2, **{**FAST, "BackoffMaxSec": "1h"}).with_failing_syncs().start()
        go, done = Bell(s, "go"), Bell(s, "done")
        self.endless(s)
        lines = ["checkpoint old", f"wait {go.path}", "checkpoint new", f"ring {done.path}"]
        lines = "\n".join(f"before 2 {line}" for line in lines)
        in_hand = s.create("kept", f"{lines}\nbefore 2 wait {s.path('never')}\nlast")
        waits = s.create("kept", f"{lines}\nbefore 2 retry 1 later\nlast", backoff_min_usec=3 * 10**6)
        s.until(lambda: self.rows(s, "bytes", "checkpoint") == [(b"old",)] * 2)
        Path(s.path("fails")).touch()
        go.ring(2)
        done.wait(2)
        s.wait_event("store.failed")
        s.until(lambda: s.job(waits)["state"] == "backoff")
        for _ in range(2):
            upgrade(s)
        # What the disk did not confirm may be there all the same.
        self.assertLessEqual(set(self.rows(s, "bytes", "checkpoint")), {(b"old",), (b"new",)})
        os.unlink(s.path("fails"))
        s.wait_event("store.open")
        s.until_restored()
        os.kill(s.worker(s.job(in_hand)["worker"])["pid"], signal.SIGKILL)
        for id in in_hand, waits:
            self.assertEqual(self.last(s, id), "new")
