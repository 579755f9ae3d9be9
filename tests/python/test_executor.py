# SPDX-License-Identifier: MIT
"""troupe.Executor: what concurrent.futures documents, and what becomes of it when processes are killed.

Each test runs a program of its own, after which no process and no file of it may be left.
"""
import os
import signal
import socket
import subprocess
import sys
import tempfile
import textwrap
import unittest
import uuid

import proctree
import troupe_python

PRELUDE = f'''
import asyncio, atexit, collections, concurrent.futures, gc, logging, multiprocessing, os, pickle, queue, random, signal, sys
import threading, time, weakref
sys.path.insert(0, {os.path.dirname(os.path.abspath(__file__))!r})
from concurrent.futures.process import BrokenProcessPool
from proctree import children, is_alive, read, until, workers_of
from troupe import Executor, WorkerDied

def wait_for(path):
    until(lambda: os.path.exists(path), path)

def widen_windows():
    """As after a burst, whatever else the machine does."""
    from troupe.executor import traffic
    traffic.Traffic.adapt = lambda self, taken: setattr(self, "window", traffic.WINDOW_MAX)

'''


@troupe_python.needed
class TestCase(unittest.TestCase):
    def setUp(self):
        directory = tempfile.TemporaryDirectory(prefix="troupe-python-")
        self.addCleanup(directory.cleanup)
        self.directory = directory.name
        self.temporary = os.path.join(self.directory, "tmp")
        os.mkdir(self.temporary)
        self.mark = "TEST_MARK=" + uuid.uuid4().hex

    def start(self, source, **options):
        """A program that consists of the prelude, what is before `main:` at its top, and main."""
        path = os.path.join(self.directory, "program.py")
        top, _, main = textwrap.dedent(source).partition("main:\n")
        with open(path, "w", encoding="utf-8") as file:
            file.write(PRELUDE + top + 'if __name__ == "__main__":\n' + main)
        name, _, value = self.mark.partition("=")
        environment = {**os.environ, **troupe_python.ENVIRONMENT, "TMPDIR": self.temporary, name: value,
                       "PYTHONDONTWRITEBYTECODE": "1", "PATH": self.path(),
                       "PYTHONWARNINGS": "default::ResourceWarning", **options.pop("env", {})}
        options = {"stdout": subprocess.PIPE, **options}
        process = subprocess.Popen([sys.executable, path], env=environment, cwd=self.directory, text=True,
                                   stderr=subprocess.PIPE, **options)
        self.addCleanup(self.end, process)
        return process

    @staticmethod
    def path():
        return troupe_python.e2e.BUILD + ":" + os.environ.get("PATH", os.defpath)

    @staticmethod
    def end(process):
        process.kill()
        process.communicate()

    def nothing_is_left(self):
        proctree.until(lambda: not proctree.marked(self.mark), "the end of all processes")
        self.assertEqual(os.listdir(self.temporary), [])

    def program(self, source, **options):
        """Runs it to its end, and returns what it printed."""
        process = self.start(source, **options)
        output, errors = process.communicate(timeout=200)
        self.assertEqual((process.returncode, errors), (0, ""), output)
        self.nothing_is_left()
        return output


class Documented(TestCase):
    def test_exceptions_come_back_as_themselves_with_the_remote_traceback(self):
        self.assertEqual(self.program("""
            class Refused(Exception):
                pass

            def refuse(text):
                raise Refused(text)

            main:
                with Executor(1) as executor:
                    error = executor.submit(refuse, "no").exception()
                    print(type(error) is Refused, error, "in refuse" in str(error.__cause__))
                    print(type(executor.submit(sys.exit, 3).exception()).__name__)
                    print(executor.submit(abs, -1).result())
            """), "True no True\nSystemExit\n1\n")

    def test_initializer_runs_in_each_worker_and_may_inherit_locks_and_queues(self):
        self.assertEqual(self.program("""
            def remember(*given):
                global memory
                memory = given

            def recall(number):
                with memory[0]:
                    memory[1].put(number)
                return memory[2]

            main:
                context = multiprocessing.get_context("spawn")
                numbers = context.Queue()
                with Executor(2, mp_context=context, initializer=remember, initargs=(context.Lock(), numbers, "word")) as executor:
                    print(set(executor.map(recall, range(20))))
                    print(sorted(numbers.get() for _ in range(20)) == list(range(20)))
            """), "{'word'}\nTrue\n")

    def test_with_a_template_the_initializer_runs_once_for_all_workers_that_it_forks(self):
        """Also where the program's output is a socket, with which a template could not be forked."""
        ours, theirs = socket.socketpair()
        with ours, theirs, ours.makefile() as output:
            process = self.start("""
                def load(numbers, path):
                    global loaded
                    loaded = os.getpid(), numbers
                    with open(path, "a") as file:
                        print(os.getpid(), file=file)

                def work(number):
                    loaded[1].put(number)
                    print("a task prints", flush=True)
                    return loaded[0], os.getpid(), random.random()

                main:
                    for most in 1, 3, None:
                        numbers, path = multiprocessing.get_context("spawn").Queue(), f"initialized-{most}"
                        with Executor(1, initializer=load, initargs=(numbers, path), max_tasks_per_child=most,
                                      template=True) as executor:
                            def forked():
                                result = executor.submit(work, 0).result()
                                if result[0] == result[1] and most is None:
                                    os.kill(result[1], signal.SIGKILL)
                                return result[0] != result[1]
                            until(forked, "a worker that the template has forked")
                            before = read(path)
                            results = [executor.submit(work, number).result() for number in range(30)]
                            if most is None:
                                os.kill(results[0][1], signal.SIGKILL)
                                results.append(executor.submit(work, 30).result())
                            assert len({loader for loader, _, _ in results}) == 1
                            assert len({pid for _, pid, _ in results}) >= (30 // most if most else 2)
                            assert len({drawn for _, _, drawn in results}) == len(results)
                        while not numbers.empty():
                            numbers.get()
                        print(most, read(path) == before)
                """, stdout=theirs)
            theirs.close()
            said = output.read().splitlines()
            self.assertEqual((process.wait(), process.stderr.read()), (0, ""))
        self.assertEqual([line for line in said if "prints" not in line], ["1 True", "3 True", "None True"])
        self.assertIn("a task prints", said)
        self.nothing_is_left()

    def test_failing_initializer_breaks_the_executor(self):
        output = self.program("""
            def fail():
                logging.disable()
                raise ValueError("not today")

            main:
                executor = Executor(2, initializer=fail)
                error = executor.submit(abs, 1).exception()
                print(type(error).__name__, error, type(error.__cause__).__name__)
                try:
                    executor.submit(abs, 1)
                except BrokenProcessPool as error:
                    print(error)
            """)
        self.assertEqual(output, "BrokenProcessPool the executor cannot continue: not today ValueError\n"
                         "the executor cannot continue: not today\n")

    def test_an_initializer_whose_exception_has_no_words_is_named(self):
        self.assertEqual(self.program("""
            def leave():
                logging.disable()
                sys.exit(4)

            def fail():
                logging.disable()
                raise AssertionError

            main:
                for initializer in leave, fail:
                    with Executor(1, initializer=initializer) as executor:
                        print(executor.submit(abs, 1).exception())
            """), "the executor cannot continue: SystemExit(4)\nthe executor cannot continue: AssertionError()\n")

    def test_a_worker_that_ends_before_it_is_ready_breaks_the_executor(self):
        self.assertEqual(self.program("""
            def kill():
                os.kill(os.getpid(), signal.SIGKILL)

            def leave():
                os._exit(3)

            main:
                for initializer in kill, leave:
                    with Executor(2, initializer=initializer) as executor:
                        print(executor.submit(abs, 1).exception())
                executor = Executor(1, initializer=kill)
                futures = [executor.submit(abs, 1) for _ in range(9)]
                executor.shutdown(cancel_futures=True)
                print({type(future.exception()).__name__ for future in futures if not future.cancelled()})
            """), "the executor cannot continue: a worker process ended before it was ready: killed by SIGKILL\n"
            "the executor cannot continue: a worker process ended before it was ready: exited with status 3\n"
            "{'BrokenProcessPool'}\n")

    def test_a_main_module_that_ends_its_process_breaks_the_executor(self):
        self.assertEqual(self.program("""
            if __name__ == "__mp_main__":
                os._exit(4)

            main:
                with Executor(1) as executor:
                    print(executor.submit(abs, 1).exception())
            """), "the executor cannot continue: a worker process ended before it was ready: exited with status 4\n")

    def test_an_initializer_may_end_the_process_now_and_then(self):
        self.program("""
            def every_other(path):
                if os.path.exists(path):
                    os.unlink(path)
                    os._exit(1)
                open(path, "w").close()

            main:
                with Executor(1, initializer=every_other, initargs=("turn",), max_tasks_per_child=1) as executor:
                    assert list(executor.map(abs, range(5))) == list(range(5))
            """)

    def test_arguments_that_cannot_be_are_refused(self):
        self.program("""
            def refused(error, **arguments):
                try:
                    Executor(**arguments)
                except error as refusal:
                    return str(refusal) != ""
                raise AssertionError(arguments)

            main:
                refused(ValueError, max_workers=0)
                refused(ValueError, mp_context=multiprocessing.get_context("fork"))
                refused(ValueError, max_tasks_per_child=0)
                refused(TypeError, max_tasks_per_child=1.5)
                refused(TypeError, initializer=3)
                refused(ValueError, retries=-1)
                refused(ValueError, timeout=0)
                refused(ValueError, socket="/run/x")
                refused(ValueError, group="x", max_tasks_per_child=1)
                refused(ValueError, group="x", template=True)
                Executor(mp_context=multiprocessing.get_context("forkserver"))
                os.environ["PATH"] = "/nonexistent"
                sys.modules["troupe.executor.private"].SEARCHED = "/nonexistent"
                refused(FileNotFoundError)
            """)

    def test_what_no_worker_has_can_be_cancelled_after_a_burst(self):
        self.assertEqual(self.program("""
            main:
                widen_windows()
                with Executor(2) as executor:
                    executor.submit(abs, 1).result()
                    futures = [executor.submit(wait_for, "sign") for _ in range(300)]
                    until(lambda: sum(future.running() for future in futures) > 200, "a wide window")
                    cancelled = [future for future in futures if future.cancel()]
                    heard = []
                    for future in cancelled:
                        future.add_done_callback(heard.append)
                    print(290 <= len(cancelled) < 300, all(future.cancelled() for future in cancelled), heard == cancelled)
                    open("sign", "w").close()
                    concurrent.futures.wait(futures)
                    print({future.result() for future in futures if not future.cancelled()})
                    print(executor.submit(abs, -1).result())
            """), "True True True\n{None}\n1\n")

    def test_a_signal_handler_may_cancel_while_its_thread_waits(self):
        self.assertEqual(self.program("""
            main:
                with Executor(1) as executor:
                    futures = [executor.submit(time.sleep, 0.5) for _ in range(3)]
                    tried = []

                    def handler(*_):
                        if len(tried) < 200:
                            tried.append(futures[1].cancel())
                            signal.setitimer(signal.ITIMER_REAL, 0.0005)
                    signal.signal(signal.SIGALRM, handler)
                    signal.setitimer(signal.ITIMER_REAL, 0.0005)
                    print(futures[0].result(), len(tried) > 1)
                    futures[2].result()
            """), "None True\n")

    def test_shutdown_cancels_what_no_worker_has_after_a_burst(self):
        self.assertEqual(self.program("""
            main:
                widen_windows()
                executor = Executor(2)
                executor.submit(abs, 1).result()
                futures = [executor.submit(wait_for, "sign") for _ in range(300)]
                until(lambda: sum(future.running() for future in futures) > 200, "a wide window")
                executor.shutdown(wait=False, cancel_futures=True)
                print(sum(future.cancelled() for future in futures) >= 290)
                open("sign", "w").close()
                executor.shutdown()
                print(all(future.done() for future in futures))
            """), "True\nTrue\n")

    def test_tasks_may_have_time_outs(self):
        self.assertEqual(self.program("""
            main:
                from troupe import TaskTimeout
                with Executor(2, timeout=0.2) as executor:
                    error = executor.submit(time.sleep, 1000).exception()
                    print(isinstance(error, TaskTimeout), isinstance(error, TimeoutError), isinstance(error, WorkerDied))
                    print(executor.submit_within(None, time.sleep, 0.5).exception())
                with Executor(1) as executor:
                    print(type(executor.submit_within(0.2, time.sleep, 1000).exception()).__name__)
                    print(executor.submit(time.sleep, 0.5).exception())
            """), "True True True\nNone\nTaskTimeout\nNone\n")

    def test_workers_can_be_terminated_or_killed(self):
        self.assertEqual(self.program("""
            def stay(path):
                signal.signal(signal.SIGTERM, lambda *_: (open(path, "w").close(), os._exit(0)))
                open(path + ".begun", "w").close()
                time.sleep(1000)

            main:
                for way in "terminate_workers", "kill_workers":
                    executor = Executor(1)
                    futures = [executor.submit(stay, way) for _ in range(20)]
                    until(lambda: os.path.exists(way + ".begun"), "a start")
                    getattr(executor, way)()
                    first, *others = [future.cancelled() or type(future.exception()).__name__ for future in futures]
                    print(first, set(others))
                    executor.shutdown()
                    print(os.path.exists(way))
                    try:
                        executor.submit(abs, 1)
                    except RuntimeError as error:
                        print("submit() is refused")
            """), "BrokenProcessPool {True}\nTrue\nsubmit() is refused\n"
                  "BrokenProcessPool {True}\nFalse\nsubmit() is refused\n")

    def test_sys_exit_in_callbacks_and_pickles_ends_nothing(self):
        self.assertEqual(self.program("""
            class Leaving:
                def __reduce__(self):
                    sys.exit("pickled")

            main:
                logging.disable()
                with Executor(1) as executor:
                    heard = []
                    task = executor.submit(time.sleep, 0.2)
                    task.add_done_callback(lambda _: sys.exit("called"))
                    task.add_done_callback(heard.append)
                    task.result()
                    until(lambda: heard == [task], "the second callback")
                    print(repr(executor.submit(id, Leaving()).exception()))
                    print(executor.submit(abs, -1).result())
            """), "SystemExit('pickled')\n1\n")

    def test_exceptions_that_cannot_be_unpickled_keep_their_text(self):
        self.assertEqual(self.program("""
            class Picky(Exception):
                def __init__(self, code, text):
                    super().__init__(f"{text} ({code})")

            def picky():
                raise Picky(7, "told")

            main:
                with Executor(1) as executor:
                    error = executor.submit(picky).exception()
                    print(type(error).__name__, "Picky: told (7)" in str(error), "in picky" in str(error))
            """), "RuntimeError True True\n")

    def test_workers_know_their_parent(self):
        self.assertEqual(self.program("""
            def parent():
                found = multiprocessing.parent_process()
                return found.name, found.pid, found.is_alive()

            main:
                with Executor(1) as executor:
                    print(executor.submit(parent).result() == ("MainProcess", os.getpid(), True))
            """), "True\n")

    def test_a_death_tells_where_python_was(self):
        self.assertEqual(self.program("""
            def crash():
                signal.raise_signal(signal.SIGSEGV)

            main:
                with Executor(1) as executor:
                    [death] = executor.submit(crash).exception().deaths()
                    print(death["signal"], "Segmentation fault" in death["stderr"], "in crash" in death["stderr"])
            """), "SIGSEGV True True\n")

    @unittest.skipUnless(os.path.exists(os.path.join(troupe_python.e2e.BUILD, "troupe-trace")), "needs libdw")
    def test_an_error_says_where_the_process_crashed(self):
        self.assertEqual(self.program("""
            def crash():
                os.abort()

            main:
                with Executor(1) as executor:
                    until(lambda: (executor.submit(crash).exception().where() or "").startswith("crash, "), "a place")
                    print("known")
            """), "known\n")

    def test_a_supervisor_that_does_not_start_is_told(self):
        silent = os.path.join(self.directory, "bin")
        os.mkdir(silent)
        with open(os.path.join(silent, "trouped"), "w", encoding="utf-8") as file:
            os.fchmod(file.fileno(), 0o755)
            file.write("#!/bin/sh\nexit 3\n")
        self.assertEqual(self.program("""
            main:
                with Executor(1) as executor:
                    print(executor.submit(abs, 1).exception())
            """, env={"PATH": silent + ":" + self.path()}),
            "the executor cannot continue: the supervisor has not started: trouped has ended: exit status 3\n")
        self.assertRegex(self.program("""
            main:
                from troupe.executor import inherited
                inherited.directory = "/nonexistent"
                with Executor(1) as executor:
                    print(executor.submit(abs, 1).exception())
            """), "has not started: .*No such file or directory: '/nonexistent/")

    def test_asyncio_awaits_tasks(self):
        self.assertEqual(self.program("""
            async def ask(executor):
                loop = asyncio.get_running_loop()
                return await asyncio.gather(*(loop.run_in_executor(executor, abs, -i) for i in range(50)))

            main:
                with Executor(2) as executor:
                    print(asyncio.run(ask(executor)) == list(range(50)))
            """), "True\n")

    def test_what_tasks_print_goes_where_the_program_prints(self):
        self.assertEqual(self.program("""
            main:
                with Executor(1) as executor:
                    executor.submit(os.system, "echo a child").result()
                    executor.submit(print, "a task", flush=True).result()
            """), "a child\na task\n")

    def test_huge_arguments_and_results(self):
        self.assertEqual(self.program("""
            def double(data):
                return data + data

            main:
                with Executor(1) as executor:
                    data = random.randbytes(1000) * 120_000
                    print(executor.submit(double, data).result() == data + data)
            """), "True\n")

    def test_functions_typed_in_need_cloudpickle(self):
        """-c stands for the prompt."""
        source = ("from troupe.executor import Executor\ndef f(): return g()\ndef g(): return 'done'\n"
                  "with Executor(1) as e: print(e.submit(f).exception() or e.submit(lambda: f()).result())")
        environment = {**os.environ, **troupe_python.ENVIRONMENT, "PATH": self.path(), "TMPDIR": self.temporary}
        ended = subprocess.run([sys.executable, "-c", source], env=environment, capture_output=True, text=True, check=True)
        try:
            import cloudpickle  # noqa: F401
        except ImportError:
            self.assertIn("cloudpickle", ended.stdout)
        else:
            self.assertEqual(ended.stdout, "done\n")


class Threads(TestCase):
    def test_many_threads_share_an_executor(self):
        self.program("""
            def work(executor, number, right):
                for i in range(100):
                    if i % 3:
                        right.append(executor.submit(abs, -i).result() == i)
                    else:
                        right.append(list(executor.map(abs, range(-i, 0)))[0:1] == [i][:i])

            main:
                with Executor(2) as executor:
                    right = []
                    threads = [threading.Thread(target=work, args=(executor, i, right)) for i in range(8)]
                    for thread in threads: thread.start()
                    for thread in threads: thread.join()
                    assert right == [True] * 800
            """)

    def test_a_thread_that_waits_does_not_hold_up_one_that_submits(self):
        self.program("""
            main:
                with Executor(2) as executor:
                    waiting = threading.Thread(target=executor.submit(wait_for, "sign").result)
                    waiting.start()
                    for i in range(50):
                        assert executor.submit(abs, i).result() == i
                    open("sign", "w").close()
                    waiting.join()
            """)

    def test_a_wait_that_runs_out_of_time_ends_though_other_tasks_end(self):
        self.program("""
            main:
                sys.modules["troupe.executor.dispatcher"].PATIENCE = 1  # others always end within it
                executor = Executor(2)
                executor.submit(abs, 1).result()
                task = executor.submit(wait_for, "sign")
                others = [executor.submit(time.sleep, 0.005) for _ in range(5000)]
                try:
                    task.result(0.5)
                except concurrent.futures.TimeoutError:
                    ended = others[-1].done()
                assert not ended
                open("sign", "w").close()
                executor.shutdown(cancel_futures=True)
            """)

    def test_callbacks_do_not_run_in_a_thread_that_waits(self):
        """It may hold locks that they want. Whoever adds one to a future that is done calls it, as documented."""
        self.assertEqual(self.program("""
            main:
                done, waiting, wrong = threading.Semaphore(0), False, 0

                def call(future):
                    global wrong
                    wrong += waiting and threading.current_thread() is threading.main_thread()
                    done.release()

                with Executor(1) as executor:
                    for _ in range(200):
                        future = executor.submit(abs, 1)
                        future.add_done_callback(call)
                        waiting = True
                        future.result()
                        waiting = False
                        done.acquire()
                print(wrong)
            """), "0\n")

    def test_callbacks_may_submit(self):
        """Also that of a task which cannot be sent."""
        self.assertEqual(self.program("""
            main:
                submitted = queue.SimpleQueue()
                with Executor(1, retries=2**32 - 1) as executor:
                    for number in range(20):
                        future = executor.submit(abs, number)
                        future.add_done_callback(lambda _: submitted.put(executor.submit(abs, number)))
                        error = future.exception(60)
                        submitted.get(timeout=60).exception(60)
                print(type(error).__name__)
            """), "OSError\n")

    def test_a_result_that_cannot_be_unpickled_ends_its_task_alone(self):
        self.program("""
            def leave(error):
                raise error

            class Bad:
                def __init__(self, error):
                    self.error = error

                def __reduce__(self):
                    return leave, (self.error,)

            main:
                with Executor(1) as executor:
                    for error in GeneratorExit, KeyboardInterrupt, SystemExit, ValueError:
                        assert type(executor.submit(Bad, error).exception(60)) is error
                        assert executor.submit(abs, -1).result() == 1
            """)

    def test_ctrl_c_is_told_from_a_result_that_raises_the_same(self):
        self.program("""
            from troupe import _troupe
            from troupe.executor import ends, tasks

            class Raising:
                def __reduce__(self):
                    return raise_error, ()

            class Interrupted:
                def __reduce__(self):
                    return interrupt, ()

            def raise_error():
                raise KeyboardInterrupt

            def interrupt():
                if interrupted.acquire(blocking=False):
                    os.kill(os.getpid(), signal.SIGINT)
                return 7

            def end(value):
                return _troupe.Result((1, 0, "succeeded", 0, 1, "id", "", tasks.VALUE + pickle.dumps(value), False))

            main:
                signal.signal(signal.SIGINT, signal.default_int_handler)
                interrupted = threading.Semaphore(1)
                value, error = ends.outcome(end(Raising()), None)
                assert type(error) is KeyboardInterrupt
                try:
                    ends.outcome(end(Interrupted()), None)
                except KeyboardInterrupt:
                    assert ends.outcome(end(Interrupted()), None) == (7, None)
                else:
                    raise AssertionError
            """)

    def test_the_background_thread_leaves_short_tasks_to_the_thread_that_waits(self):
        """However long one takes here."""
        self.program("""
            main:
                module = sys.modules["troupe.executor.dispatcher"]
                module.PATIENCE, turn, turns = 1, module.Dispatcher.turn, collections.Counter()

                def count(self, use):
                    turns[threading.current_thread().name] += 1
                    turn(self, use)

                module.Dispatcher.turn = count
                with Executor(1) as executor:
                    for number in range(1000):
                        assert executor.submit(abs, number).result() == number
                    assert turns["troupe-executor"] < 100, turns
            """)

    def test_the_background_thread_does_not_run_while_threads_come_for_results(self):
        """It runs after a pause of LOOK_MS, and a few times until it is left alone again."""
        self.program("""
            main:
                module, rounds, times = sys.modules["troupe.executor.dispatcher"], 0, []
                heard = module.Bell.heard

                def count(self):
                    global rounds
                    rounds += 1
                    heard(self)

                module.Bell.heard = count
                with Executor(1) as executor:
                    executor.submit(abs, 1).result()
                    rounds = 0
                    for number in range(5000):
                        times.append(time.monotonic())
                        executor.submit(abs, number).result()
                    pauses = sum(later - before >= module.LOOK_MS / 1000 for before, later in zip(times, times[2:]))
                    assert rounds <= 10 + 4 * pauses, (rounds, pauses)
            """)

    def test_the_background_thread_sleeps_while_there_is_nothing_to_do(self):
        self.program("""
            def switches(tid):
                status = read(f"/proc/self/task/{tid}/status")
                return int(status.partition("\\nvoluntary_ctxt_switches:")[2].split()[0])

            def sleeps(tid):
                before = switches(tid)
                time.sleep(0.1)
                return switches(tid) == before

            main:
                with Executor(1) as executor:
                    for number in range(100):
                        executor.submit(abs, number).result()
                    until(lambda: sleeps(executor._dispatcher.thread.native_id), "sleep")
            """)

    def test_ends_that_no_thread_waits_for_are_noticed(self):
        """Whatever came before: threads that waited, or a time in which nothing happened."""
        self.program("""
            main:
                with Executor(1) as executor:
                    for number in range(300):
                        for _ in range(number % 4):
                            executor.submit(abs, 1).result()
                        if number % 50 == 0:
                            time.sleep(0.05)
                        done = threading.Event()
                        executor.submit(abs, 1).add_done_callback(lambda _: done.set())
                        assert done.wait(60)
            """)

    def test_ctrl_c_ends_a_wait_and_loses_no_task(self):
        """No thread takes the signal but where the program awaits it."""
        self.program("""
            def interrupt(pid, number):
                time.sleep(0.05)
                os.kill(pid, signal.SIGINT)
                time.sleep(0.05)
                return number

            main:
                signal.signal(signal.SIGINT, signal.default_int_handler)
                signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
                with Executor(1) as executor:
                    for number in range(20):
                        future = executor.submit(interrupt, os.getpid(), number)
                        try:
                            signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})
                            future.result()
                        except KeyboardInterrupt:
                            signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
                            assert future.result() == number
                        else:
                            raise AssertionError
            """)

    def test_ctrl_c_between_a_wait_and_its_ends_rings_for_the_background_thread(self):
        """Another thread may wait for them."""
        self.program("""
            from troupe.executor.dispatcher import Dispatcher
            from troupe.executor.future import Future

            def interrupt():
                raise KeyboardInterrupt

            main:
                dispatcher, rung = Dispatcher(None, 1, 0), []
                dispatcher.settle, dispatcher.ring = interrupt, lambda: rung.append(True)
                for call, argument in (dispatcher.attend, (Future(dispatcher), None)), (dispatcher.turn, (None,)):
                    try:
                        call(*argument)
                    except KeyboardInterrupt:
                        assert rung.pop()
                    else:
                        raise AssertionError
            """)

    def test_a_task_that_was_cancelled_can_be_taken_up_twice(self):
        """Ctrl-C may come before it is forgotten."""
        self.program("""
            from troupe.executor.future import Future

            main:
                future = Future(None)
                future.cancel()
                assert not future.take() and not future.take()
                future = Future(None)
                assert future.take() and future.take()
                future.set_result(1)
                assert not future.take()
            """)

    def test_all_tasks_end_when_ends_arrive_while_the_executor_breaks(self):
        """A task that was cancelled is reported, too. One that a worker was tired of is not sent again."""
        self.program("""
            from troupe import _troupe
            from troupe.executor.dispatcher import Dispatcher
            from troupe.executor.ends import TIRED_REASON
            from troupe.executor.future import Future

            def end(cookie, state, reason):
                return _troupe.Result((cookie, 0, state, 0, 1, "id", reason, pickle.dumps(7), False))

            class Nowhere:
                socket = None

            class EndsMeanwhile(Future):
                def set_exception(self, error):
                    if not self.is_over() and dispatcher.broken:
                        self.set_result("before")
                    super().set_exception(error)

            main:
                dispatcher = Dispatcher(Nowhere, 1, 0)
                traffic, futures = dispatcher.traffic, [Future(dispatcher) for _ in range(3)]
                futures.insert(0, EndsMeanwhile(dispatcher))
                for cookie, future in enumerate(futures, 1):
                    traffic.add(future, b"")
                    if cookie < 4:
                        future.take()
                        traffic.running[cookie] = traffic.waiting.pop()
                late, tired = traffic.running[2], end(3, "dead", TIRED_REASON)
                futures[3].cancel()
                waiter = threading.Thread(target=concurrent.futures.wait, args=(futures,), daemon=True)
                waiter.start()
                until(lambda: all(future._waiters for future in futures), "the waiter")
                dispatcher.broken = OSError("gone")  # as by another thread, which goes on below
                dispatcher.end(tired)
                assert not [task for task in traffic.waiting if task[1] is futures[2]]
                assert isinstance(futures[2].exception(0), BrokenProcessPool)
                dispatcher.fail(OSError("gone"))
                traffic.running[2] = late
                dispatcher.end(end(2, "succeeded", ""))
                assert futures[0].result(0) == "before"
                assert isinstance(futures[1].exception(0), BrokenProcessPool)
                waiter.join(60)
                assert not waiter.is_alive()
                assert not traffic.running and not traffic.waiting
            """)

    def test_a_callback_that_comes_when_the_background_thread_ends_is_called(self):
        self.program("""
            main:
                executor, called = Executor(1), []
                executor.submit(abs, 1).result()
                dispatcher = executor._dispatcher
                place, close = dispatcher.place, dispatcher.place.close

                def late(kill):
                    other = threading.Thread(target=dispatcher.call_back, args=(lambda: called.append(True),))
                    other.start()
                    other.join()
                    close(kill)

                place.close = late
                executor.shutdown()
                assert called == [True] and not dispatcher.callbacks
            """)

    def test_a_thread_that_ceases_to_wait_while_the_background_thread_looks_leaves_it_awake(self):
        self.program("""
            from troupe.executor.dispatcher import Dispatcher

            class Ceasing(Dispatcher):
                now = ceased = False

                @property
                def looking(self):
                    if not self.ceasing():
                        return self.__dict__["looking"]
                    with self.using:  # as wait_for_ends(), when nothing came
                        self.looking = False
                        self.traffic.arm(self.client)
                    self.ceased = True
                    return True

                @looking.setter
                def looking(self, value):
                    self.__dict__["looking"] = value

                def ceasing(self):
                    return self.now and self.__dict__["looking"] and threading.current_thread() is self.thread

                def call_all(self):
                    super().call_all()
                    if self.now and not self.ceased:
                        self.looking = True

            main:
                sys.modules["troupe.executor.executor"].Dispatcher = Ceasing
                with Executor(1) as executor:
                    executor.submit(abs, 1).result()
                    task, dispatcher = executor.submit(wait_for, "sign"), executor._dispatcher
                    dispatcher.now = True
                    dispatcher.ring()
                    until(lambda: dispatcher.ceased, "the moment")
                    open("sign", "w").close()
                    assert concurrent.futures.wait([task], 60).done
            """)

    def test_a_task_may_come_while_the_client_closes(self):
        self.program("""
            from troupe.executor.dispatcher import Dispatcher

            class Closed:
                def wake(self):
                    raise RuntimeError("this object is closed")

            main:
                dispatcher = Dispatcher(None, 1, 0)
                dispatcher.client = Closed()
                dispatcher.pass_on()
            """)


class Killed(TestCase):
    def test_only_the_tasks_that_were_hit_fail(self):
        self.program("""
            def work(number):
                if number % 10 == 3:
                    os.kill(os.getpid(), signal.SIGKILL)
                return number

            main:
                with Executor(2) as executor:
                    futures = [executor.submit(work, number) for number in range(200)]
                    for number, future in enumerate(futures):
                        error = future.exception()
                        if number % 10 == 3:
                            assert isinstance(error, WorkerDied) and isinstance(error, BrokenProcessPool), error
                            assert (error.signal, error.reason, error.attempts) == ("SIGKILL", "killed by SIGKILL", 1)
                        else:
                            assert future.result() == number
            """)

    def test_kill_9_from_outside_every_so_often(self):
        self.program("""
            main:
                with Executor(2) as executor:
                    futures = [executor.submit(time.sleep, 0.01) for _ in range(300)]
                    killed = 0
                    for i, future in enumerate(futures):
                        future.exception()
                        if i % 30 == 15:
                            os.kill(until(lambda: workers_of(executor), "a worker")[0], signal.SIGKILL)
                            killed += 1
                    failed = [future.exception() for future in futures if future.exception()]
                    assert len(failed) <= killed and all(error.signal == "SIGKILL" for error in failed), failed
            """)

    def test_a_death_tells_of_each_process_that_the_task_has_cost(self):
        self.assertEqual(self.program("""
            main:
                with Executor(1, retries=1) as executor:
                    error = executor.submit(os.abort).exception()
                    deaths = pickle.loads(pickle.dumps(error)).deaths()
                    print([(death["signal"], death["attempt"], death["pid"] > 0) for death in deaths])
                try:
                    error.deaths()
                except OSError:
                    print("over")
            """), "[('SIGABRT', 2, True), ('SIGABRT', 1, True)]\nover\n")

    def test_retries_by_choice(self):
        self.program("""
            def die_once(path):
                if not os.path.exists(path):
                    open(path, "w").close()
                    os._exit(7)
                return path

            main:
                with Executor(2, retries=2) as executor:
                    assert list(executor.map(die_once, map(str, range(10)))) == [str(i) for i in range(10)]
                    error = executor.submit(os._exit, 9).exception()
                    assert (error.signal, error.attempts) == (None, 3) and "status 9" in error.reason, error
                    error = executor.submit(int, "x").exception()
                    assert type(error) is ValueError
            """)

    def test_supervisor_crash_is_survived(self):
        self.program("""
            def slow():
                time.sleep(0.1)
                return os.getpid()

            main:
                with Executor(2) as executor:
                    # A supervisor that crashes before its workers were ready is not started again.
                    until(lambda: len({f.result() for f in [executor.submit(slow), executor.submit(slow)]}) == 2, "both workers")
                    daemon, = children(executor._dispatcher.place.process.pid)
                    supervisor, = [pid for pid in children(daemon) if pid not in workers_of(executor)]
                    os.kill(supervisor, signal.SIGKILL)
                    futures = [executor.submit(abs, -i) for i in range(20)]
                    for i, future in enumerate(futures):
                        assert isinstance(future.exception(), WorkerDied) or future.result() == i
                    assert executor.submit(abs, -5).result() == 5
            """)

    def test_end_of_the_private_supervisor_breaks_the_executor(self):
        self.program("""
            main:
                executor = Executor(1)
                assert executor.submit(abs, -1).result() == 1
                task = executor.submit(time.sleep, 1000)
                executor._dispatcher.place.process.kill()
                assert isinstance(task.exception(), BrokenProcessPool)
                executor.shutdown()
            """)

    def test_nothing_outlives_a_program_that_is_killed(self):
        process = self.start("""
            def nested():
                inner = Executor(1)
                inner.submit(abs, -1).result()
                inner.submit(time.sleep, 1000)
                print("ready", flush=True)
                time.sleep(1000)

            main:
                executor = Executor(2)
                executor.submit(nested)
                executor.submit(time.sleep, 1000)
                time.sleep(1000)
            """)
        self.assertEqual(process.stdout.readline(), "ready\n")
        process.kill()
        process.wait()
        self.nothing_is_left()

    def test_ctrl_c_at_the_terminal_reaches_the_program_alone(self):
        process = self.start("""
            main:
                signal.signal(signal.SIGINT, signal.default_int_handler)
                with Executor(1) as executor:
                    executor.submit(abs, -1).result()
                    try:
                        print("ready", flush=True)
                        time.sleep(1000)
                    except KeyboardInterrupt:
                        print("interrupted", executor.submit(abs, -3).result())
            """, start_new_session=True)
        self.assertEqual(process.stdout.readline(), "ready\n")
        os.killpg(process.pid, signal.SIGINT)
        output, errors = process.communicate(timeout=100)
        self.assertEqual((output, errors), ("interrupted 3\n", ""))
        self.nothing_is_left()


class Ends(TestCase):
    def test_what_was_submitted_is_done_before_the_interpreter_ends(self):
        for shutdown in ("pass", "executor.shutdown(wait=False)", "del executor"):
            self.assertEqual(self.program("""
                def say(text):
                    time.sleep(0.2)
                    print(text, flush=True)

                main:
                    executor = Executor(3)
                    executor.submit(say, "apple")
                    SHUTDOWN
                """.replace("SHUTDOWN", shutdown)), "apple\n", shutdown)

    def test_nothing_can_be_submitted_after_the_end(self):
        self.assertEqual(self.program("""
            def late():
                try:
                    executor.submit(abs, 1)
                except RuntimeError as error:
                    print(error)

            main:
                atexit.register(late)
                executor = Executor(1)
                executor.submit(abs, 1).result()
            """), "cannot schedule new futures after interpreter shutdown\n")

    def test_a_forgotten_executor_ends_when_its_tasks_have(self):
        self.program("""
            main:
                executor = Executor(1)
                future = executor.submit(time.sleep, 0.2)
                thread, gone = executor._dispatcher.thread, weakref.ref(executor)
                del executor
                gc.collect()
                assert gone() is None
                thread.join()
                assert future.done() and os.listdir(os.environ["TMPDIR"]) == []
            """)

    def test_an_executor_without_tasks_starts_nothing(self):
        self.program("""
            main:
                descriptors = os.listdir("/proc/self/fd")
                with Executor(1):
                    assert os.listdir(os.environ["TMPDIR"]) == [] and threading.active_count() == 1
                    assert os.listdir("/proc/self/fd") == descriptors
            """)

    def test_a_forked_child_can_use_none_and_keeps_none_alive(self):
        self.program("""
            main:
                executor = Executor(1)
                assert executor.submit(abs, -1).result() == 1
                task = executor.submit(time.sleep, 0.5)
                reader, writer = os.pipe()
                child = os.fork()
                if child == 0:
                    os.close(writer)
                    try:
                        executor.submit(abs, 1)
                    except BrokenProcessPool as error:
                        assert "forked" in str(error)
                        with Executor(1) as own:
                            assert own.submit(abs, -2).result() == 2
                        os.read(reader, 1)
                        os._exit(0)
                    os._exit(1)
                assert task.result() is None
                assert executor.submit(abs, -1).result() == 1
                executor.shutdown()  # though the child lives
                os.close(writer)
                assert os.waitpid(child, 0)[1] == 0
            """, env={"PYTHONWARNINGS": "ignore::DeprecationWarning"})  # of fork() beside threads

    def test_the_temporary_directory_may_have_a_long_path(self):
        long = os.path.join(self.temporary, "a" * 100, "b" * 100)
        os.makedirs(long)
        self.assertEqual(self.program("""
            def nested(depth):
                if depth == 0:
                    return 0
                with Executor(1) as executor:
                    return 1 + executor.submit(nested, depth - 1).result()

            main:
                print(nested(2))
                with Executor(1) as executor:
                    print(len(executor.submit(os.abort).exception().deaths()))
                os.removedirs(os.environ["TMPDIR"])
                os.mkdir(os.path.dirname(os.path.dirname(os.environ["TMPDIR"])))
            """, env={"TMPDIR": long}), "2\n1\n")

    def test_a_worker_that_dies_takes_its_executor_along(self):
        self.program("""
            def leave():
                executor = Executor(1)
                executor.submit(abs, -1).result()
                executor.submit(time.sleep, 1000)
                os.kill(os.getpid(), signal.SIGKILL)

            main:
                with Executor(1) as executor:
                    assert isinstance(executor.submit(leave).exception(), WorkerDied)
                    assert executor.submit(abs, -1).result() == 1
            """)


class Shared(troupe_python.TestCase, TestCase):
    """Of a trouped that runs."""

    def setUp(self):
        TestCase.setUp(self)
        python = [f"{name}={value}" for name, value in troupe_python.ENVIRONMENT.items()]
        self.shared = self.started({"tasks": troupe_python.e2e.ini(
            f"{sys.executable} -m troupe.executor.worker", Group={"Environment": python}, Pool={"Size": 2},
            Jobs={"MaxRetries": 0}), "echo": troupe_python.e2e.ini(f"{troupe_python.e2e.TROUPE_EXEC} -- /bin/cat"), "single": troupe_python.e2e.ini(
                f"{sys.executable} -m troupe.executor.worker", Group={"Environment": python})})

    def test_a_worker_remembers_some_programs_only(self):
        self.assertEqual(self.program("""
            def note(path):
                with open(path, "a") as file:
                    file.write("x")

            main:
                def entered(number):
                    with Executor(group="single", socket=os.environ["TROUPE"], initializer=note,
                                  initargs=(os.path.abspath(str(number)),)) as executor:
                        executor.submit(abs, 1).result()
                    return len(read(str(number)))

                from troupe.executor.worker import PROGRAMS_MAX
                print([entered(number) for number in range(PROGRAMS_MAX)] == [1] * PROGRAMS_MAX, entered(0))
                print(entered("new"), entered(0), entered(1))
            """, env={"TROUPE": self.shared.socket_path}), "True 1\n1 1 2\n")

    def test_a_group_that_is_missing_is_named(self):
        self.assertEqual(self.program("""
            main:
                with Executor(group="tsaks", socket=os.environ["TROUPE"]) as executor:
                    print(executor.submit(abs, -1).exception())
            """, env={"TROUPE": self.shared.socket_path}),
            "the executor cannot continue: there is no group, cell or worker 'tsaks'; did you mean 'tasks'?\n")

    def test_a_group_of_other_workers_is_refused(self):
        self.assertIn("its workers must run python3 -m troupe.executor.worker", self.program("""
            main:
                with Executor(group="echo", socket=os.environ["TROUPE"]) as executor:
                    print(repr(executor.submit(abs, -1).exception()))
            """, env={"TROUPE": self.shared.socket_path}))

    def test_a_death_tells_what_the_process_wrote(self):
        self.assertEqual(self.program("""
            def crash():
                print("last words", file=sys.stderr, flush=True)
                os.abort()

            main:
                with Executor(group="tasks", socket=os.environ["TROUPE"]) as executor:
                    said = executor.submit(crash).exception().deaths()[0]["stderr"]
                    print(said.startswith("last words\\n"), "in crash" in said)
            """, env={"TROUPE": self.shared.socket_path}), "True True\n")

    def test_a_process_that_is_killed_costs_its_task_alone_or_is_tried_again_by_choice(self):
        self.assertEqual(self.program("""
            def hold(path):
                if os.path.exists(path):
                    return "again"
                with open(path + ".new", "w") as file:
                    file.write(str(os.getpid()))
                os.rename(path + ".new", path)
                time.sleep(1000)

            main:
                for retries in 0, 1:
                    with Executor(group="tasks", socket=os.environ["TROUPE"], retries=retries) as executor:
                        path = os.path.abspath(str(retries))
                        task = executor.submit(hold, path)
                        others = [executor.submit(abs, -n) for n in range(100)]
                        os.kill(int(until(lambda: read(path), "a start")), signal.SIGKILL)
                        error = task.exception()
                        print([other.result() for other in others] == list(range(100)),
                              error.signal if error else task.result())
            """, env={"TROUPE": self.shared.socket_path}), "True SIGKILL\nTrue again\n")

    def test_programs_share_its_workers(self):
        for word in ("one", "two"):
            self.assertEqual(self.program("""
                def remember(word):
                    global memory
                    memory = word

                def recall(number):
                    return memory, number, __name__

                main:
                    with Executor(group="tasks", socket=os.environ["TROUPE"], initializer=remember, initargs=(os.environ["WORD"],)) as executor:
                        print(set(executor.map(recall, [1] * 50)))
                        print(executor.submit(os._exit, 1).exception().reason)
                """, env={"WORD": word, "TROUPE": self.shared.socket_path}),
                f"{{('{word}', 1, '__mp_main__')}}\nexited with status 1\n")
