#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Takes the picture of the page in the README, from a run with real jobs that lasts $SECONDS before."""
import os
import random
import sys
import threading
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "e2e"))
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

from browser import PROGRAM, Browser  # noqa: E402
from troupe import TOP, TROUPE_EXEC, TestCase, Varlink, text  # noqa: E402
from web_client import Web  # noqa: E402

SECONDS = float(os.environ.get("SECONDS", "130"))  # the charts show two minutes
# The payload is how long the job takes, or how it ends.
WORK = r"""case $0 in crash) echo "reading picture-4711.png" >&2; echo "libpng: CRC error in chunk IDAT" >&2; kill -SEGV $$;;
    fail) echo "no connection to the database" >&2; exit 2;; *) exec sleep $0;; esac""".replace("\n    ", " ")


def group(description, size, *lines):
    return "\n".join((f"[Group]\nDescription={description}\nExecStart={TROUPE_EXEC} -- sh -c '{WORK}' {{}}",
                      f"[Pool]\nSize={size}", "[Resources]\nLimitCORE=0", *lines, ""))


GROUPS = {
    "gateway": "[Group]\nDescription=Webhook gateway\nType=service\nExecStart=/bin/sleep infinity\n[Pool]\nSize=2\n",
    "invoices": group("PDF invoices", 3),
    "mail": group("Outgoing mail, a cell per customer", 2, "[Pool]\nCells=by-key"),
    "reports": group("Nightly reports", 2, "[Jobs]\nMaxRetries=0"),
    "thumbnails": group("Thumbnails of uploaded pictures", 4, "[Jobs]\nBackoffMinSec=100ms\nMaxRetries=1"),
    "transcode": group("Video to H.264", 4),
}
# Jobs per second, the shortest and the longest; what else may happen, and how often.
LOADS = {
    "invoices": (1.0, 0.3, 2.0, None, 0),
    "mail": (4.0, 0.01, 0.1, None, 0),
    "reports": (0.8, 0.2, 0.6, "fail", 0.6),
    "thumbnails": (6.0, 0.02, 0.4, "crash", 0.04),
    "transcode": (0.5, 2.0, 12.0, None, 0),
}
KEYS = ["acme", "globex", "initech", "umbrella", "wayne"]


def send_jobs(socket, name, stop):
    """Sends jobs at random times until the event is set."""
    rate, shortest, longest, end, share = LOADS[name]
    chance = random.Random(name)
    with Varlink(socket) as connection:
        while not stop.wait(chance.expovariate(rate)):
            data = end if chance.random() < share else f"{chance.uniform(shortest, longest):.2f}"
            options = {"key": chance.choice(KEYS)} if name == "mail" else {}
            connection.call("Create", group=name, payload=text(data), options=options)


@unittest.skipUnless(PROGRAM, "there is no chromium here")
class Picture(TestCase):
    def test_picture(self):
        s = self.started(GROUPS)
        browser = Browser(self, 1200, 740)
        browser.open(f"http://{Web(self, s.socket_path).name}/")
        stop = threading.Event()
        senders = [threading.Thread(target=send_jobs, args=(s.socket_path, name, stop)) for name in LOADS]
        for sender in senders:
            sender.start()
        browser.evaluate(f"new Promise(done => setTimeout(done, {1000 * SECONDS}))")
        browser.until("document.querySelector('main').innerText.length > 100")
        browser.picture(os.path.join(TOP, "supervisor/web/page.png"))
        stop.set()
        for sender in senders:
            sender.join()


if __name__ == "__main__":
    unittest.main()
