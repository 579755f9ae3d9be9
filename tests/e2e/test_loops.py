# SPDX-License-Identifier: MIT
"""Workers and clients in event loops of their own, and their use by other threads."""

import os
import subprocess
import sys
import time
import unittest

from troupe import BUILD, SANITIZED, Bell, TestCase, example, helper, ini

# Waits for a result without limit; after a line of standard input, another thread ends the wait.
WAITING = """
import ctypes, sys, threading
library = ctypes.CDLL(sys.argv[1])
client, result = ctypes.c_void_p(), (ctypes.c_size_t * 64)()
result[0] = ctypes.sizeof(result)
assert library.troupe_client_connect(ctypes.byref(client), sys.argv[2].encode()) == 0
def wake():
    sys.stdin.readline()
    library.troupe_client_wake(client)
threading.Thread(target=wake, daemon=True).start()
print("ready", flush=True)
print(library.troupe_client_next(client, result, ctypes.c_uint64(2**64 - 1)), flush=True)
"""


class Loops(TestCase):
    def test_a_worker_in_an_epoll_loop_does_jobs_and_hears_others(self):
        for wake in "futex", "eventfd":
            with self.subTest(wake=wake):
                s = self.supervisor(options=["--wake", wake])
                fifo = Bell(s, "notes")
                s.write("loop.group", ini(f"{example('epoll')} {fifo.path}"))
                s.start()
                self.assertEqual(s.do("loop", "")["state"], "succeeded")
                os.write(fifo.fd, b"noted\n")
                s.until(lambda s=s: s.do("loop", "").get("result", {}).get("data") == "noted\n")
                jobs = [s.create("loop", "") for _ in range(200)]
                self.assertEqual({s.wait_job(id)["state"] for id in jobs}, {"succeeded"})
                self.assert_idle(s, s.worker("loop/0")["pid"])
                s.stop()  # the request to stop reaches it as well
                self.assertIn("loop/0 stopped: exited with status 0", s.log())

    def test_a_client_in_an_sd_event_loop_takes_results_as_they_come(self):
        for wake in "futex", "eventfd":
            with self.subTest(wake=wake):
                s = self.started({"actor": ini(helper("workers/actor"))}, options=["--wake", wake])
                bell = Bell(s, "bell")
                with subprocess.Popen([example("sd-event"), "actor"], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                      text=True, env={**os.environ, "TROUPE_SOCKET": s.socket_path}) as client:
                    for line in "echo one", f"wait {bell.path}", "reject 3 no":
                        client.stdin.write(line + "\n")
                        client.stdin.flush()
                        if line.startswith("wait"):
                            bell.ring()
                        self.assertIn(client.stdout.readline(), ("succeeded: one\n", "succeeded: \n", "rejected: no\n"))
                    self.assert_idle(s, client.pid)
                    client.stdin.close()
                    self.assertEqual((client.stdout.read(), client.wait()), ("", 0))
                s.stop()

    def test_a_client_in_an_sd_event_loop_ends_with_the_supervisor(self):
        s = self.started({"actor": ini(helper("workers/actor"))})
        with subprocess.Popen([example("sd-event"), "actor"], stdin=subprocess.PIPE, stderr=subprocess.PIPE,
                              stdout=subprocess.PIPE, text=True, env={**os.environ, "TROUPE_SOCKET": s.socket_path}) as client:
            client.stdin.write("echo\n")
            client.stdin.flush()
            self.assertEqual(client.stdout.readline(), "succeeded: \n")
            s.stop()
            self.assertEqual((client.wait(), client.stderr.read()), (1, "sd-event: Broken pipe\n"))


@unittest.skipIf(SANITIZED, "the interpreter does not load a library with a sanitizer")
class Threads(TestCase):
    def waiting(self, s):
        process = subprocess.Popen([sys.executable, "-c", WAITING, f"{BUILD}/libtroupe.so.2", s.socket_path],
                                   stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.addCleanup(process.communicate)
        self.addCleanup(process.kill)
        self.assertEqual(process.stdout.readline(), "ready\n")
        return process

    def switches(self, process):
        with open(f"/proc/{process.pid}/status", encoding="utf-8") as file:
            return int(next(line for line in file if line.startswith("voluntary_ctxt_switches")).split()[1])

    def test_an_idle_client_sleeps_until_something_happens(self):
        for wake in "futex", "eventfd":
            with self.subTest(wake=wake):
                s = self.started({"actor": ini(helper("workers/actor"))}, options=["--wake", wake])
                process = self.waiting(s)

                def sleeps(process=process):
                    before = self.switches(process)
                    time.sleep(0.3)
                    return self.switches(process) == before
                s.until(sleeps)
                before = self.switches(process)
                time.sleep(2.5)  # longer than any sleep that has a limit
                self.assertEqual(self.switches(process) - before, 0)
                s.stop()
                self.assertEqual(process.stdout.readline(), "-32\n")

    def test_another_thread_ends_a_clients_wait(self):
        for wake in "futex", "eventfd":
            with self.subTest(wake=wake):
                s = self.started({"actor": ini(helper("workers/actor"))}, options=["--wake", wake])
                process = self.waiting(s)
                process.stdin.write("\n")
                process.stdin.flush()
                self.assertEqual(process.stdout.readline(), "-4\n")
                s.stop()
