# SPDX-License-Identifier: MIT
"""Where workers are, and were when they died."""
import collections
import contextlib
import fcntl
import os
import resource
import select
import shutil
import signal
import struct
import subprocess
import sys
import tempfile
import unittest
import zlib
from pathlib import Path

from troupe import BUILD, FAULTY_TROUPED, HAS_IO_URING, LIMIT, LOCKED_PIPE, SANITIZED, TROUPE_EXEC, TestCase, can_mount, end_process, helper, ini

TRACE = os.path.join(BUILD, "troupe-trace")
CRASHER = helper("workers/crasher")
PYTHON = "/usr/bin/python3"
OUTPUT = 65536
COUNT = int(os.environ.get("TESTS_STACKS", 0))
CRASHES = {"null": "SIGSEGV", "jump": "SIGSEGV", "overflow": "SIGSEGV", "heap": "SIGABRT", "bus": "SIGBUS",
           "division": "SIGFPE", "handler": "SIGSEGV", "thread": "SIGSEGV"}
COMMANDS = {**CRASHES, "abort": "SIGABRT", "child": "SIGSEGV"}
HANGS = ("call", "lock", "loop")

# Forges an interpreter of Python 3.13 with one thread and one frame, each of which follows itself.
ENDLESS = """
import ctypes, os, struct, time
buffer = ctypes.create_string_buffer(1 << 20)
start = ctypes.addressof(buffer)

def put(where, word):
    ctypes.memmove(where, struct.pack("<Q", word), 8)

interpreter, thread, frame = start + 16384, start + 32768, start + 65536
ctypes.memmove(start, b"xdebugpy", 8)
for index, offset in {5: 4096, 8: 4104, 9: 4112, 21: 24, 23: 32, 25: 40, 33: 24}.items():
    put(start + 8 * index, offset)
for where, word in ((start + 4096, interpreter), (interpreter + 4104, interpreter), (interpreter + 4112, thread),
                    (thread + 24, thread), (thread + 32, frame), (thread + 40, os.getpid()), (frame, frame), (frame + 24, 3)):
    put(where, word)
print(start, flush=True)
time.sleep(1000)
"""


SCRIPT = """
import os, sys, time

def planted_crash():
    os.abort()

def planted_hang():
    time.sleep(1000)

{"crash": planted_crash, "hang": planted_hang}[sys.argv[1]]()
"""


# Sends a locked pipe over a descriptor that it takes from a process.
LOCKER = LOCKED_PIPE + """
import array, sys, time
fd = ctypes.CDLL(None).syscall(438, os.pidfd_open(int(sys.argv[1])), 3, 0)  # pidfd_getfd()
end = locked_pipe()[0]
socket.socket(fileno=fd).sendmsg([b"x"], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", [end]))])
os.close(end)
print("sent", flush=True)
time.sleep(1000)
"""


def threads(text):
    """What troupe-trace has written, as a list of (thread id, name, state, frames)."""
    ret = []
    for line in text.splitlines():
        kind, *fields = line.split("\t")
        if kind == "T":
            ret.append((int(fields[0]), fields[1], fields[2], []))
        else:
            ret[-1][3].append(dict(zip(("language", "module", "function", "offset", "file", "line"), fields)))
    return ret


def children_of(pid):
    with open(f"/proc/{pid}/task/{pid}/children", encoding="ascii") as file:
        return [int(pid) for pid in file.read().split()]


def all_known(deaths):
    return all("stack" in death or "stack_missing" in death for death in deaths)


def planted(how):
    return "planted_null" if how in ("thread", "child") else f"planted_{how}"


def functions(thread):
    return [frame["function"] for frame in thread[3]]


def swell(source, target, size):
    """Copies a program; its strings for debuggers become zeros, of so many bytes once they are unpacked."""
    image = bytearray(Path(source).read_bytes())
    [table] = struct.unpack_from("<Q", image, 40)
    entry, n, names = struct.unpack_from("<HHH", image, 58)
    [strings] = struct.unpack_from("<Q", image, table + names * entry + 24)
    packer = zlib.compressobj(1)
    packed = b"".join([packer.compress(bytes(1 << 20)) for _ in range(size >> 20)]) + packer.flush()
    for header in range(table, table + n * entry, entry):
        name, kind, flags = struct.unpack_from("<IIQ", image, header)
        if image[strings + name:].startswith(b".debug_str\0"):
            content = struct.pack("<IIQQ", 1, 0, size, 1) + packed
            struct.pack_into("<IIQQQQ", image, header, name, kind, flags | 0x800, 0, len(image), len(content))
            Path(target).write_bytes(image + content)
            os.chmod(target, 0o755)
            return
    raise unittest.SkipTest("the workers are built without debugging information")


def hollow(source, target, size):
    """Copies a program; its symbols become a hole of so many bytes."""
    image = bytearray(Path(source).read_bytes())
    [table] = struct.unpack_from("<Q", image, 40)
    entry, n = struct.unpack_from("<HH", image, 58)
    for header in range(table, table + n * entry, entry):
        if struct.unpack_from("<I", image, header + 4) == (2,):  # SHT_SYMTAB
            struct.pack_into("<QQ", image, header + 24, -(-len(image) // 4096) * 4096, size // 24 * 24)
    Path(target).write_bytes(image)
    os.truncate(target, len(image) + 4096 + size)
    os.chmod(target, 0o755)


@unittest.skipUnless(os.path.exists(TRACE), "needs libdw")
class Program(TestCase):
    def setUp(self):
        directory = tempfile.TemporaryDirectory()
        self.addCleanup(directory.cleanup)
        self.directory = directory.name

    def trace(self, pid, pidfd=None, python=(0, 0)):
        """Runs troupe-trace as the supervisor does. Returns its error and its text."""
        process, release = pidfd or os.pidfd_open(pid), os.eventfd(0)
        output = os.memfd_create("output")
        os.ftruncate(output, OUTPUT)
        fds = {3: process, 4: release, 5: output}
        above = {number: fcntl.fcntl(fd, fcntl.F_DUPFD, 100) for number, fd in fds.items()}

        def inherit():
            for number, fd in above.items():
                os.dup2(fd, number)

        traced = subprocess.Popen([TRACE, str(pid), "0", "0", *map(str, python)], preexec_fn=inherit, close_fds=False, env={})
        self.assertTrue(select.select([release], [], [], LIMIT)[0], "the process is never let go")
        traced.wait(LIMIT)
        error, size = struct.unpack("iI", os.pread(output, 8, 0))
        text = os.pread(output, size, 8 + 512).decode()
        for fd in [*fds.values(), *above.values()]:
            os.close(fd)
        return error, text

    def run_and_trace(self, *argv, python=(0, 0)):
        process = subprocess.Popen(argv, stdout=subprocess.PIPE)
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)
        self.addCleanup(process.stdout.close)
        word = process.stdout.readline()
        if python == "told":
            python = int(word), 0x030d0000
        return process, *self.trace(process.pid, python=python)

    def test_X2_a_thread_that_waits_computes_or_holds_a_lock_is_found_with_its_function(self):
        for how in HANGS:
            with self.subTest(how=how):
                process, error, text = self.run_and_trace(CRASHER, how)
                self.assertEqual(error, 0)
                [thread] = threads(text)
                self.assertEqual(thread[:2], (process.pid, "crasher"))
                self.assertIn(f"planted_{how}", functions(thread))
                frame = next(frame for frame in thread[3] if frame["function"] == "main")
                self.assertTrue(frame["file"].endswith("crasher.c"), frame)
                self.assertGreater(int(frame["line"]), 0)
                self.assertIsNone(process.poll())

    def test_X2_the_number_of_another_process_is_refused(self):
        process = subprocess.Popen([CRASHER, "call"], stdout=subprocess.PIPE)
        self.addCleanup(process.stdout.close)
        process.stdout.readline()
        process.kill()
        pidfd = os.pidfd_open(process.pid)
        process.wait()
        error, text = self.trace(os.getpid(), pidfd)
        self.assertEqual((error < 0, text), (True, ""))

    def test_X2_a_symbolic_link_in_the_place_of_a_mapped_file_is_not_followed(self):
        program = os.path.join(self.directory, "crasher")
        shutil.copy(CRASHER, program)
        process = subprocess.Popen([program, "call"], stdout=subprocess.PIPE)
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)
        self.addCleanup(process.stdout.close)
        process.stdout.readline()
        os.unlink(program)
        os.symlink(CRASHER, f"{program} (deleted)")
        error, text = self.trace(process.pid)
        self.assertEqual(error, 0)
        self.assertNotIn("planted_call", text)

    def test_X2_no_file_is_opened_by_a_name_in_a_file(self):
        program, fifo, link = (os.path.join(self.directory, name) for name in ("crasher", "fifo", "link"))
        os.mkfifo(fifo)
        with open(link, "wb") as file:
            name = b"../" * 16 + fifo[1:].encode() + b"\0"
            file.write(name + b"\0" * (-len(name) % 4) + b"\0" * 4)
        subprocess.run(["objcopy", "--strip-debug", "--add-section", f".gnu_debuglink={link}", CRASHER, program], check=True)
        _, error, text = self.run_and_trace(program, "call")
        self.assertEqual(error, 0)
        self.assertIn("planted_call", text)

    @unittest.skipUnless(os.access("/dev/shm", os.W_OK), "needs a file system in memory")
    def test_X2_a_file_with_holes_in_memory_gets_no_memory(self):
        with tempfile.TemporaryDirectory(dir="/dev/shm") as directory:
            program = os.path.join(directory, "crasher")
            hollow(CRASHER, program, 32 << 20)
            before = os.stat(program).st_blocks
            _, error, text = self.run_and_trace(program, "call")
            self.assertEqual((error, bool(threads(text))), (0, True))
            self.assertEqual(os.stat(program).st_blocks, before)

    def test_X2_an_interpreter_whose_lists_never_end_is_left_in_time(self):
        _, error, text = self.run_and_trace(sys.executable, "-c", ENDLESS, python="told")
        self.assertEqual(error, 0)
        self.assertTrue(threads(text))

    def test_X2_children_are_traced_as_well(self):
        script = f"import subprocess; subprocess.run([{CRASHER!r}, 'call'])"
        _, error, text = self.run_and_trace(sys.executable, "-c", script)
        self.assertEqual(error, 0)
        self.assertTrue(any("planted_call" in functions(thread) for thread in threads(text)), text)


class Deaths(TestCase):
    def death(self, how, **options):
        """The report of a worker or command that died of this, once its stacks have come, or are known to be missing."""
        job = self.s.create("crasher", how, **options)
        self.s.until(lambda: self.s.job(job)["state"] == "dead")

        def find():
            [death] = [death for death in self.s.call("ListDeaths")["deaths"] if death.get("job") == job]
            return death if "stack" in death or "stack_missing" in death else None

        return self.s.until(find)

    def seen(self, how, **options):
        """Like death(), with stacks: a machine under load may be too slow for the time that a worker waits."""
        return self.s.until(lambda: (lambda death: death if death.get("top") else None)(self.death(how, **options)))

    def measure(self, hows):
        right = collections.Counter()
        missing = collections.Counter()
        for how in hows:
            for _ in range(COUNT):
                death = self.death(how, **({"timeout_usec": 100_000} if how in HANGS else {}))
                right[how] += death.get("top", "").startswith(planted(how))
                missing[death.get("stack_missing") or ("" if "top" in death else "no function")] += 1
        print(right, missing, file=sys.stderr)
        self.assertGreaterEqual(right.total(), 0.99 * COUNT * len(right))


@unittest.skipUnless(os.path.exists(TRACE), "needs libdw")
@unittest.skipIf(SANITIZED, "the sanitizer handles these signals")
class Crashes(Deaths):
    def setUp(self):
        self.s = self.started({"crasher": ini(CRASHER, Worker={"TimeoutStopSec": "200ms"}, Jobs={"MaxRetries": 0})})

    def test_X1_a_crash_is_reported_with_its_function_file_and_line(self):
        for how, signal in CRASHES.items():
            with self.subTest(how=how):
                death = self.seen(how)
                self.assertEqual((death["cause"], death["signal"]), ("signal", signal))
                self.assertRegex(death["top"], rf"^{planted(how)}, crasher\.c:\d+$")
                self.assertIn(f"in {death['top']}", self.s.ctl("why", death["job"], check=True).stdout)
                self.assertIn(death["top"], self.s.ctl("deaths", "crasher", check=True).stdout)
                first = death["stack"][0]
                self.assertEqual(first["state"], "crashed")
                self.assertEqual(len(death["stack"]), 2 if how == "thread" else 1)

    def test_X1_the_same_deaths_are_counted_together(self):
        for how in ("null", "null", "division", "null"):
            top = {how: self.seen(how)["top"] for how in (how,)}[how]
        deaths = self.s.call("ListDeaths")["deaths"]
        nulls = [death for death in deaths if death.get("top") == top]
        place = next(place for place in self.s.call("CountDeaths", target="crasher")["places"] if place.get("top") == top)
        self.assertEqual(place, {"group": "crasher", "cause": "signal", "signal": "SIGSEGV", "count": len(nulls), "top": top,
                                 "first_at": nulls[-1]["at"], "last_at": nulls[0]["at"], "last_worker": "crasher/0"})
        self.assertGreaterEqual(place["count"], 3)
        line = rf"(?m)^{{}}{place['count']} × SIGSEGV in {top}, first .*, last .*$"
        self.assertRegex(self.s.ctl("deaths", "--by-place", check=True).stdout, line.format("crasher: "))
        self.assertRegex(self.s.ctl("why", "crasher", check=True).stdout, line.format(""))
        self.s.ctl("upgrade", check=True)
        self.assertIn(place, self.s.call("CountDeaths")["places"])
        self.s.ctl("stop", "crasher", check=True)
        self.assertNotIn("stop", [place["cause"] for place in self.s.call("CountDeaths")["places"]])

    def test_X1_an_event_says_where_it_was(self):
        death = self.seen("null")
        [event, *_] = [event for event in self.s.call("Watch")["events"] if event["type"] == "worker.located"]
        self.assertEqual((event["message"], event["death"]["top"]), (f"crasher/0 was in {death['top']}", death["top"]))
        self.assertNotIn("stack", event["death"], "however many watch, it is not written for each")
        self.assertIn("see ListDeaths", event["death"]["stack_missing"])

    def test_X1_what_hangs_is_looked_at_before_it_is_killed(self):
        for how in HANGS:
            with self.subTest(how=how):
                death = self.seen(how, timeout_usec=100_000)
                self.assertEqual(death["cause"], "job_timeout")
                self.assertIn(f"planted_{how}", [frame.get("function") for frame in death["stack"][0]["frames"]])
                self.assertIn("crasher.c:", death["top"])

    def test_X1_without_ptrace_the_thread_that_crashes_is_known(self):
        self.s = self.started({"crasher": ini(CRASHER, Jobs={"MaxRetries": 0})}, wrapper=[helper("forbid"), "ptrace", "EPERM"])
        death = self.seen("thread")
        self.assertRegex(death["top"], r"^planted_null, crasher\.c:\d+$")
        self.assertEqual([thread["state"] for thread in death["stack"]], ["crashed", "running"])
        self.assertEqual(self.death("call", timeout_usec=100_000)["stack_missing"], "troupe-trace could not look at the process")

    def test_X1_a_worker_that_a_template_has_forked_is_found(self):
        self.s = self.started({"crasher": ini(CRASHER, Pool={"Template": "slot"}, Worker={"TimeoutStopSec": "200ms"},
                                              Jobs={"MaxRetries": 0})})
        self.s.until(lambda: self.s.worker("crasher/0").get("template", {}).get("state") == "ready")
        self.seen("null")
        self.s.until(lambda: "fork_usec" in self.s.worker("crasher/0")["template"])
        for how in "null", "call":
            self.assertRegex(self.seen(how, timeout_usec=100_000)["top"], rf"^planted_{how}, crasher\.c:\d+$")

    @unittest.skipUnless(os.getuid() == 0, "needs another user")
    def test_X2_a_worker_of_another_user_is_found_in_its_sandbox(self):
        sandboxes = [{"Profile": "strict"}, {"PrivatePIDs": "yes", "PrivateTmp": "yes", "ProtectSystem": "strict"}]
        for sandbox in {}, *(sandboxes if can_mount() else []):
            with self.subTest(sandbox=sandbox):
                self.s = self.started({"crasher": ini(CRASHER, Group={"User": "nobody"}, Sandbox=sandbox, Worker={"TimeoutStopSec": "200ms"},
                                                   Jobs={"MaxRetries": 0})})
                self.assertRegex(self.seen("null")["top"], r"^planted_null, crasher\.c:\d+$")
                self.assertIn("crasher.c:", self.seen("loop", timeout_usec=100_000)["top"])

    def test_X1_a_command_that_hangs_is_found_without_crash_stacks(self):
        for user in (None, "nobody") if os.getuid() == 0 else (None,):
            self.s = self.started({"crasher": commands(user=user, crash_stacks="no")})
            for how in HANGS:
                with self.subTest(how=how, user=user):
                    self.s.wait_worker("crasher/0", "idle")
                    self.assertRegex(self.seen(how, timeout_usec=300_000)["top"], rf"^planted_{how}, crasher\.c:\d+$")

    def test_X1_when_many_die_at_once_the_others_reports_say_so(self):
        self.s = self.started({"crasher": ini(CRASHER, Pool={"Size": 24}, Jobs={"MaxRetries": 0})})
        jobs = [self.s.create("crasher", "call", timeout_usec=300_000) for _ in range(24)]
        for job in jobs:
            self.s.until(lambda: self.s.job(job)["state"] == "dead")
        deaths = self.s.until(lambda: (lambda all: all if len(all) == 24 and all_known(all) else None)(
            self.s.call("ListDeaths")["deaths"]))
        self.assertLessEqual({death.get("stack_missing") for death in deaths},
                             {None, "too many other processes were being looked at", "troupe-trace could not look at the process"})
        self.assertIn("too many other processes were being looked at", {death.get("stack_missing") for death in deaths})
        self.assertTrue(any("stack" in death for death in deaths))

    def test_X2_a_program_whose_debugging_information_swells_takes_little_memory(self):
        self.s = self.supervisor()
        swell(CRASHER, self.s.path("swollen"), 1 << 29)
        self.s.write("crasher.group", ini(self.s.path("swollen"), Jobs={"MaxRetries": 0}))
        self.s.start()
        self.assertTrue(self.seen("null")["top"].startswith("planted_null"))
        self.s.stop()
        self.assertLess(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss, 1 << 18)  # of any process of this program, in KiB

    def test_X3_a_worker_and_a_running_job_are_found(self):
        job = self.s.create("crasher", "call")
        self.s.until(lambda: self.s.job(job).get("started_at"))
        for target in {"target": "crasher/0"}, {"job": job}:
            reply = self.s.until(lambda: (lambda reply: reply if "planted_call" in str(reply) else None)(
                self.s.call("io.troupe.Supervisor.GetStack", **target)))
            self.assertEqual((reply["worker"], reply["stack"][0]["state"]), ("crasher/0", "stopped"))
        self.assertEqual(self.s.job(job)["state"], "running")
        for name in "crasher/0", job:
            self.assertRegex(self.s.ctl("stack", name, check=True).stdout, r"(?s)crasher/0, pid \d+ is in .*planted_call, .*crasher.c:\d+\n")
        self.refused("BadOption", self.s.call, "io.troupe.Supervisor.GetStack", target="crasher")
        self.refused("BadOption", self.s.call, "io.troupe.Supervisor.GetStack", job="none")
        self.s.call("Cancel", id=job)
        self.seen("lock", timeout_usec=100_000)
        self.assertIn("planted_lock", self.s.ctl("stack", "crasher/0", check=True).stdout.partition("died")[2])

    @unittest.skipUnless(COUNT, "only with TESTS_STACKS=N, for N deaths of each kind")
    def test_X1_the_rate(self):
        self.measure((*CRASHES, *HANGS))


def commands(sandbox=None, user=None, command=f"{CRASHER} {{}}", crash_stacks="yes"):
    return ini(f"{TROUPE_EXEC} -- {command}", Group={"User": user} if user else {}, Sandbox=sandbox or {},
               Worker={"CrashStacks": crash_stacks, "TimeoutStopSec": "200ms"}, Jobs={"MaxRetries": 0})


def state_of(pid):
    with open(f"/proc/{pid}/status", encoding="utf-8") as file:
        return next(line for line in file if line.startswith("State:")).split()[1]


def tracer_of(pid):
    with open(f"/proc/{pid}/status", encoding="utf-8") as file:
        return int(next(line for line in file if line.startswith("TracerPid:")).split()[1])


@unittest.skipUnless(os.path.exists(TRACE), "needs libdw")
@unittest.skipIf(SANITIZED, "the sanitizer handles these signals")
class Commands(Deaths):
    """CrashStacks=yes"""

    def begin(self, **groups):
        self.s = self.started(groups or {"crasher": commands()})
        self.s.wait_worker("crasher/0", "idle")
        self.s.until(self.tracer)

    def tracer(self):
        pid = self.s.worker("crasher/0").get("pid")  # none between two workers
        with contextlib.suppress(FileNotFoundError, ProcessLookupError):
            return tracer_of(pid) if pid else 0
        return 0

    def test_X1_a_command_or_a_process_of_it_that_crashes_is_reported_with_its_function_file_and_line(self):
        self.begin()
        for how, signal in COMMANDS.items():
            with self.subTest(how=how):
                death = self.death(how)
                self.assertEqual((death["cause"], death.get("signal")), ("signal", signal))
                self.assertRegex(death["top"], rf"^{planted(how)}, crasher\.c:\d+$")
                self.assertEqual(death["command"], "crasher" if how == "child" else f"{CRASHER} {{}}")
                self.assertEqual(death["stack"][0]["state"], "crashed")
                self.assertEqual(len(death["stack"]), 2 if how == "thread" else 1)
                self.assertIn(f"in {death['top']}", self.s.ctl("why", death["job"], check=True).stdout)

    @unittest.skipUnless(os.getuid() == 0, "needs another user")
    def test_X2_a_command_of_another_user_is_found_in_its_sandbox(self):
        for sandbox in {}, *([{"Profile": "strict"}, {"PrivatePIDs": "yes"}] if can_mount() else []):
            with self.subTest(sandbox=sandbox):
                self.begin(crasher=commands(sandbox, "nobody"))
                self.assertRegex(self.death("null")["top"], r"^planted_null, crasher\.c:\d+$")
                self.assertRegex(self.death("child")["top"], r"^planted_null, crasher\.c:\d+$")
                capabilities = {line for line in open(f"/proc/{self.tracer()}/status", encoding="utf-8") if line.startswith("CapPrm")}
                self.assertEqual(capabilities, {"CapPrm:\t0000000000000000\n"})

    def test_X1_a_command_that_hangs_is_looked_at_before_it_is_killed(self):
        self.begin()
        for how in HANGS:
            with self.subTest(how=how):
                self.assertRegex(self.seen(how, timeout_usec=300_000)["top"], rf"^planted_{how}, crasher\.c:\d+$")
                self.s.until(self.tracer)

    def test_X3_a_command_is_found_while_it_is_watched_and_goes_on(self):
        job, go = self.waiting()
        stack = self.s.until(lambda: (lambda reply: reply if "'sh'" in str(reply) else None)(
            self.s.call("io.troupe.Supervisor.GetStack", job=job)))["stack"]
        self.assertIn("sh", {thread["name"] for thread in stack})
        self.crash_now(job, go)

    def waiting(self):
        """A job that crashes once there is a file, and the path of that."""
        self.begin(crasher=commands(command="/bin/sh -c 'while [ ! -e {} ]; do sleep 0.1; done; exec %s null'" % CRASHER))
        go = self.s.path("go")
        job = self.s.create("crasher", go)
        self.s.until(lambda: self.s.job(job).get("started_at"))
        return job, go

    def crash_now(self, job, go):
        with open(go, "w", encoding="utf-8"):
            pass
        self.s.until(lambda: self.s.job(job)["state"] == "dead")
        self.s.until(lambda: self.s.call("ListDeaths")["deaths"][0].get("top", "").startswith("planted_null"))

    def test_X1_the_functions_of_a_script_of_python_are_found(self):
        script = self.script()
        self.begin(crasher=commands(command=f"{PYTHON} {script} {{}}"))
        self.assertEqual(self.death("crash")["top"], "planted_crash, script.py:5")
        self.assertEqual(self.seen("hang", timeout_usec=1_000_000)["top"], "planted_hang, script.py:8")

    def directory(self):
        directory = tempfile.TemporaryDirectory()
        self.addCleanup(directory.cleanup)
        os.chmod(directory.name, 0o755)
        return directory.name

    def script(self):
        script = os.path.join(self.directory(), "script.py")
        with open(script, "w", encoding="utf-8") as file:
            file.write(SCRIPT)
        return script

    def test_X1_a_worker_of_libtroupe_may_also_be_watched(self):
        for pool in {}, {"Template": "slot"}:
            self.begin(crasher=ini(CRASHER, Pool=pool, Worker={"CrashStacks": "yes", "TimeoutStopSec": "200ms"}, Jobs={"MaxRetries": 0}))
            for how in "null", "thread", "call":
                with self.subTest(how=how, pool=pool):
                    self.assertRegex(self.seen(how, timeout_usec=300_000)["top"], rf"^{planted(how)}, crasher\.c:\d+$")
                    self.s.until(self.tracer)

    def test_X1_a_command_that_stops_itself_continues(self):
        self.begin(crasher=commands(command=f"/bin/sh -c 'kill -STOP $$; exec {CRASHER} null'"))
        job = self.s.create("crasher")
        shell = self.s.until(lambda: next((pid for pid in self.commands() if state_of(pid) in "tT"), None))

        def ended():
            with contextlib.suppress(ProcessLookupError):
                os.kill(shell, signal.SIGCONT)  # again: the watcher stops it for a moment, too
            return self.s.job(job)["state"] == "dead"
        self.s.until(ended)
        self.s.until(lambda: self.s.call("ListDeaths")["deaths"][0].get("top", "").startswith("planted_null"))

    @unittest.skipUnless(os.getuid() == 0, "needs root for User=")
    def test_X1_an_idle_worker_is_not_shown_where_a_command_crashed(self):
        self.begin(crasher=commands(user="nobody"))
        self.seen("null")
        self.s.wait_worker("crasher/0", "idle")
        self.assertIn("stack_missing", self.s.call("GetStack", target="crasher/0"))

    def test_X1_a_handler_of_the_command_has_its_effect(self):
        script = "import os, signal; signal.signal(signal.SIGSEGV, lambda *_: os._exit(0)); os.kill(os.getpid(), signal.SIGSEGV)"
        self.begin(crasher=commands(command=f'{sys.executable} -c "{script}"'))
        self.assertEqual(self.s.do("crasher")["state"], "succeeded")
        self.assertEqual(self.s.call("ListDeaths")["deaths"], [])

    def test_X2_the_death_of_the_watcher_changes_nothing_for_the_command(self):
        job, go = self.waiting()
        os.kill(self.tracer(), 9)
        self.s.until(lambda: not self.tracer())
        with open(go, "w", encoding="utf-8"):
            pass
        self.s.until(lambda: self.s.job(job)["state"] == "dead")
        self.assertEqual(self.s.call("ListDeaths")["deaths"][0]["stack_missing"], "the watcher for CrashStacks= has ended")

    @unittest.skipUnless(os.getuid() == 0, "needs to look into the watcher")
    def test_X2_a_watcher_that_sends_a_descriptor_that_cannot_be_closed_holds_up_nothing(self):
        programs = self.directory()
        for program in FAULTY_TROUPED, FAULTY_TROUPED + "-supervisor", TRACE:
            shutil.copy(program, programs)
        self.s = self.started({"crasher": commands()}, program=os.path.join(programs, "trouped"), environment={"TROUPE_FAULT": "passrights:1+"})
        self.s.wait_worker("crasher/0", "idle")
        watcher = self.s.until(self.tracer)
        with self.s.stopped():
            locker = subprocess.Popen([PYTHON, "-c", LOCKER, str(watcher)], stdout=subprocess.PIPE)
            self.addCleanup(end_process, locker)
            self.assertEqual(locker.stdout.readline(), b"sent\n")
        self.s.until(lambda: not self.tracer())
        self.assertEqual(self.death("abort")["stack_missing"], "the watcher for CrashStacks= has ended")

    def test_X2_a_watcher_that_was_stopped_holds_up_nothing(self):
        self.waiting()
        worker = self.s.worker("crasher/0")
        os.kill(self.tracer(), 19)
        os.kill(worker["pid"], 9)
        self.s.until(lambda: self.s.worker("crasher/0")["generation"] > worker["generation"])
        self.assertEqual(self.s.call("ListDeaths")["deaths"][-1].get("signal"), "SIGKILL")
        self.s.until(self.tracer)

    def test_X2_a_watcher_that_was_stopped_does_not_hide_the_death_of_threads(self):
        script = "import threading, time; threading.Thread(target=time.sleep, args=(1000,)).start(); time.sleep(1000)"
        for loop in ("epoll", "io_uring") if HAS_IO_URING else ("epoll",):
            with self.subTest(loop=loop):
                service = ini(f'{sys.executable} -c "{script}"', Group={"Type": "service"}, Worker={"CrashStacks": "yes", "TimeoutStopSec": "100ms"})
                self.s = self.started({"service": service}, environment={"TROUPE_LOOP": loop})
                worker = self.s.worker("service/0")
                self.s.until(lambda: len(os.listdir(f"/proc/{worker['pid']}/task")) == 2)
                os.kill(self.s.until(lambda: tracer_of(worker["pid"])), 19)
                self.s.call("Stop", target="service", wait=True)

    @unittest.skipUnless(os.getuid() == 0 and shutil.which("setpriv"), "needs root and setpriv")
    def test_X2_without_the_capability_services_are_watched_and_commands_perhaps(self):
        go = os.path.join(self.directory(), "go")
        service = ini(f"/bin/sh -c 'while [ ! -e {go} ]; do sleep 0.1; done; exec {CRASHER} null'", Group={"Type": "service", "User": "nobody"},
                      Worker={"CrashStacks": "yes"}, Restart={"Restart": "no"})
        self.s = self.started({"service": service, "crasher": commands(user="nobody")},
                              wrapper=["setpriv", "--bounding-set", "-sys_ptrace"])
        self.s.until(lambda: tracer_of(self.s.worker("service/0")["pid"]))
        with open(go, "w", encoding="utf-8"):
            pass
        self.s.until(lambda: self.s.call("ListDeaths", target="service")["deaths"])
        self.s.until(lambda: self.s.call("ListDeaths", target="service")["deaths"][0].get("top", "").startswith("planted_null"))
        death = self.s.until(lambda: (lambda death: death if "before" not in death.get("stack_missing", "") else None)(self.death("null")))
        self.assertRegex(death.get("stack_missing") or death["top"], "may not trace it|^planted_null")

    def test_X2_of_processes_without_end_a_bounded_number_is_watched(self):
        self.begin(crasher=commands(command="/bin/sh -c 'for i in $(seq 300); do sleep 1000 & done; wait'"))
        job = self.s.create("crasher")
        shell = self.s.until(lambda: next(iter(self.commands()), None))
        children = self.s.until(lambda: (lambda pids: pids if len(pids) == 300 else None)(children_of(shell)))
        watched = sum(tracer_of(pid) != 0 for pid in children)
        self.assertLess(watched, 256)
        self.assertGreater(watched, 200)
        self.s.call("Cancel", id=job)
        self.s.until(lambda: self.s.job(job)["state"] == "cancelled")

    def commands(self):
        for pid in children_of(self.s.worker("crasher/0")["pid"]):
            with open(f"/proc/{pid}/comm", encoding="utf-8") as file:
                if file.read() == "sh\n":
                    yield pid

    def test_X1_after_an_upgrade_and_a_crash_of_the_supervisor_commands_are_watched(self):
        for end in self.upgrade, lambda: self.s.crash():
            job, go = self.waiting()
            before = self.tracer()
            end()
            self.s.until(lambda: self.tracer() not in (0, before))
            self.crash_now(job, go)

    def upgrade(self):
        self.s.ctl("upgrade", check=True)

    def test_X1_a_service_that_crashes_at_any_time_is_found(self):
        self.s = self.started({"service": ini(f"{CRASHER} null", Group={"Type": "service"}, Worker={"CrashStacks": "yes"},
                                              Restart={"Restart": "no"})})
        death = self.s.until(lambda: (lambda deaths: deaths[0] if deaths and all_known(deaths) else None)(self.s.call("ListDeaths")["deaths"]))
        self.assertRegex(death.get("top", death.get("stack_missing")), r"^planted_null, crasher\.c:\d+$")

    @unittest.skipUnless(COUNT, "only with TESTS_STACKS=N, for N deaths of each kind")
    def test_X1_the_rate(self):
        self.begin()
        self.measure(COMMANDS)


@unittest.skipIf(SANITIZED, "the sanitizer handles these signals")
class NotInstalled(TestCase):
    def test_X1_reports_say_that_nobody_could_look(self):
        s = self.supervisor({"crasher": ini(CRASHER, Jobs={"MaxRetries": 0})})
        for program in "trouped", "trouped-supervisor":
            shutil.copy(os.path.join(BUILD, program), s.directory)
        s.command[s.command.index(os.path.join(BUILD, "trouped"))] = os.path.join(s.directory, "trouped")
        s.start()
        for how, options in ("null", {}), ("call", {"timeout_usec": 100_000}):
            job = s.create("crasher", how, **options)
            s.until(lambda: s.job(job)["state"] == "dead")
            self.assertEqual(s.call("ListDeaths")["deaths"][0]["stack_missing"], "troupe-trace is not installed")


if __name__ == "__main__":
    unittest.main()
