# SPDX-License-Identifier: MIT
"""In which functions workers spend their time."""
import contextlib
import ctypes
import os
import re
import signal
import struct
import unittest
import xml.etree.ElementTree as ET
from pathlib import Path

from troupe import ACTOR, BUILD, SANITIZED, Bell, TestCase, Varlink, helper, ini, service, user

TRACE = os.path.join(BUILD, "troupe-trace")
CRASHER = helper("workers/crasher")
PROFILE = "io.troupe.Supervisor.Profile"
SHORT, LONG = 300_000, 300_000_000
PIDFD_GETFD = 438
SVG = "{http://www.w3.org/2000/svg}"


@unittest.skipUnless(os.path.exists(TRACE), "needs libdw")
@unittest.skipIf(SANITIZED, "the sanitizer's processes are too large to be traced")
class Profiles(TestCase):
    def hanging(self, how, **sections):
        """Has a job begun that hangs so. Returns its id."""
        self.s = self.started({"crasher": ini(CRASHER, **sections)})
        job = self.s.create("crasher", how)
        self.s.until(lambda: self.s.job(job).get("started_at") and self.s.job(job)["state"] == "running")
        self.s.until(lambda: f"planted_{how}" in str(self.s.call("io.troupe.Supervisor.GetStack", job=job)))
        return job

    def tracer(self):
        for pid in self.s.children():
            with contextlib.suppress(OSError), open(f"/proc/{pid}/comm", encoding="utf-8") as file:
                if file.read() == "troupe-trace\n":
                    return pid
        return None

    def profile(self, **parameters):
        """A profile with samples: a machine under load may be too slow for one in a short time."""
        return self.s.until(lambda: (lambda reply: reply if reply.get("stacks") else None)(
            self.s.call(PROFILE, **{"for_usec": SHORT, **parameters})))

    def test_X3_what_computes_and_what_waits_is_found(self):
        for how, waits in ("loop", False), ("lock", True), ("call", True):
            with self.subTest(how=how):
                job = self.hanging(how)
                for target in {"target": "crasher/0"}, {"job": job}:
                    reply = self.profile(**target)
                    [stack] = [stack for stack in reply["stacks"] if f"planted_{how}" in stack["functions"]]
                    self.assertEqual((stack["waits"], stack["functions"][:1], stack["thread"]), (waits, ["_start"], "crasher"))
                    self.assertLess(stack["functions"].index("main"), stack["functions"].index(f"planted_{how}"))
                    self.assertIn(stack["count"], range(1, reply["samples"] + 1))
                    self.assertGreaterEqual(reply["took_usec"], SHORT)
                    self.assertLess(reply["stopped_usec"], reply["took_usec"])
                    self.assertEqual((reply["worker"], reply["pid"]), ("crasher/0", self.s.worker("crasher/0")["pid"]))
                self.assertEqual(self.s.job(job)["state"], "running")

    def test_X3_the_table_the_folded_stacks_and_the_flame_graph_agree(self):
        job = self.hanging("loop")
        self.profile(job=job)
        folded, svg = self.s.path("folded"), self.s.path("flame.svg")

        def shown():
            return self.s.ctl("profile", "--for", "500ms", job).stdout

        self.assertRegex(self.s.until(shown), r"(?s)^crasher/0, pid \d+: \d+ samples? in .*\n +SELF +TOTAL +WAITS  FUNCTION\n"
                                              r" *\d+\.\d%  +\d+\.\d%    0\.0%  planted_loop\n")
        self.s.until(lambda: self.s.ctl("profile", "--for", "500ms", "--folded", folded, "--svg", svg, "crasher/0").returncode == 0)
        with open(folded, encoding="utf-8") as file:
            [(stack, count)] = re.findall(r"^(.*) (\d+)\n", file.read())
        names = stack.split(";")
        self.assertEqual((names[0], names[-1]), ("crasher", "planted_loop"))
        boxes = [(box.find(f"{SVG}title").text, box.find(f"{SVG}rect").attrib) for box in ET.parse(svg).iter(f"{SVG}g")]
        self.assertEqual([title for title, _ in boxes], [f"{name} ({count} samples, 100.0%)" for name in ["all", *names]])
        self.assertEqual({(rect["x"], rect["width"]) for _, rect in boxes}, {("0.0", "1200.0")})
        heights = [int(rect["y"]) for _, rect in boxes]
        self.assertEqual(heights, sorted(heights, reverse=True))

    def test_X3_a_profile_ends_with_the_process(self):
        job = self.hanging("call", Jobs={"MaxRetries": 0})
        with Varlink(self.s.socket_path) as watcher:
            watcher.send(PROFILE, {"job": job, "for_usec": LONG})
            self.s.until(self.tracer)
            os.kill(self.s.worker("crasher/0")["pid"], 9)
            self.assertLess(watcher.reply()[0].get("took_usec", 0), LONG)

    def test_X3_code_of_the_kernel_is_named_after_modules_have_come_and_gone(self):
        self.s = self.supervisor()
        script = Path(self.s.path("script.py"))
        script.write_text("\n".join([
            "import _ctypes, time",
            *(f"def phase_{n}(end):\n    while time.monotonic() < end: pass" for n in range(4)),
            "while True:",
            "    for load, phase in (True, phase_0), (False, phase_1), (True, phase_2), (False, phase_3):",
            "        library = _ctypes.dlopen('libresolv.so.2', 2) if load else _ctypes.dlclose(library)",
            "        phase(time.monotonic() + 1.5)",
        ]), encoding="ascii")
        self.s.write("web.group", service(f"/usr/bin/python3 {script}"))
        self.s.start()

        def phases():
            stacks = self.profile(target="web/0", for_usec=8_000_000)["stacks"]
            return {name for stack in stacks if "__vdso_" in str(stack["functions"]) for name in stack["functions"] if "phase_" in name}

        self.s.until(lambda: len(phases()) > 2)

    def test_X3_profiles_are_bounded_and_end_with_their_client(self):
        self.hanging("loop")
        with contextlib.ExitStack() as stack:
            for _ in range(2):
                stack.enter_context(Varlink(self.s.socket_path)).send(PROFILE, {"target": "crasher/0", "for_usec": LONG})
            self.s.until(lambda: self.s.call(PROFILE, target="crasher/0", for_usec=1).get("stack_missing") ==
                         "too many other profiles are being taken")
            process = self.s.ctl("profile", "crasher/0")
            self.assertEqual(process.returncode, 1)
            self.assertIn("too many other profiles", process.stderr)
            # A look at a worker that crashes, or a stack, has its own places.
            self.s.until(lambda: "planted_loop" in str(self.s.call("io.troupe.Supervisor.GetStack", target="crasher/0")))
        self.profile(target="crasher/0")

    @unittest.skipUnless(os.getuid() == 0, "needs to look into troupe-trace")
    def test_X3_whoever_has_descriptors_of_the_profiler_holds_up_nothing(self):
        self.hanging("loop")
        with Varlink(self.s.socket_path) as client:
            client.send(PROFILE, {"target": "crasher/0", "for_usec": LONG})
            pid = self.s.until(self.tracer)
            with os.fdopen(os.pidfd_open(pid)) as process:
                release, answer = (self.s.until(lambda number=number: max(0, ctypes.CDLL(None).syscall(PIDFD_GETFD, process.fileno(), number, 0)))
                                   for number in (4, 6))
            self.addCleanup(os.close, release)
            self.addCleanup(os.close, answer)
            os.kill(pid, signal.SIGSTOP)
            os.set_blocking(release, True)
            os.set_blocking(answer, True)
            with contextlib.suppress(OSError):
                os.write(answer, struct.pack("Q", 2**64 - 2))
            for _ in range(2000):
                os.write(release, struct.pack("Q", 1))
            self.s.call("GetInfo")
        self.s.until(lambda: not self.tracer())

    def test_X3_what_is_no_worker_and_no_time_is_refused(self):
        self.s = self.started({"crasher": ini(CRASHER)})
        self.refused("BadOption", self.s.call, PROFILE, target="crasher")
        self.refused("BadOption", self.s.call, PROFILE, target="crasher/0", for_usec=LONG + 1)
        self.refused("BadOption", self.s.call, PROFILE, target="crasher/0", for_usec=0)
        self.refused("BadOption", self.s.call, PROFILE)
        self.assertEqual(self.s.ctl("profile", "none").returncode, 2)

    @unittest.skipUnless(os.getuid() == 0, "needs another user")
    def test_X3_a_submitter_sees_its_own_job_only(self):
        self.s = s = self.started({"mail": ini(ACTOR, Group={"SubmitUser": "daemon"})})
        go, gone_on = Bell(s, "go"), Bell(s, "gone-on")
        with user(1):
            job = s.create("mail", f"wait {go.path}\nring {gone_on.path}")
            s.until(lambda: s.job(job)["state"] == "running")
            self.refused("NotPermitted", s.call, PROFILE, target="mail/0", for_usec=SHORT)
            watcher = Varlink(s.socket_path)
        with watcher:
            watcher.send(PROFILE, {"job": job, "for_usec": LONG})
            s.until(self.tracer)
            go.ring()
            self.assertLess(watcher.reply()[0].get("took_usec", 0), LONG)
        with user(65534):
            self.refused("NotPermitted", s.call, PROFILE, target="mail/0", for_usec=SHORT)


if __name__ == "__main__":
    unittest.main()
