# SPDX-License-Identifier: MIT
"""troupectl as people and scripts use it: its output and exit status."""
import json
import os
import select
import signal
import subprocess
import tempfile
import unittest
from pathlib import Path

from screen import Screen
from troupe import ACTOR, LIMIT, TROUPECTL, TROUPE_EXEC, Bell, TestCase, end_process, ini, text

os.environ["LC_ALL"] = "C.UTF-8"  # marks and lines as most people see them

FAST = {"MaxRetries": 1, "BackoffMinSec": "10ms", "BackoffMaxSec": "20ms"}
FOREVER = {"StartLimitBurst": 0, "MinSec": "10ms", "MaxSec": "20ms"}

ACTORS = "io.troupe.Actors."


class Ctl(TestCase):
    def setUp(self):
        self.s = self.started({
            "actor": ini(ACTOR, Group={"Description": "Does as it is told"}, Pool={"Size": 4}, Jobs=FAST,
                         Restart=FOREVER, Resources={"LimitCORE": 0}),
            "sleep": ini("/bin/sleep infinity", Group={"Type": "service"}),
        })

    def exits(self, status, *arguments, **options):
        process = self.s.ctl(*arguments, **options)
        self.assertEqual(process.returncode, status, f"{arguments}: {process.stdout}{process.stderr}")
        return process

    def spawn(self, *arguments, **options):
        process = subprocess.Popen([TROUPECTL, "--socket", self.s.socket_path, *arguments],
                                   stdin=options.pop("stdin", subprocess.PIPE), stdout=subprocess.PIPE,
                                   stderr=subprocess.PIPE, **options)
        self.addCleanup(end_process, process)
        return process


class Status(Ctl):
    def test_it_tells_of_everything(self):
        out = self.exits(0, "status").stdout
        self.assertRegex(out, rf"● trouped \S+: running(, waits with epoll)?, up .*, pid {self.s.process.pid}, 2 groups, 5 workers")
        self.assertRegex(out, r"(?m)^GROUP +STATE +UP +RUNNING +QUEUED +DEAD +DEATHS$")
        self.assertRegex(out, r"(?m)^● actor +running +4/4 +0 +0 +0 +0 +Does as it is told$")
        self.assertRegex(out, r"(?m)^● sleep +running +1/1 +- +- +- +0$")
        out = self.exits(0, "status", "--all").stdout
        self.assertIn("● actor - Does as it is told: running\n   Workers: 4 of 4 up: 4 idle\n", out)
        self.assertIn("● sleep: running (service)\n   Workers: 1 of 1 up: 1 up\n", out)

    def test_U2_a_dead_job_is_found_by_its_id_in_every_verb(self):
        self.exits(1, "do", "actor", "--data", "complain the last words\ncrash abort", "--retries", "0", "--id", "doomed",
                   "--key", "acme")
        number = self.s.call(ACTORS + "ListDeadLetters", filter={"job": "doomed"})["letters"][0]["id"]
        job = self.s.job("doomed")
        self.assertEqual((job["state"], job["dead_letter"], job["group"], job["key"], job["failed_attempts"], job["max_attempts"]),
                         ("dead", number, "actor", "acme", 1, 1))
        self.assertEqual((job["payload_start"]["data"], job["attempts"][0]["cause"]),
                         ("complain the last words\ncrash abort", "signal"))
        self.assertEqual(self.s.call("io.troupe.Jobs.Explain", id="doomed"), {"state": "dead", "waits": []})
        for verb in ("job",), ("why",):
            self.assertRegex(self.s.ctl(*verb, "doomed").stdout,
                             rf"✗ doomed: dead, killed by SIGABRT(.*\n)*.*dead letter {number}: 'troupectl dead-letters show {number}'")
        self.assertIn("    Job: doomed, attempt 1\n", self.exits(0, "dead-letters", "show", "doomed").stdout)
        self.assertIn("the last words\n", self.exits(0, "logs", "doomed").stdout)
        self.assertIn("has already ended: dead", self.exits(1, "cancel", "doomed").stderr)
        self.assertIn("is dead: killed by SIGABRT", self.exits(1, "wait", "doomed").stderr)
        self.exits(0, "retry", "doomed")
        self.exits(5, "job", "doomed")
        self.exits(5, "dead-letters", "show", "doomed")

    def test_U2_a_job_shows_its_key_its_priority_and_how_its_payload_begins(self):
        long = "complain " + 20 * "äöü"
        self.exits(0, "create", "actor", "--data", long, "--id", "long", "--key", "acme", "--priority", "7", "--delay", "1h")
        out = self.s.ctl("job", "long").stdout
        self.assertIn("       Key: acme\n  Priority: 7\n", out)
        self.assertRegex(out, "   Payload: 129 B: complain (äöü){8}ä …\n")
        self.assertNotIn("Missing", out)
        self.exits(5, "dead-letters", "show", "long")
        self.exits(0, "cancel", "long")

    def test_a_kept_result_of_any_size_is_written(self):
        self.s.write("large.group", ini(f"{TROUPE_EXEC} -- head -c 6000000 /dev/zero"))
        self.exits(0, "reload")
        self.exits(0, "create", "large", "--id", "j")
        self.assertEqual(self.exits(0, "wait", "j").stdout, 6000000 * "\0")
        self.assertIn("'troupectl wait' writes them", self.exits(0, "job", "j").stdout)

    def test_reasons_have_their_lines(self):
        self.s.write("two-lines.group", ini(f"{TROUPE_EXEC} -- sh -c 'printf \"one\\\\ntwo\\\\n\" >&2; exit 1'", Jobs={"MaxRetries": 0}))
        self.exits(0, "reload")
        self.assertRegex(self.exits(1, "do", "two-lines", "--id", "j").stderr, r"is dead.*: exited with status 1: one\n  two\n$")
        self.assertIn("exited with status 1: one …\n  │ two\n", self.s.ctl("job", "j").stdout)
        self.assertIn("exited with status 1: one …\n            │ two\n", self.exits(0, "dead-letters", "show", "j").stdout)
        self.assertRegex(self.exits(0, "dead-letters").stdout, r"(?m)exited with status 1: one …$")

    def test_json_is_the_reply_itself(self):
        for arguments, method, parameters in ((("status", "sleep"), "GetStatus", {"target": "sleep"}),
                                              (("jobs",), "List", {}), (("logs", "actor"), "GetLog", {"target": "actor"}),
                                              (("deaths",), "ListDeaths", {}), (("events",), "Watch", {})):
            with self.subTest(verb=arguments):
                self.assertEqual(self.s.ctl_json(*arguments), self.s.call(method, **parameters))

    def test_a_worker_that_is_down_stands_out(self):
        self.s.write("broken.group", ini("/bin/sh -c 'echo no room >&2; exit 3'", Group={"Type": "service"},
                                         Restart={"StartLimitBurst": 1}))
        self.assertEqual(self.exits(0, "reload").stdout, "added broken\n")
        self.s.wait_worker("broken/0", "failed")
        out = self.exits(1, "status", "broken").stdout
        self.assertRegex(out, r"✗ broken: failed \(service\) – 1 worker given up\n   Workers: 0 of 1 up: 1 failed\n")
        self.assertIn("troupectl reset broken\n", out)
        out = self.exits(1, "status").stdout
        self.assertIn("Trouble: 1 failed\n", out)
        self.assertRegex(out, r"(?ms)^✗ broken +failed +0/1 .* 1 worker given up, exited with status 3$.*^● actor ")
        out = self.exits(1, "status", "broken").stdout
        self.assertRegex(out, r"✗ broken/0  failed for \S+  \d restarts?  exited with status 3 \S+( ago)?\n     │ no room\n")
        self.exits(1, "status", "broken/0", "actor")
        self.exits(0, "status", "actor/0", "actor")
        self.exits(5, "status", "broken", "nothing")

    def test_without_utf8_it_is_ascii(self):
        out = self.exits(0, "status", env={**os.environ, "LC_ALL": "C"}).stdout
        self.assertTrue(out.isascii(), out)
        self.assertRegex(out, r"(?m)^\* actor +running ")

    def test_a_death_is_reported(self):
        self.exits(1, "do", "actor", "--data", "complain the last words\ncrash abort", "--retries", "0", "--id", "doomed")
        out = self.exits(0, "deaths", "actor", "--limit", "1").stdout
        self.assertRegex(out, r"✗ actor/\d: killed by SIGABRT")
        self.assertIn("Job: doomed, attempt 1\n", out)
        self.assertIn("│ the last words\n", out)
        self.assertRegex(self.exits(0, "events", "actor").stdout, r"worker\.died +actor/\d died: killed by SIGABRT")

    def test_events_can_be_followed(self):
        follower = self.spawn("events", "--follow", "--json")
        self.assertIn("events", json.loads(follower.stdout.readline()))
        self.exits(0, "pause", "actor")
        while "group.paused" not in [e["type"] for e in json.loads(follower.stdout.readline())["events"]]:
            pass

    def test_the_log_can_be_followed(self):
        self.exits(0, "do", "actor", "--data", "complain before")
        follower = self.spawn("logs", "actor", "--follow")
        self.assertRegex(follower.stdout.readline(), rb"^actor/\d: before\n$")
        for words in b"first", b"second":
            self.exits(0, "do", "actor", "--data", "complain " + words.decode())
            self.assertRegex(follower.stdout.readline(), rb"^actor/\d: " + words + rb"\n$")

    def test_following_events_goes_on_after_a_restart_and_misses_nothing(self):
        follower = self.spawn("events", "--follow", "--json")

        def until(kind):
            types = []
            while kind not in types:
                types += [e["type"] for e in json.loads(follower.stdout.readline())["events"]]
            return types
        self.assertEqual(until("supervisor.ready").count("worker.ready"), 5)
        self.s.stop()
        self.s.start()
        self.assertEqual(until("supervisor.ready").count("worker.ready"), 5)  # from the beginning
        self.exits(0, "pause", "actor")
        until("group.paused")
        follower.terminate()
        _, err = follower.communicate(timeout=LIMIT)
        self.assertRegex(err.decode(), r"^troupectl: the connection to the supervisor is lost; waiting for it\n"
                         rf"troupectl: trouped was started again: pid {self.s.process.pid}\n$")

    def test_events_behind_a_known_one_are_shown(self):
        events, _ = self.s.pages("Watch", "events", limit=2)
        self.assertEqual([e["id"] for e in events], list(range(1, len(events) + 1)))
        self.assertEqual(self.s.call("Watch", cursor=events[-2]["id"])["events"], events[-1:])
        with self.s.connect() as connection:
            for answer in connection.more("Watch", cursor=events[-2]["id"]):
                self.assertEqual(answer["events"], events[-1:])
                break

    def test_without_a_verb_it_is_the_status_and_help_is_a_verb(self):
        self.assertRegex(self.exits(0).stdout, r"(?m)^● actor +running ")
        self.assertIn("groups", json.loads(self.exits(0, "--json").stdout))
        self.assertEqual(self.exits(0, "help").stdout, self.exits(0, "--help").stdout)
        self.assertEqual(self.exits(0, "help", "jobs").stdout, self.exits(0, "jobs", "--help").stdout)
        self.assertIn("did you mean 'jobs'?", self.exits(2, "help", "jbos").stderr)

    def test_colours_are_for_terminals_and_can_be_switched_off(self):
        self.assertNotIn("\x1b", self.exits(0, "status").stdout)
        for no_color, colours in ("", True), ("1", False):
            screen = Screen(self, [TROUPECTL, "--socket", self.s.socket_path, "status"], NO_COLOR=no_color)
            screen.wait(r"● actor +running ")
            self.assertEqual(screen.wait_end(), 0)
            self.assertEqual("\x1b[32m" in screen.raw, colours)


class Orders(Ctl):
    def test_groups_and_workers_are_managed(self):
        self.exits(0, "stop", "actor/1", "actor/2", "--wait")
        self.assertEqual([w["state"] for w in self.s.group("actor")["workers"]], ["idle", "stopped", "stopped", "idle"])
        self.exits(0, "start", "actor", "--wait")
        self.assertEqual({w["state"] for w in self.s.group("actor")["workers"]}, {"idle"})
        pid = self.s.worker("actor/0")["pid"]
        self.exits(0, "restart", "actor/0", "--wait")
        self.assertNotEqual(self.s.worker("actor/0")["pid"], pid)
        self.assertEqual(self.exits(0, "resize", "actor", "2", "--wait").stdout, "actor: 4 → 2 workers\n")
        self.assertEqual(len(self.s.group("actor")["workers"]), 2)
        self.exits(0, "pause", "actor")
        self.assertEqual(self.s.group("actor")["state"], "paused")
        self.exits(0, "resume", "actor")
        self.exits(0, "reset", "actor", "sleep")

    def test_failures_have_exit_statuses_and_sentences(self):
        self.s.create("actor", "echo x", id="taken")
        for status, arguments, sentence in (
                (2, ("stauts",), "unknown verb 'stauts'; did you mean 'status'?"),
                (2, ("status", "--jsno"), "unknown option '--jsno'; did you mean '--json'?"),
                (2, ("status", "--limit", "3"), "unknown option '--limit'"),
                (2, ("nonsense",), "unknown verb 'nonsense'; 'troupectl help' lists them"),
                (2, ("create",), "usage: troupectl create GROUP"),
                (2, ("do", "actor", "--data", "x", "--file", "y"), "one payload only"),
                (2, ("resize", "actor", "0"), "allowed: 1 to 4096"),
                (2, ("resize", "actor", "many"), "'many' is no number"),
                (2, ("create", "actor", "--id", "a b"), "'a b' cannot be a job's id"),
                (5, ("status", "actr"), "there is no group, cell or worker 'actr'; did you mean 'actor'?"),
                (5, ("do", "actr"), "did you mean 'actor'?"),
                (5, ("create", "actr"), "there is no group 'actr'; did you mean 'actor'?"),
                (5, ("job", "nothing"), "there is no job 'nothing'"),
                (5, ("cancel", "nothing"), "there is no job 'nothing'"),
                (6, ("create", "actor", "--id", "taken"), "a job 'taken' exists"),
                (1, ("create", "sleep"), "plain service"), (1, ("do", "sleep"), "plain service")):
            with self.subTest(arguments=arguments):
                process = self.exits(status, *arguments)
                self.assertIn(sentence, process.stderr)
                self.assertEqual(process.stdout, "")

    def test_errors_of_options_name_the_option_as_it_was_given(self):
        for options, problem in ((["--backoff=2d..3d"], "--backoff: at most 1 day"), (["--delay=400d"], "--delay: at most 366 days"),
                                 (["--debounce=1s"], "--debounce: only with a unique key"),
                                 (["--within=2s"], "--within: only with a debounce"), ([f"--key={'k' * 300}"], "--key: at most 255 bytes")):
            for verb in "do", "map":
                process = self.exits(2, verb, "actor", *(["--file=-"] if verb == "do" else []), *options, input="echo")
                self.assertIn(f"refused the job: {problem}", process.stderr)
            option, _, allowed = problem.partition(": ")
            process = self.exits(2, "create", "actor", "--data=echo", *options)
            self.assertIn(f"'{option}' is missing or wrong; allowed: {allowed}", process.stderr)

    def test_a_wait_that_runs_out_of_time_tells_that_it_continues(self):
        bell = Bell(self.s, "bell")
        for i in range(2):
            self.s.create("actor", f"wait {bell.path}", id=f"held-{i}")
            self.s.wait_job_state(f"held-{i}", "running")
        process = self.exits(8, "stop", "actor", "--wait", "--timeout", "100ms")
        self.assertIn("actor: not complete yet; it continues ('troupectl why actor' tells more)\n", process.stderr)
        process = self.exits(8, "wait", "held-1", "--timeout", "100ms")
        self.assertEqual(process.stderr, "troupectl: job held-1 has not ended in time, and continues ('troupectl why held-1' tells more)\n")
        bell.ring(2)
        self.exits(0, "stop", "actor", "--wait")
        # Each target has its own time, and the next one is tried.
        self.s.write("slow.group", ini(ACTOR, Group={"Environment": "ACTOR_NEVER_READY=1"}))
        self.exits(0, "reload")
        process = self.exits(8, "start", "slow", "actor", "--wait", "--timeout", "500ms")
        self.assertIn("slow: not complete yet; it continues", process.stderr)

    def test_any_number_of_jobs_is_listed_and_cancelled(self):
        """More than the thousand items of a reply."""
        n = 2500
        self.s.write("many.group", ini(ACTOR, Pool={"Size": 2}, Jobs={"QueueMax": n}))
        self.exits(0, "reload")
        bell = Bell(self.s, "bell")
        with self.s.connect() as connection:
            for i in range(n):
                connection.send("Create", {"group": "many", "options": {"id": f"j{i:04}", "priority": i % 2},
                                           "payload": text(f"wait {bell.path}")})
                connection.reply()
        self.s.until(lambda: self.s.group("many")["running"] == 2)
        shown = self.exits(0, "jobs", "many", "--limit", "9999").stdout.splitlines()
        self.assertEqual(len(shown), n + 1)
        self.assertEqual(len(self.exits(0, "jobs", "many", "--state", "running").stdout.splitlines()), 3)
        self.assertIn("the first 3; --limit N shows more", self.exits(0, "jobs", "many", "--limit", "3").stdout)
        self.assertEqual(len(self.s.ctl_json("jobs", "--state", "queued")["jobs"]), n - 2)
        self.assertIn("allowed: queued, running", self.exits(2, "jobs", "--state", "lost").stderr)
        self.assertEqual(self.exits(0, "cancel", "--all", "many").stdout, f"many: {n:,} jobs cancelled\n")
        self.s.until(lambda: self.s.group("many")["cancelled"] == n)
        self.assertEqual(self.exits(0, "cancel", "--all", "many").stdout, "many: 0 jobs cancelled\n")
        self.exits(5, "cancel", "--all", "mny")

    def test_without_a_supervisor_it_says_so(self):
        self.s.stop()
        for arguments in (("status",), ("map", "actor"), ("do", "actor"), ("events", "--follow")):
            self.assertIn("no supervisor at", self.exits(3, *arguments, input="").stderr)

    @unittest.skipIf(os.geteuid() != 0, "needs root to be somebody else")
    def test_strangers_may_look_and_not_touch(self):
        os.chmod(self.s.socket_path, 0o666)
        self.exits(0, "status", user=65534)
        for arguments in (("stop", "actor"), ("create", "actor"), ("do", "actor"), ("map", "actor"), ("reload",)):
            self.assertIn("not permitted", self.exits(4, *arguments, user=65534, input="").stderr)
        os.chmod(self.s.socket_path, 0o600)
        self.exits(4, "status", user=65534)

    def test_a_problem_of_a_file_whose_name_is_not_utf8_is_told_in_json_too(self):
        path = os.fsencode(self.s.path("")) + b"name\xff.group"
        with open(path, "w", encoding="ascii") as file:
            file.write("[Group]\nSise=4\n")
        told = json.loads(self.exits(7, "verify", "--json", path).stdout)["problems"]
        self.assertEqual(len(told), len(self.exits(7, "verify", path).stdout.splitlines()))
        self.assertTrue(told[0]["path"].endswith("name\\xff.group"), told)

    def test_a_bad_configuration_is_told_line_by_line(self):
        self.s.write("service.group", "[Group]\nExecStart=/bin/sleep 9\nType=service\n[Jobs]\nQueueMax=5\n[Pool]\nCellsMax=3\n")
        warned = self.s.ctl("verify", "--config", self.s.config)
        self.assertEqual(warned.returncode, 0)
        self.assertIn("service.group: CellsMax=, QueueMax= without effect: a service takes no jobs or messages", warned.stderr)
        os.unlink(os.path.join(self.s.config, "service.group"))
        path = self.s.write("bad.group", "[Group]\nExecStart=/nonexistent\nSise=3\n")
        verified = self.exits(7, "verify", "--config", self.s.config).stdout
        self.assertIn(f"{path}:2: ", verified)
        self.assertIn(f"{path}:3: ", verified)
        self.assertEqual(self.exits(7, "verify", path).stdout, verified)
        self.assertEqual(len(json.loads(self.exits(7, "verify", path, "--json").stdout)["problems"]), 2)
        reloaded = self.exits(7, "reload").stderr
        self.assertIn(f"{path}:3: ", reloaded)
        self.assertIn("nothing was changed", reloaded)
        reloaded = self.exits(7, "reload", "--json")
        self.assertEqual((len(json.loads(reloaded.stdout)["problems"]), reloaded.stderr), (1, ""))
        os.unlink(path)
        self.assertRegex(self.exits(0, "verify", "--config", self.s.config).stdout, r"^no (problems|errors, 2 warnings)\n$")
        self.assertEqual(self.exits(0, "reload").stdout, "no group has changed\n")
        conf = Path(self.s.config, "troupe.conf")
        conf.write_text((conf.read_text(encoding="utf-8") if conf.exists() else "[Supervisor]\n") + "DeathsMax=7\n", encoding="utf-8")
        self.assertEqual(self.exits(0, "reload").stdout, "changed troupe.conf\n")


class Jobs(Ctl):
    def test_create_prints_the_id_and_job_the_result(self):
        self.assertEqual(self.exits(0, "create", "actor", "--data", "echo hello", "--id", "mine").stdout, "mine\n")
        self.s.wait_job("mine")
        out = self.exits(0, "job", "mine").stdout
        self.assertIn("● mine: succeeded\n", out)
        self.assertIn("│ hello\n", out)
        self.assertIn("mine", self.exits(0, "jobs", "--ended").stdout)
        self.assertEqual(self.exits(0, "jobs").stdout, "No jobs.\n")

    @unittest.skipIf(os.geteuid() != 0, "only root starts groups as root")
    def test_U5_verify_warns_about_a_group_that_runs_as_root_by_accident(self):
        with tempfile.TemporaryDirectory() as directory:
            path = os.path.join(directory, "mail.group")
            for user, warned in ("", True), ("User=root\n", False), ("User=nobody\n", False):
                Path(path).write_text(f"[Group]\nExecStart=/bin/cat\n{user}", encoding="utf-8")
                for arguments in ("--config", directory), (path,):
                    self.assertEqual("runs as root" in self.exits(0, "verify", *arguments).stderr, warned)

    def test_verify_warns_about_a_path_of_the_sandbox_that_does_not_exist(self):
        with tempfile.TemporaryDirectory() as directory:
            path = os.path.join(directory, "mail.group")
            Path(path).write_text("[Group]\nExecStart=/bin/cat\nUser=nobody\n[Sandbox]\nProfile=strict\nReadOnlyPaths=/no/such -/may/be /etc\n",
                                  encoding="utf-8")
            for arguments in ("--config", directory), (path,):
                warnings = self.exits(0, "verify", *arguments).stderr
                self.assertIn("/no/such does not exist, so the worker would not start", warnings)
                self.assertEqual(warnings.count("does not exist"), 1)

    def test_verify_names_the_missing_interpreter_of_a_command(self):
        with tempfile.TemporaryDirectory() as directory:
            script = os.path.join(directory, "script")
            with open(script, "w", encoding="utf-8") as file:
                file.write("#!/no/such/interpreter\n")
            os.chmod(script, 0o755)
            path = os.path.join(directory, "mail.group")
            with open(path, "w", encoding="utf-8") as file:
                file.write(f"[Group]\nExecStart={TROUPE_EXEC} -- {script} {{}}\n")
            for arguments in ("--config", directory), (path,):
                self.assertIn("/no/such/interpreter", self.exits(0, "verify", *arguments).stderr)

    @unittest.skipIf(os.geteuid() != 0, "only root starts groups as root")
    def test_U5_init_python_writes_a_group_that_does_not_run_as_root(self):
        with tempfile.TemporaryDirectory() as directory:
            os.chmod(directory, 0o755)
            self.s.ctl("init", "python", "new", check=True, cwd=directory)
            self.assertRegex(Path(os.path.join(directory, "new.group")).read_text(encoding="utf-8"), "\nUser=(troupe|nobody)\n")

    def test_init_takes_a_kind_and_a_name_or_the_demonstration(self):
        for arguments in (), ("python",), ("--demo", "python", "new"):
            self.assertIn("usage: troupectl init command|python|c|service|schedule NAME, or troupectl init --demo", self.exits(2, "init", *arguments).stderr)

    def test_a_job_is_followed_to_its_end(self):
        bell = Bell(self.s, "bell")
        self.s.create("actor", f"wait {bell.path}\nreject 7", id="mine")
        self.s.wait_job_state("mine", "running")
        follower = self.spawn("job", "mine", "--follow", "--json")
        self.assertEqual(json.loads(follower.stdout.readline())["job"]["state"], "running")
        bell.ring()
        states = [json.loads(line)["job"]["state"] for line in follower.stdout]
        self.assertEqual([state for state in states if state != "running"], ["rejected"])
        self.assertEqual(follower.wait(LIMIT), 1)

    def test_do_hands_out_exactly_what_came_back(self):
        self.assertEqual(self.exits(0, "do", "actor", "--data", "echo a\tb").stdout, "a\tb")
        self.assertEqual(self.exits(0, "do", "actor", "-", input="echo from stdin").stdout, "from stdin")
        path = self.s.path("payload")
        Path(path).write_text("blob 10000000", encoding="ascii")
        process = subprocess.run([TROUPECTL, "-s", self.s.socket_path, "do", "actor", "-f", path], timeout=LIMIT,
                                 capture_output=True, check=True)
        self.assertEqual(process.stdout, (bytes(range(251)) * 39841)[:10000000])

    def test_a_payload_larger_than_a_request_arrives(self):
        padding = "\n\n" + "x" * 3000000
        self.assertEqual(self.exits(0, "do", "actor", "-", input="echo large" + padding).stdout, "large")
        id = self.exits(0, "create", "actor", "-", input="echo large" + padding).stdout.strip()
        self.assertEqual(self.s.wait_job(id)["result"]["data"], "large")

    def test_why_it_did_not_succeed_goes_to_standard_error_once(self):
        process = self.exits(1, "do", "actor", "--data", "crash abort")
        self.assertRegex(process.stderr, r"job \S+ is dead after 2 attempts: killed by SIGABRT")
        self.assertEqual(process.stdout, "")
        process = self.exits(1, "do", "actor", "--data", "reject 7 no")
        self.assertEqual((process.stdout, process.stderr.count("no\n")), ("", 1))
        self.assertRegex(process.stderr, r"was rejected \(code 7\): no\n$")
        self.assertEqual(self.exits(1, "do", "actor", "--data", "retry 5 words", "--retries", "0").stderr.count("words"), 1)

    def test_only_a_result_goes_to_standard_output_and_reasons_to_standard_error(self):
        """An empty small.png is better than one with a reason in it."""
        exec_ = os.path.join(os.path.dirname(TROUPECTL), "troupe-exec")
        for name, options in (("final", "--reject 3 "), ("retried", "")):
            self.s.write(f"{name}.group", ini(
                f"{exec_} {options}-- /bin/sh -c 'echo half; echo first words >&2; echo last words >&2; exit 3'", Jobs=FAST))
        self.exits(0, "reload")
        for group, words in (("final", "half"), ("retried", "last words")):
            with self.subTest(group=group):
                process = self.exits(1, "do", group)
                self.assertEqual(process.stdout, "")
                self.assertIn(words, process.stderr)
                process = self.exits(1, "map", group, input="x\n")
                self.assertEqual(process.stdout, "\n")
                self.assertIn(words, process.stderr)
                self.assertEqual(self.exits(1, "map", group, "--null", input="x").stdout, "\0")

    def test_who_waits_is_told_once_why_no_worker_begins(self):
        self.exits(0, "pause", "actor")
        commands = {
            "quiet": ["do", "actor", "--quiet", "--data", "echo x"],
            "do": ["do", "actor", "--data", "echo x"],
            "json": ["do", "actor", "--json", "--data", "echo x"],
            "map": ["map", "actor"],
        }
        waiting = {name: self.spawn(*command) for name, command in commands.items()}
        waiting["map"].stdin.write(b"echo x\n")
        waiting["map"].stdin.close()
        waiting["map"].stdin = None
        for name in "do", "json", "map":
            self.assertEqual(waiting[name].stderr.readline(),
                             b"troupectl: still waiting: actor is paused: 'troupectl resume actor' ends the pause\n", name)
        self.exits(0, "resume", "actor")
        for name, process in waiting.items():
            out, err = process.communicate(timeout=LIMIT)
            self.assertIn(b"x", out)
            self.assertEqual((process.returncode, err if name != "map" else b""), (0, b""), name)

    def test_a_message_for_a_service_is_refused_with_the_reason(self):
        self.s.write("plain.group", ini("/bin/sleep infinity", Group={"Type": "service"}))
        self.exits(0, "reload")
        for verb in ("tell",), ("ask",), ("timer", "add", "--delay", "1h"):
            refused = self.exits(5, *verb, "plain", "x").stderr
            self.assertIn("'plain' is not an actor: it is a plain service", refused)
            self.assertNotIn("did you mean", refused)

    def test_a_message_for_commands_is_refused_when_it_is_sent_or_scheduled(self):
        exec_ = os.path.join(os.path.dirname(TROUPECTL), "troupe-exec")
        self.s.write("upper.group", ini(f"{exec_} -- tr a-z A-Z"))
        self.exits(0, "reload")
        for actor in "upper", "upper/0":
            for verb in ("tell",), ("ask",), ("timer", "add", "--delay", "1h"):
                self.assertIn("takes only jobs", self.exits(2, *verb, actor, "x").stderr)
        self.exits(0, "timer", "add", "actor", "x", "--delay", "1h")

    def test_do_as_json_is_an_object_also_without_success(self):
        job = json.loads(self.exits(0, "do", "actor", "--json", "--data", "echo x").stdout)
        self.assertEqual((job["state"], job["result"]), ("succeeded", {"encoding": "utf8", "data": "x"}))
        process = self.exits(1, "do", "actor", "--json", "--data", "crash abort", "--retries", "0")
        job = json.loads(process.stdout)
        self.assertEqual((job["state"], job["attempts"]), ("dead", 1))
        self.assertIn("killed by SIGABRT", job["reason"])

    def test_the_first_sigint_cancels(self):
        for options in [], ["--json"]:
            doing = self.spawn("do", "actor", *options, "--data", "until-cancelled", "--id", "mine", stdin=subprocess.DEVNULL)
            self.s.until(lambda: self.s.call("List")["jobs"])
            self.s.wait_job_state("mine", "running")
            doing.send_signal(signal.SIGINT)
            out, err = doing.communicate(timeout=LIMIT)
            self.assertEqual(doing.returncode, 1)
            if options:
                self.assertEqual(json.loads(out)["state"], "cancelled")
                self.assertIn(b"cancelling the job", err)
            else:
                self.assertIn(b"job mine was cancelled by uid %d" % os.geteuid(), err)


class Map(Ctl):
    def test_results_come_in_the_order_of_the_input(self):
        lines = [f"echo {i}" for i in range(20000)]
        process = self.exits(0, "map", "actor", input="\n".join(lines))
        self.assertEqual(process.stdout.split(), [str(i) for i in range(20000)])
        self.assertRegex(process.stderr, r"^20,000 jobs in .*: 20,000 succeeded; 0 retried\n$")

    def test_empty_lines_are_jobs_tags_are_inputs_and_with_nul_newlines_are_content(self):
        process = self.exits(0, "map", "actor", "--show-input", "--quiet", input="echo a\n\necho b")
        self.assertEqual(process.stdout, "echo a\ta\n\t\necho b\tb\n")
        self.assertEqual(process.stderr, "")
        process = self.exits(0, "map", "actor", "--null", input="before 2 exit 3\necho a\0echo b")
        self.assertEqual(process.stdout, "a\0b\0")
        self.assertIn("2 succeeded; 1 retried", process.stderr)

    def test_it_stops_at_the_first_that_did_not_succeed_unless_it_is_to_keep_going(self):
        process = self.exits(1, "map", "actor", "--window", "1", input="echo a\nreject 3\necho b\n")
        self.assertEqual(process.stdout, "a\n\n")
        self.assertRegex(process.stderr, r"line 2: job \S+ was rejected \(code 3\)")
        self.assertIn("1 succeeded, 1 rejected; 0 retried; stopped early, lines after 2 not read", process.stderr)
        process = self.exits(1, "map", "actor", "--keep-going", "--json", input="crash kill\necho b\n")
        first, second = (json.loads(line) for line in process.stdout.splitlines())
        self.assertEqual((first["line"], first["state"], first["attempts"]), (1, "dead", 2))
        self.assertEqual((second["state"], second["result"]["data"]), ("succeeded", "b"))

    def test_with_json_reasons_are_in_the_json_only(self):
        process = self.exits(1, "map", "actor", "--keep-going", "--json", "--quiet", "--retries", "0",
                             input="retry 7\necho b\n")
        first = json.loads(process.stdout.splitlines()[0])
        self.assertEqual((first["state"], first["code"]), ("dead", 7))
        self.assertEqual(process.stderr, "")
        self.s.write("full.group", ini(ACTOR, Pool={"Size": 1}, Jobs={"QueueMemoryMax": "4K"}))
        self.exits(0, "reload")
        process = self.exits(2, "map", "full", "--json", "--quiet", input="echo " + 100000 * "x" + "\n")
        refused = json.loads(process.stdout)
        self.assertEqual(refused["state"], "refused")
        reason = "group 'full' refused the job: the payload is above QueueMemoryMax= of the group, or above half of it for a submitter"
        self.assertEqual(refused["reason"], reason)
        self.assertEqual(process.stderr, "")
        process = self.exits(2, "map", "full", "--quiet", input="echo " + 100000 * "x" + "\n")
        self.assertEqual(process.stderr, f"troupectl: line 1: {reason}\n")

    def test_with_an_output_directory_each_result_is_a_file(self):
        directory = self.s.path("results")
        process = self.exits(1, "map", "actor", "--keep-going", "--output-dir", directory, "--show-input",
                             input="echo a\nreject 3\necho b\n")
        self.assertEqual(process.stdout, f"echo a\t{directory}/1\nreject 3\t\necho b\t{directory}/3\n")
        self.assertEqual(sorted(os.listdir(directory)), ["1", "3"])
        self.assertEqual(Path(f"{directory}/3").read_text(encoding="utf-8"), "b")
        process = self.exits(0, "map", "actor", "--json", "--output-dir", directory, input="echo c\n")
        self.assertEqual(json.loads(process.stdout)["file"], f"{directory}/1")
        self.assertEqual(Path(f"{directory}/1").read_text(encoding="utf-8"), "c")
        process = self.exits(1, "map", "actor", "--output-dir", "/proc/none", input="echo a\n")
        self.assertIn("/proc/none", process.stderr)
        before = self.s.group("actor")["succeeded"]
        process = self.exits(1, "map", "actor", "--output-dir", f"{directory}/1", input="echo a\n")
        self.assertIn(f"cannot write to {directory}/1: Not a directory", process.stderr)
        self.assertEqual(self.s.group("actor")["succeeded"], before)

    def test_a_full_queue_loses_nothing(self):
        self.s.write("small.group", ini(ACTOR, Pool={"Size": 1}, Jobs={"QueueMax": 2}))
        self.exits(0, "reload")
        self.s.wait_worker("small/0", "idle")
        process = self.exits(0, "map", "small", input="".join(f"echo {i}\n" for i in range(1000)))
        self.assertEqual(process.stdout.split(), [str(i) for i in range(1000)])
        group = self.s.group("small")
        self.assertEqual(group["succeeded"], 1000)

    def test_results_are_written_while_the_input_is_open(self):
        mapping = self.spawn("map", "actor")
        for i in range(3):
            mapping.stdin.write(b"echo %d\n" % i)
            mapping.stdin.flush()
            self.assertEqual(mapping.stdout.readline(), b"%d\n" % i)
        mapping.stdin.close()
        self.assertEqual(mapping.wait(LIMIT), 0)

    def test_sigint_waits_for_what_runs_and_a_second_one_does_not(self):
        bell = Bell(self.s, "bell")
        mapping = self.spawn("map", "actor")
        mapping.stdin.write(f"wait {bell.path}\n".encode())
        mapping.stdin.flush()
        self.s.until(lambda: self.s.group("actor")["running"])
        mapping.send_signal(signal.SIGINT)
        mapping.stdin.write(b"echo too late\n")
        mapping.stdin.flush()
        self.assertEqual(select.select([mapping.stdout], [], [], 0.2)[0], [])
        bell.ring()
        out, err = mapping.communicate(timeout=LIMIT)
        self.assertEqual((mapping.returncode, out), (130, b"\n"))
        self.assertIn(b"1 succeeded; 0 retried; stopped early", err)
        mapping = self.spawn("map", "actor")
        mapping.stdin.write(f"wait {bell.path}\n".encode())
        mapping.stdin.flush()
        self.s.until(lambda: self.s.group("actor")["running"])
        mapping.send_signal(signal.SIGINT)
        self.assertEqual(select.select([mapping.stdout], [], [], 0.2)[0], [])
        mapping.send_signal(signal.SIGINT)
        self.assertEqual(mapping.wait(LIMIT), 130)

    def test_it_ends_quietly_when_nobody_reads_its_output(self):
        mapping = self.spawn("map", "actor", stdin=subprocess.DEVNULL)
        mapping.communicate(timeout=LIMIT)
        endless = subprocess.Popen(["yes", "echo x"], stdout=subprocess.PIPE)
        mapping = self.spawn("map", "actor", stdin=endless.stdout)
        self.assertEqual(mapping.stdout.readline(), b"x\n")
        mapping.stdout.close()
        self.assertEqual(mapping.wait(LIMIT), 1)
        self.assertEqual(mapping.stderr.read(), b"")
        endless.stdout.close()
        endless.wait(LIMIT)

    def test_a_full_disk_is_no_success(self):
        for arguments, payload in (("map", "actor"), b"echo x\n"), (("do", "actor", "-"), b"echo x"):
            with self.subTest(verb=arguments[0]), open("/dev/full", "wb") as full:
                process = subprocess.run([TROUPECTL, "-s", self.s.socket_path, *arguments], input=payload,
                                         stdout=full, stderr=subprocess.PIPE, timeout=LIMIT, check=False)
                self.assertEqual(process.returncode, 1)
                self.assertIn(b"troupectl: cannot write the output: No space left on device\n", process.stderr)

    def test_memory_does_not_grow_with_the_input(self):
        mapping = self.spawn("map", "actor")

        def peak_after(lines):
            for _ in range(lines // 1000):
                mapping.stdin.write(b"echo x\n" * 1000)
                mapping.stdin.flush()
                for _ in range(1000):
                    mapping.stdout.readline()
            return self.s.status_field("VmHWM", mapping.pid)
        # By then every page of the window and of both rings is in use.
        before = peak_after(20000)
        self.assertLess(peak_after(40000) - before, 512)

    def test_what_a_stop_cancels_is_one_line(self):
        self.s.write("one.group", ini(ACTOR))
        self.exits(0, "reload")
        bell = Bell(self.s, "bell")
        mapping = self.spawn("map", "one", "--window", "100")
        mapping.stdin.write(f"echo a\necho a\nwait {bell.path}\n".encode() + b"echo b\n" * 97)
        mapping.stdin.flush()
        self.s.until(lambda: self.s.group("one")["running"] == 1 and self.s.group("one")["queued"] == 97)
        self.assertEqual(mapping.stdout.readline(), b"a\n")
        with self.s.connect() as watching:
            events = watching.more("Watch", replay=True)
            next(events)
            self.s.terminate()
            while "supervisor.stopping" not in [event["type"] for event in next(events)["events"]]:
                pass
        bell.ring()
        _, err = mapping.communicate(timeout=LIMIT)
        self.assertRegex(err.decode(), r"^troupectl: line 4: job \S+ was cancelled: the supervisor is stopping\n"
                                       r"troupectl: lines 5 to 100: the same\n"
                                       r"100 jobs in .*\n$")
        self.assertEqual(mapping.returncode, 1)

    def test_a_cancelled_job_tells_who_cancelled_it_and_when(self):
        self.s.call("Pause", target="actor")
        self.s.create("actor", "echo", id="nightly")
        self.exits(0, "cancel", "nightly")
        self.assertRegex(self.exits(1, "job", "nightly").stdout, rf"○ nightly: cancelled by uid {os.geteuid()} after \S+\n")
        self.assertRegex(self.exits(0, "jobs", "--ended").stdout, rf"cancelled +0/2 +\S+ +by uid {os.geteuid()} after \S+\n")
        self.exits(0, "resume", "actor")
        self.exits(0, "do", "actor", "--data", "echo x", "--id", "done")
        self.s.wait_job(self.s.create("actor", "echo x", id="kept"))
        self.assertRegex(self.exits(0, "job", "kept").stdout, r"\n      Took: \S+, \S+ of it at work\n")
        self.assertRegex(self.exits(0, "status", "actor").stdout,
                         r"Took: at most \S+ for half of the last jobs, \S+ for 99 %; at work: \S+, \S+\n")

    def test_a_lost_supervisor_is_told(self):
        bell = Bell(self.s, "bell")
        mapping = self.spawn("map", "actor", "--reconnect", "0")
        mapping.stdin.write(f"echo a\nwait {bell.path}\n".encode())
        mapping.stdin.flush()
        self.assertEqual(mapping.stdout.readline(), b"a\n")
        self.s.process.kill()
        _, err = mapping.communicate(timeout=LIMIT)
        self.assertEqual(mapping.returncode, 3)
        self.assertRegex(err, rb"the supervisor closed the connection, or is gone\n"
                              rb"troupectl: line 2: what became of job \S+ is not known: .*\n")

    def test_progress_is_shown_on_a_terminal(self):
        bell = Bell(self.s, "bell")
        path = self.s.path("input")
        Path(path).write_text(f"echo a\nwait {bell.path}\n", encoding="ascii")
        screen = Screen(self, ["/bin/sh", "-c", f'exec "$0" --socket "$1" map actor < {path}', TROUPECTL, self.s.socket_path])
        screen.wait(r"actor  1 done  \d+/s  ")
        bell.ring()
        self.assertEqual(screen.wait_end(), 0)
