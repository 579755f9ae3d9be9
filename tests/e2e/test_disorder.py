# SPDX-License-Identifier: MIT
"""Everything that can be asked of a pool, in an order that chance decides; and every job is accounted for.

TESTS_SEED= repeats a run, TESTS_DISORDER= makes runs of so many steps.
"""
import collections
import contextlib
import json
import os
import random
import select
import signal
import time

from troupe import ACTOR, SANITIZED, TestCase, Varlink, VarlinkError, ini, limit, text

SEED = int(os.environ.get("TESTS_SEED", "0")) or random.SystemRandom().randrange(1, 1 << 32)
STEPS = int(os.environ.get("TESTS_DISORDER", "0")) or (60 if SANITIZED else 150)

MS, HOUR = 1000, 3600 * 1000000
ENDS = {"succeeded": "succeeded", "rejected": "rejected", "cancelled": "cancelled", "dead": "dead"}
PAYLOADS = (["echo fine"] * 12 + ["state here\necho fine"] * 2 + ["reject 3 no", "retry 1 broken", "crash kill", "exit 3"]
            + ["before 2 exit 1\necho second"] * 2 + ["until-cancelled", "deaf\nuntil-cancelled", "leak 500000\necho more"])
ONE_PART = 16 << 10  # bytes; a longer reply is written in parts, and state changes between two parts
KEYED = ("mail", "after", "guest")
LASTING = ("mail", "pool", "after")  # the guest is removed now and then, with its counters
KEYS = "abcdefgh"


def group(name, pool=None, jobs=None, variable="0", start_limit="1min"):
    after = {"After": "pool"} if name == "after" else {}
    cells = {"Cells": "by-key"} if name in KEYED else {}
    return ini(ACTOR, Group={"Environment": f"ROUND={variable}", **after}, Pool={**cells, **(pool or {})},
               Jobs={"MaxRetries": 1, "BackoffMinSec": "1ms", "BackoffMaxSec": "20ms", "TimeoutSec": "100ms",
                     "ResultsMax": 1000000, **(jobs or {})},
               Restart={"MinSec": "1ms", "MaxSec": "20ms", "StartLimitBurst": 0},
               Worker={"TimeoutStartSec": start_limit, "TimeoutStopSec": "200ms"}, Resources={"LimitCORE": 0})


# Every start must be given its time there: on a busy machine, workers that are killed as they start keep each other from
# starting, for ever.
CALM = {"Size": 1, "CellIdleSec": "1ms"}


class Script:
    """One run: its requests and their outcomes."""

    def __init__(self, test, s, rng):
        self.test, self.s, self.rng = test, s, rng
        self.control = s.connect()
        self.n = 0
        self.accepted = {}  # id: group, in lasting groups
        self.senders = {}  # connection: (id, group), for those that await their answer
        self.unknown = {}  # id: group, whose sender left before the answer
        self.doing = []  # connections of Do
        self.waits = []  # connections whose answers are not read
        self.stopped = set()  # pids
        self.said = collections.Counter()

    def call(self, method, **parameters):
        try:
            return self.control.call(method, **parameters)
        except VarlinkError as error:
            self.said[error.name] += 1
            return None

    # ---- jobs

    def options(self, name):
        rng = self.rng
        self.n += 1
        options = {"id": f"{name}-{self.n}"}
        if name in KEYED or rng.random() < 0.1:
            options["key"] = rng.choice(KEYS)
        if rng.random() < 0.3:
            options["priority"] = rng.randrange(64)
        when = rng.randrange(8)
        if when == 0:
            options["delay_usec"] = rng.randrange(200 * MS)
        elif when == 1:
            options["at"] = int(time.time() * 1e6) + rng.randrange(-HOUR, 200 * MS)
        if rng.random() < 0.2:
            options["max_retries"] = rng.randrange(3)
        return options

    def payload(self):
        data = self.rng.choice(PAYLOADS)
        return text(data + "\n\n" + "x" * self.rng.choice((0, 0, 100, 40000)))

    def create(self):
        for _ in range(self.rng.choice((1, 1, 5, 20))):
            name = self.rng.choice(LASTING)
            options = self.options(name)
            if self.call("Create", group=name, payload=self.payload(), options=options):
                self.accepted[options["id"]] = name

    def create_and_wait_for_room(self):
        for _ in range(self.rng.randrange(1, 6)):
            name = self.rng.choice(LASTING)
            options = self.options(name)
            if self.rng.random() < 0.1 and self.accepted:
                options["id"] = self.rng.choice(list(self.accepted))
            options["wait_usec"] = self.rng.choice((MS, 50 * MS, HOUR))
            sender = Varlink(self.s.socket_path)
            sender.send("Create", {"group": name, "payload": self.payload(), "options": options})
            self.senders[sender] = (options["id"], name)

    def a_sender_vanishes(self):
        if not self.senders:
            return
        sender = self.rng.choice(list(self.senders))
        id, name = self.senders.pop(sender)
        if id not in self.accepted:
            self.unknown[id] = name
        sender.close()

    def do(self):
        doing = Varlink(self.s.socket_path)
        doing.send("Do", {"group": "guest", "payload": self.payload(), "options": self.options("guest")})
        self.doing.append(doing)

    def wait_and_vanish(self):
        if self.accepted:
            waiting = Varlink(self.s.socket_path)
            waiting.send(self.rng.choice(("Wait", "Get")), {"id": self.rng.choice(list(self.accepted))}, more=False)
            self.waits.append(waiting)
        if len(self.waits) > 3:
            self.waits.pop(0).close()

    def cancel(self):
        for id in self.rng.sample(list(self.accepted), min(len(self.accepted), self.rng.randrange(1, 5))):
            self.call("Cancel", id=id)

    def take_answers(self):
        while self.senders:
            ready, _, _ = select.select([sender.socket for sender in self.senders], [], [], 0)
            if not ready:
                return
            for sender in [sender for sender in self.senders if sender.socket in ready]:
                self.take_answer(sender)

    def take_answer(self, sender):
        id, name = self.senders.pop(sender)
        try:
            sender.reply()
            self.accepted[id] = name
        except VarlinkError as error:
            self.said[error.name] += 1
        sender.close()

    # ---- orders

    def target(self, deepest=2):
        name = self.rng.choice(LASTING + ("guest",))
        parts = [name]
        if name in KEYED:
            parts.append(self.rng.choice(KEYS))
        if deepest == 2:
            parts.append(str(self.rng.randrange(3)))
        return "/".join(parts[:self.rng.randrange(1, len(parts) + 1)])

    def resize(self):
        self.call("Resize", target=self.target(1), size=self.rng.randrange(1, 5))

    def pause(self):
        self.call("Pause", target=self.target(1))

    def resume(self):
        self.call("Resume", target=self.target(1))

    def order(self):
        self.call(self.rng.choice(("Stop", "Start", "Start", "Restart", "Reset")), target=self.target())

    def order_and_wait(self):
        waiting = Varlink(self.s.socket_path)
        method, more = self.rng.choice((("Stop", {}), ("Start", {}), ("Restart", {}), ("Resize", {"size": 2})))
        waiting.send(method, {"target": self.target(1), "wait": True, **more})
        self.waits.append(waiting)

    def reload(self):
        rng = self.rng
        name = rng.choice(LASTING)
        pool = {"Size": rng.randrange(1, 4), "Prefetch": rng.choice((1, 1, 3)), "MaxJobs": rng.choice((0, 3, 10)),
                "MaxAgeSec": rng.choice(("infinity", "50ms")), "MaxMemory": rng.choice(("infinity", "1M")),
                "CellIdleSec": rng.choice(("1ms", "20ms", "infinity")), "CellsMax": rng.randrange(2, 9)}
        jobs = {"QueueMax": rng.choice((3, 10, 100)), "QueueMemoryMax": rng.choice(("100K", "10M")),
                "NoProgressSec": rng.choice(("infinity", "50ms")), "TimeoutSec": rng.choice(("20ms", "100ms"))}
        self.s.write(name + ".group", group(name, pool, jobs, rng.randrange(3), rng.choice(("500ms", "1min"))))
        self.call("Reload")

    def come_and_go(self):
        path = os.path.join(self.s.config, "guest.group")
        if os.path.exists(path):
            os.unlink(path)
        else:
            self.s.write("guest.group", group("guest", CALM, variable=self.rng.randrange(3)))
        self.call("Reload")

    # ---- accidents

    def signal(self, pid, number):
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, number)

    def kill(self):
        children = self.s.children()
        for pid in self.rng.sample(children, min(len(children), self.rng.randrange(1, 4))):
            self.signal(pid, signal.SIGKILL)

    def freeze(self):
        children = self.s.children()
        for pid in self.rng.sample(children, min(len(children), 1)):
            self.signal(pid, signal.SIGSTOP)
            self.stopped.add(pid)

    def thaw(self):
        alive = set(self.s.children())
        for pid in self.stopped & alive:
            self.signal(pid, signal.SIGCONT)
        self.stopped.clear()

    # ---- what must be true

    def check_sums(self, groups):
        for name, status in groups.items():
            cells = status.get("cells")
            if cells is not None:
                for field in "queued", "running", "waiting", "queue_bytes", "senders":
                    self.test.assertEqual(status[field], sum(cell[field] for cell in cells), (name, field))
            for part in cells or [status]:
                hands = sum("job" in worker for worker in part["workers"])
                self.test.assertLessEqual(hands, part["running"], part)

    def check(self):
        self.take_answers()
        answer = self.control.call("GetStatus")
        groups = {g["name"]: g for g in answer["groups"]}
        if len(json.dumps(answer)) < ONE_PART:
            self.check_sums(groups)
        asked = collections.Counter(self.accepted.values())
        perhaps = collections.Counter(self.unknown.values()) + collections.Counter(g for _, g in self.senders.values())
        for name, status in groups.items():
            if name in LASTING:
                known = sum(status[f] for f in ("queued", "running", "waiting", *ENDS.values()))
                self.test.assertLessEqual(asked[name], known, (name, status))
                self.test.assertLessEqual(known, asked[name] + perhaps[name], (name, status))
        for worker in [w for g in groups.values() for part in g.get("cells") or [g] for w in part["workers"]]:
            self.test.assertLess(worker["restarts"], 1000000)
        return groups

    ACTIONS = {create: 30, create_and_wait_for_room: 10, a_sender_vanishes: 4, do: 8, wait_and_vanish: 3, cancel: 5,
               resize: 5, pause: 3, resume: 5, order: 8, order_and_wait: 3, reload: 8, come_and_go: 4, kill: 10,
               freeze: 2, thaw: 2}

    def step(self):
        [action] = self.rng.choices(list(self.ACTIONS), list(self.ACTIONS.values()))
        action(self)
        for _ in range(self.rng.choice((1, 1, 3, 10))):
            groups = self.check()
        return groups

    # ---- the end

    def calm_down(self):
        """Removes everything that holds up jobs."""
        self.thaw()
        for name in LASTING + ("guest",):
            self.s.write(name + ".group", group(name, CALM))
        self.control.call("Reload")
        for group_status in self.control.call("GetStatus")["groups"]:
            name = group_status["name"]
            for method in "Resume", "Start", "Reset":
                self.control.call(method, target=name)
            self.control.call("Resize", target=name, size=1)

    def finish(self):
        """Every job ends, and the groups' counters agree with the ends."""
        self.calm_down()
        for sender in list(self.senders):
            self.take_answer(sender)
        counted = collections.Counter()
        for id, name in [*self.accepted.items(), *self.unknown.items()]:
            try:
                counted[name, ENDS[self.control.call("Wait", id=id)["job"]["state"]]] += 1
            except VarlinkError as error:
                self.test.assertEqual((error.name, id in self.unknown), ("NoSuchJob", True), id)
        groups = self.check()
        for name in LASTING:
            for field in ENDS.values():
                self.test.assertEqual(groups[name][field], counted[name, field], (name, field))
            self.test.assertEqual([groups[name][f] for f in ("queued", "running", "waiting", "queue_bytes", "senders")],
                                  [0] * 5, name)
        for doing in self.doing:
            with contextlib.suppress(VarlinkError):  # refused; Stopping; there is no guest
                self.test.assertIn(doing.reply()[0]["job"]["state"], ENDS)
        self.forget_connections()
        self.s.until(self.is_at_rest)

    def is_at_rest(self):
        groups = self.control.call("GetStatus")["groups"]
        workers = [w for g in groups for w in g["workers"]]
        return (all(g.get("cells", []) == [] for g in groups) and [w["state"] for w in workers] == ["idle"]
                and len(self.s.children()) == 1)

    def forget_connections(self):
        for connection in [*self.doing, *self.waits, *self.senders]:
            connection.close()
        self.doing, self.waits, self.senders = [], [], {}


class Disorder(TestCase):
    def begin(self, seed, **options):
        print(f"seed {seed} (TESTS_SEED= repeats it), {STEPS} steps")
        s = self.started({name: group(name, CALM) for name in LASTING + ("guest",)}, **options)
        return s, Script(self, s, random.Random(seed))

    def kinds(self, s):
        return collections.Counter(fd.partition(":")[0] for fd in s.fds())

    @limit(600)
    def test_every_job_ends_once_and_nothing_leaks_whatever_is_asked(self):
        s, script = self.begin(SEED)
        # From now on the watchdog counts.
        script.accepted[s.create("pool", "echo", at=int((time.time() + 0.1) * 1e6))] = "pool"
        script.finish()
        before = self.kinds(s)
        memory = []
        for _ in range(2):
            for _ in range(STEPS // 2):
                script.step()
            script.finish()
            # Fewer, if the last worker that died had not replaced the rings that it took from the stock.
            s.until(lambda: not self.kinds(s) - before)
            memory.append(s.status_field("VmRSS"))
        print(len(script.accepted), "jobs; KiB", memory, dict(script.said))
        if not SANITIZED:
            self.assertLess(memory[1], memory[0] + 16384 + 4 * len(script.accepted))

    @limit(600)
    def test_a_supervisor_that_is_stopped_in_the_middle_ends_every_job_and_every_process(self):
        for i in range(4):
            s, script = self.begin(SEED + i)
            for _ in range(script.rng.randrange(STEPS // 6)):
                script.step()
            with Varlink(s.socket_path) as watching:
                live = [job["id"] for job in watching.call("List")["jobs"]]
                asking = {id: s.connect() for id in script.rng.sample(live, min(len(live), 20))}
                states = {}
                for id, connection in asking.items():
                    connection.send("Get", {"id": id}, more=True)
                    with contextlib.suppress(VarlinkError):  # the guest's: ended and forgotten
                        states[id] = [connection.reply()[0]["job"]["state"]]
                s.stop()
            for id, seen in states.items():
                with contextlib.suppress(EOFError, ConnectionError):
                    while True:
                        seen.append(asking[id].reply()[0]["job"]["state"])
                self.assertEqual(sum(state in ENDS for state in seen), 1, (id, seen))
            for doing in script.doing:
                with contextlib.suppress(EOFError, VarlinkError):
                    self.assertIn(doing.reply()[0]["job"]["state"], ENDS)
            script.forget_connections()
