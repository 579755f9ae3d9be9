# SPDX-License-Identifier: MIT
"""What is told of a death: of which job its lines are, and that nothing else can be read in it."""
from troupe import ACTOR, TestCase, ini

QUICK = {"MinSec": "1ms", "MaxSec": "5ms", "StartLimitBurst": 0}


def actor(**sections):
    return ini(ACTOR, **{"Restart": QUICK, "Jobs": {"BackoffMinSec": "1ms"}, **sections})


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
        s.do("actor", f"fail 1 {bad}", max_retries=0)
        for arguments in (["deaths"], ["status", "actor/0"], ["events"], ["dead-letters"], ["jobs"]):
            for options in ([], ["--json"]):
                shown = s.ctl(*options, *arguments, check=True).stdout
                self.assertEqual([c for c in shown if c < " " and c != "\n" or "\x7f" <= c < "\xa0"], [], arguments)
        self.assertEqual([c for c in s.log() if c < " " and c != "\n" or "\x7f" <= c < "\xa0"], [])
