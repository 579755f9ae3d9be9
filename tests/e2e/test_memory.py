# SPDX-License-Identifier: MIT
"""When memory runs out, requests are refused, and nothing else changes."""
import contextlib
import itertools
import mmap
import os
import resource
import struct
import unittest

from troupe import ACTOR, SANITIZED, TestCase, VERSION, Varlink, VarlinkError, helper, ini, text

ACTORS = "io.troupe.Actors."
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
        self.pid = s.supervisor_pid
        s.call("Pause", target="paused")
        s.do("actor", "echo")

    def attempt(self, method, parameters, more):
        """Returns the reply, or None if there is none."""
        try:
            with Varlink(self.s.socket_path) as connection:
                connection.send(method, parameters, **({"more": True} if more else {}))
                return connection.receive()
        except (EOFError, ConnectionError):
            return None

    def walk(self, method, parameters=None, more=False):
        """Returns the number of allocations. Nothing fails in the last round."""
        for nth in range(1, 1000):
            given = parameters() if callable(parameters) else parameters
            self.plan[:] = struct.pack("=QQ", 0, nth)
            reply = self.attempt(method, given, more)
            count, _ = struct.unpack("=QQ", self.plan[:])
            self.plan[:] = bytes(16)
            what = f"{method}: allocation {nth}\n{self.s.log()[-3000:]}"
            self.assertIsNone(self.s.process.poll(), what)
            self.assertEqual(self.s.call("GetInfo")["state"], "running")
            self.assertEqual(self.s.supervisor_pid, self.pid, what)  # otherwise the main process has started another one
            if count < nth:
                self.assertNotIn("error", reply)
                return nth - 1
        self.fail(f"{method} does not end")

    def test_of_requests_that_change_something(self):
        payload = text("x" * JOB)
        self.assertGreater(self.walk("Create", {"group": "paused", "payload": payload}), 8)
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

    def test_of_a_start(self):
        self.s.stop()
        for nth in itertools.count(1):
            with open(self.s.log_path, "w", encoding="utf-8"):
                pass
            self.plan[:] = struct.pack("=QQ", 0, nth)
            ready = self.s.spawn().tells("READY=1")
            count, _ = struct.unpack("=QQ", self.plan[:])
            self.plan[:] = bytes(16)
            if ready:
                self.s.kill()
            elif self.s.process.wait() != 1 or "trouped: " not in self.s.log() or "was killed" in self.s.log():
                self.fail(f"allocation {nth}\n{self.s.log()}")
            if count < nth:
                break
        self.assertGreater(nth, 100)
        self.assertTrue(ready)

    def test_of_a_reload(self):
        numbers = itertools.count()

        def change(settings):
            n = next(numbers)
            self.s.write("actor.group", ini(ACTOR, Group={"Environment": f"N={n}"}, Pool={"Size": 1 + n % 3}))
            self.s.write(f"new{n}.group", ini(ACTOR, Pool=settings))
            self.s.write(f"post{n}.exchange", "[Exchange]\nType=routing-key\n")
            with contextlib.suppress(FileNotFoundError):
                os.unlink(os.path.join(self.s.config, f"new{n - 1}.group"))
                os.unlink(os.path.join(self.s.config, f"post{n - 1}.exchange"))
            return {}
        for settings in {"Size": 2}, {"Cells": "by-key"}:
            self.assertGreater(self.walk("Reload", lambda s=settings: change(s)), 100)
        self.assertEqual(self.s.do("actor", "echo on")["result"], text("on"))

    def test_of_an_upgrade(self):
        """Some of its allocations; workers go on with the new program or with the old one."""
        pids = {worker["name"]: worker["pid"] for worker in self.s.workers("actor") + self.s.workers("paused")}
        failed = 0
        for nth in itertools.count(10, 17):
            self.plan[:] = struct.pack("=QQ", 0, nth)
            failed += self.s.ctl("upgrade").returncode != 0
            count, _ = struct.unpack("=QQ", self.plan[:])
            self.plan[:] = bytes(16)
            now = {worker["name"]: worker["pid"] for worker in self.s.workers("actor") + self.s.workers("paused")}
            self.assertEqual(now, pids, f"allocation {nth}\n{self.s.log()[-3000:]}")
            if count < nth:  # nothing has failed
                break
            pids = now
            with open(self.s.log_path, "w", encoding="utf-8"):
                pass
        self.assertGreater(failed, 10)
        self.assertEqual(self.s.do("actor", "echo on")["result"], text("on"))

    def test_of_requests_about_groups(self):
        self.walk("Explain", {"target": "paused"})
        self.walk("Restart", {"target": "actor", "wait": True})
        self.walk("Reset", {"target": "actor"})
        self.walk("Wait", lambda: {"id": self.s.create("actor", "echo")})
        for _ in range(20):
            self.s.create("paused")
        self.walk("Drain", {"target": "actor"})
        self.walk("io.troupe.Jobs.CancelAll", {"group": "paused"})

    def test_of_requests_to_actors(self):
        self.s.write("talker.group", ini(helper("workers/player"), Pool={"Size": 2}))
        self.s.call("Reload")
        self.s.wait_worker("talker/0", "idle")
        self.s.call(ACTORS + "CreateExchange", name="post", kind="routing_key")
        numbers = itertools.count()
        letter = {"to": "talker/0", "type": "note", "payload": text("x" * 500)}
        self.walk(ACTORS + "Tell", letter)
        self.walk(ACTORS + "Schedule", {**letter, "delay_usec": 3600000000})
        self.walk(ACTORS + "CreateExchange", lambda: {"name": f"post{next(numbers)}", "kind": "typed_multi"})
        self.walk(ACTORS + "Subscribe", lambda: {
            "exchange": "post", "actor": "talker/0", "type": f"type{next(numbers)}", "key": "k"})
        self.s.call(ACTORS + "Subscribe", exchange="post", actor="talker/0", key="other")
        self.walk(ACTORS + "Tell", {**letter, "to": "post", "key": "other"})
        for method in "ListActors", "ListTimers", "ListExchanges", "ListDeadLetters":
            self.walk(ACTORS + method)
        self.walk(ACTORS + "ListSubscriptions", {"exchange": "post"})
        for method in "Requeue", "Purge":
            self.walk(ACTORS + method, {"filter": {}})
        for method in "Pause", "Resume":
            self.walk(ACTORS + method, {"actor": "talker/0"})

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
