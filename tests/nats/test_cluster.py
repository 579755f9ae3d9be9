# SPDX-License-Identifier: MIT
"""Three NATS servers with three replicas, and three machines, of which one or the other dies now and then.

TESTS_NATS_JOBS= and TESTS_NATS_BLOWS= say how many jobs and deaths; the seed is printed, and TESTS_SEED= repeats it.
"""
import collections
import os
import random
import signal
import socket
import sys
import time
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "e2e"))

import nats
from test_nats import JOBS, Case, actor
from troupe import LIMIT, limit

N_JOBS = int(os.environ.get("TESTS_NATS_JOBS", "600"))
N_BLOWS = int(os.environ.get("TESTS_NATS_BLOWS", "12"))
PATIENCE = 3.0  # seconds, with a server that may be stopped
SEED = int(os.environ.get("TESTS_SEED", random.randrange(1 << 32)))


def free_ports(n):
    sockets = [socket.socket() for _ in range(n)]
    for each in sockets:
        each.bind(("127.0.0.1", 0))
    ports = [each.getsockname()[1] for each in sockets]
    for each in sockets:
        each.close()
    return ports


class Cluster(Case):
    def start_servers(self):
        ports = free_ports(6)
        routes = ", ".join(f'"nats://127.0.0.1:{port}"' for port in ports[:3])
        self.servers = []
        for n in range(3):
            server = nats.Server(self, f'server_name: "n{n}"\ncluster {{ name: "c", listen: "127.0.0.1:{ports[n]}", '
                                       f'routes: [{routes}] }}\n')
            server.port = ports[3 + n]
            self.servers.append(server)
        for server in self.servers:
            server.start()

    def start_machines(self):
        self.machines = []
        for n in range(3):
            s = self.supervisor({"actor": actor(2, MaxRetries=100, Durable="yes" if n == 0 else "no")})
            s.write("troupe.conf", f"[Supervisor]\nStateDirectory={s.path('state')}\n")
            s.start()
            everywhere = type("Everywhere", (), {"url": ",".join(server.url for server in self.servers)})
            s.bridge = nats.Bridge(self, s, everywhere, "actor", "AckWaitSec=2s\nInFlight=16\nReplicas=3\n")
            del s.bridge.environment["NOTIFY_SOCKET"]  # nobody reads it here, and it would be full some time
            self.machines.append(s)
        self.retry(self.machines[0].bridge.setup, AssertionError)
        for s in self.machines:
            s.bridge.start()

    def retry(self, function, *errors):
        """Calls it until it succeeds: the servers elect leaders."""
        limit_at = time.monotonic() + 2 * LIMIT
        while True:
            try:
                return function()
            except (OSError, EOFError, ValueError, *errors) as error:
                if time.monotonic() > limit_at:
                    raise AssertionError("the cluster does not recover") from error

    def ask(self, function):
        """Calls it with a client of some server that answers."""
        def attempt():
            server = self.random.choice([server for server in self.servers if server.process])
            client = nats.Client(self, server, limit=PATIENCE)
            with client.socket:
                return function(client)
        return self.retry(attempt, AssertionError, KeyError)

    # ---- blows

    def kill_server(self):
        server = self.random.choice(self.servers)
        server.end(signal.SIGKILL)
        return server.start

    def kill_bridge(self):
        bridge = self.random.choice(self.machines).bridge
        bridge.end(signal.SIGKILL)
        return bridge.start

    def kill_machine(self):
        s = self.random.choice(self.machines)
        s.bridge.end(signal.SIGKILL)
        s.kill()
        return lambda: (s.start(), s.bridge.start())

    def crash_supervisor(self):
        """Not so often that it goes into safe mode, in which its group is paused and keeps what it has."""
        s = self.random.choice(self.machines)
        if self.crashes[s] < 2:
            self.crashes[s] += 1
            s.crash()
        return lambda: None

    def stop_bridge(self):
        bridge = self.random.choice(self.machines).bridge
        bridge.process.send_signal(signal.SIGSTOP)
        return lambda: bridge.process.send_signal(signal.SIGCONT)

    def stop_server(self):
        server = self.random.choice(self.servers)
        server.process.send_signal(signal.SIGSTOP)
        return lambda: server.process.send_signal(signal.SIGCONT)

    # ---- the test

    def setUp(self):
        super().setUp()
        print("TESTS_SEED", SEED)
        self.random, self.crashes = random.Random(SEED), collections.Counter()

    @limit(600)
    def test_N5_nothing_is_lost_and_each_job_has_one_result(self):
        self.start_servers()
        self.start_machines()
        notes = self.machines[0].path("notes")
        blows = [self.kill_server, self.kill_bridge, self.kill_machine, self.crash_supervisor, self.stop_bridge,
                 self.stop_server]
        for n in range(N_JOBS):
            crash = "before 2 crash kill\n" if n % 20 == 0 else ""
            self.store(n, f"{crash}note {notes} {n}")
            if n % (N_JOBS // N_BLOWS) == N_JOBS // N_BLOWS - 1:
                mend = self.random.choice(blows)()
                self.store(n, f"note {notes} {n}")  # a double, which JetStream drops; and time for the others
                mend()
        try:
            self.retry(self.wait_done, AssertionError)
        except AssertionError:
            self.explain()
            raise
        results = self.ask(lambda client: client.api("STREAM.INFO.TROUPE", subjects_filter="troupe.result.>"))["state"]
        self.assertEqual((results["messages"], results["num_subjects"]), (N_JOBS, N_JOBS))
        with open(notes, encoding="ascii") as file:
            done = collections.Counter(map(int, file))
        self.assertEqual(set(done), set(range(N_JOBS)))
        print(sum(done.values()) - N_JOBS, "jobs were done twice")

    def explain(self):
        for s in self.machines:
            print(s.call("GetInfo")["safe_mode"], s.bridge.process.poll(), s.bridge.log()[-1500:])
            print([(job["id"], job["state"]) for job in s.call("List")["jobs"]])
        print(self.ask(lambda client: client.api("CONSUMER.INFO.JOBS.actor")))

    def store(self, n, script):
        self.ask(lambda client: client.store("jobs.actor.any", script, {"Nats-Msg-Id": f"n{n}"}))

    def wait_done(self):
        if self.ask(lambda client: client.messages(JOBS)) > 0:
            raise AssertionError("jobs are left")


if __name__ == "__main__":
    unittest.main()
