# SPDX-License-Identifier: MIT
"""An actor with handlers by type, which also does jobs."""
import os

import troupe


class Desk(troupe.Actor):
    def __init__(self):
        super().__init__()
        self.heard = []
        self.open = False

    def started(self):
        self.register("desk")
        self.subscribe("news", "paper")

    @troupe.on("greeting")
    def greeting(self, message):
        return "hello " + message.text

    @troupe.on("greeting.formal")
    def formal(self, message):
        message.reply("greeting.done", {"to": message.text, "ask": message.is_ask, "key": (message.key or b"").decode()})

    @troupe.on("paper")
    def paper(self, message):
        self.heard.append(message.type)

    @troupe.on("heard")
    def tell_heard(self, message):
        return self.heard

    @troupe.on("fail")
    def fail(self, message):
        raise PermissionError(13, message.text or "closed")

    @troupe.on("remind")
    def remind(self, message):
        self.tell_after(0.001, message.sender, "reminder", message.payload)

    @troupe.on("relay")
    def relay(self, message):
        """Asks another actor within a handler."""
        return self.ask("second/0", "greeting", message.payload).data

    @troupe.on("later")
    def later(self, message):
        self.asked = message.ask, message.payload

    @troupe.on("now")
    def now(self, message):
        self.reply(self.asked[0], "now", self.asked[1])

    @troupe.on("become")
    def change(self, message):
        self.become(self.quiet if message.payload else None)
        return message.payload

    def quiet(self, message):
        if message.type == "default":
            self.become_default()
        return "quiet " + message.type

    @troupe.on("forward")
    def pass_on(self, message):
        to, how = int(message.text), message.type.partition(".")[2]
        if how == "same":
            message.forward(to)
        else:
            message.forward_with_key(to, "n" if how == "new" else None)

    @troupe.on("aside")
    def put_aside(self, message):
        if not self.open:
            return message.stash()
        self.heard.append(message.text)
        return message.payload

    @troupe.on("open")
    def take_up(self, message):
        self.open = True
        return self.unstash_all()

    @troupe.on("die")
    def die(self, message):
        if not message.redelivered:
            os._exit(3)
        return "survived"

    @troupe.on("leave")
    def end(self, message):
        self.leave("enough")


@troupe.job
def work(job):
    return b"worked"


troupe.run(actor=Desk())
