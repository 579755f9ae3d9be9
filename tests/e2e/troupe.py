# SPDX-License-Identifier: MIT
"""Helpers of the end-to-end tests: a real supervisor in a directory of its own, and a Varlink client.

They wait for events, never for time: readiness is a datagram, a state is an event of io.troupe.Supervisor.Watch, an
end is a descriptor that becomes readable. A test fails when an event has not come within LIMIT.
"""
import atexit
import contextlib
import ctypes
import json
import os
import random
import re
import resource
import select
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import unittest
from pathlib import Path

from interface import Checker

TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))


def _without_spaces(path):
    """The same directory under a name that needs no quoting in ExecStart= and in a Makefile."""
    if not any(character.isspace() for character in path):
        return path
    directory = tempfile.mkdtemp(prefix="troupe-e2e-")
    atexit.register(shutil.rmtree, directory)
    os.symlink(path, os.path.join(directory, "build"))
    return os.path.join(directory, "build")


BUILD = _without_spaces(os.environ.get("TESTS_BUILD", os.path.join(TOP, "build")))
SANITIZED = bool(os.environ.get("TESTS_SAN"))
LIMIT = 120.0 if SANITIZED else 60.0  # seconds until an expected event counts as missing

with open(os.path.join(TOP, "shared", "ring", "memory.h"), encoding="utf-8") as _header:
    VERSION = int(re.search(r"define MEMORY_VERSION\s+(\d+)", _header.read())[1])  # of rings and records

TROUPED = os.path.join(BUILD, "trouped")
TROUPECTL = os.path.join(BUILD, "troupectl")
TROUPE_EXEC = os.path.join(BUILD, "troupe-exec")
FAULTY_TROUPED = os.path.join(BUILD, "faults", "trouped")


def helper(name):
    return os.path.join(BUILD, "tests", "e2e", name)


def example(name):
    return os.path.join(BUILD, "examples", name)


ACTOR = helper("workers/actor")


CHECKER = Checker(os.path.join(TOP, "supervisor", "control"))


def has_io_uring():
    """False where a filter, a sysctl or the kernel forbids it, as in most containers."""
    fd = ctypes.CDLL(None).syscall(425, 1, ctypes.create_string_buffer(256))  # io_uring_setup: the same on all architectures
    if fd >= 0:
        os.close(fd)
    return fd >= 0


HAS_IO_URING = has_io_uring()


class VarlinkError(Exception):
    """An error reply. name: the last part, "NoSuchGroup"; full: with the interface."""

    def __init__(self, full, parameters):
        super().__init__(f"{full} {json.dumps(parameters)}")
        self.full, self.name, self.parameters = full, full.rpartition(".")[2], parameters


class Varlink:
    """One connection. Each reply is checked against the declaration of the method that was called."""

    def __init__(self, path, limit=LIMIT):
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.socket.settimeout(limit)
        self.socket.connect(path)
        self.buffer = b""
        self.sent = b""
        self.calls = []  # methods that await replies; None = not a call

    def close(self):
        self.socket.close()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def send(self, method, parameters=None, **flags):
        if "." not in method:
            method = "io.troupe." + ("Jobs." if method in JOBS_METHODS else "Supervisor.") + method
        message = {"method": method, "parameters": parameters or {}, **flags}
        self.send_raw(json.dumps(message).encode() + b"\0")

    def send_raw(self, data):
        self._expect(data)
        self.socket.sendall(data)

    def _expect(self, data):
        *messages, self.sent = (self.sent + data).split(b"\0")
        for message in messages:
            try:
                call = json.loads(message)
                if call.get("oneway"):
                    continue
                method = call["method"]
            except (ValueError, LookupError, AttributeError, RecursionError):
                method = None
            self.calls.append(method if isinstance(method, str) else None)

    def receive(self):
        """The next reply, unchanged. Raises EOFError when the peer has closed."""
        while b"\0" not in self.buffer:
            data = self.socket.recv(1 << 16)
            if not data:
                raise EOFError("connection closed")
            self.buffer += data
        message, _, self.buffer = self.buffer.partition(b"\0")
        message = json.loads(message)
        CHECKER.check(self.calls[0] if self.calls else None, message)
        if self.calls and not message.get("continues"):
            self.calls.pop(0)
        return message

    def reply(self):
        """The parameters of the next reply, and whether more follow."""
        message = self.receive()
        if "error" in message:
            raise VarlinkError(message["error"], message.get("parameters", {}))
        return message.get("parameters", {}), message.get("continues", False)

    def call(self, method, **parameters):
        self.send(method, parameters)
        return self.reply()[0]

    def more(self, method, **parameters):
        self.send(method, parameters, more=True)
        while True:
            answer, continues = self.reply()
            yield answer
            if not continues:
                return


JOBS_METHODS = {"Create", "Do", "Get", "List", "Cancel", "Wait", "Attach", "Stream"}


def text(data):
    """A payload as the methods take it."""
    return {"encoding": "utf8", "data": data}


def limit_address_space(pid, room):
    """Leaves the process room for so many more bytes."""
    size = int(Path(f"/proc/{pid}/statm").read_text(encoding="ascii").split()[0]) * resource.getpagesize() + room
    resource.prlimit(pid, resource.RLIMIT_AS, (size, size))


@contextlib.contextmanager
def user(uid, *groups):
    """Opens connections as this user within the block: the kernel records who connects."""
    before = os.getgroups()
    os.setgroups(groups)
    os.setegid(uid)
    os.seteuid(uid)
    try:
        yield
    finally:
        os.seteuid(0)
        os.setegid(0)
        os.setgroups(before)


# For programs in Python: locked_pipe() returns the ends of a pipe whose lock a thread holds, since it waits in splice() for an
# empty socket. The last close of the read end waits for that lock.
LOCKED_PIPE = """
import ctypes, os, socket, threading
empty = socket.socketpair()
def locked_pipe():
    ends = os.pipe()
    thread = threading.Thread(target=os.splice, args=(empty[0].fileno(), ends[1], 4096), daemon=True)
    thread.start()
    ctypes.CDLL(None).prctl(4, 1)  # PR_SET_DUMPABLE: what the thread does can be read, also by who has given up root
    while True:
        with open(f"/proc/self/task/{thread.native_id}/syscall") as file:
            if file.read().split()[1:4:2] == [hex(empty[0].fileno()), hex(ends[1])]:
                return ends
"""


def dice():
    """Random numbers, whose seed is printed."""
    seed = int(os.environ.get("TESTS_SEED", "0")) or random.SystemRandom().randrange(1, 1 << 32)
    print(f"seed {seed} (TESTS_SEED= repeats it)")
    return random.Random(seed)


def ended(pidfd, limit):
    """Whether the process ends within the limit."""
    poll = select.poll()
    poll.register(pidfd, select.POLLIN)
    return bool(poll.poll(limit * 1000))


def end_process(process):
    """Kills a subprocess if it runs, and closes its streams."""
    process.kill()
    process.wait()
    for stream in filter(None, (process.stdin, process.stdout, process.stderr)):
        with contextlib.suppress(BrokenPipeError):
            stream.close()


class Stopwatch:
    """The seconds that something takes, without those in which the supervisor and this thread waited for a CPU that others had."""

    def __init__(self, s):
        self.delays = [f"/proc/{s.supervisor_pid}/schedstat", "/proc/thread-self/schedstat"]
        self.begin()

    def now(self):
        return time.monotonic() - sum(int(Path(path).read_text(encoding="ascii").split()[1]) for path in self.delays) / 1e9

    def begin(self):
        self.begun = self.now()

    def seconds(self):
        return self.now() - self.begun


class Supervisor:
    """trouped with a configuration of its own. Everything ends with the test."""

    def __init__(self, test, groups=None, conf="", options=(), program=TROUPED, environment=None, wrapper=(), state=False):
        """state: with a StateDirectory= of its own, which is path("state")."""
        self.test = test
        self.directory = tempfile.mkdtemp(prefix="troupe-e2e-")
        os.chmod(self.directory, 0o755)
        self.config = os.path.join(self.directory, "etc")
        self.socket_path = os.path.join(self.directory, "troupe.sock")
        self.log_path = os.path.join(self.directory, "log")
        os.mkdir(self.config)
        if state:
            conf = f"{conf or '[Supervisor]'}\nStateDirectory={self.path('state')}\n"
        if conf:
            self.write("troupe.conf", conf)
        for name, body in (groups or {}).items():
            self.write(name + ".group", body)
        self.command = [*wrapper, program, "--config", self.config, "--socket", self.socket_path, *options]
        self.environment = {**os.environ, **(environment or {})}
        self.notify = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_CLOEXEC)
        self.notify.bind(os.path.join(self.directory, "notify"))
        self.environment["NOTIFY_SOCKET"] = os.path.join(self.directory, "notify")
        self.told = []
        self.bells = 0
        self.process = None
        self.connections = contextlib.ExitStack()
        test.addCleanup(self.clean_up)

    def write(self, name, body):
        path = os.path.join(self.config, name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        Path(path).write_text(body, encoding="utf-8")
        return path

    def path(self, name):
        return os.path.join(self.directory, name)

    def with_faults(self, fault=None):
        """The build with fault points is what starts from now on."""
        self.command = [FAULTY_TROUPED if word == TROUPED else word for word in self.command]
        if fault:
            self.environment["TROUPE_FAULT"] = fault
        return self

    def with_failing_syncs(self):
        """No sync of the store succeeds while there is a file "fails"."""
        if SANITIZED:
            self.test.skipTest("needs a library before all others")
        self.environment.update(LD_PRELOAD=helper("preload/failing-sync.so"), FAILING_SYNC=self.path("fails"))
        return self

    def with_full_disk(self):
        """The store can write nothing while there is a file "full"."""
        if SANITIZED:
            self.test.skipTest("needs a library before all others")
        self.environment.update(LD_PRELOAD=helper("preload/failing-disk.so"), FULL_DISK=self.path("full"))
        return self

    # ---- life

    def spawn(self, **options):
        if FAULTY_TROUPED in self.command and not os.path.exists(FAULTY_TROUPED):
            self.test.skipTest("no build with fault points")
        with contextlib.suppress(BlockingIOError):
            while self.notify.recv(65536, socket.MSG_DONTWAIT):  # what an earlier process has said
                pass
        self.told = []
        self.crashed = False
        self._wait_for_former()
        with open(self.log_path, "ab") as log:
            self.process = subprocess.Popen(self.command, stdin=subprocess.DEVNULL, stdout=log, stderr=log,
                                            env=self.environment, **options)
        self.pidfd = os.pidfd_open(self.process.pid)
        self.connections.callback(os.close, self.pidfd)
        return self

    def _wait_for_former(self):
        """A supervisor whose main process was killed ends a moment later, and serves the socket until then."""
        for name in os.listdir("/proc") if self.process else ():
            with contextlib.suppress(FileNotFoundError, ProcessLookupError):
                if name.isdigit() and self._is_supervisor(name):
                    with open(os.pidfd_open(int(name)), "rb") as former, open(f"/proc/{name}/cmdline", "rb") as file:
                        if self.config.encode() in file.read().split(b"\0") and not ended(former, LIMIT):
                            self.test.fail(f"a former supervisor has not ended within {LIMIT} s")

    def start(self, **options):
        self.spawn(**options)
        self.wait_told("READY=1")
        return self

    def wait_told(self, line):
        """Waits until it has sent this line to its service manager."""
        if not self.tells(line):
            self.test.fail(f"trouped ended with {self.process.wait()} before it said {line}")

    def tells(self, line):
        """Waits until it has sent this line to its service manager; returns False if it ends before."""
        poll = select.poll()
        poll.register(self.notify, select.POLLIN)
        poll.register(self.pidfd, select.POLLIN)
        limit = time.monotonic() + LIMIT
        while line not in self.told:
            ready = poll.poll(max(0, limit - time.monotonic()) * 1000)
            if not ready:
                self.test.fail(f"trouped has not said {line} within {LIMIT} s")
            if any(fd == self.notify.fileno() for fd, _ in ready):
                self.told += self.notify.recv(65536).decode().split("\n")
            else:
                return False
        return True

    def wait_end(self, limit=LIMIT):
        """Waits for its end. Returns the exit status."""
        if not ended(self.pidfd, limit):
            self.test.fail(f"trouped has not ended within {limit} s")
        return self.process.wait()

    def kill(self):
        """Kills the main process with SIGKILL, and waits for the supervisor's end, too."""
        supervisor = os.pidfd_open(self.supervisor_pid)
        self.process.kill()
        self.wait_end()
        if not ended(supervisor, LIMIT):
            self.test.fail(f"the supervisor has not ended within {LIMIT} s after the main process")
        os.close(supervisor)

    def crash(self):
        """Kills the supervisor with SIGKILL, and waits for its end; the main process starts another one."""
        pid = self.supervisor_pid
        supervisor = os.pidfd_open(pid)
        os.kill(pid, signal.SIGKILL)
        if not ended(supervisor, LIMIT):
            self.test.fail(f"the supervisor has not ended within {LIMIT} s")
        os.close(supervisor)
        self.crashed = True

    def crash_into_safe_mode(self):
        """Returns after how many crashes, three within 30 s, the supervisor is in safe mode."""
        crashes = []
        while not self.call("GetInfo")["safe_mode"]:
            crashes.append(time.monotonic())
            self.crash()
            self.test.assertEqual(self.call("GetInfo")["restarts"], len(crashes))
            self.test.assertTrue(len(crashes) <= 3 or crashes[-2] - crashes[-4] > 25, "three crashes within 30 s were not enough")
        self.test.assertGreaterEqual(len(crashes), 3)
        return len(crashes)

    @contextlib.contextmanager
    def stopped(self):
        """Stops the supervisor within the block, which may kill it; the main process runs on."""
        pid = self.supervisor_pid
        os.kill(pid, signal.SIGSTOP)
        while self.status_field("State", pid) != "T":
            os.sched_yield()
        try:
            yield
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGCONT)

    def terminate(self):
        self.process.send_signal(signal.SIGTERM)

    def stop(self):
        """Terminates it, and expects exit status 0 and no process left behind."""
        children = self._family()
        self.terminate()
        self.test.assertEqual(self.wait_end(), 0, "exit status of trouped after SIGTERM")
        self.test.assertEqual([pid for pid in children if os.path.exists(f"/proc/{pid}")], [], "left behind")

    def clean_up(self):
        """Ends one that still runs, with exit status 0 and no process left behind."""
        self.connections.close()
        status, left = 0, []
        if self.process and self.process.poll() is None:
            if self.crashed:  # it ends well only once the next one runs
                with contextlib.suppress(OSError, EOFError, VarlinkError):
                    self.call("GetInfo")
            children = self._family()
            self.process.terminate()
            try:
                status = self.process.wait(LIMIT)
                left = [pid for pid in children if os.path.exists(f"/proc/{pid}")]
            except subprocess.TimeoutExpired:
                self.process.kill()
                status = self.process.wait()
        self.notify.close()
        wrong = (status != 0 or left) and not failed(self.test)
        if wrong or failed(self.test):
            print(f"---- {' '.join(self.command)}\n{self.log()[-20000:]}----", file=sys.stderr)
        elif SANITIZED and ("ERROR: AddressSanitizer" in self.log() or "runtime error:" in self.log()
                            or "ERROR: LeakSanitizer" in self.log()):
            print(self.log()[-20000:], file=sys.stderr)
            shutil.rmtree(self.directory, ignore_errors=True)
            raise AssertionError("a sanitizer has reported an error")
        shutil.rmtree(self.directory, ignore_errors=True)
        if wrong:
            raise AssertionError(f"exit status {status} of trouped after SIGTERM, {left} left behind")

    def log(self):
        if not os.path.exists(self.log_path):
            return ""  # it was never started
        return Path(self.log_path).read_text(encoding="utf-8", errors="replace")

    # ---- calls

    def connect(self):
        return self.connections.enter_context(Varlink(self.socket_path))

    def call(self, method, **parameters):
        with Varlink(self.socket_path) as connection:
            return connection.call(method, **parameters)

    def until_restored(self):
        """Waits until durable jobs are read from disk: new ones wait for that, and that for the disk."""
        self.until(lambda: not any(group.get("restoring") for group in self.call("GetStatus")["groups"]))

    def group(self, name):
        return self.call("GetStatus", target=name)["groups"][0]

    def cell(self, name):
        """None if there is no such cell."""
        group, _, key = name.partition("/")
        return next((c for c in self.group(group)["cells"] if c["key"] == key), None)

    def workers(self, group):
        """The workers of a group and of all its cells."""
        group = self.group(group)
        return group["workers"] + [w for c in group.get("cells", []) for w in c["workers"]]

    def worker(self, name):
        [worker] = [w for w in self.workers(name.split("/")[0]) if w["name"] == name and "replacement" not in w]
        return worker

    def wait_for(self, condition, target=None):
        """Evaluates the condition after each event until it is true. Returns its value."""
        with Varlink(self.socket_path) as watch:
            watch.send("Watch", {"target": target, "replay": True} if target else {"replay": True}, more=True)
            while True:
                try:
                    watch.reply()
                except socket.timeout:
                    self.test.fail("an expected state was not reached")
                value = condition()
                if value:
                    return value

    def until(self, condition):
        """As wait_for(), for conditions that have no event: evaluates after each round trip to the supervisor."""
        limit_at = time.monotonic() + LIMIT
        while True:
            self.call("GetInfo")
            value = condition()
            if value:
                return value
            if time.monotonic() > limit_at:
                self.test.fail("an expected state was not reached")

    def wait_worker(self, name, state):
        return self.wait_for(lambda: (lambda w: w if w["state"] == state else None)(self.worker(name)),
                             name.split("/")[0])

    def wait_not_started(self, name, why):
        """Waits until its status says why this worker could not be started; it is tried again and again."""
        self.until(lambda: self.worker(name).get("status") == f"could not be started: {why}")
        self.until(lambda: f"could not be started: {why}" in self.ctl("status", name).stdout)

    def wait_event(self, kind, target=None, count=1):
        """The count-th event of this type since the start."""
        with Varlink(self.socket_path) as watch:
            for answer in watch.more("Watch", replay=True, **({"target": target} if target else {})):
                for event in answer["events"]:
                    count -= event["type"] == kind
                    if count == 0:
                        return event

    def create(self, group, data=None, **options):
        parameters = {"group": group, "options": options}
        if data is not None:
            parameters["payload"] = text(data)
        return self.call("Create", **parameters)["id"]

    def do(self, group, data=None, **options):
        parameters = {"group": group, "options": options}
        if data is not None:
            parameters["payload"] = text(data)
        return self.call("Do", **parameters)["job"]

    def pages(self, method, array, limit=1000, **parameters):
        """All items that a method lists, and the number of pages."""
        items, pages, answer = [], 0, {"next": None}
        while "next" in answer:
            cursor = {"cursor": answer["next"]} if pages else {}
            answer = self.call(method, limit=limit, **cursor, **parameters)
            items += answer[array]
            pages += 1
        return items, pages

    def busy(self, group, then="echo done", first="", n=None, **options):
        """Has a job begun, which goes on when a bell rings. Returns its id, or those of n jobs, and the bell."""
        self.bells += 1
        begun, go = Bell(self, f"begun-{self.bells}"), Bell(self, f"go-{self.bells}")
        ids = [self.create(group, f"{first}ring {begun.path}\nwait {go.path}\n{then}", **options) for _ in range(n or 1)]
        begun.wait(len(ids))
        return ids if n else ids[0], go

    def job(self, id):
        return self.call("Get", id=id)["job"]

    def wait_job(self, id):
        return self.call("Wait", id=id)["job"]

    def wait_job_state(self, id, state):
        """Waits until a reply has shown the job in this state."""
        with Varlink(self.socket_path) as watch:
            for answer in watch.more("Get", id=id):
                if answer["job"]["state"] == state:
                    return answer["job"]
        self.test.fail(f"job {id} was never seen {state}")

    def deaths(self, target=None):
        return self.call("ListDeaths", **({"target": target} if target else {}))["deaths"]

    def ctl(self, *arguments, input=None, check=False, **options):
        """Runs troupectl, with text as input and output."""
        process = subprocess.run([TROUPECTL, "--socket", self.socket_path, *arguments], input=input, text=True,
                                 capture_output=True, timeout=LIMIT, **options)
        if check and process.returncode != 0:
            self.test.fail(f"troupectl {' '.join(arguments)} ended with {process.returncode}: {process.stderr}")
        return process

    def ctl_json(self, *arguments, **options):
        return json.loads(self.ctl("--json", *arguments, check=True, **options).stdout)

    # ---- processes

    @property
    def supervisor_pid(self):
        """The process with the event loop; the main process, its parent, is the keeper. Waits for it between two of them."""
        limit_at = time.monotonic() + LIMIT
        while True:
            for pid in self._family():
                with contextlib.suppress(FileNotFoundError, ProcessLookupError):
                    if self._is_supervisor(pid) and self.status_field("State", pid) not in "ZX":
                        return pid
            if self.process.poll() is not None or time.monotonic() > limit_at:
                self.test.fail("there is no supervisor")
            os.sched_yield()

    def _family(self):
        """Children of the main process."""
        pid = self.process.pid
        return [int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text(encoding="ascii").split()]

    @staticmethod
    def _runs_program(pid, name="trouped-supervi"):
        """Whether it runs the supervisor's program: as the supervisor, or as the check of an upgrade."""
        with contextlib.suppress(FileNotFoundError, ProcessLookupError):
            return Path(f"/proc/{pid}/comm").read_text(encoding="ascii") == name + "\n"
        return False

    @staticmethod
    def _is_helper(pid):
        """Whether it is a supervisor or a helper of one, which may end after its supervisor has: trouped-taker and so on."""
        with contextlib.suppress(FileNotFoundError, ProcessLookupError):
            return Path(f"/proc/{pid}/comm").read_text(encoding="ascii").startswith("trouped-")
        return False

    def pumps(self):
        """The processes that copy the output of services."""
        return [pid for pid in self._family() if self._runs_program(pid, "trouped-pump")]

    def _is_supervisor(self, pid):
        with open(f"/proc/{pid}/cmdline", "rb") as file:
            arguments = file.read().split(b"\0")[:-1]  # none once it ends
        return bool(arguments) and b"--check" not in arguments and self._runs_program(pid)

    def fds(self):
        """What its descriptors refer to. Empty without root: a supervisor is not dumpable, so /proc/PID/fd is root's."""
        found = []
        if os.geteuid() != 0:
            return found
        for entry in scandir(f"/proc/{self.supervisor_pid}/fd"):
            with contextlib.suppress(FileNotFoundError):  # closed meanwhile
                found.append(os.readlink(entry.path))
        return sorted(found)

    def n_fds_between_turns(self):
        """The number of its descriptors, once the turn in which its workers became ready has ended."""
        for _ in range(3):
            self.call("GetInfo")
        return len(self.fds())

    def children(self):
        """Workers and services. The keeper tells of an end just before it reaps, so this waits for those it has to reap."""
        limit_at = time.monotonic() + LIMIT
        while True:
            children = [pid for pid in self._family() if not self._is_helper(pid)]
            if not any(self._is_zombie(pid) for pid in children):
                return children
            if time.monotonic() > limit_at:
                self.test.fail(f"one of {children} is not reaped")
            os.sched_yield()

    def _is_zombie(self, pid):
        with contextlib.suppress(FileNotFoundError, ProcessLookupError):
            return self.status_field("State", pid) in "ZX"
        return True  # reaped meanwhile: what was read is out of date

    def status_field(self, name, pid=None):
        with open(f"/proc/{pid or self.supervisor_pid}/status", encoding="ascii") as file:
            for line in file:
                if line.startswith(name + ":"):
                    value = line.split()[1]
                    return int(value) if value.isdigit() else value
        raise KeyError(name)


def scandir(path):
    with os.scandir(path) as entries:
        for entry in entries:
            with contextlib.suppress(FileNotFoundError):
                entry.stat(follow_symlinks=False)
                yield entry


def failed(test):
    outcome = test._outcome
    result = getattr(outcome, "result", None)
    return bool(result and (result.failures or result.errors)) or not getattr(outcome, "success", True)


class Cgroup:
    """A cgroup of its own for a supervisor that is started with its wrapper."""

    MOUNT = next((path for path in ("/sys/fs/cgroup", "/sys/fs/cgroup/unified")
                  if os.access(os.path.join(path, "cgroup.subtree_control"), os.W_OK)), None)

    @classmethod
    def available(cls):
        return cls.MOUNT is not None and os.geteuid() == 0

    def __init__(self, test):
        self.path = tempfile.mkdtemp(prefix="troupe-e2e-", dir=self.MOUNT)
        os.setxattr(self.path, "user.delegate", b"1")
        self.wrapper = ["/bin/sh", "-c", f'echo $$ >{self.path}/cgroup.procs; exec "$0" "$@"']
        test.addCleanup(self.remove)

    def slots(self):
        """The cgroups of workers and services."""
        return sorted(name for name in os.listdir(self.path) if ":" in name)

    def remove(self):
        for directory, _, _ in os.walk(self.path, topdown=False):
            while os.path.exists(directory):
                with contextlib.suppress(OSError):
                    os.rmdir(directory)
                    break
                Path(os.path.join(directory, "cgroup.kill")).write_text("1", encoding="ascii")


class Bell:
    """A FIFO by which a worker reports its progress to a test, or a test lets a worker continue."""

    def __init__(self, supervisor, name):
        self.path = supervisor.path(name)
        os.mkfifo(self.path, 0o666)
        self.fd = os.open(self.path, os.O_RDWR | os.O_NONBLOCK | os.O_CLOEXEC)
        supervisor.connections.callback(os.close, self.fd)

    def wait(self, lines=1):
        got = b""
        while got.count(b"\n") < lines:
            ready, _, _ = select.select([self.fd], [], [], LIMIT)
            if not ready:
                raise AssertionError(f"no line came through {self.path}")
            got += os.read(self.fd, 1)
        return got.decode().split("\n")[:-1]

    def ring(self, times=1):
        os.write(self.fd, b"\n" * times)


def can_mount():
    """Whether [Sandbox] can do all that it offers: a mount namespace needs CAP_SYS_ADMIN."""
    return os.getuid() == 0 and subprocess.run(["unshare", "--mount", "true"], capture_output=True, check=False).returncode == 0


def ini(exec_start, **sections):
    """A group file: ini("/bin/x", Pool={"Size": 2})."""
    group = {"ExecStart": exec_start, **sections.pop("Group", {})}
    if SANITIZED:  # a signal must kill the worker, not the sanitizer's exit
        own = group.get("Environment", [])
        group["Environment"] = [*([own] if isinstance(own, str) else own), "ASAN_OPTIONS=handle_segv=0:handle_abort=0"]
    out = []
    for section, keys in {"Group": group, **sections}.items():
        out.append(f"[{section}]")
        for key, value in keys.items():
            for one in value if isinstance(value, (list, tuple)) else [value]:
                out.append(f"{key}={one}")
    return "\n".join(out) + "\n"


class TestCase(unittest.TestCase):
    maxDiff = None

    def supervisor(self, groups=None, **options):
        return Supervisor(self, groups, **options)

    def started(self, groups=None, **options):
        return self.supervisor(groups, **options).start()

    @contextlib.contextmanager
    def without_supervisor(self, s):
        """The supervisor is killed; the next one starts at the end of the block."""
        keeper = s.process.pid
        os.kill(keeper, signal.SIGSTOP)
        try:
            s.crash()
            yield
        finally:
            os.kill(keeper, signal.SIGCONT)

    def mount_state(self, s, *options):
        """Gives the directory state a file system of its own, in memory."""
        if os.geteuid() != 0:
            self.skipTest("mounting needs root")
        os.mkdir(s.path("state"))
        if subprocess.run(["mount", "-t", "tmpfs", *options, "tmpfs", s.path("state")], check=False).returncode:
            self.skipTest("mounting does not work here")
        self.addCleanup(subprocess.run, ["umount", "-l", s.path("state")], check=False)

    @contextlib.contextmanager
    def chaos(self, s, *arguments):
        """Runs the client chaos, which submits until the block ends. Yields its counts, which are there afterwards."""
        counts = {}
        with subprocess.Popen([helper("chaos"), s.socket_path, *arguments], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                              text=True) as client:
            try:
                yield counts
                counts.update(json.loads(client.communicate("", timeout=LIMIT)[0]))
            finally:
                client.kill()
        print(counts)
        self.assertEqual((client.returncode, counts["doubled"], counts["wrong"], counts["refused"]), (0, 0, 0, 0), counts)

    def assert_idle(self, supervisor, *pids):
        """Expects that the processes use no CPU time while nothing happens."""
        def ticks():
            total = 0
            for pid in pids:
                with open(f"/proc/{pid}/stat", encoding="utf-8") as file:
                    total += sum(int(n) for n in file.read().rpartition(")")[2].split()[11:13])
            return total
        before = ticks()
        ended(supervisor.pidfd, 1)  # nothing is expected to happen for so long
        self.assertLess(ticks() - before, 5)

    def wait_logged(self, s, words, count=1):
        """For a supervisor that does not answer."""
        limit_at = time.monotonic() + LIMIT
        while s.log().count(words) < count:
            self.assertLess(time.monotonic(), limit_at, "an expected line was not logged")
            os.sched_yield()

    def refused(self, name, function, /, *arguments, **options):
        """Expects this Varlink error. Returns its parameters."""
        with self.assertRaises(VarlinkError) as caught:
            function(*arguments, **options)
        self.assertEqual(caught.exception.name, name, caught.exception)
        return caught.exception.parameters


QUICK = {"MinSec": "1ms", "MaxSec": "5ms", "StartLimitBurst": 0}


def actor(size=1, program=ACTOR, **sections):
    """A group of workers that are restarted at once, and whose jobs are."""
    return ini(program, **{"Pool": {"Size": size}, "Restart": QUICK, "Jobs": {"BackoffMinSec": "1ms"}, **sections})


def service(program, **sections):
    return ini(program, **{"Restart": QUICK, **sections, "Group": {"Type": "service", **sections.get("Group", {})}})


def limit(seconds):
    """Decorates a test that may take so many seconds."""
    def decorate(function):
        function.timeout = seconds
        return function
    return decorate
