# SPDX-License-Identifier: MIT
"""Groups with a cell for each key: cells are made on demand, isolated, and retired when idle."""
import os
import signal

from troupe import ACTOR, QUICK, SANITIZED, Bell, TestCase, Varlink, ini, limit, text

KEY_ALLOWED = "in a group with Cells=by-key 1 to 64 characters of A-Z a-z 0-9 . _ : @ -, not beginning with . or -"


def keyed(size=1, program=ACTOR, **sections):
    pool = {"Size": size, "Cells": "by-key", **sections.pop("Pool", {})}
    return ini(program, Pool=pool, **{"Restart": QUICK, "Jobs": {"BackoffMinSec": "1ms"}, **sections})


def plain(**sections):
    return ini(ACTOR, Restart=QUICK, **sections)


def keys(s, group="mail"):
    return [cell["key"] for cell in s.group(group)["cells"]]


def states(s, cell):
    return [(w["state"], w["generation"]) for w in s.cell(cell)["workers"]]


class Names(TestCase):
    def test_P2_the_first_job_with_a_key_makes_its_cell(self):
        s = self.started({"mail": keyed(2)})
        self.assertEqual((s.group("mail")["state"], s.group("mail")["workers"], keys(s)), ("running", [], []))
        self.assertIn(s.do("mail", "name", key="acme")["result"]["data"], ("mail/acme/0", "mail/acme/1"))
        self.assertEqual(s.do("mail", "environment TROUPE_CELL", key="acme")["result"], text("acme"))
        self.assertIn(s.do("mail", "name", key="b:0@c")["result"]["data"], ("mail/b:0@c/0", "mail/b:0@c/1"))
        self.assertEqual(keys(s), ["acme", "b:0@c"])
        event = s.wait_event("cell.created", "mail/acme")
        self.assertEqual((event["group"], event["cell"], event["message"]), ("mail", "mail/acme", "mail/acme is created"))
        s.wait_for(lambda: all(w["state"] == "idle" for w in s.workers("mail")), "mail")
        self.assertEqual([w["name"] for w in s.workers("mail")],
                         ["mail/acme/0", "mail/acme/1", "mail/b:0@c/0", "mail/b:0@c/1"])

    def test_a_signal_reaches_the_workers_of_all_cells_or_of_one(self):
        s = self.started({"mail": keyed(2, Pool={"CellsMax": 100}), "plain": plain()})
        for i in range(20):
            s.do("mail", "echo", key=f"k{i}")
        s.wait_for(lambda: all(w["state"] == "idle" for w in s.workers("mail")), "mail")
        for target, n in ("mail", 40), ("mail/k7", 2), ("mail/k7/1", 1), ("plain", 1):
            self.assertEqual(s.call("Signal", target=target, signal="SIGCONT"), {"workers": n}, target)

    def test_a_job_that_names_no_cell_is_refused_and_says_what_is_allowed(self):
        s = self.started({"mail": keyed(), "plain": plain()})
        for options in {}, {"key": ""}, {"key": "a/b"}, {"key": "-x"}, {"key": "ä"}, {"key": "x" * 65}:
            refusal = self.refused("BadOption", s.create, "mail", "echo", **options)
            self.assertEqual(refusal, {"option": "key", "allowed": KEY_ALLOWED}, options)
        no_key = s.ctl("do", "mail", "--data", "echo")
        bad_key = s.ctl("do", "mail", "--data", "echo", "--key", "a/b")
        self.assertEqual((no_key.returncode, bad_key.returncode), (2, 2), (no_key, bad_key))
        self.assertIn("a key is needed", no_key.stderr)
        self.assertIn("malformed key", bad_key.stderr)
        mapped = s.ctl("map", "mail", "--key", "a/b", input="echo\n")
        self.assertNotEqual(mapped.returncode, 0)
        self.assertIn("malformed key", mapped.stderr)
        self.assertEqual(keys(s), [], "a refused job leaves no cell")
        # Without cells a key has no special meaning.
        self.assertEqual(s.do("plain", "name", key="a/b")["result"], text("plain/0"))
        self.assertNotIn("cells", s.group("plain"))

    def test_the_longest_names_there_can_be(self):
        group, key = "g" * 64, "k" * 64
        s = self.started({group: keyed()})
        self.assertEqual(s.do(group, "name", key=key)["result"], text(f"{group}/{key}/0"))
        os.kill(s.worker(f"{group}/{key}/0")["pid"], signal.SIGKILL)
        s.wait_event("worker.died", f"{group}/{key}")
        [death] = s.deaths(f"{group}/{key}/0")
        self.assertEqual(death["worker"], f"{group}/{key}/0")
        s.wait_for(lambda: states(s, f"{group}/{key}") == [("idle", 2)], group)

    def test_a_service_has_no_cells(self):
        s = self.started({})
        s.write("web.group", ini("/bin/cat", Group={"Type": "service"}, Pool={"Cells": "by-key"}))
        problems = self.refused("BadConfiguration", s.call, "Reload")["problems"]
        self.assertEqual(len(problems), 1)
        self.assertIn("Cells=by-key needs jobs", problems[0])

    def test_a_job_tells_its_key_and_a_cell_its_jobs(self):
        s = self.started({"mail": keyed()})
        bell = Bell(s, "bell")
        for key in "a", "b":
            s.create("mail", "echo done", key=key, id=f"done-{key}")
            s.wait_job(f"done-{key}")
            s.create("mail", f"wait {bell.path}", key=key, id=f"live-{key}")
        self.assertEqual(s.job("live-a")["key"], "a")
        listed = s.call("List", group="mail/a", ended=True)
        self.assertEqual(sorted(j["id"] for j in listed["jobs"]), ["done-a", "live-a"])
        self.assertEqual(len(s.call("List", group="mail", ended=True)["jobs"]), 4)
        self.assertEqual(self.refused("NoSuchGroup", s.call, "List", group="mail/a/0")["group"], "mail/a/0")
        self.assertEqual(s.call("List", group="mail/c", ended=True), {"jobs": []})
        bell.ring(2)
        for key in "a", "b":
            s.wait_job(f"live-{key}")


class Apart(TestCase):
    def test_P2_a_key_whose_worker_is_blocked_and_queue_full_holds_up_nobody_else(self):
        s = self.started({"mail": keyed(Jobs={"QueueMax": 100}), "plain": plain(Jobs={"QueueMax": 100})})
        bell, started = Bell(s, "bell"), Bell(s, "started")
        for group in "mail", "plain":
            s.create(group, f"ring {started.path}\nwait {bell.path}", key="loud")
        started.wait(2)
        for group in "mail", "plain":
            for _ in range(100):
                s.create(group, "echo loud", key="loud")
            self.assertEqual(self.refused("Busy", s.create, group, "echo loud", key="loud")["queued"], 100)
        for i in range(300):
            self.assertEqual(s.do("mail", f"echo {i}", key="quiet")["result"], text(str(i)))
        loud, quiet = s.cell("mail/loud"), s.cell("mail/quiet")
        self.assertEqual((loud["queued"], loud["running"], loud["succeeded"], loud["refused"]), (100, 1, 0, 1))
        self.assertEqual((quiet["queued"], quiet["succeeded"], quiet["refused"]), (0, 300, 0))
        # Without cells the same flood shuts all others out.
        self.refused("Busy", s.create, "plain", "echo quiet", key="quiet")
        bell.ring(2)
        s.until(lambda: s.group("mail")["succeeded"] == 401)


class Bounds(TestCase):
    def test_beyond_CellsMax_a_new_key_is_refused_and_a_known_one_is_not(self):
        s = self.started({"mail": keyed(Pool={"CellsMax": 2, "CellIdleSec": "infinity"})})
        for key in "a", "b":
            s.do("mail", "echo", key=key)
        self.assertEqual(self.refused("TooManyCells", s.create, "mail", "echo", key="c"),
                         {"group": "mail", "maximum": 2})
        mapped = s.ctl("map", "mail", "--key", "c", input="echo\n")
        self.assertIn("CellsMax=", mapped.stderr)
        self.assertEqual(s.do("mail", "echo fine", key="a")["result"], text("fine"))
        self.assertEqual((s.group("mail")["refused"], keys(s)), (2, ["a", "b"]))
        s.write("mail.group", keyed(Pool={"CellsMax": 3, "CellIdleSec": "infinity"}))
        self.assertEqual(s.call("Reload")["changed"], ["mail"])
        self.assertEqual(s.do("mail", "echo fine", key="c")["result"], text("fine"))
        self.assertEqual([w["generation"] for w in s.workers("mail")], [1, 1, 1], "nobody was restarted for it")

    def test_all_cells_together_are_bounded_and_each_keeps_its_share(self):
        pool = {"CellsMax": 4, "CellsQueueMemoryMax": "1M"}
        s = self.started({"mail": keyed(Pool=pool)})
        bell, load = Bell(s, "bell"), f"wait {s.path('bell')}\n\n" + "x" * 100000
        for key in "a", "b":
            for _ in range(5):
                s.create("mail", load, key=key)
        self.refused("Busy", s.create, "mail", load, key="a")
        for _ in range(2):  # a quarter of the bound belongs to each cell
            s.create("mail", load, key="c")
        self.refused("Busy", s.create, "mail", load, key="c")
        self.assertEqual(self.refused("BadPayload", s.create, "mail", "x" * 1048000, key="d")["problem"][:8], "the payl")
        self.assertLess(s.group("mail")["queue_bytes"], 2 << 20)
        bell.ring(12)
        s.until(lambda: s.group("mail")["succeeded"] == 12)

    def test_an_idle_cell_retires_and_comes_back_with_its_next_job(self):
        s = self.started({"mail": keyed(2, Pool={"CellIdleSec": "50ms"})})
        before = len(s.fds())
        for generation in 1, 2, 3:
            s.do("mail", "echo", key="acme")
            s.wait_event("cell.retired", "mail/acme", generation)
            self.assertEqual(keys(s), [])
            s.until(lambda: not s.children())  # reaped after their deaths are reported
        self.refused("NoSuchTarget", s.call, "GetStatus", target="mail/acme")
        # Its events remain.
        self.assertEqual(len(s.deaths("mail/acme/0")), 3)
        self.refused("NoSuchTarget", s.call, "ListDeaths", target="mail/-")
        status = s.group("mail")
        self.assertEqual((status["succeeded"], status["deaths"], status["state"]), (3, 0, "running"))
        s.until(lambda: len(s.fds()) <= before + 7)  # two memories, what wakes and two sockets, ready for the next worker
        # Name and generation together identify a worker for good.
        s.do("mail", "echo", key="acme")
        self.assertGreaterEqual(max(w["generation"] for w in s.cell("mail/acme")["workers"]), 4)

    def test_a_result_outlives_its_cell(self):
        s = self.started({"mail": keyed(Pool={"CellIdleSec": "10ms"})})
        s.create("mail", "echo kept", key="acme", id="kept")
        s.wait_event("cell.retired", "mail/acme")
        job = s.job("kept")
        self.assertEqual((job["state"], job["result"], job["group"], job["key"]), ("succeeded", text("kept"), "mail", "acme"))
        self.assertEqual(s.group("mail")["results"], 1)
        self.assertEqual([j["id"] for j in s.call("List", group="mail", ended=True)["jobs"]], ["kept"])
        os.unlink(os.path.join(s.config, "mail.group"))
        s.call("Reload", allow_empty=True)
        self.refused("NoSuchJob", s.job, "kept")


class Sizes(TestCase):
    def test_P7_a_size_below_one_is_refused_and_an_equal_one_changes_nothing(self):
        s = self.started({"mail": keyed(2)})
        s.do("mail", "echo", key="acme")
        for target in "mail", "mail/acme":
            for size in 0, -1, 4097:
                self.assertEqual(self.refused("BadSize", s.call, "Resize", target=target, size=size),
                                 {"size": size, "minimum": 1, "maximum": 4096})
            self.assertEqual(s.call("Resize", target=target, size=2, wait=True), {"old_size": 2})
        self.assertEqual([e["type"] for e in s.call("Watch", target="mail")["events"] if "resized" in e["type"]], [])
        self.assertIn("allowed: 1 to 4096", s.ctl("resize", "mail/acme", "0").stderr)
        self.refused("NoSuchTarget", s.call, "Resize", target="mail/other", size=2)
        self.refused("BadOption", s.call, "Resize",
                     target="mail/acme/0", size=2)

    def test_P3_a_group_is_resized_with_all_its_cells_and_those_to_come_a_cell_alone(self):
        s = self.started({"mail": keyed(1)})
        for key in "a", "b":
            s.do("mail", "echo", key=key)
        self.assertEqual(s.call("Resize", target="mail/b", size=3, wait=True), {"old_size": 1})
        self.assertEqual([s.cell(f"mail/{key}")["size"] for key in "ab"], [1, 3])
        self.assertEqual(s.call("Resize", target="mail", size=2, wait=True), {"old_size": 1})
        s.do("mail", "echo", key="c")
        s.wait_for(lambda: [[state for state, _ in states(s, f"mail/{key}")] for key in "abc"] == [["idle"] * 2] * 3,
                   "mail")
        self.assertEqual(s.group("mail")["size"], 2)
        self.assertEqual(s.ctl("resize", "mail/a", "1", "--wait", check=True).stdout, "mail/a: 2 → 1 workers\n")
        self.assertEqual(s.wait_event("cell.resized", "mail/a")["message"], "mail/a is resized from 2 to 1")
        # A reload with another size is a resize of the group.
        s.write("mail.group", keyed(4))
        s.call("Reload")
        s.wait_for(lambda: [len(states(s, f"mail/{key}")) for key in "abc"] == [4] * 3, "mail")


class Life(TestCase):
    def test_a_cell_is_paused_resumed_restarted_and_reset_by_itself(self):
        s = self.started({"mail": keyed()})
        for key in "a", "b":
            s.do("mail", "echo", key=key)
        s.call("Pause", target="mail/a")
        s.create("mail", "echo later", key="a", id="later")
        s.do("mail", "echo", key="b")
        self.assertEqual((s.cell("mail/a")["state"], s.cell("mail/a")["queued"], s.cell("mail/b")["state"]),
                         ("paused", 1, "running"))
        s.call("Resume", target="mail/a")
        s.wait_job("later")
        self.assertEqual([e["type"] for e in s.call("Watch", target="mail/a")["events"] if e["type"][:5] == "cell."],
                         ["cell.created", "cell.paused", "cell.resumed"])
        s.call("Restart", target="mail/a", wait=True)
        self.assertEqual((states(s, "mail/a"), states(s, "mail/b")), ([("idle", 2)], [("idle", 1)]))
        s.call("Reset", target="mail/a")
        self.assertEqual(s.call("GetLog", target="mail/a"), {"lines": []})

    def test_a_reload_rolls_the_workers_of_all_cells(self):
        s = self.started({"mail": keyed()})
        for key in "a", "b":
            s.do("mail", "echo", key=key)
        s.write("mail.group", keyed(Group={"Environment": "NEW=1"}))
        s.call("Reload")
        for key in "a", "b", "c":
            s.until(lambda k=key: s.do("mail", "environment NEW", key=k)["result"] == text("1"))

    def test_nobody_waits_for_the_first_workers_of_a_cell(self):
        s = self.started({"mail": keyed(Group={"Environment": "ACTOR_NEVER_READY=1"})})
        s.create("mail", "echo", key="a")
        s.wait_worker("mail/a/0", "starting")
        s.write("after.group", plain(Group={"After": "mail"}))
        s.call("Reload")
        s.wait_worker("after/0", "idle")

    def test_a_reload_that_would_make_or_unmake_cells_is_refused_and_loses_nothing(self):
        s = self.started({"mail": keyed(), "plain": plain()})
        bell = Bell(s, "bell")
        s.create("mail", f"wait {bell.path}", key="a", id="live")
        for name, body in ("mail", plain()), ("plain", keyed()):
            s.write(f"{name}.group", body)
            [problem] = self.refused("BadConfiguration", s.call, "Reload")["problems"]
            self.assertIn("Cells= of a running group cannot change", problem)
            s.write(f"{name}.group", keyed() if name == "mail" else plain())
        self.assertEqual(s.call("Reload"), {"added": [], "removed": [], "changed": []})
        bell.ring()
        self.assertEqual(s.wait_job("live")["state"], "succeeded")

    def test_a_group_that_is_removed_drains_all_its_cells(self):
        s = self.started({"mail": keyed()})
        bell, ids = Bell(s, "bell"), []
        for key in "a", "b", "c":
            ids.append(s.create("mail", f"wait {bell.path}\necho 1", key=key))
            ids.append(s.create("mail", "echo 2", key=key))
        waits = [s.connect() for _ in ids]
        for connection, id in zip(waits, ids):
            connection.send("Wait", {"id": id})
        os.unlink(os.path.join(s.config, "mail.group"))
        self.assertEqual(s.call("Reload", allow_empty=True)["removed"], ["mail"])
        self.refused("NoSuchGroup", s.create, "mail", "echo", key="d")
        bell.ring(3)
        self.assertEqual([c.reply()[0]["job"]["state"] for c in waits], ["succeeded"] * 6)
        s.wait_for(lambda: s.call("GetStatus")["groups"] == [])

    def test_the_supervisor_stops_with_cells_in_every_state(self):
        s = self.started({"mail": keyed(2, Pool={"CellIdleSec": "1ms"}, Worker={"TimeoutStopSec": "200ms"})})
        bell = Bell(s, "bell")
        for i in range(20):
            s.create("mail", "echo" if i % 2 else f"wait {bell.path}", key=f"k{i}")
        s.call("Pause", target="mail/k0")
        s.call("Resize", target="mail/k2", size=3)
        s.stop()


class Shown(TestCase):
    def test_status_shows_cells_as_a_table_and_one_cell_in_full(self):
        s = self.started({"mail": keyed(1, Group={"Description": "Mail"}), "plain": plain()})
        bell, started = Bell(s, "bell"), Bell(s, "started")
        self.assertIn("Cells: none yet", s.ctl("status", "mail", check=True).stdout)
        s.create("mail", f"ring {started.path}\nwait {bell.path}", key="loud")
        started.wait()
        for _ in range(3):
            s.create("mail", "echo", key="loud")
        s.do("mail", "echo", key="quiet")
        shown = s.ctl("status", "mail", check=True).stdout
        lines = [line.split() for line in shown.splitlines()]
        self.assertEqual(lines[0], "● mail - Mail: running".split())
        self.assertIn("Cells: 2".split(), lines)
        self.assertEqual(lines[-2][:9], "● loud running 1/1 up 3 queued 1 running".split(), shown)
        self.assertEqual(lines[-1][:-1], "● quiet running 1/1 up 0 queued 0 running 1 done p99".split(), shown)
        self.assertNotIn("p99", lines[-2], "none of its jobs has ended")
        one = s.ctl("status", "mail/loud", check=True).stdout
        self.assertIn("● mail/loud - Mail: running\n", one)
        self.assertIn("mail/loud/0", one)
        self.assertNotIn("quiet", one)
        self.assertIn("mail/loud/0", s.ctl("status", "mail/loud/0", check=True).stdout)
        [group] = s.ctl_json("status", "mail/loud")["groups"]
        self.assertEqual(([c["key"] for c in group["cells"]], group["cells_total"]), (["loud"], 2))
        self.assertEqual(s.ctl("jobs", "mail/loud", check=True).stdout.count("queued"), 3)
        missing = s.ctl("status", "mail/none")
        self.assertEqual((missing.returncode, missing.stderr.count("no group, cell or worker")), (5, 1), missing)
        for verb in ("pause", "resume", "stop", "start", "restart", "reset"):
            s.ctl(verb, "mail/quiet", check=True)
        bell.ring()
        s.until(lambda: s.group("mail")["queued"] == 0)

    @limit(120)
    def test_a_thousand_cells_are_answered_for(self):
        n = 100 if SANITIZED else 1000
        s = self.started({"mail": keyed(Pool={"CellIdleSec": "infinity"})})
        s.call("Stop", target="mail")  # this test does not measure the start of processes
        with Varlink(s.socket_path) as connection:
            for i in range(n):
                connection.call("Create", group="mail", payload=text("echo"), options={"key": f"k{i}"})
        group = s.group("mail")
        self.assertEqual((group["cells_total"], len(group["cells"]), group["queued"]), (n, n, n))
        self.refused("TooManyCells", s.create, "mail", "echo", key="more") if n == 1000 else None
        self.assertIn(f"and {n - 10:,} more", s.ctl("status", "mail").stdout)
        for i in 0, n - 1:
            self.assertEqual(s.cell(f"mail/k{i}")["queued"], 1)
