# SPDX-License-Identifier: MIT
"""What a ring client has submitted without an id, and waits for, across an upgrade and a crash."""
import os
import shutil
import signal
import subprocess

from troupe import LIMIT, Bell, TestCase, actor, end_process, helper


def copy_programs(s):
    """Has the supervisor run from a directory of its own."""
    built = os.path.dirname(s.command[0])
    for name in "trouped", "trouped-supervisor":
        shutil.copy(os.path.join(built, name), s.path(name))
    s.command[0] = s.path("trouped")


class Flight:
    """A ring client that submits lines as jobs without ids; up to `window` at a time."""

    def __init__(self, s, group, window=1000):
        self.process = subprocess.Popen([helper("flight"), s.socket_path, group, str(window)], stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE, text=True)
        s.connections.callback(end_process, self.process)

    def submit(self, *scripts):
        for script in scripts:
            self.process.stdin.write(script.replace("\n", "|") + "\n")
        self.process.stdin.flush()

    def pause(self):
        self.submit("pause")
        line = self.process.stdout.readline()
        assert line == "paused\n", line
        _, status = os.waitpid(self.process.pid, os.WUNTRACED)
        assert os.WIFSTOPPED(status)

    def resume(self):
        self.process.send_signal(signal.SIGCONT)

    def read_all(self):
        """{number: (error, end, result)}, each once."""
        ends = {}
        for line in self.process.stdout:
            number, *end = line.rstrip("\n").split(" ", 3)
            assert int(number) not in ends, line
            ends[int(number)] = tuple(end)
        return ends

    def finish(self):
        self.process.stdin.close()
        ends = self.read_all()
        assert self.process.wait(LIMIT) == 0
        return ends

class InFlight(TestCase):
    def start(self, groups):
        s = self.supervisor(groups, state=True)
        copy_programs(s)
        s.start()
        return s

    def upgrade(self, s, times=2):
        for _ in range(times):
            s.ctl("upgrade", check=True)
            self.assertNotIn("of the last supervisor are dropped", s.log())

    def submit_in_hand_and_waiting(self, s, group):
        """A flight of two jobs in hand and three that wait."""
        begun, go = Bell(s, "begun"), Bell(s, "go")
        flight = Flight(s, group)
        flight.submit(*(f"ring {begun.path}\nwait {go.path}\necho {n}" for n in range(2)), *(f"echo {n}" for n in range(2, 5)))
        begun.wait(2)
        s.until(lambda: s.group(group)["queued"] == 3)
        return flight, go

    def check_in_hand_and_waiting(self, group, **jobs):
        s = self.start({group: actor(2, Jobs=jobs)})
        flight, go = self.submit_in_hand_and_waiting(s, group)
        self.upgrade(s)
        go.ring(2)
        self.assertEqual(flight.finish(), {n: ("-", "succeeded", str(n)) for n in range(5)})
        self.assertEqual(s.group(group)["succeeded"], 5)
        return s

    def test_a_window_whose_jobs_have_all_ended_is_filled_again(self):
        s = self.start({"actor": actor()})
        flight = Flight(s, "actor", 1)
        flight.submit(*(f"echo {n}" for n in range(3)))
        self.assertEqual(flight.finish(), {n: ("-", "succeeded", str(n)) for n in range(3)})

    def test_D10_jobs_without_ids_end_once_and_their_results_are_not_kept(self):
        s = self.check_in_hand_and_waiting("actor")
        self.assertEqual(s.pages("List", "jobs", ended=True)[0], [])

    def test_D10_durable_jobs_without_ids_end_once(self):
        self.check_in_hand_and_waiting("kept", Durable="yes")

    def test_D10_jobs_without_ids_end_once_of_which_nothing_is_kept(self):
        self.check_in_hand_and_waiting("actor", ResultTTLSec=0)

    def test_D10_more_durable_jobs_than_are_in_memory_end_once(self):
        s = self.start({"kept": actor(Jobs={"Durable": "yes"})})
        s.call("Pause", target="kept")
        flight = Flight(s, "kept", 3000)
        flight.submit(*(f"echo {n}" for n in range(2500)))
        s.until(lambda: s.group("kept")["queued"] == 2500)
        self.upgrade(s)
        s.call("Resume", target="kept")
        self.assertEqual(flight.finish(), {n: ("-", "succeeded", str(n)) for n in range(2500)})

    def test_D10_a_large_submission_that_waits_for_room_is_taken_once(self):
        s = self.start({"actor": actor(Jobs={"QueueMax": 1})})
        s.call("Pause", target="actor")
        flight = Flight(s, "actor")
        flight.submit("echo 0", *("sum\n\n" + "x" * size for size in (100000, 100001)))
        s.until(lambda: s.group("actor")["senders"] == 1)
        self.upgrade(s)
        s.call("Resume", target="actor")
        ends = flight.finish()
        self.assertEqual([end[:2] for end in ends.values()], [("-", "succeeded")] * 3)
        self.assertEqual([ends[n][2].split()[0] for n in range(3)], ["0", "100005", "100006"])

    def test_D10_results_that_found_no_room_arrive_once(self):
        s = self.start({"actor": actor(Group={"Environment": f"LARGE={'x' * 3000}"},
                                       Jobs={"ResultTTLSec": 0, "MaxRetries": 0})})
        s.call("Pause", target="actor")
        flight = Flight(s, "actor")
        flight.submit(*["environment LARGE"] * 500, "retry 1 bad")
        flight.pause()
        s.call("Resume", target="actor")
        s.until(lambda: s.group("actor")["dead"] == 1)
        self.upgrade(s)
        flight.resume()
        self.assertEqual(flight.finish(), {n: ("-", "succeeded", "") for n in range(500)} | {500: ("-", "dead/attempts", "")})

    def test_D11_a_failed_upgrade_loses_no_job_without_id(self):
        s = self.start({"actor": actor(2)})
        flight, go = self.submit_in_hand_and_waiting(s, "actor")
        os.rename(s.path("trouped-supervisor"), s.path("real"))
        with open(s.path("trouped-supervisor"), "w", encoding="ascii") as file:
            file.write("#!/bin/sh\nexit 0\n")  # passes the check, and ends
        os.chmod(s.path("trouped-supervisor"), 0o755)
        self.assertEqual(s.ctl("upgrade").returncode, 1)
        go.ring(2)
        self.assertEqual(flight.finish(), {n: ("-", "succeeded", str(n)) for n in range(5)})

    def test_D12_after_a_crash_a_job_without_id_ends_once_with_an_error(self):
        s = self.start({"actor": actor(2)})
        flight, go = self.submit_in_hand_and_waiting(s, "actor")
        s.crash()
        self.upgrade(s, 1)
        go.ring(2)
        self.assertEqual(flight.finish(), {n: ("ECONNRESET", "succeeded", "") for n in range(5)})

    def test_D10_a_client_that_goes_meanwhile_leaves_its_jobs(self):
        s = self.start({"actor": actor(2)})
        flight, go = self.submit_in_hand_and_waiting(s, "actor")
        end_process(flight.process)
        self.upgrade(s)
        go.ring(2)
        s.until(lambda: s.group("actor")["succeeded"] == 5)
