# SPDX-License-Identifier: MIT
"""Messages: workers that are actors, and clients that tell, ask and subscribe."""
import asyncio
import errno
import threading
import time
from pathlib import Path

import troupe_python
from troupe_python import e2e, group, needed

SECOND = """
import troupe
class Second(troupe.Actor):
    @troupe.on("greeting")
    def greeting(self, message):
        return b"second: " + message.payload
troupe.run(actor=Second())
"""


@needed
class Messages(troupe_python.TestCase):
    def setUp(self):
        import troupe
        self.server = self.supervisor({"desk-group": group("actor.py")})
        self.server.write("news.exchange", "[Exchange]\nType=typed-multi\n")
        self.server.start()
        self.client = troupe.Client(self.server.socket_path)
        self.addCleanup(self.client.close)

    def test_what_a_handler_returns_is_the_reply(self):
        reply = self.client.ask("desk", "greeting", "you")
        self.assertEqual((reply.type, reply.data), ("greeting.reply", b"hello you"))
        self.assertEqual(reply.sender, self.client.find("desk-group/0"))
        self.assertEqual(self.client.ask("desk", "greeting.casual.short", "you").data, b"hello you")

    def test_the_nearest_handler_gets_it(self):
        reply = self.client.ask("desk", "greeting.formal", "you", key="k")
        self.assertEqual((reply.type, reply.json()), ("greeting.done", {"to": "you", "ask": True, "key": "k"}))

    def test_an_exception_is_the_askers_error(self):
        self.assertRaisesRegex(PermissionError, "closed", self.client.ask, "desk", "fail")
        self.assertEqual(self.client.ask("desk", "greeting", "on").data, b"hello on")

    def test_messages_that_were_put_aside_come_before_later_ones(self):
        for text in "abc":
            self.client.tell("desk", "aside", text)
        asked = self.client.begin_ask("desk", "aside", "d")
        self.assertEqual(self.client.ask("desk", "open").json(), 4)
        self.assertEqual(self.client.ask("desk", "heard").json(), ["a", "b", "c", "d"])
        self.assertEqual(asked.wait().data, b"d")

    def test_a_message_that_a_worker_died_with_says_so_to_the_next_one(self):
        self.assertEqual(self.client.ask("desk-group/0", "die").data, b"survived")

    def test_an_error_may_be_cut_anywhere(self):
        from troupe import aio

        async def main(text):
            async with aio.Client(self.server.socket_path) as client:
                with self.assertRaisesRegex(PermissionError, "éé"):
                    await client.ask("desk", "fail", text)
        for text in "é" * 1000, "x" + "é" * 1000:
            self.assertRaisesRegex(PermissionError, "éé", self.client.ask, "desk", "fail", text)
            asyncio.run(asyncio.wait_for(main(text), e2e.LIMIT))

    def test_a_reply_that_is_waited_for_cannot_be_dropped(self):
        import troupe
        asked = troupe.Client(self.server.socket_path)
        self.addCleanup(asked.close)
        heard = []

        def answer(message):
            message.reply("answer", b"")
            heard.append(message.type)
        asked.on_message(answer)
        future = self.client._low().ask(asked.reference, "question", b"")
        waiter = threading.Thread(target=future.wait)
        waiter.start()
        waiting = False
        while not waiting:
            try:
                future.result()
            except BlockingIOError:
                pass
            except RuntimeError:
                waiting = True  # in the other thread
        try:
            self.assertRaisesRegex(RuntimeError, "a call of wait\\(\\) has not returned", future.drop)
        finally:
            while not heard:
                asked.turn(e2e.LIMIT)
            waiter.join()
        self.assertEqual(future.result()[0], "answer")
        future.drop()

    def test_what_nobody_handles_is_an_error(self):
        with self.assertRaises(OSError) as caught:
            self.client.ask("desk", "unknown")
        self.assertEqual(caught.exception.errno, errno.ENOSYS)
        self.assertRaises(FileNotFoundError, self.client.tell, "nobody", "greeting")

    def test_an_exchange_reaches_its_subscribers(self):
        self.client.tell("news", "paper.morning", "extra")
        self.client.tell("news", "other", "extra")
        self.server.until(lambda: self.client.ask("desk", "heard").json())
        self.assertEqual(self.client.ask("desk", "heard").json(), ["paper.morning"])

    def test_clients_get_messages_too(self):
        heard = []
        self.client.on_message(lambda message: heard.append((message.type, message.text)))
        self.client.subscribe("news")
        self.client.tell("news", "paper", "mine")
        while not heard:
            self.client.turn(e2e.LIMIT)
        self.assertEqual(heard, [("paper", "mine")])
        self.assertTrue(self.client.unsubscribe("news"))
        self.assertFalse(self.client.unsubscribe("news"))

    def test_what_a_client_sent_before_it_left_arrives(self):
        import troupe
        client = troupe.Client(self.server.socket_path)
        news = client.find("news")
        with self.server.stopped():
            for _ in range(200):  # more than are read in a turn
                client.tell(news, "paper", "last words")
            client.close()
        self.wait_heard(["paper"] * 200)

    def test_timers_send_later(self):
        heard = []
        self.client.on_message(lambda message: heard.append((message.type, message.text, message.timer > 0)))
        self.client.tell("desk", "remind", "later")
        self.client.tell_at(time.time(), self.client.reference, "now", "at")
        while len(heard) < 2:
            self.client.turn(e2e.LIMIT)
        self.assertEqual(sorted(heard), [("now", "at", True), ("reminder", "later", True)])
        timer = self.client.tell_after(3600, "desk", "greeting")
        self.assertTrue(self.client.cancel_timer(timer))
        self.assertFalse(self.client.cancel_timer(timer))

    def wait_heard(self, wanted):
        self.server.until(lambda: self.client.ask("desk", "heard").json() == wanted)

    def test_exchanges_are_made_and_deleted(self):
        kinds = ("single", "typed-single", "typed-multi", "routing-key", "pattern")
        made = {kind: self.client.new_exchange("made." + kind, kind) for kind in kinds}
        self.assertEqual([self.client.find("made." + kind) for kind in kinds], list(made.values()))
        self.assertRaises(FileExistsError, self.client.new_exchange, "made.single", "single")
        with self.assertRaisesRegex(ValueError, "no kind of exchange: 'double'; allowed: single, typed-single"):
            self.client.new_exchange("more", "double")
        heard = []
        self.client.on_message(lambda message: heard.append((message.type, message.key)))
        self.client.subscribe("made.pattern", "", "a.*")
        self.client.tell("made.pattern", "fact", key="a.b")
        while not heard:
            self.client.turn(e2e.LIMIT)
        self.assertEqual(heard, [("fact", b"a.b")])
        for kind in kinds:
            self.client.delete_exchange("made." + kind)
        self.assertRaises(FileNotFoundError, self.client.find, "made.single")

    def test_a_paused_actor_handles_nothing_until_it_is_resumed(self):
        self.client.pause("desk-group/0")
        asked = self.client.begin_ask("desk", "greeting", "you")
        self.assertRaises(TimeoutError, asked.wait, 0.05)
        self.assertFalse(asked.done)
        self.client.resume("desk-group/0")
        self.assertEqual(asked.wait().data, b"hello you")

    def test_asks_are_waited_for_in_any_order(self):
        asked = [self.client.begin_ask("desk", "greeting", str(n)) for n in range(10)]
        self.assertEqual([pending.wait().data for pending in reversed(asked)],
                         [b"hello %d" % n for n in reversed(range(10))])
        dropped = self.client.begin_ask("desk", "greeting", "nobody")
        dropped.drop()
        self.assertRaisesRegex(RuntimeError, "dropped", dropped.wait)

    def test_the_end_of_an_ask_calls_a_function(self):
        heard = []
        self.client.begin_ask("desk", "greeting", "you").then(lambda asked: heard.append(asked.wait().data))
        while not heard:
            self.client.turn(e2e.LIMIT)
        self.assertEqual(heard, [b"hello you"])

    def test_replies_of_another_type_are_not_taken(self):
        self.assertEqual(self.client.ask("desk", "greeting", "a", reply_type="greeting.reply").data, b"hello a")
        self.assertRaises(TimeoutError, self.client.ask, "desk", "greeting", "a", reply_type="other", timeout=0.05)

    def test_a_reply_may_come_after_the_handler(self):
        asked = self.client.begin_ask("desk", "later", "you")
        self.client.tell("desk", "now")
        reply = asked.wait()
        self.assertEqual((reply.type, reply.data), ("now", b"you"))

    def test_a_monitor_tells_of_the_end_of_an_actor(self):
        import troupe
        with troupe.Client(self.server.socket_path) as other:
            pending = self.client.monitor(other.address)
            self.assertFalse(pending.done)
        self.assertTrue(pending.wait().data)
        self.assertRaises(FileNotFoundError, self.client.monitor, "@999999")

    def test_an_actor_becomes_another_and_itself_again(self):
        self.assertEqual(self.client.ask("desk", "become", "quiet").data, b"quiet")
        self.assertEqual(self.client.ask("desk", "greeting", "you").data, b"quiet greeting")
        self.client.tell("desk", "default")
        self.assertEqual(self.client.ask("desk", "greeting", "you").data, b"hello you")
        self.client.tell("desk", "become")
        with self.assertRaises(OSError) as caught:
            self.client.ask("desk", "greeting", "you")
        self.assertEqual(caught.exception.errno, errno.ENOSYS)

    def test_messages_are_passed_on_with_their_key_or_another(self):
        heard = []
        self.client.on_message(lambda message: heard.append((message.type, message.key)))
        for how in "same", "none", "new":
            self.client.tell("desk", "forward." + how, str(self.client.reference), key="k")
        while len(heard) < 3:
            self.client.turn(e2e.LIMIT)
        self.assertEqual(heard, [("forward.same", b"k"), ("forward.none", None), ("forward.new", b"n")])

    def test_names_and_timers_are_given_back(self):
        self.client.register("me")
        self.assertEqual(self.client.find("me"), self.client.reference)
        self.assertEqual((self.client.deregister("me"), self.client.deregister("me")), (True, False))
        for _ in range(3):
            self.client.tell_after(3600, "desk", "greeting", key="k")
        self.assertEqual(self.client.cancel_timers("desk", "greeting"), 3)
        self.assertEqual(self.client.cancel_timers("desk", "greeting"), 0)

    def test_silence_is_told(self):
        heard = []
        self.client.on_silence(0.01, lambda: heard.append("silence"))
        while not heard:
            self.client.turn(e2e.LIMIT)
        self.client.on_silence(None, print)
        self.assertFalse(self.client.turn(0.05))

    def test_a_message_tells_when_it_was_sent(self):
        before = time.time()
        heard = []
        self.client.on_message(lambda message: heard.append((message.id > 0, message.sent_at, message.ask)))
        self.client.tell(self.client.reference, "fact")
        while not heard:
            self.client.turn(e2e.LIMIT)
        self.assertEqual((heard[0][0], heard[0][2]), (True, 0))
        self.assertLess(abs(heard[0][1] - before), 600)

    def test_asyncio_monitors_and_gives_up(self):
        from troupe import aio

        async def main():
            async with aio.Client(self.server.socket_path) as client, aio.Client(self.server.socket_path) as other:
                ended = asyncio.create_task(client.monitor(other.address))
                await asyncio.sleep(0)
                other.close()
                self.assertTrue(await ended)
                with self.assertRaises(asyncio.TimeoutError):
                    await asyncio.wait_for(client.monitor("desk"), 0.01)
        asyncio.run(asyncio.wait_for(main(), e2e.LIMIT))

    def test_an_actor_does_jobs_as_well(self):
        self.assertEqual(self.client.do("desk-group").data, b"worked")

    def test_a_handler_may_ask(self):
        self.client.on_message(lambda message: None)
        second = self.server.path("second.py")
        Path(second).write_text(SECOND, encoding="utf-8")
        self.server.write("second.group", group(second))
        self.server.call("Reload")
        self.server.wait_worker("second/0", "idle")
        self.assertEqual(self.client.ask("desk", "relay", "x").data, b"second: x")

    def test_an_actor_that_leaves_is_replaced(self):
        before = self.server.worker("desk-group/0")["pid"]
        self.client.tell("desk-group/0", "leave")
        self.server.until(lambda: self.server.worker("desk-group/0").get("pid") not in (None, before))

    def test_an_actor_subscribes_again_after_a_crash_of_the_supervisor(self):
        self.server.crash()
        import troupe
        with troupe.Client(self.server.socket_path) as client:
            def heard():
                try:
                    client.tell("news", "paper.evening")
                    return client.ask("desk", "heard").json()
                except OSError:
                    return None  # it is about to come back
            self.assertIn("paper.evening", self.server.until(heard))

    def test_asks_are_awaited(self):
        from troupe import aio

        async def main():
            async with aio.Client(self.server.socket_path) as client:
                replies = await asyncio.gather(*(client.ask("desk", "greeting", str(n)) for n in range(200)))
                self.assertEqual([reply.data for reply in replies], [b"hello %d" % n for n in range(200)])
                with self.assertRaises(PermissionError):
                    await client.ask("desk", "fail")
                heard = asyncio.get_running_loop().create_future()
                client.on_message(lambda message: heard.set_result(message.text))
                client.subscribe("news", "paper")
                client.tell("news", "paper", "read")
                self.assertEqual(await heard, "read")
                client.on_message(lambda message: None)
                with self.assertRaises(asyncio.TimeoutError):
                    await asyncio.wait_for(client.ask(client.reference, "never"), 0.01)
                waiting = asyncio.create_task(client.ask("desk", "paper"))
                await asyncio.sleep(0)
                client.close()
                with self.assertRaises(ConnectionError):
                    await waiting
        asyncio.run(asyncio.wait_for(main(), e2e.LIMIT))
