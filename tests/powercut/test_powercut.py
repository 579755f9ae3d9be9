# SPDX-License-Identifier: MIT
"""Power cuts: every promise about durable jobs holds whatever a power cut leaves of the disk.

Clients load a supervisor whose database is on a disk.Disk, and note each promise with the position in the disk's log.
For each of TESTS_CUTS cuts, a supervisor is started on what the cut leaves, and everything that had been promised by
then is checked. Mutants that promise too early must be found.
"""
import contextlib
import os
import random
import shutil
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "e2e"))
import disk  # pylint: disable=wrong-import-position
import promises  # pylint: disable=wrong-import-position
from load import Load  # pylint: disable=wrong-import-position
from troupe import ACTOR, BUILD, TestCase, ini, limit  # pylint: disable=wrong-import-position

CUTS = int(os.environ.get("TESTS_CUTS", "500"))
SEED = int(os.environ.get("TESTS_SEED", "0")) or random.SystemRandom().randrange(1, 1 << 32)
MUTANT = os.path.join(BUILD, "tests", "powercut", "mutant", "trouped")

GROUP = ini(ACTOR, Pool={"Size": 4}, Resources={"LimitCORE": 0},
            Restart={"MinSec": "1ms", "MaxSec": "10ms", "StartLimitBurst": 0},
            Jobs={"Durable": "yes", "BackoffMinSec": "1ms", "BackoffMaxSec": "5ms", "MaxRetries": 3,
                  "ResultTTLSec": "1d", "ResultsMax": 1000000},
            Worker={"TimeoutStopSec": "100ms"})


class PowerCut(TestCase):
    def setUp(self):
        reason = disk.why_impossible()
        if reason:
            self.skipTest(reason)
        print(f"seed {SEED} (TESTS_SEED= repeats it)")
        self.directory = tempfile.mkdtemp(prefix="troupe-powercut-")
        self.addCleanup(shutil.rmtree, self.directory)
        disk.private_mounts()
        self.log = ""  # of the supervisor that made the promises

    def supervisor_on(self, mount, **options):
        conf = f"[Supervisor]\nStateDirectory={mount}/state\nDeadLettersMax=1000000\n"
        return self.supervisor({"actor": GROUP}, conf=conf, **options)

    @contextlib.contextmanager
    def running(self, supervisor):
        """Starts it, with an empty log. Afterwards, nothing of it runs."""
        with open(supervisor.log_path, "wb"):
            pass
        supervisor.start()
        try:
            yield
        finally:
            if supervisor.process.poll() is None:
                supervisor.kill()
            supervisor.connections.close()

    def record(self, n_steps, lives=3, **options):
        """Loads a supervisor in several lives, all but the last ended by SIGKILL. Returns the disk and the load."""
        with disk.Disk(self.directory) as recorded:
            load = Load("actor", recorded.position, SEED)
            supervisor = self.supervisor_on(recorded.mount, **options)
            for life in range(lives):
                with self.running(supervisor):
                    clients = load.start(supervisor, 6, n_steps)
                    clients[0].join()
                    if life < lives - 1:
                        supervisor.kill()
                    load.finish(clients)
                    if life == lives - 1:
                        self.assertLess(supervisor.group("actor")["queue_bytes"], 1 << 32, "the count went below 0")
                self.log += supervisor.log()
        return recorded, load

    def positions(self, recorded, cuts, load, n):
        """Of the cuts, half are just after a promise: there it has most to lose."""
        made = [p for job in load.jobs for p in (job.created, job.cancelled, job.ended) if p is not None]
        return [cuts.random.choice(made) if i % 2 else cuts.random.randrange(recorded.begin, len(cuts.entries) + 1)
                for i in range(n)]

    def check_cuts(self, recorded, load, n):
        cuts = disk.Cuts(recorded.log, SEED)
        print(f"{len(load.jobs)} jobs, {len(cuts.entries)} writes and flushes, {cuts.n_flushes} flushes")
        base, image = os.path.join(self.directory, "base"), os.path.join(self.directory, "cut")
        supervisor = self.supervisor_on(recorded.mount)
        for i, position in enumerate(cuts.images(self.positions(recorded, cuts, load, n), base, image)):
            try:
                with disk.mounted(image, recorded.mount, "-o", "loop", repairs=True), self.running(supervisor):
                    promises.Check(supervisor, load.jobs, position).run()
            except promises.Broken as broken:
                raise promises.Broken(f"cut {i} at {position} of {len(cuts.entries)}: {broken}") from None
        print(f"{n} cuts")

    @limit(7200)
    def test_every_promise_holds_after_every_cut(self):
        self.check_cuts(*self.record(150), CUTS)

    def check_failing(self, what):
        preload = {"LD_PRELOAD": os.path.join(BUILD, "tests", "e2e", "preload", "failing-disk.so"), "FAILING_DISK": what}
        recorded, load = self.record(60, environment=preload)
        self.assertIn("error: " + os.path.join(recorded.mount, "state", "troupe.db"), self.log, "no call has failed")
        self.check_cuts(recorded, load, CUTS // 5)

    @limit(3600)
    def test_syncs_that_fail_break_no_promise(self):
        self.check_failing("sync")

    @limit(3600)
    def test_writes_that_fail_break_no_promise(self):
        self.check_failing("write")

    @limit(3600)
    def test_a_disk_that_is_full_at_times_breaks_no_promise(self):
        self.check_failing("space")

    def check_mutant(self, name):
        recorded, load = self.record(100, lives=1, program=MUTANT, environment={"MUTANT": name})
        with self.assertRaises(promises.Broken) as caught:
            self.check_cuts(recorded, load, CUTS)
        print(caught.exception)

    @limit(3600)
    def test_a_store_that_does_not_sync_is_found(self):
        self.check_mutant("no-sync")

    @limit(3600)
    def test_an_answer_before_the_commit_is_found(self):
        self.check_mutant("early-answer")

    @limit(3600)
    def test_an_end_before_the_commit_is_found(self):
        self.check_mutant("early-end")
