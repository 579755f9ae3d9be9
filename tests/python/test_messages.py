# SPDX-License-Identifier: MIT
"""Messages: workers that are actors, and clients that tell, ask and subscribe."""
import asyncio
import errno
import threading
import time
import unittest

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
        with self.assertRaisesRegex(PermissionError, "closed"):
            self.client.ask("desk", "fail")
        self.assertEqual(self.client.ask("desk", "greeting", "on").data, b"hello on")

    def test_an_error_may_be_cut_anywhere(self):
        from troupe import aio

        async def main(text):
            async with aio.Client(self.server.socket_path) as client:
                with self.assertRaisesRegex(PermissionError, "éé"):
                    await client.ask("desk", "fail", text)
        for text in "é" * 1000, "x" + "é" * 1000:
            with self.assertRaisesRegex(PermissionError, "éé"):
                self.client.ask("desk", "fail", text)
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
            with self.assertRaisesRegex(RuntimeError, "a call of wait\\(\\) has not returned"):
                future.drop()
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
        with self.assertRaises(FileNotFoundError):
            self.client.tell("nobody", "greeting")

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

    def test_an_actor_does_jobs_as_well(self):
        self.assertEqual(self.client.do("desk-group").data, b"worked")

    def test_a_handler_may_ask(self):
        self.client.on_message(lambda message: None)
        second = self.server.path("second.py")
        with open(second, "w", encoding="utf-8") as file:
            file.write(SECOND)
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


if __name__ == "__main__":
    unittest.main()
