# SPDX-License-Identifier: MIT
"""A NATS server with JetStream in a directory of its own, and as much of a client as the tests need."""
import collections
import contextlib
import itertools
import json
import os
import random
import re
import select
import shutil
import signal
import socket
import ssl
import subprocess
import sys
import tempfile
import time
import unittest
from pathlib import Path

from troupe import BUILD, LIMIT, failed

NATS_SERVER = shutil.which("nats-server") or "/usr/sbin/nats-server"
TROUPE_NATS = os.path.join(BUILD, "troupe-nats")

Message = collections.namedtuple("Message", "subject sid reply headers data")


def require():
    for program in NATS_SERVER, TROUPE_NATS:
        if not os.path.exists(program):
            raise unittest.SkipTest(f"{program} is missing")


def free_port():
    """One that no connection is given as its own, so that a server that ends finds it free again."""
    first = int(Path("/proc/sys/net/ipv4/ip_local_port_range").read_text(encoding="ascii").split()[0])
    while True:
        port = random.randrange(10000, first)
        with contextlib.suppress(OSError), socket.socket() as probe:
            probe.bind(("127.0.0.1", port))
            return port


class Server:
    """nats-server. Keeps its port and its files when it is started again."""

    def __init__(self, test, configuration="", host="127.0.0.1", wrapper=(), certificate=None):
        self.test, self.host, self.wrapper, self.certificate = test, host, wrapper, certificate
        self.directory = tempfile.mkdtemp(prefix="troupe-nats-")
        self.port = free_port()
        self.configuration = configuration
        self.process = None
        self.log_path = os.path.join(self.directory, "log")
        test.addCleanup(self.clean_up)

    @property
    def path(self):
        return os.path.join(self.directory, "server.conf")

    def write(self):
        with open(self.path, "w", encoding="utf-8") as file:
            file.write(f'listen: "{self.host}:{self.port}"\njetstream {{ store_dir: "{self.directory}/data" }}\n'
                       + self.configuration)

    def reload(self, configuration):
        self.configuration = configuration
        self.write()
        self.process.send_signal(signal.SIGHUP)

    def start(self):
        self.write()
        self.process = subprocess.Popen([*self.wrapper, NATS_SERVER, "-c", self.path], stderr=subprocess.PIPE, text=True)
        for line in self.process.stderr:
            if "Server is ready" in line:
                break
        else:
            self.test.fail("nats-server has not started")
        # It must not wait for a reader of its log.
        with open(self.log_path, "ab") as log:
            self.drain = subprocess.Popen(["cat"], stdin=self.process.stderr, stdout=log)
        return self

    def end(self, number=signal.SIGTERM):
        if self.process:
            self.process.send_signal(number)
            self.process.wait(LIMIT)
            self.process.stderr.close()
            self.drain.wait(LIMIT)
            self.process = None

    def clean_up(self):
        self.end(signal.SIGKILL)
        if failed(self.test) and os.path.exists(self.log_path):
            print(f"---- nats-server\n{Path(self.log_path).read_text(encoding='utf-8', errors='replace')[-5000:]}----", file=sys.stderr)
        shutil.rmtree(self.directory, ignore_errors=True)

    @property
    def url(self):
        return f"nats://{self.host}:{self.port}"


class Client:
    """One connection. Reads only when something is waited for."""

    def __init__(self, test, server, limit=LIMIT, **identity):
        self.socket = socket.create_connection((server.host, server.port), limit)
        self.buffer = b""
        self.numbers = itertools.count(1)
        self.queues = collections.defaultdict(collections.deque)
        self.inbox = f"_INBOX.test{os.getpid()}.{id(self)}"
        test.addCleanup(lambda: self.socket.close())
        self._line()
        if server.certificate:
            self.socket = ssl.create_default_context(cafile=server.certificate).wrap_socket(self.socket, server_hostname=server.host)
        self._send("CONNECT " + json.dumps({"verbose": False, "headers": True, "no_responders": True, **identity}))
        self.sid = self.subscribe(self.inbox + ".*")

    def _send(self, line, body=None):
        self.socket.sendall(line.encode() + b"\r\n" + (body + b"\r\n" if body is not None else b""))

    def _fill(self):
        data = self.socket.recv(1 << 16)
        if not data:
            raise EOFError("the server has closed the connection")
        self.buffer += data

    def _line(self):
        while b"\r\n" not in self.buffer:
            self._fill()
        line, _, self.buffer = self.buffer.partition(b"\r\n")
        return line.decode()

    def _bytes(self, size):
        while len(self.buffer) < size + 2:
            self._fill()
        data, self.buffer = self.buffer[:size], self.buffer[size + 2:]
        return data

    def _read(self):
        line = self._line()
        verb, *words = line.split()
        if verb == "PING":
            self._send("PONG")
        elif verb == "MSG":
            subject, sid, *reply, size = words
            self.queues[sid].append(Message(subject, sid, reply[0] if reply else None, {}, self._bytes(int(size))))
        elif verb == "HMSG":
            subject, sid, *reply, head, size = words
            data = self._bytes(int(size))
            first, *lines = data[:int(head)].decode().strip().split("\r\n")
            headers = dict(line.split(": ", 1) if ": " in line else line.split(":", 1) for line in lines)
            headers[""] = first
            self.queues[sid].append(Message(subject, sid, reply[0] if reply else None, headers, data[int(head):]))
        elif verb == "-ERR":
            raise ConnectionError(line)

    def subscribe(self, subject):
        sid = str(next(self.numbers))
        self._send(f"SUB {subject} {sid}")
        return sid

    def next(self, sid):
        while not self.queues[sid]:
            self._read()
        return self.queues[sid].popleft()

    def comes(self, sid, seconds):
        """Whether the subscription has a message, or gets one before the server has been silent for this long."""
        while not self.queues[sid]:
            if not self.buffer and not select.select([self.socket], [], [], seconds)[0]:
                return False
            self._read()
        return True

    def available(self, seconds):
        """The next message of any subscription that comes within this time, if any, and what has come before."""
        if self.buffer or select.select([self.socket], [], [], seconds)[0]:
            self._read()
        return [queue.popleft() for queue in self.queues.values() for _ in range(len(queue))]

    def pending(self, sid):
        """What has come until a round trip has ended."""
        self._send("PING")
        while not self.buffer.startswith(b"PONG") or b"\r\n" not in self.buffer:
            if self.buffer.startswith((b"MSG", b"HMSG", b"PING", b"INFO")):
                self._read()
            else:
                self._fill()
        self._line()
        return list(self.queues[sid])

    def clear(self, sid):
        """Forgets what has come until a round trip has ended."""
        self.pending(sid)
        self.queues[sid].clear()

    def publish(self, subject, data=b"", headers=None, reply=""):
        """Headers that are a list are sent as they are, as lines."""
        data = data.encode() if isinstance(data, str) else data
        if headers is None:
            self._send(f"PUB {subject} {reply} {len(data)}", data)
        else:
            lines = headers if isinstance(headers, list) else [f"{name}: {value}" for name, value in headers.items()]
            head = "".join(line + "\r\n" for line in ("NATS/1.0", *lines, ""))
            self._send(f"HPUB {subject} {reply} {len(head)} {len(head) + len(data)}", head.encode() + data)

    def request(self, subject, data=b"", headers=None):
        self.publish(subject, data, headers, f"{self.inbox}.{next(self.numbers)}")
        return self.next(self.sid)

    def api(self, subject, **parameters):
        limit_at = time.monotonic() + LIMIT
        asked = json.dumps(parameters) if parameters else b""
        # While the server loads its configuration again, it says that nobody answers, or that there is no JetStream.
        while (not (data := self.request("$JS.API." + subject, asked).data) or b'"err_code":10039' in data) and time.monotonic() < limit_at:
            pass
        reply = json.loads(data)
        if "error" in reply:
            raise ValueError(reply["error"])
        return reply

    def store(self, subject, data=b"", headers=None):
        """Publishes to a stream. Returns the number that the message has there."""
        reply = json.loads(self.request(subject, data, headers).data)
        assert "seq" in reply, reply
        return reply["seq"]

    def messages(self, stream):
        return self.api(f"STREAM.INFO.{stream}")["state"]["messages"]

    def until(self, condition):
        """For states of the server that have no event: evaluates after each round trip."""
        limit_at = time.monotonic() + LIMIT
        while True:
            self.request("$JS.API.INFO")
            value = condition()
            if value:
                return value
            if time.monotonic() > limit_at:
                raise AssertionError("an expected state was not reached")


class Bridge:
    """troupe-nats for one group, in the foreground."""

    def __init__(self, test, supervisor, server, group, configuration="", environment=None, wrapper=()):
        self.test, self.group, self.supervisor, self.wrapper = test, group, supervisor, wrapper
        self.config = supervisor.path("nats.conf")
        self.log_path = supervisor.path(f"nats-{group}.log")
        Path(self.config).write_text(f"[Nats]\nURL={server.url}\n{configuration}", encoding="utf-8")
        self.environment = {**os.environ, "TROUPE_SOCKET": supervisor.socket_path,
                            "NOTIFY_SOCKET": supervisor.path(f"nats-{group}-notify"), **(environment or {})}
        self.notify = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_CLOEXEC)
        self.notify.settimeout(LIMIT)
        self.notify.bind(self.environment["NOTIFY_SOCKET"])
        self.process = None
        test.addCleanup(self.clean_up)

    def run(self, *arguments):
        """Another run of the program, to its end."""
        return subprocess.run([*self.wrapper, TROUPE_NATS, "--config", self.config, *arguments], env=self.environment, capture_output=True,
                              text=True, timeout=LIMIT)

    def setup(self):
        done = self.run("setup", self.group)
        self.test.assertEqual(done.returncode, 0, done.stderr)
        return self

    def start(self):
        with open(self.log_path, "ab") as log:
            self.process = subprocess.Popen([*self.wrapper, TROUPE_NATS, "--config", self.config, "serve", self.group],
                                            env=self.environment, stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        return self

    def wait_told(self, text):
        """Waits until it has sent this to its service manager."""
        while True:
            try:
                told = self.notify.recv(65536).decode()
            except TimeoutError:
                self.test.fail(f"troupe-nats has not said {text!r}; its log:\n{self.log()}")
            if text in told:
                return told

    def end(self, number=signal.SIGTERM):
        """Returns its exit status."""
        self.process.send_signal(number)
        return self.process.wait(LIMIT)

    def reads(self):
        """How many reads its main thread has done, at least one for each time that it woke up."""
        with open(f"/proc/{self.process.pid}/task/{self.process.pid}/io", encoding="ascii") as file:
            return int(re.search(r"syscr: (\d+)", file.read())[1])

    def log(self):
        return Path(self.log_path).read_text(encoding="utf-8", errors="replace")

    def clean_up(self):
        if self.process and self.process.poll() is None:
            self.process.kill()
            self.process.wait()
        self.notify.close()
