# SPDX-License-Identifier: MIT
"""troupectl top: M4, on a terminal and on a pipe."""
import contextlib
import json
import os
import re
import signal
import socket
import subprocess
import threading
import unittest

from screen import Screen
from test_cells import keyed
from test_life import actor
from troupe import ACTOR, LIMIT, TROUPECTL, Bell, TestCase, ini


class Relay:
    """A socket in front of the supervisor's, which keeps the calls of its one client."""

    def __init__(self, s):
        self.path, self.calls = s.path("relay"), []
        self.listener = s.connections.enter_context(socket.socket(socket.AF_UNIX))
        self.listener.bind(self.path)
        self.listener.listen()
        self.server = s.connections.enter_context(socket.socket(socket.AF_UNIX))
        self.server.connect(s.socket_path)
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self):
        with contextlib.suppress(OSError):
            client, _ = self.listener.accept()
            threading.Thread(target=self._answer, args=(client,), daemon=True).start()
            calls = b""
            while data := client.recv(65536):
                *whole, calls = (calls + data).split(b"\0")
                self.calls += [json.loads(call) for call in whole]  # before there is an answer to wait for
                self.server.sendall(data)

    def _answer(self, client):
        with contextlib.suppress(OSError):
            while data := self.server.recv(65536):
                client.sendall(data)

    def methods(self, after=0):
        return [call["method"].rpartition(".")[2] for call in self.calls[after:]]

    def wanted(self, after=0):
        """What each refresh after so many calls wanted the status of."""
        return [call["parameters"]["status"] for call in self.calls[after:] if call["method"].endswith(".GetMetrics")]


class Top(TestCase):
    def top(self, s, *arguments, path=None, **options):
        screen = Screen(self, [TROUPECTL, "--socket", path or s.socket_path, "top", "--interval", "50ms", *arguments], **options)
        screen.wait(r"^NAME +STATE")
        return screen

    def test_M4_groups_open_to_workers_and_close_again(self):
        s = self.started({"alpha": actor(2), "beta": actor()})
        screen = self.top(s)
        screen.wait(r"^\+ alpha +running +2/2 +0 .*\n\+ beta +running +1/1")
        self.assertRegex(screen.text(), r"^trouped \S+, up .*; 2 groups, 3 of 3 workers up; 0 queued, 0 running")
        screen.press(" ")
        text = screen.wait(r"^- alpha .*\n +alpha/0 +idle .*\n +alpha/1 +idle .*\n\+ beta")
        screen.wait(r"^ +alpha/0 .* [0-9.]+ +[0-9.]+ (KiB|MiB)$")
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

    def test_M4_details_help_and_back(self):
        s = self.started({"alpha": actor(1)})
        screen = self.top(s)
        screen.press("?")
        screen.wait("kill the worker and start it again")
        screen.press("escape")
        screen.wait(r"^\+ alpha")
        screen.press(" ")
        screen.wait(r"^  +alpha/0")
        screen.press("down", "enter")
        screen.wait(f"Process: pid {s.worker('alpha/0')['pid']}, generation 1")
        screen.press("enter")
        screen.wait(r"^- alpha")

    def test_M4_changes_are_made_after_a_question(self):
        s = self.started({"alpha": actor(1, Worker={"TimeoutStopSec": "50ms"})})
        screen = self.top(s)
        screen.press("p")
        screen.wait(r"^\+ alpha +paused")
        self.assertEqual(s.group("alpha")["state"], "paused")
        screen.press("p")
        screen.wait(r"^\+ alpha +running")
        screen.press("+")
        screen.wait(r"Resize alpha to 2 workers\? \(y/n\)")
        screen.press("n")
        screen.wait("nothing is changed")
        self.assertEqual(s.group("alpha")["size"], 1)
        screen.press("+")
        screen.wait(r"Resize alpha to 2 workers\? \(y/n\)")
        screen.press("y")
        screen.wait(r"^\+ alpha +running +2/2")
        screen.press("k")
        screen.wait("choose a worker")
        started, go = Bell(s, "started"), Bell(s, "go")
        screen.press(" ")
        screen.wait(r"^ +alpha/1 +idle")
        job = s.create("alpha", f"ring {started.path}\nbefore 2 wait {go.path}\necho again")
        started.wait()
        screen.press("Q", "down")
        text = screen.wait(r"^ +alpha/\d +busy")
        busy = next(line.split()[0] for line in text.splitlines() if " busy " in line)
        if busy == "alpha/1":
            screen.press("down")
        screen.press("k")
        screen.wait(rf"Kill {busy} and start it again\? Its job is queued again \(y/n\)")
        screen.press("y")
        self.assertEqual(s.wait_job(job)["state"], "succeeded")
        self.assertIn(f"{busy} is being killed and started again", screen.wait("is being killed"))

    def test_M4_rows_are_filtered_and_sorted(self):
        s = self.started({f"g{i}": actor(1) for i in range(4)})
        s.call("Pause", target="g2")
        s.create("g2", "echo")
        screen = self.top(s)
        screen.press("Q")
        screen.wait(r"STATE .*\*QUEUED.*\n\+ g2 .*\n\+ g0 .*\n\+ g1 .*\n\+ g3 ")
        screen.press("I")
        screen.wait(r"STATE .*\*QUEUED.*\n\+ g3 .*\n\+ g1 .*\n\+ g0 .*\n\+ g2 ")
        screen.press("/", "G", "1", "enter")
        screen.wait(lambda text: "+ g1" in text and "+ g2" not in text and "Filter: G1" in text)
        screen.press("/", "x")
        screen.wait("nothing matches the filter")
        screen.press("escape")
        screen.wait(r"^\+ g0")

    def test_M4_a_screen_that_is_resized_is_drawn_again(self):
        s = self.started({"alpha": actor(1)})
        screen = self.top(s, columns=132)
        screen.wait("WAIT99 .*RUN99")
        screen.resize(12, 60)
        text = screen.wait(r"^NAME +STATE .*\n\+ alpha +running")
        self.assertNotIn("WAIT99", text, "what does not fit is left out")
        self.assertIn("QUEUED", text)
        screen.resize(5, 30)
        screen.wait(r"^NAME +STATE")
        screen.resize(1, 8)
        screen.resize(30, 140)
        screen.wait("WAIT99 .*RUN99")

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
            screen.press("p")
            while screen.process.poll() is None:
                screen.process.send_signal(signal.SIGTERM)
                screen._read(0.01)
            self.assertEqual(screen.wait_end(), 130)
        self.assertTrue(screen.is_restored())
        self.assertIn("\x1b[?25h", screen.raw, "the cursor is shown again")

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

    def test_M4_only_workers_on_the_screen_are_asked_for(self):
        s = self.started({"many": actor(60), "more": actor(1)})
        relay = Relay(s)
        screen = self.top(s, path=relay.path, rows=24)

        def next_wanted(count=3):
            before = len(relay.calls)
            screen.wait(lambda _: len(relay.wanted(before)) >= count)
            return relay.wanted(before)[-1]
        screen.press(" ")
        screen.wait(r"^ +many/18 +idle")
        opened = next(call for call in relay.calls if call["method"].endswith(".GetStatus"))
        self.assertEqual(opened["parameters"], {"target": "many", "brief": True})
        self.assertEqual(next_wanted(), [{"target": "many", "only": [str(i) for i in range(19)]}])
        screen.press(*["page down"] * 4)
        screen.wait(r"^ +many/59 +idle .*\n\+ more")
        self.assertEqual(next_wanted(), [{"target": "many", "only": [str(i) for i in range(41, 60)]}])
        screen.press("R")
        self.assertEqual(next_wanted(), [{"target": "many"}])
        screen.press("N")
        self.assertIn("only", next_wanted()[0])
        before = len(relay.calls)
        s.call("Restart", target="many/7", wait=True)
        screen.wait(lambda _: [{"target": "many"}] in relay.wanted(before))

    def test_M4_a_refresh_is_one_request_whatever_is_open(self):
        # A program that is missing: they have no processes, and come first.
        s = self.started({name: ini("/nonexistent", Pool={"Size": 334}) for name in ("one", "other", "third")} |
                         {"alpha": ini(ACTOR, Resources={"LimitCORE": 0}, Jobs={"MaxRetries": 0})})
        relay = Relay(s)
        screen = self.top(s, path=relay.path, rows=700)
        screen.press(*["down"] * 2, " ", "up", " ", "up", " ", "R")
        screen.wait(r"^- third .*\n +third/0 ")
        screen.wait("sorted by JOBS/S")
        before = len(relay.calls)
        s.do("alpha", "crash abort")
        screen.wait("alpha/0 killed by SIGABRT")
        screen.wait(lambda _: len(relay.wanted(before)) >= 5)
        self.assertEqual(set(relay.methods(before)), {"GetMetrics"})
        self.assertEqual([part["target"] for part in relay.wanted(before)[-1]], ["one", "other", "third"])
        self.assertLess(sum(len(part.get("only", range(334))) for part in relay.wanted(before)[-1]), 700 + 100)

    def test_M4_a_screen_of_all_makes_as_many_requests_as_pictures(self):
        s = self.started({f"g{i}": actor(2) for i in range(3)})
        relay = Relay(s)
        screen = self.top(s, "--count=5", "--all", path=relay.path, rows=40)
        screen.wait(r"^ +g2/1 +idle ")
        self.assertEqual(screen.wait_end(), 0)
        self.assertEqual(relay.methods(), ["GetMetrics"] * 5)
        self.assertEqual(relay.wanted()[0], [{}])
        self.assertEqual(relay.wanted()[-1], [{"target": f"g{i}"} for i in range(3)])

    def test_M4_details_are_one_request_each_time(self):
        s = self.started({"alpha": ini("/bin/sh -c 'echo some output; exec sleep infinity'", Group={"Type": "service"})})
        relay = Relay(s)
        screen = self.top(s, path=relay.path)
        screen.press(" ")
        screen.wait(r"^  +alpha/0")
        screen.press("down", "enter")
        screen.wait("some output")
        before = len(relay.calls)
        screen.wait(lambda _: len(relay.calls) >= before + 4)
        methods = relay.methods(before)
        self.assertEqual(set(zip(methods, methods[1:])), {("GetStatus", "GetLog"), ("GetLog", "GetStatus")})

    def test_M4_a_large_group_costs_no_more_however_it_is_sorted(self):
        s = self.started({"many": ini(ACTOR, Pool={"Size": 250}, Restart={"MinSec": "1ms"})})
        relay = Relay(s)
        screen = self.top(s, path=relay.path, rows=24)
        screen.press(" ")
        screen.wait(r"^ +many/18 +idle")
        screen.press("R")
        screen.wait("sorted by JOBS/S")
        before = len(relay.calls)
        screen.wait(lambda _: len(relay.wanted(before)) >= 4)
        asked = [set(wanted["only"]) for [wanted] in relay.wanted(before)]
        self.assertLessEqual(max(map(len, asked)), 120)
        self.assertEqual(set().union(*asked[:4]), {str(i) for i in range(250)}, "all others have had their turn")
        screen.wait(lambda text: s.do("many", "echo") and re.search(r"(?m)^- many .*\n +many/\d+ +\w+ +[1-9][0-9.]* ", text))
        screen.press("T")
        started, go = Bell(s, "started"), Bell(s, "go")
        job = s.create("many", f"ring {started.path}\nwait {go.path}")
        started.wait()
        screen.wait(r"^- many .*\n +many/\d+ +busy")
        go.ring()
        s.wait_job(job)
        os.kill(s.worker("many/249")["pid"], signal.SIGKILL)
        screen.press("D")
        screen.wait(r"^- many .*\n +many/249 +idle .* 1 .*\n +many/0 ")
        self.assertTrue(all("only" in wanted for [wanted] in relay.wanted(before)))

    def test_M4_only_cells_on_the_screen_are_asked_for(self):
        s = self.started({"mail": keyed(program="/nonexistent")})
        s.call("Stop", target="mail")
        keys = [f"k{i:03}" for i in range(130)]
        for key in keys:
            s.create("mail", "x", key=key)
        relay = Relay(s)
        screen = self.top(s, path=relay.path, rows=24)
        screen.press(" ")
        screen.wait(r"^ +\+ mail/k018 +stopped")
        screen.wait(lambda _: [{"target": "mail", "only": keys[:19]}] in relay.wanted())
        before = len(relay.calls)
        s.create("mail", "x", key="k000a")
        screen.wait(r"^ +\+ mail/k000a +stopped")
        self.assertEqual(sum("only" not in wanted for [wanted] in relay.wanted(before)), 1)
        screen.press("Q")
        for _ in range(2):
            s.create("mail", "x", key="k129")
        screen.wait(r"^- mail .*\n +\+ mail/k129 +stopped +\S+ +3 ")

    def test_M4_lines_come_where_there_is_no_terminal(self):
        s = self.started({"alpha": actor(1), "beta": actor(1)})
        process = s.ctl("top", "--count", "2", "--interval", "10ms", "--all", check=True)
        blocks = process.stdout.strip().split("\n\n")
        self.assertEqual(len(blocks), 2, process.stdout)
        for block in blocks:
            self.assertRegex(block, r"(?m)^NAME +STATE .*\n- alpha +running +1/1 .*\n +alpha/0 +idle .*\n- beta ")
        self.assertNotIn("\x1b", process.stdout)
        self.assertEqual(s.ctl("top", "--json").returncode, 2)

    def test_M4_lines_of_all_groups_cost_one_request(self):
        s = self.started({f"g{i:02}": actor(2) for i in range(20)})
        relay = Relay(s)
        process = subprocess.run([TROUPECTL, "--socket", relay.path, "top", "--count=2", "--interval=10ms", "--all"],
                                 stdout=subprocess.PIPE, text=True, check=True, timeout=LIMIT)
        self.assertEqual(len(re.findall(r"(?m)^ +g\d\d/[01] +idle ", process.stdout)), 2 * 40, process.stdout)
        self.assertEqual(relay.methods(), ["GetMetrics"] * 2)
        self.assertEqual(relay.wanted(), [[{}]] * 2)

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


if __name__ == "__main__":
    unittest.main()
