# SPDX-License-Identifier: MIT
"""The checker of histories: it finds in forged ones what must not happen, and lets pass what may."""
import unittest

from history import SECOND, History


def at(seconds):
    return int(seconds * SECOND)


def published(job, seconds, n=None):
    return {"type": "published", "job": job, "n": job if n is None else n, "at": at(seconds)}


def work(kind, job, machine, seconds, attempt=1):
    return {"type": kind, "job": job, "machine": machine, "attempt": attempt, "at": at(seconds)}


def result(job, seconds, n=None, end="succeeded"):
    return {"type": "result", "job": job, "end": end, "n": job if n is None else n, "at": at(seconds)}


def blow(machine, begin, end, held=(), gentle=False, engine=False):
    return {"type": "blow", "node": machine, "kind": "blow", "from": at(begin), "to": at(end), "hits": [machine],
            "engine": engine, "gentle": gentle, "held": list(held)}


class Checker(unittest.TestCase):
    def good(self, job=1):
        return [published(job, 1), work("start", job, "a", 1.1), work("end", job, "a", 1.2), result(job, 1.3)]

    def moved(self, first="a", second="b", begin=1.1, later=4.0):
        """A job that one machine starts and another one does."""
        return [published(1, 1), work("start", 1, first, begin), work("start", 1, second, later),
                work("end", 1, second, later + 0.1), result(1, later + 0.2)]

    def problems(self, *events):
        return History([event for part in events for event in (part if isinstance(part, list) else [part])], 2).check()

    def found(self, text, *events):
        problems = self.problems(*events)
        self.assertEqual(len(problems), 1, problems)
        self.assertIn(text, problems[0])

    def test_what_is_done_once_is_right(self):
        self.assertEqual(self.problems(self.good(1), self.good(2)), [])

    def test_a_crashed_attempt_on_the_same_machine_is_right(self):
        self.assertEqual(self.problems(self.good(), work("start", 1, "a", 1.05)), [])

    def test_a_lost_job_is_found(self):
        self.found("job 1 has 0 results", published(1, 1), self.good(2))
        self.found("job 1 has 0 results", self.good()[:3])

    def test_a_result_that_servers_lose_after_they_said_that_they_have_it_is_theirs(self):
        told = {"type": "told", "job": 1, "what": "stored", "seq": 7, "by": "s", "at": at(1.3)}
        hurt = blow("s", 1.4, 1.5, engine=True)
        lost = self.good()[:3]
        self.assertEqual(self.problems(lost, told, hurt), [])
        self.assertEqual(History([*lost, told, hurt], 2).lost_by_servers(), {1})
        self.assertEqual(History([*self.good(), told, hurt], 2).lost_by_servers(), set())
        self.assertEqual(self.problems(lost, {**told, "what": "found"}, hurt), [])
        self.found("job 1 has 0 results", lost, told)
        self.found("job 1 has 0 results", lost, told, blow("a", 1.4, 1.5))
        self.found("job 1 has 0 results", lost, {**told, "what": "double"}, hurt)
        self.found("job 1 has 0 results", lost, told, blow("s", 1.1, 1.2, engine=True))

    def test_two_results_are_found(self):
        self.found("job 1 has 2 results", self.good(), result(1, 1.4))

    def test_a_publication_that_a_replica_has_stored_twice_is_one(self):
        twice, hurt = [self.good(), result(1, 1.3)], blow("s", 1.4, 1.5, engine=True)
        self.assertEqual(self.problems(*twice, hurt), [])
        self.found("job 1 has 2 results", *twice)
        self.found("job 1 has 2 results", *twice, blow("a", 1.4, 1.5))
        self.found("job 1 has 2 results", *twice, blow("s", 1.1, 1.2, engine=True))
        self.found("job 1 has 2 results", self.good(), result(1, 1.300001), hurt)

    def test_what_is_left_is_found(self):
        self.found("job 1 is left in the stream", self.good(), {"type": "left", "job": 1, "where": "the stream"})

    def test_a_job_that_nobody_sent_is_found(self):
        self.found("job 1 was never accepted", self.good()[1:])

    def test_the_result_of_another_job_is_found(self):
        self.found("the result of another one", self.good()[:3], result(1, 1.3, n=2))

    def test_a_number_that_servers_confirmed_wrongly_after_they_were_hurt_is_theirs(self):
        other = [*self.good()[:3], result(1, 1.3, n=2)]
        self.assertEqual(self.problems(other, blow("s", 1, 1.2, engine=True)), [])
        self.assertEqual(History([*other, blow("s", 1, 1.2, engine=True)], 2).lost_by_servers(), {1})
        self.assertEqual(History([*other, result(2, 1.4, n=1), blow("s", 1, 1.2, engine=True)], 2).lost_by_servers(), set())
        self.assertEqual(History([*other, blow("a", 1, 1.2)], 2).lost_by_servers(), set())
        self.assertEqual(self.problems(other[1:], blow("s", 1, 1.2, engine=True)), [])
        self.found("has the result of another one", other, blow("s", 1.4, 1.5, engine=True))
        self.found("has the result of another one", other, blow("a", 1, 1.2))
        self.found("was never accepted", other[1:], blow("a", 1, 1.2))
        self.assertEqual(self.problems(self.good(), published(2, 1.5, n=1), blow("s", 1, 1.2, engine=True)), [])
        self.found("job 2 has 0 results", self.good(), published(2, 1.5, n=1), blow("a", 1, 1.2))
        self.found("job 2 has 0 results", self.good(), published(2, 1.5), blow("s", 1, 1.2, engine=True))

    def test_a_result_without_work_is_found(self):
        self.found("before a worker has done it", published(1, 1), result(1, 1.3))
        self.found("before a worker has done it", published(1, 1), work("start", 1, "a", 1.1), work("end", 1, "a", 1.4), result(1, 1.3))

    def test_a_job_that_died_is_found(self):
        self.found("ended as dead", self.good()[:3], result(1, 1.3, end="dead"))

    def test_a_double_without_a_reason_is_found(self):
        self.found("started on a, and on b 2.900 s later", self.moved())

    def test_a_double_of_what_a_hurt_machine_had_is_right(self):
        self.assertEqual(self.problems(self.moved(), blow("a", 2, 9, [1])), [])

    def test_a_double_of_a_machine_that_was_hurt_before_it_had_the_job_is_found(self):
        self.found("although nothing", self.moved(begin=11, later=14), blow("a", 2, 5))

    def test_a_double_while_a_third_machine_is_hurt_is_found(self):
        self.found("although nothing", self.moved(), blow("c", 2, 9))

    def test_a_double_that_began_before_the_blow_is_found(self):
        self.found("although nothing", self.moved(), blow("a", 5, 9))

    def test_a_double_of_what_was_done_long_before_the_blow_is_found(self):
        self.found("although nothing", self.good(), work("start", 1, "b", 6), work("end", 1, "b", 6.1), blow("a", 5, 9))

    def test_a_double_of_what_was_done_but_not_acknowledged_is_right(self):
        self.assertEqual(self.problems(self.good(), work("start", 1, "b", 4), work("end", 1, "b", 4.1), blow("a", 1.5, 9)), [])

    def test_a_machine_may_take_longer_to_acknowledge_what_it_finds_done(self):
        double = [work("start", 1, "b", 4), work("end", 1, "b", 4.1), work("start", 1, "c", 8), work("end", 1, "c", 8.1)]
        told = {"type": "told", "job": 1, "what": "double", "seq": 7, "by": "s", "at": at(4.2)}
        hurt = [blow("a", 1.5, 2), blow("b", 6, 12)]
        self.assertEqual(self.problems(self.good(), double, told, *hurt), [])
        self.found("started on b, and on c", self.good(), double, *hurt)
        self.found("started on b, and on c", self.good(), double, {**told, "at": at(8.2)}, *hurt)

    def test_a_machine_may_take_longer_to_acknowledge_what_was_stored_late(self):
        again = [work("start", 1, "b", 7), work("end", 1, "b", 7.1), blow("a", 5, 9)]
        self.assertEqual(self.problems(self.good()[:3], result(1, 2.5), again), [])
        self.found("started on a, and on b", self.good()[:3], result(1, 2.1), again)

    def test_a_double_of_what_a_hurt_machine_did_again_is_right(self):
        again = [work("start", 1, "b", 6), work("start", 1, "c", 9), work("end", 1, "c", 9.1)]
        self.assertEqual(self.problems(self.good(), again, blow("a", 1.5, 2), blow("b", 6.5, 12)), [])
        self.found("started on b, and on c", self.good(), again, blow("a", 1.5, 2))
        self.found("started on b, and on c", self.good(), again, work("end", 1, "b", 6.1), blow("a", 1.5, 2), blow("b", 7.5, 12))

    def test_a_machine_that_starts_what_it_had_after_it_is_back_is_right(self):
        self.assertEqual(self.problems(self.moved("b", "a", 4, 9.5), blow("a", 2, 9)), [])
        self.found("although nothing", self.moved("b", "a", 4, 18.5), blow("a", 2, 9))

    def test_a_double_of_what_was_sent_after_the_blow_is_found(self):
        self.found("although nothing", published(1, 9.1), work("start", 1, "a", 9.2), work("start", 1, "b", 9.4),
                   work("end", 1, "b", 9.5), result(1, 9.6), blow("a", 2, 9))

    def test_a_machine_that_leaves_gives_back_what_its_worker_has_not_done(self):
        self.assertEqual(self.problems(self.moved(), blow("a", 2, 9, gentle=True)), [])
        self.found("although nothing", self.moved(), work("end", 1, "a", 1.2), blow("a", 2, 9, gentle=True))

    def test_a_machine_that_leaves_may_do_itself_what_crashes_its_workers(self):
        begun = [published(1, 1), work("start", 1, "a", 1.1), work("start", 1, "a", 6), work("end", 1, "a", 11), result(1, 11)]
        self.assertEqual(self.problems(begun, blow("a", 2, 12, [1], gentle=True)), [])
        self.found("taken over 9.000 s later", begun, blow("a", 2, 12, [1]))

    def test_a_machine_that_drains_works_off_its_queue(self):
        def waited(until):
            return [published(1, 1), work("start", 1, "a", until), work("end", 1, "a", 11), result(1, 11)]
        self.assertEqual(self.problems(waited(5.9), blow("a", 2, 12, [1], gentle=True)), [])
        self.found("taken over 4.100 s later", waited(6.1), blow("a", 2, 12, [1], gentle=True))
        self.found("taken over 9.000 s later", waited(5.9), blow("a", 2, 12, [1]))

    def test_a_double_of_what_was_done_while_it_was_given_back_is_found(self):
        self.found("although nothing", self.moved(), work("end", 1, "a", 2.05), blow("a", 2, 9, gentle=True))

    def test_a_job_done_twice_by_one_machine_is_found(self):
        again = [work("start", 1, "a", 2), work("end", 1, "a", 2.1)]
        self.found("started there again", self.good(), again)
        self.found("started there again", self.good(), again, blow("a", 1.25, 1.9, gentle=True))
        self.assertEqual(self.problems(self.good(), again, blow("a", 1.25, 1.9)), [])

    def test_a_late_take_over_is_found(self):
        self.found("taken over 4.100 s later", self.moved(later=6.1), blow("a", 2, 9, [1]))
        self.assertEqual(self.problems(self.moved(later=5.9), blow("a", 2, 9, [1])), [])

    def test_a_take_over_by_the_hurt_machine_does_not_count_while_it_is_hurt(self):
        self.found("taken over 5.000 s later", self.moved(later=7), blow("a", 2, 9, [1]), work("start", 1, "a", 2.5))

    def test_a_machine_that_is_back_soon_goes_on_itself(self):
        late = [published(1, 1), work("start", 1, "a", 1.1), work("start", 1, "a", 6), work("end", 1, "a", 6.1), result(1, 6.2)]
        self.assertEqual(self.problems(late, blow("a", 2, 3, [1])), [])
        self.found("taken over 4.500 s later", late, blow("a", 1.2, 1.5, [1]))

    def test_a_worker_that_lives_may_take_as_long_as_it_wants(self):
        late = [published(1, 1), work("start", 1, "a", 1.1), work("end", 1, "a", 19), result(1, 19.1)]
        self.assertEqual(self.problems(late, blow("a", 1.2, 1.5, [1])), [])
        self.assertEqual(self.problems(late, blow("a", 1.2, 9, [1], gentle=True)), [])
        self.found("taken over 17.900 s later", late, blow("a", 1.2, 5.5, [1]))
        self.found("taken over 17.800 s later", late[0], work("start", 1, "a", 19), late[2:], blow("a", 1.2, 9, [1], gentle=True))

    def test_what_waits_behind_others_where_it_was_taken_over_is_not_late(self):
        self.assertEqual(self.problems(self.moved(later=8), blow("a", 2, 9, [1]), work("has", 1, "b", 5)), [])
        self.found("taken over 4.500 s later", self.moved(later=8), blow("a", 2, 9, [1]), work("has", 1, "b", 6.5))
        self.found("taken over 6.000 s later", self.moved(later=8), blow("a", 2, 9, [1]), work("has", 1, "a", 5))

    def test_a_take_over_may_wait_for_leaders(self):
        self.assertEqual(self.problems(self.moved(later=9.1), blow("a", 2, 9, [1]), blow("b", 5, 6, engine=True)), [])
        self.found("bound: 8.000 s", self.moved(later=10.1), blow("a", 2, 9, [1]), blow("b", 5, 6, engine=True))
        self.found("taken over 7.100 s", self.moved(later=9.1), blow("a", 2, 9, [1]), blow("b", 6.5, 7, engine=True))

    def test_a_take_over_may_wait_for_a_worker(self):
        def busy(job, machine, begin):
            return [published(job, 1), work("start", job, machine, begin), work("end", job, machine, 6), result(job, 6)]
        late = self.moved(later=6.9), blow("a", 2, 9, [1])
        self.assertEqual(self.problems(*late, busy(2, "b", 3), busy(3, "b", 3)), [])
        self.found("bound: 4.000 s", *late, busy(2, "b", 3))
        self.assertEqual(self.problems(*late, busy(2, "b", 3), busy(3, "b", 4.05)), [])
        self.found("bound: 4.000 s", *late, busy(2, "b", 3), busy(3, "b", 4.5))
        self.found("bound: 4.000 s", *late, busy(2, "a", 1), busy(3, "a", 1))
        self.found("bound: 4.000 s", *late, busy(2, "b", 3), busy(3, "b", 3), busy(4, "c", 3))
        self.found("bound: 5.000 s", self.moved(later=7.1), late[1], busy(2, "b", 3), busy(3, "b", 3))

    def test_what_is_never_taken_over_is_found(self):
        self.assertEqual(len(self.problems(published(1, 1), work("start", 1, "a", 1.1), blow("a", 2, 9, [1]))), 2)
