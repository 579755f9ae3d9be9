# SPDX-License-Identifier: MIT
"""Three NATS servers with three replicas, and three machines, each in a network namespace of its own. One or the other is
killed, stopped, cut off, slowed down or asked to leave while jobs are done, some of which crash their workers. What
happens to each job is noted from outside, and history.py says whether it may happen.

TESTS_NATS_JOBS= and TESTS_NATS_BLOWS= say how many jobs and blows; the seed is printed, and TESTS_SEED= repeats it.
TESTS_NATS_STOP= has servers of many jobs stopped, too. TESTS_NATS_HISTORY= names a file for the history, which history.py checks again;
beside it are the logs, and after a failure what the servers say of themselves.
"""
import collections
import contextlib
import itertools
import json
import os
import random
import shutil
import signal
import sys
import time
import urllib.request

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "e2e"))

import nats
from history import SECOND, WORKERS, History
from network import Network, connections
from troupe import LIMIT, QUICK, TestCase, helper, ini, limit
from witness import Witness, changes

N_JOBS = int(os.environ.get("TESTS_NATS_JOBS", "600"))
MANY = N_JOBS > 10000
HISTORY = os.environ.get("TESTS_NATS_HISTORY")
MONITORING = "connz?subs=true", "routez?subs=true", "jsz?consumers=true&raft=true"
ACK_WAIT = 3  # seconds
LONG_USEC = 5000000  # of a few jobs: beyond it
PATIENCE = 3.0  # seconds, with a server that may be stopped
MUTE_SEC = 20  # after which a server that the others have not heard since it was started is started again, which does no harm
PROBLEMS_SHOWN = 20
WINDOW = 256  # messages that are sent and not confirmed yet
SEED = int(os.environ.get("TESTS_SEED", random.randrange(1 << 32)))
STREAMS = "JOBS", "TROUPE"
GROUP = "diarist"
OPEN = "queued", "running", "backoff", "delayed"


def number(job):
    """Of its message, from its id on a machine: after that, the number of the try there may follow."""
    return int(job.split(":")[1])


class Machine:
    """trouped and troupe-nats, and what its workers write down."""

    def __init__(self, test, node, servers, durable):
        self.test, self.node, self.name, self.servers = test, node, node.name, servers
        self.supervisor = s = test.supervisor(wrapper=node.wrapper)
        self.diary, self.offset, self.notes = s.path("diary"), 0, []
        s.write(f"{GROUP}.group", ini(helper("workers/diarist"), Group={"Environment": f"DIARY={self.diary}"}, Pool={"Size": WORKERS},
                                      Restart=QUICK, Jobs={"BackoffMinSec": "1ms", "MaxRetries": 100, "Durable": durable}))
        s.write("troupe.conf", f"[Supervisor]\nStateDirectory={s.path('state')}\n")
        s.start()
        everywhere = type("Everywhere", (), {"url": ",".join(server.url for server in servers)})
        self.bridge = nats.Bridge(test, s, everywhere, GROUP, f"Machine={self.name}\nStateSec=1s\nAckWaitSec={ACK_WAIT}s\n"
                                  f"InFlight={64 if MANY else 16}\nReplicas=3\n", wrapper=node.wrapper)
        del self.bridge.environment["NOTIFY_SOCKET"]  # nobody reads it here, and it would be full some time

    def read(self):
        """All that its workers have written down so far, as events."""
        with contextlib.suppress(FileNotFoundError), open(self.diary, encoding="ascii") as file:
            file.seek(self.offset)
            text = file.read()
            text = text[:text.rfind("\n") + 1]
            self.offset += len(text)
            for line in text.splitlines():
                kind, job, attempt, at = line.split()
                self.notes.append({"type": kind, "job": number(job), "machine": self.name,
                                   "attempt": int(attempt), "at": int(at)})
        return self.notes

    def jobs(self):
        """Those that it has to finish."""
        return sorted({number(job["id"]) for state in OPEN
                       for job in self.supervisor.pages("List", "jobs", state=state)[0]})

    def server_addresses(self):
        """Those of the servers to which it is connected."""
        return {address for address, _ in connections(self.bridge.process.pid)}

    # ---- blows: each returns how it is mended

    def kill(self):
        self.bridge.end(signal.SIGKILL)
        self.supervisor.kill()
        return self.start

    def kill_bridge(self):
        self.bridge.end(signal.SIGKILL)
        return self.bridge.start

    def stop(self):
        s = self.supervisor
        pids = [self.bridge.process.pid, s.supervisor_pid, *s.children(), s.process.pid]
        send(pids, signal.SIGSTOP)
        return lambda: send(pids, signal.SIGCONT)

    def stop_bridge(self):
        send([self.bridge.process.pid], signal.SIGSTOP)
        return lambda: send([self.bridge.process.pid], signal.SIGCONT)

    def cut(self):
        return self.node.cut()

    def mute(self):
        return self.node.mute([server.node for server in self.servers])

    def crash(self):
        """The supervisor alone, which its main process starts again. Its workers go on."""
        self.supervisor.crash()
        return self.restart_bridge

    def drain(self):
        self.supervisor.call("Drain", target=GROUP)
        return lambda: self.supervisor.call("Resume", target=GROUP)

    def leave(self):
        self.test.assertEqual(self.bridge.end(), 0)
        self.supervisor.stop()
        return self.start

    def slow(self):
        return self.node.slow()

    def start(self):
        self.supervisor.start()
        self.bridge.start()

    def restart_bridge(self):
        """As its supervisor would, had that started it."""
        if self.bridge.process.poll() is not None:
            self.bridge.start()


class Server(nats.Server):
    """nats-server in a namespace."""

    def __init__(self, test, node, nodes):
        routes = ", ".join(f'"nats://{each.address}:6222"' for each in nodes)
        super().__init__(test, f'server_name: "{node.name}"\ncluster {{ name: "c", listen: "{node.address}:6222", '
                         f'routes: [{routes}] }}\nhttp: "{node.address}:8222"\n', node.address, node.wrapper)
        self.node, self.name, self.port = node, node.name, 4222
        if HISTORY:
            self.log_path = f"{HISTORY}.{node.name}.log"

    def start(self):
        self.since, self.heard = time.monotonic(), False
        return super().start()

    def monitoring(self, what):
        with urllib.request.urlopen(f"http://{self.host}:8222/{what}", timeout=PATIENCE) as reply:
            return reply.read()

    def show(self):
        """Keeps what it says of itself, for people."""
        for what in MONITORING:
            with open(f"{HISTORY}.{self.name}.{what.partition('?')[0]}", "wb") as file:
                file.write(self.monitoring(what))

    def hears(self):
        """If it leads all: when it has last heard which servers, itself among them."""
        now, meta = time.monotonic(), json.loads(self.monitoring("jsz")).get("meta_cluster", {})
        if meta.get("leader") != self.name:
            return {}
        return {self.name: now, **{each["name"]: now - each["active"] / SECOND for each in meta.get("replicas", []) if each["active"]}}

    def kill(self):
        self.end(signal.SIGKILL)
        return self.start

    def stop(self):
        self.process.send_signal(signal.SIGSTOP)
        return lambda: self.process.send_signal(signal.SIGCONT)

    def cut(self):
        return self.node.cut()

    def slow(self):
        return self.node.slow()


def send(pids, number):
    for pid in pids:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, number)


GENTLE = "drain", "leave"
HARMLESS = "slow",  # nothing may be done twice, as long as the link carries all that is said
LASTING = "kill", "kill_bridge", "stop", "stop_bridge", "cut", "mute", "drain", "leave"  # until others have taken over
BLOWS = [("machine", kind) for kind in ("kill", "kill_bridge", "stop", "stop_bridge", "cut", "mute", "crash", "drain", "leave", "slow")]
BLOWS += [("server", kind) for kind in ("kill", "stop", "cut", "slow")]
BLOWS += [("quorum", "kill"), ("short", "stop"), ("short", "cut")]
if MANY and "TESTS_NATS_STOP" not in os.environ:
    # When a leader of nats-server 2.9 goes on that was stopped under load, messages that it has accepted may take the places of
    # others that its successor has accepted and confirmed meanwhile: no client can make up for that.
    BLOWS.remove(("server", "stop"))
N_BLOWS = int(os.environ.get("TESTS_NATS_BLOWS", len(BLOWS)))


class Cluster(TestCase):
    def setUp(self):
        nats.require()
        self.network = Network(self)
        print("TESTS_SEED", SEED)
        self.random, self.crashes, self.events, self.sent = random.Random(SEED), collections.Counter(), [], {}
        self.start_servers()
        self.start_machines()

    def start_servers(self):
        nodes = [self.network.node(f"server{n}", n) for n in (1, 2, 3)]
        self.servers = [Server(self, node, nodes) for node in nodes]
        for server in self.servers:
            server.start()
        self.witnesses = [Witness(self, server, f"JOBS.{GROUP}") for server in self.servers]

    def start_machines(self):
        self.machines = []
        for n in (1, 2, 3):
            node = self.network.node(f"machine{n}", 10 + n)
            self.machines.append(Machine(self, node, self.servers, "yes" if n == 1 else "no"))
        self.retry(self.machines[0].bridge.setup, AssertionError)
        for machine in self.machines:
            machine.bridge.start()
        self.wait_well()

    def retry(self, function, *errors):
        """Calls it until it succeeds: the servers elect leaders."""
        limit_at = time.monotonic() + 2 * LIMIT
        while True:
            try:
                return function()
            except (OSError, EOFError, ValueError, *errors) as error:
                if time.monotonic() > limit_at:
                    self.show_logs()
                    raise AssertionError("the cluster does not recover") from error
                self.start_mute_again()

    def start_mute_again(self):
        """nats-server 2.10.23 to 2.10.29 may start without an account for what it says to other servers of its groups: it hears
        them, and until it is started again they never hear it. This is seldom, and happens rather while processors are busy."""
        for server in self.servers:
            if server.process and not server.heard and time.monotonic() - server.since > MUTE_SEC:
                last = {}
                for other in self.servers:
                    with contextlib.suppress(OSError):
                        last.update(other.hears() if other.process else {})
                server.heard = last.get(server.name, 0) > server.since
                if last and not server.heard:
                    print(server.name, "is mute, and is started again", flush=True)
                    server.end(signal.SIGKILL)
                    server.start()

    def show_logs(self):
        for machine in self.machines:
            with contextlib.suppress(FileNotFoundError):  # it has not been started
                print(machine.name, machine.bridge.log()[-1500:])
                if HISTORY:
                    shutil.copy(machine.bridge.log_path, f"{HISTORY}.{machine.name}.log")
        for server in self.servers:
            with contextlib.suppress(OSError):
                if HISTORY and server.process:
                    server.show()

    @contextlib.contextmanager
    def client(self):
        """Of some server."""
        server = self.random.choice([server for server in self.servers if server.process])
        client = nats.Client(self, server, limit=PATIENCE)
        with client.socket:
            yield client

    def ask(self, function):
        """Calls it with a client of some server that answers."""
        def attempt():
            with self.client() as client:
                return function(client)
        return self.retry(attempt, AssertionError, KeyError)

    # ---- jobs

    def publish(self, count):
        """Sends more jobs, until all are accepted."""
        first = len(self.sent)
        numbers = range(first, min(first + count, N_JOBS))
        missing = collections.deque(numbers)
        for n in numbers:
            crashes = self.random.choice((1, 1, 2)) if self.random.random() < (0.01 if MANY else 0.05) else 0
            usec = self.random.randrange(600 if MANY else 300000)
            if self.random.random() < (0.001 if MANY else 0.02):
                usec = LONG_USEC
            self.sent[n] = {"payload": f"{n} {usec} {crashes}", "at": None}
        self.retry(lambda: self.send_all(missing))

    def send_all(self, missing):
        """Takes from the numbers those that are accepted. Raises an error at the first that is not; sent again, with the
        same id, it is not accepted twice."""
        waiting = {}
        try:
            with self.client() as client:
                while missing or waiting:
                    while missing and len(waiting) < WINDOW:
                        n = missing.popleft()
                        waiting[f"{client.inbox}.n{n}"] = n
                        self.sent[n]["at"] = self.sent[n]["at"] or time.time_ns()
                        client.publish(f"jobs.{GROUP}.any", self.sent[n]["payload"], {"Nats-Msg-Id": f"n{n}"}, f"{client.inbox}.n{n}")
                    message = client.next(client.sid)
                    reply = json.loads(message.data or b"{}")  # no data: no leader
                    if "seq" not in reply:
                        raise ValueError(reply)
                    n = int(message.subject.rpartition(".n")[2])
                    waiting.pop(message.subject, None)  # nats-server 2.9 may confirm a message twice while leaders change
                    if not reply["seq"]:  # of nats-server 2.10: it was accepted before, and is not stored yet
                        missing.append(n)
                        continue
                    self.events.append({"type": "published", "job": reply["seq"], "n": n, "at": self.sent[n]["at"]})
        finally:
            missing.extend(waiting.values())

    # ---- the state of the cluster

    def wait_well(self):
        """Until there are leaders that hear all servers, as these run now. One of nats-server 2.9 may stay behind until something comes."""
        def look(client):
            ages = {server.name: time.monotonic() - server.since for server in self.servers}
            infos = [client.api(f"STREAM.INFO.{stream}")["cluster"] for stream in STREAMS]
            infos.append(client.api(f"CONSUMER.INFO.JOBS.{GROUP}")["cluster"])
            for info in infos:
                heard = [replica for replica in info["replicas"]
                         if 0 < replica["active"] < min(4, ages[replica["name"]]) * SECOND and not replica.get("offline")]
                if not info.get("leader") or len(heard) < len(self.servers) - 1:
                    raise ValueError(info)
        self.ask(look)
        for server in self.servers:
            server.heard = True

    def wait_heard(self):
        """Until all machines have said something to all servers, and nothing is on its way since before: TCP's pauses double
        while nothing answers, so a connection may be deaf for long after a blow."""
        pids = [server.process.pid for server in self.servers] + [machine.bridge.process.pid for machine in self.machines]
        before = time.time_ns()

        def look(client):
            client.api("INFO")
            for witness in self.witnesses:
                silent = [machine.name for machine in self.machines if witness.states.get(machine.name, 0) <= before]
                if silent:
                    raise ValueError(f"{witness.server.name} hears nothing of {silent}")
            pids[:] = [pid for pid in pids if any(left for _, left in connections(pid))]
            if pids:
                raise ValueError("something has not arrived")
        self.ask(look)

    def states(self, client):
        """What machines have last said about themselves."""
        return [client.api("STREAM.MSG.GET.KV_TROUPE_STATE", last_by_subj=f"$KV.TROUPE_STATE.{machine.name}.{GROUP}")
                for machine in self.machines]

    def leaders(self):
        """Those on which deliveries depend."""
        return self.ask(lambda client: {client.api("STREAM.INFO.JOBS")["cluster"]["leader"],
                                        client.api(f"CONSUMER.INFO.JOBS.{GROUP}")["cluster"]["leader"]})

    def is_stored(self, job):
        with contextlib.suppress(ValueError):
            return self.ask_once("STREAM.MSG.GET.TROUPE", last_by_subj=f"troupe.result.JOBS.{job}")
        return None

    def ask_once(self, subject, **parameters):
        with self.client() as client:
            return client.api(subject, **parameters)

    def look_for(self, left, machines, looked):
        """Takes from the jobs those that one of these machines has, or that are done. `looked`: when each did not have them yet."""
        for machine in machines:
            before, looked[machine.name] = looked[machine.name], time.time_ns()
            for job in left & set(machine.jobs()):
                self.events.append({"type": "has", "job": job, "machine": machine.name, "at": before})
                left.remove(job)
        with contextlib.suppress(OSError, EOFError):
            left -= {job for job in left if self.is_stored(job)}

    def wait_taken_over(self, blow, machines):
        """Until they have all that the machine had; not for ever, as the checker finds what they do not take."""
        left, limit_at = set(blow["held"]), time.monotonic() + LIMIT
        looked = {machine.name: blow["from"] for machine in machines}
        while left and time.monotonic() < limit_at:
            self.look_for(left, machines, looked)

    # ---- blows

    def strike(self, whom, kind, share):
        self.publish(share // 2)
        if whom in ("server", "quorum"):
            self.strike_servers(self.random.sample(self.servers, 2 if whom == "quorum" else 1), kind, share - share // 2)
        else:
            self.strike_machine(self.random.choice(self.machines), kind, share - share // 2, whom != "short")
        if whom != "short":  # others follow while it still hurts
            self.wait_well()
            self.wait_heard()

    def strike_machine(self, machine, kind, share, lasting):
        if kind == "crash":  # not so often that it goes into safe mode, in which it does no jobs
            machine = min(self.machines, key=lambda machine: self.crashes[machine.name])
            self.crashes[machine.name] += 1
        harmless = kind in HARMLESS
        blow = self.begin(machine.name, kind, [] if harmless else [machine.name], [] if harmless else machine.jobs())
        with self.lasting(blow, [getattr(machine, kind)()]):
            self.publish(share)
            if lasting and kind in LASTING:
                self.wait_taken_over(blow, [other for other in self.machines if other != machine])
        if kind == "crash":
            self.wait_taken_over(blow, self.machines)
        elif not lasting:
            self.look_for(set(blow["held"]), self.machines, {machine.name: blow["from"] for machine in self.machines})

    def strike_servers(self, servers, kind, share):
        names, addresses = {server.name for server in servers}, {server.host for server in servers}
        if kind in HARMLESS and not MANY:
            hits = []
        elif len(servers) > 1 or kind == "cut" or names & self.leaders():  # one that was alone has leaders elected when it is back
            hits = [machine.name for machine in self.machines]
        else:
            hits = [machine.name for machine in self.machines if machine.server_addresses() & addresses]
        blow = self.begin("+".join(sorted(names)), kind, hits)
        # What a leader delivers while others are elected may be delivered by its successor, too.
        with self.lasting(blow, [*(getattr(server, kind)() for server in servers), self.wait_well]):
            if len(servers) == 1:
                self.publish(share)
                if kind not in HARMLESS:
                    self.leaders()  # which there are again
        if len(servers) > 1:
            self.publish(share)

    @staticmethod
    def begin(node, kind, hits, held=None):
        return {"type": "blow", "node": node, "kind": kind, "from": time.time_ns(), "hits": hits, "engine": held is None,
                "gentle": kind in GENTLE, "held": held or []}

    @contextlib.contextmanager
    def lasting(self, blow, mends):
        try:
            yield
        finally:
            for mend in mends:
                if mend:
                    mend()
        blow["to"] = time.time_ns()
        self.events.append(blow)
        print(f"{blow['node']} {blow['kind']} {(blow['to'] - blow['from']) / SECOND:.1f} s, {len(blow['held'])} held,"
              f" hits {blow['hits']}", flush=True)

    # ---- the end

    def progress(self, client):
        """Messages left in the stream, not delivered yet, and not acknowledged yet."""
        consumer = client.api(f"CONSUMER.INFO.JOBS.{GROUP}")
        return client.messages("JOBS"), consumer["num_pending"], consumer["num_ack_pending"]

    def missing(self):
        """The numbers of jobs without a result, also under the number in the stream that servers have confirmed."""
        results = self.ask(self.results)
        done, stored = {event["n"] for event in results}, {event["job"] for event in results}
        confirmed = {event["n"] for event in self.events if event["type"] == "published" and event["job"] in stored}
        return set(range(N_JOBS)) - done - confirmed

    def ask_for_one(self, client):
        """What the server answers to a request for a message that is not a machine's."""
        client.publish(f"$JS.API.CONSUMER.MSG.NEXT.JOBS.{GROUP}", json.dumps({"batch": 1, "expires": SECOND}), reply=f"{client.inbox}.one")
        message = client.next(client.sid)
        if message.reply:
            client.publish(message.reply, "-NAK")
        return message.headers.get("", "") if not message.reply else "a message"

    def wait_done(self):
        """Until no machine has jobs, and no message is left, or each has its result: after leaders have changed, nats-server 2.9
        may keep messages that are acknowledged, and count wrongly. Or until nothing has happened for long."""
        last, limit_at = None, time.monotonic() + 2 * LIMIT
        while time.monotonic() < limit_at:
            now = *self.ask(self.progress), sum(len(machine.jobs()) for machine in self.machines)
            left, *_, jobs = now
            if jobs == 0 and (left == 0 or now == last and not self.missing()):
                return
            if now != last:
                last, limit_at = now, time.monotonic() + 2 * LIMIT
        print("left: messages, pending, unacknowledged, jobs on machines", last, "; without a result", sorted(self.missing())[:PROBLEMS_SHOWN])
        self.show_logs()
        for machine in self.machines:
            self.events += [{"type": "left", "job": job, "where": machine.name} for job in machine.jobs()]
        self.events.append({"type": "left", "job": "?", "where": f"the stream {last[:3]}; another request brings {self.ask(self.ask_for_one)}"})

    def results(self, client):
        """All that are stored, as events."""
        consumer = client.api("CONSUMER.CREATE.TROUPE", stream_name="TROUPE", config={
            "ack_policy": "none", "deliver_policy": "all", "filter_subject": "troupe.result.>", "mem_storage": True})["name"]
        events = []
        for round_ in itertools.count():
            client.publish(f"$JS.API.CONSUMER.MSG.NEXT.TROUPE.{consumer}", json.dumps({"batch": 1000, "no_wait": True}),
                           reply=f"{client.inbox}.r{round_}")
            for _ in range(1000):
                message = client.next(client.sid)
                if not message.reply:  # a status
                    if "404" in message.headers[""] or "408" in message.headers[""]:
                        return events
                    raise ValueError(message.headers)
                events.append({"type": "result", "job": int(message.subject.rpartition(".")[2]), "n": int(message.data or -1),
                               "end": message.headers["Troupe-End"], "seq": int(message.reply.split(".")[-4]),
                               "at": int(message.reply.split(".")[-2])})

    def check(self):
        self.events += self.ask(self.results)
        for machine in self.machines:
            self.events += machine.read()
        for witness in self.witnesses:
            self.events += witness.events()
        for begin, end in changes(self.witnesses):
            self.events.append({"type": "blow", "node": "the engine", "kind": "change", "from": begin, "to": end, "engine": True,
                                "hits": [machine.name for machine in self.machines], "gentle": False, "held": []})
        self.ask(self.states)
        if HISTORY:
            with open(HISTORY, "w", encoding="utf-8") as file:
                signs = [sign for witness in self.witnesses for sign in witness.notes()]
                file.writelines(json.dumps(event) + "\n" for event in [ACK_WAIT, *self.events, *signs])
        history = History(self.events, ACK_WAIT)
        print(history.figures())
        problems = history.check()
        if problems:
            self.show_logs()
        self.assertEqual(problems[:PROBLEMS_SHOWN], [], f"{len(problems)} problems in all")
        self.assertEqual(sorted(history.done | history.lost_by_servers()), list(range(N_JOBS)))

    @limit(7200 if MANY else 600)
    def test_N5_nothing_is_lost_or_late_and_only_what_hurt_machines_had_is_done_twice(self):
        blows = BLOWS * (N_BLOWS // len(BLOWS)) + self.random.sample(BLOWS, N_BLOWS % len(BLOWS))
        self.random.shuffle(blows)
        begun = time.monotonic()
        for whom, kind in blows:
            self.strike(whom, kind, N_JOBS // N_BLOWS)
        self.publish(N_JOBS)
        self.wait_done()
        print(f"{time.monotonic() - begun:.1f} s")
        self.check()
