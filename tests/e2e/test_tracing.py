# SPDX-License-Identifier: MIT
"""The option traceparent, and the spans of attempts that follow from it."""
import os
import signal

from test_durable import Case
from test_takeover import upgrade
from troupe import QUICK, TROUPE_EXEC, Bell, Varlink, VarlinkError, ini

TRACE, SPAN = "4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7"
PARENT = f"00-{TRACE}-{SPAN}-01"
BAD = ["", "00", PARENT[:-1], PARENT + "0", PARENT.upper(), "01" + PARENT[2:], PARENT.replace("-", "_"), PARENT + "-x",
       f"00-{'0' * 32}-{SPAN}-01", f"00-{TRACE}-{'0' * 16}-01", f"00-{TRACE}-{SPAN}-0g", PARENT[:-1] + "é"]
SHOW = 'printf %s "${TRACEPARENT-none}"'
#: Fails until the last of three attempts, each of which leaves its span in a file.
THRICE = 'echo "$TRACEPARENT" >>{file}; [ "$TROUPE_JOB_ATTEMPT" = 3 ] && {show}'


def environment(traceparent):
    return {**os.environ, "TRACEPARENT": traceparent}


class Tracing(Case):
    def both(self, **jobs):
        def shell(**more):
            return ini(f"{TROUPE_EXEC} -- /bin/sh -c {{}}", Restart=QUICK, Jobs={"BackoffMinSec": "1ms", **jobs, **more})
        return self.durable({"plain": shell(), "kept": shell(Durable="yes")}, **{"MaxRetries": 2, **jobs}).start()

    @staticmethod
    def result(s, id):
        return s.wait_job(id)["result"]["data"]

    def assert_child(self, span):
        self.assertRegex(span, f"^00-{TRACE}-[0-9a-f]{{16}}-01$")
        self.assertNotEqual(span, PARENT)

    def assert_other_trace(self, span):
        self.assertRegex(span, "^00-[0-9a-f]{32}-[0-9a-f]{16}-01$")
        self.assertNotIn(TRACE, span)

    def test_X4_the_first_attempt_is_a_child_and_each_retry_a_trace_of_its_own(self):
        s = self.both()
        for group in "plain", "kept":
            path = s.path(f"spans-{group}")
            id = s.create(group, THRICE.format(file=path, show=SHOW), traceparent=PARENT)
            last = self.result(s, id)
            self.assertEqual(s.job(id)["traceparent"], PARENT)
            with open(path, encoding="utf8") as file:
                spans = file.read().split()
            self.assertEqual(spans[2], last)
            self.assert_child(spans[0])
            self.assert_other_trace(spans[1])
            self.assert_other_trace(spans[2])
            self.assertEqual(len({span.split("-")[1] for span in spans}), 3)
            self.assertEqual(self.result(s, s.create(group, SHOW)), "none")  # not that of the job before

    def test_X4_two_jobs_have_different_spans(self):
        s = self.both()
        spans = [self.result(s, s.create("plain", SHOW, traceparent=PARENT)) for _ in range(2)]
        spans += [s.do("plain", SHOW, id="same", traceparent=PARENT)["result"]["data"] for _ in range(2)]
        self.assertEqual(len(set(spans)), 4)
        for span in spans:
            self.assert_child(span)

    def test_X4_what_is_not_a_traceparent_is_refused(self):
        s = self.both()
        for bad in BAD:
            with self.assertRaises(VarlinkError) as raised:
                s.create("plain", SHOW, traceparent=bad)
            self.assertEqual((raised.exception.name, raised.exception.parameters["option"]), ("BadOption", "traceparent"), bad)
            for verb in "create", "do":
                refused = s.ctl(verb, "plain", "-d", SHOW, "--traceparent", bad)
                self.assertIn("W3C Trace Context: 32, 16 and 2 digits", refused.stderr, bad)
                self.assertNotEqual(refused.returncode, 0)

    def test_X4_troupectl_takes_the_option_or_the_environment(self):
        s = self.both()
        self.assert_child(s.ctl("do", "plain", "-d", SHOW, "--traceparent", PARENT, check=True).stdout)
        self.assert_child(s.ctl("do", "plain", "-d", SHOW, env=environment(PARENT), check=True).stdout)
        self.assert_child(s.ctl("map", "plain", input=SHOW + "\n", env=environment(PARENT), check=True).stdout.strip())
        other = "00-" + "1" * 32 + "-" + "1" * 16 + "-00"
        id = s.ctl("create", "plain", "-d", SHOW, "--traceparent", PARENT, env=environment(other), check=True).stdout.strip()
        self.assert_child(self.result(s, id))
        self.assertIn(f"Trace: {PARENT}\n", s.ctl("job", id, check=True).stdout)
        for ignored in ("cc" + PARENT[2:], "nonsense", ""):
            self.assertEqual(s.ctl("do", "plain", "-d", SHOW, env=environment(ignored), check=True).stdout, "none")
            id = s.ctl("create", "plain", "-d", SHOW, env=environment(ignored), check=True).stdout.strip()
            self.assertNotIn("traceparent", s.job(id))

    def test_X4_it_outlives_upgrades_crashes_and_restarts(self):
        s = self.both(MaxRetries=9)
        for group, disasters in ("plain", [upgrade]), ("kept", [upgrade, lambda s: s.crash(), self.restart]):
            for n, happens in enumerate(disasters):
                waiting = s.create(group, SHOW, traceparent=PARENT, delay_usec=3600 * 10**6)
                bell = Bell(s, f"{group}-{n}")
                held = s.create(group, f"[ \"$TROUPE_JOB_ATTEMPT\" != 1 ] && {SHOW} && exit; echo $$ >{bell.path}; sleep 1000",
                                traceparent=PARENT)
                bell.wait()
                happens(s)
                s.until_restored()
                s.call("io.troupe.Jobs.RunNow", id=waiting)
                if s.job(held)["state"] == "running":
                    os.kill(s.worker(f"{group}/0")["pid"], signal.SIGKILL)
                self.assert_other_trace(self.result(s, held))
                # After a power cut, nobody knows whether this is the first attempt.
                (self.assert_other_trace if happens == self.restart else self.assert_child)(self.result(s, waiting))
                self.assertEqual(s.job(waiting)["traceparent"], PARENT)

    def test_X4_a_retried_dead_letter_keeps_it(self):
        s = self.both(MaxRetries=0)
        for group, disasters in ("plain", [lambda s: None, upgrade]), ("kept", [lambda s: None, upgrade, lambda s: s.crash(), self.restart]):
            for n, happens in enumerate(disasters):
                flag = s.path(f"flag-{group}-{n}")
                id = s.create(group, f"[ -e {flag} ] && {SHOW}", traceparent=PARENT)
                s.until(lambda id=id: s.job(id)["state"] == "dead")
                self.assertEqual(s.job(id)["traceparent"], PARENT)
                happens(s)
                s.until_restored()
                s.until(lambda id=id: s.job(id).get("dead_letter"))
                with open(flag, "w", encoding="utf8"):
                    pass
                new = s.call("io.troupe.Actors.Requeue", id=s.job(id)["dead_letter"])["job"]
                self.assert_child(self.result(s, new))

    def test_X4_events_name_the_spans_and_may_leave_out_other_jobs(self):
        s = self.both(MaxRetries=1)
        with Varlink(s.socket_path) as watch:
            watch.send("Watch", {"traced": True}, more=True)
            s.call("GetInfo")
            s.do("plain", SHOW)
            id = s.create("plain", "exit 1", traceparent=PARENT)
            s.until(lambda: s.job(id)["state"] == "dead")
            events = []
            while not events or events[-1]["type"] != "job.ended":
                events += [event for event in watch.reply()[0]["events"] if event["type"] != "job.dead" and event.get("job")]
        self.assertEqual({event["job"] for event in events}, {id})
        self.assertEqual([(event["type"], event.get("attempt", 0), event.get("cause")) for event in events],
                         [("job.accepted", 0, None), ("job.started", 1, None), ("job.retried", 1, "retry"), ("job.started", 2, None),
                          ("job.ended", 2, "retry")])
        self.assertEqual({event["traceparent"] for event in events}, {PARENT})
        self.assertNotIn("span", events[0])
        self.assertEqual(events[1]["span"], events[2]["span"])
        self.assert_child(events[1]["span"])
        self.assertEqual(events[3]["span"], events[4]["span"])
        self.assert_other_trace(events[4]["span"])
