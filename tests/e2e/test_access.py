# SPDX-License-Identifier: MIT
"""Who may read what: numbers and names are public, contents are not."""
import contextlib
import glob
import json
import os
import pwd
import re
import sys
import socket
import subprocess
import unittest
from pathlib import Path

from troupe import (ACTOR, LIMIT, TOP, TROUPECTL, TROUPE_EXEC, VERSION, Bell, TestCase, Varlink, VarlinkError, helper, ini, text, user)
from web_client import Web

SECRET = "SECRET"
SUBMITTER, READER, STRANGER = 2002, 2003, 65534
SUBMITTER_NAME = "www-data"  # of SubmitUser=: it has to exist
SUBMITTER_ID = pwd.getpwnam(SUBMITTER_NAME).pw_uid


def raw(path, method, parameters, more=False):
    """All replies to one call, as text."""
    with Varlink(path) as connection:
        connection.send(method, parameters, **({"more": True} if more else {}))
        texts = [json.dumps(connection.receive())]
        while '"continues": true' in texts[-1]:
            texts.append(json.dumps(connection.receive()))
        return "\n".join(texts)


def replayed(path):
    """The kept events as a stream, until all have come."""
    with Varlink(path) as connection:
        count = len(connection.call("Watch")["events"])
        connection.send("Watch", {"replay": True}, more=True)
        events = []
        while len(events) < count:
            events += connection.receive()["parameters"]["events"]
        return json.dumps(events)


def methods():
    found = set()
    for path in glob.glob(os.path.join(TOP, "supervisor", "**", "io.troupe.*.varlink"), recursive=True):
        text = Path(path).read_text(encoding="utf-8")
        interface = re.search(r"^interface (\S+)", text, re.MULTILINE).group(1)
        found |= {f"{interface}.{name}" for name in re.findall(r"^method (\w+)", text, re.MULTILINE)}
    return found


# A service that tells its status.
SPEAKER = (f'{sys.executable} -c "import os, socket, time; '
           f"socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM).sendto(b'STATUS={SECRET}-status', os.environ['NOTIFY_SOCKET']); "
           'time.sleep(1000000)"')


@unittest.skipIf(os.geteuid() != 0, "needs root to be several users")
class Contents(TestCase):
    def begin(self, conf=""):
        self.s = self.started({
            "secret": ini(ACTOR, Pool={"Size": 2}, Jobs={"MaxRetries": 0, "History": "1d", "HistoryPayload": "yes"},
                          Resources={"LimitCORE": 0}),
            "owned": ini("/bin/sh -c 'echo SECRET output; exec sleep infinity'",
                         Group={"Type": "service", "User": "nobody"}),
            "speaking": ini(SPEAKER, Group={"Type": "service"}),
            "talking": ini(helper("workers/player"), Restart={"MinSec": "1ms"}),
        }, conf=conf, state=True)
        s = self.s
        for kind in "do.fail", "do.unhandled":  # the words of a handler
            s.call("io.troupe.Actors.Tell", to="talking/0", type=kind, payload=text(f"{SECRET} verdict"))
        s.until(lambda: len(s.call("io.troupe.Actors.ListDeadLetters", filter={"recipient": "talking"})["letters"]) == 2)
        s.call("io.troupe.Actors.Tell", to="talking/0", type="do.leave", payload=text(f"{SECRET} goodbye"))
        s.until(lambda: s.deaths("talking"))
        s.until(lambda: s.worker("speaking/0").get("status"))
        self.kept = s.create("secret", f"{SECRET}\necho {SECRET} result")
        s.wait_job(self.kept)
        self.dead = s.create("secret", f"complain {SECRET} stderr\nstate {SECRET} state\nrename {SECRET}\ncrash abort")
        s.wait_job(self.dead)
        self.erred = s.create("secret", f"retry 7 {SECRET} error")
        s.wait_job(self.erred)
        self.live, self.go = s.busy("secret", f"echo {SECRET}", first=f"state {SECRET} state\n")
        s.call("io.troupe.Actors.CreateExchange", name="x", kind="single")
        with self.assertRaises(VarlinkError):  # a dead letter
            s.call("io.troupe.Actors.Tell", to="x", type="t", payload={"encoding": "utf8", "data": SECRET})
        s.call("io.troupe.Actors.Schedule", to="secret/0", type="t", delay_usec=10**12,
               payload={"encoding": "utf8", "data": SECRET})
        self.letters = [letter["id"] for letter in
                        s.call("io.troupe.Actors.ListDeadLetters")["letters"]]
        return s

    def calls(self):
        """Every method that shows something, with the parameters that show most."""
        return {
            "io.troupe.Supervisor.GetInfo": [{}],
            "io.troupe.Supervisor.GetMetrics": [{}],
            "io.troupe.Supervisor.GetHistory": [{}],
            "io.troupe.Supervisor.GetLimits": [{}],
            "io.troupe.Supervisor.GetStatus": [{}, {"target": "secret"}, {"target": "secret/0"}, {"target": "owned"}],
            "io.troupe.Supervisor.Watch": [{}],
            "io.troupe.Supervisor.ListDeaths": [{}, {"target": "secret"}],
            "io.troupe.Supervisor.CountDeaths": [{}, {"target": "secret"}],
            "io.troupe.Supervisor.GetStack": [{"target": "secret/0"}, {"target": "secret/1"}, {"job": self.live}],
            "io.troupe.Supervisor.Profile": [{"target": "secret/0", "for_usec": 1}],
            "io.troupe.Supervisor.GetLog": [{"target": "secret"}, {"target": "secret/0"}, {"target": "owned"},
                                             *({"job": id} for id in (self.kept, self.dead, self.erred, self.live))],
            "io.troupe.Jobs.Get": [{"id": id} for id in (self.kept, self.dead, self.erred, self.live)],
            "io.troupe.Jobs.Explain": [{"id": id} for id in (self.kept, self.dead, self.erred, self.live)],
            "io.troupe.Supervisor.Explain": [{"target": "secret"}, {"target": "secret/0"}, {"target": "owned"}],
            "io.troupe.Jobs.List": [{"ended": True}, {"group": "secret", "ended": True}],
            "io.troupe.Jobs.History": [{}, {"group": "secret"}, {"text": SECRET}],
            "io.troupe.Jobs.Wait": [{"id": id} for id in (self.kept, self.dead, self.erred)],
            "io.troupe.Jobs.Stream": [{"id": id} for id in (self.kept, self.dead, self.erred, self.live)],
            "io.troupe.Actors.Lookup": [{"name": "secret"}, {"name": "x"}, {"name": "secret/0"}],
            "io.troupe.Actors.ListActors": [{}],
            "io.troupe.Actors.ListTimers": [{}],
            "io.troupe.Actors.ListExchanges": [{}, {"name": "x"}],
            "io.troupe.Actors.ListSubscriptions": [{"exchange": "x"}],
            "io.troupe.Actors.ListDeadLetters": [{}],
            "io.troupe.Actors.GetDeadLetter": [{"id": id} for id in self.letters],
            "io.troupe.Schedules.List": [{}],
            "io.troupe.Schedules.Get": [{"name": "none"}],
        }

    CHANGES = {f"io.troupe.{name}" for name in (
        "Supervisor.Start Supervisor.Stop Supervisor.Restart Supervisor.Reset Supervisor.Signal Supervisor.Pause Supervisor.Resume "
        "Supervisor.Drain Supervisor.Resize Supervisor.SetLimit Supervisor.Reload Supervisor.Upgrade Jobs.Create Jobs.Do Jobs.Cancel Jobs.CancelAll Jobs.Attach "
        "Jobs.PurgeHistory "
        "Jobs.OpenBatch Jobs.CloseBatch Jobs.Move Jobs.Set Jobs.RunNow "
        "Actors.Tell Actors.Ask "
        "Actors.Schedule Actors.Unschedule Actors.Pause Actors.Resume Actors.Subscribe Actors.Unsubscribe "
        "Actors.CreateExchange Actors.DeleteExchange Actors.Requeue Actors.Purge Actors.SetMessageLog "
        "Schedules.Pause Schedules.Resume Schedules.Run Schedules.Backfill Schedules.Skip").split()}

    def showing(self):
        """The calls that show a secret."""
        shown = set()
        for method, list_of_parameters in self.calls().items():
            for parameters in list_of_parameters:
                for more in (False, True):
                    if more and (method.endswith("Watch") or parameters.get("id") == self.live):
                        continue  # endless
                    if SECRET in raw(self.s.socket_path, method, parameters, more):
                        shown.add(method)
        if SECRET in replayed(self.s.socket_path):
            shown.add("io.troupe.Supervisor.Watch")
        return shown

    SECRETS = {f"io.troupe.{name}" for name in (
        "Supervisor.GetStatus Supervisor.Watch Supervisor.ListDeaths Supervisor.GetLog Supervisor.GetStack Jobs.Get "
        "Jobs.List Jobs.History Jobs.Wait Jobs.Stream Actors.ListDeadLetters Actors.GetDeadLetter").split()}

    def test_what_changes_something_is_refused_to_a_stranger(self):
        s = self.begin()
        for method in self.CHANGES:
            parameters = {"io.troupe.Jobs.Create": {"group": "secret"}, "io.troupe.Jobs.Do": {"group": "secret"},
                          "io.troupe.Jobs.Cancel": {"id": self.live}, "io.troupe.Jobs.Attach": {"version": VERSION},
                          "io.troupe.Jobs.OpenBatch": {"group": "secret"}, "io.troupe.Jobs.CloseBatch": {"id": self.live},
                          "io.troupe.Jobs.CancelAll": {"group": "secret"}, "io.troupe.Jobs.Move": {"id": self.live, "to": "owned"},
                          "io.troupe.Jobs.Set": {"id": self.live, "priority": 40}, "io.troupe.Jobs.RunNow": {"id": self.live}}
            with self.subTest(method=method), user(STRANGER):
                self.assertIn("NotPermitted", raw(s.socket_path, method, parameters.get(method, {})))

    def test_root_reads_everything(self):
        self.begin()
        self.assertEqual(self.showing(), self.SECRETS)
        self.assertEqual(set(self.calls()) | self.CHANGES, methods(), "every method is looked at")

    def test_a_stranger_reads_no_contents(self):
        s = self.begin()
        with user(READER):
            self.assertEqual(self.showing(), set())
            status = s.call("GetStatus", target="secret")["groups"][0]
            self.assertTrue(status["workers"][0]["restricted"])
            self.assertEqual(status["dead"], 2)
            job = s.job(self.kept)
            self.assertEqual((job["state"], job["code"], job["restricted"]), ("succeeded", 0, True))
            death = s.deaths("secret")[0]
            self.assertEqual((death["signal"], death["restricted"]), ("SIGABRT", True))
            self.assertEqual({"stack", "top", "stderr", "state"} & set(death), set())
            self.assertIn("what workers wrote",
                          self.refused("NotPermitted", s.call, "GetLog", target="secret")["needed"])

    def test_members_of_the_read_group_read_everything_and_change_nothing(self):
        s = self.begin(conf="[Supervisor]\nReadGroup=daemon\n")
        with user(READER, 1):
            self.assertEqual(self.showing(), self.SECRETS)
            self.refused("NotPermitted", s.create, "secret", "echo")
        with user(READER):
            self.assertIn("daemon (ReadGroup=)",
                          self.refused("NotPermitted", s.call, "GetLog", target="secret")["needed"])

    def test_the_user_of_a_group_reads_that_group(self):
        s = self.begin()
        with user(STRANGER):
            s.until(lambda: s.call("GetLog", target="owned")["lines"] == ["owned/0: SECRET output"])
            self.refused("NotPermitted", s.call, "GetLog", target="secret")

    def test_a_follower_reads_no_line_once_a_reload_has_given_the_group_to_another_user(self):
        s = self.begin()
        s.until(lambda: s.call("GetLog", target="owned")["lines"])
        with contextlib.ExitStack() as stack:
            reader = stack.enter_context(Varlink(s.socket_path))
            with user(STRANGER):
                stranger = stack.enter_context(Varlink(s.socket_path))
            for follower in stranger, reader:
                follower.send("GetLog", {"target": "owned", "follow": True}, more=True)
                follower.reply()
            s.write("owned.group", ini("/bin/sh -c 'echo SECRET of daemon; exec sleep infinity'",
                                       Group={"Type": "service", "User": "daemon"}))
            s.call("Reload")
            self.assertIn("SECRET of daemon", reader.reply()[0]["lines"][0])
            stranger.socket.setblocking(False)
            self.assertRaises(BlockingIOError, stranger.receive)

    def test_a_log_that_is_read_slowly_ends_when_a_reload_gives_the_group_to_another_user(self):
        def owned(user):
            return ini("/bin/sh -c 'seq -s - 900; exec sleep infinity'", Group={"Type": "service", "User": user}, Pool={"Size": size})
        size = 200  # more than is written before the client reads
        s = self.started({"owned": owned("nobody")})
        s.until(lambda: len(s.call("GetLog", target="owned")["lines"]) == size)
        with contextlib.ExitStack() as stack:
            reader = stack.enter_context(Varlink(s.socket_path))
            with user(STRANGER):
                stranger = stack.enter_context(Varlink(s.socket_path))
            for client in stranger, reader:
                client.send("GetLog", {"target": "owned"}, more=True)
                client.socket.recv(1, socket.MSG_PEEK)
            s.write("owned.group", owned("daemon"))
            s.call("Reload")
            lines = [0, 0]
            for i, client in enumerate((stranger, reader)):
                continues = True
                while continues:
                    answer, continues = client.reply()
                    lines[i] += len(answer["lines"])
            self.assertGreater(lines[0], 0)
            self.assertLess(lines[0], lines[1])

    def test_events_of_single_jobs_are_for_those_who_may_read_their_contents(self):
        s = self.begin()
        with user(STRANGER):
            for parameters in {}, {"target": "secret"}, {"target": "secret/0"}:
                with self.subTest(parameters=parameters):
                    self.refused("NotPermitted", s.call, "Watch", jobs=True, **parameters)
            s.call("Watch", jobs=True, target="owned")

    def test_a_submitter_reads_his_job_and_no_other(self):
        s = self.begin(conf="[Supervisor]\nAdminGroup=daemon\n")
        with user(SUBMITTER, 1):
            kept = s.create("secret", f"echo {SECRET} mine")
            dead = s.create("secret", f"complain {SECRET} stderr\nstate {SECRET} state\ncrash abort")
            s.wait_job(kept)
            s.wait_job(dead)
        with user(SUBMITTER):
            self.assertEqual(s.job(kept)["result"]["data"], f"{SECRET} mine")
            self.assertIn(SECRET, json.dumps(s.job(dead)))
            mine = [d for d in s.deaths("secret") if d.get("job") == dead]
            self.assertIn(f"{SECRET} stderr", mine[0]["stderr"])
            self.assertEqual({j["id"] for j in s.call("List", ended=True)["jobs"] if "restricted" not in j},
                             {kept, dead})
            self.assertTrue(s.job(self.kept)["restricted"])
        s.call("io.troupe.Actors.Requeue", filter={"job": dead})

    def test_a_stranger_reads_no_contents_with_troupectl_or_on_the_page(self):
        s = self.begin()
        letter = str(self.letters[0])
        verbs = (("status",), ("status", "secret", "talking", "speaking", "owned"), ("status", "secret/0"), ("status", "talking/0"),
                 ("status", "speaking/0"), ("events",), ("jobs", "--ended"), ("history",), ("deaths",), ("metrics",), ("info",), ("timer", "list"),
                 ("actors",), ("exchanges",), ("exchanges", "show", "x"), ("dead-letters",),
                 ("dead-letters", "show", letter), ("logs", "secret"), ("logs", self.dead),
                 *((verb, target) for verb in ("why", "job") for target in (self.kept, self.dead, self.erred, self.live)),
                 *(("why", target) for target in ("secret", "secret/0", "talking", "talking/0", "speaking", "speaking/0")))
        shown = lambda uid, *options: {verb for verb in verbs for process in [s.ctl(*options, *verb, user=uid)]
                                       if SECRET in process.stdout + process.stderr}
        self.assertEqual(shown(READER), set())
        self.assertEqual(shown(READER, "--json"), set())
        self.assertGreater(len(shown(0)), len(verbs) / 3)
        paths = ("/api/info", "/api/status", *(f"/api/status?target={name}" for name in ("secret", "talking", "speaking", "secret/0")),
                 "/api/deaths", "/api/past-events", "/api/jobs?ended=true", "/api/dead-letters", "/metrics", "/api/log?target=secret",
                 *(f"/api/job?id={id}" for id in (self.kept, self.dead, self.erred, self.live)),
                 *(f"/api/dead-letter?id={id}" for id in self.letters))
        for uid, expected in (READER, 0), (0, len(paths) / 2):
            web = Web(self, s.socket_path, user=uid)
            seen = [path for path in paths if SECRET.encode() in web.ask(path)[2]]
            self.assertTrue(len(seen) >= expected if expected else not seen, seen)

    def test_events_that_come_while_a_stranger_watches_have_no_contents(self):
        s = self.begin()
        seen = []
        with user(READER):
            watch = s.connect()
        watch.send("Watch", {"replay": True}, more=True)
        seen += watch.reply()[0]["events"]
        last = max(event["id"] for event in s.call("Watch")["events"])
        while seen[-1]["id"] < last:
            seen += watch.reply()[0]["events"]
        del seen[:]
        s.call("io.troupe.Actors.Tell", to="talking/0", type="do.fail", payload=text(SECRET))
        s.wait_job(s.create("secret", f"state {SECRET}\ncrash abort"))
        s.call("io.troupe.Actors.Tell", to="talking/0", type="do.leave", payload=text(SECRET))
        while not {"letter.error", "worker.left", "job.dead"} <= {event["type"] for event in seen}:
            seen += watch.reply()[0]["events"]
        self.assertNotIn(SECRET, json.dumps(seen))

    def test_the_words_of_a_worker_that_left_are_contents_also_after_an_upgrade(self):
        s = self.begin()
        s.ctl("upgrade", check=True)
        [death] = s.deaths("talking")
        self.assertRegex(death["detail"], f"^ended itself.*: {SECRET} goodbye$")
        with user(READER):
            [death] = s.deaths("talking")
        self.assertRegex(death["detail"], "^ended itself[^:]*$")

    def test_troupectl_says_what_it_may_not_show(self):
        s = self.begin()
        for arguments in ("job", self.kept), ("deaths", "secret"), ("status", "secret/0"), ("events",), \
                ("dead-letters", "show", str(self.letters[0])):
            with self.subTest(arguments=arguments):
                process = s.ctl(*arguments, user=STRANGER)
                self.assertIn("(restricted", process.stdout, process.stderr)
                self.assertNotIn(SECRET, process.stdout)
        self.assertEqual(s.ctl("logs", "secret", user=STRANGER).returncode, 4)
        waited = s.ctl("wait", self.kept, user=STRANGER)
        self.assertEqual((waited.returncode, waited.stdout), (4, ""))
        self.assertIn("its result is not for this user", waited.stderr)


@unittest.skipIf(os.geteuid() != 0, "needs root to be several users")
class Submitters(TestCase):
    """Users who may create jobs in a group, and do nothing else."""

    def begin(self, **jobs):
        mail = ini(ACTOR, Group={"SubmitUser": SUBMITTER_NAME, "SubmitGroup": "daemon"}, Jobs=jobs)
        self.s = self.started({"mail": mail, "other": ini(ACTOR)}, state=True)
        return self.s

    def ctl(self, *arguments, **options):
        return self.s.ctl(*arguments, user=SUBMITTER_ID, extra_groups=[], group=SUBMITTER_ID, **options)

    def blocked(self, go):
        """The id of a job of root that keeps the only worker busy."""
        started = Bell(self.s, "started")
        job = self.s.create("mail", f"ring {started.path}\nwait {go.path}\necho {SECRET}")
        started.wait()
        return job

    def test_Q17_a_submitter_creates_watches_reads_and_cancels_its_own_jobs(self):
        s = self.begin()
        for who in (SUBMITTER_ID,), (READER, 1):
            with user(*who):
                job = s.do("mail", "echo mine")
                self.assertEqual((job["state"], job["result"]["data"]), ("succeeded", "mine"))
                kept = s.create("mail", "echo kept")
                self.assertEqual(s.wait_job(kept)["result"]["data"], "kept")
                later = s.create("mail", "echo", delay_usec=10**12)
                s.call("Cancel", id=later)
                self.assertEqual(s.job(later)["state"], "cancelled")

    def test_X3_a_submitter_does_not_see_the_stack_of_the_job_before_its_own(self):
        self.s = s = self.started({"mail": ini(ACTOR, Group={"SubmitUser": SUBMITTER_NAME}, Pool={"Prefetch": 2})})
        go = Bell(s, "go")
        other = self.blocked(go)
        with user(SUBMITTER_ID):
            waiting = s.create("mail", "echo")
            self.assertEqual(s.job(waiting).get("worker"), s.job(other)["worker"])
            self.refused("BadOption", s.call, "io.troupe.Supervisor.GetStack", job=waiting)
        go.ring()
        s.wait_job(waiting)

    def test_Q17_a_submitter_does_not_fill_the_queue_for_others(self):
        later = {"delay_usec": 10**12}
        for jobs, data, most in ({"QueueMax": 40}, "echo", 20), ({"QueueMemoryMax": "40K"}, "#" * 1024, 20):
            s = self.begin(**jobs)
            with user(SUBMITTER_ID):
                ids = [s.create("mail", data, **later) for _ in range(most)]
                self.refused("Busy", s.create, "mail", data, **later)
            with user(READER, 1):
                ids += [s.create("mail", data, **later) for _ in range(most // 2)]
                self.refused("Busy", s.create, "mail", data, **later)
            for id in ids[most // 2:]:
                s.call("Cancel", id=id)
            with user(SUBMITTER_ID):
                ids = [s.create("mail", data, **later) for _ in range(most // 2)]
                self.refused("Busy", s.create, "mail", data, **later)
            for _ in range(most):
                s.create("mail", data, **later)
            s.stop()

    def test_Q17_a_job_of_a_submitter_leaves_half_of_the_bytes_to_others_while_it_runs(self):
        s = self.begin(QueueMemoryMax="8K")
        go = Bell(s, "go")
        with user(SUBMITTER_ID):
            self.refused("BadPayload", s.create, "mail", "#" * 4097)
            job = s.create("mail", f"wait {go.path}\necho ".ljust(4096, "#"))
            s.wait_job_state(job, "running")
            self.refused("Busy", s.create, "mail", "echo")
        other = s.create("mail", "echo ".ljust(4096, "#"))
        go.ring()
        self.assertEqual([s.wait_job(id)["state"] for id in (job, other)], ["succeeded", "succeeded"])
        with user(SUBMITTER_ID):
            s.do("mail", "echo ".ljust(4096, "#"))

    def test_Q17_a_submitter_leaves_half_of_each_cell_and_half_of_the_cells_to_others(self):
        later = {"delay_usec": 10**12}
        mail = ini(ACTOR, Group={"SubmitUser": SUBMITTER_NAME}, Pool={"Cells": "by-key", "CellsMax": 6}, Jobs={"QueueMax": 10})
        s = self.started({"mail": mail})
        for uid, n in (SUBMITTER_ID, 5), (0, 5):
            with user(uid):
                for _ in range(n):
                    s.create("mail", "echo", key="a", **later)
                self.refused("Busy", s.create, "mail", "echo", key="a", **later)
        with user(SUBMITTER_ID):
            for key in "bc":
                s.create("mail", "echo", key=key, **later)
            self.refused("TooManyCells", s.create, "mail", "echo", key="d", **later)
        for key in "def":
            s.create("mail", "echo", key=key, **later)

    def test_Q17_messages_leave_half_of_the_cells_to_submitters(self):
        player = helper("workers/player")
        s = self.started({"mail": ini(player, Group={"SubmitUser": SUBMITTER_NAME}, Pool={"Cells": "by-key", "CellsMax": 6}),
                          "talking": ini(player)})
        for key in "abcd":
            s.do("talking", f"tell mail hello {key} you")
        s.until(lambda: s.call("io.troupe.Actors.ListDeadLetters")["letters"])
        self.assertEqual([cell["key"] for cell in s.group("mail")["cells"]], list("abc"))
        with user(SUBMITTER_ID):
            for key in "de":
                s.create("mail", "echo", key=key, delay_usec=10**12)

    def test_Q17_a_map_of_a_submitter_waits_for_its_share_of_the_queue(self):
        s = self.begin(QueueMax=40)
        go = Bell(s, "go")
        self.blocked(go)
        mapping = subprocess.Popen([TROUPECTL, "--socket", s.socket_path, "map", "mail"], user=SUBMITTER_ID, group=SUBMITTER_ID,
                                   extra_groups=[], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self.addCleanup(mapping.kill)
        mapping.stdin.write("".join(f"echo {i}\n" for i in range(60)))
        mapping.stdin.flush()
        s.until(lambda: s.group("mail")["refused"] > 0)
        self.assertLessEqual(s.group("mail")["queued"], 20)
        for _ in range(20):
            s.create("mail", "echo")
        go.ring()
        out, err = mapping.communicate(timeout=LIMIT)
        self.assertEqual((mapping.returncode, out.split()), (0, [str(i) for i in range(60)]), err)

    def test_Q17_a_submitter_has_used_its_share_after_a_restart(self):
        later = {"delay_usec": 10**12}
        s = self.begin(QueueMax=40, Durable="yes")
        go = Bell(s, "go")
        self.blocked(go)
        with user(SUBMITTER_ID):
            ids = [s.create("mail", "echo", **later) for _ in range(10)]
            ids += [s.create("mail", "echo") for _ in range(10)]
            self.refused("Busy", s.create, "mail", "echo", **later)
        for end in lambda: (s.stop(), s.start()), s.crash, lambda: self.refused("Restarting", s.call, "Upgrade"):
            end()
            s.until(lambda: all(s.group("mail")[jobs] == 10 for jobs in ("queued", "waiting")))
            with user(SUBMITTER_ID):
                self.refused("Busy", s.create, "mail", "echo", **later)
        for id in ids:
            s.call("Cancel", id=id)
        with user(SUBMITTER_ID):
            s.create("mail", "echo", **later)
        go.ring()

    def test_Q17_a_submitter_has_used_its_share_of_the_cells_after_a_restart(self):
        later = {"delay_usec": 10**12}
        s = self.supervisor({"mail": ini(ACTOR, Group={"SubmitUser": SUBMITTER_NAME}, Pool={"Cells": "by-key", "CellsMax": 4},
                                         Jobs={"Durable": "yes"})}, state=True).start()
        with user(SUBMITTER_ID):
            for key in "ab":
                s.create("mail", "echo", key=key, **later)
        for end in lambda: (s.stop(), s.start()), s.crash, lambda: self.refused("Restarting", s.call, "Upgrade"):
            end()
            s.until(lambda: s.group("mail")["waiting"] == 2)
            with user(SUBMITTER_ID):
                self.refused("TooManyCells", s.create, "mail", "echo", key="c", **later)
        for key in "cd":
            s.create("mail", "echo", key=key, **later)

    def test_Q17_a_submitter_has_used_its_share_of_idle_cells_after_a_takeover(self):
        s = self.started({"mail": ini(ACTOR, Group={"SubmitUser": SUBMITTER_NAME},
                                      Pool={"Cells": "by-key", "CellsMax": 4, "CellIdleSec": "infinity"})})
        with user(SUBMITTER_ID):
            for key in "ab":
                s.do("mail", "echo", key=key)
        for end in s.crash, lambda: self.refused("Restarting", s.call, "Upgrade"):
            end()
            s.until(lambda: len(s.group("mail")["cells"]) == 2)
            with user(SUBMITTER_ID):
                self.refused("TooManyCells", s.create, "mail", "echo", key="c", delay_usec=10**12)
        for key in "cd":
            s.do("mail", "echo", key=key)

    def test_Q17_a_submitter_may_do_nothing_else(self):
        s = self.begin()
        go = Bell(s, "go")
        job = self.blocked(go)
        with user(SUBMITTER_ID):
            self.refused("NotPermitted", s.create, "other", "echo")
            self.refused("NotPermitted", s.call, "Cancel", id=job)
            self.assertTrue(s.job(job)["restricted"])
            self.assertEqual(self.refused("BadOption", s.create, "mail", "echo", priority=0)["option"], "priority")
            for method, parameters in {"Stop": {"target": "mail"}, "Pause": {"target": "mail"},
                                       "io.troupe.Jobs.Move": {"target": "mail"},
                                       "io.troupe.Actors.Tell": {"to": "mail/0", "type": "x"}}.items():
                self.refused("NotPermitted", s.call, method, **parameters)
        with user(READER):
            self.assertIn(f"the user {SUBMITTER_NAME} (SubmitUser=), or a member of the group daemon (SubmitGroup=)",
                          self.refused("NotPermitted", s.create, "mail", "echo")["needed"])
            self.refused("NotPermitted", s.call, "Attach", version=VERSION)
        go.ring()

    def test_Q17_troupectl_works_for_a_submitter(self):
        s = self.begin()
        self.assertEqual(self.ctl("do", "mail", "--data", "echo hello", check=True).stdout.strip(), "hello")
        job = self.ctl("create", "mail", "--data", "echo created", check=True).stdout.strip()
        self.assertEqual(self.ctl("wait", job, check=True).stdout.strip(), "created")
        lines = self.ctl("map", "mail", input="echo 1\necho 2\n", check=True).stdout.split()
        self.assertEqual(lines, ["1", "2"])
        job = self.ctl("create", "mail", "-", input="echo large\n" + 10000 * "sleep 0\n", check=True).stdout.strip()
        self.assertEqual(self.ctl("wait", job, check=True).stdout, "large")
        self.assertNotEqual(self.ctl("map", "other", input="echo 1\n").returncode, 0)
        self.assertEqual(self.ctl("do", "other", "--data", "echo").returncode, 4)
        self.assertEqual(s.group("other")["succeeded"], 0)

    def test_Q17_a_job_has_its_submitter_under_the_next_supervisor(self):
        for durable, take_over in ("no", lambda s: s.ctl("upgrade", check=True)), ("yes", lambda s: s.crash()):
            s = self.begin(Durable=durable)
            with user(SUBMITTER_ID):
                job = s.create("mail", "echo", delay_usec=10**12)
            take_over(s)
            s.until_restored()
            with user(READER):
                self.refused("NotPermitted", s.call, "Cancel", id=job)
            with user(SUBMITTER_ID):
                s.call("Cancel", id=job)
            self.assertEqual(s.job(job)["state"], "cancelled")

    def test_Q17_a_reload_takes_the_permission_away_from_connected_clients(self):
        s = self.begin()
        with user(SUBMITTER_ID):
            connection = s.connect()
        connection.call("Create", group="mail")
        s.write("mail.group", ini(ACTOR))
        s.call("Reload")
        self.refused("NotPermitted", connection.call, "Create", group="mail")


@unittest.skipIf(os.geteuid() != 0, "needs root to be several users")
class WorkersThatSubmit(TestCase):
    """A worker creates jobs in the groups of MaySubmit=, over a socket of its own."""

    def begin(self, **group):
        self.s = self.started({
            "shop": ini(f"{TROUPE_EXEC} -- /bin/sh -c {{}}", Group={"MaySubmit": "mail", **group}, Jobs={"MaxRetries": 0}),
            "mail": ini(ACTOR),
            "other": ini(ACTOR),
        })
        return self.s

    def sh(self, *lines):
        """What a command prints that runs as a job of the shop."""
        job = self.s.do("shop", "ctl=" + TROUPECTL + "\n" + "\n".join(lines))
        self.assertEqual(job["state"], "succeeded", job)
        return text(job["result"]["data"]) if isinstance(job["result"]["data"], dict) else job["result"]["data"]

    def socket(self):
        """The socket of the shop's worker, as if this process had it from the worker."""
        pid = self.s.worker("shop/0")["pid"]
        with open(f"/proc/{pid}/environ", encoding="utf-8") as file:
            path = dict(word.split("=", 1) for word in file.read().split("\0") if word)["TROUPE_SOCKET"]
        fd = os.open(path.replace("self", str(pid)), os.O_PATH)
        self.addCleanup(os.close, fd)
        return f"/proc/self/fd/{fd}"

    def test_Q17_a_command_creates_watches_and_cancels_jobs(self):
        self.begin(User=SUBMITTER_NAME)
        self.assertEqual(self.sh("$ctl do mail --data 'echo hello'").strip(), "hello")
        self.assertEqual(self.sh("$ctl wait $($ctl create mail --data 'echo kept')").strip(), "kept")
        self.assertEqual(self.sh("printf 'echo 1\\necho 2\\n' | $ctl map mail").split(), ["1", "2"])
        self.assertEqual(self.sh("$ctl cancel $($ctl create mail --delay 1d) >/dev/null && echo done").strip(), "done")

    def test_Q17_a_worker_may_do_nothing_else(self):
        for own in {"User": SUBMITTER_NAME}, {}:
            s = self.begin(**own)
            foreign = s.create("other", "echo", delay_usec=10**12)
            out = self.sh("$ctl do other --data echo 2>&1; echo $?", "$ctl do shop --data true >/dev/null 2>&1; echo $?",
                          "$ctl stop mail >/dev/null 2>&1; echo $?", f"$ctl cancel {foreign} >/dev/null 2>&1; echo $?")
            self.assertIn("not permitted", out)
            self.assertNotIn("0", out.splitlines()[1:])
            self.assertEqual((s.job(foreign)["state"], s.group("other")["succeeded"]), ("delayed", 0))
            s.stop()

    def test_Q17_a_worker_reads_the_results_of_jobs_that_its_job_has_waited_for(self):
        s = self.begin(User=SUBMITTER_NAME)
        parent, foreign = s.create("other", "echo of the parent"), s.create("other", "echo foreign")
        s.wait_job(parent)
        s.wait_job(foreign)
        lines = f"ctl={TROUPECTL}\n$ctl wait {parent} && ! $ctl wait {foreign} && $ctl job {foreign}"
        result = s.wait_job(s.create("shop", lines, after=parent))["result"]["data"]
        self.assertIn("of the parent", result)
        self.assertNotIn("foreign\n", result)
        with Varlink(self.socket()) as connection:
            self.assertNotIn("result", connection.call("Get", id=parent)["job"])

    def test_Q17_the_socket_gives_a_process_of_any_user_the_rights_of_the_worker_alone(self):
        s = self.begin()
        with Varlink(self.socket()) as connection:
            job = connection.call("Create", group="mail")["id"]
            for method, parameters in ("Create", {"group": "other"}), ("Stop", {"target": "mail"}), ("Reload", {}):
                self.refused("NotPermitted", connection.call, method, **parameters)
        self.assertEqual(s.wait_job(job)["state"], "succeeded")

    def test_Q17_the_socket_and_its_connections_end_with_the_worker(self):
        s = self.begin()
        path = self.socket()
        connection = Varlink(path)
        self.addCleanup(connection.close)
        connection.call("Create", group="mail")
        os.kill(s.worker("shop/0")["pid"], 9)
        with self.assertRaises((ConnectionError, AssertionError, EOFError)):
            while True:
                connection.call("GetInfo")
        self.assertRaises(ConnectionRefusedError, Varlink, path)

    def test_Q17_the_socket_outlives_an_upgrade_and_a_crash(self):
        s = self.begin()
        path = self.socket()
        for happens in (lambda: s.ctl("upgrade", check=True)), s.crash:
            happens()
            s.until_restored()
            with Varlink(path) as connection:
                connection.call("Create", group="mail")
                self.refused("NotPermitted", connection.call, "Create", group="other")
        self.assertEqual(s.worker("shop/0")["generation"], 1)
        os.kill(s.worker("shop/0")["pid"], 9)
        s.until(lambda: s.worker("shop/0").get("generation") == 2)
        self.assertRaises(ConnectionRefusedError, Varlink, path)

    def test_Q17_a_reload_takes_the_permission_away_at_once(self):
        s = self.begin()
        # A worker with a job is not replaced at once, which would end its connections.
        s.create("shop", f"until [ -e {s.path('go')} ]; do sleep 0.05; done", id="work")
        s.wait_job_state("work", "running")
        with Varlink(self.socket()) as connection:
            connection.call("Create", group="mail")
            self.assertFalse(glob.glob(self.s.path("**/submit*"), recursive=True))
            s.write("shop.group", ini(f"{TROUPE_EXEC} -- /bin/sh -c {{}}", Group={"MaySubmit": "other"}))
            s.call("Reload")
            self.refused("NotPermitted", connection.call, "Create", group="mail")
        Path(s.path("go")).touch()

    def test_Q17_a_worker_without_MaySubmit_has_no_socket(self):
        s = self.begin(MaySubmit="")
        self.assertNotIn("TROUPE_SOCKET", Path(f"/proc/{s.worker('shop/0')['pid']}/environ").read_text(encoding="utf-8"))
