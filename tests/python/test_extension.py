# SPDX-License-Identifier: MIT
"""The extension troupe._troupe: what its types promise, each by itself."""
import errno
import gc
import os
import select
import signal
import subprocess
import threading
import time

import troupe_python
from troupe_python import e2e, group, needed, waits

RETRY = {"MaxRetries": 2, "BackoffMinSec": "1ms", "BackoffMaxSec": "1ms"}


@needed
class Extension(troupe_python.TestCase):
    def refusal(self, low):
        """Why a call is refused, once another thread is inside."""
        while True:
            try:
                low.flush()
            except RuntimeError as error:
                return str(error)

    def set_up(self, **sections):
        self.supervisor_ = self.started({"low": group("low.py", **sections)})
        self.low = self.client(self.supervisor_)
        self.group = self.low.group("low")
        return self.low

    def do(self, text, **options):
        return self.low.do(self.group, text.encode(), **options)

    def test_a_job_is_done_with_its_result(self):
        self.set_up()
        result = self.do("echo hello")
        self.assertEqual((result.end, result.data, result.attempts, result.error), ("succeeded", b"hello", 1, 0))
        self.assertEqual(result.cause, "none")
        self.assertEqual(self.do("echo").data, b"")
        self.assertEqual(self.do("nothing").data, b"")

    def test_a_wait_for_an_idle_client_lasts_while_threads_collect(self):
        self.set_up()
        ear, hammer = os.pipe()
        self.addCleanup(os.close, ear)
        self.addCleanup(os.close, hammer)
        self.assertTrue(self.low.await_idle(ear, 1))
        visits = []  # begin and end

        def visit():
            for _ in range(300):
                begin = time.monotonic()
                self.low.collect(print, 1, 0.001)
                visits.append((begin, time.monotonic()))

        thread = threading.Thread(target=visit)
        thread.start()
        while not visits:
            time.sleep(0)
        idle = 0
        while thread.is_alive():
            idle += self.low.await_idle(ear, 20) and thread.is_alive()
        thread.join()
        self.assertLessEqual(idle, sum((after[1] - before[0]) // 0.02 for before, after in zip(visits, visits[1:])))
        self.assertTrue(self.low.await_idle(ear, 1))
        os.write(hammer, b"x")
        self.assertFalse(self.low.await_idle(ear, 600_000))
        self.assertRaises(TypeError, self.low.await_idle, ear)

    def test_large_payloads_come_whole(self):
        self.set_up()
        data = os.urandom(3 << 20)
        self.assertEqual(self.low.do(self.group, memoryview(b"echo " + data)).data, data)

    def test_jobs_end_as_their_handler_says(self):
        self.set_up(Jobs=RETRY)
        rejected = self.do("reject because")
        self.assertEqual((rejected.end, rejected.code, rejected.data), ("rejected", 7, b"because"))
        self.assertEqual(self.do("retry once more").data, b"attempt 3 of 3")
        retried = self.do("retry no", max_retries=0)
        self.assertEqual(retried.data, b"attempt 1 of 1")
        self.do("twice")
        self.supervisor_.until(lambda: self.supervisor_.worker("low/0")["state"] != "busy")

    def test_a_job_tells_what_it_is(self):
        self.set_up()
        result = self.do("describe", id="one", key=b"k")
        self.assertEqual(result.data.decode(), repr(("one", b"k", 1, "low/0", True)))
        self.assertEqual(result.id, "one")

    def test_a_job_is_over_when_its_handler_has_returned(self):
        self.set_up()
        self.do("keep")
        self.assertEqual(self.do("kept").data, b"the handler has returned")

    def test_a_child_of_fork_is_refused(self):
        self.set_up()
        self.assertEqual(self.do("fork").data, b"this object belongs to the process that forked")

    def test_a_child_of_fork_does_not_go_on_as_the_worker(self):
        self.set_up()
        self.assertEqual(self.do("escape").data, b"1")
        self.assertEqual(self.do("echo on").data, b"on")

    def test_results_that_are_there_are_collected_together(self):
        low = self.set_up()
        results = []
        for number in range(3):
            low.submit(self.group, b"echo %d" % number, number)
        low.submit(self.group, b"spin", 3, timeout=e2e.LIMIT)
        low.flush()
        self.supervisor_.until(lambda: self.supervisor_.worker("low/0").get("published"))
        self.supervisor_.until(lambda: self.supervisor_.group("low")["succeeded"] == 3)
        self.assertEqual(low.collect(results.append, 2, e2e.LIMIT), 2)
        self.assertEqual(low.collect(results.append, 1000, e2e.LIMIT), 1)
        self.assertEqual([(result.cookie, result.data) for result in results], [(0, b"0"), (1, b"1"), (2, b"2")])
        self.assertEqual(low.collect(results.append, 1000, 0), 0)

    def test_what_a_collection_raises_ends_it(self):
        low = self.set_up()
        low.submit(self.group, b"echo on", 1)
        with self.assertRaises(ZeroDivisionError):
            low.collect(lambda result: result.cookie / 0, 1, e2e.LIMIT)
        self.assertEqual(self.do("echo on").data, b"on")

    def test_results_of_others_are_kept_while_one_is_awaited(self):
        low = self.set_up()
        for n in range(3):
            low.submit(self.group, b"echo %d" % n, n)
        self.assertEqual(self.do("echo mine").data, b"mine")
        self.assertEqual([low.next(0).data for _ in range(3)], [b"0", b"1", b"2"])

    def test_the_descriptor_tells_when_there_is_a_result(self):
        low = self.set_up()
        poll = select.poll()
        poll.register(low.fd(), select.POLLIN)
        while low.process():
            pass
        self.assertIsNone(low.timeout())
        low.submit(self.group, b"echo hello", 1)
        low.flush()
        result = None
        while result is None:
            self.assertTrue(poll.poll(e2e.LIMIT * 1000))
            while low.process():
                result = low.next(0) or result
        self.assertEqual(result.data, b"hello")

    def test_any_thread_may_wake_a_wait(self):
        low = self.set_up()
        low.wake()
        self.assertIsNone(low.next())
        waker = threading.Thread(target=low.wake)
        waker.start()
        self.assertIsNone(low.next())
        waker.join()

    def test_a_second_thread_is_refused_while_one_waits(self):
        low = self.set_up()
        waiter = threading.Thread(target=low.next)
        waiter.start()
        self.assertEqual(self.refusal(low), "another thread uses this object now")
        low.wake()
        waiter.join()
        low.flush()

    def test_a_signal_handler_ends_a_wait_for_a_job(self):
        low = self.set_up()
        self.interrupt(InterruptedError("now"), lambda: self.supervisor_.call("List", group="low")["jobs"])
        self.assertRaisesRegex(InterruptedError, "now", self.do, "spin", id="spinner")
        low.cancel("spinner")
        self.assertEqual(self.do("echo on").data, b"on")
        self.assertIsNone(low.next(0))

    def fill(self):
        """A group whose queue is full: what waits for room waits until "spinner" and "next" are over."""
        low = self.set_up(Jobs={"QueueMax": 1})
        low.create(self.group, b"spin", id="spinner")
        self.supervisor_.until(lambda: self.supervisor_.worker("low/0").get("published"))
        low.create(self.group, b"echo", id="next")
        return low

    def test_a_signal_handler_ends_a_wait_for_room(self):
        low = self.fill()
        with self.assertRaises(OSError) as caught:
            low.create(self.group, b"echo")
        self.assertEqual(caught.exception.errno, errno.EBUSY)
        self.interrupt(InterruptedError("now"), lambda: waits(low))
        with self.assertRaisesRegex(InterruptedError, "now"):
            low.create(self.group, b"spin", id="third", wait=float("inf"))  # ends only if cancelled
        low.abandon("spinner")
        low.abandon("third")
        self.assertEqual(self.do("echo on", wait=float("inf")).data, b"on")
        self.supervisor_.until(lambda: self.supervisor_.group("low")["cancelled"] == 2)
        self.assertIsNone(low.next(0))

    def test_a_signal_handler_ends_a_wait_for_a_reply(self):
        low = self.set_up()
        actor = low.actor()
        future = actor.ask(actor.self(), "never", b"")
        self.interrupt(InterruptedError("now"), lambda: waits(low))
        self.assertRaisesRegex(InterruptedError, "now", future.wait)
        self.assertFalse(future.done())
        self.assertRaises(TimeoutError, future.wait, 0.01)
        self.assertEqual(self.do("echo on").data, b"on")

    def test_a_signal_handler_cannot_call_what_waits_for_an_answer(self):
        low = self.fill()
        said = []

        def ready():
            try:
                low.flush()
            except RuntimeError as error:
                said.append(str(error))
            return said
        self.interrupt(InterruptedError("now"), ready)
        with self.assertRaises(InterruptedError):
            low.create(self.group, b"echo", wait=float("inf"))
        self.assertEqual(said, ["a call of this object waits"])

    def test_a_client_may_be_forgotten_while_a_call_of_its_actor_waits(self):
        self.set_up()
        from troupe import _troupe
        held = [_troupe.Client(self.supervisor_.socket_path)]
        actor = held[0].actor()
        me = actor.self()

        def forget():
            if held and waits(held[0]):
                held.clear()
                os.kill(self.supervisor_.supervisor_pid, signal.SIGCONT)
        self.interrupt(None, forget)
        with self.supervisor_.stopped():
            while held:  # until there is no room for the next
                actor.monitor(me)
        signal.setitimer(signal.ITIMER_REAL, 0)
        self.assertRaisesRegex(RuntimeError, "gone", actor.self)

    def test_signals_do_not_lengthen_a_query(self):
        self.set_up()
        self.do("echo")  # the worker is ready: no event follows
        from troupe import _troupe
        query = _troupe.Query(self.supervisor_.socket_path)
        query.call("io.troupe.Supervisor.Watch", "events", '{"target": "low"}', True)
        seen = []
        signal.signal(signal.SIGALRM, lambda *_: seen.append(True))
        signal.setitimer(signal.ITIMER_REAL, 0.02, 0.02)
        self.addCleanup(signal.setitimer, signal.ITIMER_REAL, 0)
        self.assertRaises(BlockingIOError, query.next, 0.1)
        self.assertTrue(seen)

    def descriptors(self):
        gc.collect()
        return len(os.listdir("/proc/self/fd"))

    def test_circles_through_handlers_are_collected(self):
        low = self.set_up()
        before = self.descriptors()
        for keep in "client", "future", "message", "then":
            client = type(low)(self.supervisor_.socket_path)
            actor = client.actor()
            held = [client if keep == "client" else None]
            actor.on_message(held.append)
            if keep == "future":
                held.append(actor.ask(actor.self(), "question", b""))
            if keep == "then":
                actor.ask(actor.self(), "question", b"").then(print)
            actor.tell(actor.self(), "fact", b"")
            while keep == "message" and len(held) < 2:
                actor.turn(e2e.LIMIT)
            del client, actor, held
        self.assertEqual(self.descriptors(), before)

    def test_a_handler_may_give_up_its_client(self):
        low = self.set_up()
        owners = [type(low)(self.supervisor_.socket_path)]
        actor = owners[0].actor()
        actor.on_message(lambda message: owners.clear())
        actor.tell(actor.self(), "fact", b"")
        while owners:
            actor.turn(e2e.LIMIT)
        self.assertRaisesRegex(RuntimeError, "the owner of this actor is gone", actor.turn, 0)

    def test_a_forgotten_ask_ends_when_the_thread_inside_has_left(self):
        low = self.set_up()
        other = self.client(self.supervisor_)
        asks = []
        other.actor().on_message(lambda message: asks.append(message.ask))
        future = low.actor().ask(other.actor().self(), "question", b"")
        while not asks:
            other.actor().turn(e2e.LIMIT)
        waiter = threading.Thread(target=low.next)
        waiter.start()
        self.refusal(low)
        self.assertRaisesRegex(RuntimeError, "another thread uses this object now", future.drop)
        del future
        low.wake()
        waiter.join()
        self.do("echo")
        other.actor().reply(asks[0], "answer", b"")
        self.supervisor_.until(lambda: self.supervisor_.call("io.troupe.Actors.ListDeadLetters", filter={"reason": "late_reply"})["letters"])

    def test_a_handler_that_returns_nonsense_is_told(self):
        actor = self.set_up().actor()
        for nonsense in "text", 1, 1 << 70, True:
            actor.on_message(lambda message: nonsense)
            actor.tell(actor.self(), "fact", b"")
            with self.assertRaises((TypeError, OverflowError)):
                while True:
                    actor.turn(e2e.LIMIT)

    def test_references_are_checked(self):
        actor = self.set_up().actor()
        for call in (lambda n: actor.timer_cancel(n), lambda n: actor.subscribe(n), lambda n: actor.reply(n, "a", b""),
                     lambda n: actor.pause(n), lambda n: actor.tell(n, "a", b"")):
            for number in -1, 1 << 64:
                self.assertRaises(OverflowError, call, number)
            self.assertRaises(TypeError, call, "name")

    def test_the_death_of_a_command_is_reported(self):
        self.set_up()
        self.do("crash")
        [death] = self.supervisor_.deaths("low")
        self.assertEqual((death["signal"], death["command"]), ("SIGSEGV", "convert"))

    def test_errors_name_their_number(self):
        low = self.set_up()
        self.assertRaises(FileNotFoundError, low.group, "missing")
        with self.assertRaises(FileNotFoundError):
            type(low)(self.supervisor_.socket_path + ".missing")
        with self.assertRaises(OSError) as caught:
            low.create(self.group, b"", id="not valid!")
        self.assertEqual(caught.exception.errno, errno.EINVAL)
        self.assertRaises(ValueError, low.next, -1)
        self.assertRaises(OverflowError, low.submit, self.group, b"", 1 << 63)
        self.assertRaises(TypeError, low.submit, self.group, "text", 1)
        self.low.create(self.group, b"echo", id="twin", delay=3600)
        self.assertRaises(FileExistsError, self.do, "echo", id="twin")

    def end_of(self, id):
        self.low.wait(id, 1)
        result = self.low.next(e2e.LIMIT)
        return result.end, result.cause

    def test_a_result_says_why_its_job_was_cancelled_or_is_dead(self):
        low, s = self.set_up(Jobs={"MaxRetries": 0}), self.supervisor_
        low.create(self.group, b"spin", id="lost")
        s.until(lambda: s.job("lost").get("started_at"))
        s.crash()
        os.kill(s.worker("low/0")["pid"], signal.SIGKILL)
        self.assertEqual(self.end_of("lost"), ("dead", "payload_lost"))
        self.assertEqual(self.do("raise oh dear").cause, "attempts")
        for id, verb in ("wanted", "cancel"), ("withdrawn", "withdraw"):
            low.create(self.group, b"echo", id=id, delay=3600)
            subprocess.run([e2e.helper("client"), s.socket_path, verb, id], check=True, stdout=subprocess.DEVNULL)
        self.assertEqual(self.end_of("wanted"), ("cancelled", "requested"))
        self.assertEqual(self.end_of("withdrawn"), ("cancelled", "withdrawn"))
        s.call("Stop", target="low", wait=True)
        low.submit(self.group, b"echo", 2)
        low.flush()
        s.until(lambda: s.group("low")["queued"] == 1)
        os.unlink(os.path.join(s.config, "low.group"))
        s.call("Reload", allow_empty=True)
        result = low.next(e2e.LIMIT)
        self.assertEqual((result.end, result.cause), ("cancelled", "group"))

    def test_a_closed_client_says_so(self):
        low = self.set_up()
        low.close()
        low.close()
        self.assertRaisesRegex(RuntimeError, "closed", low.next, 0)

    def test_times_are_seconds(self):
        low = self.set_up()
        self.assertEqual(self.do("spin", deadline=0.01).cause, "deadline")
        before = time.monotonic()
        self.assertIsNone(low.next(0.05))
        self.assertGreaterEqual(time.monotonic() - before, 0.04)

    def test_a_worker_needs_trouped(self):
        from troupe import _troupe
        with self.assertRaises(OSError) as caught:
            _troupe.Worker()
        self.assertEqual(caught.exception.errno, errno.ENOTCONN)
