# SPDX-License-Identifier: MIT
"""The simulator keeps its own rules: no job is lost or made, and what it says of limits is so."""
import dataclasses
import unittest

from fleet import Costs, Fleet, Simulation, first_limit

COSTS = Costs(leader=40, follower=25, bridge=30, supervisor=5)
OFTEN = Fleet(jobs_per_s=10_000, machines=20, streams=4, servers=6, machine_mtbf_s=300, server_mtbf_s=300)


class Rules(unittest.TestCase):
    def test_jobs_are_waiting_in_lost_hands_or_done(self):
        simulation = Simulation(OFTEN, COSTS, seed=7).run(3600)
        self.assertGreater(simulation.total("again"), 0)
        accounted = simulation.total("waiting") + simulation.total("n_lost") + simulation.total("done")
        self.assertAlmostEqual(simulation.total("arrived"), accounted, delta=1)

    def test_without_failures_everything_is_done_at_once(self):
        quiet = dataclasses.replace(OFTEN, machine_mtbf_s=1e18, server_mtbf_s=1e18)
        simulation = Simulation(quiet, COSTS).run(60)
        self.assertEqual((simulation.total("again"), simulation.total("waiting"), simulation.delay(1)), (0, 0, 0))

    def test_beyond_the_first_limit_a_queue_grows_and_below_none_does(self):
        quiet = dataclasses.replace(OFTEN, machine_mtbf_s=1e18, server_mtbf_s=1e18)
        narrow, rate = first_limit(quiet, COSTS)
        above = Simulation(dataclasses.replace(quiet, jobs_per_s=rate * 1.1), COSTS).run(60)
        below = Simulation(dataclasses.replace(quiet, jobs_per_s=rate * 0.9), COSTS).run(60)
        self.assertGreater(above.total("waiting"), 0)
        self.assertEqual(set(above.busiest), {narrow})
        self.assertEqual(below.total("waiting"), 0)

    def test_the_same_seed_gives_the_same_fleet(self):
        runs = [Simulation(OFTEN, COSTS, seed=3).run(600) for _ in range(2)]
        self.assertEqual(runs[0].total("again"), runs[1].total("again"))
