# SPDX-License-Identifier: MIT
"""troupectl top: M4, on a terminal and on a pipe."""
import os
import signal
import subprocess

from screen import Screen
from test_cells import keyed
from test_life import actor
from troupe import ACTOR, LIMIT, TROUPECTL, TestCase, ini


class Top(TestCase):
    def top(self, s, *arguments, **options):
        screen = Screen(self, [TROUPECTL, "--socket", s.socket_path, "top", "--interval", "50ms", *arguments], **options)
        screen.wait(r"^NAME +STATE")
        return screen

    def test_M4_groups_open_to_workers_and_close_again(self):
        s = self.started({"alpha": actor(2), "beta": actor()})
        screen = self.top(s)
        screen.wait(r"^\+ alpha +running +2/2 +0 .*\n\+ beta +running +1/1")
        self.assertRegex(screen.text(), r"^trouped \S+, up .*; 2 groups, 3 of 3 workers up; 0 queued, 0 running")
        screen.press(" ")
        text = screen.wait(r"^- alpha .*\n +alpha/0 +idle .*\n +alpha/1 +idle .*\n\+ beta")
        self.assertNotIn("beta/0", text)
        screen.press("left")
        screen.wait(lambda text: "alpha/0" not in text)
        screen.press("q")
        self.assertEqual(screen.wait_end(), 0)
        self.assertTrue(screen.is_restored())

    def test_M4_cells_open_to_their_workers(self):
        s = self.started({"mail": keyed()})
        s.call("Pause", target="mail")
        for _ in range(3):
            s.create("mail", "echo", key="acme")
        screen = self.top(s)
        screen.wait(r"^\+ mail +paused +\S+ +3 ")
        screen.press("right")
        screen.wait(r"^  \+ mail/acme +paused +1/1 +3 ")
        screen.press("down", "right")
        screen.wait(r"^  - mail/acme .*\n +mail/acme/0 +idle")

    def test_M4_a_death_scrolls_by(self):
        s = self.started({"alpha": ini(ACTOR, Resources={"LimitCORE": 0}, Jobs={"MaxRetries": 0})})
        screen = self.top(s, columns=160)
        s.do("alpha", "complain famous last words\ncrash abort")
        screen.wait(r"^LAST DEATHS\n.* alpha/0 killed by SIGABRT.*: famous last words")

    def test_M4_rows_are_filtered_and_sorted(self):
        s = self.started({f"g{i}": actor(1) for i in range(4)})
        s.call("Pause", target="g2")
        s.create("g2", "echo")
        screen = self.top(s)
        screen.press(">")
        screen.wait(r"STATE .*\*QUEUED.*\n\+ g2 .*\n\+ g0 .*\n\+ g1 .*\n\+ g3 ")
        screen.press("/", "G", "1", "enter")
        screen.wait(lambda text: "+ g1" in text and "+ g2" not in text and "Filter: G1" in text)
        screen.press("/", "x")
        screen.wait("nothing matches the filter")
        screen.press("escape")
        screen.wait(r"^\+ g0")

    def test_M4_a_screen_that_is_resized_is_drawn_again(self):
        s = self.started({"alpha": actor(1)})
        screen = self.top(s, columns=132)
        screen.wait("TOOK99 .*RUN99")
        screen.resize(12, 60)
        text = screen.wait(r"^NAME +STATE .*\n\+ alpha +running")
        self.assertNotIn("TOOK99", text, "what does not fit is left out")
        self.assertIn("QUEUED", text)
        screen.resize(5, 30)
        screen.wait(r"^NAME +STATE")
        screen.resize(1, 8)
        screen.resize(30, 140)
        screen.wait("TOOK99 .*RUN99")

    def test_M4_states_have_colours_unless_the_user_wants_none(self):
        s = self.started({"alpha": actor(1), "beta": actor(1)})
        for no_color, colours in ("", True), ("1", False):
            screen = self.top(s, "--count=1", TERM="xterm-256color", NO_COLOR=no_color)
            self.assertEqual(screen.wait_end(), 0)
            self.assertEqual("\x1b[32m" in screen.raw, colours)

    def test_M4_a_signal_restores_the_terminal(self):
        s = self.started({"alpha": actor(1)})
        screen = self.top(s)
        self.assertFalse(screen.is_restored())
        screen.process.send_signal(signal.SIGTERM)
        self.assertEqual(screen.wait_end(), 130)
        self.assertTrue(screen.is_restored())

    def test_M4_a_second_signal_restores_the_terminal_while_the_supervisor_hangs(self):
        s = self.started({"alpha": actor(1)})
        screen = self.top(s, "--timeout", "1h")
        with s.stopped():
            screen.press(" ")
            while screen.process.poll() is None:
                screen.process.send_signal(signal.SIGTERM)
                screen._read(0.01)
            self.assertEqual(screen.wait_end(), 130)
        self.assertTrue(screen.is_restored())
        self.assertIn("\x1b[?25h", screen.raw, "the cursor is shown again")

    def test_M4_it_is_suspended_and_continues(self):
        s = self.started({"alpha": actor(1)})
        script = 'stty noflsh; "$0" --socket "$1" top; echo suspended; read line; until fg; do :; done; stty -noflsh'
        screen = Screen(self, ["/bin/sh", "-mc", script, TROUPECTL, s.socket_path])
        screen.wait(r"^\+ alpha +running")
        # Ignored while ncurses draws, so it is pressed again; the shell continues it each time.
        screen.wait(lambda text: "suspended" in text or screen.press("\x1a"))
        screen.press("enter")  # ends the line only on a restored terminal
        screen.wait(lambda text: "+ alpha" in text and "suspended" not in text)
        screen.press("q")
        self.assertEqual(screen.wait_end(), 0)
        self.assertTrue(screen.is_restored())

    def test_M4_it_ends_with_its_terminal_though_nobody_hangs_up(self):
        s = self.started({"alpha": actor(1)})
        hangup = signal.signal(signal.SIGHUP, signal.SIG_IGN)  # inherited, as from nohup
        try:
            screen = self.top(s)
        finally:
            signal.signal(signal.SIGHUP, hangup)
        os.close(screen.fd)
        screen.fd = os.open("/dev/null", os.O_RDONLY)
        self.assertEqual(screen.process.wait(LIMIT), 0)

    def test_M4_it_goes_on_after_an_upgrade_and_a_crash(self):
        s = self.started({"alpha": actor(1)})
        screen = self.top(s)
        s.ctl("upgrade", check=True)
        s.crash()
        s.call("Resize", target="alpha", size=3, wait=True)
        screen.wait(r"^\+ alpha +running +3/3")

    def test_M4_a_thousand_workers_are_scrolled_through(self):
        # A program that is missing: they have no processes, and come first.
        s = self.started({"many": ini("/nonexistent", Pool={"Size": 1000}), "more": actor(1)})
        screen = self.top(s)
        screen.press(" ")
        screen.wait(r"^ +many/0 +\w+")
        screen.press("page down", "page down", "page down")
        screen.wait(lambda text: "many/50 " in text and "many/0 " not in text)
        screen.press("/", "m", "a", "n", "y", "/", "9", "9", "9", "enter")
        screen.wait(lambda text: "many/999 " in text and "many/50 " not in text and "more" not in text)

    def test_M4_all_groups_open_and_the_picture_count_is_kept(self):
        s = self.started({f"g{i}": actor(2) for i in range(3)})
        screen = self.top(s, "--count=5", "--all", rows=40)
        screen.wait(r"^- g0 .*\n +g0/0 +idle .*\n +g0/1 +idle .*\n- g1 .*\n(.*\n){3} +g2/0 +idle .*\n +g2/1 +idle ")
        self.assertEqual(screen.wait_end(), 0)

    def test_M4_lines_come_where_there_is_no_terminal(self):
        s = self.started({"alpha": actor(1), "beta": actor(1)})
        process = s.ctl("top", "--count", "2", "--interval", "10ms", "--all", check=True)
        blocks = process.stdout.strip().split("\n\n")
        self.assertEqual(len(blocks), 2, process.stdout)
        for block in blocks:
            self.assertRegex(block, r"(?m)^NAME +STATE .*\n- alpha +running +1/1 .*\n +alpha/0 +idle .*\n- beta ")
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
