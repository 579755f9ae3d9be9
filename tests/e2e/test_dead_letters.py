# SPDX-License-Identifier: MIT
"""Messages from outside, exchanges, timers, dead letters and the error queue: socket and troupectl."""
import os
import re
from pathlib import Path

from test_actors import PLAYER, read_notes
from test_durable import HOUR
from troupe import ACTOR, QUICK, Bell, TestCase, VarlinkError, ini, text

ACTORS = "io.troupe.Actors."


class Notes:
    """The notes of players."""

    def __init__(self, supervisor):
        self.supervisor, self.path = supervisor, supervisor.path("notes")

    def lines(self, of=None, kind=None):
        return [note for note in read_notes(self.path) if of in (None, note.name) and kind in (None, note.kind)]

    def payloads(self, of=None):
        """The handled messages, in order."""
        return [note.text for note in self.lines(of, "message")]

    def wait(self, count, of=None, kind="message"):
        self.supervisor.until(lambda: len(self.lines(of, kind)) >= count)
        return self.lines(of, kind)


class Letters(TestCase):
    def players(self, script="", groups=("p",), sections=None, start=True, **options):
        """A supervisor with groups of two players."""
        s = self.supervisor({}, **options)
        s.notes = Notes(s)
        Path(s.path("script")).write_text(script, encoding="utf-8")
        for group in groups:
            self.write_players(s, group, sections)
        return s.start() if start else s

    def write_players(self, s, group, sections=None):
        environment = ["PLAYER_SCRIPT=" + s.path("script"), "PLAYER_NOTES=" + s.path("notes")]
        sections = {"Pool": {"Size": 2}, **(sections or {})}
        own = sections.pop("Group", {})
        s.write(group + ".group", ini(PLAYER, Group={"Environment": environment, **own}, **sections))

    def tell(self, s, to, type="t", payload=None, key=None):
        parameters = {"to": to, "type": type}
        if payload is not None:
            parameters["payload"] = text(payload)
        if key is not None:
            parameters["key"] = key
        return s.call(ACTORS + "Tell", **parameters)

    def letters(self, s, **filter):
        return s.call(ACTORS + "ListDeadLetters", filter=filter)["letters"][::-1]  # oldest first

    def wait_letters(self, s, count, **filter):
        s.until(lambda: len(self.letters(s, **filter)) >= count)
        return self.letters(s, **filter)


class Messages(Letters):
    def test_C1_telling_reaches_an_actor_by_its_address_a_name_or_its_pool(self):
        s = self.players("start register alice\n")
        self.tell(s, "p/1", payload="one")
        self.tell(s, "p", payload="two")
        self.tell(s, "alice", "a.type", payload="three", key="k")
        notes = s.notes.wait(3)
        self.assertEqual(sorted(note.text for note in notes), ["one", "three", "two"])
        [three] = [note for note in notes if note.text == "three"]
        self.assertEqual(three[2:6], ("a.type", "'k'", "0", "-"))

    def test_an_actor_that_is_not_there_is_told_with_the_nearest_name(self):
        s = self.players(groups=("stock",))
        self.assertEqual(self.refused("NoSuchActor", self.tell, s, "stok"), {"name": "stok", "nearest": "stock"})
        self.assertEqual(self.refused("NoSuchActor", s.call, ACTORS + "Lookup", name="stock/7")["name"],
                         "stock/7")

    def test_wrong_types_keys_and_payloads_are_refused(self):
        s = self.players()
        for parameters in ({"type": "a b"}, {"type": "x" * 129}, {"key": "k" * 256}):
            self.refused("BadOption", s.call, ACTORS + "Tell", to="p", **parameters)
        self.refused("BadPayload", s.call, ACTORS + "Tell", to="p",
                            payload={"encoding": "base64", "data": "?"})
        self.assertEqual(s.notes.lines(), [])

    def test_C7_an_ask_is_answered_with_the_first_reply_of_the_right_type(self):
        s = self.players("1 reply other no\n1 reply right.child yes\n1 reply right late\n")
        answer = s.call(ACTORS + "Ask", to="p/0", type="q", payload=text("1"), reply_type="right")
        self.assertEqual(answer, {"from": "p/0", "type": "right.child", "payload": text("yes")})
        self.assertEqual([letter["reason"] for letter in self.wait_letters(s, 2)], ["wrong_reply", "late_reply"])

    def test_C7_an_ask_that_nobody_answers_times_out_or_fails(self):
        s = self.players("fails fail 5 broken\nignored unhandled\ndies crash\n",
                         sections={"Worker": {"OnCrash": "error-queue"}})
        self.refused("TimedOut", s.call, ACTORS + "Ask", to="p/0", timeout_usec=1000)
        for payload in ("fails", "ignored", "dies"):
            with self.subTest(payload):
                failure = self.refused("Failed", s.call, ACTORS + "Ask", to="p/0", payload=text(payload))
                self.assertTrue(failure["reason"])

    def test_the_reply_to_an_asker_that_went_away_is_a_dead_letter(self):
        s = self.players(start=False)
        bell = Bell(s, "bell")
        Path(s.path("script")).write_text(f"1 wait {bell.path}\n1 reply answer late\n", encoding="utf-8")
        s.start()
        with s.connect() as connection:
            connection.send(ACTORS + "Ask", {"to": "p/0", "type": "q", "payload": text("1")})
            s.notes.wait(1)
        clients = lambda: s.call("GetInfo")["clients"]
        s.until(lambda: clients() == 1)
        bell.ring()
        [letter] = self.wait_letters(s, 1)
        self.assertEqual((letter["reason"], letter["sender"]), ("late_reply", "p/0"))

    def test_actors_are_listed_by_kind_and_below_an_address(self):
        s = self.players("start register alice\n", groups=("p", "q"), sections={"Pool": {"Size": 1}}, start=False)
        s.write("x.exchange", "[Exchange]\n")
        s.start()
        names = lambda **p: sorted(a["name"] for a in s.call(ACTORS + "ListActors", **p)["actors"])
        self.assertEqual(names(), ["p", "p/0", "q", "q/0", "x"])
        self.assertEqual(names(kind="slot"), ["p/0", "q/0"])
        self.assertEqual(names(under="q"), ["q", "q/0"])
        listed, pages = s.pages(ACTORS + "ListActors", "actors", limit=2)
        self.assertEqual((sorted(a["name"] for a in listed), pages), (names(), 3))
        self.refused("BadOption", s.call, ACTORS + "ListActors", kind="ghost")
        self.refused("BadOption", s.call, ACTORS + "ListActors", limit=0)


class Timers(Letters):
    def test_times_that_make_no_sense_are_refused(self):
        s = self.players()
        for parameters in ({}, {"delay_usec": 1, "at": 1}, {"delay_usec": -1}, {"at": -1},
                           {"delay_usec": 1, "period_usec": 1}):
            self.refused("BadOption", s.call, ACTORS + "Schedule", to="p/0", **parameters)


class Exchanges(Letters):
    def exchange(self, kind, name="x", **more):
        s = self.players()
        s.call(ACTORS + "CreateExchange", name=name, kind=kind, **more)
        return s

    def subscribe(self, s, actor, type="", key=None, exchange="x"):
        s.call(ACTORS + "Subscribe", exchange=exchange, actor=actor, type=type, **({} if key is None else {"key": key}))

    def unsubscribe(self, s, actor, type="", key=None, exchange="x"):
        return s.call(ACTORS + "Unsubscribe", exchange=exchange, actor=actor, type=type,
                      **({} if key is None else {"key": key}))["existed"]

    def who(self, s, type, key=None):
        """The slots that get a message of this type, by number, in the order of their names."""
        s.probes = getattr(s, "probes", 0) + 1
        payload = f"probe-{s.probes}"
        try:
            self.tell(s, "x", type, payload, key)
        except VarlinkError as error:
            self.assertEqual(error.name, "NoMatch")
            self.assertEqual(self.letters(s)[-1]["reason"], "no_match")
        # A message to each behind it: when it has come, the first one has, or never will.
        for slot in ("p/0", "p/1"):
            self.tell(s, slot, payload=f"{payload}-end")
            s.until(lambda: f"{payload}-end" in s.notes.payloads(slot))
        return "".join(note.name[2] for note in sorted(s.notes.lines()) if note.text == payload)

    def test_C9_forwarding_keeps_sender_and_key_and_an_exchange_can_be_paused(self):
        s = self.players("go tell x order k payload\n", groups=("p", "q"), sections={"Pool": {"Size": 1}})
        s.call(ACTORS + "CreateExchange", name="x", kind="typed_multi")
        self.subscribe(s, "q/0")
        s.call(ACTORS + "Pause", actor="x")
        self.tell(s, "p/0", payload="go")
        s.until(lambda: s.call(ACTORS + "Lookup", name="x")["actor"]["waiting"] == 1)
        self.assertEqual(s.notes.payloads("q/0"), [])
        s.call(ACTORS + "Resume", actor="x")
        [note] = s.notes.wait(1, "q/0")
        sender = s.call(ACTORS + "Lookup", name="p/0")["actor"]["reference"]
        self.assertEqual(note[2:5] + note[6:], ("order", "'k'", str(sender), "payload"))

    def test_names_are_shared_with_groups_and_registered_names(self):
        s = self.players("start register alice\n")
        for name in ("p", "alice"):
            self.assertEqual(self.refused("NameExists", s.call, ACTORS + "CreateExchange", name=name, kind="single"),
                             {"name": name})
        self.refused("BadOption", s.call, ACTORS + "CreateExchange", name="-x", kind="single")
        self.refused("BadOption", s.call, ACTORS + "CreateExchange", name="x", kind="topic")
        self.refused("NoSuchExchange", s.call, ACTORS + "DeleteExchange", name="p")
        self.refused("NoSuchExchange", s.call, ACTORS + "Subscribe", exchange="p", actor="p/0")

    def test_an_exchange_that_is_deleted_is_gone_with_its_subscriptions(self):
        s = self.exchange("single")
        self.subscribe(s, "p/0")
        s.call(ACTORS + "DeleteExchange", name="x")
        self.refused("NoSuchActor", self.tell, s, "x")
        self.assertEqual(s.call(ACTORS + "Lookup", name="p/0")["actor"]["subscriptions"], 0)
        s.call(ACTORS + "CreateExchange", name="x", kind="single")
        self.assertEqual(self.who(s, "t"), "")


class Declared(Letters):
    def kinds(self, s):
        return {e["name"]: (e["kind"], e["declared"], e["subscriptions"])
                for e in s.call(ACTORS + "ListExchanges")["exchanges"]}

    def test_exchanges_of_files_are_there_before_any_worker(self):
        s = self.players("start subscribe x order -\n", start=False)
        s.write("x.exchange", "[Exchange]\nDescription=of orders\nType=routing-key\n")
        s.start()
        s.until(lambda: self.kinds(s)["x"][2] == 2)
        [exchange] = s.call(ACTORS + "ListExchanges", name="x")["exchanges"]
        self.assertEqual((exchange["description"], exchange["kind"]), ("of orders", "routing_key"))
        for limit in 1, 1000:
            subscriptions, _ = s.pages(ACTORS + "ListSubscriptions", "subscriptions", limit=limit, exchange="x")
            self.assertEqual(sorted((x["actor"], x["type"], x.get("key")) for x in subscriptions),
                             [("p/0", "order", None), ("p/1", "order", None)])
        self.assertEqual(self.refused("Declared", s.call, ACTORS + "DeleteExchange", name="x"), {"name": "x"})

    def test_a_reload_adds_removes_and_changes_them(self):
        s = self.players("start subscribe x order k\n", start=False, sections={"Pool": {"Size": 1}})
        s.write("x.exchange", "[Exchange]\nType=routing-key\n")
        s.write("y.exchange", "")
        s.start()
        s.until(lambda: self.kinds(s)["x"][2] == 1)
        s.write("x.exchange", "[Exchange]\nType=typed-multi\n")
        problems = self.refused("BadConfiguration", s.call, "Reload")["problems"]
        self.assertIn("Type= of an exchange cannot change: reload without this file first", problems[0])
        s.write("x.exchange", "[Exchange]\nType=routing-key\nDescription=more\n")
        os.unlink(os.path.join(s.config, "y.exchange"))
        s.write("z.exchange", "[Exchange]\nType=single\n")
        self.assertEqual(s.call("Reload"), {"added": ["z"], "removed": ["y"], "changed": ["x"]})
        self.assertEqual(self.kinds(s), {"x": ("routing_key", True, 1), "z": ("single", True, 0)})
        self.tell(s, "x", "order", "its key", key="k")
        s.notes.wait(1)
        self.assertEqual(s.call("Reload"), {"added": [], "removed": [], "changed": []})

    def test_an_exchange_made_from_outside_that_has_a_groups_name_is_a_problem_of_the_reload(self):
        s = self.players()
        s.call(ACTORS + "CreateExchange", name="made", kind="single")
        self.write_players(s, "made")
        problems = self.refused("BadConfiguration", s.call, "Reload")["problems"]
        self.assertEqual([os.path.basename(p.split(":")[0]) for p in problems], ["made.group"], problems)

    def test_one_made_at_run_time_can_be_declared_later(self):
        s = self.players()
        reference = s.call(ACTORS + "CreateExchange", name="x", kind="single")["reference"]
        s.call(ACTORS + "Subscribe", exchange="x", actor="p/0")
        s.write("x.exchange", "[Exchange]\nType=single\n")
        self.assertEqual(s.call("Reload")["changed"], ["x"])
        self.assertEqual(self.kinds(s), {"x": ("single", True, 1)})
        self.assertEqual(s.call(ACTORS + "Lookup", name="x")["actor"]["reference"], reference)

    def test_a_name_may_go_from_an_exchange_to_a_group(self):
        s = self.players(start=False)
        s.write("x.exchange", "")
        s.start()
        os.unlink(os.path.join(s.config, "x.exchange"))
        self.write_players(s, "x")
        self.assertEqual(s.call("Reload"), {"added": ["x"], "removed": ["x"], "changed": []})
        s.wait_worker("x/0", "idle")
        self.tell(s, "x/0", payload="hello")
        s.notes.wait(1, "x/0")


class DeadLetters(Letters):
    def test_C3_what_is_not_handled_and_what_fails_are_kept_apart_with_all_about_them(self):
        s = self.players("1 unhandled\n2 fail 17 broken\n")
        self.tell(s, "p/0", "a.type", "1", key="k")
        self.tell(s, "p/1", "b.type", "2")
        [dead] = self.wait_letters(s, 1, queue="dead_letters")
        [error] = self.wait_letters(s, 1, queue="errors")
        self.assertEqual((dead["reason"], dead["recipient"], dead["type"], dead["key"]),
                         ("unhandled", "p/0", "a.type", "k"))
        self.assertEqual((error["reason"], error["code"], error["text"]), ("error", 17, "broken"))
        self.assertNotIn("key", error)
        whole = s.call(ACTORS + "GetDeadLetter", id=error["id"])["letter"]
        self.assertEqual((whole["payload"], whole["payload_bytes"], whole["payload_dropped"], whole["deaths"]),
                         (text("2"), 1, False, []))
        self.assertNotIn("payload", error)

    def test_J4_a_dead_job_is_one_dead_letter_with_its_death_reports(self):
        s = self.supervisor({"actor": ini(ACTOR, Jobs={"MaxRetries": 2, "BackoffMinSec": "1ms"},
                                          Restart={"MinSec": "1ms", "StartLimitBurst": 0})}).start()
        job = s.do("actor", "complain last words\ncrash segv", id="doomed", key="k")
        self.assertEqual(job["state"], "dead")
        [letter] = s.call(ACTORS + "ListDeadLetters")["letters"]
        self.assertEqual((letter["reason"], letter["job"], letter["recipient"], letter["attempts"], letter["key"]),
                         ("job", "doomed", "actor", 3, "k"))
        whole = s.call(ACTORS + "GetDeadLetter", id=letter["id"])["letter"]
        self.assertEqual([(d["job"], d["attempt"], d["signal"]) for d in whole["deaths"]],
                         [("doomed", n, "SIGSEGV") for n in (1, 2, 3)])
        self.assertEqual(whole["payload"], text("complain last words\ncrash segv"))
        self.assertEqual(s.call(ACTORS + "ListDeadLetters")["counts"], [{"reason": "job", "count": 1}])

    def dead_job(self, options=None, **jobs):
        """A supervisor, and the letter of a job that has died under it."""
        s = self.started({"actor": ini(ACTOR, Jobs={"MaxRetries": 0, **jobs}, Restart={"MinSec": "1ms", "StartLimitBurst": 0})})
        s.do("actor", "retry 1 not yet", **(options or {}))
        [letter] = self.letters(s, reason="job")
        return s, letter

    def test_J4_a_dead_job_is_requeued_as_a_new_one(self):
        s, letter = self.dead_job()
        answer = s.call(ACTORS + "Requeue", id=letter["id"])
        self.assertEqual((answer["requeued"], answer["failed"]), (1, 0))
        self.assertEqual(s.wait_job(answer["job"])["state"], "dead")
        [again] = self.letters(s, reason="job")
        self.assertEqual(again["job"], answer["job"])
        self.assertGreater(again["id"], letter["id"])

    def test_J4_a_requeued_job_keeps_its_options(self):
        s, letter = self.dead_job({"max_retries": 1, "backoff_min_usec": 1000, "backoff_max_usec": 2000, "priority": 7},
                                  MaxRetries=5, TimeoutSec="1h")
        s.call("Pause", target="actor")
        again = s.call(ACTORS + "Requeue", id=letter["id"])["job"]
        job = s.job(again)
        self.assertEqual((job["priority"], job["max_attempts"]), (7, 2))
        s.call("Resume", target="actor")
        ended = s.wait_job(again)
        self.assertEqual((ended["state"], ended["attempt"]), ("dead", 2))

    def test_J4_a_requeued_job_keeps_all_options_but_id_times_and_ties(self):
        kept = {"key": "k", "max_retries": 1, "timeout_usec": HOUR, "backoff_min_usec": 1000, "backoff_max_usec": 2000, "priority": 7,
                "cost": 3, "tags": "nightly mail", "unique": "u",
                "traceparent": "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"}
        dropped = {"id", "delay_usec", "at", "deadline_usec", "after", "condition", "batch"}
        about_submission = {"on_conflict", "debounce_usec", "debounce_max_usec", "wait_usec"}
        s = self.supervisor({group: ini(ACTOR, Jobs={"Durable": durable}, Restart=QUICK)
                             for group, durable in (("actor", "no"), ("kept", "yes"))})
        s.write("troupe.conf", f"[Supervisor]\nStateDirectory={s.path('state')}\n")
        s.start()
        interface = s.call("org.varlink.service.GetInterfaceDescription", interface="io.troupe.Jobs")["description"]
        described = re.search(r"^type Options \((.*?)^\)", interface, re.M | re.S).group(1)
        self.assertEqual(set(kept) | dropped | about_submission, set(re.findall(r"(\w+): \?", described)))
        for group in "actor", "kept":
            s.create(group, "retry 1 not yet", **kept, id=group + "-dead", deadline_usec=HOUR, delay_usec=1,
                     after=s.create(group, "echo"), condition="end", batch=s.call("io.troupe.Jobs.OpenBatch", group=group)["id"])
            self.assertEqual(s.wait_job(group + "-dead")["state"], "dead")
        for way, groups in ((lambda: None, {"actor", "kept"}), (lambda: s.ctl("upgrade", check=True), {"actor", "kept"}),
                            (s.crash, {"kept"}), (lambda: (s.stop(), s.start()), {"kept"})):
            way()
            letters = self.letters(s, reason="job")
            self.assertEqual({letter["recipient"] for letter in letters}, groups)
            for letter in letters:
                with self.subTest(letter=letter):
                    self.assertEqual(s.job(letter["job"])["tags"], "nightly mail")
                    s.call("Pause", target=letter["recipient"])
                    again = s.call(ACTORS + "Requeue", id=letter["id"])["job"]
                    job = s.job(again)
                    self.assertEqual([job.get(name) for name in ("key", "max_attempts", "priority", "cost", "tags", "traceparent", "after", "batch")],
                                     ["k", 2, 7, 3, "nightly mail", kept["traceparent"], None, None])
                    taken = self.refused("UniqueTaken", s.create, letter["recipient"], "echo", unique="u")
                    self.assertEqual(taken["holder"], again)
                    s.call("Resume", target=letter["recipient"])
                    self.assertEqual(s.wait_job(again)["attempt"], 2)

    def test_J4_a_dead_letter_whose_unique_key_a_live_job_has_stays(self):
        s, letter = self.dead_job({"unique": "u"})
        s.call("Pause", target="actor")
        s.create("actor", "echo", unique="u")
        self.assertIn("the same unique key", self.refused("NotRequeued", s.call, ACTORS + "Requeue", id=letter["id"])["problem"])
        self.assertEqual(self.letters(s, reason="job"), [letter])

    def test_J4_a_requeued_job_without_options_has_the_groups_as_they_are_now(self):
        s, letter = self.dead_job()
        s.write("actor.group", ini(ACTOR, Jobs={"MaxRetries": 2, "BackoffMinSec": "1ms"}))
        s.call("Reload")
        self.assertEqual(s.wait_job(s.call(ACTORS + "Requeue", id=letter["id"])["job"])["attempt"], 3)

    def test_J4_a_requeued_job_is_no_more_urgent_than_its_equals(self):
        s, letter = self.dead_job()
        s.call("Pause", target="actor")
        s.create("actor", "echo", id="before")
        again = s.call(ACTORS + "Requeue", id=letter["id"])["job"]
        s.create("actor", "echo", id="after")
        self.assertEqual([job["id"] for job in s.ctl_json("jobs", "actor")["jobs"]], ["before", again, "after"])

    def test_a_requeued_message_goes_to_its_recipient_with_its_sender(self):
        s = self.players("go tell q/0 order k first\nfirst unhandled\n", groups=("p", "q"),
                         sections={"Pool": {"Size": 1}})
        self.tell(s, "p/0", payload="go")
        [letter] = self.wait_letters(s, 1)
        self.assertEqual((letter["sender"], letter["recipient"]), ("p/0", "q/0"))
        s.call(ACTORS + "Requeue", id=letter["id"])
        first, second = s.notes.wait(2, "q/0")
        self.assertEqual(first, second)
        s.call(ACTORS + "Requeue", filter={"recipient": "q"}, to="p/0")
        note = s.notes.wait(2, "p/0")[1]
        self.assertEqual((note.type, note.key, note.text), ("order", "'k'", "first"))

    def test_what_cannot_be_requeued_stays_and_says_why(self):
        s = self.players(groups=("p", "q"))
        s.call(ACTORS + "CreateExchange", name="x", kind="single")
        self.refused("NoMatch", self.tell, s, "x", "t", "one")
        s.call(ACTORS + "DeleteExchange", name="x")
        [letter] = self.letters(s)
        refusal = self.refused("NotRequeued", s.call, ACTORS + "Requeue", id=letter["id"])
        self.assertEqual(refusal["id"], letter["id"])
        self.assertIn("no such actor", refusal["problem"])
        answer = s.call(ACTORS + "Requeue", filter={})
        self.assertEqual((answer["requeued"], answer["failed"]), (0, 1))
        self.assertEqual(self.letters(s), [letter])
        s.call(ACTORS + "Requeue", id=letter["id"], to="q")
        s.notes.wait(1)
        self.assertEqual(self.letters(s), [])

    def test_an_actor_that_ends_leaves_all_its_messages_in_parts(self):
        count = 5000  # more than a turn rejects
        for upgrade in False, True:
            s = self.players("", groups=("p", "q"))
            s.call("Stop", target="p", wait=True)
            with s.connect() as connection:
                for _ in range(count):
                    connection.call(ACTORS + "Tell", to="p/0", type="x", payload=text("x"))
            os.unlink(s.path("etc/p.group"))
            s.call("Reload")
            if upgrade:
                self.refused("Restarting", s.call, "Upgrade")
            s.until(lambda s=s: s.call(ACTORS + "ListDeadLetters", limit=1)["counts"] == [{"reason": "gone", "count": count}])
            [letter] = s.call(ACTORS + "ListDeadLetters", limit=1)["letters"]
            self.assertEqual(letter["recipient"], "p/0")

    def test_their_number_and_memory_are_bounded(self):
        s = self.players("x unhandled\n", conf="[Supervisor]\nDeadLettersMax=5\nDeadLettersMemoryMax=100K\n")
        for _ in range(8):
            self.tell(s, "p/0", payload="x")
        s.until(lambda: s.call(ACTORS + "ListDeadLetters")["counts"] == [{"reason": "unhandled", "count": 8}])
        answer = s.call(ACTORS + "ListDeadLetters")
        self.assertEqual(([letter["id"] for letter in answer["letters"]], answer["evicted"]), ([8, 7, 6, 5, 4], 3))
        self.tell(s, "p/0", payload="x " + "y" * 200000)
        [large] = [letter for letter in self.wait_letters(s, 5) if letter["id"] == 9] or self.wait_nine(s)
        self.assertEqual((large["payload_dropped"], large["payload_bytes"]), (True, 200002))
        refusal = self.refused("NotRequeued", s.call, ACTORS + "Requeue", id=9)
        self.assertIn("not kept", refusal["problem"])
        s.write("troupe.conf", "[Supervisor]\nDeadLettersMax=2\n")
        s.call("Reload")
        self.assertEqual(len(self.letters(s)), 2)

    def wait_nine(self, s):
        return s.until(lambda: [letter for letter in self.letters(s) if letter["id"] == 9])


class Verbs(Letters):
    """What troupectl prints, and its exit status."""

    def test_tell_and_ask(self):
        s = self.players("hello reply answer hi\n")
        self.assertEqual(s.ctl("tell", "p/0", "a.b", "--data", "one", "--key", "k", check=True).stdout, "")
        self.assertEqual(s.ctl("ask", "p/0", "q", "-", input="hello").stdout, "hi")
        self.assertEqual(s.ctl_json("ask", "p/0", "q", "--data", "hello"),
                         {"from": "p/0", "type": "answer", "payload": text("hi")})
        note = s.notes.lines("p/0")[0]
        self.assertEqual((note.type, note.key, note.text), ("a.b", "'k'", "one"))
        for status, arguments, said in (
                (5, ("tell", "x", "t"), "there is no actor 'x'"),
                (2, ("tell", "p", "a b"), "'type' is missing or wrong"),
                (2, ("tell", "p"), "usage: troupectl tell"),
                (8, ("ask", "p", "q", "--timeout", "50ms"), "there was no reply in time")):
            with self.subTest(arguments):
                result = s.ctl(*arguments)
                self.assertEqual(result.returncode, status, result.stderr)
                self.assertIn(said, result.stderr)

    def test_schedule_timers_unschedule(self):
        s = self.players()
        id = s.ctl("timer", "add", "p/0", "tick", "--every", "1h", check=True).stdout.strip()
        others = [s.ctl("timer", "add", "p/0", "tock", "--at", "2126-01-01 00:00", check=True).stdout.strip(),
                  s.ctl("timer", "add", "p/1", "tock", "--delay", "1h", check=True).stdout.strip()]
        self.assertEqual([id, *others], ["1", "2", "3"])  # people type them
        shown = s.ctl("timer", "list", "p/0", check=True).stdout.splitlines()
        self.assertEqual([line.split()[:3] for line in shown[1:]][0], [id, "p/0", "tick"])
        self.assertEqual(len(shown), 3)
        s.ctl("timer", "cancel", id, check=True)
        self.assertEqual(s.ctl("timer", "cancel", id).returncode, 5)
        self.assertEqual(s.ctl("timer", "cancel", "--to", "p/0", "--type", "tock", check=True).stdout, "1 cancelled\n")
        self.assertEqual(len(s.ctl_json("timer")["timers"]), 1)
        for arguments in (("timer", "add", "p/0", "x"), ("timer", "add", "p/0", "x", "--at", "noon"),
                          ("timer", "add", "p/0", "x", "--at", "18:00", "--delay", "1s"), ("timer", "cancel",),
                          ("timer", "cancel", "x"), ("timer", "cancel", "1", "--to", "p")):
            with self.subTest(arguments):
                self.assertEqual(s.ctl(*arguments).returncode, 2)

    def test_actors_and_exchanges(self):
        s = self.players()
        s.ctl("exchanges", "create", "x", "routing-key", check=True)
        s.ctl("subscribe", "x", "p/0", "order", "--key", "eu.#", check=True)
        self.assertEqual(s.ctl("tell", "x", "order", "--key", "us").returncode, 1)
        shown = s.ctl("exchanges", "show", "x", check=True).stdout.splitlines()
        self.assertEqual(shown[1].split()[:2], ["x", "routing-key"])
        self.assertEqual(shown[4].split(), ["p/0", "order", "eu.#"])
        self.assertEqual(s.ctl("unsubscribe", "x", "p/0", "order").returncode, 5)
        s.ctl("unsubscribe", "x", "p/0", "order", "--key", "eu.#", check=True)
        self.assertIn("\np/0 ", s.ctl("actors", check=True).stdout)
        self.assertEqual([a["name"] for a in s.ctl_json("actors", "--kind", "exchange")["actors"]], ["x"])
        self.assertEqual(s.ctl("exchanges", "create", "x", "single").returncode, 6)
        s.ctl("exchanges", "delete", "x", check=True)
        self.assertEqual(s.ctl("exchanges", check=True).stdout, "No exchanges.\n")
        self.assertEqual(s.ctl("exchanges", "show", "x").returncode, 5)
        self.assertEqual(s.ctl("exchanges", "make", "x").returncode, 2)

    def test_pause_and_resume_of_an_actor(self):
        s = self.players()
        s.ctl("pause", "--actor", "p/0", "p/1", check=True)
        s.ctl("tell", "p/0", "t", check=True)
        self.assertEqual(s.ctl_json("actors", "p/0")["actors"][0]["waiting"], 1)
        s.ctl("resume", "--actor", "p/0", check=True)
        s.notes.wait(1)

    def test_dead_letters_and_errors(self):
        s = self.players("1 unhandled\n2 fail 7 broken\n")
        for payload in ("1", "2"):
            s.ctl("tell", "p/0", "a.b", "--data", payload, check=True)
        self.wait_letters(s, 2)
        self.assertEqual({letter["reason"] for letter in s.ctl_json("dead-letters")["letters"]}, {"unhandled", "error"})
        [error] = s.ctl_json("dead-letters", "--reason", "error")["letters"]
        self.assertIn("unhandled", s.ctl("dead-letters", "--to", "p", "--type", "a", check=True).stdout)
        for verb in ("dead-letters",), ("dead-letters", "list"):
            self.assertEqual(s.ctl(*verb, check=True).stdout.splitlines()[-1], "so far, by reason: unhandled 1, error 1")
        self.assertEqual(s.ctl("dead-letters", "--type", "b", check=True).stdout, "None.\n")
        shown = s.ctl("dead-letters", "show", str(error["id"]), check=True).stdout
        for part in ("error", "Why: broken", "Code: 7", "To: p/0", "Type: a.b", "2"):
            self.assertIn(part, shown)
        self.assertEqual(s.ctl("dead-letters", "show", "--reason", "error", check=True).stdout, shown)
        self.assertEqual(s.ctl("dead-letters", "show", "--to", "p", check=True).stdout.count("Payload: "), 2)
        self.assertEqual(s.ctl("retry", "--reason", "unhandled", check=True).stdout, "1 requeued\n")
        s.until(lambda: [x["id"] for x in self.letters(s, queue="dead_letters")] == [3])
        self.assertEqual(s.ctl("purge", "3", check=True).stdout, "1 purged\n")
        self.assertEqual(s.ctl("purge", "--since", "1h", check=True).stdout, "1 purged\n")
        self.assertEqual(s.ctl("dead-letters", "show", "3").returncode, 5)
        for arguments in (("purge",), ("retry",), ("purge", "--all", "--type", "x"), ("dead-letters", "show"), ("dead-letters", "burn")):
            with self.subTest(arguments):
                self.assertEqual(s.ctl(*arguments).returncode, 2)

    def test_a_number_means_the_same_letter_after_a_crash(self):
        s = self.players("no unhandled\n")
        self.tell(s, "p/0", payload="no")
        [first] = self.wait_letters(s, 1)
        s.crash()
        self.tell(s, "p/0", payload="no")
        [second] = self.wait_letters(s, 1)
        self.assertGreater(second["id"], first["id"])
        self.assertEqual(s.ctl("dead-letters", "show", str(first["id"])).returncode, 5)

    def test_switching_the_message_log(self):
        s = self.players("no unhandled\n")
        self.assertEqual(s.ctl_json("logs", "p", "--messages", "unhandled,dispatched"),
                         {"enqueued": False, "dispatched": True, "unhandled": True})
        self.assertEqual(s.ctl_json("logs", "p", "--messages", "none"),
                         {"enqueued": False, "dispatched": False, "unhandled": False})
        for what in ("some", "", "unhandled,", "all,none"):
            with self.subTest(what):
                self.assertEqual(s.ctl("logs", "p", "--messages", what).returncode, 2 if what != "unhandled," else 0)
        self.assertEqual(s.ctl("logs", "q", "--messages", "all").returncode, 5)
