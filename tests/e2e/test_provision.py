# SPDX-License-Identifier: MIT
"""The example provision: orders in cells by customer and product, with providers."""
import contextlib
import json
import os
import re
import signal
import subprocess
import threading

from troupe import LIMIT, QUICK, SANITIZED, Bell, TestCase, end_process, example, ini, limit

PROVISION = example("provision")
TIME = re.compile(r"^20\d\d-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z$")


def order(customer="acme", product="mailbox", id=None, **properties):
    """A valid order, as a line."""
    needed = {"number": "1"} if product == "line" else {"name": "info"}
    return json.dumps({"customer": customer, "product": product, "properties": {**needed, **properties},
                       **({"id": id} if id else {})})


class Client:
    """`provision submit`, fed line by line."""

    def __init__(self, test, s, *options, group="provision"):
        self.process = subprocess.Popen([PROVISION, "submit", *options, group], text=True, stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE, env={**os.environ, "TROUPE_SOCKET": s.socket_path})
        test.addCleanup(end_process, self.process)

    def send(self, *lines):
        self.process.stdin.write("".join(line + "\n" for line in lines))
        self.process.stdin.flush()

    def outcomes(self):
        """All outcomes, once the orders end, and the exit status."""
        out, _ = self.process.communicate(timeout=LIMIT)
        return [json.loads(line) for line in out.splitlines()], self.process.returncode


class Case(TestCase):
    def engine(self, size=1, work="", **sections):
        """Starts the group `provision`, with a journal and a desk for approvals."""
        s = self.supervisor()
        s.journal, s.work, s.desk = s.path("journal"), work, Bell(s, "desk")
        self.write(s, size, **sections)
        return s.start()

    def write(self, s, size=1, **sections):
        pool = {"Size": size, "Cells": "by-key", "CellIdleSec": "infinity", **sections.pop("Pool", {})}
        s.write("provision.group", ini(f"{PROVISION} work --journal={s.journal} {s.work}", Pool=pool,
                                       **{"Restart": QUICK, "Jobs": {"BackoffMinSec": "1ms"}, **sections}))

    def held(self, s, count=1, prefix="held", key="acme", **options):
        """Orders that wait for approval."""
        ids = [f"{prefix}-{i}" for i in range(count)]
        for id in ids:
            s.create("provision", order(key, approval=s.desk.path), id=id, key=key, **options)
        return ids

    def journal(self, s):
        """The entries of the journal: (worker, generation, what, order, attempt or code)."""
        try:
            with open(s.journal, encoding="utf-8") as file:
                return [(w, int(g), what, id, int(n)) for w, g, what, id, n in map(str.split, file)]
        except FileNotFoundError:
            return []

    def begun(self, s):
        return {id for _, _, what, id, _ in self.journal(s) if what == "begin"}

    def wait_begun(self, s, *ids):
        s.until(lambda: self.begun(s) >= set(ids))

    def outcome(self, job):
        return json.loads(job["result"]["data"])

    def states(self, s, cell="provision/acme"):
        return [(w["state"], w["generation"]) for w in s.cell(cell)["workers"]]

    def wait_states(self, s, expected, cell="provision/acme"):
        s.until(lambda: s.cell(cell) and self.states(s, cell) == expected)

    def check_one_at_a_time(self, entries):
        """Checks that no worker began an order before the end of the one before. Returns the most at work at once."""
        at_work, most = {}, 0
        for worker, generation, what, id, _ in entries:
            if what == "begin":
                self.assertNotIn((worker, generation), at_work)
                at_work[worker, generation] = id
            else:
                self.assertEqual(at_work.pop((worker, generation), None), id)
            most = max(most, len(at_work))
        self.assertEqual(at_work, {})
        return most


class Engine(Case):
    def test_P2_a_customer_a_product_or_both_have_a_cell(self):
        lines = [order(c, p) for c in ("acme", "bakery") for p in ("mailbox", "website", "line")]
        for by, expected in {"customer": {"acme", "bakery"}, "product": {"mailbox", "website", "line"},
                             "both": {f"{c}:{p}" for c in ("acme", "bakery") for p in ("mailbox", "website", "line")},
                             }.items():
            s = self.engine()
            client = Client(self, s, f"--by={by}")
            client.send(*lines)
            outcomes, status = client.outcomes()
            self.assertEqual(([o["end"] for o in outcomes], status), (["succeeded"] * 6, 0))
            self.assertEqual({cell["key"] for cell in s.group("provision")["cells"]}, expected)
            self.assertEqual({w.split("/")[1] for w, *_ in self.journal(s)}, expected)
            s.stop()

    @limit(200)
    def test_P3_growing_and_shrinking_while_orders_come_drops_and_doubles_none(self):
        s = self.engine(2)
        count = self.stream(s, lambda i: s.ctl("resize", "provision/" + "ab"[i % 2],
                                               str([5, 1, 3, 1, 8, 2, 4][i % 7]), check=True))
        for key in "ab":
            s.call("Resize", target=f"provision/{key}", size=3, wait=True)
            self.assertEqual(len(s.cell(f"provision/{key}")["workers"]), 3)
        self.check_exactly_once(s, count)

    def stream(self, s, change, rounds=10 if SANITIZED else 30):
        """Keeps orders of customers a and b coming through a client, and makes that many changes meanwhile, each
        after some orders were done; returns how many orders there were."""
        client, over, sent = Client(self, s), threading.Event(), []

        def feed():
            while not over.is_set():
                sent.append(f"order-{len(sent)}")
                client.send(order("ab"[len(sent) % 2], id=sent[-1]))
        results = []
        reader = threading.Thread(target=lambda: results.extend(client.process.stdout))
        feeder = threading.Thread(target=feed)
        try:
            reader.start()
            feeder.start()
            s.until(lambda: {c["key"] for c in s.group("provision")["cells"]} == {"a", "b"})
            for i in range(rounds):
                due = s.group("provision")["succeeded"] + 50
                change(i)
                s.until(lambda: s.group("provision")["succeeded"] >= due)
        finally:
            over.set()
            feeder.join(LIMIT)
            with contextlib.suppress(BrokenPipeError):
                client.process.stdin.close()
            reader.join(LIMIT)
        self.assertEqual(client.process.wait(LIMIT), 0)
        outcomes = [json.loads(line) for line in results]
        self.assertEqual({o["end"] for o in outcomes}, {"succeeded"})
        self.assertEqual({o["attempts"] for o in outcomes}, {1})
        self.assertEqual(sorted(o["id"] for o in outcomes), sorted(sent))
        return len(sent)

    def check_exactly_once(self, s, count):
        """Checks it by the counters and by the journal."""
        group = s.group("provision")
        self.assertEqual((group["succeeded"], group["rejected"], group["cancelled"], group["dead"]), (count, 0, 0, 0))
        self.assertEqual((group["retries"], group["deaths"], group["queued"], group["running"]), (0, 0, 0, 0))
        entries = self.journal(s)
        for what in "begin", "end":
            self.assertEqual(sorted(id for _, _, w, id, _ in entries if w == what),
                             sorted(f"order-{i}" for i in range(count)))
        self.check_one_at_a_time(entries)

    @limit(300)
    def test_P3_recycling_rolling_and_resizing_of_cells_at_once_drop_and_double_none(self):
        s = self.engine(2, Pool={"MaxJobs": 5})
        rolled = []

        def change(i):
            if i % 3 == 0:
                rolled.append(i)
                self.write(s, 2, Pool={"MaxJobs": 5}, Group={"Environment": f"ROUND={i}"})
                self.assertEqual(s.call("Reload")["changed"], ["provision"])
            elif i % 3 == 1:
                s.call("Resize", target=f"provision/{'ab'[i % 2]}", size=1 + i % 4)
            else:
                self.write(s, 2 + i % 2, Pool={"MaxJobs": 5}, Group={"Environment": f"ROUND={rolled[-1]}"})
                s.call("Reload")
        count = self.stream(s, change)
        s.until(lambda: "runs its new program everywhere" in s.log())
        self.assertIn("(MaxJobs)", s.log())
        self.check_exactly_once(s, count)

    def test_P1_P4_all_waiting_orders_meet_all_available_workers_each_has_one(self):
        s = self.engine(4)
        s.do("provision", order(), key="acme")
        self.wait_states(s, [("idle", 1)] * 4)
        s.call("Pause", target="provision/acme")
        ids = self.held(s, 6)
        self.assertEqual([state for state, _ in self.states(s)], ["idle"] * 4)
        s.call("Resume", target="provision/acme")
        # The answer to the next call comes after all of them were matched.
        cell = s.cell("provision/acme")
        self.assertEqual([(w["state"], w.get("job")) for w in sorted(cell["workers"], key=lambda w: w["job"])],
                         [("busy", id) for id in ids[:4]])
        self.assertEqual((cell["running"], cell["queued"]), (4, 2))
        s.until(lambda: len(self.begun(s)) == 1 + 4)
        # One is ready again and gets the next one, in order.
        s.desk.ring()
        self.wait_begun(s, ids[4])
        self.assertNotIn(ids[5], self.begun(s))
        s.desk.ring(5)
        for id in ids:
            s.wait_job(id)
        self.check_one_at_a_time(self.journal(s))

    def test_P5_who_is_stuck_is_stopped_and_the_order_tried_again(self):
        s = self.engine()
        [id] = self.held(s, timeout_usec=500000, max_retries=1000)
        death = s.wait_event("worker.died", "provision/acme")["death"]
        self.assertEqual((death["cause"], death["job"], death["attempt"]), ("job_timeout", id, 1))
        s.desk.ring()
        job = s.wait_job(id)
        self.assertEqual(job["state"], "succeeded")
        self.assertGreater(job["attempt"], 1)
        self.assertEqual({a["cause"] for a in job["attempts"]}, {"job_timeout"})

    def test_P5_the_answer_disarms_the_time_out(self):
        s = self.engine()
        options = {"timeout_usec": 500000, "max_retries": 1000}
        s.do("provision", order(), key="acme", **options)
        [(_, generation)] = self.states(s)
        [id] = self.held(s)  # without a limit, on the same worker
        self.wait_begun(s, id)
        # A limit that was set later has expired, so that of the answered order would have, too.
        self.held(s, 1, "late", "bakery", **options)
        s.wait_event("worker.died", "provision/bakery")
        self.assertEqual(self.states(s), [("busy", generation)])
        s.desk.ring(2)
        self.assertEqual((s.wait_job(id)["state"], s.wait_job(id)["attempt"]), ("succeeded", 1))

    def test_P10_an_outcome_is_success_or_failure_and_either_makes_the_worker_ready_again(self):
        s = self.engine()
        client = Client(self, s)
        client.send(order(id="good"), order(product="castle", id="unknown"),
                    json.dumps({"customer": "acme", "product": "line", "properties": {"x": "y"}, "id": "incomplete"}),
                    order(id="refused", approval=s.desk.path), order(product="line", id="line"))
        os.write(s.desk.fd, b"no too late\n")
        outcomes, status = client.outcomes()
        self.assertEqual([o["id"] for o in outcomes], ["good", "unknown", "incomplete", "refused", "line"])
        good, unknown, incomplete, refused, line = outcomes
        self.assertEqual(status, 1)
        self.assertEqual((good["end"], good["code"]), ("succeeded", 0))
        self.assertEqual(good["properties"], {"name": "info", "address": "info@acme.example"})
        self.assertEqual(line["properties"], {"number": "1", "dial": "sip:1@acme.example"})
        for outcome, code, text in ((unknown, 2, "unknown product: castle"), (incomplete, 3, "missing property: number"),
                                    (refused, 4, "not approved: too late")):
            self.assertEqual((outcome["end"], outcome["code"], outcome["attempts"]), ("rejected", code, 1))
            self.assertEqual([m["text"] for m in outcome["messages"]], [text])
            self.assertRegex(outcome["messages"][0]["at"], TIME)
        self.assertEqual(incomplete["properties"], {"x": "y"})
        malformed = s.do("provision", "?", key="acme")
        self.assertEqual((malformed["state"], malformed["code"]), ("rejected", 1))
        worker = s.worker("provision/acme/0")
        self.assertEqual((worker["generation"], worker["jobs_done"], worker["state"]), (1, 6, "idle"))
        self.assertEqual(json.loads(worker["published"]["data"]), {"phase": "idle"})


class Providers(Case):
    """Groups north and south of providers, each with a desk. s.asked records their questions."""

    def with_providers(self, work="--patience=600000", size=1, **worker):
        s = self.supervisor()
        s.journal, s.asked, s.work, s.desk = s.path("journal"), s.path("asked"), work, Bell(s, "desk")
        self.write(s)
        for name in "north", "south":
            setattr(s, name, Bell(s, name))
            self.write_provider(s, name, **worker)
        return s.start()

    def write_provider(self, s, name, **worker):
        s.write(name + ".group", ini(f"{PROVISION} provider --journal={s.asked} --desk={s.path(name)}", Restart=QUICK,
                                     Pool={"Size": 2}, Worker={"OnCrash": "error-queue", **worker}))

    def asked(self, s):
        """The providers asked so far."""
        with contextlib.suppress(FileNotFoundError), open(s.asked, encoding="utf-8") as file:
            return [line.split()[0] for line in file]
        return []

    def wait_asked(self, s, *names):
        s.until(lambda: set(self.asked(s)) >= set(names))

    def dead_letters(self, s, count=1, **filter):
        return s.until(lambda: (lambda l: l if len(l) >= count else None)(
            s.call("io.troupe.Actors.ListDeadLetters", filter=filter)["letters"][::-1]))

    def texts(self, job):
        """Its messages, each with its time."""
        messages = self.outcome(job)["messages"]
        for message in messages:
            self.assertRegex(message["at"], TIME)
        return [message["text"] for message in messages]

    def begin(self, s, providers, **properties):
        s.create("provision", order(providers=providers, **properties), id="order", key="acme")

    def check_next(self, s):
        """The worker still works."""
        s.north.ring()
        job = s.do("provision", order(providers="north/1"), key="acme")
        self.assertEqual(job["state"], "succeeded")
        self.assertEqual(s.group("provision")["deaths"], 0)

    def test_P11_a_provider_sets_its_part_up_or_says_no(self):
        s = self.with_providers()
        self.begin(s, "north/1")
        self.wait_asked(s, "north/1")
        self.assertEqual(json.loads(s.job("order")["published"]["data"])["phase"], "provider")
        s.north.ring()
        job = s.wait_job("order")
        self.assertEqual((job["state"], self.outcome(job)["properties"]["provider"]), ("succeeded", "north/1"))
        os.write(s.north.fd, b"no we are closed\n")
        job = s.do("provision", order(providers="north/1"), key="acme")
        self.assertEqual((job["state"], job["code"], job["attempt"]), ("rejected", 5, 1))
        self.assertEqual(self.texts(job), ["north/1: we are closed"])
        job = s.do("provision", order(providers="west"), key="acme")
        self.assertEqual((job["state"], job["code"]), ("rejected", 6))
        self.check_next(s)

    def test_P11_the_death_of_the_current_provider_is_a_communications_error(self):
        s = self.with_providers()
        self.begin(s, "north/1")
        self.wait_asked(s, "north/1")
        os.kill(s.worker("north/1")["pid"], signal.SIGKILL)
        job = s.wait_job("order")
        self.assertEqual((job["state"], job["code"], job["attempt"]), ("rejected", 6, 1))
        self.assertEqual(self.texts(job), ["north/1: the provider has died"])
        self.check_next(s)

    def test_P11_the_current_provider_gone_for_good_is_a_communications_error(self):
        s = self.with_providers()
        s.call("io.troupe.Actors.Pause", actor="north/1")  # the question waits
        self.begin(s, "north/1")
        s.until(lambda: s.call("io.troupe.Actors.Lookup", name="north/1")["actor"]["waiting"] == 1)
        s.call("Resize", target="north", size=1)
        job = s.wait_job("order")
        self.assertEqual((job["state"], job["code"], job["attempt"]), ("rejected", 6, 1))
        [text] = self.texts(job)
        self.assertIn("gone", text)

    def test_P11_the_death_of_another_provider_is_only_forgotten(self):
        s = self.with_providers("--patience=300")
        s.call("io.troupe.Actors.Pause", actor="north/1")  # never answers
        self.begin(s, "north/1 south/1")
        self.wait_asked(s, "south/1")
        s.call("Resize", target="north", size=1, wait=True)
        self.assertEqual(s.job("order")["state"], "running")
        s.south.ring()
        job = s.wait_job("order")
        self.assertEqual((job["state"], job["attempt"]), ("succeeded", 1))
        self.assertEqual(self.texts(job), ["north/1: no answer in time", "north/1: it is gone, and forgotten",
                                           "south/1: done", "mailbox is set up"])

    def test_P11_an_error_counts_from_the_current_provider_only(self):
        s = self.with_providers("--patience=300")
        self.begin(s, "north/1 south/1")
        self.wait_asked(s, "north/1", "south/1")
        # The provider that was given up refuses late, and an unrelated one refuses as well.
        os.write(s.north.fd, b"no we are closed\n")
        s.call("io.troupe.Actors.Tell", to="provision/acme/0", type="provider.error", payload={
            "encoding": "utf8", "data": json.dumps({"text": "a stranger's error"})})
        [late] = self.dead_letters(s, reason="late_reply")
        self.assertEqual((late["sender"], late["type"]), ("north/1", "provider.error"))
        [stray] = self.dead_letters(s, reason="unhandled")
        self.assertEqual((stray["recipient"], stray["type"]), ("provision/acme/0", "provider.error"))
        self.assertEqual(s.job("order")["state"], "running")
        s.south.ring()
        job = s.wait_job("order")
        self.assertEqual((job["state"], job["attempt"]), ("succeeded", 1))
        self.assertEqual(self.texts(job)[:2], ["north/1: no answer in time", "south/1: done"])

    def test_P8_a_death_notice_about_something_unknown_is_a_warning_and_a_dead_letter(self):
        s = self.with_providers()
        s.north.ring()
        self.begin(s, "north/1", approval=s.desk.path)
        s.until(lambda: '"approval"' in s.job("order").get("published", {}).get("data", ""))
        # It has finished with the provider and waits for a person: the death no longer matters.
        s.call("Resize", target="north", size=1, wait=True)
        s.desk.ring()
        self.assertEqual(s.wait_job("order")["state"], "succeeded")
        [letter] = self.dead_letters(s, reason="unknown_death")
        self.assertEqual((letter["recipient"], letter["type"]), ("provision/acme/0", "terminated"))
        self.assertIn("warning: provision/acme/0: is notified of the end of an actor that it does not monitor", s.log())
