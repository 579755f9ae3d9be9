# SPDX-License-Identifier: MIT
"""Functions that handle jobs, and the clients that submit them: with and without asyncio."""
import asyncio
import json
import os
import pwd
import signal
import subprocess
import sys
import threading
import time
import unittest

import troupe_python
from troupe_python import e2e, group, needed

SUBMITTER = "www-data"
JOBS = {"MaxRetries": 1, "BackoffMinSec": "1ms", "BackoffMaxSec": "1ms"}


class Jobs(troupe_python.TestCase):
    def started_with(self, *names, **sections):
        sections.setdefault("Jobs", JOBS)
        self.server = self.started({name: group("jobs.py", **sections) for name in names})
        return self.server

    def connected(self):
        import troupe
        client = troupe.Client(self.server.socket_path)
        self.addCleanup(client.close)
        return client

    def wait_cancelled(self, name, n):
        self.server.until(lambda: self.server.group(name)["cancelled"] == n)

    def wait_published(self, name):
        self.server.until(lambda: self.server.worker(name).get("published"))


@needed
class Rights(Jobs):
    """Clients that may create jobs in some groups, and do nothing else."""

    def test_a_worker_creates_jobs_in_the_groups_of_MaySubmit(self):
        self.server = self.started({"order": group("jobs.py", Group={"MaySubmit": "echo"}),
                                    "echo": group("jobs.py"), "say": group("jobs.py")})
        client = self.connected()
        self.assertEqual(client.do("order", "echo").data, b"ordered")
        self.assertEqual(client.do("order", "say").data, b"refused")
        self.server.ctl("upgrade", check=True)
        client = self.connected()
        self.assertEqual(client.do("order", "echo").data, b"ordered")

    @unittest.skipUnless(os.getuid() == 0, "needs another user")
    def test_a_submitter_creates_watches_and_cancels_its_own_jobs(self):
        import troupe
        self.server = self.started({"echo": group("jobs.py", Group={"SubmitUser": SUBMITTER}), "say": group("jobs.py")})
        foreign = self.connected().create("echo", "root's", delay=100000)
        with e2e.user(pwd.getpwnam(SUBMITTER).pw_uid):
            client = self.connected()
            self.assertEqual(client.do("echo", "mine").data, b"mine")
            self.assertEqual(client.wait(client.create("echo", "kept")).data, b"kept")
            later = client.create("echo", "later", delay=100000)
            client.cancel(later)
            self.assertRaisesRegex(troupe.JobCancelled, f"^job {later} was cancelled by uid ", client.wait, later)
            self.assertRaises(PermissionError, client.do, "say", "text")
            self.assertRaises(PermissionError, client.do, "echo", "first", priority=0)
            self.assertRaises(PermissionError, client.cancel, foreign)
        self.assertEqual(self.server.job(foreign)["state"], "delayed")


@needed
class Workers(Jobs):
    def test_what_a_function_returns_is_the_result(self):
        self.started_with("echo", "say")
        client = self.connected()
        self.assertEqual(client.do("echo", "é").data, "é".encode())
        self.assertEqual(client.do("echo", "é").text, "é")
        self.assertEqual(client.do("echo", {"n": [1]}).json(), {"n": [1]})
        said = {word: client.do("say", word).data for word in ("text", "nothing", "json", "bytes")}
        self.assertEqual(said, {"text": b"text", "nothing": b"", "json": b'{"n": [1]}', "bytes": b"bytes"})

    def test_Q9_jobs_wait_for_others(self):
        import troupe
        self.started_with("echo", "fail")
        client = self.connected()
        first, failed = client.create("echo", "first"), client.create("fail", "now")
        second = client.create("echo", "second", after=first)
        self.assertEqual(client.do("echo", "third", after=[first, second]).data, b"third")
        self.assertEqual(client.do("echo", "both", after=[second, failed], condition="end").data, b"both")
        self.assertEqual(client.do("echo", "instead", after=failed, condition="failure").data, b"instead")
        with self.assertRaises(troupe.JobCancelled) as caught:
            client.do("echo", "never", after=[first, failed], keep_result=True)
        self.assertEqual(caught.exception.result.reason, f"job {failed}, which it waited for, has ended: dead")
        self.assertEqual([parent["id"] for parent in client.job(caught.exception.result.id)["after"]], [first, failed])
        self.assertRaisesRegex(OSError, "nobody", client.create, "echo", after=[first, "nobody"])
        self.assertRaises(ValueError, client.create, "echo", after=first, condition="never")

        async def chain():
            import troupe.aio
            async with troupe.aio.Client(self.server.socket_path) as client:
                id = client.create("echo", "one")
                return (await client.do("echo", "two", after=[id])).data
        self.assertEqual(asyncio.run(chain()), b"two")

    def test_Q10_a_batch_ends_with_its_members(self):
        import troupe
        self.started_with("echo", "fail")
        client = self.connected()
        batch, good = (client.call("Jobs.OpenBatch", group="echo")["id"] for _ in range(2))
        client.create("fail", "now", batch=batch)
        for n in range(3):
            client.create("echo", str(n), batch=batch)
            client.create("echo", str(n), batch=good)
        follow = client.create("echo", "follow", after=batch, condition="failure")
        self.assertEqual(client.job(batch)["members"]["open"], True)
        client.call("Jobs.CloseBatch", id=batch)
        client.call("Jobs.CloseBatch", id=good)
        with self.assertRaises(troupe.JobError) as caught:
            client.wait(batch)
        self.assertEqual(caught.exception.result.reason, "1 of 4 members did not succeed")
        self.assertEqual(client.wait(follow).data, b"follow")
        self.assertEqual(client.wait(good).data, b"")
        self.assertRaises(OSError, client.create, "echo", batch=good)

    def test_Q9_a_chain_runs_in_order_and_ends_with_a_failure(self):
        import troupe
        self.started_with("echo", "fail")
        client = self.connected()
        ids = client.chain([("echo", "one"), ("echo", "two"), ("echo", "three")])
        self.assertEqual([client.wait(id).data for id in ids], [b"one", b"two", b"three"])
        self.assertEqual([parent["id"] for parent in client.job(ids[2])["after"]], [ids[1]])
        _, failed, never = client.chain([("echo", "one"), ("fail", "now"), ("echo", "never")])
        with self.assertRaises(troupe.JobCancelled) as caught:
            client.wait(never)
        self.assertIn(failed, caught.exception.result.reason)
        before = len(list(client.jobs("echo")))
        self.assertRaises(OSError, client.chain, [("echo", "one"), ("nobody", "two")], delay=3600.0)
        self.assertEqual(len(list(client.jobs("echo"))), before)
        self.assertRaises(ValueError, client.chain, [("echo", "one")], id="mine")

    def test_Q10_with_opens_and_closes_a_batch(self):
        import troupe
        self.started_with("echo")
        client = self.connected()
        with client.batch("echo", id="letters", tags="mail") as batch:
            ids = [batch.create("echo", text) for text in "ab"]
        self.assertEqual(client.wait("letters").end, "succeeded")
        self.assertEqual([client.wait(id).data for id in ids], [b"a", b"b"])
        with self.assertRaises(KeyError), client.batch("echo") as batch:
            member = batch.create("echo", "late")
            raise KeyError
        self.assertRaises(troupe.JobCancelled, client.wait, batch.id)
        self.assertEqual(client.wait(member).data, b"late")

        async def work():
            import troupe.aio
            async with troupe.aio.Client(self.server.socket_path) as client:
                async with client.batch("echo") as batch:
                    batch.create("echo", "c")
                return (await client.do("echo", "d", after=batch.id)).data
        self.assertEqual(asyncio.run(work()), b"d")

    def test_an_exception_is_a_retry_with_its_traceback(self):
        import troupe
        self.started_with("fail")
        client = self.connected()
        with self.assertRaises(troupe.Dead) as caught:
            client.do("fail", "now")
        result = caught.exception.result
        self.assertEqual((result.attempts, result.code), (2, 1))
        self.assertEqual(str(caught.exception), f"job {result.id} is dead: {result.reason}")
        self.assertTrue(result.reason.startswith("ValueError: attempt 2 of 2\nTraceback"), result.reason)
        self.assertTrue(result.reason.endswith("ValueError: attempt 2 of 2"), result.reason)
        self.assertIn("jobs.py", result.reason)
        self.assertNotIn("troupe/job.py", result.reason)

    def test_Q13_what_a_function_emits_comes_in_order_until_its_end(self):
        self.started_with("echo")
        client = self.connected()
        id = client.create("echo", "emit")
        items = list(client.stream(id))
        self.assertEqual([item["data"]["data"] for item in items], ["one", "two", '{"n": 3}'])
        self.assertEqual(list(client.stream(id, after=items[1]["at"])), items[2:])

        async def watch():
            import troupe.aio
            async with troupe.aio.Client(self.server.socket_path) as client:
                return [item async for item in client.stream(id)]
        self.assertEqual(asyncio.run(watch()), items)
        with self.assertRaises(ProcessLookupError):
            list(client.stream("none"))

    def test_Q11_a_step_is_done_once_over_all_attempts(self):
        import troupe
        self.started_with("fail")
        with self.assertRaises(troupe.Rejected) as caught:
            self.connected().do("fail", "steps")
        self.assertEqual(caught.exception.result.data, b'in attempt 1; {"first": "in attempt 1"}')

    def test_Q12_a_function_chooses_the_pause_before_the_next_attempt(self):
        import troupe
        self.started_with("fail", Jobs={**JOBS, "MaxRetries": 2, "BackoffMinSec": "1h", "BackoffMaxSec": "1h"})
        client = self.connected()
        id = client.create("fail", "later")
        job = self.server.until(lambda: (lambda job: job["failed_attempts"] == 2 and job)(self.server.job(id)))
        self.assertEqual([(attempt["cause"], attempt["detail"]) for attempt in job["attempts"]], [("retry", "busy")] * 2)
        self.assertGreater(job["next_attempt_at"] - job["attempts"][1]["at"], 3599 * 1000000)
        with self.assertRaises(troupe.Dead) as caught:
            client.do("fail", "too late", max_retries=0)
        self.assertIn("after is -1: it must be a number of seconds from 0", caught.exception.result.reason)

    def test_a_function_that_takes_too_long_is_ended_with_its_process(self):
        import troupe
        self.started_with("stuck", Jobs={"TimeoutSec": "100ms", "MaxRetries": 0})
        client = self.connected()
        self.assertRaises(troupe.Dead, client.do, "stuck", "")
        [death] = client.deaths("stuck")
        self.assertEqual(death["cause"], "job_timeout")
        self.server.wait_worker("stuck/0", "idle")
        self.assertGreater(self.server.worker("stuck/0")["generation"], death["generation"])

    def test_the_end_of_a_long_traceback_is_kept(self):
        import troupe
        self.started_with("fail")
        with self.assertRaises(troupe.Dead) as caught:
            self.connected().do("fail", "long")
        head, tail = caught.exception.result.reason.split("\n", 1)
        self.assertRegex(head, r"^ValueError: x\\0\\udc80y+\.\.\.$")
        self.assertRegex(tail, r"^\.\.\.y+ the end$")

    def test_an_error_of_the_system_gives_its_number(self):
        import troupe
        self.started_with("fail")
        with self.assertRaises(troupe.Dead) as caught:
            self.connected().do("fail", "number")
        self.assertEqual(caught.exception.result.code, 2)

    def test_what_cannot_be_a_result_is_an_exception(self):
        import troupe
        self.started_with("fail")
        with self.assertRaisesRegex(troupe.Dead, "not JSON serializable"):
            self.connected().do("fail", "object")

    def test_reject_is_final(self):
        import troupe
        self.started_with("fail")
        with self.assertRaises(troupe.Rejected) as caught:
            self.connected().do("fail", "reject")
        result = caught.exception.result
        self.assertEqual((result.attempts, result.code, json.loads(result.data)), (1, 9, {"why": "never"}))

    def test_a_worker_that_exits_has_its_job_retried(self):
        import troupe
        self.started_with("fail")
        with self.assertRaisesRegex(troupe.Dead, "SystemExit: bye"):
            self.connected().do("fail", "exit")

    def test_a_cancelled_job_ends_at_check_and_publish(self):
        import troupe
        self.started_with("slow")
        client = self.connected()
        for verb in ("check", "publish"):
            client.create("slow", verb, id=verb)
            self.server.wait_job_state(verb, "running")
            client.cancel(verb)
            self.assertRaises(troupe.JobCancelled, client.wait, verb)

    def test_check_and_publish_are_heartbeats(self):
        from troupe import Cancelled, Job
        said = []

        class Low:
            cancelled = False

        class Worker:
            def heartbeat(self):
                said.append("alive")

            def publish(self, state):
                said.append(state)

        job = Job(Low(), Worker())
        job.check()
        job.publish("half")
        self.assertEqual(said, ["alive", "alive", b"half"])
        Low.cancelled = True
        for call in job.check, lambda: job.publish("more"):
            self.assertRaises(Cancelled, call)
        self.assertEqual(len(said), 3)

    def test_what_is_published_can_be_read(self):
        self.started_with("slow")
        client = self.connected()
        client.create("slow", "check", id="progress")
        self.wait_published("slow/0")
        self.assertEqual(json.loads(self.server.worker("slow/0")["published"]["data"]), {"id": "progress"})
        client.cancel("progress")

    def test_children_do_not_inherit_the_rings(self):
        self.started_with("environment")
        said = json.loads(self.connected().do("environment", key="k").data)
        self.assertEqual(said, {"variables": ["TROUPE_MAIN"], "key": "k"})  # the mark of their main process

    def test_other_threads_may_look_but_not_call_meanwhile(self):
        self.started_with("thread")
        said = json.loads(self.connected().do("thread").data)
        self.assertEqual(said, [False, "another thread uses this object now"])

    def test_handlers_of_signals_run_while_the_worker_waits(self):
        self.started_with("signals")
        client = self.connected()
        pid = json.loads(client.do("signals").data)["pid"]
        seen = 0
        while seen == 0:
            os.kill(pid, signal.SIGUSR1)
            said = json.loads(client.do("signals").data)
            self.assertEqual(said["pid"], pid)
            seen = said["seen"]

    def test_without_trouped_it_says_what_to_do(self):
        ended = subprocess.run([sys.executable, os.path.join(troupe_python.WORKERS, "jobs.py")], text=True,
                               capture_output=True, env={**os.environ, **troupe_python.ENVIRONMENT})
        self.assertEqual(ended.returncode, 1)
        self.assertIn("not started by trouped: put this program into the ExecStart= of a group", ended.stderr)

    @unittest.skipIf(sys.version_info >= (3, 12), "this Python has another module for interpreters")
    def test_it_stays_out_of_other_interpreters(self):
        script = "import _xxsubinterpreters as s; i = s.create(); s.run_string(i, 'import troupe')"
        ended = subprocess.run([sys.executable, "-c", script], text=True, capture_output=True,
                               env={**os.environ, **troupe_python.ENVIRONMENT})
        self.assertIn("troupe works only in the main interpreter", ended.stderr)
        self.assertEqual(ended.returncode, 1)

    def test_X4_a_function_sees_the_span_of_its_attempt(self):
        self.started_with("traced")
        client = self.connected()
        parent = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"
        span = json.loads(client.do("traced", "", traceparent=parent).data)["traceparent"]
        self.assertEqual((span[:36], span[52:]), (parent[:36], parent[52:]))
        self.assertNotEqual(span, parent)
        self.assertEqual(json.loads(client.do("traced", "").data), {"traceparent": None})
        for bad in "00", parent.upper():
            with self.assertRaisesRegex(OSError, "traceparent: 00-TRACE-SPAN-FLAGS, as of W3C Trace Context"):
                client.do("traced", "", traceparent=bad)

    def test_one_killed_worker_costs_one_attempt(self):
        self.started_with("echo", Pool={"Size": 2}, Jobs={**JOBS, "MaxRetries": 50})
        client = self.connected()
        killed = 0
        for n, result in enumerate(client.map("echo", (str(n) for n in range(3000)), window=64)):
            self.assertEqual(result.data, str(n).encode())
            if n % 500 == 250:
                workers = [worker for worker in self.server.workers("echo") if worker.get("pid")]
                os.kill(workers[0]["pid"], signal.SIGKILL)
                killed += 1
        self.assertEqual(killed, 6)


@needed
class Clients(Jobs):
    def test_map_keeps_the_order_and_the_window(self):
        self.started_with("echo", Pool={"Size": 2})
        results = self.connected().map("echo", (str(n) for n in range(500)), window=7)
        self.assertEqual([int(result.data) for result in results], list(range(500)))

    def test_map_cancels_what_nobody_waits_for(self):
        self.started_with("slow")
        client = self.connected()
        items = client.map("slow", ["check"] * 3, window=3)
        self.interrupt(KeyboardInterrupt(), lambda: len(self.server.call("List", group="slow")["jobs"]) == 3)
        self.assertRaises(KeyboardInterrupt, next, items)
        self.wait_cancelled("slow", 3)

    def test_an_interrupted_call_cancels_its_job(self):
        self.started_with("slow", "echo")
        client = self.connected()
        self.interrupt(KeyboardInterrupt(), lambda: self.server.call("List", group="slow")["jobs"])
        self.assertRaises(KeyboardInterrupt, client.do, "slow", "check", id="mine")
        self.wait_cancelled("slow", 1)
        self.assertEqual(client.do("echo", "on").data, b"on")

    def filled(self):
        """A group whose queue is full, until its first job is cancelled."""
        self.started_with("slow", Jobs={**JOBS, "QueueMax": 1})
        client = self.connected()
        client.create("slow", "check", id="first")
        self.server.wait_job_state("first", "running")
        client.create("slow", "check", id="second")
        return client

    def test_an_interrupted_wait_for_room_cancels_what_it_waits_for(self):
        client = self.filled()
        self.interrupt(KeyboardInterrupt(), lambda: True)
        with self.assertRaises(KeyboardInterrupt):
            client.create("slow", "check", wait=float("inf"))
        self.interrupt(KeyboardInterrupt(), lambda: True)
        with self.assertRaises(KeyboardInterrupt):
            client.do("slow", "check", wait=float("inf"))
        for id in "first", "second":
            self.connected().cancel(id)
        self.wait_cancelled("slow", 4)
        self.assertEqual(list(client.jobs("slow")), [])

    def test_an_interrupted_wait_is_forgotten(self):
        import troupe
        self.started_with("slow")
        client = self.connected()
        client.create("slow", "check", id="one")
        self.interrupt(KeyboardInterrupt(), lambda: True)
        self.assertRaises(KeyboardInterrupt, client.wait, "one")
        client.cancel("one")
        self.assertRaises(troupe.JobCancelled, client.wait, "one")
        self.assertEqual((client._ended, client._unwanted), ({}, set()))

    def test_jobs_dead_letters_and_events_can_be_read(self):
        import troupe
        self.started_with("slow", "fail")
        client = self.connected()
        events = client.watch("slow", jobs=True)
        client.create("slow", "check", id="one")
        self.assertTrue(any(event["type"] == "job.accepted" for event in self.first(events, "job.accepted")))
        self.server.wait_job_state("one", "running")
        self.assertEqual(client.job("one")["state"], "running")
        self.assertEqual([job["id"] for job in client.jobs("slow")], ["one"])
        client.cancel("one")
        self.assertRaises(troupe.JobCancelled, client.wait, "one")
        self.assertEqual(list(client.jobs("slow")), [])
        self.assertEqual([job["id"] for job in client.jobs("slow", ended=True)], ["one"])
        self.assertRaises(troupe.Dead, client.do, "fail", "now")
        self.assertEqual(len(list(client.dead_letters("fail"))), 1)
        self.assertEqual(list(client.deaths("slow")), [])
        self.assertRaises(ProcessLookupError, client.job, "nobody")

    def first(self, events, kind):
        """Events up to the first of that kind."""
        for event in events:
            yield event
            if event["type"] == kind:
                return

    def said(self, error, call, *arguments, **options):
        with self.assertRaises(error) as caught:
            call(*arguments, **options)
        return caught.exception.strerror

    def troupectl(self, *words):
        ended = subprocess.run([os.path.join(e2e.BUILD, "troupectl"), "--socket", self.server.socket_path, *words],
                               stdin=subprocess.DEVNULL, stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True)
        return ended.stderr.removeprefix("troupectl: ").rstrip("\n")

    def with_a_service(self):
        self.server = self.started({"words": group("jobs.py", Jobs=JOBS), "svc": e2e.ini("sleep 1000", Group={"Type": "service"})})
        return self.connected()

    def test_errors_have_the_sentences_of_the_command_line(self):
        import troupe
        client = self.with_a_service()
        self.assertEqual(self.said(FileNotFoundError, client.do, "wrods"), self.troupectl("do", "wrods", "--data", "x"))
        self.assertIn("did you mean 'words'?", self.said(FileNotFoundError, client.create, "wrods"))
        self.assertEqual(self.said(OSError, client.do, "svc"), self.troupectl("do", "svc", "--data", "x"))
        self.assertEqual(self.said(ProcessLookupError, client.job, "none"), self.troupectl("job", "none"))
        self.assertEqual(self.said(ProcessLookupError, client.wait, "none"), self.troupectl("job", "none"))
        self.assertEqual(self.said(ProcessLookupError, client.cancel, "none"), self.troupectl("cancel", "none"))
        self.assertIn("there is no actor 'nobody'", self.said(FileNotFoundError, client.tell, "nobody", "x"))
        self.assertIn("'words' is in use", self.said(FileExistsError, client.register, "words"))
        client.create("words", "x", id="twin", delay=3600)
        for call in client.create, client.do:
            self.assertIn("group 'words' refused the job: a job with this id exists: it is live, or its result is still kept",
                          self.said(FileExistsError, call, "words", "x", id="twin"))
        for options, problem in (({"delay": 1e9}, "delay: at most 366 days"), ({"backoff_min": 1e9}, "backoff_min: at most 1 day"),
                                 ({"debounce": 1}, "debounce: only with a unique key"), ({"priority": 64}, "priority: 0 (first) to 63"),
                                 ({"key": "k" * 256}, "key: at most 255 bytes"), ({"id": "no id"}, "id: 1 to 64 characters")):
            for call in client.create, client.do:
                self.assertIn(f"group 'words' refused the job: {problem}", self.said(OSError, call, "words", "x", **options))
        path = self.server.socket_path + ".missing"
        self.assertIn(f"no supervisor at {path}: there is no such socket", self.said(FileNotFoundError, troupe.Client, path))
        self.server.stop()
        self.assertIn("the supervisor that had it is gone", self.said(ConnectionResetError, client.do, "words"))
        self.assertIn("the supervisor closed the connection", self.said(BrokenPipeError, client.do, "words"))

    def test_the_error_of_a_signal_handler_stays_as_it_is(self):
        self.started_with("slow", Jobs={**JOBS, "QueueMax": 1})
        client = self.connected()
        for _ in range(2):
            client.create("slow", "", wait=10)
            self.wait_published("slow/0")
        self.interrupt(TimeoutError(110, "mine"), lambda: troupe_python.waits(client._client))
        self.assertEqual(self.said(TimeoutError, client.create, "slow", "", wait=1000), "mine")

    def test_Q15_jobs_that_wait_are_changed_by_id_and_by_filter(self):
        import troupe
        self.started_with("slow", "echo")
        client = self.connected()
        for key in "a", "b", "b":
            client.create("slow", "x", key=key, delay=3600, id=f"{key}-{len(list(client.jobs()))}")
        self.assertEqual(client.set(group="slow", key="b", priority=7, dry_run=True)["changed"], 2)
        self.assertEqual(client.set(group="slow", key="b", priority=7, delay=60), {"changed": 2, "failed": 0})
        self.assertEqual(sorted(job["priority"] for job in client.jobs("slow")), [7, 7, 32])
        self.assertEqual(client.move("a-0", to="echo")["changed"], 1)
        self.assertEqual(client.run_now("a-0")["changed"], 1)
        self.assertEqual(client.wait("a-0").data, b"x")
        self.assertIn("already ended", self.said(OSError, client.run_now, "a-0"))
        self.assertEqual(client.cancel_all("slow", key="b")["cancelled"], 2)
        self.assertRaises(troupe.JobCancelled, client.wait, "b-1")

    def test_dead_letters_are_filtered_and_sent_again(self):
        import troupe
        self.started_with("fail", "echo", Jobs={**JOBS, "MaxRetries": 0})
        client = self.connected()
        for key in "a", "b":
            self.assertRaises(troupe.Dead, client.do, "fail", key, key=key)
        [letter] = client.dead_letters("fail", key="b")
        self.assertEqual(list(client.dead_letters("fail", cause="oom")), [])
        answer = client.requeue(letter["id"], to="echo")
        self.assertEqual((answer["requeued"], client.wait(answer["job"]).data), (1, b"b"))
        self.assertEqual(client.requeue(to="echo", recipient="fail")["requeued"], 1)
        self.assertEqual(list(client.dead_letters()), [])
        self.assertRaises(ValueError, client.requeue)
        self.assertEqual(self.said(FileNotFoundError, client.requeue, 4711), self.troupectl("retry", "4711"))
        self.assertIn("'reason'", self.said(OSError, lambda: list(client.dead_letters(reason="none"))))

    def test_groups_pause_and_jobs_are_filtered(self):
        self.started_with("echo")
        client = self.connected()
        client.pause_jobs("echo")
        id = client.create("echo", "later")
        self.assertEqual([job["id"] for job in client.jobs("echo", state="queued")], [id])
        self.assertEqual(list(client.jobs("echo", state="running")), [])
        client.resume_jobs("echo")
        self.assertEqual(client.wait(id).data, b"later")
        self.assertEqual(client.call("Supervisor.GetInfo")["state"], "running")

    def test_results_may_be_kept(self):
        self.started_with("echo")
        client = self.connected()
        self.assertEqual(client.do("echo", "x", id="kept", keep_result=True).data, b"x")
        self.assertEqual(client.wait("kept").data, b"x")

    def test_a_pool_lends_clients_to_threads(self):
        import troupe
        self.started_with("echo")
        seen, lent = [], set()
        with troupe.ClientPool(self.server.socket_path, size=3) as pool:
            def work(number):
                with pool.client() as client:
                    lent.add(id(client))
                    seen.append(int(client.do("echo", str(number)).data))
            threads = [threading.Thread(target=work, args=(number,)) for number in range(20)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
            self.assertEqual(sorted(seen), list(range(20)))
            self.assertLessEqual(len(lent), 3)
            with pool.client() as client:
                client.close()
            work(20)

    def test_help_lists_the_options(self):
        import troupe
        import typing
        for name in typing.get_type_hints(troupe.Options):
            self.assertRegex(troupe.Options.__doc__, rf"(?m)^ *{name} ")
        for call in troupe.Client.do, troupe.Client.create:
            self.assertIn("troupe.Options", call.__doc__)

    def test_wait_gives_up_in_time(self):
        self.started_with("slow")
        client = self.connected()
        client.create("slow", "check", id="one")
        self.assertRaises(TimeoutError, client.wait, "one", 0.01)
        client.cancel("one")
        self.assertRaises(ProcessLookupError, client.wait, "nobody")


@needed
class Asyncio(Jobs):
    def run_with(self, main):
        from troupe import aio

        async def connected():
            async with aio.Client(self.server.socket_path) as client:
                await asyncio.wait_for(main(client), e2e.LIMIT)
        asyncio.run(connected())

    def test_many_tasks_do_jobs_at_once(self):
        self.started_with("echo", Pool={"Size": 2})

        async def main(client):
            results = await asyncio.gather(*(client.do("echo", str(n)) for n in range(3000)))
            self.assertEqual([int(result.data) for result in results], list(range(3000)))
        self.run_with(main)

    def test_jobs_dead_letters_and_deaths_can_be_read_and_no_thread_is_begun(self):
        import troupe
        self.started_with("slow", "fail")

        async def main(client):
            client.create("slow", "check", id="one")
            self.server.wait_job_state("one", "running")
            self.assertEqual((await client.job("one"))["state"], "running")
            self.assertEqual([job["id"] async for job in client.jobs("slow")], ["one"])
            with self.assertRaises(troupe.Dead):
                await client.do("fail", "now")
            with self.assertRaises(troupe.Dead):
                await client.do("fail", "exit")
            self.assertEqual(len([letter async for letter in client.dead_letters("fail")]), 2)
            self.assertEqual({death["cause"] async for death in client.deaths("fail")}, {"exit"})
            with self.assertRaises(ProcessLookupError):
                await client.job("nobody")
            self.assertEqual(threading.active_count(), 1)
        self.run_with(main)

    def test_map_keeps_the_order(self):
        self.started_with("echo", Pool={"Size": 2})

        async def main(client):
            results = [int(result.data) async for result in client.map("echo", map(str, range(300)), window=9)]
            self.assertEqual(results, list(range(300)))
        self.run_with(main)

    def test_ends_raise_as_in_the_other_client(self):
        import troupe
        self.started_with("fail")

        async def main(client):
            with self.assertRaises(troupe.Rejected):
                await client.do("fail", "reject")
            with self.assertRaises(troupe.Dead):
                await client.do("fail", "now")
            with self.assertRaises(FileNotFoundError):
                await client.do("missing")
            with self.assertRaises(ProcessLookupError):
                await client.wait("nobody")
        self.run_with(main)

    def test_cancelling_a_task_cancels_its_job(self):
        self.started_with("slow", "echo")

        async def main(client):
            task = asyncio.create_task(client.do("slow", "check", id="mine"))
            async for event in client.watch("slow", jobs=True):
                if event["type"] == "job.started":
                    break
            task.cancel()
            with self.assertRaises(asyncio.CancelledError):
                await task
            self.assertEqual((await client.do("echo", "on")).data, b"on")
        self.run_with(main)
        self.wait_cancelled("slow", 1)

    def test_a_time_limit_cancels_the_job(self):
        self.started_with("slow")

        async def main(client):
            with self.assertRaises(asyncio.TimeoutError):
                await asyncio.wait_for(client.do("slow", "check", id="mine"), 0.05)
        self.run_with(main)
        self.wait_cancelled("slow", 1)

    def test_cancelling_a_task_that_waits_for_room_does_not_stop_the_loop(self):
        self.started_with("slow", Jobs={**JOBS, "QueueMax": 1})

        async def main(client):
            client.create("slow", "check", id="first")
            await asyncio.to_thread(self.server.wait_job_state, "first", "running")
            client.create("slow", "check", id="second")
            with self.assertRaises(asyncio.TimeoutError):
                await asyncio.wait_for(client.do("slow", "check", wait=float("inf")), 0.05)
        self.run_with(main)
        with self.connected() as client:
            for id in "first", "second":
                client.cancel(id)
        self.server.until(lambda: not self.server.call("List", group="slow")["jobs"])

    def test_cancelling_many_at_once_leaves_none(self):
        self.started_with("slow", Pool={"Size": 2})

        async def main(client):
            tasks = [asyncio.create_task(client.do("slow", "check")) for _ in range(200)]
            async for event in client.watch("slow", jobs=True):
                if event["type"] == "job.started":
                    break
            for task in tasks:
                task.cancel()
            ended = await asyncio.gather(*tasks, return_exceptions=True)
            self.assertEqual({type(end) for end in ended}, {asyncio.CancelledError})
        self.run_with(main)
        self.wait_cancelled("slow", 200)

    def test_the_loop_goes_on_while_jobs_run(self):
        self.started_with("slow")

        async def main(client):
            task = asyncio.create_task(client.do("slow", "check"))
            for _ in range(50):
                await asyncio.sleep(0)
            self.assertFalse(task.done())
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)
        self.run_with(main)

    def test_a_closed_client_ends_what_is_awaited(self):
        self.started_with("slow")

        async def main(client):
            task = asyncio.create_task(client.do("slow", "check"))
            await asyncio.sleep(0)
            client.close()
            with self.assertRaises(ConnectionError):
                await task
            with self.assertRaises(ConnectionError):
                await client.do("slow", "check")
        self.run_with(main)

    def test_the_end_of_the_supervisor_ends_what_is_awaited(self):
        self.started_with("slow")

        async def main(client):
            task = asyncio.create_task(client.do("slow", "check"))
            await asyncio.sleep(0)
            self.server.kill()
            with self.assertRaises(OSError):
                await task
        self.run_with(main)

    def test_an_exception_in_a_callback_is_reported_and_results_arrive(self):
        from troupe import aio
        self.started_with("echo", "slow")
        reported = []

        async def main():
            asyncio.get_running_loop().set_exception_handler(lambda loop, context: reported.append(context["exception"]))
            async with aio.Client(self.server.socket_path) as client:
                errors = [ValueError("once"), OSError(5, "mine")]

                def fail():
                    if errors:
                        raise errors.pop(0)
                client.on_silence(0.02, fail)
                task = asyncio.create_task(client.do("slow", "x"))
                while len(reported) < 2:
                    await asyncio.sleep(0.01)
                task.cancel()
                return (await asyncio.wait_for(client.do("echo", "on"), e2e.LIMIT)).data
        self.assertEqual(asyncio.run(main()), b"on")
        self.assertEqual([str(error) for error in reported], ["once", "[Errno 5] mine"])

    def test_a_client_may_be_closed_after_its_loop(self):
        from troupe import aio
        self.started_with("slow")
        loop = asyncio.new_event_loop()
        loop.set_exception_handler(lambda *_: None)  # a task is pending when it ends

        async def main():
            client = aio.Client(self.server.socket_path)
            task = loop.create_task(client.do("slow", "x"))
            await asyncio.to_thread(self.wait_published, "slow/0")
            return client, task
        client, task = loop.run_until_complete(main())
        loop.run_until_complete(loop.shutdown_default_executor())
        loop.close()
        client.close()
        client.close()
        self.assertFalse(task.done())

    def test_errors_have_the_sentences_of_the_other_client(self):
        from troupe import aio
        self.started_with("echo")

        async def main():
            async with aio.Client(self.server.socket_path) as client:
                said = []
                for wanted in (client.do("ehco"), client.job("none"), client.wait("none"), client.do("echo", id="no id")):
                    try:
                        await wanted
                    except OSError as error:
                        said.append(error.strerror)
                await client.pause_jobs("echo")
                return said
        said = asyncio.run(main())
        self.assertEqual(said[0], "there is no group, cell or worker 'ehco'; did you mean 'echo'?")
        self.assertEqual(said[1], said[2])
        self.assertIn("there is no job 'none'", said[1])
        self.assertIn("group 'echo' refused the job: id: 1 to 64 characters", said[3])

    def test_an_idle_client_takes_no_time(self):
        self.started_with("echo")

        async def main(client):
            await client.do("echo", "once")
            before = time.process_time()
            await asyncio.sleep(0.5)
            self.assertLess(time.process_time() - before, 0.1)
        self.run_with(main)
