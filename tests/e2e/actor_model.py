# SPDX-License-Identifier: MIT
"""Random programs of actors, and a model of their rules in one process.

A program is a set of messages. Each is sent once, apart from retries, and makes its recipient run commands; see
workers/player.c. The real system may interleave senders in any order, so the model predicts no single course of events:
it follows the notes of the players, and checks that the rules allow each step at that point. In the end each message
must have been handled, or be dead for the reason that the rules give.
"""
import random

GROUPS = {"a": {"retries": 0}, "b": {"retries": 1}}  # a: OnCrash=error-queue, b: one retry
SLOTS = ["a/0", "a/1", "b/0", "b/1"]
TYPES = ["t", "order", "order.created", "odd"]  # group b does not handle "odd"
KEYS = ["-", "k", "eu.fr"]
# Each worker subscribes when it starts.
SUBSCRIPTIONS = {"a": ("order", None), "b": ("order.created", "k")}


class Program:
    """Commands by message, and the messages that come from outside: (to, type, key, message)."""

    def __init__(self, seed):
        self.random = random.Random(seed)
        self.commands, self.roots, self.budget = {}, [], 0
        size = self.random.randint(10, 200)
        while len(self.commands) < size:
            self.budget = self.random.randint(1, 12)
            self.roots.append(self.send(0))

    def send(self, depth):
        """Adds a message, and those that its commands send."""
        message = f"m{len(self.commands)}"
        self.commands[message] = []
        to = self.random.choice(SLOTS * 3 + list(GROUPS) * 2 + ["x"])
        type = self.random.choice(TYPES)
        # Messages to an exchange have no commands: each subscriber would run them.
        if to != "x":
            self.commands[message] = self.body(to, depth)
        return to, type, self.random.choice(KEYS), message

    def body(self, to, depth):
        pick, commands = self.random.random, []
        if pick() < 0.06:
            return ["crash"]
        if pick() < 0.05 and to in SLOTS:
            return ["forward " + self.random.choice([s for s in SLOTS if s != to])]
        if pick() < 0.1:
            commands.append("stash")
        for _ in range(self.random.randint(0, 4) if depth < 4 else 0):
            if self.budget > 0:
                self.budget -= 1
                commands.append(self.command(to, depth))
        if pick() < 0.1:
            commands.append("unstash")
        if pick() < 0.12:
            commands.append("become " + self.random.choice(["all", "all", "default", "default", "nothing"]))
        if pick() < 0.12:
            commands.append(self.random.choice(["fail 7 broken", "unhandled"]))
        return commands

    def command(self, to, depth):
        kind = self.random.random()
        later = [s for s in SLOTS if s > to] if to in SLOTS else []
        if kind < 0.15 and later:
            return self.ask(self.random.choice(later), depth)
        if kind < 0.25:
            where, type, _, message = self.send(depth + 1)
            return f"after {self.random.randint(0, 3000)} 0 {where} {type} {message}"
        if kind < 0.3:
            return "watch end"
        where, type, key, message = self.send(depth + 1)
        return f"tell {where} {type} {key} {message}"

    def ask(self, to, depth):
        """An ask of a later slot, so that no circle of actors waits for itself. The last command replies."""
        message = f"m{len(self.commands)}"
        self.commands[message] = []
        body = [c for c in self.body(to, depth + 1) if not c.startswith(("forward", "stash"))]
        if not any(c.startswith(("fail", "unhandled", "crash")) for c in body):
            body += [f"reply answer yes-{message}"] * self.random.choice([1, 1, 1, 2])
        self.commands[message] = body
        return f"call {to} {self.random.choice(TYPES)} stash {message}"

    def script(self):
        lines = [f"{message} {command}" for message, commands in self.commands.items() for command in commands]
        return "\n".join(lines) + "\n"


def ancestors(type):
    while True:
        yield type
        if not type:
            return
        type = type.rpartition(".")[0]


class Wrong(Exception):
    """The rules do not allow this step."""


class Envelope:
    count = 0

    def __init__(self, message, type, key, channel, ask=None, timer=False):
        self.message, self.type, self.key, self.channel, self.ask, self.timer = message, type, key, channel, ask, timer
        self.redelivered, self.pooled = False, False
        Envelope.count += 1
        self.number = Envelope.count  # one sender's envelopes are in this order


class Actor:
    def __init__(self, name):
        self.name, self.group = name, name[0]
        self.queue = []
        self.start()

    def start(self):
        """The state of a new process."""
        self.stash, self.forced, self.seen = [], [], set()
        self.becomes, self.rest, self.awaits, self.hand = "default", [], None, None
        self.watches = 0


class Model:
    def __init__(self, program):
        self.program = program
        self.actors = {name: Actor(name) for name in SLOTS}
        self.pools = {group: [] for group in GROUPS}
        self.dead = []  # (message, reason)
        self.results = {}  # of asks: message -> the note that the asker must write
        self.counter = 0
        for to, type, key, message in program.roots:
            self.send(to, Envelope(message, type, key, "outside"))

    # ---- sending

    def send(self, to, envelope):
        if to in self.actors:
            self.actors[to].queue.append(envelope)
        elif to in self.pools:
            self.pools[to].append(envelope)
        elif to == "x":
            self.route(envelope)
        else:
            raise Wrong(f"nobody is called {to}")

    def route(self, envelope):
        """Exchanges of the kind routing-key."""
        found = False
        for name, actor in self.actors.items():
            type, key = SUBSCRIPTIONS[actor.group]
            if type in ancestors(envelope.type) and (key is None or key == envelope.key):
                found = True
                actor.queue.append(Envelope(envelope.message, envelope.type, envelope.key,
                                            ("x", envelope.channel), timer=envelope.timer))
        if not found:
            self.die(envelope, "no_match")

    def die(self, envelope, reason):
        self.dead.append((envelope.message, reason))
        if envelope.ask:
            self.results.setdefault(envelope.message,
                                    {"unhandled": "ENOSYS", "error": "E2BIG", "crash": "ECONNRESET"}[reason])

    # ---- notes

    def note(self, note):
        actor = self.actors[note.name]
        if note.kind == "message":
            self.handled(actor, note.type, note.key, note.text, note.flags)
        elif note.kind == "called":
            self.called(actor, note.text)
        elif note.kind not in ("calling", "terminated"):
            raise Wrong(f"what is {note}?")

    def handled(self, actor, type, key, message, flags):
        if actor.awaits:
            raise Wrong(f"{actor.name} handles {message} while it awaits {actor.awaits}")
        if actor.becomes == "nothing":
            raise Wrong(f"{actor.name} handles {message}, but has become nothing")
        envelope = self.take(actor, message)
        expected = (("a" if envelope.ask else "") + ("r" if envelope.redelivered else "") +
                    ("t" if envelope.timer else "") + ("b" if actor.becomes == "all" else "")) or "-"
        given = (type, key.strip("'"), flags)
        if given != (envelope.type, envelope.key, expected):
            raise Wrong(f"{actor.name} got {message} as {given}, not {(envelope.type, envelope.key, expected)}")
        if actor.becomes == "default" and actor.group == "b" and envelope.type == "odd":
            raise Wrong(f"{actor.name} handles {message}, whose type it has no handler for")
        actor.hand, actor.verdict = envelope, None
        actor.rest = list(self.program.commands[message])
        self.go_on(actor)

    def take(self, actor, message):
        """Takes the envelope, which must be its sender's next. Unstashed ones come before all others."""
        while actor.forced and self.goes_unhandled(actor, actor.forced[0]):
            self.dead.append((actor.forced.pop(0).message, "unhandled"))
        if actor.forced:
            if actor.forced[0].message != message:
                raise Wrong(f"{actor.name} handles {message} before the unstashed {actor.forced[0].message}")
            return actor.forced.pop(0)
        channels = set()
        for envelope in actor.queue:
            if envelope.message == message and envelope.channel not in channels:
                actor.queue.remove(envelope)
                return envelope
            # An unhandled one was taken in its order, but left no note.
            if (envelope.message, "unhandled") not in self.silent:
                channels.add(envelope.channel)
        for envelope in self.pools[actor.group]:
            if envelope.message == message:
                self.pools[actor.group].remove(envelope)
                envelope.pooled = True
                return envelope
        raise Wrong(f"{actor.name} handles {message}, which is not its next: "
                    f"{[(e.message, e.channel) for e in actor.queue]}")

    def goes_unhandled(self, actor, envelope):
        """Whether the actor has no handler for this type, and a dead letter says so."""
        return (actor.becomes == "default" and actor.group == "b" and envelope.type == "odd" and
                (envelope.message, "unhandled") in self.silent)

    def called(self, actor, result):
        message = actor.awaits
        if not message or self.results.get(message) != result and not self.silently_unhandled(message, result):
            raise Wrong(f"{actor.name} was answered {result} to {message}, not {self.results.get(message)}")
        actor.awaits = None
        self.go_on(actor)

    def silently_unhandled(self, message, result):
        return result == "ENOSYS" and (message, "unhandled") in self.silent

    # ---- commands

    def go_on(self, actor):
        while actor.rest and not actor.awaits:
            command, *words = actor.rest.pop(0).split()
            getattr(self, "do_" + command)(actor, *words)
        if not actor.rest and not actor.awaits and actor.hand:
            envelope, actor.hand = actor.hand, None
            if actor.verdict:
                self.die(envelope, actor.verdict)

    def do_tell(self, actor, to, type, key, message):
        self.send(to, Envelope(message, type, key, (actor.name, to)))

    def do_after(self, actor, _, __, to, type, message):
        self.counter += 1
        self.send(to, Envelope(message, type, "-", ("timer", self.counter), timer=True))

    def do_call(self, actor, to, type, _, message):
        self.send(to, Envelope(message, type, "-", (actor.name, to), ask=True))
        actor.awaits = message

    def do_reply(self, actor, _, text):
        envelope = actor.hand
        if envelope.message in self.results:
            self.dead.append((text, "late_reply"))
        else:
            self.results[envelope.message] = text

    def do_forward(self, actor, to):
        if to == actor.name:
            return
        envelope, actor.hand = actor.hand, None
        envelope.channel, envelope.redelivered, envelope.pooled = ("forwarded", actor.name, to), False, False
        self.send(to, envelope)

    def do_become(self, actor, what):
        actor.becomes = what

    def do_stash(self, actor):
        if actor.hand.message not in actor.seen:
            actor.seen.add(actor.hand.message)
            actor.stash.append(actor.hand)
            actor.hand, actor.rest = None, []

    def do_unstash(self, actor):
        actor.forced += actor.stash
        actor.stash = []

    def do_watch(self, actor, _):
        actor.watches += 1

    def do_fail(self, actor, *_):
        actor.verdict = "error"

    def do_unhandled(self, actor):
        actor.verdict = "unhandled"

    def do_crash(self, actor):
        """Messages to the pool may go to any of its slots again; the others go to the successor, in their order."""
        envelope, back = actor.hand, actor.forced + actor.stash
        actor.stash = []
        if envelope.redelivered or GROUPS[actor.group]["retries"] == 0:
            self.die(envelope, "crash")
        else:
            envelope.redelivered = True
            back.append(envelope)
        actor.start()
        back.sort(key=lambda e: e.number)
        actor.queue = [e for e in back if not e.pooled] + actor.queue
        self.pools[actor.group] += [e for e in back if e.pooled]

    # ---- the end

    def play(self, notes, dead):
        """Follows all notes and dead letters, (message, reason). Returns the messages that are unaccounted for."""
        self.silent = set(dead)
        for note in notes:
            self.note(note)
        left = [self.settle(envelope, actor, dead) for actor in self.actors.values()
                for envelope in actor.forced + actor.queue + actor.stash]
        left += [self.settle_pooled(envelope, group, dead) for group, pool in self.pools.items() for envelope in pool]
        return [message for message in left if message] + [a.awaits for a in self.actors.values() if a.awaits]

    def settle(self, envelope, actor, dead):
        """Accounts for an envelope that is left at an actor: stashed, or dead. Returns its message otherwise."""
        if envelope in actor.stash:
            return None
        may_die = actor.becomes == "nothing" or (actor.group == "b" and envelope.type == "odd")
        if may_die and (envelope.message, "unhandled") in dead:
            self.dead.append((envelope.message, "unhandled"))
            return None
        return envelope.message

    def settle_pooled(self, envelope, group, dead):
        may_die = any(a.becomes == "nothing" for a in self.actors.values() if a.group == group) or \
            (group == "b" and envelope.type == "odd")
        if may_die and (envelope.message, "unhandled") in dead:
            self.dead.append((envelope.message, "unhandled"))
            return None
        return envelope.message
