# SPDX-License-Identifier: MIT
"""What NATS servers say about results, and when they can deliver, heard on their own machines: no cut cable keeps it from
the witness."""
import contextlib
import json
import threading
import time

import nats

PATIENCE = 0.05  # seconds between two attempts to connect to a server that is not there
EVERY = 0.2  # seconds between two questions whether there are leaders
SILENCE = 10**9  # nanoseconds without an answer of any server
ERROR_NOT_ONCE = 10071
ERROR_NO_MESSAGE = 10037


class Witness(threading.Thread):
    """Listens to one server until close(), also after that has come back."""

    def __init__(self, test, server, consumer):
        super().__init__(daemon=True)
        self.test, self.server, self.consumer, self.closing = test, server, consumer, threading.Event()
        self.heard = {}  # (job, what, its number in the stream of results): when first
        self.states = {}  # of machines: when told
        self.answers = []  # of the consumer's leader: when, and its name
        self.signs = []  # (job, delivery, what, when): what machines say of messages that were delivered again, or are in progress
        test.addCleanup(self.close)
        self.start()

    def run(self):
        self.server.node.enter()
        while not self.closing.is_set():
            with contextlib.suppress(OSError, EOFError):
                self.listen()
            self.closing.wait(PATIENCE)

    def listen(self):
        client = nats.Client(self.test, self.server)
        client.socket.settimeout(None)
        with client.socket:
            for subject in "_INBOX.*.*", "$KV.TROUPE_STATE.*.*", f"$JS.ACK.{self.consumer}.>":
                client.subscribe(subject)
            while not self.closing.is_set():
                client.publish(f"$JS.API.CONSUMER.INFO.{self.consumer}", reply=f"{client.inbox}.leader")
                ask_at = time.monotonic() + EVERY
                while (left := ask_at - time.monotonic()) > 0:
                    for message in client.available(left):
                        self.note(message)

    def note(self, message):
        kind, _, rest = message.subject.partition(".")
        if kind == "$KV":
            self.states[rest.split(".")[1]] = time.time_ns()
        elif kind == "$JS":
            self.note_sign(rest.split("."), message.data.decode())
        elif rest.endswith(".leader"):
            if b'"ack_floor"' in message.data:
                self.answers.append((time.time_ns(), json.loads(message.data).get("cluster", {}).get("leader")))
        else:
            self.note_answer(message)

    def note_sign(self, tokens, what):
        delivery, job = int(tokens[-5]), int(tokens[-4])
        if what != "+ACK" or delivery > 1:
            self.signs.append((job, delivery, what, time.time_ns()))

    def note_answer(self, message):
        """Notes the answer to a publication (pr) of, or a question (pR) about, the result of a job."""
        token = message.subject.rpartition(".")[2]
        reply = json.loads(message.data or b"{}") if token.startswith(("pr", "pR")) else {}
        code = reply.get("error", {}).get("err_code")
        if token[1:2] == "r" and ("seq" in reply or code == ERROR_NOT_ONCE):
            what, number = "double" if code or reply.get("duplicate") else "stored", reply.get("seq", 0)
        elif token[1:2] == "R" and ("message" in reply or code == ERROR_NO_MESSAGE):
            what, number = "missing" if code else "found", reply.get("message", {}).get("seq", 0)
        else:
            return
        self.heard.setdefault((int(token[2:]), what, number), time.time_ns())

    def close(self):
        self.closing.set()

    def events(self):
        return [{"type": "told", "job": job, "what": what, "seq": number, "by": self.server.name, "at": at}
                for (job, what, number), at in list(self.heard.items())]

    def notes(self):
        return [{"type": "sign", "job": job, "delivery": delivery, "what": what, "by": self.server.name, "at": at}
                for job, delivery, what, at in list(self.signs)]


def changes(witnesses):
    """When no server could deliver, or another one began to, as pairs of times: leaders were elected, or the whole machine did
    not run. The next leader counts from when messages were sent, not from when they were delivered."""
    answers = sorted(answer for witness in witnesses for answer in witness.answers)
    return [(before, after) for (before, former), (after, leader) in zip(answers, answers[1:])
            if after - before > SILENCE or former != leader]
