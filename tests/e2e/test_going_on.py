# SPDX-License-Identifier: MIT
"""troupectl goes on by itself when the supervisor ends and another one comes."""
import collections
import contextlib
import json
import os
import socket
import subprocess
import tempfile
import threading
import unittest

from troupe import ACTOR, LIMIT, TROUPECTL, VERSION, Bell, TestCase, end_process, ini

JOB = {"id": "mine", "group": "g", "state": "running", "attempt": 1, "failed_attempts": 0, "max_attempts": 1,
       "priority": 32, "created_at": 1, "cancel_requested": False, "attempts": []}
ENDED = {**JOB, "state": "succeeded", "ended_at": 2, "result": {"encoding": "utf8", "data": "done"}}
CLOSE = object()  # the connection, without an answer


def error(name):
    return {"error": "io.troupe.Jobs." + name, "parameters": {"id": "mine"}}


class Scripted:
    """A socket that answers calls as it is told, whatever they are, and notes them."""

    def __init__(self, test, *answers):
        self.directory = tempfile.mkdtemp(prefix="troupe-e2e-")
        self.path = os.path.join(self.directory, "sock")
        self.answers = list(answers)
        self.calls = []
        self.listener = socket.socket(socket.AF_UNIX)
        self.listener.bind(self.path)
        self.listener.listen()
        self.thread = threading.Thread(target=self.run)
        self.thread.start()
        test.addCleanup(self.end)

    def run(self):
        with contextlib.suppress(OSError):
            while self.answers:
                connection, _ = self.listener.accept()
                with connection:
                    self.serve(connection)
        self.listener.close()

    def serve(self, connection):
        data = b""
        while self.answers:
            while b"\0" not in data:
                received = connection.recv(65536)
                if not received:
                    return
                data += received
            call, _, data = data.partition(b"\0")
            self.calls.append(json.loads(call))
            while True:
                answer = self.answers.pop(0)
                if answer is CLOSE:
                    return
                connection.sendall(json.dumps(answer, separators=(",", ":")).encode() + b"\0")
                if not answer.get("continues"):
                    break

    def end(self):
        with contextlib.suppress(OSError):
            self.listener.shutdown(socket.SHUT_RDWR)
        self.thread.join(LIMIT)
        with contextlib.suppress(FileNotFoundError):
            os.unlink(self.path)
        os.rmdir(self.directory)

    def methods(self):
        return [call["method"].rpartition(".")[2] for call in self.calls]


class Calls(unittest.TestCase):
    def ctl(self, script, *arguments):
        return subprocess.run([TROUPECTL, "--socket", script.path, *arguments], input="", text=True, capture_output=True,
                              timeout=LIMIT)

    def test_a_repeated_create_has_the_same_id_and_takes_exists_for_accepted(self):
        for lost in CLOSE, error("Restarting"):
            script = Scripted(self, lost, error("JobExists"))
            process = self.ctl(script, "create", "g")
            self.assertEqual(process.returncode, 0, process.stderr)
            self.assertEqual(script.methods(), ["Create", "Create"])
            [id] = {call["parameters"]["options"]["id"] for call in script.calls}
            self.assertEqual(process.stdout, id + "\n")

    def test_a_first_create_does_not_take_exists_for_accepted(self):
        self.assertEqual(self.ctl(Scripted(self, error("JobExists")), "create", "g").returncode, 6)

    def test_a_followed_job_is_followed_on_and_no_state_is_shown_twice(self):
        running = {"continues": True, "parameters": {"job": JOB}}
        script = Scripted(self, running, CLOSE, running, error("Restarting"), running, {"parameters": {"job": ENDED}})
        process = self.ctl(script, "job", "mine", "--follow", "--json")
        self.assertEqual(process.returncode, 0, process.stderr)
        self.assertEqual([json.loads(line)["job"]["state"] for line in process.stdout.splitlines()], ["running", "succeeded"])

    def test_a_followed_job_that_is_not_known_any_more_is_told(self):
        script = Scripted(self, {"continues": True, "parameters": {"job": JOB}}, CLOSE, error("NoSuchJob"))
        process = self.ctl(script, "job", "mine", "--follow")
        self.assertEqual(process.returncode, 9)
        self.assertIn("what became of job mine is not known", process.stderr)

    def test_a_followed_log_is_followed_on(self):
        def lines(*lines):
            return {"continues": True, "parameters": {"lines": lines}}
        known = {"parameters": {"groups": []}}
        script = Scripted(self, known, lines("a"), CLOSE, lines("b"), {"parameters": {"lines": ["c"]}})
        self.assertEqual(self.ctl(script, "logs", "g", "--follow").stdout, "a\nb\nc\n")

    def test_a_call_whose_outcome_would_be_unclear_is_not_repeated(self):
        script = Scripted(self, CLOSE, {"parameters": {}})
        self.assertEqual(self.ctl(script, "restart", "g").returncode, 3)
        self.assertEqual(script.methods(), ["Restart"])

    def test_a_supervisor_that_ends_while_one_attaches_is_waited_for(self):
        for arguments in ("map", "g"), ("do", "g"):
            for lost in CLOSE, error("Restarting"):
                script = Scripted(self, lost, CLOSE, error("NotPermitted"))
                process = self.ctl(script, *arguments)
                self.assertEqual(process.returncode, 4, process.stderr)
                self.assertEqual(script.methods(), ["Attach"] * 3)

    def test_it_gives_up_after_the_time_given(self):
        for span, said in (("0", "closed the connection"), ("20ms", "did not come back within 20ms")):
            process = self.ctl(Scripted(self, CLOSE), "create", "g", "--reconnect", span)
            self.assertEqual(process.returncode, 3)
            self.assertIn(said, process.stderr)

    def test_a_supervisor_that_was_never_there_is_told_at_once(self):
        process = subprocess.run([TROUPECTL, "--socket", "/nonexistent/sock", "create", "g", "--reconnect", "infinity"],
                                 text=True, capture_output=True, timeout=LIMIT)
        self.assertEqual(process.returncode, 3)
        self.assertIn("no supervisor at", process.stderr)


class Going(TestCase):
    def setUp(self):
        self.s = self.supervisor({
            "actor": ini(ACTOR, Pool={"Size": 2}, Restart={"MinSec": "10ms"}),
            "durable": ini(ACTOR, Pool={"Size": 2}, Restart={"MinSec": "10ms"}, Jobs={"Durable": "yes"}),
        }, state=True).start()

    def spawn(self, *arguments):
        process = subprocess.Popen([TROUPECTL, "--socket", self.s.socket_path, *arguments], stdin=subprocess.PIPE,
                                   stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        self.addCleanup(end_process, process)
        return process

    def notes(self):
        with open(self.s.path("notes"), encoding="ascii") as file:
            return collections.Counter(int(line) for line in file)

    def map_across(self, replace, group="actor", unknown=256, counted=True):
        """Runs map; `replace` ends the supervisor meanwhile. At most that many outcomes are unknown. Without `counted`, an
        attempt may count that the end of the supervisor kept from beginning. Returns what map wrote to standard error."""
        n, window = 2000, 256
        mapping = self.spawn("map", group, "--json", "--keep-going", "--window", str(window))
        feeding = threading.Thread(target=lambda: [
            mapping.stdin.write("".join(f"note {self.s.path('notes')} {i}\n" for i in range(n)).encode()),
            mapping.stdin.close()])
        feeding.start()
        outcomes = [json.loads(mapping.stdout.readline()) for _ in range(100)]
        replace()
        outcomes += [json.loads(line) for line in mapping.stdout]
        feeding.join(LIMIT)
        err = mapping.stderr.read().decode()
        self.assertEqual([one["line"] for one in outcomes], list(range(1, n + 1)))
        states = collections.Counter(one["state"] for one in outcomes)
        self.assertEqual(set(states) - {"unknown"}, {"succeeded"}, err)
        self.assertLessEqual(states["unknown"], unknown)
        self.assertEqual(mapping.wait(LIMIT), 9 if states["unknown"] else 0)
        notes = self.notes()
        for one in outcomes:
            n = notes[one["line"] - 1]
            if one["state"] == "succeeded":
                # A durable job begins again if the end of its attempt was not on disk yet: that counts.
                attempts = one["attempts"] if group == "durable" else 1
                self.assertIn(n, [attempts] if counted else [attempts - 1, attempts])
            self.assertLessEqual(n, 1 if group == "actor" else 2, "run twice")
        return err


class Restarts(Going):
    """The keeper ends with the supervisor here: nothing is adopted."""

    def replace(self):
        self.s.kill()
        self.s.start()

    def test_map_goes_on_and_each_line_has_one_outcome(self):
        self.assertRegex(self.map_across(self.replace), r"waiting for it\ntroupectl: connected again\n")

    def test_U1_map_on_a_durable_group_loses_no_line_of_a_supervisor_that_is_killed(self):
        self.map_across(self.replace, "durable", unknown=0, counted=False)

    def test_U1_map_on_a_durable_group_goes_on_after_a_stop(self):
        def restart():
            self.s.stop()
            self.s.start()
        err = self.map_across(restart, "durable", unknown=0)
        self.assertRegex(err, r"^troupectl: the connection to the supervisor is lost; waiting for it\n"
                              r"troupectl: connected again\n2,000 jobs in .*: 2,000 succeeded; \d+ retried\n$")

    def test_U1_do_on_a_durable_group_goes_on_after_a_stop(self):
        for arguments in (), ("--json",):
            self.s.call("Pause", target="durable")
            doing = self.spawn("do", "durable", *arguments, "--data", "echo done")
            self.s.until(lambda: self.s.group("durable")["queued"])
            self.s.stop()
            self.s.start()
            out, err = doing.communicate(timeout=LIMIT)
            self.assertEqual(doing.returncode, 0, err)
            self.assertIn(b"done", out)

    def test_U1_without_another_supervisor_map_tells_that_accepted_jobs_are_on_disk(self):
        self.s.call("Pause", target="durable")
        mapping = self.spawn("map", "durable", "--reconnect", "10ms")
        mapping.stdin.write(b"echo a\necho b\n")
        mapping.stdin.flush()
        self.s.until(lambda: self.s.group("durable")["queued"] == 2)
        self.s.stop()
        _, err = mapping.communicate(timeout=LIMIT)
        self.assertIn(b"the jobs that group 'durable' has accepted are on disk, and continue at the next start\n", err)
        self.assertNotIn(b"refused", err)
        self.assertEqual(mapping.returncode, 3)

    def test_lines_whose_fate_is_not_known_are_told_once(self):
        bell = Bell(self.s, "bell")
        mapping = self.spawn("map", "actor", "--keep-going")
        mapping.stdin.write(f"ring {bell.path}\nring {bell.path}\n".encode())
        mapping.stdin.write("".join(f"wait {self.s.path('never')}\n" for _ in range(3)).encode())
        os.mkfifo(self.s.path("never"))
        mapping.stdin.flush()
        bell.wait(2)
        self.assertEqual([mapping.stdout.readline() for _ in range(2)], [b"\n"] * 2)
        self.s.until(lambda: len(self.s.pages("List", "jobs")[0]) == 3)
        self.replace()
        self.assertIn(b"waiting for it", mapping.stderr.readline())
        mapping.stdin.write(b"echo after\n")
        mapping.stdin.close()
        self.assertEqual(mapping.stdout.read(), b"\n\n\nafter\n")
        self.assertRegex(mapping.stderr.read().decode(), r"line 3: what became of job \S+ is not known: the supervisor that had it is gone\n"
                                                         r"troupectl: lines 4 to 5: the same\n")
        self.assertEqual(mapping.wait(LIMIT), 9)

    def test_do_tells_that_the_fate_of_its_job_is_not_known(self):
        os.mkfifo(self.s.path("never"))
        doing = self.spawn("do", "actor", "--id", "mine", "--data", f"wait {self.s.path('never')}")
        self.s.until(lambda: self.s.pages("List", "jobs")[0])
        self.replace()
        _, err = doing.communicate(timeout=LIMIT)
        self.assertEqual(doing.returncode, 9)
        self.assertIn(b"what became of job mine is not known", err)


class Crashes(Going):
    """The keeper starts another supervisor, and clients keep their rings."""

    def test_map_goes_on_with_its_rings_and_each_line_has_one_outcome(self):
        err = self.map_across(self.s.crash)
        self.assertNotIn("connect", err)
        self.assertIn("1 of 1 clients of the former supervisor continue", self.s.log())

    def test_D10_map_knows_what_became_of_each_line_across_an_upgrade(self):
        err = self.map_across(lambda: self.s.ctl("upgrade", check=True), unknown=0)
        self.assertNotIn("connect", err)

    def test_D10_do_gets_the_result_of_a_job_that_waits_during_an_upgrade(self):
        _, bell = self.s.busy("actor", "", n=2)
        doing = self.spawn("do", "actor", "--data", "echo done")
        self.s.until(lambda: len(self.s.pages("List", "jobs")[0]) == 3)
        self.s.ctl("upgrade", check=True)
        bell.ring(2)
        out, err = doing.communicate(timeout=LIMIT)
        self.assertEqual((doing.returncode, out), (0, b"done"), err)

    def test_D9_durable_lines_of_map_have_one_outcome_each(self):
        self.assertNotIn("connect", self.map_across(self.s.crash, "durable", unknown=0))

    def test_D9_map_gets_the_end_of_a_job_that_is_in_hand_during_a_crash(self):
        begun, bell = Bell(self.s, "begun"), Bell(self.s, "bell")
        for group in "actor", "durable":
            mapping = self.spawn("map", group, "--null")
            mapping.stdin.write(f"ring {begun.path}\nwait {bell.path}\necho done\0".encode())
            mapping.stdin.flush()
            begun.wait()
            self.s.crash()
            bell.ring()
            out, err = mapping.communicate(timeout=LIMIT)
            self.assertEqual((mapping.returncode, out), (0, b"done\0"), err)

    def test_a_client_that_goes_on_keeps_its_address_and_others_get_their_own(self):
        mapping = self.spawn("map", "actor")
        self.s.until(lambda: self.clients() == ["@1"])
        self.s.crash()
        other = self.spawn("map", "actor")
        self.s.until(lambda: self.clients() == ["@1", "@2"])
        for process in mapping, other:
            out, _ = process.communicate(b"echo x\n", LIMIT)
            self.assertEqual(out, b"x\n")
        self.s.until(lambda: self.clients() == [])

    def test_the_address_of_a_client_that_has_ended_is_not_used_again(self):
        with self.s.connect() as ended:
            address = ended.call("Attach", version=VERSION)["address"]
        self.s.until(lambda: self.clients() == [])
        self.s.crash()
        self.assertNotEqual(self.s.connect().call("Attach", version=VERSION)["address"], address)

    def clients(self):
        return sorted(actor["name"] for actor in self.s.pages("io.troupe.Actors.ListActors", "actors", kind="client")[0])

    def test_a_client_that_ended_meanwhile_is_forgotten(self):
        mapping = self.spawn("map", "actor")
        self.s.until(lambda: self.clients() == ["@1"])
        with contextlib.suppress(ProcessLookupError), self.s.stopped():
            mapping.kill()
            mapping.wait()
            self.s.crash()
        self.s.until(lambda: self.clients() == [])

    def test_a_connection_that_is_used_for_calls_as_well_ends_with_the_supervisor(self):
        connection = self.s.connect()
        connection.call("Attach", version=VERSION)
        connection.call("GetInfo")
        self.s.crash()
        self.assertRaises(EOFError, connection.receive)

    def test_nothing_is_left_in_the_keeper_when_a_client_disconnects(self):
        def keeper_fds():
            return len(os.listdir(f"/proc/{self.s.process.pid}/fd"))
        mapping = self.spawn("map", "actor")
        self.s.until(lambda: self.clients() == ["@1"])
        self.s.crash()
        self.s.until(lambda: self.clients() == ["@1"])
        before = keeper_fds()
        mapping.communicate(b"", LIMIT)
        self.s.until(lambda: keeper_fds() <= before - 5)
