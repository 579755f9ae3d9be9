# SPDX-License-Identifier: MIT
"""The example bank: a crash at any step neither makes nor loses a cent."""
import os
import subprocess
from decimal import Decimal
from pathlib import Path

from troupe import LIMIT, QUICK, TestCase, ended, example, ini, limit

BANK = example("bank")
MONEY = {"alice": "100.00", "bob": "50.00"}

# Steps of a transfer at which an account, the bank or the supervisor is killed.
STEPS = ["bank.received", "bank.begun",
         "withdraw.received", "withdraw.written", "withdraw.replied",
         "bank.withdrawn", "bank.withdrawal-logged",
         "deposit.received", "deposit.written", "deposit.replied",
         "bank.deposited", "bank.deposit-logged", "bank.replied"]


class BankTestCase(TestCase):
    def setUp(self):
        self.s = self.supervisor()
        self.vault = self.s.path("vault")
        self.fault = self.s.path("fault")
        os.mkdir(self.vault)
        options = {"Restart": QUICK, "Resources": {"LimitCORE": 0}, "Worker": {"MessageRetries": 5}}
        environment = {"Environment": f"BANK_FAULT={self.fault}"}
        self.s.write("account.group", ini(f"{BANK} serve-account {self.vault}", Group=environment,
                                          Pool={"Size": 1, "Cells": "by-key"}, **options))
        self.s.write("bank.group", ini(f"{BANK} serve-bank {self.vault}", Group=environment, Pool={"Size": 1}, **options))
        self.s.start()
        self.loop_pidfd = os.pidfd_open(self.s.supervisor_pid)
        self.addCleanup(os.close, self.loop_pidfd)

    def teller(self, *words):
        return subprocess.run([BANK, *words], capture_output=True, text=True, timeout=LIMIT,
                              env={**os.environ, "TROUPE_SOCKET": self.s.socket_path})

    def ask(self, *words):
        """The teller's output; expects that it succeeds."""
        process = self.teller(*words)
        self.assertEqual((process.returncode, process.stderr), (0, ""), words)
        return process.stdout.strip()

    def refused(self, *words):
        process = self.teller(*words)
        self.assertEqual((process.returncode, process.stdout), (1, ""), words)
        return process.stderr.strip()

    def wait_supervisor_killed(self):
        """The main process is killed, and the other one, which has the socket, follows it."""
        self.s.wait_end()
        self.assertTrue(ended(self.loop_pidfd, LIMIT))

    def wait_killed(self, step, whom):
        """Waits until it has reached the step; starts the supervisor again if it died."""
        if whom == "supervisor":
            self.wait_supervisor_killed()
            self.s.start()
            self.assertFalse(os.path.exists(self.fault), f"nobody came to {step}")
        self.s.until(lambda: not os.path.exists(self.fault))

    def open_accounts(self):
        for name, amount in MONEY.items():
            self.ask("deposit", name, amount, f"opening-{name}")

    def entries(self, account):
        """The entries of its log: (id, amount, balance, outcome)."""
        return [(id, Decimal(amount), Decimal(balance), outcome) for id, amount, balance, outcome in
                (line.split() for line in self.ask("log", account).splitlines())]

    def check_log(self, account):
        """Checks that each balance follows from the one before. Returns the last one."""
        sum = Decimal(0)
        entries = self.entries(account)
        for id, amount, balance, outcome in entries:
            sum += amount if outcome == "done" else 0
            self.assertEqual(balance, sum, entries)
        self.assertEqual(len({id for id, *_ in entries}), len(entries), entries)
        self.assertEqual(Decimal(self.ask("balance", account)), sum)
        return sum

    def balances(self):
        return [self.check_log(name) for name in MONEY]


class Account(BankTestCase):
    def test_A5_operations_answer_the_new_balance_exactly(self):
        self.assertEqual(self.ask("deposit", "alice", "0.10"), "0.10")
        for i in range(2, 11):
            self.assertEqual(self.ask("deposit", "alice", "0.1"), f"{i // 10}.{i % 10}0")
        self.assertEqual(self.ask("withdraw", "alice", "0.99"), "0.01")
        self.assertEqual(self.ask("balance", "alice"), "0.01")

    def test_A5_an_amount_that_is_not_above_zero_is_refused_before_anything_is_queued(self):
        before = len(self.s.call("io.troupe.Actors.ListActors")["actors"])
        for amount in "0", "0.00", "-1":
            self.assertIn("the amount must be above 0", self.refused("deposit", "alice", amount))
            self.assertIn("the amount must be above 0", self.refused("transfer", "alice", "bob", amount))
        # No cell of that account exists, and no message was sent.
        self.assertEqual(len(self.s.call("io.troupe.Actors.ListActors")["actors"]), before)
        self.assertEqual(self.s.call("io.troupe.Actors.Lookup", name="bank")["actor"]["accepted"], 0)

    def test_A5_an_amount_that_is_not_above_zero_is_refused_by_the_account_itself_too(self):
        answer = self.s.call("io.troupe.Actors.Ask", to="account", type="account.deposit", key="alice",
                             payload={"encoding": "utf8", "data": "id -1"})
        self.assertEqual(answer["type"], "account.refused.amount")

    def test_A5_what_is_no_amount_is_refused(self):
        for amount in "1.234", "ten", "1e3", "0x10", "":
            self.assertIn("not an amount", self.refused("deposit", "alice", amount))

    def test_A5_overdraft_is_logged_refused_and_leaves_the_balance_unchanged(self):
        self.ask("deposit", "alice", "10", "first")
        self.assertIn("refused.insufficient-funds 10.00 10.01", self.refused("withdraw", "alice", "10.01", "second"))
        self.assertEqual(self.entries("alice")[-1], ("second", Decimal("-10.01"), Decimal("10"), "insufficient-funds"))
        self.assertEqual(self.ask("balance", "alice"), "10.00")
        self.s.until(lambda: "account alice: second refused: insufficient-funds (balance 10.00, amount 10.01)" in
                     "".join(death["stderr"] for death in self.s.deaths() if death.get("stderr")) + self.s.log())

    def test_A6_what_was_answered_is_on_disk_whatever_is_killed(self):
        for i in range(10):
            self.assertEqual(self.ask("deposit", "alice", "1", f"id-{i}"), f"{i + 1}.00")
            for worker in self.s.group("account")["workers"]:
                if worker.get("pid"):
                    os.kill(worker["pid"], 9)
        self.assertEqual(len(self.entries("alice")), 10)
        self.assertEqual(self.check_log("alice"), 10)

    def test_A6_an_operation_asked_for_again_is_not_done_again(self):
        for _ in range(3):
            self.assertEqual(self.ask("deposit", "alice", "5", "the-same"), "5.00")
        self.assertEqual(self.check_log("alice"), 5)

    def test_A5_an_id_that_was_used_for_something_else_is_refused(self):
        self.ask("deposit", "alice", "10", "X")
        for words in (("withdraw", "alice", "10", "X"), ("withdraw", "alice", "5", "X"), ("deposit", "alice", "11", "X"),
                      ("deposit", "bob", "10", "X"), ("transfer", "alice", "bob", "10", "X")):
            with self.subTest(words=words):
                self.assertIn("refused.id X", self.refused(*words))
        self.assertEqual(self.ask("deposit", "alice", "10.00", "X"), "10.00")
        self.assertEqual((self.check_log("alice"), self.check_log("bob")), (10, 0))
        self.ask("transfer", "alice", "bob", "4", "T")
        self.assertIn("refused.id T", self.refused("deposit", "alice", "4", "T"))
        self.assertEqual((self.check_log("alice"), self.check_log("bob")), (6, 4))

    def test_A5_the_account_itself_refuses_an_id_of_another_amount(self):
        def deposit(amount):
            return self.s.call("io.troupe.Actors.Ask", to="account", type="account.deposit", key="alice",
                               payload={"encoding": "utf8", "data": f"id {amount}"})["type"]
        self.assertEqual([deposit(1), deposit(1), deposit(2)], ["account.done", "account.done", "account.refused.id"])

    def killed_at(self, step, whom):
        Path(self.fault).write_text(f"{step} {whom}", encoding="ascii")
        self.teller("deposit", "alice", "7", "the-one")
        self.wait_killed(step, whom)
        # Repeated, as by a user who got no answer: it counts once.
        self.assertEqual(self.ask("deposit", "alice", "7", "the-one"), "7.00")
        self.assertEqual(self.entries("alice"), [("the-one", 7, 7, "done")])

    def test_A6_killed_while_it_deposits_the_log_tells_the_truth(self):
        for whom in "itself", "supervisor":
            for step in "deposit.received", "deposit.written", "deposit.replied":
                with self.subTest(step=step, whom=whom):
                    self.killed_at(step, whom)
                self.doCleanups()
                self.setUp()


class Transfer(BankTestCase):
    def test_A7_money_goes_from_account_to_account_once(self):
        self.open_accounts()
        for _ in range(3):
            self.assertEqual(self.ask("transfer", "alice", "bob", "30.50", "t1"), "done")
        self.assertEqual(self.balances(), [Decimal("69.50"), Decimal("80.50")])
        self.assertEqual(self.ask("status", "t1"), "done")
        self.assertIn("refused.id", self.refused("transfer", "alice", "bob", "1", "t1"))

    def test_A7_no_id_of_a_customer_is_that_of_a_step_of_a_transfer(self):
        self.open_accounts()
        for step in "T1/w1", "T1/d1", "T1/r1":
            self.assertIn("not an id", self.refused("deposit", "alice", "0.01", step))
            answer = self.s.call("io.troupe.Actors.Ask", to="account", type="account.deposit", key="alice",
                                 payload={"encoding": "utf8", "data": f"{step} 0.01"})
            self.assertEqual(answer["type"], "account.refused.malformed")
        self.assertEqual(self.ask("transfer", "alice", "bob", "50", "T1"), "done")
        self.assertEqual(self.balances(), [50, 100])

    def test_A7_a_failure_of_the_source_propagates_and_nothing_is_deposited(self):
        self.open_accounts()
        self.assertIn("account.refused.insufficient-funds 100.00 100.01",
                      self.refused("transfer", "alice", "bob", "100.01", "t1"))
        self.assertEqual(self.balances(), [100, 50])
        self.assertEqual([id for id, *_ in self.entries("bob")], ["opening-bob"])

    def test_A7_what_the_target_refuses_is_given_back(self):
        self.ask("deposit", "alice", "100")
        self.ask("deposit", "bob", "92233720368547758.07")
        self.assertEqual(self.teller("transfer", "alice", "bob", "1", "t1").stdout.strip(), "rolled-back")
        self.assertEqual(self.balances(), [100, Decimal("92233720368547758.07")])

    def kill_at(self, step, whom):
        """Kills it at this step of a transfer; afterwards the balances are right."""
        self.open_accounts()
        Path(self.fault).write_text(f"{step} {whom}", encoding="ascii")
        self.teller("transfer", "alice", "bob", "30", "t1")
        self.wait_killed(step, whom)
        # First by recovery alone: all or nothing.
        self.ask("recover")
        alice, bob = self.balances()
        self.assertEqual(alice + bob, 150)
        self.assertIn((alice, bob), [(100, 50), (70, 80)])
        process = self.teller("status", "t1")
        state = process.stdout.strip() or process.stderr.split(" ")[1]
        self.assertEqual(state == "done", (alice, bob) == (70, 80), state)
        self.assertIn(state, ["done", "not-started", "refused.unknown"])
        # Then repeated under the same id: done, once.
        self.assertEqual(self.ask("transfer", "alice", "bob", "30", "t1"), "done")
        self.assertEqual(self.balances(), [70, 80])

    def kill_everywhere(self, whom):
        for step in STEPS:
            with self.subTest(step=step, whom=whom):
                self.kill_at(step, whom)
            self.doCleanups()
            self.setUp()

    @limit(240)
    def test_A7_whoever_is_killed_at_any_step_no_cent_is_made_or_lost(self):
        self.kill_everywhere("itself")

    @limit(240)
    def test_A7_killing_the_supervisor_at_any_step_makes_or_loses_no_cent(self):
        self.kill_everywhere("supervisor")

    def test_A7_a_crash_during_recovery_is_recovered_from(self):
        for step, again in ("bank.withdrawn", "bank.settled"), ("bank.withdrawn", "bank.deposited"), ("bank.begun", "bank.settled"):
            with self.subTest(step=step, again=again):
                self.open_accounts()
                Path(self.fault).write_text(f"{step} supervisor", encoding="ascii")
                self.teller("transfer", "alice", "bob", "30", "t1")
                self.wait_supervisor_killed()
                Path(self.fault).write_text(again, encoding="ascii")
                self.s.start()
                self.ask("recover")
                self.assertFalse(os.path.exists(self.fault), f"nobody came to {again}")
                self.assertEqual(sum(self.balances()), 150)
            self.doCleanups()
            self.setUp()


if __name__ == "__main__":
    import unittest
    unittest.main()
