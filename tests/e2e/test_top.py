# SPDX-License-Identifier: MIT
"""troupectl top, on a terminal and on a pipe."""
import signal
import subprocess

from screen import Screen
from test_cells import keyed
from troupe import ACTOR, LIMIT, TROUPECTL, TestCase, actor, ini


class Top(TestCase):
    def top(self, s, *arguments, **options):
        screen = Screen(self, [TROUPECTL, "--socket", s.socket_path, "top", "--interval", "50ms", *arguments], **options)
        screen.wait(r"^NAME +STATE")
        return screen

    def test_M4_groups_are_shown_alone_and_one_with_its_workers(self):
        s = self.started({"alpha": actor(2), "beta": actor()})
        text = self.top(s).wait(r"^alpha +running +2/2 +0 .*\nbeta +running +1/1")
        self.assertRegex(text, r"^trouped \S+, up .*; 2 groups, 3 of 3 workers up; 0 queued, 0 running")
        text = self.top(s, "alpha").wait(r"^alpha .*\n +alpha/0 +idle .*\n +alpha/1 +idle ")
        self.assertNotIn("beta", text)

    def test_M4_cells_are_shown_with_their_workers(self):
        s = self.started({"mail": keyed()})
        s.call("Pause", target="mail")
        for _ in range(3):
            s.create("mail", "echo", key="acme")
        self.top(s).wait(r"^mail +paused +\S+ +3 ")
        self.top(s, "mail/acme").wait(r"^  mail/acme +paused +1/1 +3 .*\n +mail/acme/0 +idle")

    def test_M4_a_death_scrolls_by(self):
        s = self.started({"alpha": ini(ACTOR, Resources={"LimitCORE": 0}, Jobs={"MaxRetries": 0})})
        screen = self.top(s, columns=160)
        s.do("alpha", "complain famous last words\ncrash abort")
        screen.wait(r"^LAST DEATHS\n.* alpha/0 killed by SIGABRT.*: famous last words")

    def test_M4_rows_in_trouble_come_first(self):
        s = self.started({"alpha": actor(1), "missing": ini("/nonexistent", Pool={"Size": 1})})
        self.top(s).wait(r"^missing +cannot start .*\nalpha +running")

    def test_M4_a_screen_that_is_resized_is_filled_again(self):
        s = self.started({"alpha": actor(8)})
        screen = self.top(s, "--all", columns=132, rows=24)
        screen.wait("TOOK99 .*RUN99")
        screen.resize(10, 60)
        text = screen.wait(r"^alpha .*\n +alpha/0 .*\n +alpha/1 .*\n +alpha/2 .*\nand 5 more")
        self.assertNotIn("RUN99", text, "what does not fit is left out")
        self.assertIn("QUEUED", text)
        screen.resize(1, 8)
        screen.resize(30, 140)
        screen.wait("TOOK99 .*RUN99")

    def test_M4_states_have_colours_unless_the_user_wants_none(self):
        s = self.started({"alpha": actor(1), "beta": actor(1)})
        for no_color, colours in ("", True), ("1", False):
            screen = self.top(s, "--count=1", TERM="xterm-256color", NO_COLOR=no_color)
            self.assertEqual(screen.wait_end(), 0)
            self.assertEqual("\x1b[32m" in screen.raw, colours)

    def test_M4_a_signal_ends_it(self):
        s = self.started({"alpha": actor(1)})
        screen = self.top(s)
        screen.process.send_signal(signal.SIGINT)
        self.assertEqual(screen.wait_end(), -signal.SIGINT)

    def test_M4_it_goes_on_after_an_upgrade_and_a_crash(self):
        s = self.started({"alpha": actor(1)})
        screen = self.top(s)
        s.ctl("upgrade", check=True)
        s.crash()
        s.call("Resize", target="alpha", size=3, wait=True)
        screen.wait(r"^alpha +running +3/3")

    def test_M4_all_groups_open_and_the_picture_count_is_kept(self):
        s = self.started({f"g{i}": actor(2) for i in range(3)})
        screen = self.top(s, "--count=5", "--all", rows=40)
        screen.wait(r"^g0 .*\n +g0/0 +idle .*\n +g0/1 +idle .*\ng1 .*\n(.*\n){3} +g2/0 +idle .*\n +g2/1 +idle ")
        self.assertEqual(screen.wait_end(), 0)

    def test_M4_lines_come_where_there_is_no_terminal(self):
        s = self.started({"alpha": actor(1), "beta": actor(1)})
        process = s.ctl("top", "--count", "2", "--interval", "10ms", "--all", check=True)
        blocks = process.stdout.strip().split("\n\n")
        self.assertEqual(len(blocks), 2, process.stdout)
        for block in blocks:
            self.assertRegex(block, r"(?m)^NAME +STATE .*\nalpha +running +1/1 .*\n +alpha/0 +idle .*\nbeta ")
        self.assertNotIn("\x1b", process.stdout)
        self.assertEqual(s.ctl("top", "--json").returncode, 2)

    def test_M4_without_a_supervisor_it_says_so(self):
        process = subprocess.run([TROUPECTL, "--socket", "/nonexistent/socket", "top"], capture_output=True, text=True,
                                 timeout=LIMIT)
        self.assertEqual(process.returncode, 3)
        self.assertIn("no supervisor at /nonexistent/socket", process.stderr)

    def test_M4_untrusted_text_moves_no_cursor(self):
        s = self.started({"alpha": ini(ACTOR, Resources={"LimitCORE": 0}, Jobs={"MaxRetries": 0})})
        screen = self.top(s, columns=160)
        s.do("alpha", "complain \x1b[2Jgone\ncrash abort")
        screen.wait(r"alpha/0 killed by SIGABRT.*: \\x1b\[2Jgone")
