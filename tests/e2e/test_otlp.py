# SPDX-License-Identifier: MIT
"""troupe-otlp, which exports spans of jobs with a traceparent, and a collector that misbehaves."""
import os
import pwd
import subprocess
import unittest

import otlp
from test_takeover import upgrade
from troupe import ACTOR, QUICK, TROUPE_EXEC, Bell, TestCase, ini, user

TRACE, SPAN = "4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7"
PARENT = f"00-{TRACE}-{SPAN}-01"


class Case(TestCase):
    def exporting(self, *options, collector=None, **more):
        """A supervisor, a collector and troupe-otlp between them, which watches."""
        s = self.supervisor({"actor": ini(ACTOR, Restart=QUICK, Jobs={"BackoffMinSec": "1ms"}),
                             "sh": ini(f"{TROUPE_EXEC} -- /bin/sh -c {{}}", Restart=QUICK, Jobs={"BackoffMinSec": "1ms"})}).start()
        s.collector = collector or otlp.Collector(self)
        s.otlp = otlp.Otlp(self, s.socket_path, more.pop("endpoint", s.collector.url), *options, **more)
        s.until(lambda: "watching jobs" in s.otlp.log())
        return s

    def check_requests(self, s):
        for path, headers, request in s.collector.requests:
            otlp.check("Request", request)
            self.assertEqual((path, headers["Content-Type"]), ("/v1/traces", "application/json"))


class Exported(Case):
    def test_X4_a_job_is_a_creation_a_wait_and_an_attempt(self):
        s = self.exporting()
        s.do("actor", "echo")
        job = s.do("actor", "echo hello", id="mine", traceparent=PARENT)
        create, wait, attempt = spans = s.collector.get(3)
        for span in spans:
            self.assertEqual((span.trace, span.parent, span.links, span.status), (TRACE, SPAN, [], {}))
            self.assertEqual((span.attributes["messaging.system"], span.attributes["messaging.destination.name"],
                              span.attributes["messaging.message.id"]), ("troupe", "actor", "mine"))
            self.assertEqual(span.raw["flags"], 0x301)
            self.assertLessEqual(span.start, span.end)
        self.assertEqual([(span.name, span.kind) for span in spans], [("create actor", 4), ("wait actor", 1), ("process actor", 5)])
        self.assertEqual([span.attributes.get("messaging.operation.type") for span in spans], ["create", None, "process"])
        self.assertEqual(len({span.id for span in spans}), 3)
        self.assertEqual(create.start // 1000, job["created_at"])
        self.assertEqual((wait.start, wait.end), (create.end, attempt.start))
        self.assertEqual((attempt.start // 1000, attempt.attributes["troupe.worker"], attempt.attributes["troupe.attempt.outcome"],
                          attempt.attributes["troupe.job.attempt"]), (job["started_at"], "actor/0", "succeeded", 1))
        self.check_requests(s)
        self.assertEqual(s.collector.dropped(), 0)

    def test_X4_the_attempt_is_the_span_that_the_worker_has(self):
        s = self.exporting()
        seen = s.do("sh", 'printf %s "$TRACEPARENT"', traceparent=PARENT)["result"]["data"]
        self.assertEqual(seen.split("-")[1:3], [TRACE, s.collector.get(3)[2].id])

    def test_X4_a_retry_is_another_trace_that_links_to_the_first_attempt(self):
        s = self.exporting()
        s.do("actor", "before 2 crash kill\nbefore 3 retry 1 secret\nreject 4 no", traceparent=PARENT, max_retries=2)
        create, wait, first, again, second, last, third = spans = s.collector.get(7)
        self.assertEqual([span.name.split()[0] for span in spans], ["create", "wait", "process", "wait", "process", "wait", "process"])
        self.assertEqual({span.trace for span in (create, wait, first, again, last)}, {TRACE})
        self.assertEqual({span.parent for span in (create, wait, first, again, last)}, {SPAN})
        self.assertEqual(len({TRACE, second.trace, third.trace}), 3)
        for span in second, third:
            self.assertEqual((span.parent, span.links, span.raw["flags"]), (None, [(TRACE, first.id)], 0x101))
        self.assertEqual([(span.status, span.attributes["error.type"], span.attributes["troupe.attempt.outcome"])
                          for span in (first, second, third)],
                         [({"code": 2}, "signal", "signal"), ({"code": 2}, "retry", "retry"), ({"code": 2}, "rejected", "rejected")])
        self.assertEqual(first.attributes["troupe.death.signal"], "SIGKILL")
        self.assertNotIn("troupe.death.signal", second.attributes)
        self.assertEqual((again.start, again.end), (first.end, second.start))
        self.check_requests(s)

    def test_X4_dead_and_cancelled_jobs_say_why(self):
        s = self.exporting()
        s.do("actor", "exit 7", traceparent=PARENT, max_retries=0)
        attempt = s.collector.get(3)[2]
        self.assertEqual((attempt.status, attempt.attributes["error.type"], attempt.attributes["troupe.attempt.outcome"]),
                         ({"code": 2}, "exit", "dead"))
        self.assertEqual(attempt.attributes["process.exit.code"], 7)
        s.call("Cancel", id=s.create("actor", "echo", traceparent=PARENT, delay_usec=3600 * 10**6))
        _, wait = s.collector.get(2)
        self.assertEqual((wait.name, wait.status, wait.attributes["error.type"]), ("wait actor", {"code": 2}, "requested"))

    def test_a_flood_of_jobs_of_one_group_displaces_none_of_others(self):
        s = self.exporting()
        bell = Bell(s, "bell")
        s.create("actor", f"wait {bell.path}", id="mine", traceparent=PARENT)
        s.call("Pause", target="sh")
        with s.connect() as connection:
            for _ in range(10000):
                connection.call("Create", group="sh", options={"traceparent": PARENT})
        bell.ring()
        while s.collector.get(1)[0].name != "process actor":
            pass

    def test_X4_only_sampled_traces_are_exported(self):
        s = self.exporting()
        s.do("actor", "echo", traceparent=PARENT[:-2] + "00")
        s.do("actor", "echo", traceparent=PARENT[:-2] + "02", id="unsampled")
        s.do("actor", "echo", traceparent=PARENT[:-2] + "03", id="sampled")
        self.assertEqual({span.attributes["messaging.message.id"] for span in s.collector.get(3)}, {"sampled"})

    def test_X4_texts_are_exported_only_with_contents(self):
        for options in [], ["--contents"]:
            s = self.exporting(*options)
            s.do("sh", "echo secret >&2; exit 3", traceparent=PARENT, max_retries=0)
            s.collector.get(3)
            self.assertEqual("secret" in str(s.collector.requests), bool(options))
            self.check_requests(s)
            s.otlp.stop()

    def test_X4_an_upgrade_and_a_crash_of_the_supervisor_lose_no_job(self):
        s = self.exporting()
        for happens in upgrade, lambda s: s.crash():
            id, bell = s.busy("actor", traceparent=PARENT)
            s.until(lambda id=id: s.job(id).get("started_at"))
            s.call("GetInfo")  # in a later turn than that of the event, which has been sent since
            told = s.otlp.log().count("watching jobs")
            happens(s)
            s.until(lambda told=told: s.otlp.log().count("watching jobs") > told)
            bell.ring()
            s.wait_job(id)
            attempt = s.collector.get(3)[2]
            self.assertEqual((attempt.name, attempt.trace, attempt.attributes["troupe.attempt.outcome"]),
                             ("process actor", TRACE, "succeeded"))
        self.assertEqual(s.collector.dropped(), 0)

    def test_X4_what_is_complete_is_exported_at_the_end(self):
        s = self.exporting()
        for n in range(20):
            s.do("actor", "echo", traceparent=PARENT)
        s.otlp.stop()
        self.assertEqual(len(s.collector.get(60)), 60)

    @unittest.skipUnless(os.getuid() == 0, "needs another user")
    def test_X4_a_user_without_the_right_is_told_what_it_needs(self):
        s = self.supervisor({"actor": ini(ACTOR)}, conf="[Supervisor]\nReadGroup=www-data\n").start()
        uid = pwd.getpwnam("nobody").pw_uid
        program = otlp.Otlp(self, s.socket_path, "http://127.0.0.1:9", user=uid, group=uid, extra_groups=[])
        s.until(lambda: "a member of the group www-data (ReadGroup=)" in program.log())
        otlp.Otlp(self, s.socket_path, "http://127.0.0.1:9", user=uid, group="www-data", extra_groups=[])
        s.until(lambda: "watching jobs" in program.log())


class Misbehaving(Case):
    def export_through(self, *answers):
        """The spans of three jobs, each of which is exported once, whatever the collector answers before."""
        s = self.exporting()
        s.collector.answers += answers
        for n in range(3):
            s.do("actor", "echo", id=f"job{n}", traceparent=PARENT)
        spans = s.collector.get(9)
        self.assertEqual(len({span.id for span in spans}), 9)
        self.assertTrue(s.collector.spans.empty())
        self.assertEqual(s.collector.dropped(), 0)
        self.check_requests(s)
        s.until(lambda: "again" in s.otlp.log().split("cannot export")[-1])
        self.assertEqual(s.otlp.log().count("cannot export"), 1)
        return s

    def test_X4_spans_wait_while_the_collector_is_busy_or_away(self):
        s = self.export_through((429, {"Retry-After": "1"}, b"slow down"), (503, {}, b""), None, (502, {}, b""), (504, {}, b"x" * 100000))
        self.assertIn(f"cannot export to {s.collector.url}: HTTP status 429; trying again", s.otlp.log())

    def test_X4_spans_wait_while_no_collector_listens(self):
        first = otlp.Collector(self)
        s = self.exporting(collector=first)
        first.close()
        s.do("actor", "echo", traceparent=PARENT)
        s.until(lambda: "cannot export" in s.otlp.log())
        second = otlp.Collector(self, first.port)
        self.assertEqual([span.name for span in second.get(3)], ["create actor", "wait actor", "process actor"])

    def test_X4_a_pause_that_the_collector_asks_for_is_kept(self):
        s = self.exporting()
        s.collector.answers += [(503, {"Retry-After": "3600"}, b"")] * 2
        s.do("actor", "echo", traceparent=PARENT)
        s.collector.next_request()
        s.until(lambda: "trying again" in s.otlp.log())
        s.otlp.stop()  # which makes a last attempt
        self.assertIn("3 spans are dropped, 3 since the start", s.otlp.log())
        self.assertEqual(len(s.collector.requests), 2)

    def test_X4_spans_that_the_collector_refuses_are_dropped_and_counted(self):
        s = self.exporting()
        s.collector.answers += [(400, {}, b"bad"), (200, {}, b'{"partialSuccess":{"rejectedSpans":"2","errorMessage":"no"}}')]
        for n in range(3):
            s.do("actor", "echo", traceparent=PARENT)
            s.collector.next_request()
        s.until(lambda: s.collector.dropped() == 5)
        self.assertIn("refuses 3 spans: HTTP status 400", s.otlp.log())
        self.assertIn("3 spans are dropped, 3 since the start", s.otlp.log())

    def test_X4_memory_is_bounded_and_what_has_no_room_is_counted(self):
        s = self.exporting()
        s.collector.answers += [(503, {"Retry-After": "5"}, b"")]
        s.do("actor", "echo", traceparent=PARENT)
        s.collector.next_request()
        s.ctl("map", "actor", "--traceparent", PARENT, input="echo\n" * 3000, check=True)
        spans = s.collector.get(8192)
        s.until(lambda: s.collector.spans.empty() and "spans are dropped" in s.otlp.log())
        s.do("actor", "echo", traceparent=PARENT)
        spans += s.collector.get(3)
        self.assertEqual(len(spans) + s.collector.dropped(), 3 * 3002)
        self.check_requests(s)

    def test_X4_headers_are_sent_and_no_secret_is_logged(self):
        collector = otlp.Collector(self)
        s = self.exporting(collector=collector, endpoint=f"http://me:hidden1@127.0.0.1:{collector.port}/base/",
                           headers="authorization=Bearer%20hidden2, X-Other = a%3Db")
        collector.answers += [(401, {}, b"hidden3"), (503, {}, b"hidden3")]
        for n in range(2):
            s.do("actor", "echo", traceparent=PARENT)
            collector.next_request()
        collector.get(3)
        for path, headers, _ in collector.requests:
            self.assertEqual((path, headers["authorization"], headers["X-Other"]), ("/base/v1/traces", "Bearer hidden2", "a=b"))
        self.assertNotIn("hidden", s.otlp.log())
        self.assertIn(f"exporting to http://127.0.0.1:{collector.port}\n", s.otlp.log())

    def test_X4_a_redirection_is_not_followed(self):
        other = otlp.Collector(self)
        s = self.exporting(headers="authorization=secret")
        s.collector.answers += [(307, {"Location": other.url}, b"")]
        s.do("actor", "echo", traceparent=PARENT)
        s.until(lambda: "HTTP status 307" in s.otlp.log())
        self.assertEqual(other.requests, [])

    def test_X4_a_wrong_environment_is_refused_without_its_values(self):
        if not os.path.exists(otlp.TROUPE_OTLP):
            self.skipTest("libcurl is missing: install libcurl4-openssl-dev")
        for name, values in {"ENDPOINT": ["file:///hidden", "http://", "hidden host", "ftp://hidden"],
                             "HEADERS": ["hidden", "a b=hidden", "=hidden", "x=hidden%0d%0aY: 1", "x=hidden%00", "x="],
                             "TIMEOUT": ["0", "hidden", "-1", "600001", "1s"]}.items():
            for value in values:
                process = subprocess.run([otlp.TROUPE_OTLP], env={**os.environ, "OTEL_EXPORTER_OTLP_" + name: value}, timeout=60,
                                         capture_output=True, text=True, check=False)
                self.assertEqual(process.returncode, 1, value)
                self.assertRegex(process.stderr, f"^troupe-otlp: error: OTEL_EXPORTER_OTLP_{name}: must be ")
                self.assertNotIn("hidden", process.stderr)
