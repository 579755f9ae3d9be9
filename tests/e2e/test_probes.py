# SPDX-License-Identifier: MIT
"""Probes for tracers, and the scripts that use them."""
import glob
import os
import re
import shutil
import signal
import subprocess
import unittest

from troupe import BUILD, LIMIT, TOP, TestCase, actor

PROGRAM = os.path.join(BUILD, "trouped-supervisor")
SCRIPTS = sorted(glob.glob(os.path.join(TOP, "units", "bpftrace", "*.bt")))
JOB = 4  # arguments with which those of a job begin


def documented():
    """The probes and their numbers of arguments, as trouped(8) lists them."""
    with open(os.path.join(TOP, "supervisor", "trouped.8"), encoding="utf-8") as page:
        section = re.search(r"^\.Ss Probes\n(.*?)^\.S", page.read(), re.MULTILINE | re.DOTALL)[1]
    rows = re.findall(r"^\.It Fn (\w+) (.*)\n", section, re.MULTILINE)
    return {name: sum(JOB if word == '"job ..."' else 1 for word in re.findall(r'"[^"]+"|\S+', words)) for name, words in rows}


def notes():
    """The probes of the program, as pairs of a name and the sizes of its arguments."""
    text = subprocess.run(["readelf", "-nW", PROGRAM], capture_output=True, text=True, check=True).stdout
    found = re.findall(r"Provider: troupe\n\s+Name: (\w+)\n\s+Location: .*\n\s+Arguments: (.*)", text)
    return [(name, re.findall(r"-?[1248]@", arguments)) for name, arguments in found]


@unittest.skipUnless(notes(), "built without <sys/sdt.h>")
class Probes(TestCase):
    def test_X6_the_probes_of_the_manual_are_there_with_their_arguments(self):
        self.assertEqual({(name, len(sizes)) for name, sizes in notes()}, set(documented().items()))
        self.assertEqual({sizes[0] for _, sizes in notes()}, {"8@"})  # a pointer, or microseconds

    def test_X6_the_scripts_name_probes_and_arguments_that_are_there(self):
        self.assertEqual(len(SCRIPTS), 3)
        for path in SCRIPTS:
            with open(path, encoding="utf-8") as file, self.subTest(script=path):
                probes = re.findall(r"^usdt:(\S+):troupe:(\w+)\n{\n(.*?)^}", file.read(), re.MULTILINE | re.DOTALL)
                self.assertTrue(probes)
                for program, name, body in probes:
                    self.assertEqual(program, "/usr/libexec/troupe/trouped-supervisor")
                    self.assertLess(max(map(int, re.findall(r"arg(\d)", body)), default=0), documented()[name])


def works():
    """Whether bpftrace can trace programs here."""
    if not notes() or not shutil.which("bpftrace"):
        return False
    return subprocess.run(["bpftrace", "-e", "BEGIN { exit(); }"], capture_output=True, check=False, timeout=LIMIT).returncode == 0


@unittest.skipUnless(works(), "needs bpftrace, a kernel with uprobes, and root")
class Scripts(TestCase):
    def begin(self, s, name):
        """The script, once its probes are in place."""
        with open(os.path.join(TOP, "units", "bpftrace", name), encoding="utf-8") as file:
            text = file.read().replace("/usr/libexec/troupe/trouped-supervisor", PROGRAM)
        with open(s.path(name), "w", encoding="utf-8") as file:
            file.write(text)
        process = subprocess.Popen(["bpftrace", "-B", "line", s.path(name)], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)
        self.addCleanup(process.stdout.close)
        for line in process.stdout:  # what it has to say is read once all is in place
            if line.startswith("Tracing"):
                break
        return process

    def end(self, process):
        process.send_signal(signal.SIGINT)
        return process.communicate(timeout=LIMIT)[0]

    def test_X6_latencies_are_counted_by_group(self):
        s = self.started({"probed-a": actor(), "probed-b": actor()})
        script = self.begin(s, "latency.bt")
        for group in "probed-a", "probed-a", "probed-b":
            s.do(group, "echo done")
        said = self.end(script)
        # Scripts see all supervisors of this program.
        ended = dict(re.findall(r"^@ended\[([\w-]+), succeeded\]: (\d)", said, re.MULTILINE))
        self.assertEqual({group: ended[group] for group in ("probed-a", "probed-b")}, {"probed-a": "2", "probed-b": "1"})
        self.assertLessEqual({(kind, group) for kind in ("wait", "total") for group in ("probed-a", "probed-b")},
                             set(re.findall(r"^@(\w+)_usec\[([\w-]+)\]:", said, re.MULTILINE)))

    def test_X6_starts_and_deaths_are_lines(self):
        s = self.started({"probed": actor()})
        script = self.begin(s, "deaths.bt")
        pid = s.worker("probed/0")["pid"]
        job = s.create("probed", "crash kill", max_retries=0)
        s.until(lambda: s.job(job)["state"] == "dead")
        chosen = s.create("probed", "crash segv", max_retries=0, id="chosen")
        s.until(lambda: s.job(chosen)["state"] == "dead")
        s.until(lambda: s.worker("probed/0")["state"] == "idle")
        said = self.end(script)
        self.assertRegex(said, rf"probed/0 died: pid {pid}, signal -9, after \d+ ms\n")
        self.assertRegex(said, rf"probed job {job} is dead: signal, 1 attempts\n")
        self.assertRegex(said, r"probed job chosen is dead: signal, 1 attempts\n")
        self.assertIn(f"probed/0 started: pid {s.worker('probed/0')['pid']}\n", said)
        self.assertIn("@deaths[probed, signal]: 2", said)

    def test_X6_commits_are_counted(self):
        s = self.started({"mail": actor(Jobs={"Durable": "yes"})}, state=True)
        s.until_restored()
        script = self.begin(s, "store.bt")
        s.create("mail", "echo done")  # is on disk when it is acknowledged
        said = self.end(script)
        self.assertRegex(said, r"(?m)^@accepted: [1-9]")
        self.assertRegex(said, r"(?m)^@commits: [1-9]")


if __name__ == "__main__":
    unittest.main()
