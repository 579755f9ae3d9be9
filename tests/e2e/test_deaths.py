# SPDX-License-Identifier: MIT
"""Death reports: they show the lines of the right job, and nothing else."""
import re

from troupe import TROUPE_EXEC, TestCase, Varlink, actor, ini, limit, text


def service(program, **sections):
    return ini(program, **{"Restart": {"Restart": "no"}, **sections, "Group": {"Type": "service"}})


class StandardError(TestCase):
    def test_what_follows_a_nul_is_what_was_written_and_never_memory_of_the_supervisor(self):
        writes = "printf '\\\\0' >&2; head -c 4000 /dev/zero | tr '\\\\0' A >&2; exit 3"
        s = self.started({"honest": actor(), "curious": service(f'/bin/sh -c "{writes}"')})
        for _ in range(20):
            s.create("honest", "CANARY" * 600)
        s.wait_event("worker.died", "curious")
        [death] = s.deaths("curious")
        self.assertEqual(death["stderr"], "\ufffd" + 4000 * "A")
        self.assertEqual(s.call("GetLog", target="curious/0")["lines"], ["\ufffd" + 4000 * "A"])

    def test_the_lines_are_those_since_the_job_began(self):
        s = self.started({"actor": actor(Resources={"LimitCORE": 0})})
        s.do("actor", "complain of another job")
        s.do("actor", "complain of this job\ncrash segv", max_retries=0)
        s.do("actor", "complain of another job")
        s.do("actor", "crash segv", max_retries=0)
        self.assertEqual([death["stderr"] for death in s.deaths()], ["", "of this job\n"])
        self.assertIn("Stderr: nothing written since the job began", s.ctl("deaths").stdout)

    def test_without_a_job_they_are_those_since_the_worker_was_started(self):
        s = self.started({"loud": service("/bin/sh -c 'echo ends by itself; exit 3'"),
                          "quiet": service("/bin/sh -c 'exit 3'")})
        s.wait_event("worker.died", "loud")
        s.wait_event("worker.died", "quiet")
        self.assertEqual([s.deaths(name)[0]["stderr"] for name in ("loud", "quiet")], ["ends by itself\n", ""])
        self.assertIn("Stderr: nothing written since it was started", s.ctl("deaths", "quiet").stdout)


class Terminals(TestCase):
    def test_no_control_character_of_a_worker_reaches_the_reader(self):
        s = self.started({"actor": actor(Resources={"LimitCORE": 0})}, environment={"LANG": "C.UTF-8"})
        bad = "[\x1b]0;title\x07 \x9b31m \x7f \r]"
        s.do("actor", f"state {bad}\ncomplain {bad}\ncrash segv", max_retries=0)
        s.do("actor", f"retry 1 {bad}", max_retries=0)
        for arguments in (["deaths"], ["status", "actor/0"], ["events"], ["dead-letters"], ["jobs"],
                          ["logs", "actor/0"]):
            for options in ([], ["--json"]):
                shown = s.ctl(*options, *arguments, check=True).stdout
                self.assertEqual([c for c in shown if c < " " and c != "\n" or "\x7f" <= c < "\xa0"], [], arguments)
        self.assertEqual([c for c in s.log() if c < " " and c != "\n" or "\x7f" <= c < "\xa0"], [])


class Commands(TestCase):
    def runs(self, script, **sections):
        return self.started({"web": ini(f"{TROUPE_EXEC} -- /bin/sh -c '{script}' sh {{}}",
                                        **{"Resources": {"LimitCORE": 0}, "Jobs": {"BackoffMinSec": "1ms"}, **sections})})

    def test_a_command_that_crashes_is_a_death_and_its_worker_goes_on(self):
        s = self.runs("echo $1 >&2; [ $1 = fine ] || kill -SEGV $$")
        self.assertEqual(s.do("web", "fine")["state"], "succeeded")
        job = s.do("web", "it-hurts", id="j", max_retries=1)
        self.assertEqual((job["state"], [a["cause"] for a in job["attempts"]]), ("dead", ["signal", "signal"]))
        deaths = s.deaths()
        self.assertEqual([(d["worker"], d["cause"], d["signal"], d["job"], d["attempt"], d["stderr"]) for d in deaths],
                         [("web/0", "signal", "SIGSEGV", "j", attempt, "it-hurts\n") for attempt in (2, 1)])
        self.assertEqual({d["detail"] for d in deaths}, {"killed by SIGSEGV"})
        self.assertIn("kill -SEGV", deaths[0]["command"])
        self.assertNotIn("it-hurts", deaths[0]["command"])
        for death in deaths:
            self.assertGreaterEqual(death["uptime_usec"], death["user_usec"] + death["system_usec"])
        self.assertGreater(deaths[0]["max_rss_bytes"], 100000)
        worker = s.worker("web/0")
        self.assertNotIn(worker["pid"], [d["pid"] for d in deaths])
        self.assertEqual((worker["generation"], worker["last_death"]["job"], s.group("web")["deaths"]), (1, "j", 2))
        self.assertEqual(s.wait_event("command.died", "web")["death"]["stderr"], "it-hurts\n")
        self.assertIn("web/0 ran '/bin/sh -c", s.log())
        [letter] = s.call("io.troupe.Actors.ListDeadLetters")["letters"]
        self.assertEqual(letter["n_deaths"], 2)
        shown = s.ctl("deaths").stdout
        self.assertIn("   Command: /bin/sh -c echo $1 >&2", shown)

    def test_a_command_that_exits_otherwise_is_none(self):
        s = self.runs("exit 3")
        job = s.do("web", "x", max_retries=0)
        self.assertEqual((job["state"], job["attempts"][0]["cause"]), ("dead", "retry"))
        self.assertEqual((s.deaths(), s.group("web")["deaths"]), ([], 0))

    def test_a_command_that_runs_out_of_time_is_reported_as_that(self):
        s = self.runs("echo waiting >&2; sleep 1000")
        job = s.do("web", "x", max_retries=0, timeout_usec=200000)
        self.assertEqual((job["state"], job["attempts"][0]["cause"]), ("dead", "job_timeout"))
        [death] = s.deaths()
        self.assertEqual((death["cause"], "command" in death), ("job_timeout", False))

    def test_a_command_that_is_cancelled_is_none(self):
        s = self.runs("echo $$; sleep 1000")
        id = s.create("web", "x")
        s.until(lambda: "published" in s.job(id))
        s.call("Cancel", id=id)
        self.assertEqual((s.wait_job(id)["state"], s.deaths()), ("cancelled", []))


class Floods(TestCase):
    @limit(120)
    def test_thousands_of_failures_are_a_few_log_lines_with_counts(self):
        s = self.started({"web": ini(f"{TROUPE_EXEC} -- /bin/sh -c 'echo it hurts >&2; exit 3'", Pool={"Size": 2},
                                     Jobs={"MaxRetries": 0}),
                          "actor": actor(Resources={"LimitCORE": 0}, Jobs={"MaxRetries": 0})})
        for group, job in (("web", "x"), ("actor", "complain it hurts\ncrash kill")):
            with Varlink(s.socket_path) as connection:
                for _ in range(600):
                    connection.call("Create", group=group, payload=text(job))
        s.until(lambda: s.group("web")["dead"] == s.group("actor")["dead"] == 600)
        s.stop()
        log = s.log()
        self.assertLess(len(log.splitlines()), 150)
        told = sum(1 for line in log.splitlines() if ": web job " in line and " more like this" not in line)
        summed = sum(int(n) for n in re.findall(r": web: (\d+) more like this in 10 s, the latest: web job", log))
        self.assertEqual(told + summed, 600)
