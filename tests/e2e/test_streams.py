# SPDX-License-Identifier: MIT
"""What a job emits while it runs, for clients that watch it."""
import json
import os
import signal
import subprocess
from pathlib import Path

from test_access import SUBMITTER, user
from test_takeover import upgrade
from troupe import ACTOR, LIMIT, LOCKED_PIPE, TROUPECTL, TROUPE_EXEC, Bell, TestCase, Varlink, ini, text

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


class Commands(TestCase):
    """What commands of troupe-exec emit."""

    # Sends a pipe whose lock it holds, for the receiver to close.
    SENDS_A_LOCKED_PIPE = LOCKED_PIPE + """
import socket, time
ends = locked_pipe()
socket.send_fds(socket.socket(fileno=3), [b"item"], ends[:1])
os.close(ends[0])
"""

    def setUp(self):
        self.s = self.started({"sh": ini(f"{TROUPE_EXEC} --channels -- /bin/sh -c {{}}", Jobs={**FAST, "MaxRetries": 0}),
                               "python": ini(f"{TROUPE_EXEC} --channels -- python3 -c {{}}", Jobs={**FAST, "MaxRetries": 0})})

    def emitted(self, group, script):
        job = self.s.wait_job(self.s.create(group, script))
        self.assertEqual(job["state"], "succeeded", job)
        return emitted(self.s.call("Stream", id=job["id"]))

    def test_Q13_each_write_of_a_command_is_an_item(self):
        self.assertEqual(self.emitted("sh", "echo one >&3; printf two >&$TROUPE_EMIT_FD; printf done"), ["one\n", "two"])
        self.assertEqual(self.emitted("python", "import os\nfor n in range(1000): os.write(3, b'%d' % n)"), [str(n) for n in range(1000)])
        self.assertEqual(self.emitted("python", "import os\nfor data in b'', b'x': os.write(3, data)"), ["", "x"])

    def test_Q13_an_item_of_a_command_above_its_limit_is_discarded(self):
        self.assertEqual(self.emitted("sh", "for n in 4097 4096; do dd if=/dev/zero bs=$n count=1 | tr '\\0' x | dd bs=$n iflag=fullblock >&3; done"),
                         ["x" * 4096])
        self.s.until(lambda: "discarding an item that the command emitted: the limits are 4096 bytes" in self.s.log())

    def test_Q13_a_command_has_five_descriptors_and_they_say_what_they_are(self):
        shows = "ls /proc/self/fd | wc -l; for fd in 3 4 5; do readlink /proc/self/fd/$fd; done; env | grep _FD= | sort"
        lines = self.s.do("sh", shows)["result"]["data"].splitlines()
        self.assertEqual([lines[0], *[line.partition(":")[0] for line in lines[1:3]], *lines[3:]],
                         ["7", "socket", "socket", "/dev/null", "TROUPE_CHECKPOINT_FD=4", "TROUPE_EMIT_FD=3", "TROUPE_LAST_CHECKPOINT_FD=5"])

    def test_Q13_a_flood_of_items_and_checkpoints_delays_neither_cancelling_nor_others(self):
        flood = "import os\nitem, large = b'x' * 4096, b'y' * 65536\nwhile True:\n    os.write(3, item)\n    os.write(4, large)"
        id = self.s.create("python", flood)
        self.s.until(lambda: self.s.call("Stream", id=id).get("dropped", 0) > 1000)
        self.assertEqual(self.emitted("sh", "echo one >&3"), ["one\n"])
        self.s.call("Cancel", id=id)
        self.assertEqual(self.s.wait_job(id)["state"], "cancelled")

    def test_a_command_without_channels_has_three_descriptors(self):
        s = self.started({"plain": ini(f"{TROUPE_EXEC} -- /bin/sh -c 'ls /proc/self/fd | wc -l; env | grep -c _FD= || true'")})
        self.assertEqual(s.do("plain")["result"], text("4\n0\n"))

    def test_a_command_that_emits_a_locked_pipe_blocks_the_reader_alone(self):
        worker = self.s.worker("python/0")["pid"]
        [reader] = map(int, Path(f"/proc/{worker}/task/{worker}/children").read_text(encoding="ascii").split())
        os.kill(reader, signal.SIGSTOP)
        sent = Bell(self.s, "sent")
        id = self.s.create("python", f"{self.SENDS_A_LOCKED_PIPE}open({sent.path!r}, 'w').write('\\n')\ntime.sleep(1000)")
        sent.wait()
        os.kill(reader, signal.SIGCONT)
        self.s.until(lambda: self.s.status_field("State", reader) == "D")
        self.s.call("Cancel", id=id)
        self.assertEqual(self.s.wait_job(id)["state"], "cancelled")
        self.assertEqual(self.emitted("python", "import os; os.write(3, b'next')"), ["next"])
        self.assertEqual(self.s.worker("python/0")["pid"], worker)
