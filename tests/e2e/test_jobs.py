# SPDX-License-Identifier: MIT
"""Jobs: accepted once, attempted until they end, ended exactly once."""
import json
import os
import signal
import subprocess
import unittest
from pathlib import Path

from troupe import (ACTOR, LIMIT, SANITIZED, TROUPE_EXEC, Bell, TestCase, Varlink, helper, ini,
                    limit_address_space, text)

FAST = {"BackoffMinSec": "1ms", "BackoffMaxSec": "5ms"}


def actor(size=1, **sections):
    return ini(ACTOR, Pool={"Size": size}, **{"Jobs": FAST, "Restart": {"StartLimitBurst": 0, "MinSec": "1ms",
                                                                       "MaxSec": "5ms"}, **sections})


class Ends(TestCase):
    def setUp(self):
        self.s = self.started({"actor": actor()})

    def test_J1_create_answers_with_a_random_id_before_the_job_has_run(self):
        bell = Bell(self.s, "bell")
        first = self.s.create("actor", f"wait {bell.path}\necho done")
        second = self.s.create("actor", "echo second")
        for id in first, second:
            self.assertRegex(id, r"\A[0-9a-f]{32}\Z")
        self.assertNotEqual(first, second)
        self.assertEqual(self.s.job(second)["state"], "queued")
        bell.ring()
        self.assertEqual(self.s.wait_job(first)["result"], text("done"))
        self.assertEqual(self.s.wait_job(second)["result"], text("second"))

    def test_J1_do_honours_options_answers_with_the_result_and_keeps_nothing(self):
        job = self.s.do("actor", "echo hello", id="greeting")
        self.assertEqual((job["id"], job["state"], job["result"]), ("greeting", "succeeded", text("hello")))
        self.refused("NoSuchJob", self.s.job, "greeting")
        job = self.s.do("actor", "before 9 retry 1 no", max_retries=2, backoff_min_usec=1000, backoff_max_usec=2000)
        self.assertEqual((job["state"], job["attempt"], job["failed_attempts"], job["max_attempts"]), ("dead", 3, 3, 3))

    def test_J1_do_with_more_tells_of_each_change_of_state(self):
        with Varlink(self.s.socket_path) as connection:
            states = [answer["job"]["state"] for answer in
                      connection.more("Do", group="actor", payload=text("before 2 crash kill\necho x"))]
        self.assertEqual(states[-1], "succeeded")
        self.assertIn("running", states)
        self.assertIn("backoff", states)

    def test_J1_an_empty_or_malformed_id_is_refused(self):
        for id in "", "-x", ".x", "a b", "ä", "x" * 65, "a/b":
            with self.subTest(id=id):
                self.refused("BadId", self.s.create, "actor", "echo", id=id)
        self.assertEqual(self.s.do("actor", "echo", id="A-z_0.9:@")["state"], "succeeded")

    def test_J3_an_error_is_retried_with_the_same_payload_under_a_new_number_and_a_crash_in_another_process(self):
        job = self.s.do("actor", "before 3 retry 5 not yet\nattempt", max_retries=5)
        self.assertEqual((job["state"], job["attempt"], job["result"]), ("succeeded", 3, text("3")))
        self.assertEqual([attempt["number"] for attempt in job["attempts"]][:2], [1, 2])
        job = self.s.do("actor", "before 2 crash segv\nattempt")
        self.assertEqual((job["state"], job["result"]), ("succeeded", text("2")))
        self.assertEqual(self.s.worker("actor/0")["generation"], 2)

    def test_J5_cancelling_raises_the_flag_and_the_waiting_do_is_answered(self):
        with Varlink(self.s.socket_path) as asker:
            asker.send("Do", {"group": "actor", "payload": text("until-cancelled"), "options": {"id": "c"}})
            self.s.wait_for(lambda: self.s.worker("actor/0")["state"] == "busy" or self.running("c"))
            self.s.call("Cancel", id="c")
            job = asker.reply()[0]["job"]
        self.assertEqual((job["state"], job["attempt"]), ("cancelled", 1))
        self.assertEqual(self.s.worker("actor/0")["generation"], 1)

    def running(self, id):
        return any(job["id"] == id and job["state"] == "running" for job in self.s.call("List")["jobs"])

    def test_J5_a_second_request_is_told_so(self):
        bell = Bell(self.s, "bell")
        started = Bell(self.s, "started")
        self.s.create("actor", f"ring {started.path}\nwait {bell.path}\ncancelled", id="c")
        started.wait()
        self.s.call("Cancel", id="c")
        self.refused("CancelAlreadyRequested", self.s.call, "Cancel", id="c")
        self.assertTrue(self.s.job("c")["cancel_requested"])
        bell.ring()
        self.assertEqual(self.s.wait_job("c")["state"], "cancelled")

    def test_J6_the_state_of_a_job_is_read_while_its_worker_hangs_in_a_system_call(self):
        _, bell = self.s.busy("actor", "echo", first="state half way\n", id="j")
        self.assertEqual(self.s.job("j")["published"], text("half way"))
        self.assertEqual(self.s.worker("actor/0")["published"], text("half way"))
        [job] = self.s.call("List", group="actor")["jobs"]
        self.assertEqual((job["state"], job["published"]), ("running", text("half way")))
        bell.ring()
        self.s.wait_job("j")

    def test_J6_what_an_earlier_job_published_is_not_shown_as_this_ones(self):
        bell, go = Bell(self.s, "bell"), Bell(self.s, "go")
        self.s.do("actor", "state of another\necho x")
        self.s.create("actor", f"ring {bell.path}\nwait {go.path}\nstate mine\nring {bell.path}\nwait {go.path}\n"
                      "crash kill", id="j", max_retries=0)
        bell.wait()
        job = self.s.job("j")
        self.assertEqual((job["state"], job.get("published")), ("running", None))
        self.assertNotIn("missing", job)
        go.ring()
        bell.wait()
        self.assertEqual(self.s.job("j")["published"], text("mine"))
        go.ring()
        self.assertEqual(self.s.wait_job("j")["published"], text("mine"))
        self.s.do("actor", "state of another\necho x")
        job = self.s.do("actor", "crash kill", max_retries=0)
        self.assertEqual((job["state"], job.get("published")), ("dead", None))

    def test_P6_that_a_worker_has_begun_is_seen_in_every_attempt(self):
        with Varlink(self.s.socket_path) as connection:
            told = [(answer["job"]["state"], answer["job"]["attempt"], "started_at" in answer["job"]) for answer in
                    connection.more("Do", group="actor", payload=text("before 2 retry 1 no\necho x"))]
        self.assertEqual([entry for entry in told if entry[0] == "running"],
                         [("running", 1, False), ("running", 1, True), ("running", 2, False), ("running", 2, True)])

    def test_a_client_that_vanishes_in_the_middle_of_do_harms_nothing(self):
        started = Bell(self.s, "started")
        bell = Bell(self.s, "bell")
        with Varlink(self.s.socket_path) as asker:
            asker.send("Do", {"group": "actor", "options": {"id": "left"},
                              "payload": text(f"ring {started.path}\nwait {bell.path}\necho")})
            started.wait()
        bell.ring()
        self.assertEqual(self.s.do("actor", "echo next")["state"], "succeeded")
        self.refused("NoSuchJob", self.s.job, "left")

    def test_create_without_asking_for_an_answer_is_carried_out(self):
        with Varlink(self.s.socket_path) as connection:
            connection.send("Create", {"group": "actor", "payload": text("echo 1"), "options": {"id": "silent"}},
                            oneway=True)
            connection.send("Wait", {"id": "silent"})
            self.assertEqual(connection.reply()[0]["job"]["result"], text("1"))

    def test_bytes_and_results_that_are_no_text_travel_as_base64(self):
        job = self.s.call("Do", group="actor", payload={"encoding": "base64", "data": "c3VtCgoA/w=="})["job"]
        self.assertRegex(job["result"]["data"], r"\A7 [0-9a-f]{16}\Z")
        job = self.s.do("actor", "blob 252")
        self.assertEqual(job["result"]["encoding"], "base64")

    @unittest.skipIf(SANITIZED, "a sanitizer needs more address space than the limit leaves")
    def test_an_attempt_without_address_space_for_the_payload_fails_with_that_reason(self):
        pid = self.s.worker("actor/0")["pid"]
        limit_address_space(pid, 1 << 18)
        job = self.s.do("actor", "x" * 700000, max_retries=1)
        self.assertEqual((job["state"], job["attempt"]), ("dead", 2))
        self.assertIn("payload", job["reason"])
        self.assertEqual(self.s.do("actor", "echo fine")["result"], text("fine"))
        self.assertEqual(self.s.worker("actor/0")["pid"], pid)

    def test_several_jobs_at_a_time_come_back_to_those_who_asked(self):
        with Varlink(self.s.socket_path) as connection:
            for i in range(200):
                connection.send("Do", {"group": "actor", "payload": text(f"echo {i}")})
            self.assertEqual([connection.reply()[0]["job"]["result"]["data"] for i in range(200)],
                             [str(i) for i in range(200)])


class Queues(TestCase):
    def test_a_lone_shortest_pause_above_the_groups_longest_is_not_cut(self):
        s = self.started({"actor": actor(Jobs={"BackoffMinSec": "1ms", "BackoffMaxSec": "5ms", "BackoffRandom": 0})})
        job = s.create("actor", "retry 1 wrong", max_retries=1, backoff_min_usec=3600 * 1000000)
        s.until(lambda: s.job(job)["state"] == "backoff")
        self.assertGreater(s.job(job)["next_attempt_at"] - s.job(job)["attempts"][0]["at"], 3500 * 1000000)
        for option in "backoff_min_usec", "backoff_max_usec":
            self.refused("BadOption", s.create, "actor", "echo", **{option: 2 * 86400 * 1000000})

    def test_Q12_a_worker_chooses_the_pause_before_the_next_attempt(self):
        slow = {"BackoffMinSec": "1h", "BackoffMaxSec": "1h", "MaxRetries": 1}
        chooses = "echo busy >&2; echo Retry-After: 0 >&2; exit $((2 - {attempt}))"
        s = self.started({"actor": ini(ACTOR, Jobs=slow), "command": ini(f"{TROUPE_EXEC} -- /bin/sh -c '{chooses}'", Jobs=slow)})
        for group in "actor", "command":
            job = s.do(group, "before 2 later 0 again\necho")
            self.assertEqual((job["state"], job["attempt"]), ("succeeded", 2))
        dead = s.do("actor", "later 0 never")
        self.assertEqual((dead["state"], dead["failed_attempts"], dead["reason"]), ("dead", 2, "never"))
        far = s.create("actor", "later 31622401 too far")
        s.until(lambda: s.job(far)["state"] == "backoff")
        self.assertIn("Invalid argument", s.job(far)["attempts"][0]["detail"])

    def test_job_events_tell_every_step_to_who_asks_for_them_alone(self):
        s = self.started({"actor": actor(), "other": actor()})
        with Varlink(s.socket_path) as all_of_them, Varlink(s.socket_path) as without:
            all_of_them.send("Watch", {"target": "actor", "jobs": True}, more=True)
            without.send("Watch", {"target": "actor"}, more=True)
            s.call("GetInfo")
            s.do("other", "echo", id="foreign")
            s.do("actor", "before 2 retry 1 once\necho", id="steps", max_retries=1)
            s.do("actor", "retry 1 for good", id="doomed", max_retries=0)
            seen = []
            while not seen or (seen[-1]["type"], seen[-1]["job"]) != ("job.ended", "doomed"):
                seen += all_of_them.reply()[0]["events"]
            self.assertEqual([(e["type"], e["job_state"], e.get("attempt", 0)) for e in seen if e["job"] == "steps"],
                             [("job.accepted", "queued", 0), ("job.started", "running", 1), ("job.retried", "running", 1),
                              ("job.started", "running", 2), ("job.ended", "succeeded", 2)])
            self.assertEqual([e["type"] for e in seen if e["job"] == "doomed"],
                             ["job.accepted", "job.started", "job.dead", "job.ended"])
            self.assertEqual(seen[1]["worker"], "actor/0")
            self.assertEqual(without.reply()[0]["events"][0]["type"], "job.dead")
        self.assertEqual({e["type"] for e in s.call("Watch")["events"] if e["type"].startswith("job.")}, {"job.dead"})
        self.assertNotIn("is begun by", s.log())

    def test_a_deadline_covers_queue_retries_and_work(self):
        s = self.started({"actor": actor(Jobs={"QueueMax": 2}, Worker={"TimeoutStopSec": "100ms"})})
        never = Bell(s, "never")
        for payload, options in (("until-cancelled", {}), (f"wait {never.path}", {}), ("echo", {"delay_usec": 3600 * 1000000}),
                                 ("retry 1 again", {"max_retries": 9, "backoff_min_usec": 3600 * 1000000})):
            with self.subTest(payload=payload):
                job = s.do("actor", payload, deadline_usec=200000, **options)
                self.assertEqual((job["state"], job["cause"], job["reason"]),
                                 ("cancelled", "deadline", "its deadline is over"))
        s.call("Pause", target="actor")
        self.assertEqual(s.do("actor", "echo", deadline_usec=1000)["cause"], "deadline")
        for _ in range(2):
            s.create("actor", "echo")
        self.refused("Busy", s.do, "actor", "echo", deadline_usec=1000, wait_usec=3600 * 1000000)
        s.call("Resume", target="actor")
        self.assertEqual(s.do("actor", "echo in time", deadline_usec=3600 * 1000000)["result"], text("in time"))
        s.call("Pause", target="actor")
        done = s.ctl("do", "actor", "-d", "echo", "--deadline", "10ms")
        self.assertEqual((done.returncode, done.stdout), (8, ""))
        self.assertIn("its deadline is over", done.stderr)

    def query(self, s, method, member, **parameters):
        return subprocess.run([helper("query"), s.socket_path, "io.troupe." + method, member, json.dumps(parameters)], capture_output=True,
                              text=True, timeout=LIMIT)

    def records(self, s, method, member, **parameters):
        process = self.query(s, method, member, **parameters)
        self.assertEqual((process.returncode, process.stderr), (0, ""))
        return [line.split(" ", 3) for line in process.stdout.splitlines()[1:]]

    def test_C_programs_see_jobs_lists_and_dead_letters(self):
        s = self.started({"actor": actor(), "other": actor()})
        s.do("actor", "retry 1 \u00e9\u0022\\", max_retries=0)
        s.call("Pause", target="actor")
        many = [s.create("actor", "echo", id=f"job-{i}") for i in range(1200)]
        s.wait_job(s.create("other", "echo done", id="over"))
        [job] = self.records(s, "Jobs.Get", "job", id="over")
        self.assertEqual((job[:3], json.loads(job[3])["result"]), (["over", "succeeded", "1"], text("done")))
        self.assertEqual(sorted(record[0] for record in self.records(s, "Jobs.List", "jobs", group="actor")), sorted(many))
        self.assertEqual(len(self.records(s, "Jobs.List", "jobs")), 1200)
        self.assertEqual([record[:2] for record in self.records(s, "Jobs.List", "jobs", group="other", ended=True)], [["over", "succeeded"]])
        [letter] = self.records(s, "Actors.ListDeadLetters", "letters", filter={"recipient": "actor"})
        self.assertEqual(json.loads(letter[3])["reason"], "job")
        self.assertEqual(self.records(s, "Actors.ListDeadLetters", "letters", filter={"recipient": "other"}), [])
        groups = [json.loads(record[3]) for record in self.records(s, "Supervisor.GetMetrics", "groups")]
        self.assertEqual([(group["name"], group["queued"], group["ended"]["succeeded"]) for group in groups],
                         [("actor", 1200, 0), ("other", 0, 1)])
        for method, member, parameters, error in (("Jobs.Get", "job", {"id": "unknown"}, "ESRCH"), ("Jobs.List", "jobs", {"group": "nowhere"}, "ENOENT")):
            process = self.query(s, method, member, **parameters)
            self.assertEqual((process.stderr, process.returncode), (error + "\n", 1))

    def test_C_programs_see_what_jobs_wait_for_and_how_workers_died(self):
        s = self.started({"actor": ini(ACTOR, Restart={"MinSec": "1ms", "StartLimitBurst": 1}, Jobs={"BackoffMinSec": "1h", "BackoffMaxSec": "1h"}),
                          "other": actor(Jobs={"MaxRetries": 0})})
        s.do("other", "crash kill", id="one")
        s.do("other", "crash segv", id="two")
        [death] = self.records(s, "Supervisor.ListDeaths", "deaths", job="two")
        self.assertEqual(json.loads(death[3])["signal"], "SIGSEGV")
        self.assertEqual([json.loads(death[3])["job"] for death in self.records(s, "Supervisor.ListDeaths", "deaths", target="other")], ["two", "one"])
        self.assertEqual(self.records(s, "Supervisor.ListDeaths", "deaths", target="actor"), [])
        s.wait_worker("other/0", "idle")
        self.assertEqual(self.records(s, "Supervisor.Explain", "waits", target="other"), [])
        s.create("actor", "retry 1 again", id="retried")
        s.until(lambda: s.job("retried")["state"] == "backoff")
        for generation in 1, 2, 3:  # the first has done something, so its death does not count
            os.kill(s.wait_for(lambda: (lambda w: w["generation"] == generation and w["state"] == "idle" and w)(
                s.worker("actor/0")), "actor")["pid"], signal.SIGKILL)
        s.wait_worker("actor/0", "failed")
        s.create("actor", "echo", id="queued")

        def causes(method, **parameters):
            return [json.loads(wait[3])["cause"] for wait in self.records(s, method, "waits", **parameters)]
        self.assertEqual(causes("Supervisor.Explain", target="actor"), ["failed"])
        self.assertEqual(causes("Jobs.Explain", id="queued"), ["failed"])
        self.assertEqual(causes("Jobs.Explain", id="retried"), ["retry", "failed"])
        self.assertEqual(self.query(s, "Jobs.Explain", "waits", id="unknown").stderr, "ESRCH\n")

    def test_a_query_with_several_answers_ends_with_the_last_one(self):
        s = self.started({"actor": actor()})
        id, go = s.busy("actor")
        with subprocess.Popen([helper("query"), s.socket_path, "io.troupe.Jobs.Get", "job", json.dumps({"id": id}), "9"],
                              stdout=subprocess.PIPE, text=True) as process:
            self.assertEqual(process.stdout.readline(), "begun\n")
            self.assertIn("running", process.stdout.readline())
            go.ring()
            out, _ = process.communicate(timeout=LIMIT)
        self.assertEqual((process.returncode, out.split()[1]), (0, "succeeded"))

    def test_C_programs_follow_the_jobs_of_a_group(self):
        s = self.started({"actor": actor(), "other": actor()})
        process = subprocess.Popen([helper("query"), s.socket_path, "io.troupe.Supervisor.Watch", "events", '{"target":"actor","jobs":true}', "6"], stdout=subprocess.PIPE, text=True)
        self.addCleanup(process.communicate)
        self.addCleanup(process.kill)
        while process.poll() is None:  # it watches at some point, and six events are two jobs
            s.do("other", "echo")
            s.do("actor", "echo")
        lines = [line.split(" ", 3)[:2] for line in process.stdout.read().splitlines()[1:]]
        of = {id: [type for job, type in lines if job == id] for id, _ in lines}
        self.assertIn(["job.accepted", "job.started", "job.ended"], of.values())

    def test_list_shows_live_jobs_and_kept_results(self):
        s = self.started({"actor": actor(), "other": actor()})
        s.wait_job(s.create("actor", "echo", id="over"))
        s.call("Pause", target="other")
        s.create("other", "echo", id="live")
        self.assertEqual([j["id"] for j in s.call("List")["jobs"]], ["live"])
        both = s.call("List", ended=True)
        self.assertEqual({j["id"] for j in both["jobs"]}, {"over", "live"})
        for state, ids in ("queued", ["live"]), ("succeeded", ["over"]), ("running", []):
            self.assertEqual([j["id"] for j in s.call("List", state=state)["jobs"]], ids)
        self.assertIn("queued", self.refused("BadOption", s.call, "List", state="lost")["allowed"])
        self.assertEqual(s.call("List", group="actor")["jobs"], [])
        self.assertEqual(len(s.call("List", ended=True, limit=1)["jobs"]), 1)
        self.assertEqual(sorted(j["id"] for j in s.pages("List", "jobs", limit=1, ended=True)[0]), ["live", "over"])
        self.refused("NoSuchGroup", s.call, "List", group="nowhere")

    def test_what_is_there_all_the_time_is_listed_once_whatever_comes_and_goes(self):
        """Jobs change state, end and begin between the pages; every job that stays is listed."""
        s = self.started({"actor": actor(2), "quick": actor(2)})
        bell = Bell(s, "bell")
        s.call("Pause", target="actor")
        stay = [s.create("actor", f"wait {bell.path}", id=f"stay-{i}") for i in range(30)]
        seen, cursor = [], {}
        while True:
            answer = s.call("List", limit=3, **cursor)
            seen += [job["id"] for job in answer["jobs"]]
            if "next" not in answer:
                break
            cursor = {"cursor": answer["next"]}
            s.wait_job(s.create("quick", "echo"))
            s.create("quick", "echo")
            s.call("Resume", target="actor")
        self.assertEqual(sorted(id for id in seen if id.startswith("stay")), sorted(stay))
        self.assertEqual(len(seen), len(set(seen)))

    def test_a_job_is_withdrawn_only_while_no_worker_has_it(self):
        for durable in "no", "yes":
            s = self.started({"actor": ini(ACTOR, Jobs={"Durable": durable})}, state=True)
            bell, started = Bell(s, "bell"), Bell(s, "started")
            s.create("actor", f"ring {started.path}\nwait {bell.path}\necho done", id="running")
            started.wait()
            s.create("actor", "echo never", id="queued")
            s.create("actor", "echo never", id="delayed", delay_usec=3600 * 10**6)
            ring = subprocess.run([helper("client"), s.socket_path, "withdraw", "running", "gone", "queued", "delayed"],
                                  capture_output=True, text=True, check=False, timeout=LIMIT)
            self.assertEqual(ring.stdout.split(), ["0"] * 4)
            for id in "queued", "delayed":
                job = s.wait_job(id)
                self.assertEqual((job["state"], job["cause"], job["reason"]),
                                 ("cancelled", "withdrawn", f"withdrawn by uid {os.geteuid()}"))
            bell.ring()
            self.assertEqual(s.wait_job("running")["result"], text("done"))
            s.stop()


class Scopes(TestCase):
    def test_J7_each_incarnation_is_set_up_before_its_first_job_and_torn_down_at_its_end(self):
        s = self.supervisor()
        path = s.path("scope")
        s.write("actor.group", actor(Group={"Environment": f"ACTOR_SCOPE={path}"}))
        s.start()
        s.do("actor", "before 2 crash kill\necho")
        s.do("actor", "echo")
        s.stop()
        self.assertEqual(Path(path).read_text(encoding="ascii").splitlines(), ["up actor/0 1", "up actor/0 2", "down actor/0 2"])

    def test_a_reload_decides_how_long_jobs_that_wait_may_run(self):
        s = self.started({"actor": actor(Jobs={"MaxRetries": 0})})
        s.call("Pause", target="actor")
        job = s.create("actor", "until-cancelled")
        s.write("actor.group", actor(Jobs={"MaxRetries": 0, "TimeoutSec": "10ms"}))
        s.call("Reload")
        s.call("Resume", target="actor")
        self.assertEqual(s.wait_job(job)["state"], "dead")

    def test_a_time_out_of_0_is_the_groups_and_one_of_minus_1_is_none(self):
        s = self.started({"actor": actor(size=2, Jobs={"MaxRetries": 0, "TimeoutSec": "100ms"})})
        bell, never, begun = Bell(s, "bell"), Bell(s, "never"), Bell(s, "begun")
        id = s.create("actor", f"ring {begun.path}\nwait {bell.path}\necho done", timeout_usec=-1)
        begun.wait()
        for options in {}, {"timeout_usec": 0}:
            self.assertEqual(s.do("actor", f"wait {never.path}", **options)["state"], "dead")
        self.assertEqual([death["cause"] for death in s.deaths("actor")], ["job_timeout"] * 2)
        bell.ring()
        self.assertEqual(s.wait_job(id)["state"], "succeeded")

    def test_a_worker_that_gives_up_a_job_at_its_time_out_is_no_other_cause(self):
        s = self.started({"actor": actor(Jobs={"MaxRetries": 0, "TimeoutSec": "50ms"}, Worker={"TimeoutStopSec": "100ms"})})
        job = s.do("actor", "deaf\nuntil-cancelled")
        self.assertEqual((job["state"], job["reason"].split(":")[0]), ("dead", "its job ran out of time"))

    def test_J7_a_time_out_and_a_watchdog_tear_the_scope_down_as_far_as_the_kernel_lets_them(self):
        s = self.supervisor()
        path = s.path("scope")
        s.write("actor.group", actor(Group={"Environment": f"ACTOR_SCOPE={path} ACTOR_SCOPE_SIGNALS=1"},
                                     Worker={"WatchdogSec": "1s", "TimeoutStopSec": "1min"}, Jobs={"MaxRetries": 0}))
        s.start()
        never = Bell(s, "never")
        for number, options in enumerate(({"timeout_usec": 50000}, {}), 1):
            s.do("actor", f"wait {never.path}", **options)
            self.assertIn(f"down actor/0 {number}", Path(path).read_text(encoding="utf-8").splitlines())
        self.assertEqual([death["cause"] for death in s.deaths("actor")], ["watchdog", "job_timeout"])
        self.assertEqual([death["signal"] for death in s.deaths("actor")], ["SIGABRT", "SIGTERM"])

    def test_J7_a_set_up_that_fails_never_gets_a_job(self):
        s = self.supervisor({"actor": actor(Group={"Environment": "ACTOR_SET_UP_FAILS=1"},
                                            Restart={"StartLimitBurst": 2, "MinSec": "1ms"})})
        s.spawn()
        self.wait_socket(s)
        s.wait_worker("actor/0", "failed")
        self.assertEqual(s.group("actor")["state"], "failed")

    def wait_socket(self, s):
        """The socket answers before readiness is announced."""
        while True:
            try:
                with Varlink(s.socket_path):
                    return
            except (FileNotFoundError, ConnectionRefusedError):
                self.assertIsNone(s.process.poll(), "trouped has ended")
                os.sched_yield()


class LargePayloads(TestCase):
    def test_a_payload_above_inline_max_arrives_whole(self):
        s = self.started({"actor": actor(Worker={"InlineMax": "4K"})})
        for size in 3000, 4090, 5000, 500000:
            data = "sum\n\n" + "x" * size
            hash = 14695981039346656037
            for byte in data.encode():
                hash = (hash ^ byte) * 1099511628211 & (1 << 64) - 1
            self.assertEqual(s.do("actor", data)["result"]["data"], f"{size + 5} {hash:016x}")

    def test_results_above_inline_max_arrive_whole(self):
        s = self.started({"actor": actor(Worker={"InlineMax": "4K"})})
        import base64
        for size in 4095, 4097, 100000:
            got = base64.b64decode(s.do("actor", f"blob {size}")["result"]["data"])
            self.assertEqual(got, bytes(i % 251 for i in range(size)))
