# SPDX-License-Identifier: MIT
"""Random programs of actors on the real supervisor, step by step against the rules; see actor_model.py.

TESTS_SEED repeats one, TESTS_PROGRAMS says how many are tried.
"""
import os
import random
import time

from actor_model import Model, Program, Wrong
from test_dead_letters import ACTORS, Letters
from troupe import LIMIT, ini, helper

PROGRAMS = int(os.environ.get("TESTS_PROGRAMS", "30"))


class RandomActors(Letters):
    def played(self, program):
        """A supervisor with all actors of a program, subscribed and ready."""
        s = self.players(groups=(), start=False)
        for group, start, types, on_crash in (("a", "subscribe x order -", "", "error-queue"),
                                              ("b", "subscribe x order.created k", "t,order", "retry")):
            path = s.path("script-" + group)
            with open(path, "w", encoding="utf-8") as file:
                file.write(f"start {start}\n{program.script()}")
            environment = ["PLAYER_SCRIPT=" + path, "PLAYER_NOTES=" + s.path("notes"), "PLAYER_TYPES=" + types]
            s.write(group + ".group", ini(helper("workers/player"), Group={"Environment": environment},
                                          Pool={"Size": 2}, Restart={"MinSec": "1ms", "StartLimitBurst": 0},
                                          Worker={"OnCrash": on_crash, "MessageRetries": 1}))
        s.write("x.exchange", "[Exchange]\nType=routing-key\nMaySubscribe=a b\n")
        s.write("end.exchange", "")
        s.start()
        s.until(lambda: {e["name"]: e["subscriptions"] for e in s.call(ACTORS + "ListExchanges")["exchanges"]}["x"] == 4)
        return s

    def dead(self, s, payloads):
        """(message or reply, reason) of all dead letters. Requests each payload once."""
        for letter in s.call(ACTORS + "ListDeadLetters")["letters"]:
            if letter["id"] not in payloads:
                whole = s.call(ACTORS + "GetDeadLetter", id=letter["id"])["letter"]
                payloads[letter["id"]] = (whole["payload"]["data"], letter["reason"])
        return list(payloads.values())

    def play(self, seed):
        program = Program(seed)
        s = self.played(program)
        for to, type, key, message in program.roots:
            try:
                self.tell(s, to, type, message, None if key == "-" else key)
            except Exception as error:
                if getattr(error, "name", "") != "NoMatch":
                    raise
        limit, payloads = time.monotonic() + LIMIT, {}
        while True:
            notes = s.notes.lines()
            dead = self.dead(s, payloads)  # after the notes: they skip what is dead
            model = Model(program)
            try:
                left = model.play(notes, dead)
            except Wrong as wrong:
                raise Wrong(f"{wrong}\nafter {' | '.join(' '.join(note) for note in notes)}\n"
                            f"dead: {dead}\nprogram: {program.roots} {program.commands}") from None
            if not left and sorted(model.dead) == sorted(dead):
                break
            if time.monotonic() > limit:
                raise Wrong(f"not accounted for: {left}; dead letters {sorted(dead)}, by the rules "
                            f"{sorted(model.dead)}")
        self.end(s, model)

    def end(self, s, model):
        """Each monitor hears once, and then nothing happens any more."""
        before = len(s.notes.lines(kind="message"))
        os.unlink(os.path.join(s.config, "end.exchange"))
        s.call("Reload")
        for name, actor in model.actors.items():
            if actor.becomes != "nothing" or actor.watches > 0:
                s.until(lambda: len(s.notes.lines(name, "terminated")) >= actor.watches)
            self.assertEqual(len(s.notes.lines(name, "terminated")), actor.watches, name)
        self.assertEqual(len(s.notes.lines(kind="message")), before)
        s.stop()

    def test_random_programs_keep_the_rules(self):
        seeds = [int(os.environ["TESTS_SEED"])] if "TESTS_SEED" in os.environ else \
            [random.randrange(1 << 32) for _ in range(PROGRAMS)]
        for seed in seeds:
            with self.subTest(f"TESTS_SEED={seed}"):
                self.play(seed)


del Letters  # its own tests are elsewhere
