# SPDX-License-Identifier: MIT
"""Q13: what a job emits while it runs, for clients that watch it."""
import json
import subprocess

from test_access import SUBMITTER, user
from test_takeover import upgrade
from troupe import ACTOR, LIMIT, TROUPECTL, Bell, TestCase, Varlink, ini, text

FAST = {"BackoffMinSec": "1ms", "BackoffMaxSec": "1ms"}


def emitted(reply):
    return [item["data"]["data"] for item in reply["items"]]


class Streams(TestCase):
    def setUp(self):
        self.s = self.started({"actor": ini(ACTOR, Jobs=FAST)})

    def waiting(self, *commands):
        """A job that has run these commands, of which the last emits, and waits. Returns its id and the bell that ends it."""
        begun, go = Bell(self.s, "begun"), Bell(self.s, "go")
        id = self.s.create("actor", "\n".join([*commands, f"ring {begun.path}", f"wait {go.path}", "emit last", "echo done"]))
        begun.wait()
        last = commands[-1].removeprefix("emit ")
        self.s.until(lambda: emitted(self.s.call("Stream", id=id))[-1:] == [last])
        return id, go

    def test_Q13_a_watcher_gets_what_was_emitted_then_each_item_and_the_end(self):
        id, go = self.waiting("emit one", "emit two")
        with Varlink(self.s.socket_path) as watcher:
            replies = watcher.more("Stream", id=id)
            first = next(replies)
            self.assertEqual(emitted(first), ["one", "two"])
            go.ring()
            rest = list(replies)
        self.assertEqual([word for reply in rest for word in emitted(reply)], ["last"])
        self.assertEqual((rest[-1]["job"]["state"], rest[-1]["job"]["result"]), ("succeeded", text("done")))
        late = self.s.call("Stream", id=id, after=first["items"][0]["at"])
        self.assertEqual((emitted(late), late["job"]["state"]), (["two", "last"], "succeeded"))

    def test_Q13_a_second_attempt_continues_and_a_dead_job_keeps_its_end_only(self):
        job = self.s.create("actor", "before 2 emit first\nbefore 2 crash segv\nemit second\necho")
        self.s.wait_job(job)
        self.assertEqual(emitted(self.s.call("Stream", id=job)), ["first", "second"])
        dead = self.s.create("actor", "emit lost\ncrash segv", max_retries=0)
        self.s.until(lambda: self.s.job(dead)["state"] == "dead")
        self.assertEqual(self.s.call("Stream", id=dead)["job"]["state"], "dead")
        self.refused("NoSuchJob", self.s.call, "Stream", id="none")

    def test_Q13_the_oldest_items_of_a_job_go_beyond_64_KiB_and_are_counted(self):
        id, go = self.waiting(*[f"emit {n:04} {'x' * 1000}" for n in range(100)])
        answer = self.s.call("Stream", id=id)
        self.assertEqual(emitted(answer)[-1][:4], "0099")
        self.assertEqual(len(answer["items"]) + answer["dropped"], 100)
        self.assertGreater(len(answer["items"]), 50)
        go.ring()
        self.s.wait_job(id)

    def test_Q13_an_item_above_its_limit_is_refused_and_the_job_goes_on(self):
        job = self.s.wait_job(self.s.create("actor", "emit " + "x" * 4097 + "\nemit " + "y" * 4096 + "\necho ok"))
        self.assertEqual(job["result"], text("ok"))
        self.assertEqual(emitted(self.s.call("Stream", id=job["id"])), ["refused: Message too long", "y" * 4096])

    def test_D10_an_upgrade_keeps_what_was_emitted_and_watchers_connect_again(self):
        id, go = self.waiting("emit one")
        command = [TROUPECTL, "--socket", self.s.socket_path, "watch", id]
        with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as watcher:
            self.assertEqual(watcher.stdout.readline(), b"one\n")
            upgrade(self.s)
            self.assertEqual(emitted(self.s.call("Stream", id=id)), ["one"])
            go.ring()
            out, err = watcher.communicate(timeout=LIMIT)
        self.assertEqual((out, watcher.returncode), (b"last\n", 0), err)

    def test_Q13_what_a_job_emits_is_for_its_submitter_and_readers(self):
        id, go = self.waiting("emit secret")
        with user(SUBMITTER):
            self.refused("NotPermitted", self.s.call, "Stream", id=id)
        go.ring()
        self.s.wait_job(id)

    def test_Q13_troupectl_watch_says_how_a_job_ended(self):
        done = self.s.create("actor", "emit a line\nreject 3 half")
        self.s.wait_job(done)
        process = self.s.ctl("watch", done)
        self.assertEqual((process.returncode, process.stdout), (1, "a line\n"))
        self.assertIn(f"job {done} was rejected", process.stderr)
        [line] = self.s.ctl("watch", done, "--json").stdout.splitlines()
        self.assertEqual(json.loads(line)["data"], text("a line"))
