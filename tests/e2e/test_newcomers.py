# SPDX-License-Identifier: MIT
"""The first mistakes of a newcomer: each message ends in the command that repairs it."""
import os
import subprocess
import unittest

from troupe import LIMIT, TROUPE_EXEC, TROUPECTL, TestCase, ini


class Mistakes(TestCase):
    def said(self, s, *arguments, **options):
        ended = s.ctl(*arguments, **options)
        self.assertNotEqual(ended.returncode, 0)
        return ended.stderr.strip()

    def test_the_daemon_does_not_run(self):
        path = self.supervisor().socket_path
        for chosen, option, end in ((path, [], "'unset TROUPE_SOCKET' chooses the usual one"), ("", ["--socket", path], "is trouped running there?")):
            ended = subprocess.run([TROUPECTL, "status", *option], env={**os.environ, "TROUPE_SOCKET": chosen}, capture_output=True, text=True, check=False)
            self.assertEqual(ended.returncode, 3)
            self.assertTrue(ended.stderr.endswith(end + "\n"), ended.stderr)

    @unittest.skipIf(os.path.exists("/run/troupe/troupe.sock"), "a supervisor runs on this machine")
    def test_the_daemon_of_the_machine_does_not_run(self):
        for verb in ["status"], ["do", "mail", "--data", "x"]:
            ended = subprocess.run([TROUPECTL, *verb], env={**os.environ, "TROUPE_SOCKET": ""}, capture_output=True, text=True, check=False)
            self.assertRegex(ended.stderr, "^troupectl: no supervisor at /run/troupe/troupe.sock: .*; 'systemctl start trouped' starts it\n$")

    @unittest.skipIf(os.geteuid() != 0, "it needs another user")
    def test_it_is_not_permitted(self):
        s = self.started({"mail": ini(f"{TROUPE_EXEC} -- cat")})
        for verb in (["do", "mail", "--data", "x"], ["create", "mail", "--data", "x"], ["reload"], ["stop", "mail"]):
            self.assertTrue(self.said(s, *verb, user=65534).endswith("; root may: 'sudo troupectl ...'"), verb)

    def test_the_group_is_not_known_as_its_file_is_not_read_yet(self):
        s = self.started()
        s.write("mail.group", ini(f"{TROUPE_EXEC} -- cat"))
        for verb in "do", "create", "status", "deaths":
            self.assertTrue(self.said(s, verb, "mail").endswith("and 'troupectl reload' reads new files"), verb)
        s.ctl("reload", check=True)
        self.assertEqual(s.ctl("do", "mail", "--data", "x", check=True).stdout, "x")

    def test_the_program_is_missing(self):
        s = self.started({"a": ini("/no/such/program"), "b": ini(f"{TROUPE_EXEC} -- no-such-program", Restart={"Restart": "no"})})
        self.assertTrue(s.ctl("why", "a").stdout.strip().endswith("after a correction, run 'troupectl reload'"))
        s.wait_event("worker.died", "b")
        self.assertTrue(s.deaths("b")[0]["stderr"].strip().endswith("or correct ExecStart= and run 'troupectl reload'"))

    @unittest.skipIf(os.geteuid() != 0, "it becomes another user")
    def test_an_ordinary_user_s_supervisor_cannot_start_workers_as_another_user(self):
        s = self.supervisor({"mail": ini("/bin/cat", Group={"User": "daemon"}, Restart={"Restart": "no"})})
        os.chmod(s.directory, 0o777)
        os.chmod(s.path("notify"), 0o777)
        s.start(user=65534, group=65534, extra_groups=[])
        s.wait_event("worker.spawn-failed", "mail")
        self.assertIn("could not be started: User=, which takes a supervisor that runs as root", s.ctl("status", "mail").stdout)

    def test_on_a_terminal_a_result_ends_its_line(self):
        s = self.started({"mail": ini(f"{TROUPE_EXEC} -- cat")})
        for text, shown in ("hello", b"hello\r\n"), ("hello\n", b"hello\r\n"), ("", b""):
            terminal, end = os.openpty()
            with open(terminal, "rb", buffering=0) as terminal:
                with open(end, "wb") as end:
                    subprocess.run([TROUPECTL, "--socket", s.socket_path, "do", "mail", "--data", text], stdout=end, check=True, timeout=LIMIT)
                    os.set_blocking(terminal.fileno(), False)
                    self.assertEqual(terminal.read(100) or b"", shown)
