# SPDX-License-Identifier: MIT
"""Names, timers and exchanges have owners: no actor takes or ends those of another. See workers/player.c."""
from test_actors import ActorsTestCase, Client


class Owners(ActorsTestCase):
    HOUR = "after 3600000000 0"

    def test_a_timer_whose_owner_is_gone_is_from_nobody(self):
        client = Client(self.s)
        client.do("after 1000 1000 b/0 do.unhandled x")
        self.dead(1, sender="@1")
        client.end()
        self.s.until(lambda: "sender" not in self.call("ListDeadLetters")["letters"][0])
        self.call("Unschedule", to="b/0", type="do.unhandled")

    def test_an_exchange_is_deleted_by_who_made_it_and_from_outside(self):
        self.do("a", "exchange post 0")
        self.assertEqual(self.do("b", "delete post"), "error EPERM")
        self.assertEqual(self.do("a", "delete post"), "0")
        self.do("a", "exchange post 0")
        self.assertEqual(Client(self.s).do("delete post"), "0")
        self.do("a", "exchange post 0")
        self.call("DeleteExchange", name="post")
        self.call("CreateExchange", name="post", kind="single")
        self.assertEqual(self.do("a", "delete post"), "error EPERM")

    def test_a_registered_name_gives_way_to_a_file(self):
        for name in "group", "exchange":
            self.do("a", f"register future-{name}")
        self.do("a", "exchange made 0")
        self.add("future-group")
        self.add("made")
        self.s.write("future-exchange.exchange", "[Exchange]\nType=single\n")
        self.s.call("Reload")
        for name, kind in ("future-group", "pool"), ("made", "pool"), ("future-exchange", "exchange"):
            self.assertEqual(self.call("Lookup", name=name)["actor"]["kind"], kind)
        self.assertEqual(self.do("a", "register future-group"), "error EEXIST")
        self.assertIn("a/0 loses the name future-group", self.s.log())
        self.assertIn("exchange made, made by a/0, is deleted", self.s.log())
