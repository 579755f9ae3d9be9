# SPDX-License-Identifier: MIT
"""When memory runs out, requests are refused, and nothing else changes."""
import mmap
import resource
import struct
import unittest

from troupe import ACTOR, SANITIZED, TestCase, VERSION, Varlink, VarlinkError, helper, ini, text

JOB = 60000
MIB = 1 << 20


@unittest.skipIf(SANITIZED, "a sanitizer needs its address space")
class AddressSpace(TestCase):
    def with_little(self, size):
        def limit():
            resource.setrlimit(resource.RLIMIT_AS, (size, size))
        s = self.supervisor({"actor": ini(ACTOR, Jobs={"QueueMax": 100000, "QueueMemoryMax": "1G"})})
        return s.start(preexec_fn=limit)

    def create(self, s):
        """Whether a job is accepted, through a connection of its own."""
        try:
            with Varlink(s.socket_path) as connection:
                connection.call("Create", group="actor", payload=text("x" * JOB))
            return True
        except (VarlinkError, EOFError, ConnectionError):
            return False

    def survives(self, size):
        s = self.with_little(size)
        s.call("Pause", target="actor")
        accepted = 0
        while self.create(s):
            accepted += 1
            self.assertLess(accepted * JOB, size)
        for _ in range(200):
            accepted += self.create(s)
        self.assertIsNone(s.process.poll(), s.log()[-2000:])
        self.assertEqual(s.call("GetInfo")["jobs"], accepted)
        s.stop()

    def test_jobs_beyond_the_memory_are_refused(self):
        for size in 48, 64, 96, 128:
            with self.subTest(size=size):
                self.survives(size * MIB)


@unittest.skipIf(SANITIZED, "a sanitizer has its own malloc")
class Allocations(TestCase):
    """Fails each allocation on the way of a request once."""

    def setUp(self):
        s = self.supervisor({"actor": ini(ACTOR), "paused": ini(ACTOR, Jobs={"QueueMax": 100000})})
        path = s.path("plan")
        with open(path, "wb") as file:
            file.write(bytes(16))
        with open(path, "r+b") as file:
            self.plan = mmap.mmap(file.fileno(), 16)
        self.addCleanup(self.plan.close)
        s.environment.update(LD_PRELOAD=helper("preload/failing-malloc.so"), FAILING_MALLOC=path)
        self.s = s.start()
        s.call("Pause", target="paused")
        s.do("actor", "echo")

    def attempt(self, method, parameters, more):
        try:
            with Varlink(self.s.socket_path) as connection:
                connection.send(method, parameters, **({"more": True} if more else {}))
                connection.receive()
        except (EOFError, ConnectionError):
            pass

    def walk(self, method, parameters=None, more=False):
        """Returns the number of allocations."""
        for nth in range(1, 1000):
            given = parameters() if callable(parameters) else parameters
            self.plan[:] = struct.pack("=QQ", 0, nth)
            self.attempt(method, given, more)
            count, _ = struct.unpack("=QQ", self.plan[:])
            self.plan[:] = bytes(16)
            self.assertIsNone(self.s.process.poll(), f"{method}: allocation {nth}\n{self.s.log()[-3000:]}")
            self.assertEqual(self.s.call("GetInfo")["state"], "running")
            if count < nth:
                return nth - 1
        self.fail(f"{method} does not end")

    def test_of_requests_that_change_something(self):
        payload = text("x" * JOB)
        self.assertGreater(self.walk("Create", {"group": "paused", "payload": payload}), 20)
        ids = iter(range(100000))
        self.walk("Create", lambda: {"group": "paused", "payload": payload, "options": {
            "id": f"job{next(ids)}", "delay_usec": 3600000000, "max_retries": 3, "key": "k"}})
        self.walk("Cancel", lambda: {"id": self.s.create("paused")})
        self.walk("Do", {"group": "actor", "payload": text("echo")})
        self.walk("Attach", {"version": VERSION})
        self.walk("Stop", {"target": "actor", "wait": True})
        self.walk("Start", {"target": "actor", "wait": True})
        self.walk("Resize", {"target": "actor", "size": 2})
        self.assertEqual(self.s.do("actor", "echo on")["result"], text("on"))
        self.s.stop()

    def test_of_requests_that_ask_for_something(self):
        for i in range(50):
            self.s.create("paused", "x" * 100, id=f"job{i}")
        for more in False, True:
            for method in "GetStatus", "List", "ListDeaths":
                self.walk(method, more=more)
        self.walk("Watch", {"replay": True}, more=True)
        self.walk("Get", {"id": "job1"})
        self.walk("GetLog", {"target": "actor"})
        self.assertEqual(self.s.do("actor", "echo on")["result"], text("on"))
        self.s.stop()


if __name__ == "__main__":
    unittest.main()
