# SPDX-License-Identifier: MIT
"""Workers outlive a supervisor that crashes, with the jobs that they have in hand."""
import contextlib
import os
import select
import signal
import socket
import threading
import unittest
from pathlib import Path

from troupe import ACTOR, Bell, FAULTY_TROUPED, LIMIT, TestCase, Varlink, VarlinkError, actor, ended, ini, service, text


class Continuity(TestCase):
    wake = "futex"

    def started_with(self, conf="", **groups):
        s = self.supervisor(groups, conf=conf, options=("--wake", self.wake))
        return s.start()

    def damage_record(self, s, name):
        """Damages what is kept of a slot's state."""
        directory = f"/proc/{s.process.pid}/fd/"
        for entry in os.listdir(directory):
            if os.readlink(directory + entry).startswith("/memfd:trouped-state"):
                with open(directory + entry, "r+b", buffering=0) as file:
                    content = file.read(1 << 20)
                    at = content.index(b"\0" + name.encode() + b"\0") + 1 + 168  # struct slot_record
                    for offset in range(88, 94):  # state, reason, three truths, role
                        os.pwrite(file.fileno(), b"\xff", at + offset)
                return
        self.fail("the main process holds no kept states")

    def pids(self, s, group="actor"):
        return {worker["name"]: (worker["pid"], worker["generation"]) for worker in s.workers(group)}

    def processes(self, s):
        """Those of all workers, also of predecessors that are ending."""
        return {worker.get("pid") for group in s.call("GetStatus")["groups"] for worker in group["workers"]}

    def test_a_start_or_restart_of_a_worker_that_is_still_stopping_outlives_a_crash(self):
        s = self.started({"slow": ini(ACTOR)})
        for verbs in ("stop", "start"), ("restart",):
            _, go = s.busy("slow")
            for verb in verbs:
                s.ctl(verb, "slow", check=True)
            self.assertEqual(s.worker("slow/0")["state"], "stopping")
            s.crash()
            go.ring()
            s.wait_worker("slow/0", "idle")

    @unittest.skipUnless(os.geteuid() == 0, "takes root to change what the main process holds")
    def test_D9_a_worker_whose_kept_state_is_damaged_goes_on(self):
        s = self.started_with(actor=actor(Pool={"Size": 3}))
        before = self.pids(s)
        with self.without_supervisor(s):
            self.damage_record(s, "actor/1")
        self.assertEqual(self.pids(s), before)
        self.assertIn("actor/1: what the last supervisor kept of its state is damaged", s.log())
        self.assertEqual(s.do("actor", "echo again")["result"], text("again"))

    def test_D9_what_a_worker_answers_while_there_is_no_supervisor_is_taken_first(self):
        s = self.started_with(actor=actor(Pool={"Prefetch": 4}))
        before = self.pids(s)
        begun, bell = Bell(s, "begun"), Bell(s, "bell")
        for n in range(4):
            s.create("actor", f"ring {begun.path}\nwait {bell.path}\necho {n}")
        begun.wait()
        s.until(lambda: s.group("actor")["running"] == 4)
        with self.without_supervisor(s):
            bell.ring(3)
            begun.wait(3)
        s.wait_event("job.recovered", count=3)
        bell.ring()
        s.wait_event("job.recovered", count=4)
        self.assertEqual(s.do("actor", "echo next")["result"], text("next"))
        self.assertEqual(self.pids(s), before)

    def test_D9_a_worker_that_dies_meanwhile_is_replaced_and_its_job_ends(self):
        s = self.started_with(actor=actor())
        s.busy("actor", "", id="one")
        pid = s.worker("actor/0")["pid"]
        worker = os.pidfd_open(pid)
        self.addCleanup(os.close, worker)
        with self.without_supervisor(s):
            os.kill(pid, signal.SIGKILL)
            self.assertTrue(ended(worker, LIMIT))
        s.wait_event("job.recovered")
        self.assertEqual(s.do("actor", "echo next")["result"], text("next"))
        [death] = s.deaths()
        self.assertEqual((death["pid"], death["cause"], death["job"]), (pid, "signal", "one"))
        self.assertEqual(s.worker("actor/0")["generation"], 2)

    @contextlib.contextmanager
    def unkillable(self, s, group):
        """A job whose worker cannot end within the block: it opens a pipe whose lock a thread holds."""
        path, (empty, full) = s.path("locked"), socket.socketpair()
        os.mkfifo(path)
        pipe = os.open(path, os.O_RDWR)
        thread = threading.Thread(target=os.splice, args=(empty.fileno(), pipe, 4096))
        thread.start()
        syscall = Path(f"/proc/self/task/{thread.native_id}/syscall")
        while syscall.read_text(encoding="ascii").split()[1:4:2] != [hex(empty.fileno()), hex(pipe)]:
            os.sched_yield()
        try:
            job = s.create(group, f"wait {path}\necho done")
            s.until(lambda: s.job(job)["state"] == "running")
            pid = s.worker(f"{group}/0")["pid"]
            while s.status_field("State", pid) != "D":
                os.sched_yield()
            yield job
        finally:
            full.close()
            thread.join()
            os.close(pipe)

    def test_a_worker_that_is_not_held_ends_before_the_next_supervisor_starts(self):
        s = self.supervisor({"actor": actor()}, program=FAULTY_TROUPED)
        fault = Path(s.path("fault"))
        s.environment["TROUPE_FAULT"] = f"@{fault}"
        fault.write_text("hold:4", encoding="ascii")
        s.start()
        self.wait_logged(s, "actor/0 will not outlive a crash of the supervisor")
        with self.unkillable(s, "actor"):
            s.crash()
            self.wait_logged(s, "it is started again")
            with s.connect() as client:
                client.send("io.troupe.Supervisor.GetInfo", {})
                self.assertEqual(select.select([client.socket], [], [], 1)[0], [], "it has started")
        self.assertEqual(s.do("actor", "echo next")["result"], text("next"))

    def test_limits_count_workers_that_could_not_be_taken_over_until_they_end(self):
        s = self.supervisor({group: actor(Limits={"Uses": "shared"}) for group in ("actor", "other")}, program=FAULTY_TROUPED)
        s.write("shared.limit", "[Limit]\nRunning=1\n")
        fault = Path(s.path("fault"))
        s.environment["TROUPE_FAULT"] = f"@{fault}"
        s.start()
        with self.unkillable(s, "actor"):
            fault.write_text("mmap:1", encoding="ascii")
            s.crash()
            self.wait_logged(s, "actor/0 cannot be taken over from the last supervisor")
            for group, target, of in ("actor", "actor", "actor"), ("other", "shared", "a group that uses the limit shared"):
                waits = s.call("io.troupe.Jobs.Explain", id=s.create(group, "echo", id=group))["waits"]
                self.assertIn(("stopping", target, 1), [(wait["cause"], wait["target"], wait.get("count")) for wait in waits])
                self.assertEqual(s.group(group)["running"], 0)
                self.assertIn(f"a worker of {of} is stopping", s.ctl("why", group, check=True).stdout)
        for group in "actor", "other":
            self.assertEqual(s.wait_job(group)["state"], "succeeded")

    def test_D9_a_stopping_worker_finishes_its_job_and_stops(self):
        s = self.started_with(actor=actor())
        _, bell = s.busy("actor", id="one")
        pid = s.worker("actor/0")["pid"]
        with Varlink(s.socket_path) as stop:
            stop.send("Stop", {"target": "actor"})
            s.wait_worker("actor/0", "stopping")
            s.crash()
        self.assertEqual(s.wait_worker("actor/0", "stopping")["pid"], pid)
        bell.ring()
        s.wait_worker("actor/0", "stopped")
        self.assertEqual(s.group("actor")["succeeded"], 1)
        s.call("Start", target="actor")
        self.assertEqual(s.do("actor", "echo next")["result"], text("next"))

    def test_D9_cells_by_key_go_on_with_their_workers_and_jobs(self):
        s = self.started_with(actor=actor(Pool={"Cells": "by-key", "Size": 2, "CellIdleSec": "5min"}))
        begun, bell = Bell(s, "begun"), Bell(s, "bell")
        for key in "red", "blue":
            s.create("actor", f"ring {begun.path}\nwait {bell.path}\nname", key=key)
        begun.wait(2)
        s.until(lambda: all(worker["state"] in ("idle", "busy") for worker in s.workers("actor")))
        before = self.pids(s)
        self.assertEqual(len(before), 4)
        s.crash()
        self.assertEqual(self.pids(s), before)
        bell.ring(2)
        s.wait_event("job.recovered", count=2)
        self.assertIn(s.do("actor", "name", key="red")["result"], (text("actor/red/0"), text("actor/red/1")))
        self.assertEqual(self.pids(s), before)

    def test_D9_a_spare_that_has_taken_a_place_keeps_it_and_so_does_its_own_spare(self):
        s = self.started_with(actor=actor(Pool={"Size": 1, "Spare": 1}))
        for _ in range(2):  # its first spare uses the place's second cgroup, the next one the first
            s.until(lambda: self.spare(s))
            before = s.worker("actor/0")["pid"], self.spare(s)
            s.crash()
            s.call("Reload")
            self.assertEqual((s.worker("actor/0")["pid"], self.spare(s)), before)
            self.assertEqual(s.do("actor", "echo x")["result"], text("x"))
            os.kill(before[0], signal.SIGKILL)
            s.until(lambda: s.worker("actor/0")["pid"] == before[1])
        s.until(s.deaths)  # the spare is in its place before the death is proven
        self.assertEqual(len(s.deaths()), 1)  # earlier ones went with the supervisor

    @staticmethod
    def spare(s):
        """The pid of the spare that is ready; None = none is."""
        return next((worker["pid"] for worker in s.workers("actor")
                     if worker.get("replacement") == "spare" and worker["state"] == "idle"), None)

    def test_D9_a_replaced_worker_that_has_a_job_in_hand_finishes_it(self):
        s = self.started_with(actor=actor())
        _, bell = s.busy("actor")
        old = s.worker("actor/0")["pid"]
        s.write("actor.group", actor(Group={"Environment": "NEW=1"}))
        s.call("Reload")
        s.until(lambda: s.worker("actor/0")["pid"] not in (old, None))
        new = s.worker("actor/0")["pid"]
        s.crash()
        self.assertEqual(s.worker("actor/0")["pid"], new)
        self.assertIn(old, s.children())
        bell.ring()
        s.wait_event("job.recovered")
        s.until(lambda: s.children() == [new])
        self.assertEqual(s.do("actor", "environment NEW")["result"], text("1"))
        self.assertEqual(s.deaths("actor")[1:], [])

    def test_D9_workers_get_a_configuration_that_was_changed_before_the_crash(self):
        s = self.started_with(actor=actor(Pool={"Size": 3}), daemon=service("/bin/sleep infinity"))
        job, bell = s.busy("actor")
        before = self.processes(s)
        s.write("actor.group", actor(Pool={"Size": 3}, Group={"Environment": "NEW=1"}))
        s.write("daemon.group", service("/bin/sleep 1000000"))
        s.crash()
        bell.ring()
        s.until(lambda: not self.processes(s) & before)
        s.until(lambda: len(s.children()) == 4)
        for _ in range(3):
            self.assertEqual(s.do("actor", "environment NEW")["result"], text("1"))
        self.assertEqual(s.job(job)["state"], "succeeded")
        self.assertEqual([death["cause"] for death in s.deaths()], ["stop"] * len(s.deaths()))
        after = self.processes(s)
        s.crash()
        s.call("Reload")
        self.assertEqual(self.processes(s), after)

    def test_D9_a_replacement_of_all_workers_goes_on_after_a_crash(self):
        s = self.started_with(actor=actor(Pool={"Size": 3}))
        _, bell = s.busy("actor", n=3)
        before = self.processes(s)
        s.write("actor.group", actor(Pool={"Size": 3}, Group={"Environment": "NEW=1"}))
        s.call("Reload")
        s.until(lambda: self.processes(s) - before)  # the first one waits for its predecessor
        s.crash()
        bell.ring(3)
        s.until(lambda: not self.processes(s) & before)
        s.until(lambda: len(s.children()) == 3)
        for _ in range(3):
            self.assertEqual(s.do("actor", "environment NEW")["result"], text("1"))

    def test_D9_a_cell_that_was_being_retired_has_a_worker_again(self):
        def mail(idle):
            return actor(Pool={"Cells": "by-key", "CellIdleSec": idle}, Worker={"TimeoutStopSec": "1h"})
        s = self.started_with(mail=mail("1h"))
        s.do("mail", "echo", key="a")
        worker = s.worker("mail/a/0")["pid"]
        s.until(lambda: s.status_field("State", worker) == "S")  # it has done all that the job brought
        os.kill(worker, signal.SIGSTOP)
        s.write("mail.group", mail("1ms"))
        s.call("Reload")
        s.until(lambda: s.worker("mail/a/0")["state"] == "stopping")
        s.crash()
        job = s.create("mail", "echo a", key="a")
        os.kill(worker, signal.SIGKILL)
        self.assertEqual(s.wait_job(job)["result"], text("a"))

    def test_D9_twenty_crashes_under_load_change_no_worker(self):
        s = self.started_with(actor=actor(Pool={"Size": 3, "Prefetch": 4}), keyed=actor(Pool={"Cells": "by-key"}))
        over = threading.Event()
        done = []

        def load(number):
            while not over.is_set():
                with contextlib.suppress(OSError, EOFError, VarlinkError):
                    with Varlink(s.socket_path) as connection:
                        while not over.is_set():
                            options = {"key": f"key{number}"} if number % 2 else {}
                            connection.call("Do", group="keyed" if number % 2 else "actor",
                                            payload=text("echo x"), options=options)
                            done.append(number)

        threads = [threading.Thread(target=load, args=(number,)) for number in range(6)]
        for thread in threads:
            thread.start()
        try:
            s.until(lambda: set(done) == set(range(6)))
            before = self.pids(s), self.pids(s, "keyed")
            for _ in range(20):
                s.crash()
                s.call("Reload")
                n = len(done)
                s.until(lambda: len(done) > n + 20)
                self.assertEqual((self.pids(s), self.pids(s, "keyed")), before)
        finally:
            over.set()
            for thread in threads:
                thread.join()
        self.assertEqual(s.deaths(), [])
        for group in "actor", "keyed":
            s.until(lambda: s.group(group)["running"] == 0)
        fds = s.n_fds_between_turns()
        s.crash()
        s.call("Reload")
        s.do("actor", "echo x")
        s.until(lambda: len(s.fds()) <= fds)


class ContinuityEventfd(Continuity):
    wake = "eventfd"
