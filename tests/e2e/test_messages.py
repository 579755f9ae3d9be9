# SPDX-License-Identifier: MIT
"""Messages between workers: order, mailboxes that outlive workers, policies, asks, monitors, timers."""
import errno
import os
import signal
import unittest

from test_actors import PLAYER, read_notes
from troupe import QUICK, SANITIZED, Bell, TestCase, helper, ini, limit_address_space, text

ACTORS = "io.troupe.Actors."


class Case(TestCase):
    def cast(self, size=1, options=(), **sections):
        """Groups "driver", whose jobs send messages, and "actor", which receives them."""
        s = self.supervisor(options=options)
        self.write_cast(s)
        s.write("actor.group", ini(PLAYER, Group=s.notes, Restart=QUICK, **{"Pool": {"Size": size}, **sections}))
        return s.start()

    def write_cast(self, s):
        s.talk = s.path("talk")
        s.notes = {"Environment": f"PLAYER_NOTES={s.talk}"}
        s.write("driver.group", ini(PLAYER, Group=s.notes, Restart=QUICK, Pool={"Size": 3}))

    def result(self, s, *words):
        return s.do("driver", " ".join(words))["result"]["data"]

    def said(self, s, *words):
        result = self.result(s, *words)
        self.assertNotIn("error", result, words)
        return result

    def lines(self, s, name=""):
        """"NAME TYPE TEXT" of each message, with " again" behind redelivered ones."""
        return [f"{n.name} {n.type} {n.text}{' again' if 'r' in n.flags else ''}" for n in read_notes(s.talk, name)]

    def wait_lines(self, s, count):
        s.until(lambda: len(self.lines(s)) >= count)
        lines = self.lines(s)
        self.assertEqual(len(lines), count, lines)
        return lines


class Telling(Case):
    def test_C2_messages_of_one_sender_arrive_in_order(self):
        for options in ("--wake", "futex"), ("--wake", "eventfd"):
            with self.subTest(options=options):
                s = self.cast(options=options, Worker={"MailboxMax": 100000})
                self.said(s, "burst actor/0 20000 note")
                self.assertEqual(self.wait_lines(s, 20000), [f"actor/0 note {i}" for i in range(20000)])
                s.stop()

    def test_C2_one_worker_has_at_most_BatchMax_of_a_pool_in_hand_before_the_others_get_theirs(self):
        for words, most in ({}, 10), ({"BatchMax": 3}, 3):
            with self.subTest(most=most):
                s = self.cast(Pool={"Size": 2, **words})
                stuck = s.worker("actor/0")["pid"]
                os.kill(stuck, signal.SIGSTOP)  # receives messages, and handles none
                self.said(s, "burst actor 500 note")
                s.until(lambda: len(self.lines(s)) >= 500 - most)
                self.assertEqual({line.split()[0] for line in self.lines(s)}, {"actor/1"})
                os.kill(stuck, signal.SIGCONT)
                lines = self.wait_lines(s, 500)
                self.assertLessEqual(len([line for line in lines if line.startswith("actor/0")]), most)
                self.assertEqual(sorted(int(line.split()[2]) for line in lines), list(range(500)))
                s.stop()

    def test_what_a_handler_asks_the_supervisor_is_answered_however_full_its_mailbox_is(self):
        for wake in "futex", "eventfd":
            with self.subTest(wake=wake):
                s = self.cast(options=("--wake", wake),
                              Worker={"MailboxSize": "16K", "InlineMax": "1K", "MailboxMax": 10000})
                pid = s.worker("actor/0")["pid"]
                os.kill(pid, signal.SIGSTOP)
                self.said(s, "burst actor/0 1000 do.look")  # each looks up a name
                os.kill(pid, signal.SIGCONT)
                self.assertEqual(self.wait_lines(s, 1000), [f"actor/0 do.look {i}" for i in range(1000)])
                s.stop()

    def test_a_large_payload_arrives_whole(self):
        s = self.cast(Worker={"InlineMax": "1K", "MailboxSize": "16K"})
        self.said(s, "tell actor/0 note -", "x" * 3000)
        self.said(s, "tell actor/0 note -", "y" * 100)
        self.assertEqual(self.wait_lines(s, 2), ["actor/0 note " + "x" * 3000, "actor/0 note " + "y" * 100])

    @unittest.skipIf(SANITIZED, "a sanitizer needs more address space than the limit leaves")
    def test_a_worker_without_address_space_for_a_payload_refuses_the_message_and_continues(self):
        s = self.cast()
        pid = s.worker("actor/0")["pid"]
        limit_address_space(pid, 1 << 18)
        large = text("x" * 700000)
        failure = self.refused("Failed", s.call, ACTORS + "Ask", to="actor/0", type="note", payload=large)
        self.assertIn("payload", failure["reason"])
        s.call(ACTORS + "Tell", to="actor/0", type="note", payload=large)
        self.said(s, "tell actor/0 note - fine")
        self.assertEqual(self.wait_lines(s, 1), ["actor/0 note fine"])
        letters = s.call(ACTORS + "ListDeadLetters", filter={"queue": "errors"})["letters"]
        self.assertEqual([(letter["reason"], letter["code"]) for letter in letters], [("error", errno.ENOMEM)] * 2)
        self.assertEqual(s.worker("actor/0")["pid"], pid)


class Crashes(Case):
    def test_what_a_dead_worker_had_not_consumed_is_delivered_to_its_successor_in_order(self):
        s = self.cast()
        bell = Bell(s, "bell")
        self.said(s, "tell actor/0 do.wait -", bell.path)
        self.said(s, "tell actor/0 do.crash.once - now")
        self.said(s, "burst actor/0 3000 note")
        bell.ring()
        lines = self.wait_lines(s, 3002)
        self.assertEqual(lines[:2], [f"actor/0 do.wait {bell.path}", "actor/0 do.crash.once now again"])
        self.assertEqual(lines[2:], [f"actor/0 note {i}" for i in range(3000)])

    def test_the_death_report_tells_what_the_worker_was_handling(self):
        s = self.cast()
        self.said(s, "tell actor/0 note - first")
        self.said(s, "tell actor/0 do.crash - now")
        s.wait_event("worker.died", "actor", 1)
        messages = s.call("ListDeaths", target="actor")["deaths"][-1]["messages"]
        self.assertEqual([m["type"] for m in messages], ["do.crash"])
        self.assertEqual(messages[0]["sender"][:7], "driver/")

    def test_a_message_that_kills_each_worker_goes_to_the_error_queue(self):
        s = self.cast(Worker={"MessageRetries": 2})
        self.said(s, "burst actor/0 1 do.crash")
        self.said(s, "burst actor/0 1 note")
        self.assertEqual(self.wait_lines(s, 1), ["actor/0 note 0"])
        s.wait_event("letter.error")
        self.assertEqual([death["messages"][0]["type"] for death in s.deaths("actor")], ["do.crash"] * 3)

    def test_killing_at_any_time_loses_and_doubles_nothing_but_what_is_in_hand(self):
        s = self.cast(Worker={"MessageRetries": 1000, "MailboxMax": 100000})
        s.create("driver", "burst actor/0 20000 note")
        for i in range(20):
            s.until(lambda i=i: len(self.lines(s, "actor/0")) >= 800 * (i + 1))
            worker = s.wait_worker("actor/0", "idle")
            os.kill(worker["pid"], signal.SIGKILL)
            s.wait_event("worker.died", "actor", i + 1)
        s.until(lambda: " 19999" in self.lines(s, "actor/0")[-1])
        seen = -1
        for line in self.lines(s, "actor/0"):
            number, again = int(line.split()[2]), line.endswith(" again")
            self.assertIn(number, (seen, seen + 1) if again else (seen + 1,), line)
            seen = number
        self.assertEqual(seen, 19999)


class Asking(Case):
    def test_an_ask_fails_with_what_its_handler_failed_with(self):
        s = self.cast()
        self.assertEqual(self.result(s, "ask actor/0 do.errno 0 13"), "error EACCES Permission denied")
        for code, name in ("17", "EEXIST"), ("4096", "EIO"), ("0", "EIO"), ("-13", "EIO"):
            self.assertEqual(self.result(s, "ask actor/0 do.fail 0", code, "as it was told"), f"error {name} as it was told")
        failed = self.refused("Failed", s.call, "io.troupe.Actors.Ask", to="actor/0", type="do.fail",
                              payload=text("17 as it was told"))
        self.assertEqual((failed["code"], failed["reason"]), ("EEXIST", "as it was told"))


class Limits(Case):
    """The rules for jobs hold for messages as well."""

    def test_a_handler_that_hangs_is_caught_as_a_job_is(self):
        for wake in "futex", "eventfd":
            with self.subTest(wake=wake):
                s = self.cast(options=("--wake", wake), Worker={"WatchdogSec": "500ms", "OnCrash": "error-queue"},
                              Resources={"LimitCORE": 0})
                bell = Bell(s, "bell")
                for generation in 1, 2:
                    self.said(s, "tell actor/0 note -", str(generation))
                    self.said(s, "tell actor/0 do.wait -", bell.path)
                    s.wait_event("worker.died", "actor", generation)
                self.said(s, "tell actor/0 note - 3")
                lines = [line for line in self.wait_lines(s, 5) if " do.wait " not in line]
                self.assertEqual(lines, [f"actor/0 note {i}" for i in (1, 2, 3)])
                self.assertEqual({(d["cause"], d["signal"]) for d in s.deaths()}, {("watchdog", "SIGABRT")})
                s.stop()

    def test_a_handler_that_waits_for_an_answer_for_ever_is_caught_too(self):
        s = self.cast(2, Worker={"WatchdogSec": "500ms", "OnCrash": "error-queue"}, Resources={"LimitCORE": 0})
        s.call("io.troupe.Actors.Pause", actor="actor/1")
        self.said(s, "tell actor/0 do.call - actor/1 do.reply stash echo queried")
        s.wait_event("worker.died", "actor", 1)
        [death] = s.deaths()
        self.assertEqual((death["cause"], death["worker"]), ("watchdog", "actor/0"))

    def test_neither_idleness_nor_a_pause_is_taken_for_a_hang(self):
        s = self.cast(3, Worker={"WatchdogSec": "500ms"})
        s.write("clock.group", ini(PLAYER, Worker={"WatchdogSec": "2s", "OnCrash": "error-queue"},
                                   Resources={"LimitCORE": 0}))
        s.call("Reload")
        s.wait_worker("clock/0", "idle")
        self.said(s, "burst actor/0 100 note")
        self.said(s, "tell actor/1 later - me")
        self.wait_lines(s, 100)
        s.until(lambda: s.call(ACTORS + "Lookup", name="actor/1")["actor"]["stashed"] == 1)
        os.kill(s.worker("actor/2")["pid"], signal.SIGSTOP)
        self.said(s, "tell actor/2 note - later")  # stays in its inbox
        s.call("io.troupe.Actors.Pause", actor="actor/2")
        self.said(s, "tell clock/0 do.wait -", Bell(s, "bell").path)
        os.kill(s.worker("actor/2")["pid"], signal.SIGCONT)
        s.wait_event("worker.died", "clock")  # four times their WatchdogSec= have passed
        s.call("io.troupe.Actors.Resume", actor="actor/2")
        self.wait_lines(s, 101)
        self.assertEqual({w["generation"] for w in s.group("actor")["workers"]}, {1})

    def test_a_worker_whose_memory_grows_with_its_messages_is_replaced(self):
        s = self.cast(Pool={"Size": 1, "MaxMemory": "16M"})
        self.said(s, "tell actor/0 do.leak - 50000000")  # its initial memory is no growth
        self.wait_lines(s, 1)
        while s.worker("actor/0")["generation"] == 1:
            self.said(s, "tell actor/0 do.leak - 1000000")
        self.assertGreater(len(self.lines(s)), 10)
        self.assertIn("MaxMemory", s.wait_event("worker.recycled", "actor")["message"])


class Policies(Case):
    def small(self, **worker):
        s = self.cast(Worker={"MailboxMax": 10, **worker})
        s.call("Stop", target="actor")
        s.wait_worker("actor/0", "stopped")
        return s

    def test_O6_a_full_mailbox_refuses(self):
        s = self.small(Overflow="reject")
        self.said(s, "burst actor/0 15 note")
        self.assertEqual(self.result(s, "ask actor/0 do.reply 0 echo x").split()[:2], ["error", "ENOBUFS"])
        s.call("Start", target="actor")
        self.assertEqual(self.wait_lines(s, 10), [f"actor/0 note {i}" for i in range(10)])

    def test_O6_a_full_mailbox_drops_the_oldest(self):
        s = self.small(Overflow="drop-oldest")
        self.said(s, "burst actor/0 15 note")
        s.call("Start", target="actor")
        self.assertEqual(self.wait_lines(s, 10), [f"actor/0 note {i}" for i in range(5, 15)])

    def test_O6_a_full_mailbox_has_the_sender_wait(self):
        s = self.small(Overflow="block")
        job = s.create("driver", "burst actor/0 20000 note")
        s.call("Start", target="actor")
        self.assertEqual(self.wait_lines(s, 20000), [f"actor/0 note {i}" for i in range(20000)])
        s.wait_job(job)

    def test_a_job_ends_while_a_message_that_its_worker_sent_waits_for_room(self):
        s = self.small(Overflow="block")
        self.said(s, "burst actor/0 15 note")
        s.call("Start", target="actor")
        self.assertEqual(self.wait_lines(s, 15), [f"actor/0 note {i}" for i in range(15)])
        self.assertEqual(s.call("io.troupe.Actors.ListDeadLetters")["letters"], [])

    def test_a_worker_whose_large_result_is_behind_a_message_without_room_is_ended_by_the_time_out(self):
        s = self.small(Overflow="block")
        s.write("sender.group", ini(PLAYER, Group=s.notes, Restart=QUICK, Worker={"InlineMax": 1}))
        s.call("Reload")
        job = s.do("sender", "boast actor/0 15 note", timeout_usec=300000, max_retries=0)
        self.assertEqual((job["state"], job["result"]), ("succeeded", text("all sent")))  # it was answered before
        self.assertEqual([death["cause"] for death in s.deaths("sender")], ["job_timeout"])


class BehindAnExchange(Case):
    """An exchange whose one subscriber has Overflow=block."""

    def posted(self, kind="single"):
        s = self.cast(Worker={"MailboxMax": 10, "Overflow": "block"})
        s.call(ACTORS + "CreateExchange", name="post", kind=kind)
        self.subscribe(s)
        s.call("Stop", target="actor")
        s.wait_worker("actor/0", "stopped")
        return s

    def subscribe(self, s, call="Subscribe", actor="actor/0"):
        s.call(ACTORS + call, exchange="post", actor=actor)

    def dead(self, s):
        counts = s.call(ACTORS + "ListDeadLetters")["counts"]
        return {count["reason"]: count["count"] for count in counts if count["count"]}

    def hold_up(self, s, count):
        """The job of a sender that waits for room."""
        job = s.create("driver", f"burst post {count} note")
        s.until(lambda: s.call(ACTORS + "Lookup", name="actor/0")["actor"]["waiting"] == 10)
        return job

    def test_O6_the_sender_waits_and_loses_nothing(self):
        for kind in "single", "typed_single":
            with self.subTest(kind=kind):
                s = self.posted(kind)
                job = self.hold_up(s, 20000)
                s.call("Start", target="actor")
                self.assertEqual(self.wait_lines(s, 20000), [f"actor/0 note {i}" for i in range(20000)])
                s.wait_job(job)
                self.assertEqual(self.dead(s), {})
                s.stop()


class Keyed(Case):
    """Messages to a group with Cells=by-key as a whole."""

    def keyed(self, **worker):
        return self.cast(Pool={"Size": 1, "Cells": "by-key"}, Worker={"MailboxMax": 10, **worker})

    def test_O6_the_sender_waits_for_the_cell_that_is_full(self):
        s = self.keyed(Overflow="block")
        bell = Bell(s, "bell")
        self.said(s, "tell actor do.wait a", bell.path)
        job = s.create("driver", "burst actor 20000 note a")
        self.said(s, "burst actor 3 note b")  # another cell has room
        bell.ring()
        s.wait_job(job)
        lines = self.wait_lines(s, 20004)
        self.assertEqual([line for line in lines if line.startswith("actor/a/0 note")],
                         [f"actor/a/0 note {i}" for i in range(20000)])
        self.assertEqual(s.call("io.troupe.Actors.ListDeadLetters")["letters"], [])

    def test_a_pause_of_the_whole_holds_its_messages_back_in_order(self):
        s = self.keyed()
        s.call("io.troupe.Actors.Pause", actor="actor")
        self.said(s, "burst actor 4 note a")
        self.assertEqual(s.call("io.troupe.Actors.Lookup", name="actor")["actor"]["waiting"], 4)
        self.said(s, "burst actor 12 note b")
        self.assertEqual(len(s.call("io.troupe.Actors.ListDeadLetters")["letters"]), 6)  # MailboxMax= is 10
        s.call("io.troupe.Actors.Resume", actor="actor")
        self.said(s, "burst actor 1 last a")
        lines = self.wait_lines(s, 11)
        self.assertEqual([line for line in lines if "/a/" in line],
                         [f"actor/a/0 note {i}" for i in range(4)] + ["actor/a/0 last 0"])


class Names(Case):
    def test_an_exchange_beyond_the_limit_is_refused_with_a_sentence(self):
        s = self.cast()
        with s.connect() as connection:
            for i in range(10000):
                connection.call("io.troupe.Actors.CreateExchange", name=f"x{i}", kind="single")
        s.write("one-more.exchange", "[Exchange]\n")
        [problem] = self.refused("BadConfiguration", s.call, "Reload")["problems"]
        self.assertIn("one-more.exchange", problem)
        self.assertIn("10001 exchanges, with those made at run time; allowed: at most 10000", problem)
        s.call("io.troupe.Actors.DeleteExchange", name="x0")
        s.call("Reload")

    def test_a_pool_counts_what_it_accepts_whichever_way_it_goes(self):
        s = self.cast(2)
        self.said(s, "burst actor 100 note")
        self.wait_lines(s, 100)
        actors = s.call("io.troupe.Actors.ListActors", under="actor")["actors"]
        accepted = {actor["name"]: actor["accepted"] for actor in actors}
        self.assertEqual(accepted, {"actor": 100, "actor/0": 0, "actor/1": 0})


class Hostile(Case):
    def beside(self, how, wake):
        s = self.supervisor(options=("--wake", wake))
        self.write_cast(s)
        s.write("actor.group", ini(PLAYER, Group=s.notes, Restart=QUICK))
        s.write("culprit.group", ini(f"{helper('hostile')} {how}", Restart=QUICK,
                                     Worker={"MessageRetries": 1, "MailboxSize": "16K", "InlineMax": "4K",
                                             "TimeoutStopSec": "200ms"}))
        return s.start()

    def honest_work(self, s):
        for i in range(20):
            self.assertEqual(self.said(s, f"ask actor do.reply 0 echo {i}"), f"echo {i}")
        for group in "driver", "actor":
            self.assertEqual({w["generation"] for w in s.group(group)["workers"]}, {1})

    def test_an_actor_that_breaks_the_rules_ends_and_nobody_else_does(self):
        for how in ("wrong-letter", "wrong-unstash", "settled-letter", "odd-type", "short-tell", "cookie-less",
                    "stray-blob", "head-in-record", "head-ahead"):
            for wake in "futex", "eventfd":
                with self.subTest(how=how, wake=wake):
                    s = self.beside(how, wake)
                    fds = s.n_fds_between_turns()
                    s.create("driver", "burst culprit/0 300 x")
                    s.wait_event("worker.died", "culprit")
                    self.honest_work(s)
                    self.assertIn("violation", {death["cause"] for death in s.deaths()})
                    s.call("Stop", target="culprit")
                    s.until(lambda: len(s.fds()) <= fds)
                    s.stop()

    def test_forgeries_reach_nobody(self):
        for how in "forged-reply", "forged-reference":
            s = self.beside(how, "futex")
            self.assertEqual(self.said(s, "ask culprit/0 x 0 x"), " ")
            self.honest_work(s)
            self.assertEqual(s.worker("culprit/0")["generation"], 1)
            s.stop()

    def test_a_wild_word_of_what_is_in_hand_harms_nobody(self):
        s = self.beside("taken-anywhere", "futex")
        s.create("driver", "burst culprit/0 30 x")
        s.wait_event("worker.died", "culprit", 3)
        self.honest_work(s)
        s.call("Stop", target="culprit")

    def test_a_flood_of_reasons_for_log_lines_leaves_room_in_the_log(self):
        s = self.beside("log-flood", "futex")
        self.assertEqual(self.said(s, "ask culprit/0 x 0 x"), " ")  # three thousand times three log lines
        self.honest_work(s)
        self.assertEqual(s.do("driver", "deregister nobody")["result"]["data"], "0")
        s.stop()
        lines = s.log().splitlines()
        self.assertTrue(any("driver" in line and "deregisters" in line for line in lines), lines[-20:])
        self.assertLess(sum("culprit/0: " in line for line in lines), 1000)

    def test_floods_of_messages_starve_nobody_and_stay_bounded(self):
        for how in "ask-flood", "tell-flood":
            with self.subTest(how=how):
                s = self.beside(how, "futex")
                self.said(s, "tell culprit/0 x - x")
                self.honest_work(s)
                self.honest_work(s)
                s.call("Stop", target="culprit")
                s.stop()
