# SPDX-License-Identifier: MIT
"""What workers write: the lines of a job are its own, all of them, and stay after its worker is gone."""
import os

from troupe import ACTOR, QUICK, TROUPE_EXEC, Bell, TestCase, Varlink, ini

NO_LIMIT = {"LogRateLimitBurst": 0}


def actor(**sections):
    return ini(ACTOR, **{"Restart": QUICK, "Jobs": {"BackoffMinSec": "1ms"}, "Resources": {"LimitCORE": 0}, **sections})


class Logs(TestCase):
    def lines(self, s, job):
        return s.call("GetLog", job=job)["lines"]

    def test_M6_a_job_shows_what_it_wrote_and_nothing_of_another_however_closely_they_follow_each_other(self):
        s = self.started({"actor": actor(Pool={"Size": 2}, Worker=NO_LIMIT)})
        s.call("Pause", target="actor")
        loud = {f"j{n}" for n in range(1500) if n % 83 == 7}
        for n in range(1500):
            s.create("actor", f"complain {n}\nmutter half {n}" if f"j{n}" in loud else "echo", id=f"j{n}")
        s.call("Resume", target="actor")
        for n in range(1500):
            s.wait_job(f"j{n}")
        for n in range(1500):
            self.assertEqual(self.lines(s, f"j{n}"), [str(n), f"half {n}"] if f"j{n}" in loud else [], f"j{n}")

    def test_M6_a_job_shows_what_it_wrote_while_others_write_all_the_time(self):
        s = self.started({"loud": ini("/bin/sh -c 'exec yes 2>&1'", Group={"Type": "service"}, Pool={"Size": 60}),
                          "actor": actor(Pool={"Size": 1, "MaxJobs": 1}, Worker=NO_LIMIT)})
        for n in range(100):
            s.do("actor", f"complain {n}", id=f"j{n}")
            self.assertEqual(self.lines(s, f"j{n}"), [str(n)])

    def test_M6_what_an_idle_worker_writes_belongs_to_no_job(self):
        program = f"/bin/sh -c 'echo at its start >&2; exec {ACTOR}'"
        s = self.started({"actor": ini(program, Worker=NO_LIMIT)})
        s.until(lambda: s.call("GetLog", target="actor")["lines"])
        s.do("actor", "complain mine", id="job")
        self.assertEqual(self.lines(s, "job"), ["mine"])

    def test_M6_its_lines_stay_when_its_workers_are_gone(self):
        s = self.started({"actor": actor()})
        s.do("actor", "complain last words\ncrash abort", id="doomed", max_retries=1)
        self.assertEqual(self.lines(s, "doomed"), ["last words"] * 2)
        s.do("actor", "complain of another")
        s.call("Stop", target="actor", wait=True)
        self.assertEqual(self.lines(s, "doomed"), ["last words"] * 2)
        self.assertEqual(s.ctl("logs", "doomed", check=True).stdout, "last words\n" * 2)
        self.assertEqual(s.ctl_json("logs", "doomed"), {"lines": ["last words"] * 2})

    def test_M6_a_command_of_troupe_exec_shows_its_standard_error(self):
        s = self.started({"shell": ini(f"{TROUPE_EXEC} -- /bin/sh -c 'cat >&2; echo result'")})
        for n in range(5):
            s.do("shell", f"words {n}\nand more\n", id=f"j{n}")
        for n in range(5):
            self.assertEqual(self.lines(s, f"j{n}"), [f"words {n}", "and more"])

    def test_a_prefix_sets_the_priority_and_is_taken_off(self):
        s = self.started({"on": actor(), "off": actor(Worker={"SyslogLevelPrefix": "no"})})
        for name in "on", "off":
            s.do(name, "complain <3>it burns\ncomplain <9>odd", id=name)
        self.assertEqual(self.lines(s, "on"), ["it burns", "<9>odd"])
        self.assertEqual(self.lines(s, "off"), ["<3>it burns", "<9>odd"])
        self.assertIn("error: [on/0] it burns", s.log())
        self.assertIn("[off/0] <3>it burns", s.log())

    def test_kept_output_and_deaths_show_no_priorities(self):
        s = self.started({"on": actor(), "off": actor(Worker={"SyslogLevelPrefix": "no"})})
        for name, lines in ("on", ["it burns", "<9>odd", "x <3>"]), ("off", ["<3>it burns", "<9>odd", "<5>x <3>"]):
            s.create(name, "complain <3>it burns\ncomplain <9>odd\ncomplain <5>x <3>\ncrash abort", id=name, max_retries=0)
            s.wait_job(name)
            death = s.call("ListDeaths", target=name)["deaths"][0]
            self.assertEqual(death["stderr"].splitlines(), lines)
            s.until(lambda name=name: s.call("GetLog", target=name)["lines"])
            self.assertEqual(s.ctl("logs", f"{name}/0", check=True).stdout.splitlines(), lines)

    def test_more_lines_than_the_limit_allows_are_counted(self):
        s = self.started({"actor": actor(Worker={"LogRateLimitBurst": 5, "LogRateLimitIntervalSec": "1h"})})
        s.do("actor", "".join(f"complain {n}\n" for n in range(8)), id="flood")
        s.do("actor", "complain more", id="next")
        self.assertEqual(self.lines(s, "flood"), list("01234"))
        self.assertEqual(self.lines(s, "next"), [])
        s.call("Stop", target="actor", wait=True)
        self.assertIn("[actor/0] … 4 lines suppressed", s.log())

    def test_the_limit_can_be_changed_by_a_reload(self):
        s = self.started({"actor": actor(Worker={"LogRateLimitBurst": 1, "LogRateLimitIntervalSec": "1h"})})
        s.do("actor", "complain 1\ncomplain 2", id="before")
        s.write("actor.group", actor(Worker=NO_LIMIT))
        s.call("Reload")
        s.do("actor", "complain 1\ncomplain 2", id="after")
        self.assertEqual((self.lines(s, "before"), self.lines(s, "after")), (["1"], ["1", "2"]))

    def test_the_lines_of_a_job_can_be_followed(self):
        s = self.started({"actor": actor(Pool={"Size": 2})})
        os.mkfifo(s.path("bell"))
        s.create("actor", f"complain before\nwait {s.path('bell')}\ncomplain now", id="job")
        s.until(lambda: self.lines(s, "job"))
        s.create("actor", "complain nothing of it")
        with Varlink(s.socket_path) as follower:
            lines = (line for answer in follower.more("GetLog", job="job", follow=True) for line in answer["lines"])
            self.assertEqual(next(lines), "before")
            with open(s.path("bell"), "w", encoding="ascii") as bell:
                bell.write("\n")
            self.assertEqual(next(lines), "now")

    def test_M6_following_a_job_ends_with_it(self):
        s = self.started({"actor": actor(Jobs={"BackoffMinSec": "1ms", "MaxRetries": 1})})
        bell = Bell(s, "bell")
        s.create("actor", f"complain first\nwait {bell.path}\nretry 1 no", id="job")
        s.until(lambda: self.lines(s, "job"))
        with Varlink(s.socket_path) as follower:
            answers = follower.more("GetLog", job="job", follow=True)
            self.assertEqual(next(answers)["lines"], ["first"])
            bell.ring()
            self.assertEqual(next(answers)["lines"], ["first"])  # another attempt
            bell.ring()
            self.assertEqual([answer["lines"] for answer in answers], [[]])
        self.assertEqual(s.wait_job("job")["state"], "dead")
        with Varlink(s.socket_path) as late:
            lines = [line for answer in late.more("GetLog", job="job", follow=True) for line in answer["lines"]]
        self.assertEqual(lines, ["first"] * 2)
        self.assertEqual(s.ctl("logs", "--follow", "job", check=True).stdout, "first\n" * 2)

    def test_M6_a_job_that_waits_is_followed_until_it_is_cancelled(self):
        s = self.started({"actor": actor()})
        s.call("Pause", target="actor")
        s.create("actor", "complain never", id="job")
        with Varlink(s.socket_path) as follower:
            follower.send("GetLog", {"job": "job", "follow": True}, more=True)
            s.until(lambda: s.call("GetInfo")["clients"] == 2)
            s.call("Cancel", id="job")
            self.assertEqual(follower.reply(), ({"lines": []}, False))

    def test_M6_a_job_shows_nothing_of_an_earlier_one_with_its_id(self):
        s = self.started({"actor": actor(), "other": actor()})
        for group in "actor", "other", "actor":
            s.do(group, f"complain by {group}", id="same")
            self.assertEqual(self.lines(s, "same"), [f"by {group}"])
        s.call("Pause", target="other")
        s.create("other", "complain new", id="same")
        self.assertEqual(self.lines(s, "same"), [])
        s.call("Resume", target="other")
        s.wait_job("same")
        self.assertEqual(self.lines(s, "same"), ["new"])

    def test_a_job_without_output_and_a_job_that_never_was(self):
        s = self.started({"actor": actor()})
        s.create("actor", "echo", id="quiet")
        s.wait_job("quiet")
        quiet = s.ctl("logs", "quiet")
        self.assertEqual((quiet.returncode, quiet.stdout, quiet.stderr),
                         (0, "", "troupectl: no output of job 'quiet' is kept\n"))
        self.assertEqual(s.ctl("logs", "never").returncode, 5)
        self.assertEqual(s.ctl("logs", "actor/7").returncode, 5)
        self.refused_option(s, "job", job="no id!")
        self.refused_option(s, "target", job="quiet", target="actor")
        self.refused_option(s, "target")

    def refused_option(self, s, option, **parameters):
        self.assertEqual(self.refused("BadOption", s.call, "GetLog", **parameters)["option"], option)
