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


def good(job=1):
    return [published(job, 1), work("start", job, "a", 1.1), work("end", job, "a", 1.2), result(job, 1.3)]


def moved(first="a", second="b", begin=1.1, later=4.0):
    """A job that one machine starts and another one does."""
    return [published(1, 1), work("start", 1, first, begin), work("start", 1, second, later),
            work("end", 1, second, later + 0.1), result(1, later + 0.2)]


# What happened: the problem that the checker finds in it (None: there is none), and the events.
CASES = {
    "what is done once": [(None, good(1), good(2))],
    "a crashed attempt on the same machine": [(None, good(), work("start", 1, "a", 1.05))],
    "a lost job": [
        ("job 1 has 0 results", published(1, 1), good(2)),
        ("job 1 has 0 results", good()[:3])],
    "two results": [("job 1 has 2 results", good(), result(1, 1.4))],
    "what is left": [("job 1 is left in the stream", good(), {"type": "left", "job": 1, "where": "the stream"})],
    "a job that nobody sent": [("job 1 was never accepted", good()[1:])],
    "the result of another job": [("the result of another one", good()[:3], result(1, 1.3, n=2))],
    "a result without work": [
        ("before a worker has done it", published(1, 1), result(1, 1.3)),
        ("before a worker has done it", published(1, 1), work("start", 1, "a", 1.1), work("end", 1, "a", 1.4), result(1, 1.3))],
    "a job that died": [("ended as dead", good()[:3], result(1, 1.3, end="dead"))],
    "a double without a reason": [("started on a, and on b 2.900 s later", moved())],
    "a double of what a hurt machine had": [(None, moved(), blow("a", 2, 9, [1]))],
    "a double of a machine that was hurt before it had the job": [
        ("although nothing", moved(begin=11, later=14), blow("a", 2, 5))],
    "a double while a third machine is hurt": [("although nothing", moved(), blow("c", 2, 9))],
    "a double that began before the blow": [("although nothing", moved(), blow("a", 5, 9))],
    "a double of what was done long before the blow": [
        ("although nothing", good(), work("start", 1, "b", 6), work("end", 1, "b", 6.1), blow("a", 5, 9))],
    "a double of what was done but not acknowledged": [
        (None, good(), work("start", 1, "b", 4), work("end", 1, "b", 4.1), blow("a", 1.5, 9))],
    "a machine that starts what it had after it is back": [
        (None, moved("b", "a", 4, 9.5), blow("a", 2, 9)),
        ("although nothing", moved("b", "a", 4, 18.5), blow("a", 2, 9))],
    "a double of what was sent after the blow": [
        ("although nothing", published(1, 9.1), work("start", 1, "a", 9.2), work("start", 1, "b", 9.4),
         work("end", 1, "b", 9.5), result(1, 9.6), blow("a", 2, 9))],
    "a machine that leaves gives back what its worker has not done": [
        (None, moved(), blow("a", 2, 9, gentle=True)),
        ("although nothing", moved(), work("end", 1, "a", 1.2), blow("a", 2, 9, gentle=True))],
    "a double of what was done while it was given back": [
        ("although nothing", moved(), work("end", 1, "a", 2.05), blow("a", 2, 9, gentle=True))],
    "a late take over": [
        ("taken over 4.100 s later", moved(later=6.1), blow("a", 2, 9, [1])),
        (None, moved(later=5.9), blow("a", 2, 9, [1]))],
    "a take over by the hurt machine does not count while it is hurt": [
        ("taken over 5.000 s later", moved(later=7), blow("a", 2, 9, [1]), work("start", 1, "a", 2.5))],
    "what waits behind others where it was taken over is not late": [
        (None, moved(later=8), blow("a", 2, 9, [1]), work("has", 1, "b", 5)),
        ("taken over 4.500 s later", moved(later=8), blow("a", 2, 9, [1]), work("has", 1, "b", 6.5)),
        ("taken over 6.000 s later", moved(later=8), blow("a", 2, 9, [1]), work("has", 1, "a", 5))],
    "a take over may wait for leaders": [
        (None, moved(later=9.1), blow("a", 2, 9, [1]), blow("b", 5, 6, engine=True)),
        ("bound: 8.000 s", moved(later=10.1), blow("a", 2, 9, [1]), blow("b", 5, 6, engine=True)),
        ("taken over 7.100 s", moved(later=9.1), blow("a", 2, 9, [1]), blow("b", 6.5, 7, engine=True))],
}


class Checker(unittest.TestCase):
    def problems(self, *events):
        return History([event for part in events for event in (part if isinstance(part, list) else [part])], 2).check()

    def found(self, text, *events):
        problems = self.problems(*events)
        self.assertEqual(len(problems), 1, problems)
        self.assertIn(text, problems[0])

    def test_what_must_not_happen_is_found_and_what_may_is_not(self):
        for name, cases in CASES.items():
            for problem, *events in cases:
                with self.subTest(name, problem=problem):
                    if problem:
                        self.found(problem, *events)
                    else:
                        self.assertEqual(self.problems(*events), [])

    def test_a_result_that_servers_lose_after_they_said_that_they_have_it_is_theirs(self):
        told = {"type": "told", "job": 1, "what": "stored", "seq": 7, "by": "s", "at": at(1.3)}
        hurt = blow("s", 1.4, 1.5, engine=True)
        lost = good()[:3]
        self.assertEqual(self.problems(lost, told, hurt), [])
        self.assertEqual(History([*lost, told, hurt], 2).lost_by_servers(), {1})
        self.assertEqual(History([*good(), told, hurt], 2).lost_by_servers(), set())
        self.assertEqual(self.problems(lost, {**told, "what": "found"}, hurt), [])
        self.found("job 1 has 0 results", lost, told)
        self.found("job 1 has 0 results", lost, told, blow("a", 1.4, 1.5))
        self.found("job 1 has 0 results", lost, {**told, "what": "double"}, hurt)
        self.found("job 1 has 0 results", lost, told, blow("s", 1.1, 1.2, engine=True))

    def test_a_publication_that_a_replica_has_stored_twice_is_one(self):
        twice, hurt = [good(), result(1, 1.3)], blow("s", 1.4, 1.5, engine=True)
        self.assertEqual(self.problems(*twice, hurt), [])
        self.found("job 1 has 2 results", *twice)
        self.found("job 1 has 2 results", *twice, blow("a", 1.4, 1.5))
        self.found("job 1 has 2 results", *twice, blow("s", 1.1, 1.2, engine=True))
        self.found("job 1 has 2 results", good(), result(1, 1.300001), hurt)

    def test_a_number_that_servers_confirmed_wrongly_after_they_were_hurt_is_theirs(self):
        other = [*good()[:3], result(1, 1.3, n=2)]
        self.assertEqual(self.problems(other, blow("s", 1, 1.2, engine=True)), [])
        self.assertEqual(History([*other, blow("s", 1, 1.2, engine=True)], 2).lost_by_servers(), {1})
        self.assertEqual(History([*other, result(2, 1.4, n=1), blow("s", 1, 1.2, engine=True)], 2).lost_by_servers(), set())
        self.assertEqual(History([*other, blow("a", 1, 1.2)], 2).lost_by_servers(), set())
        self.assertEqual(self.problems(other[1:], blow("s", 1, 1.2, engine=True)), [])
        self.found("has the result of another one", other, blow("s", 1.4, 1.5, engine=True))
        self.found("has the result of another one", other, blow("a", 1, 1.2))
        self.found("was never accepted", other[1:], blow("a", 1, 1.2))
        self.assertEqual(self.problems(good(), published(2, 1.5, n=1), blow("s", 1, 1.2, engine=True)), [])
        self.found("job 2 has 0 results", good(), published(2, 1.5, n=1), blow("a", 1, 1.2))
        self.found("job 2 has 0 results", good(), published(2, 1.5), blow("s", 1, 1.2, engine=True))

    def test_a_machine_may_take_longer_to_acknowledge_what_it_finds_done(self):
        double = [work("start", 1, "b", 4), work("end", 1, "b", 4.1), work("start", 1, "c", 8), work("end", 1, "c", 8.1)]
        told = {"type": "told", "job": 1, "what": "double", "seq": 7, "by": "s", "at": at(4.2)}
        hurt = [blow("a", 1.5, 2), blow("b", 6, 12)]
        self.assertEqual(self.problems(good(), double, told, *hurt), [])
        self.found("started on b, and on c", good(), double, *hurt)
        self.found("started on b, and on c", good(), double, {**told, "at": at(8.2)}, *hurt)

    def test_a_machine_may_take_longer_to_acknowledge_what_was_stored_late(self):
        again = [work("start", 1, "b", 7), work("end", 1, "b", 7.1), blow("a", 5, 9)]
        self.assertEqual(self.problems(good()[:3], result(1, 2.5), again), [])
        self.found("started on a, and on b", good()[:3], result(1, 2.1), again)

    def test_a_double_of_what_a_hurt_machine_did_again_is_right(self):
        again = [work("start", 1, "b", 6), work("start", 1, "c", 9), work("end", 1, "c", 9.1)]
        self.assertEqual(self.problems(good(), again, blow("a", 1.5, 2), blow("b", 6.5, 12)), [])
        self.found("started on b, and on c", good(), again, blow("a", 1.5, 2))
        self.found("started on b, and on c", good(), again, work("end", 1, "b", 6.1), blow("a", 1.5, 2), blow("b", 7.5, 12))

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

    def test_a_job_done_twice_by_one_machine_is_found(self):
        again = [work("start", 1, "a", 2), work("end", 1, "a", 2.1)]
        self.found("started there again", good(), again)
        self.found("started there again", good(), again, blow("a", 1.25, 1.9, gentle=True))
        self.assertEqual(self.problems(good(), again, blow("a", 1.25, 1.9)), [])

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

    def test_a_take_over_may_wait_for_a_worker(self):
        def busy(job, machine, begin):
            return [published(job, 1), work("start", job, machine, begin), work("end", job, machine, 6), result(job, 6)]
        late = moved(later=6.9), blow("a", 2, 9, [1])
        self.assertEqual(self.problems(*late, busy(2, "b", 3), busy(3, "b", 3)), [])
        self.found("bound: 4.000 s", *late, busy(2, "b", 3))
        self.assertEqual(self.problems(*late, busy(2, "b", 3), busy(3, "b", 4.05)), [])
        self.found("bound: 4.000 s", *late, busy(2, "b", 3), busy(3, "b", 4.5))
        self.found("bound: 4.000 s", *late, busy(2, "a", 1), busy(3, "a", 1))
        self.found("bound: 4.000 s", *late, busy(2, "b", 3), busy(3, "b", 3), busy(4, "c", 3))
        self.found("bound: 5.000 s", moved(later=7.1), late[1], busy(2, "b", 3), busy(3, "b", 3))

    def test_what_is_never_taken_over_is_found(self):
        self.assertEqual(len(self.problems(published(1, 1), work("start", 1, "a", 1.1), blow("a", 2, 9, [1]))), 2)
