# SPDX-License-Identifier: MIT
"""A real troupe-web for the tests, and what a browser does with it. Waits for events, as troupe.py."""
import contextlib
import http.client
import json
import os
import re
import select
import signal
import socket
import subprocess
import sys

from troupe import BUILD, LIMIT, ended, failed

TROUPE_WEB = os.path.join(BUILD, "troupe-web")
TOKEN = "a-token-of-the-tests-0123456789"


class Web:
    """troupe-web on a port of its own. Ends with the test."""

    def __init__(self, test, socket_path, *options, host="127.0.0.1", **popen):
        self.test = test
        command = [TROUPE_WEB, "--socket", socket_path, "--listen", f"{host}:0", *options]
        self.process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stderr=subprocess.PIPE, **popen)
        self.pidfd = os.pidfd_open(self.process.pid)
        test.addCleanup(self.clean_up)
        self.log = b""
        self.port = int(self._wait_line(rb"listening on http://\S+:(\d+)/\n")[1])
        self.name = f"{host}:{self.port}"

    def _wait_line(self, pattern):
        while not (match := re.search(pattern, self.log)):
            if not select.select([self.process.stderr], [], [], LIMIT)[0]:
                self.test.fail(f"troupe-web has not said {pattern} within {LIMIT} s")
            data = os.read(self.process.stderr.fileno(), 1 << 16)
            if not data:
                self.test.fail(f"troupe-web ended: {self.log.decode()}")
            self.log += data
        return match

    def clean_up(self):
        self.process.terminate()
        if not ended(self.pidfd, LIMIT):
            self.process.kill()
            self.test.fail("troupe-web has not ended after SIGTERM")
        os.close(self.pidfd)
        status = self.process.wait()
        self.log += self.process.stderr.read()
        self.process.stderr.close()
        if failed(self.test) or status != 0:
            print(f"---- troupe-web\n{self.log.decode(errors='replace')[-20000:]}----", file=sys.stderr)
        self.test.assertEqual(status, 0, "exit status of troupe-web after SIGTERM")

    @contextlib.contextmanager
    def stopped(self):
        """Stops troupe-web within the block."""
        self.process.send_signal(signal.SIGSTOP)
        os.waitid(os.P_PID, self.process.pid, os.WSTOPPED | os.WNOWAIT)
        try:
            yield
        finally:
            self.process.send_signal(signal.SIGCONT)

    def descriptors(self):
        return len(os.listdir(f"/proc/{self.process.pid}/fd"))

    def ask(self, path, method="GET", body=None, **headers):
        """The status, the headers, and the body. Names of headers have _ for -; a None leaves one out."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=LIMIT)
        connection.putrequest(method, path, skip_host=True, skip_accept_encoding=True)
        fields = {"Host": self.name, **{name.replace("_", "-"): value for name, value in headers.items()}}
        if body is not None:
            fields.setdefault("Content-Length", str(len(body)))
        for name, value in fields.items():
            for one in value if isinstance(value, list) else [value]:
                if one is not None:
                    connection.putheader(name, one)
        connection.endheaders(body)
        response = connection.getresponse()
        result = response.status, response.headers, response.read()
        connection.close()
        return result

    def status(self, path, method="GET", body=None, **headers):
        return self.ask(path, method, body, **headers)[0]

    def get(self, path, **headers):
        """The JSON that a path answers with."""
        status, _, body = self.ask(path, **headers)
        if status != 200:
            raise AssertionError(f"{path}: {status} {body.decode()}")
        return json.loads(body)

    def post(self, path, data, token=TOKEN, **headers):
        """The status and the JSON."""
        headers = {"Content_Type": "application/json", "Authorization": token and f"Bearer {token}", **headers}
        status, _, body = self.ask(path, "POST", json.dumps(data).encode(), **headers)
        return status, json.loads(body)

    def raw(self, data=b""):
        """A connection on which these bytes were sent."""
        connection = socket.create_connection(("127.0.0.1", self.port), timeout=LIMIT)
        self.test.addCleanup(connection.close)
        connection.sendall(data)
        return connection

    def events(self, path="/api/events", **headers):
        return Events(self, path, headers)


class Events:
    """A stream of events."""

    def __init__(self, web, path, headers):
        self.id = None  # of the last event
        self.connection = http.client.HTTPConnection("127.0.0.1", web.port, timeout=LIMIT)
        web.test.addCleanup(self.connection.close)
        self.connection.request("GET", path, headers={"Host": web.name, **{name.replace("_", "-"): value for name, value in headers.items()}})
        self.response = self.connection.getresponse()
        self.status = self.response.status

    def next(self):
        """The type and the data of the next event."""
        kind = None
        while True:
            line = self.response.readline()
            if not line:
                raise EOFError("the stream has ended")
            name, _, value = line.decode().rstrip("\n").partition(": ")
            if name == "event":
                kind = value
            elif name == "id":
                self.id = value
            elif name == "data":
                return kind, json.loads(value)

    def wait(self, kind, **members):
        """The first event from now on that has all that."""
        while True:
            got, data = self.next()
            if got == kind and members.items() <= data.items():
                return data

    def close(self):
        self.connection.close()
        self.response.close()
