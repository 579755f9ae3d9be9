# SPDX-License-Identifier: MIT
"""A reference names a place in a pool for good, also while its worker is replaced. See workers/player.c."""
import os
import threading

from test_actors import PLAYER, ActorsTestCase
from troupe import QUICK, Bell, Varlink, ini, text


class Places(ActorsTestCase):
    def change(self, name, number, **sections):
        """Gives a group another program: each of its workers gets a successor."""
        environment = {"Environment": f"PLAYER_NOTES={self.s.path(name + '.log')} ROUND={number}"}
        self.s.write(f"{name}.group", ini(PLAYER, **{"Group": environment, "Restart": QUICK, **sections}))
        self.s.call("Reload")

    def replaced(self, name="b", generation=2):
        self.s.wait_for(lambda: self.s.worker(f"{name}/0")["generation"] == generation
                        and self.s.worker(f"{name}/0")["state"] == "idle", name)

    def settled(self, name="b"):
        """Waits until the pool has no extra process."""
        self.s.until(lambda: all("replacement" not in w for w in self.s.group(name)["workers"]))

    def draining(self):
        """Makes b/0 a predecessor with a message in hand, until the bell rings."""
        bell = self.gate("b")
        self.change("b", 1)
        self.replaced()
        self.assertEqual([w["generation"] for w in self.s.group("b")["workers"] if "replacement" in w], [1])
        return bell

    def test_a_place_has_one_address_while_its_predecessor_drains(self):
        reference = self.do("a", "lookup b/0")
        bell = self.draining()
        self.assertEqual(self.do("a", "lookup b/0"), reference)
        self.assertEqual(self.do("b", "lookup self"), reference)
        listed = [a["reference"] for a in self.call("ListActors", under="b/0")["actors"]]
        self.assertEqual(listed, [reference])
        self.do("a", f"tell ={reference} hello - meanwhile")
        self.wait_line("b", "hello - meanwhile")
        self.do("a", "tell b hello - any")
        self.wait_line("b", "hello - any")
        bell.ring()
        self.settled()
        self.do("a", f"tell ={reference} hello - afterwards")
        self.wait_line("b", "hello - afterwards")
        self.assertEqual(self.do("a", "lookup b/0"), reference)
        self.assertEqual(self.call("ListDeadLetters")["letters"], [])

    def test_what_belongs_to_a_place_outlives_its_workers(self):
        self.do("b", "exchange post 2")
        self.do("a", "watch b/0")
        bell = self.draining()
        self.assertEqual(self.do("b", "register bob"), "0")
        self.do("b", "subscribe post news -")
        self.do("a", "after 3600000000 0 b/0 tick x")
        self.do("b", "after 3600000000 0 self tick x")
        bell.ring()
        self.settled()
        self.change("b", 2)
        self.replaced("b", 3)
        self.settled()
        os.kill(self.s.worker("b/0")["pid"], 9)
        self.replaced("b", 4)
        for address, type in ("bob", "named"), ("post", "news"):
            self.do("a", f"tell {address} {type} - still")
            self.wait_line("b", f"{type} - still")
        self.assertEqual(self.do("a", "cancel bob tick"), "1")
        self.assertEqual(self.do("b", "cancel self tick"), "1")
        self.assertEqual(self.log("a"), [])

    def test_a_pause_outlives_the_worker(self):
        bell = self.draining()
        self.call("Pause", actor="b/0")
        self.do("a", "tell b/0 held - 1")
        bell.ring()
        self.settled()
        self.change("b", 2)
        self.replaced("b", 3)
        self.do("a", "tell b/0 held - 2")
        actor = self.call("Lookup", name="b/0")["actor"]
        self.assertEqual((actor["paused"], actor["waiting"]), (True, 2))
        self.call("Resume", actor="b/0")
        self.s.until(lambda: self.log("b")[1:] == ["held - 1", "held - 2"])

    def test_what_the_predecessor_had_not_begun_comes_before_what_was_sent_later(self):
        bell = self.gate("b")
        self.do("a", "burst b/0 5 early")
        self.change("b", 1)
        self.replaced()
        self.do("a", "tell b/0 late - x")
        bell.ring()
        self.settled()
        self.s.until(lambda: self.log("b")[1:] == [f"early - {i}" for i in range(5)] + ["late - x"])
        actor = self.call("Lookup", name="b/0")["actor"]
        self.assertEqual((actor["accepted"], actor["consumed"]), (7, 7))

    def test_whatever_a_worker_has_handled_is_consumed_once_it_rests(self):
        self.do("a", "burst b/0 3000 hello")
        self.s.until(lambda: len(self.log("b")) == 3000)
        self.s.until(lambda: self.call("Lookup", name="b/0")["actor"]["consumed"] == 3000)
        actor = self.call("Lookup", name="b/0")["actor"]
        self.assertEqual((actor["accepted"], actor["consumed"], actor["waiting"]), (3000, 3000, 0))

    def test_a_predecessor_gets_its_answers(self):
        bell = self.gate("c")
        self.do("a", "tell b/0 do.call - c/0 do.reply stash answer yes")
        self.wait_line("b", "calling - ")
        self.change("b", 1)
        self.replaced()
        bell.ring()
        self.wait_line("b", "called - yes")
        self.settled()

    def test_a_predecessor_may_reply(self):
        bell = Bell(self.s, "gate")
        self.s.create("a", f"ask b/0 do.gate 0 {bell.path}", id="asks")
        self.wait_line("b", f"do.gate - {bell.path}")
        self.change("b", 1)
        self.replaced()
        bell.ring()
        self.assertEqual(self.s.wait_job("asks")["result"]["data"], "gate open")

    def test_a_worker_that_stops_gets_the_answer_that_it_waits_for(self):
        bell = self.gate("c")
        self.do("a", "tell b/0 do.call - c/0 do.reply stash answer yes")
        self.wait_line("b", "calling - ")
        self.s.call("Stop", target="b")
        bell.ring()
        self.wait_line("b", "called - yes")
        self.s.wait_for(lambda: self.s.worker("b/0")["state"] == "stopped", "b")
        self.assertEqual(self.s.deaths("b")[-1]["cause"], "stop")

    def test_who_looks_up_before_each_message_loses_none_while_workers_are_recycled(self):
        self.change("b", 1, Pool={"MaxJobs": 20})
        self.replaced()
        stop = threading.Event()

        def work():
            with Varlink(self.s.socket_path) as other:
                while not stop.is_set():
                    other.call("io.troupe.Jobs.Do", group="b", payload=text("lookup self"))
        workers = [threading.Thread(target=work) for _ in range(2)]
        for worker in workers:
            worker.start()
        try:
            self.do("a", "visit b/0 4000 number")
            self.s.until(lambda: self.s.worker("b/0")["recycled"] > 2)
        finally:
            stop.set()
            for worker in workers:
                worker.join()
        # Sorted: a successor may be faster than its predecessor with the message in hand.
        self.assertEqual(sorted(self.wait_log("b", 4000)), sorted(f"number - {i}" for i in range(4000)))
        self.assertEqual(self.call("ListDeadLetters")["letters"], [])
