# SPDX-License-Identifier: MIT
"""Actors: their messages, and the consequences of their deaths. See workers/player.c."""
import os
import subprocess
import typing
from pathlib import Path

from troupe import QUICK, Bell, TestCase, end_process, helper, ini, text

PLAYER = helper("workers/player")


class Note(typing.NamedTuple):
    """A message that a player has handled, or another event; see workers/player.c."""
    name: str
    kind: str
    type: str
    key: str
    sender: str
    flags: str
    text: str


def read_notes(path, name=""):
    """`name`: of the only player there, which may have been killed in the middle of a line."""
    try:
        whole, _, _ = Path(path).read_text(encoding="utf-8").rpartition("\n")
    except FileNotFoundError:
        return []
    lines = [name + line.rpartition(name)[2] if name else line for line in whole.splitlines()]
    return [Note(*line.split(" ", 6)) for line in lines]


class Client:
    """A client that is an actor; reads commands from its standard input."""

    def __init__(self, supervisor):
        environment = {**os.environ, "TROUPE_SOCKET": supervisor.socket_path, "PLAYER_NOTES": supervisor.path("client.log")}
        self.process = subprocess.Popen([PLAYER, "client"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
                                        env=environment)
        supervisor.connections.callback(self.end)

    def do(self, command):
        self.process.stdin.write(command + "\n")
        self.process.stdin.flush()
        return self.process.stdout.readline().rstrip("\n")

    def end(self):
        end_process(self.process)

class ActorsTestCase(TestCase):
    """Groups a, b and c of one player each, which logs what it handles."""
    worker = {}
    options = ()

    def setUp(self):
        self.s = self.supervisor(options=self.options)
        for name in "abc":
            self.add(name)
        self.s.start()

    def add(self, name, **sections):
        environment = {"Environment": f"PLAYER_NOTES={self.s.path(name + '.log')}"}
        sections = {"Restart": QUICK, "Worker": self.worker, "Resources": {"LimitCORE": 0}, **sections}
        self.s.write(f"{name}.group", ini(PLAYER, Group=environment, **sections))

    def do(self, group, command):
        """The result of a command that a worker of the group runs."""
        job = self.s.do(group, command)
        self.assertEqual(job["state"], "succeeded", job)
        return job["result"]["data"]

    def log(self, name):
        return [f"{n.type} {n.key} {n.text}" if n.kind == "message" else f"{n.kind} - {n.text}"
                for n in read_notes(self.s.path(name + ".log"))]

    def wait_log(self, name, count):
        """The messages that it has handled, once there are so many."""
        self.s.until(lambda: len(self.log(name)) >= count)
        self.assertEqual(len(self.log(name)), count, self.log(name))
        return self.log(name)

    def wait_line(self, name, line):
        self.s.until(lambda: line in self.log(name))

    def call(self, method, **parameters):
        return self.s.call("io.troupe.Actors." + method, **parameters)

    def dead(self, count, queue="dead_letters", **filter):
        """The matching dead letters, (reason, type), once there are so many."""
        letters = self.s.until(lambda: (lambda l: l if len(l) >= count else None)(
            self.call("ListDeadLetters", filter={"queue": queue, **filter})["letters"][::-1]))
        return [(letter["reason"], letter["type"]) for letter in letters]

    def gate(self, group, name="gate"):
        """Keeps the worker of a group busy until the bell rings."""
        bell = Bell(self.s, name)
        before = len(self.log(group))
        self.do("c" if group != "c" else "a", f"tell {group}/0 do.gate - {bell.path}")
        self.s.until(lambda: len(self.log(group)) > before)
        return bell


class Toolkit(ActorsTestCase):
    def test_C1_a_reference_is_all_it_takes_to_tell_from_inside_and_outside(self):
        reference = self.do("a", "lookup b/0")
        self.assertNotEqual(reference, "0")
        self.assertEqual(self.do("a", f"tell ={reference} hello - from inside"), "")
        self.assertEqual(Client(self.s).do(f"tell ={reference} hello key from a client"), "")
        self.assertEqual(sorted(self.wait_log("b", 2)), ["hello 'key' from a client", "hello - from inside"])
        self.assertEqual(self.do("a", "lookup nobody"), "error ENOENT")

    def test_C1_a_registered_name_finds_its_actor(self):
        self.assertEqual(self.do("b", "register bob"), "0")
        self.assertEqual(self.do("a", "tell bob hello - you"), "")
        self.wait_line("b", "hello - you")
        self.assertEqual(self.do("a", "register bob"), "error EEXIST")
        self.assertEqual(self.do("a", "register c"), "error EEXIST")
        self.assertEqual(self.do("b", "deregister bob"), "1")
        self.assertEqual(self.do("a", "lookup bob"), "error ENOENT")

    def test_C1_a_reference_outlasts_restarts_and_never_finds_somebody_else(self):
        reference = self.do("a", "lookup b/0")
        os.kill(self.s.worker("b/0")["pid"], 9)
        self.s.wait_for(lambda: (lambda w: (w["state"], w["generation"]) == ("idle", 2))(self.s.worker("b/0")))
        self.do("a", f"tell ={reference} hello - again")
        self.wait_line("b", "hello - again")
        self.s.call("Resize", target="b", size=2, wait=True)
        gone = self.do("a", "lookup b/1")
        self.s.call("Resize", target="b", size=1, wait=True)
        self.s.until(lambda: self.do("a", "lookup b/1") == "error ENOENT")
        self.s.call("Resize", target="b", size=2, wait=True)
        self.do("a", f"tell ={gone} hello - nobody")
        self.assertEqual(self.dead(1), [("gone", "hello")])
        self.assertNotIn("hello - nobody", self.log("b"))
        self.assertNotEqual(self.do("a", "lookup b/1"), gone)

    def test_C1_what_is_left_in_the_mailbox_of_an_actor_that_goes_is_dead(self):
        client = Client(self.s)
        reference = client.do("lookup self")
        self.do("a", f"tell ={reference} left - behind")
        client.end()
        self.assertEqual(self.dead(1), [("gone", "left")])
        self.do("a", f"tell ={reference} late - behind")
        self.assertEqual(self.dead(2), [("gone", "left"), ("gone", "late")])

    def test_C4_messages_that_lie_in_the_ring_wait_as_well(self):
        bell = self.gate("b")
        self.do("a", "burst b/0 5 held")
        self.call("Pause", actor="b/0")
        bell.ring()
        self.assertEqual(self.do("b", "lookup b/0") != "", True)  # jobs go on
        self.assertEqual(len(self.log("b")), 1)
        self.call("Resume", actor="b/0")
        self.assertEqual(self.wait_log("b", 6)[1:], [f"held - {i}" for i in range(5)])

    def test_C5_become_switches_the_handler_and_default_goes_back(self):
        for message in "do.become - all", "any - one", "do.become - default", "any - two":
            self.do("a", f"tell b/0 {message}")
        self.wait_line("b", "any - two")
        notes = read_notes(self.s.path("b.log"))
        self.assertEqual([(note.flags, note.text) for note in notes if note.type == "any"], [("b", "one"), ("-", "two")])

    def test_a_reply_to_an_ask_of_a_crashed_supervisor_answers_no_ask_of_the_next_one(self):
        bell = Bell(self.s, "bell")
        self.s.crash()  # so that each ask is the first one of its supervisor
        self.s.connect().send("io.troupe.Actors.Ask", {"to": "b/0", "type": "do.gate", "payload": text(bell.path)})
        self.wait_log("b", 1)
        self.s.crash()
        asker = self.s.connect()
        asker.send("io.troupe.Actors.Ask", {"to": "b/0", "type": "do.reply", "payload": text("t hi")})
        self.s.until(lambda: [a["delivered"] for a in self.s.pages("io.troupe.Actors.ListActors", "actors")[0]
                              if a["name"] == "b/0"] == [1])
        bell.ring()
        self.assertEqual(asker.reply()[0]["payload"], text("hi"))


class Futures(ActorsTestCase):
    def test_A1_a_call_to_oneself_runs_later_and_never_inline(self):
        self.do("a", "tell b/0 do.call - b/0 do.reply run answer me")
        self.assertEqual(self.wait_log("b", 2), ["calling - ", "called - me"])

    def test_A2_a_failure_nobody_looked_at_is_logged(self):
        self.do("a", "neglect b/0")
        self.s.until(lambda: any("a/0" in line and "neglected" in line for line in self.s.log().splitlines()))


class Crashes(ActorsTestCase):
    worker = {"MessageRetries": 2}

    def test_stashed_messages_survive_the_crash_in_their_order(self):
        for i in range(3):
            self.do("a", f"tell b/0 later - {i}")
        self.s.until(lambda: self.call("Lookup", name="b/0")["actor"]["stashed"] == 3)
        self.do("a", "tell b/0 do.crash.once - x")
        self.wait_line("b", "do.crash.once - x")
        self.do("a", "tell b/0 do.unstash - x")
        self.assertEqual(self.wait_log("b", 4)[1:], [f"later - {i}" for i in range(3)])

    def test_a_message_whose_handler_waits_is_the_one_in_hand(self):
        bell = self.gate("c")
        self.do("a", "tell b/0 do.call - c/0 do.reply run answer x")
        self.wait_line("b", "calling - ")
        self.do("a", "tell b/0 do.crash.once - x")
        self.s.wait_event("worker.died", "b")
        bell.ring()
        self.s.until(lambda: "called - x" in self.log("b") and "do.crash.once - x" in self.log("b"))

    def test_a_watch_tells_of_the_end_and_at_once_of_what_is_gone(self):
        client = Client(self.s)
        reference = client.do("lookup self")
        self.do("a", f"watch ={reference}")
        client.end()
        self.s.until(lambda: any(line.startswith("terminated") for line in self.log("a")))
        self.do("b", f"watch ={reference}")
        self.s.until(lambda: any(line.startswith("terminated") for line in self.log("b")))

    def test_a_client_is_an_actor_too(self):
        client = Client(self.s)
        reference = client.do("lookup self")
        self.do("a", f"tell ={reference} hello - client")
        self.s.until(lambda: client.do("") == "" and self.log("client"))
        self.assertEqual(self.log("client"), ["hello - client"])
        self.assertEqual(client.do("ask a/0 do.reply 0 answer yes"), "answer yes")

    def test_an_answer_gets_through_to_a_client_behind_more_messages_than_its_ring_holds(self):
        client = Client(self.s)
        reference = client.do("lookup self")
        self.do("a", f"burst ={reference} 8000 number")
        self.assertEqual(client.do("ask a/0 do.reply 0 answer yes"), "answer yes")
        self.assertEqual(self.log("client"), [])
        self.s.until(lambda: client.do("") == "" and len(self.log("client")) >= 8000)
        self.assertEqual(self.log("client"), [f"number - {i}" for i in range(8000)])
        self.assertEqual(self.call("ListDeadLetters")["letters"], [])

    def test_an_answer_gets_through_to_a_worker_that_waits_behind_as_many(self):
        bell = self.gate("c")
        self.do("a", "tell b/0 do.call - c/0 do.reply stash answer x")
        self.wait_line("b", "calling - ")
        self.do("a", "burst b/0 8000 number")
        bell.ring()
        self.assertEqual(self.wait_log("b", 8002), ["calling - ", "called - x"] + [f"number - {i}" for i in range(8000)])


class ExchangesAcrossGroups(ActorsTestCase):
    """Who may subscribe to an exchange, and so read its messages."""

    def subscribers(self, exchange):
        return [s["actor"] for s in self.call("ListSubscriptions", exchange=exchange)["subscriptions"]]

    def declare(self, **keys):
        self.s.write("post.exchange", "[Exchange]\nType=single\n" + "".join(f"{key}={value}\n" for key, value in keys.items()))
        self.s.call("Reload")

    def test_C9_a_worker_of_another_group_does_not_get_the_messages_of_the_first_one(self):
        self.declare()
        self.assertEqual(self.do("a", "subscribe post '' -"), "0")
        self.assertEqual(self.do("b", "subscribe post '' -"), "error EPERM")
        self.assertEqual(self.subscribers("post"), ["a/0"])

    def test_C9_an_exchange_that_a_worker_made_is_for_its_group(self):
        self.do("a", "exchange own 0")
        self.assertEqual(self.do("b", "subscribe own '' -"), "error EPERM")
        self.assertEqual(self.do("a", "subscribe own '' -"), "0")

    def test_C9_that_outlives_an_upgrade(self):
        self.declare()
        self.do("a", "subscribe post '' -")
        self.do("a", "exchange own 0")
        self.s.ctl("upgrade", check=True)
        for exchange in "post", "own":
            self.assertEqual(self.do("b", f"subscribe {exchange} '' -"), "error EPERM")

    def test_C9_the_file_says_which_groups_may_subscribe_and_a_replacement_is_told(self):
        self.declare(MaySubscribe="a b")
        self.do("a", "subscribe post '' -")
        self.assertEqual(self.do("c", "subscribe post '' -"), "error EPERM")
        self.assertEqual(self.do("b", "subscribe post '' -"), "0")
        event = self.s.wait_event("exchange.replaced", "a")
        self.assertEqual(event["message"], "exchange post: the subscription of a/0 is replaced by b/0")

    def test_C9_a_reload_ends_the_subscriptions_of_groups_that_may_not_subscribe_any_more(self):
        self.declare(MaySubscribe="b")
        self.do("b", "subscribe post '' -")
        self.declare(MaySubscribe="c")
        self.assertEqual(self.subscribers("post"), [])
        self.assertEqual(self.do("b", "subscribe post '' -"), "error EPERM")
        self.do("c", "subscribe post '' -")
        self.declare()
        self.assertEqual(self.do("b", "subscribe post '' -"), "error EPERM")

    def test_C9_a_group_that_is_gone_has_no_exchange(self):
        self.declare()
        self.do("b", "subscribe post '' -")
        os.unlink(os.path.join(self.s.config, "b.group"))
        self.s.call("Reload")
        self.s.wait_event("group.removed", count=1)
        self.s.until(lambda: self.do("a", "subscribe post '' -") == "0")
        self.assertEqual(self.subscribers("post"), ["a/0"])

    def test_C9_the_administrator_subscribes_any_actor(self):
        self.declare()
        self.do("a", "subscribe post '' -")
        self.call("Subscribe", exchange="post", actor="b/0")
        self.assertEqual(self.subscribers("post"), ["b/0"])
        self.s.wait_event("exchange.replaced", "a")
