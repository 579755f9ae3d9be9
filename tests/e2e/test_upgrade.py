# SPDX-License-Identifier: MIT
"""The supervisor is replaced by another version, and goes on with the old one if that does not start."""
import contextlib
import os
import sqlite3
import subprocess
import threading
import time
from pathlib import Path

from test_actors import ActorsTestCase, Client
from test_in_flight import Flight, copy_programs
from troupe import BUILD, FAULTY_TROUPED, LIMIT, Bell, Cgroup, TestCase, Varlink, VarlinkError, actor, ended, limit, service, text

NEW = "9.8.7"
UPGRADES = int(os.environ.get("TESTS_UPGRADES", "0"))
HOUR = 3600000000


def install(s, program):
    """Replaces the supervisor's program, as a package does."""
    Path(s.path("new")).write_bytes(program)
    os.chmod(s.path("new"), 0o755)
    os.rename(s.path("new"), s.path("trouped-supervisor"))


def install_script(s, line):
    """Has the program that is installed run this line of shell first."""
    if not os.path.exists(s.path("real")):
        os.rename(s.path("trouped-supervisor"), s.path("real"))
    install(s, f"#!/bin/sh\n{line}\nexec {s.path('real')} \"$@\"\n".encode())


def begin_upgrade(s):
    upgrade = threading.Thread(target=s.ctl, args=("upgrade",))
    upgrade.start()
    return upgrade


def fail_upgrade(s):
    """Upgrades to a program that passes the check and ends. Returns what troupectl says."""
    install(s, b"#!/bin/sh\nexit 0\n")
    upgrade = s.ctl("upgrade")
    s.test.assertEqual(upgrade.returncode, 1)
    return upgrade.stderr


def upgrade_during(s, act):
    """Upgrades, and calls `act` while no supervisor runs."""
    ended, go = Bell(s, "ended"), Bell(s, "go")
    install_script(s, f'[ "$1" = --check ] || {{ echo >{ended.path}; read line <{go.path}; }}')
    upgrade = begin_upgrade(s)
    ended.wait()
    act()
    go.ring()
    upgrade.join(LIMIT)
    s.test.assertEqual(s.call("GetInfo")["upgrades"], 1)


class Upgrade(TestCase):
    def installed(self, groups):
        """A supervisor that runs from a directory of its own."""
        s = self.supervisor(groups)
        copy_programs(s)
        s.start()
        self.old = s.call("GetInfo")["version"]
        self.assertEqual(len(NEW), len(self.old))
        return s

    def install_version(self, s, version):
        with open(s.path("trouped-supervisor"), "rb") as file:
            install(s, file.read().replace(s.call("GetInfo")["version"].encode(), version.encode()))

    def test_D10_an_upgrade_changes_the_supervisor_and_neither_the_main_process_nor_workers(self):
        s = self.installed({"actor": actor(), "daemon": service("/bin/sleep infinity")})
        before, daemon, worker = s.call("GetInfo"), s.worker("daemon/0")["pid"], s.worker("actor/0")["pid"]
        job, go = s.busy("actor")
        self.install_version(s, NEW)
        self.assertEqual(s.ctl("upgrade", check=True).stdout, f"trouped {NEW} has taken over from trouped {self.old}\n")
        after = s.call("GetInfo")
        self.assertEqual((after["version"], after["pid"]), (NEW, before["pid"]))
        self.assertNotEqual(after["supervisor_pid"], before["supervisor_pid"])
        self.assertEqual((after["upgrades"], after["failed_upgrades"], after["restarts"]), (1, 0, 0))
        self.assertEqual((s.worker("daemon/0")["pid"], s.worker("actor/0")["pid"]), (daemon, worker))
        self.assertEqual(s.job(job)["state"], "running")
        go.ring()
        self.assertEqual(s.wait_job(job)["result"], text("done"))
        self.install_version(s, self.old)  # and back
        s.ctl("upgrade", check=True)
        self.assertEqual(s.call("GetInfo")["version"], self.old)
        self.assertEqual((s.worker("daemon/0")["pid"], s.worker("actor/0")["pid"]), (daemon, worker))
        self.assertEqual(s.do("actor", "echo a")["result"], text("a"))

    def test_relative_paths_hold_after_a_crash_and_an_upgrade(self):
        s = self.installed({"actor": actor()})
        for path in (s.config, s.socket_path):
            s.command[s.command.index(path)] = os.path.relpath(path, s.directory)
        s.stop()
        s.start(cwd=s.directory)
        s.crash()
        self.assertEqual(s.do("actor", "echo a")["result"], text("a"))
        s.ctl("upgrade", check=True)
        self.assertEqual(s.do("actor", "echo b")["result"], text("b"))

    def all_jobs(self, s):
        return {job["id"]: job for job in s.pages("List", "jobs")[0]}

    def test_D10_jobs_that_are_not_durable_survive_in_their_order(self):
        s = self.installed({"actor": actor(), "slow": actor(Jobs={"BackoffMinSec": "1h", "BackoffMaxSec": "1h", "MaxRetries": 5})})
        note = f"note {s.path('notes')}"
        in_hand, go = s.busy("actor", f"{note} hand")
        at = int(time.time() * 1000000) + HOUR
        s.create("actor", "echo", id="at", at=at)
        s.create("actor", "echo", id="soon", deadline_usec=HOUR, timeout_usec=HOUR // 2)
        s.create("slow", "exit 1", id="failed", max_retries=7)
        s.wait_job_state("failed", "backoff")
        s.create("actor", f"{note} last", priority=63)
        s.create("actor", f"{note} middle")
        s.create("actor", f"{note} next", key="some key")
        large = s.create("actor", "sum\n\n" + "x" * 100000)
        first = s.create("actor", f"{note} first", id="first", priority=0)
        before = self.all_jobs(s)
        for _ in range(3):
            s.ctl("upgrade", check=True)
            after = self.all_jobs(s)
            for id in {*before, *after}:
                self.assertEqual(after[id], before[id])
        go.ring()
        for id in in_hand, large, first, "soon":
            self.assertEqual(s.wait_job(id)["state"], "succeeded")
        s.until(lambda: len(self.all_jobs(s)) == 2)
        with open(s.path("notes"), encoding="ascii") as file:
            self.assertEqual([line[:5] for line in file.read().split()], ["hand", "first", "middl", "next", "last"])
        self.assertEqual(s.job("failed")["state"], "backoff")
        self.assertFalse(os.path.exists(s.socket_path + ".upgrade"))

    def test_D10_kept_results_and_dead_letters_survive(self):
        s = self.started({"actor": actor(Jobs={"MaxRetries": 0}), "durable": actor(Jobs={"MaxRetries": 0, "Durable": "yes"})},
                         state=True)
        for id, script in ("mine", "echo mine"), ("rejected", "reject 7 no"), ("large", "blob 200000"), ("", "echo made"):
            s.wait_job(s.create("actor", script, key="some key", max_retries=2, **({"id": id} if id else {})))
        for group in "actor", "durable", "actor", "durable":
            s.wait_job(s.create(group, "exit 1"))
        letters = s.ctl_json("dead-letters")["letters"]
        kept = {job["id"]: s.job(job["id"]) for job in s.pages("List", "jobs", ended=True)[0]}
        self.assertEqual((len(letters), len(kept)), (4, 8))
        for _ in range(3):
            s.ctl("upgrade", check=True)
            after = s.until(lambda: len(now := s.ctl_json("dead-letters")["letters"]) == 4 and now)
            self.assertEqual(after, letters)
            s.until(lambda: len(s.pages("List", "jobs", ended=True)[0]) == 8)
            for id, job in kept.items():
                self.assertEqual(s.job(id), job)
        s.call("Pause", target="actor")
        s.call("io.troupe.Actors.Requeue", id=next(letter["id"] for letter in letters if letter["recipient"] == "actor"))
        self.assertEqual(len(s.ctl_json("dead-letters")["letters"]), 3)

    def test_D10_how_attempts_of_durable_jobs_failed_survives(self):
        def durable(pause):
            return actor(Jobs={"Durable": "yes", "MaxRetries": 5, "BackoffMinSec": pause, "BackoffMaxSec": pause})

        s = self.started({"slow": durable("1h"), "quick": durable("1ms"), "stopped": durable("1ms")}, state=True)
        for id, script in ("told", "retry 3 no luck"), ("died", "exit 4"):
            s.create("slow", script, id=id)
            s.wait_job_state(id, "backoff")
        started, go = Bell(s, "started"), Bell(s, "go")
        s.create("quick", f"before 2 ring {started.path}\nbefore 2 wait {go.path}\nbefore 2 retry 5 not yet\necho done", id="waits")
        started.wait()
        s.call("Pause", target="quick")
        go.ring()
        s.until(lambda: s.job("waits")["state"] == "queued")
        again = Bell(s, "again")
        s.create("stopped", f"before 2 retry 5 not yet\nring {started.path}\nwait {again.path}\necho done", id="back")
        started.wait()
        s.call("Stop", target="stopped", within_usec=1)  # on disk it waits, too
        s.until(lambda: s.job("back")["state"] == "queued")
        before = {id: s.job(id) for id in ("told", "died", "waits", "back")}
        self.assertEqual({id: [a["cause"] for a in job["attempts"]] for id, job in before.items()},
                         {"told": ["retry"], "died": ["exit"], "waits": ["retry"], "back": ["retry"]})
        for _ in range(3):
            s.ctl("upgrade", check=True)
            s.until(lambda: s.job("waits")["state"] == "queued")  # its pause is over, but on disk it is not
            for id, job in before.items():
                self.assertEqual(s.job(id), job)
        s.call("Resume", target="quick")
        s.call("Start", target="stopped")
        again.ring()
        for id in "waits", "back":
            ended = s.wait_job(id)
            self.assertEqual((ended["state"], ended["attempts"]), ("succeeded", before[id]["attempts"]))

    def shown(self, s):
        """What status shows, with deaths and dead letters."""
        return (s.call("GetStatus")["groups"], s.deaths(), s.ctl_json("dead-letters"))

    def assert_same(self, s, before):
        self.maxDiff = None
        for one, other in zip(self.shown(s), before):
            self.assertEqual(one, other)

    def upgrade_three_times(self, s):
        before = self.shown(s)
        for _ in range(3):
            s.ctl("upgrade", check=True)
            self.assert_same(s, before)
        return before

    def test_D10_tallies_deaths_and_dead_messages_survive(self):
        s = self.installed({"actor": actor(Jobs={"MaxRetries": 1, "BackoffMinSec": "1ms", "BackoffMaxSec": "1ms"}),
                            "daemon": service("/bin/sleep infinity")})
        for script in "echo a", "echo b", "reject 3 no", "before 2 retry 1 again\necho c", "complain oops\nstate 7\ncrash abort":
            s.wait_job(s.create("actor", script))
        s.call("Pause", target="actor")
        s.call("io.troupe.Jobs.Cancel", id=s.create("actor", "echo"))
        s.call("Resume", target="actor")
        s.call("io.troupe.Actors.Tell", to="actor", type="order", key="some key", payload=text("lost"))
        s.call("Restart", target="daemon")
        s.wait_event("worker.died", "daemon")
        s.wait_worker("daemon/0", "idle")
        s.wait_worker("actor/0", "idle")
        groups, deaths, dead = self.upgrade_three_times(s)
        [group] = [group for group in groups if group["name"] == "actor"]
        self.assertEqual([group[name] for name in ("succeeded", "rejected", "cancelled", "dead", "retries", "deaths")], [3, 1, 1, 1, 2, 2])
        self.assertGreater(group["p99_usec"], 0)
        self.assertEqual((group["last_jobs"], group["last_jobs_dead"]), (5, 1))
        self.assertEqual((len(deaths), deaths[-1]["cause"]), (3, "signal"))
        self.assertEqual([letter["n_deaths"] for letter in dead["letters"] if "job" in letter], [2])
        self.assertEqual(len(dead["letters"]), 2)

    def test_D10_tallies_come_back_if_the_new_program_fails(self):
        s = self.installed({"actor": actor(Jobs={"MaxRetries": 0})})
        s.wait_job(s.create("actor", "exit 1"))
        s.wait_worker("actor/0", "idle")
        before = self.shown(s)
        fail_upgrade(s)
        self.assert_same(s, before)

    def test_D10_an_answer_given_while_no_supervisor_runs_is_taken_with_the_job(self):
        s = self.installed({"actor": actor(Jobs={"MaxRetries": 1, "BackoffMinSec": "1ms"})})
        started, go = Bell(s, "started"), Bell(s, "go")
        job = s.create("actor", f"ring {started.path}\nwait {go.path}\nbefore 2 retry 1 wrong\necho again")
        started.wait()
        ended = Bell(s, "wait")
        install_script(s, f'[ "$1" = --check ] || {{ echo >{go.path}; read line <{ended.path}; }}')
        upgrade = begin_upgrade(s)
        ended.ring()
        upgrade.join(LIMIT)
        started.wait()
        go.ring()
        job = s.wait_job(job)
        self.assertEqual((job["attempt"], job["result"]), (2, text("again")))

    def test_the_service_manager_hears_during_an_upgrade_that_all_is_alive(self):
        s = self.installed({"actor": actor()})
        go = Bell(s, "go")
        install_script(s, f'[ "$1" = --check ] || read line <{go.path}')
        upgrade = begin_upgrade(s)
        for _ in range(3):
            s.told.clear()
            s.wait_told("WATCHDOG=1")
        go.ring()
        upgrade.join(LIMIT)
        self.assertEqual(s.call("GetInfo")["upgrades"], 1)

    def test_D10_jobs_come_back_if_the_new_program_fails(self):
        s = self.installed({"actor": actor()})
        in_hand, go = s.busy("actor", "echo hand")
        waiting = s.create("actor", "echo waited")
        fail_upgrade(s)
        go.ring()
        self.assertEqual(s.wait_job(in_hand)["result"], text("hand"))
        self.assertEqual(s.wait_job(waiting)["result"], text("waited"))
        self.assertFalse(os.path.exists(s.socket_path + ".upgrade"))

    def test_D11_jobs_come_back_if_the_new_program_crashes_just_before_it_serves(self):
        s = self.installed({"actor": actor()})
        s.call("Pause", target="actor")
        waiting = s.create("actor", "echo waited")
        install(s, f"""#!/bin/sh
[ "$1" = --check ] || export TROUPE_FAULT_POINT=process.settle:1
exec {FAULTY_TROUPED}-supervisor "$@"
""".encode())
        self.assertEqual(s.ctl("upgrade").returncode, 1)
        s.call("Resume", target="actor")
        self.assertEqual(s.wait_job(waiting)["result"], text("waited"))
        self.assertFalse(os.path.exists(s.socket_path + ".upgrade"))

    def test_D11_if_the_new_program_has_no_memory_for_a_worker_the_old_one_goes_on_with_it(self):
        s = self.supervisor({"actor": actor()}, program=FAULTY_TROUPED)
        fault = Path(s.path("fault"))
        s.environment["TROUPE_FAULT"] = f"@{fault}"
        pid = s.start().worker("actor/0")["pid"]
        fault.write_text("held:1", encoding="ascii")
        self.assertIn("the new program did not become ready", s.ctl("upgrade").stderr)
        self.assertEqual(s.worker("actor/0")["pid"], pid)
        fault.write_text("held:1", encoding="ascii")
        s.crash()
        self.assertEqual(s.do("actor", "echo on")["result"], text("on"))
        self.assertIn("cannot take over what the keeper holds: Cannot allocate memory", s.log())
        self.assertEqual(s.worker("actor/0")["pid"], pid)

    def test_an_upgrade_ends_safe_mode_and_keeps_what_was_paused_before(self):
        s = self.installed({"actor": actor(), "paused": actor()})
        s.call("Pause", target="paused")
        s.crash_into_safe_mode()
        job = s.create("actor", "echo waited")
        s.ctl("upgrade", check=True)
        self.assertFalse(s.call("GetInfo")["safe_mode"])
        self.assertEqual(s.wait_job(job)["result"], text("waited"))
        self.assertEqual(s.group("paused")["state"], "paused")

    def test_D10_saved_jobs_are_not_brought_back_by_another_main_process(self):
        s = self.supervisor({"actor": actor()})
        Path(s.socket_path + ".upgrade").write_bytes(b"of an earlier one")
        s.start()
        self.assertFalse(os.path.exists(s.socket_path + ".upgrade"))
        self.assertNotIn("cannot bring back", s.log())

    def test_an_upgrade_while_another_program_locks_the_database_changes_nothing(self):
        s = self.started({"actor": actor(), "kept": actor(Jobs={"Durable": "yes"})}, state=True)
        s.until_restored()
        with Varlink(s.socket_path) as sender, \
                contextlib.closing(sqlite3.connect(s.path("state/troupe.db"), isolation_level=None, timeout=LIMIT)) as locks:
            locks.execute("BEGIN IMMEDIATE")
            sender.send("Create", {"group": "kept", "payload": text("echo"), "options": {"id": "one"}})
            s.until(lambda: "locks the database" in s.group("kept").get("store_problem", ""))
            self.refused(s, "another program locks the database")
            locks.execute("ROLLBACK")
            self.assertEqual(sender.reply()[0]["id"], "one")
        s.ctl("upgrade", check=True)

    def refused(self, s, reason, group="actor"):
        before = s.supervisor_pid
        upgrade = s.ctl("upgrade")
        self.assertEqual(upgrade.returncode, 1)
        self.assertIn("nothing has changed: ", upgrade.stderr)
        self.assertIn(reason, upgrade.stderr)
        self.assertEqual(s.supervisor_pid, before)
        self.assertEqual(s.do(group, "echo a")["result"], text("a"))

    def test_an_upgrade_that_is_requested_during_another_one_joins_it(self):
        s = self.installed({"actor": actor()})
        os.mkfifo(s.path("wait"))
        install_script(s, f'[ "$1" != --check ] || read line <{s.path("wait")}')
        connections = [s.connect() for _ in range(2)]
        for connection in connections:
            connection.send("Upgrade", {})
        s.until(lambda: s.log().count("Upgrade asked for by") == 2)
        Path(s.path("wait")).write_text("go\n", encoding="ascii")
        for connection in connections:
            self.assertRaisesRegex(VarlinkError, "Restarting", connection.reply)
        s.until(lambda: s.call("GetInfo")["upgrades"] == 1)
        self.assertEqual(s.do("actor", "echo a")["result"], text("a"))

    def test_D10_an_upgrade_that_cannot_save_jobs_or_could_not_start_changes_nothing(self):
        s = self.installed({"actor": actor()})
        os.mkdir(s.socket_path + ".upgrade.new")
        self.refused(s, ".upgrade.new: File exists")
        os.rmdir(s.socket_path + ".upgrade.new")
        s.ctl("upgrade", check=True)
        conf = s.write("troupe.conf", "[Nonsense]\n")
        self.refused(s, "troupe.conf:1")
        os.unlink(conf)
        install(s, b"#!/bin/sh\necho wrong machine\nexit 3\n")
        self.refused(s, "trouped-supervisor --check exited with status 3: wrong machine")
        os.unlink(s.path("trouped-supervisor"))
        self.refused(s, "trouped-supervisor: exec: No such file or directory")

    def test_D10_a_group_with_a_mistake_in_its_file_goes_on_with_what_it_said_before(self):
        s = self.installed({"actor": actor(2), "other": actor()})
        s.ctl("pause", "actor", check=True)
        job = s.create("actor", "echo a")
        workers = s.children()
        s.write("actor.group", actor(1) + "Sise=3\n")
        s.ctl("upgrade", check=True)
        self.assertEqual(s.children(), workers)
        s.ctl("resume", "actor", check=True)
        self.assertEqual(s.wait_job(job)["result"], text("a"))
        self.assertRegex(s.group("actor")["fault"], r"actor\.group:\d+: unknown key 'Sise'")

    def test_D14_a_program_that_is_older_than_the_store_is_found_before_the_upgrade(self):
        s = self.supervisor({"kept": actor(1, Jobs={"Durable": "yes"})}, state=True)
        copy_programs(s)
        s.start()
        self.old = s.call("GetInfo")["version"]
        with contextlib.closing(sqlite3.connect(s.path("state/troupe.db"), timeout=LIMIT)) as database:
            database.execute("PRAGMA user_version = 4711")
        self.refused(s, "troupe.db: a newer trouped has written it, which has to be installed again", "kept")
        os.unlink(os.path.join(s.config, "kept.group"))
        self.assertIn(": ok", subprocess.run([s.path("trouped-supervisor"), "--check", "--config", s.config],
                                             stdout=subprocess.PIPE, text=True, check=True).stdout)

    def test_D11_an_upgrade_to_an_empty_configuration_ends_no_worker_and_loses_no_job(self):
        s = self.installed({"actor": actor()})
        worker = s.worker("actor/0")["pid"]
        s.ctl("pause", "actor", check=True)
        job = s.create("actor", "echo a")
        os.rename(s.config, s.path("gone"))
        os.mkdir(s.config)
        self.assertEqual(s.ctl("upgrade").returncode, 1)
        self.assertIn("has no NAME.group any more", s.call("GetInfo")["config_problem"])
        os.rmdir(s.config)
        os.rename(s.path("gone"), s.config)
        s.until(lambda: s.call("GetInfo")["state"] == "running")
        s.ctl("resume", "actor", check=True)
        self.assertEqual(s.wait_job(job)["result"], text("a"))
        self.assertEqual(s.worker("actor/0")["pid"], worker)

    def test_D11_if_the_new_program_does_not_become_ready_the_old_one_goes_on(self):
        s = self.installed({"actor": actor(), "daemon": service("/bin/sleep infinity")})
        daemon = s.worker("daemon/0")["pid"]
        self.assertIn(f"the new program did not become ready, and trouped {self.old} continues", fail_upgrade(s))
        info = s.call("GetInfo")
        self.assertEqual((info["version"], info["upgrades"], info["failed_upgrades"]), (self.old, 0, 1))
        self.assertEqual(s.worker("daemon/0")["pid"], daemon)
        self.assertEqual(s.do("actor", "echo a")["result"], text("a"))
        self.assertIn("the upgrade has failed, and the old program is started again", s.log())

    def after_upgrade(self, s, active):
        """Runs the package's hook, with these programs instead of the system's."""
        for name, script in ("systemctl", f"echo $* >>{s.path('asked')}; [ $1 = daemon-reload ] || exit {0 if active else 3}"), \
                            ("troupectl", f'exec {os.path.join(BUILD, "troupectl")} --socket {s.socket_path} "$@"'):
            Path(s.path(name)).write_text(f"#!/bin/sh\n{script}\n", encoding="ascii")
            os.chmod(s.path(name), 0o755)
        hook = os.path.join(os.path.dirname(__file__), "..", "..", "units", "after-upgrade")
        return subprocess.run([hook], env={"PATH": s.directory + ":/usr/bin:/bin"}, capture_output=True, text=True, timeout=LIMIT,
                              check=True)

    def test_a_package_upgrades_a_running_supervisor_and_never_fails(self):
        s = self.installed({"actor": actor()})
        worker = s.worker("actor/0")["pid"]
        self.install_version(s, NEW)
        self.after_upgrade(s, False)
        self.assertEqual(s.call("GetInfo")["version"], self.old)
        self.assertEqual(self.after_upgrade(s, True).stdout, f"trouped {NEW} has taken over from trouped {self.old}\n")
        self.assertEqual((s.call("GetInfo")["version"], s.worker("actor/0")["pid"]), (NEW, worker))
        install(s, b"#!/bin/sh\nexit 3\n")
        self.assertIn("the version that was running continues", self.after_upgrade(s, True).stderr)
        self.assertEqual(s.worker("actor/0")["pid"], worker)
        self.assertIn("daemon-reload\n--quiet is-active trouped.service\n", Path(s.path("asked")).read_text(encoding="ascii"))

    def test_after_a_crash_the_same_program_is_started_whatever_is_installed(self):
        s = self.installed({"actor": actor()})
        install(s, b"garbage")
        s.crash()
        self.assertEqual(s.call("GetInfo")["version"], self.old)

    def test_a_stop_ends_an_upgrade_that_is_being_checked(self):
        s = self.installed({"actor": actor()})
        install(s, b"#!/bin/sh\nexec sleep 10000\n")
        connection = s.connect()
        connection.send("Upgrade", {})
        s.until(lambda: len(s.children()) == 2)
        s.terminate()
        self.assertRaisesRegex(VarlinkError, "NotUpgraded", connection.reply)
        self.assertEqual(s.wait_end(), 0)

    def test_an_upgrade_does_not_wait_for_the_disk_when_it_closes_the_store(self):
        s = self.started({"kept": actor(Jobs={"Durable": "yes"})}, state=True)
        s.do("kept", "echo")
        log = Path(s.path("state/troupe.db-wal"))
        header = log.read_bytes()[:32]  # with random numbers that are new in each log
        s.ctl("upgrade", check=True)
        self.assertEqual(log.read_bytes()[:32], header)
        self.assertEqual(s.do("kept", "echo")["state"], "succeeded")

    def test_a_stop_names_what_it_drops_if_the_new_program_fails_meanwhile(self):
        for status in 1, 0:
            with self.subTest(status=status):
                self.stop_during_a_failing_upgrade(status)

    def stop_during_a_failing_upgrade(self, status):
        s = self.installed({"actor": actor()})
        s.call("Pause", target="actor")
        s.create("actor", "echo")
        fails = s.path("fails")
        os.mkfifo(fails)
        bell = os.open(fails, os.O_RDWR)
        self.addCleanup(os.close, bell)
        install(s, f"#!/bin/sh\n[ $1 = --check ] && exit\ntrap '' TERM\nread line <{fails}\nexit {status}\n".encode())
        old = os.pidfd_open(s.supervisor_pid)
        self.addCleanup(os.close, old)
        s.connect().send("Upgrade", {})
        self.assertTrue(ended(old, LIMIT))
        s.terminate()
        os.write(bell, b"\n\n")  # it is started once more if it fails before the end of the old one is known
        self.assertEqual(s.wait_end(), 0)
        self.assertIn("actor: 1 job that waited is cancelled", s.log())

    def test_a_crash_during_the_check_of_an_upgrade_is_told_as_what_it_is(self):
        s = self.installed({"actor": actor()})
        install(s, b"#!/bin/sh\nexec sleep 10000\n")
        command = [os.path.join(BUILD, "troupectl"), "--socket", s.socket_path, "upgrade"]
        upgrade = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
        self.addCleanup(upgrade.kill)
        s.until(lambda: len(s.children()) == 2)
        s.crash()
        self.assertIn(f"the supervisor ended before it was replaced, and trouped {self.old} continues: try again",
                      upgrade.communicate(timeout=LIMIT)[1])
        self.assertEqual(upgrade.returncode, 1)

    def test_an_upgrade_to_a_program_that_keeps_other_data_is_refused_and_changes_nothing(self):
        s = self.installed({"actor": actor()})
        job, go = s.busy("actor")
        before = s.worker("actor/0")["pid"], s.supervisor_pid
        for layout in "--layout 4711", "":  # a program that does not say
            install_script(s, f'[ "$4" != --layout ] || set -- "$1" "$2" "$3" {layout}')
            refused = s.ctl("upgrade")
            self.assertEqual(refused.returncode, 1)
            self.assertIn("does not fit what the supervisor that runs would hand over: stop trouped and start it", refused.stderr)
        self.assertEqual((s.worker("actor/0")["pid"], s.supervisor_pid), before)
        go.ring()
        self.assertEqual(s.wait_job(job)["result"], text("done"))

    def test_a_program_for_another_main_process_says_so(self):
        check = subprocess.run([os.path.join(BUILD, "trouped-supervisor"), "--check"], capture_output=True, text=True,
                               env={**os.environ, "TROUPE_KEEPER": "-1 -1 4711 /nowhere"}, check=False)
        self.assertEqual(check.returncode, 1)
        self.assertIn("does not fit the main process that runs: stop trouped and start it", check.stderr)


class Again(TestCase):
    """One upgrade after the other under load: TESTS_UPGRADES= says how many, TESTS_UPGRADE_WORKERS= of how many workers."""
    WORKERS = int(os.environ.get("TESTS_UPGRADE_WORKERS", "20"))

    def setUp(self):
        self.cgroup = Cgroup(self) if Cgroup.available() else None
        self.s = self.supervisor({"busy": actor(self.WORKERS, Jobs={"QueueMax": 100000, "ResultsMax": 100000}),
                                  "durable": actor(4, Jobs={"Durable": "yes", "ResultsMax": 100000}), "idle": actor(10)},
                                 wrapper=self.cgroup.wrapper if self.cgroup else (), state=True).start()

    def work(self, group):
        """Feeds lines to `troupectl map`, a ring client, until `over`; each job notes its number."""
        command = [os.path.join(BUILD, "troupectl"), "--socket", self.s.socket_path, "map", group, "--window", "64"]
        mapping = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        count = [0]

        def feed():
            while not self.over.is_set():
                mapping.stdin.write(f"note {self.s.path(group)} {count[0]}\n".encode())
                mapping.stdin.flush()
                count[0] += 1
            mapping.stdin.close()

        def take():
            count.append(mapping.stdout.read().count(b"\n"))
            count.append(mapping.stderr.read().decode())
            count.append(mapping.wait(LIMIT))
            mapping.stdout.close()
            mapping.stderr.close()

        return self.both(feed, take), count

    @staticmethod
    def both(*functions):
        threads = [threading.Thread(target=function) for function in functions]
        for thread in threads:
            thread.start()
        return threads

    def fly(self, group):
        """The same by a ring client whose jobs have no ids."""
        flight = Flight(self.s, group, 64)
        count = [0]

        def feed():
            while not self.over.is_set():
                flight.submit(f"note {self.s.path(group + '-flight')} {count[0]}")
                count[0] += 1
            flight.process.stdin.close()

        def take():
            ends = flight.read_all()
            count.append(sum(error == "-" and end == "succeeded" for error, end, _ in ends.values()))
            count.append(next((text for text in ends.values() if text[0] != "-"), ""))
            count.append(flight.process.wait(LIMIT))
            flight.process.stdout.close()

        return self.both(feed, take), count

    def pids(self):
        return {worker["name"]: worker["pid"] for group in ("busy", "durable", "idle") for worker in self.s.workers(group)}

    def keeper_fds(self):
        return len(os.listdir(f"/proc/{self.s.process.pid}/fd"))

    @limit(3600 if UPGRADES else 300)
    def test_D10_upgrades_under_load_lose_nothing_and_do_nothing_twice(self):
        s, self.over = self.s, threading.Event()
        pids, children = self.pids(), len(s.children())
        s.ctl("upgrade", check=True)
        fds = self.keeper_fds()
        loads = {group: self.work(group) for group in ("busy", "durable")}
        loads.update({f"{group}-flight": self.fly(group) for group in ("busy", "durable")})
        try:
            for n in range(UPGRADES or 5):
                upgrade = s.ctl("upgrade")
                self.assertEqual(upgrade.returncode, 0, f"upgrade {n}: {upgrade.stderr}")
                self.assertEqual(self.pids(), pids)
        finally:
            self.over.set()
            for threads, _ in loads.values():
                for thread in threads:
                    thread.join()
        for group, (_, (count, done, err, status)) in loads.items():
            self.assertEqual((status, done), (0, count), err)
            with open(s.path(group), encoding="ascii") as file:
                numbers = [int(line.split()[0]) for line in file]
            self.assertEqual(sorted(numbers), list(range(count)), group)
            print(f"{UPGRADES or 5} upgrades, {group}: {count} jobs")
        self.assertEqual(self.pids(), pids)
        s.until(lambda: len(s.children()) == children)
        s.until(lambda: self.keeper_fds() <= fds)
        self.assertEqual(s.call("GetInfo")["upgrades"], (UPGRADES or 5) + 1)
        s.stop()
        self.assertFalse(os.path.exists(s.socket_path + ".upgrade"))
        if self.cgroup:
            self.assertEqual(self.cgroup.slots(), [])


class ActorsOfUpgrades(ActorsTestCase):
    def supervisor(self, *args, **options):
        s = super().supervisor(*args, **options)
        copy_programs(s)
        return s

    def upgrade(self):
        self.s.ctl("upgrade", check=True)
        self.assertNotIn("of the last supervisor are dropped", self.s.log())


class Messages(ActorsOfUpgrades):
    """What waits in the supervisor for workers and clients, or is to be sent later."""
    worker = {"MailboxMax": 100000}

    def gate(self):
        """Lets a/0 wait in a handler."""
        bell = Bell(self.s, "bell")
        self.do("c", f"tell a/0 do.gate - {bell.path}")
        self.wait_log("a", 1)
        return bell

    def waiting(self, address):
        return self.s.call("io.troupe.Actors.Lookup", name=address)["actor"]["waiting"]

    def test_D10_counters_begin_with_the_actor_and_not_with_the_supervisor(self):
        def counters(address):
            actor = self.s.call("io.troupe.Actors.Lookup", name=address)["actor"]
            return [actor[name] for name in ("accepted", "delivered", "consumed", "dead")]
        self.do("c", "burst a/0 10 number")
        self.s.until(lambda: counters("a/0")[2] == 10)
        before = {address: counters(address) for address in ("a", "a/0", "b/0")}
        self.assertEqual(before["a/0"], [10, 10, 10, 0])
        for _ in range(2):
            self.upgrade()
            self.assertEqual({address: counters(address) for address in before}, before)
        self.do("c", "burst a/0 5 number")
        self.s.until(lambda: counters("a/0") == [15, 15, 15, 0])

    def test_D10_messages_that_wait_survive_in_their_order(self):
        bell = self.gate()
        self.do("c", "burst a/0 20000 number")
        self.s.call("io.troupe.Actors.Tell", to="a/0", type="large", payload=text("x" * 900))
        self.do("c", "tell a/0 keyed some.key last")
        self.assertGreater(self.waiting("a/0"), 0)
        for _ in range(2):
            self.upgrade()
        bell.ring()
        self.wait_line("a", "keyed 'some.key' last")
        self.assertEqual(self.log("a")[1:],
                         [f"number - {i}" for i in range(20000)] + ["large - " + "x" * 900, "keyed 'some.key' last"])

    def test_D10_no_message_is_lost_or_handled_twice_by_upgrades_under_load(self):
        self.s.create("b", "burst a/0 30000 number", id="burst")
        for _ in range(3):
            self.upgrade()
        self.assertEqual(self.s.wait_job("burst")["state"], "succeeded")
        self.wait_line("a", "number - 29999")
        self.assertEqual(self.log("a"), [f"number - {i}" for i in range(30000)])

    def test_D11_messages_come_back_if_the_new_program_fails(self):
        self.s.call("io.troupe.Actors.Pause", actor="a/0")
        self.do("c", "tell a/0 note - one")
        timer = self.do("c", "after 3600000000 0 b/0 tick x")
        fail_upgrade(self.s)
        self.do("c", "tell a/0 note - two")
        self.s.call("io.troupe.Actors.Resume", actor="a/0")
        self.wait_line("a", "note - two")
        self.assertEqual(self.log("a"), ["note - one", "note - two"])
        self.assertEqual(self.do("c", f"cancel {timer}"), "1")

    def stash(self):
        for number in "one", "two", "three":
            self.do("c", f"tell a/0 later - {number}")
        self.do("c", "tell a/0 note - stashed")
        self.wait_line("a", "note - stashed")

    def test_D10_a_stash_survives_its_worker_after_an_upgrade(self):
        self.stash()
        self.upgrade()
        self.do("c", "tell a/0 do.crash.once - x")
        self.wait_line("a", "do.crash.once - x")
        self.do("c", "tell a/0 do.unstash - x")
        self.wait_line("a", "later - three")
        self.assertEqual([line for line in self.log("a") if line.startswith("later")],
                         ["later - one", "later - two", "later - three"])

    def test_D10_an_ask_gets_its_reply(self):
        bell = Bell(self.s, "bell")
        client = Client(self.s)
        self.assertEqual(client.do("ask b/0 do.reply 0 answer first"), "answer first")
        client.process.stdin.write(f"ask a/0 do.gate 0 {bell.path}\n")
        client.process.stdin.flush()
        self.wait_log("a", 1)
        self.s.create("c", "ask a/0 do.reply 0 answer yes", id="asks")
        self.s.until(lambda: self.asks("@1") == self.asks("c/0") == 1)
        for _ in range(2):
            self.upgrade()
        bell.ring()
        self.assertEqual(client.process.stdout.readline(), "gate open\n")
        self.assertEqual(self.s.wait_job("asks")["result"]["data"], "answer yes")
        self.assertEqual((self.asks("@1"), self.asks("c/0")), (0, 0))

    def asks(self, address):
        return self.s.call("io.troupe.Actors.Lookup", name=address)["actor"]["asks"]

    def test_D10_a_timer_goes_off_once_and_another_one_goes_on(self):
        once, again = self.do("a", "after 1500000 0 b/0 tick once"), self.do("a", "after 200000 200000 c/0 tick again")
        self.do("a", f"at {int(time.time() * 1e6) + 1500000} b/0 date")
        for _ in range(2):
            self.upgrade()
        self.wait_line("b", "tick - once")
        self.wait_line("b", "date - ")
        n = len(self.log("c"))
        self.s.until(lambda: len(self.log("c")) >= n + 3)
        self.assertEqual(self.do("a", f"cancel {again}"), "1")
        self.assertEqual(self.do("a", f"cancel {once}"), "0")
        self.do("a", "tell b/0 note - last")
        self.wait_line("b", "note - last")
        self.assertEqual(len(self.log("b")), 3)


class Ties(ActorsOfUpgrades):
    """What actors have made known of themselves: exchanges, subscriptions, names, monitors."""

    def exchanges(self):
        return {exchange["name"]: exchange for exchange in self.call("ListExchanges")["exchanges"]}

    def number_of(self, name, line):
        """How often the actor has logged the line, once all before a further message is handled."""
        self.n = getattr(self, "n", 0) + 1
        self.s.call("io.troupe.Actors.Tell", to=f"{name}/0", type="mark", payload=text(str(self.n)))
        self.wait_line(name, f"mark - {self.n}")
        return self.log(name).count(line)

    def test_D10_an_actor_is_told_of_a_crash_to_set_all_up_again_and_not_of_an_upgrade(self):
        client = Client(self.s)
        for address in "a/0", client.do("address self"):
            self.do("b", f"tell {address} do.restarts - -")
        self.wait_line("a", "do.restarts - -")
        self.s.until(lambda: client.do("") or self.log("client"))
        for _ in range(2):
            self.upgrade()
        self.assertEqual(self.number_of("a", "restarted - "), 0)
        self.assertEqual(client.do("lookup a/0"), self.do("b", "lookup a/0"))
        self.assertEqual(self.log("client"), ["do.restarts - -"])
        self.s.crash()
        self.wait_line("a", "restarted - ")
        self.s.until(lambda: client.do("") or len(self.log("client")) == 2)
        self.upgrade()
        self.assertEqual(self.number_of("a", "restarted - "), 1)
        self.assertEqual(client.do("lookup a/0"), self.do("b", "lookup a/0"))
        self.assertEqual(self.log("client"), ["do.restarts - -", "restarted - "])

    # exchanges and subscriptions

    def subscribe(self, name, type, key="-"):
        """As the administrator: a worker may not subscribe to an exchange of another group."""
        self.call("Subscribe", exchange="x", actor=f"{name}/0", type=type.strip("'"), **({} if key == "-" else {"key": key}))

    def test_D10_what_is_published_reaches_the_subscribers_of_before(self):
        reference = self.do("a", "exchange x 3")
        client = Client(self.s)
        for name, type, key in ("b", "order", "berlin"), ("c", "''", "-"):
            self.subscribe(name, type, key)
        self.assertEqual(client.do("subscribe x order -"), "0")
        before, subscriptions = self.exchanges(), self.call("ListSubscriptions", exchange="x")
        for _ in range(2):
            self.upgrade()
        self.assertEqual(self.exchanges(), before)
        self.assertEqual(self.call("ListSubscriptions", exchange="x"), subscriptions)
        self.assertEqual(self.do("a", "lookup x"), reference)
        self.do("a", f"tell ={reference} order.new berlin one")
        self.do("a", "tell x order.new bonn two")
        self.assertEqual(self.do("c", "tell c/0 mark - x"), "")
        self.wait_line("c", "mark - x")
        self.assertEqual(self.log("c")[:2], ["order.new 'berlin' one", "order.new 'bonn' two"])
        self.assertEqual(self.number_of("b", "order.new 'berlin' one"), 1)
        self.assertEqual(self.number_of("b", "order.new 'bonn' two"), 0)
        self.s.until(lambda: client.do("") or len(self.log("client")) == 2)
        self.assertEqual(self.do("b", "unsubscribe x order berlin"), "1")
        self.assertEqual(self.do("b", "delete x"), "error EPERM")
        self.assertEqual(self.do("a", "delete x"), "0")

    def test_D10_what_waits_in_an_exchange_survives(self):
        self.do("a", "exchange x 2")
        self.subscribe("b", "''")
        self.call("Pause", actor="x")
        for number in "one", "two":
            self.do("a", f"tell x note - {number}")
        self.upgrade()
        self.assertEqual(self.call("Lookup", name="x")["actor"]["waiting"], 2)
        self.do("a", "tell x note - three")
        self.call("Resume", actor="x")
        self.wait_line("b", "note - three")
        self.assertEqual(self.log("b"), ["note - one", "note - two", "note - three"])

    def test_D11_exchanges_names_and_monitors_come_back_if_the_new_program_fails(self):
        client = Client(self.s)
        self.do("a", "exchange x 2")
        self.subscribe("b", "''")
        self.do("b", "register bob")
        self.do("b", "watch " + client.do("address self"))
        fail_upgrade(self.s)
        self.do("a", "tell x note - one")
        self.do("a", "tell bob note - two")
        self.wait_line("b", "note - two")
        client.end()
        self.wait_line("b", "terminated - the client has gone away")
        self.assertEqual(self.log("b")[:2], ["note - one", "note - two"])

    # names

    def test_D10_a_registered_name_is_found_and_belongs_to_its_actor(self):
        client = Client(self.s)
        self.assertEqual(self.do("b", "register bob"), "0")
        self.assertEqual(client.do("register mine"), "0")
        for _ in range(2):
            self.upgrade()
        self.assertEqual(self.do("a", "register bob"), "error EEXIST")
        self.assertEqual(self.do("a", "register mine"), "error EEXIST")
        self.assertEqual(self.do("a", "tell bob note - one"), "")
        self.wait_line("b", "note - one")
        self.assertEqual(self.do("a", "lookup mine"), client.do("lookup self"))
        self.assertEqual(self.do("b", "deregister bob"), "1")
        self.assertEqual(self.do("a", "register bob"), "0")

    # monitors

    def test_D10_a_monitor_tells_of_an_end_after_the_upgrade(self):
        clients = [Client(self.s) for _ in range(2)]
        address = clients[0].do("address self")
        self.assertGreater(int(self.do("a", f"watch {address}")), 0)
        self.assertGreater(int(clients[1].do(f"watch {address}")), 0)
        for _ in range(2):
            self.upgrade()
        self.assertEqual(self.number_of("a", "terminated - the client has gone away"), 0)
        clients[0].end()
        self.wait_line("a", "terminated - the client has gone away")
        self.s.until(lambda: clients[1].do("") or self.log("client"))
        self.assertEqual(self.log("client"), ["terminated - the client has gone away"])
        self.upgrade()
        self.assertEqual(self.number_of("a", "terminated - the client has gone away"), 1)
