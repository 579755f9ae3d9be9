# SPDX-License-Identifier: MIT
"""Size=LOW..HIGH: a pool has as many workers as its jobs need.

TESTS_RUNS=100 is the number of runs beside a memory hog for a release."""
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

from test_actors import PLAYER
from troupe import ACTOR, BUILD, QUICK, TROUPE_EXEC, Bell, Cgroup, TestCase, ini

SOON = {"TargetWaitSec": "1ms", "IdleSec": "100ms"}
LATER = {"TargetWaitSec": "1ms", "IdleSec": "1h"}


class Case(TestCase):
    def elastic(self, size, program=ACTOR, **sections):
        pool = {"Size": size, **SOON, **sections.pop("Pool", {})}
        return self.started({"actor": ini(program, Pool=pool, Restart=QUICK, **sections)})

    def until_size(self, s, size, name="actor"):
        part = s.cell if "/" in name else s.group
        return s.until(lambda: (lambda g: g if g["size"] == g["members"] == size else None)(part(name)))

    def rewrite(self, s, size, **pool):
        s.write("actor.group", ini(ACTOR, Pool={"Size": size, **SOON, **pool}, Restart=QUICK))
        s.ctl("reload", check=True)

    def all_succeed(self, s, ids):
        self.assertEqual({s.wait_job(id)["state"] for id in ids}, {"succeeded"})
        self.assertEqual({d["cause"] for d in s.deaths()} - {"stop"}, set())


class Pool(Case):
    def test_E1_nothing_runs_while_there_is_no_work(self):
        s = self.elastic("0..8")
        for _ in range(2):
            self.until_size(s, 0)
            s.until(lambda: s.children() == [])
            self.assertEqual(s.group("actor")["state"], "running")
            self.assertIn("0 of 0..8", s.ctl("status", "actor", check=True).stdout)
            self.assertEqual(s.do("actor", "echo")["state"], "succeeded")
        s.wait_event("pool.shrunk", "actor", count=2)
        self.assertEqual({d["cause"] for d in s.deaths()} - {"stop"}, set())

    def test_E1_it_grows_to_what_its_jobs_need_and_back(self):
        s = self.elastic("1..8")
        self.assertEqual(len(s.children()), 1)
        ids, go = s.busy("actor", n=5)
        group = self.until_size(s, 5)
        self.assertEqual((group["size_min"], group["size_max"], group["wanted"]), (1, 8, 5))
        self.assertIn("5 of 1..8", s.ctl("status", "actor", check=True).stdout)
        self.assertIn("5/5 of 1..8", s.ctl("status", check=True).stdout)
        go.ring(5)
        self.all_succeed(s, ids)
        self.assertEqual([w["name"] for w in self.until_size(s, 1)["workers"]], ["actor/0"])
        sizes = [e["message"].split()[1:5] for e in s.call("Watch", target="actor")["events"] if e["type"] == "pool.shrunk"]
        self.assertEqual(sizes, [["shrinks", "from", str(n), "to"] for n in (5, 4, 3, 2)])

    def test_E1_a_busy_worker_that_is_to_go_ends_its_job(self):
        s = self.elastic("0..4")
        first, go = s.busy("actor")
        ids, others = s.busy("actor", n=3)
        self.until_size(s, 4)
        others.ring(3)
        self.all_succeed(s, ids)
        self.until_size(s, 1)  # whichever has the highest number, and the job as well
        self.assertEqual(s.job(first)["state"], "running")
        go.ring()
        self.all_succeed(s, [first])
        self.until_size(s, 0)

    def test_E3_why_says_what_holds_it(self):
        s = self.elastic("1..2")
        ids, go = s.busy("actor", n=2)
        late = s.create("actor", "echo")
        s.until(lambda: s.group("actor").get("held") == "highest")
        self.assertIn("actor is held at 2 of 2: 3 are wanted, but Size= allows no more\n", s.ctl("why", "actor", check=True).stdout)
        go.ring(2)
        self.all_succeed(s, [*ids, late])
        self.until_size(s, 1)
        self.assertIn("nothing: it is up\n", s.ctl("why", "actor", check=True).stdout)

    def test_E1_it_is_not_resized_by_hand(self):
        s = self.elastic("1..2")
        refused = s.ctl("resize", "actor", "2")
        self.assertEqual(refused.returncode, 2)
        self.assertIn("the size of 'actor' follows its work, from 1 to 2; change Size= and reload", refused.stderr)
        self.assertEqual(self.refused("Elastic", s.call, "Resize", target="actor", size=2)["maximum"], 2)

    def test_E1_nonsense_is_refused_with_what_is_allowed(self):
        s = self.elastic("1..2")
        for size, why in (("16..2", "its first number is above the second one"), ("0..0", "out of range"), ("2..", "no valid value"),
                          ("1..5000", "out of range"), ("-1..3", "no valid value"), ("1..2..3", "no valid value")):
            path = s.write("bad.group", ini(ACTOR, Pool={"Size": size}))
            shown = s.ctl("verify", path)
            self.assertEqual(shown.returncode, 7, size)
            self.assertIn(f"Size={size}: {why}; allowed: a number from 1 to 4096, a share", shown.stdout + shown.stderr)
        path = s.write("bad.group", ini("/bin/sleep 9", Group={"Type": "service"}, Pool={"Size": "1..2"}))
        shown = s.ctl("verify", path)
        self.assertIn("allowed: one number, or Type=actor", shown.stdout + shown.stderr)
        path = s.write("bad.group", ini(ACTOR, Pool={"Size": "1..auto"}))
        self.assertEqual(s.ctl("verify", path).returncode, 0)
        os.unlink(path)

    def test_E1_a_reload_makes_a_pool_elastic_and_back(self):
        s = self.started({"actor": ini(ACTOR, Pool={"Size": 3}, Restart=QUICK)})
        pids = {w["pid"] for w in s.workers("actor")}
        self.rewrite(s, "2..4", **LATER)
        self.assertEqual({w["pid"] for w in self.until_size(s, 3)["workers"]}, pids)
        ids, go = s.busy("actor", n=4)
        self.until_size(s, 4)
        self.rewrite(s, "1..2", **LATER)
        self.assertEqual(s.group("actor")["size"], 2)
        self.rewrite(s, "5")
        go.ring(4)
        self.all_succeed(s, ids)
        self.assertNotIn("size_max", self.until_size(s, 5))
        self.assertEqual(s.ctl("resize", "actor", "1", "--wait").returncode, 0)

    def test_E1_jobs_that_wait_on_disk_for_their_time_need_no_worker(self):
        s = self.supervisor({"actor": ini(ACTOR, Pool={"Size": "0..4", **SOON}, Jobs={"Durable": "yes"}, Restart=QUICK)})
        s.write("troupe.conf", f"[Supervisor]\nStateDirectory={s.path('state')}\n")
        s.start()
        for _ in range(5):
            s.create("actor", "echo", delay_usec=3600 * 1000000)
        self.assertEqual(s.do("actor", "echo")["state"], "succeeded")
        self.assertEqual(self.until_size(s, 0)["wanted"], 0)
        self.assertEqual(s.group("actor")["waiting"], 5)

    def test_E1_a_message_starts_the_first_worker(self):
        s = self.elastic("0..2", program=f"{PLAYER} %n/%i")
        self.until_size(s, 0)
        s.ctl("tell", "actor", "note", "--data", "hello", check=True)
        s.wait_event("pool.grown", "actor")
        self.until_size(s, 0)


class Pressure(Case):
    def test_E2_pressure_holds_a_pool_and_makes_it_smaller(self):
        if not os.access("/proc/pressure/cpu", os.W_OK):
            self.skipTest("the kernel does not report pressure")
        n = 2 * os.cpu_count()
        body = f"{TROUPE_EXEC} -- sh -c 'while :; do :; done'"
        s = self.started({"actor": ini(body, Pool={"Size": n}, Restart=QUICK)})
        ids = [s.create("actor") for _ in range(2 * n)]
        s.until(lambda: s.group("actor")["running"] == n)
        s.write("actor.group", ini(body, Pool={"Size": "1..256", **LATER, "CPUPressureThresholdSec": "1ms"}, Restart=QUICK))
        s.ctl("reload", check=True)
        s.wait_event("group.pressed", "actor")
        s.until(lambda: s.group("actor").get("held") == "pressure")
        self.assertRegex(s.ctl("why", "actor", check=True).stdout, r"actor is held at \d+ of 256: CPU pressure [^ ]+ ?m?s/s for ")
        self.assertIn("under pressure", s.wait_event("pool.shrunk", "actor")["message"])
        for id in ids:
            s.call("Cancel", id=id)


MIB = 1 << 20
LIMITED = 160  # MiB, for the hog, the supervisor and its workers
# Keeps 48 MiB, and reads more than the rest again and again.
HOG = """
import os, sys, time
kept = b"x" * (48 << 20)
file = open(sys.argv[1], "rb", buffering=0)
os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
room = bytearray(1 << 20)
while True:
    file.seek(0)
    while file.readinto(room):
        time.sleep(0.002)
"""


class Hog(TestCase):
    V1 = "/sys/fs/cgroup/memory"

    def limit(self):
        """Returns the wrapper of the supervisor, the cgroup of the hog, and the file that counts kills; or skips the test."""
        if not Cgroup.available() or not os.access("/proc/pressure/memory", os.W_OK):
            self.skipTest("needs root, cgroups, and a kernel that reports pressure")
        if not os.access(f"{self.V1}/cgroup.procs", os.W_OK):
            self.skipTest("needs the memory controller of cgroups v1; does not work yet with that of v2")
        top = Cgroup(self)
        directory = tempfile.mkdtemp(prefix="troupe-e2e-", dir=self.V1)
        self.addCleanup(os.rmdir, directory)
        Path(directory, "memory.limit_in_bytes").write_text(str(LIMITED * MIB), encoding="ascii")
        return ["/bin/sh", "-c", f'echo $$ >{directory}/cgroup.procs; exec "$0" "$@"', *top.wrapper], directory, f"{directory}/memory.oom_control"

    def kills(self, size, **pool):
        """Runs jobs that keep 12 MiB each beside the hog. Returns how many processes were killed for memory."""
        wrapper, place, events = self.limit()
        hog = subprocess.Popen(["/bin/sh", "-c", f'echo $$ >{place}/cgroup.procs; exec "$0" "$@"',
                                sys.executable, "-c", HOG, self.file.name])
        self.addCleanup(hog.wait)
        self.addCleanup(hog.kill)
        job = "{ head -c 12m /dev/zero; sleep 0.3; } | tail -c 12m >/dev/null"
        s = self.supervisor({"work": ini(f"{TROUPE_EXEC} -- sh -c '{job}'", Pool={"Size": size, **pool}, Restart=QUICK,
                                         Jobs={"MaxRetries": 100, "BackoffMinSec": "1ms"})}, wrapper=wrapper)
        s.start()
        self.until_full(s, place)
        ids = [s.create("work") for _ in range(20)]
        self.assertEqual({s.wait_job(id)["state"] for id in ids}, {"succeeded"})
        [n] = re.findall(r"oom_kill (\d+)", Path(events).read_text(encoding="ascii"))
        s.stop()
        self.doCleanups()
        return int(n)

    def until_full(self, s, place):
        used = Path(place, "memory.usage_in_bytes")
        s.until(lambda: int(used.read_text(encoding="ascii")) > (LIMITED - 8) * MIB)

    def test_E4_beside_a_memory_hog_nothing_is_killed_where_a_fixed_size_is(self):
        self.file = tempfile.NamedTemporaryFile(dir=BUILD)
        self.addClassCleanup(self.file.close)
        for _ in range(LIMITED):
            self.file.write(os.urandom(MIB))
        self.file.flush()
        os.fsync(self.file.fileno())
        runs = int(os.environ.get("TESTS_RUNS", "1"))
        elastic = [self.kills("1..16", TargetWaitSec="100ms", MemoryPressureThresholdSec="1ms") for _ in range(runs)]
        fixed = [self.kills(16) for _ in range(runs)]
        print(f"killed for memory: {elastic} with an elastic pool, {fixed} with a fixed one")
        self.assertEqual(sum(elastic), 0)
        self.assertGreaterEqual(len([n for n in fixed if n > 0]), 0.9 * runs)


class Cells(Case):
    def test_E1_each_cell_has_a_size_of_its_own(self):
        s = self.elastic("0..4", Pool={"Cells": "by-key", **LATER})
        (first, second, third), go = s.busy("actor", n=3, key="a")
        self.assertEqual(s.do("actor", "echo", key="b")["state"], "succeeded")
        self.until_size(s, 3, "actor/a")
        self.until_size(s, 1, "actor/b")
        self.assertEqual(self.refused("Elastic", s.call, "Resize", target="actor/a", size=2)["group"], "actor")
        s.ctl("upgrade", check=True)
        self.until_size(s, 3, "actor/a")
        go.ring(3)
        self.all_succeed(s, [first, second, third])

    def test_E1_a_cell_without_workers_stays_until_it_retires(self):
        s = self.elastic("0..4", Pool={"Cells": "by-key", "CellIdleSec": "1h"})
        s.do("actor", "echo", key="a")
        cell = self.until_size(s, 0, "actor/a")
        self.assertEqual((cell["state"], cell["workers"]), ("running", []))
        s.do("actor", "echo", key="a")
        s.write("actor.group", ini(ACTOR, Pool={"Size": "0..4", **SOON, "Cells": "by-key", "CellIdleSec": "1ms"}, Restart=QUICK))
        s.ctl("reload", check=True)
        s.until(lambda: s.cell("actor/a") is None)


class Shares(Case):
    def shared(self, most, **pool):
        return self.elastic("0..8", Pool={"Cells": "by-key", "PoolMax": most, **pool})

    def hold(self, s, n, key):
        """Creates jobs that go on when the bell rings, whether they have begun or not."""
        go = Bell(s, f"hold-{key}")
        return [s.create("actor", f"wait {go.path}", key=key) for _ in range(n)], go

    def test_E2_cells_share_the_workers_and_why_says_so(self):
        s = self.shared(6, **LATER)
        ids, go_a = s.busy("actor", n=6, key="a")
        ids += [s.create("actor", "echo", key="a") for _ in range(4)]
        b, go_b = self.hold(s, 1, "b")
        c, go_c = self.hold(s, 1, "c")
        a = s.until(lambda: (lambda a: a if a["size"] == 4 and a.get("held") == "share" else None)(s.cell("actor/a")))
        self.assertEqual((a["pool_max"], a["sharing"]), (6, 3))
        self.assertIn("held at 4 of 8: its share of PoolMax=6, of which 3 cells want workers", s.ctl("why", "actor/a", check=True).stdout)
        self.assertEqual(len(s.children()), 6)
        go_a.ring(6)
        self.until_size(s, 1, "actor/c")
        self.until_size(s, 1, "actor/b")
        go_b.ring()
        go_c.ring()
        self.all_succeed(s, [*ids, *b, *c])

    def test_E2_more_cells_than_workers_have_them_in_turns(self):
        s = self.shared(2, IdleSec="50ms")
        held = [self.hold(s, 3, key) for key in "abcd"]
        s.until(lambda: len(s.children()) == 2)
        for _, go in held:
            go.ring(3)
        for ids, _ in held:
            self.all_succeed(s, ids)
        s.until(lambda: not s.children())

    def test_E2_a_reload_changes_what_is_shared(self):
        s = self.shared(1, **LATER)
        ids, go = self.hold(s, 4, "a")
        s.until(lambda: s.cell("actor/a").get("held") == "share")
        s.write("actor.group", ini(ACTOR, Pool={"Size": "0..8", **LATER, "Cells": "by-key", "PoolMax": 3}, Restart=QUICK))
        s.ctl("reload", check=True)
        self.until_size(s, 3, "actor/a")
        s.write("actor.group", ini(ACTOR, Pool={"Size": "0..8", **LATER, "Cells": "by-key"}, Restart=QUICK))
        s.ctl("reload", check=True)
        self.until_size(s, 4, "actor/a")
        go.ring(4)
        self.all_succeed(s, ids)

    def test_E2_only_cells_without_idle_workers_share(self):
        s = self.elastic("0..4")
        for pool in {"Size": "0..4"}, {"Size": 2, "Cells": "by-key"}, {"Size": "1..4", "Cells": "by-key"}:
            path = s.write("bad.group", ini(ACTOR, Pool={"PoolMax": 4, **pool}))
            shown = s.ctl("verify", path)
            self.assertIn("allowed: 0, or Cells=by-key with a Size= from 0 such as 0..8", shown.stdout + shown.stderr)


class Succession(Case):
    def grown(self):
        s = self.elastic("1..8", Pool=LATER)
        ids, go = s.busy("actor", n=4)
        pids = {w["pid"] for w in self.until_size(s, 4)["workers"]}
        return s, ids, go, pids

    def check(self, s, ids, go, pids):
        self.assertEqual({w["pid"] for w in self.until_size(s, 4)["workers"]}, pids)
        more, go_on = s.busy("actor", n=3)
        self.until_size(s, 7)
        go.ring(4)
        go_on.ring(3)
        self.all_succeed(s, ids + more)

    def test_E1_the_size_survives_an_upgrade(self):
        s, ids, go, pids = self.grown()
        s.ctl("upgrade", check=True)
        self.check(s, ids, go, pids)

    def test_E1_a_crash_stops_no_busy_worker(self):
        s, ids, go, pids = self.grown()
        s.crash()
        self.check(s, ids, go, pids)

    def test_E1_a_pool_goes_on_growing_after_a_crash_and_an_upgrade(self):
        s = self.supervisor({"actor": ini(ACTOR, Pool={"Size": "0..8", **LATER}, Jobs={"Durable": "yes"}, Restart=QUICK)}, state=True)
        s.start()
        go = Bell(s, "go-on")
        ids = [s.create("actor", f"wait {go.path}") for _ in range(40)]
        s.until(lambda: s.group("actor")["size"] >= 2)
        s.crash()
        s.until(lambda: s.group("actor")["size"] >= 4)
        s.ctl("upgrade", check=True)
        self.until_size(s, 8)
        go.ring(40)
        self.assertEqual({s.wait_job(id)["state"] for id in ids}, {"succeeded"})
