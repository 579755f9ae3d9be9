# SPDX-License-Identifier: MIT
"""What an actor may do to messages, to others and to itself. See workers/player.c."""
from test_actors import ActorsTestCase, Client
from troupe import Bell


class Manners(ActorsTestCase):
    def test_C9_a_message_is_forwarded_with_another_key_and_its_sender(self):
        self.do("a", "tell c/0 do.become - nothing")
        for key in "new", "-":
            self.do("a", f"tell b/0 do.forward old c/0 {key}")
        self.dead(2)
        letters = self.call("ListDeadLetters")["letters"]
        self.assertEqual({(l["sender"], l["recipient"], l.get("key")) for l in letters},
                         {("a/0", "c/0", "new"), ("a/0", "c/0", None)})

    def test_C4_a_worker_pauses_itself_and_its_own_and_nothing_else(self):
        self.assertEqual(self.do("b", "pause b/0"), "0")
        self.do("a", "burst b/0 3 held")
        self.s.until(lambda: self.call("Lookup", name="b/0")["actor"]["waiting"] == 3)
        self.assertEqual(self.do("a", "resume b/0"), "error EPERM")
        self.assertEqual(self.log("b"), [])
        self.assertEqual(self.do("b", "resume b/0"), "0")
        self.assertEqual(self.wait_log("b", 3), [f"held - {i}" for i in range(3)])
        self.do("a", "exchange post 0")
        self.do("a", "subscribe post '' -")
        self.assertEqual(self.do("b", "pause post"), "error EPERM")
        self.assertEqual(self.do("a", "pause post"), "0")
        self.do("a", "tell post news - x")
        client = Client(self.s)
        self.assertEqual(client.do("pause c/0"), "0")
        self.assertTrue(self.call("Lookup", name="c/0")["actor"]["paused"])
        self.assertEqual(client.do("resume post"), "0")
        self.wait_line("a", "news - x")

    def test_an_actor_knows_its_address(self):
        self.assertEqual(self.do("b", "address self"), "b/0")
        client = Client(self.s)
        address = client.do("address self")
        self.assertEqual(address, "@1")
        self.assertEqual(self.do("a", f"lookup {address}"), client.do("lookup self"))

    def test_an_actor_that_ends_itself_has_not_failed(self):
        reference = self.do("a", "lookup b/0")
        self.do("a", "tell b/0 do.leave - my work is done")
        self.do("a", "burst b/0 10 next")
        self.assertEqual(self.wait_log("b", 10), [f"next - {i}" for i in range(10)])
        self.s.wait_for(lambda: (lambda w: (w["state"], w["generation"]) == ("idle", 2))(self.s.worker("b/0")))
        group, worker = self.s.group("b"), self.s.worker("b/0")
        self.assertEqual((group["deaths"], worker["restarts"]), (0, 0))
        [death] = self.s.deaths("b")
        self.assertEqual((death["cause"], death["detail"]), ("stop", "ended itself: my work is done"))
        self.assertIn("ends itself: my work is done", self.s.wait_event("worker.left", "b")["message"])
        self.assertEqual(self.do("a", "lookup b/0"), reference)
        self.assertEqual(self.call("ListDeadLetters")["letters"], [])

    def test_one_that_is_not_to_be_restarted_stays_away(self):
        self.add("b", Restart={"Restart": "no", "MinSec": "1ms"})
        self.s.call("Reload")
        self.s.wait_worker("b/0", "idle")
        self.do("a", "tell b/0 do.leave - bye")
        self.s.wait_worker("b/0", "stopped")
        self.assertEqual(self.s.group("b")["deaths"], 0)

    def test_who_leaves_right_after_its_start_backs_off(self):
        self.add("b", Restart={"MinSec": "1h", "MaxSec": "1h", "StartLimitBurst": 0})
        self.s.call("Reload")
        self.s.wait_worker("b/0", "idle")
        self.do("a", "tell b/0 do.leave - at once")
        self.s.until(lambda: self.s.group("b")["deaths"] == 1)
        [death] = self.s.deaths("b")
        self.assertEqual((death["cause"], death["detail"]), ("exit", "ended itself right after its start: at once"))

    def test_the_words_of_an_actor_that_ends_itself_outlive_the_supervisor(self):
        self.add("b", Restart={"MinSec": 0})  # no leave counts as a failure
        self.s.call("Reload")
        self.s.wait_worker("b/0", "idle")
        for n, take_over in enumerate((self.s.crash, lambda: self.s.ctl("upgrade", check=True)), 1):
            go = Bell(self.s, f"go{n}")
            self.do("a", f"tell b/0 do.linger - {go.path}")
            self.s.until(lambda: self.s.worker("b/0").get("status") == go.path)
            take_over()
            self.s.until(lambda: self.s.worker("b/0").get("status") == go.path)
            self.assertEqual(self.s.deaths("b")[n - 1:], [])
            go.ring()
            self.s.until(lambda: len(self.s.deaths("b")) == n)
            death = self.s.deaths("b")[0]
            self.assertEqual((death["cause"], death["detail"]), ("stop", f"ended itself: {go.path}"))
