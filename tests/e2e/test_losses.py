# SPDX-License-Identifier: MIT
"""Messages that cannot be delivered, and the bounds on keeping them. See workers/player.c."""

from test_actors import PLAYER, ActorsTestCase
from troupe import ACTOR, FAULTY_TROUPED, QUICK, TestCase, VarlinkError, ini, text


class Refusals(ActorsTestCase):
    def setUp(self):
        super().setUp()
        self.add("keyed", Pool={"Cells": "by-key", "CellsMax": 1})
        self.s.call("Reload")

    def test_a_message_that_no_cell_takes_is_refused_with_the_reason(self):
        for message in {}, {"key": "not a key"}:
            parameters = self.refused("BadOption", self.call, "Tell", to="keyed", **message)
            self.assertEqual(parameters["option"], "key")
            self.assertIn("Cells=by-key", parameters["allowed"])
        self.call("Tell", to="keyed", key="one")
        self.assertEqual(self.refused("TooManyCells", self.call, "Tell", to="keyed", key="two"), {"group": "keyed", "maximum": 1})
        error = self.s.ctl("tell", "keyed", "hello").stderr
        self.assertIn("Cells=by-key", error)
        self.assertNotIn("did you mean", error)

    def test_so_is_one_that_comes_through_an_exchange(self):
        self.do("a", "exchange post 0")
        self.call("Subscribe", exchange="post", actor="keyed")
        self.call("Tell", to="post", key="one")
        for call in "Tell", "Ask":
            parameters = self.refused("BadOption", self.call, call, to="post", key="two")
            self.assertEqual(parameters["option"], "key")
            self.assertIn("CellsMax=", parameters["allowed"])
        self.assertEqual(self.s.group("keyed")["refused"], 0)  # counts jobs

    def test_accepted_counts_what_is_accepted(self):
        self.add("b", Worker={"MailboxMax": 2})
        self.s.call("Reload")
        self.call("Pause", actor="b/0")
        for _ in range(5):
            try:
                self.call("Tell", to="b/0", type="x")
            except VarlinkError as error:
                self.assertEqual(error.name, "MailboxFull")
        self.assertRaises(VarlinkError, self.call, "Tell", to="keyed")
        self.do("a", "exchange post 0")
        self.assertRaises(VarlinkError, self.call, "Tell", to="post")
        for name, count in ("b/0", 2), ("keyed", 0), ("post", 0):
            self.assertEqual(self.call("Lookup", name=name)["actor"]["accepted"], count, name)


class Deaths(ActorsTestCase):
    worker = {"MessageRetries": 2}

    def generations(self, type):
        """Reports of the workers that a message of this type has killed."""
        self.dead(1, queue="errors", type=type)
        [letter] = self.call("ListDeadLetters", filter={"queue": "errors", "type": type})["letters"]
        self.assertEqual((letter["reason"], letter["attempts"]), ("crash", 3))
        return [death["generation"] for death in self.call("GetDeadLetter", id=letter["id"])["letter"]["deaths"]]

    def test_a_message_that_killed_several_workers_keeps_all_their_reports(self):
        self.do("a", "tell b/0 do.crash - x")
        self.assertEqual(self.generations("do.crash"), [1, 2, 3])

    def test_so_does_one_whose_handler_waited_for_an_answer(self):
        bell = self.gate("c")
        self.do("a", "tell b/0 do.call - c/0 do.reply run answer yes")
        self.do("a", "tell b/0 do.crash - x")
        self.assertEqual(self.generations("do.call"), [1, 2, 3])
        bell.ring()


class Shortages(TestCase):
    def faulty(self, fault, program=PLAYER, **sections):
        s = self.supervisor(program=FAULTY_TROUPED, environment={"TROUPE_FAULT": fault})
        environment = {"Environment": [f"PLAYER_NOTES={s.path('log')}", "LONG=" + 200 * "x"]}
        s.write("actor.group", ini(program, Group=environment, Restart=QUICK, **sections))
        return s.start()

    def test_a_letter_that_cannot_be_requeued_for_want_of_memory_is_kept(self):
        s = self.faulty("envelope:3")  # told, refused, requeued
        s.call("io.troupe.Actors.Tell", to="actor/0", type="do.unhandled", payload=text(500 * "x"))
        letter = s.until(lambda: s.call("io.troupe.Actors.ListDeadLetters")["letters"])[0]
        self.refused("NotRequeued", s.call, "io.troupe.Actors.Requeue", id=letter["id"])
        kept = s.call("io.troupe.Actors.GetDeadLetter", id=letter["id"])["letter"]
        self.assertEqual(kept["payload"], text(500 * "x"))
        self.assertEqual(s.call("io.troupe.Actors.Requeue", id=letter["id"])["requeued"], 1)

    def test_an_exchange_without_memory_for_a_copy_leaves_a_dead_letter(self):
        s = self.faulty("envelope:2")
        s.call("io.troupe.Actors.CreateExchange", name="post", kind="typed_multi")
        s.call("io.troupe.Actors.Subscribe", exchange="post", actor="actor/0", type="x")
        self.refused("Internal", s.call, "io.troupe.Actors.Tell", to="post", type="x", payload=text("y"))
        [letter] = s.call("io.troupe.Actors.ListDeadLetters")["letters"]
        self.assertEqual((letter["reason"], letter["recipient"]), ("no_memory", "post"))

    def test_an_asker_learns_later_what_could_not_be_told_for_want_of_memory(self):
        s = self.faulty("envelope:1,envelope:1")  # asked, refused
        s.call("io.troupe.Actors.CreateExchange", name="post", kind="typed_multi")
        self.assertEqual(s.do("actor", "ask post x 0")["result"], text("error ETIMEDOUT no reply in time"))

    def test_a_result_that_is_lost_for_want_of_memory_says_so(self):
        s = self.faulty("payload:1", ACTOR, Jobs={"MaxRetries": 0})
        job = s.do("actor", "environment LONG")
        self.assertEqual(job["state"], "dead")
        self.assertIn("its result is lost: the supervisor: Cannot allocate memory", job["reason"])
