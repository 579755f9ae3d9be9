# SPDX-License-Identifier: MIT
"""The example exchange: an office whose clerks receive post through exchanges. Covers each feature of actors."""
import os
import re

from troupe import QUICK, TestCase, VarlinkError, example, ini, text


class OfficeTestCase(TestCase):
    options = ()

    def setUp(self):
        self.s = self.supervisor(options=self.options)
        self.s.write("office.group", ini(example("exchange"), Pool={"Size": 3}, Restart=QUICK))
        self.s.write("post.exchange", "[Exchange]\nType=pattern\n")
        self.s.start()

    def call(self, method, **parameters):
        return self.s.call("io.troupe.Actors." + method, **parameters)

    def tell(self, to, type, data="", **options):
        self.call("Tell", to=to, type=type, payload=text(data), **options)

    def ask(self, to, type, data="", **options):
        answer = self.call("Ask", to=to, type=type, payload=text(data), **options)
        return answer["payload"]["data"]

    def filed(self, clerk):
        """What this clerk has filed, in order."""
        return re.findall(rf"office/{clerk} files (.*)", self.s.log())

    def wait_filed(self, clerk, letters):
        self.s.until(lambda: len(self.filed(clerk)) >= len(letters))
        self.assertEqual(self.filed(clerk), letters)

    def idle(self):
        """Waits until every clerk has handled its messages and logged them."""
        self.n = getattr(self, "n", 0) + 1
        for clerk in range(3):
            self.tell(f"office/{clerk}", "mark", f"{self.n}")
            self.s.until(lambda: f"mark: {self.n}" in self.filed(clerk))

    def sends(self, exchange, type, **options):
        """The clerks that get such a letter."""
        self.n = getattr(self, "n", 0) + 1
        try:
            self.tell(exchange, type, f"letter {self.n}", **options)
        except VarlinkError as error:
            self.assertEqual(error.name, "NoMatch")
        number = self.n
        self.idle()
        return [clerk for clerk in range(3) if any(line.endswith(f": letter {number}") for line in self.filed(clerk))]

    def letters(self, queue="dead_letters"):
        return [(letter["reason"], letter["type"]) for letter in self.call("ListDeadLetters", filter={"queue": queue})["letters"][::-1]]

    def wait_letters(self, expected, **options):
        self.s.until(lambda: len(self.letters(**options)) >= len(expected))
        self.assertEqual(self.letters(**options), expected)


class Office(OfficeTestCase):
    def test_C1_a_registered_clerk_is_told_by_its_name(self):
        self.assertEqual(self.ask("office/1", "clerk.register", "frida"), "1")
        self.tell("frida", "invoice", "7")
        self.wait_filed(1, ["invoice: 7"])
        self.assertEqual(self.ask("office/1", "clerk.deregister", "frida"), "1")
        self.refused("NoSuchActor", self.tell, "frida", "invoice", "8")

    def test_C1_deregistering_an_unknown_name_is_a_warning_and_no_error(self):
        self.assertEqual(self.ask("office/1", "clerk.deregister", "nobody"), "0")
        self.s.until(lambda: re.search("warning: .*nobody", self.s.log()))
        self.assertEqual(self.ask("office/1", "clerk.question", "still there?"), "still there?")

    def test_C3_junk_goes_to_the_dead_letters_and_what_is_spoilt_to_the_error_queue(self):
        self.tell("office/0", "junk", "buy!")
        self.tell("office/0", "spoilt", "%&!")
        self.tell("office/0", "invoice", "1")
        self.wait_filed(0, ["invoice: 1"])
        self.wait_letters([("unhandled", "junk")])
        self.wait_letters([("error", "spoilt")], queue="errors")
        self.assertRegex(self.s.log(), "error: .*spoilt.*nobody can read this")

    def test_C5_a_clerk_who_is_out_handles_nothing(self):
        self.assertEqual(self.ask("office/0", "clerk.out"), "1")
        self.tell("office/0", "invoice", "1")
        self.wait_letters([("unhandled", "invoice")])

    def test_C5_a_busy_clerk_puts_letters_aside_and_does_them_when_it_is_back(self):
        self.assertEqual(self.ask("office/0", "clerk.busy"), "1")
        for number in range(3):
            self.tell("office/0", "invoice", str(number))
        self.assertEqual(self.ask("office/0", "clerk.back"), "3")
        self.tell("office/0", "invoice", "last")
        self.wait_filed(0, ["invoice: 0", "invoice: 1", "invoice: 2", "invoice: last"])

    def test_C6_reminders_once_and_again_until_they_are_forgotten(self):
        self.ask("office/0", "clerk.remind", "1 0 once")
        self.wait_filed(0, ["reminder: once"])
        id = self.ask("office/1", "clerk.remind", "1 1 again")
        self.s.until(lambda: len(self.filed(1)) >= 3)
        self.assertEqual(self.ask("office/1", "clerk.forget", id), "1")
        self.assertEqual(self.ask("office/1", "clerk.forget", id), "0")
        for _ in range(2):
            self.ask("office/2", "clerk.remind", "3600000 0 never")
        self.assertEqual(self.ask("office/2", "clerk.forget"), "2")

    def test_C6_reminders_survive_the_clerk(self):
        id = self.ask("office/0", "clerk.remind", "3600000 0 later")
        generation = self.s.worker("office/0")["generation"]
        os.kill(self.s.worker("office/0")["pid"], 9)
        self.s.wait_for(lambda: self.s.worker("office/0")["generation"] > generation)
        [timer] = self.call("ListTimers", to="office/0")["timers"]
        self.assertEqual((str(timer["id"]), timer["owner"]), (id, "office/0"))
        self.assertEqual(self.ask("office/0", "clerk.forget", id), "1")

    def test_C7_a_question_is_answered_or_perhaps_not_in_time(self):
        self.assertEqual(self.ask("office/0", "clerk.consult", "office/1 10000 shall we?"), "shall we?")
        self.call("Pause", actor="office/1")
        self.assertEqual(self.ask("office/0", "clerk.consult", "office/1 1 shall we?"), "perhaps")
        self.call("Resume", actor="office/1")
        self.wait_letters([("late_reply", "answer.polite")])

    def test_C7_the_end_of_somebody_is_told(self):
        self.assertEqual(self.ask("office/0", "clerk.watch", "office/2"), "1")
        self.s.call("Resize", target="office", size=2)
        self.s.until(lambda: "office/0 hears of an end: " in self.s.log())

    def test_C9_post_goes_by_type_and_key(self):
        for clerk, subscription in enumerate(["post invoice berlin", "post invoice", "post * *.bonn"]):
            self.ask(f"office/{clerk}", "clerk.subscribe", subscription)
        self.assertEqual(self.sends("post", "invoice.paid", key="berlin"), [0, 1])
        self.assertEqual(self.sends("post", "invoice.paid", key="de.bonn"), [1, 2])
        self.assertEqual(self.sends("post", "invoice.paid"), [1])
        self.assertEqual(self.sends("post", "reminder"), [])
        self.wait_letters([("no_match", "reminder")])
        self.assertEqual(self.ask("office/0", "clerk.unsubscribe", "post invoice bonn"), "0")
        self.assertEqual(self.ask("office/0", "clerk.unsubscribe", "post invoice berlin"), "1")
        self.assertEqual(self.sends("post", "invoice.paid", key="berlin"), [1])

class Log(OfficeTestCase):
    options = ("--log-level", "debug")

    def test_C8_messages_are_logged_as_it_is_switched(self):
        self.tell("office/0", "invoice", "quiet")
        self.idle()
        self.assertNotIn("'invoice'", self.s.log())
        self.call("SetMessageLog", target="office", enqueued=True, dispatched=True, unhandled=True)
        self.tell("office/0", "invoice", "loud")
        self.tell("office/0", "junk", "buy!")
        self.wait_letters([("unhandled", "junk")])
        self.assertEqual(len(re.findall("debug: .*'invoice'", self.s.log())), 2)
        self.assertRegex(self.s.log(), "warning: .*'junk'")
