# SPDX-License-Identifier: MIT
"""troupe-web: what it tells, whom it refuses, and what bounds it has."""
import contextlib
import http.client
import json
import os
import re
import select
import signal
import socket
import struct
import subprocess
import tempfile
import threading
import time
import unittest

from troupe import ACTOR, LIMIT, TOP, Bell, Supervisor
from web_client import TOKEN, TROUPE_WEB, Web

GROUP = f"[Group]\nExecStart={ACTOR}\n[Pool]\nSize=2\n"


class WebTest(unittest.TestCase):
    def supervisor(self, groups=None, **options):
        return Supervisor(self, groups or {"work": GROUP}, **options).start()

    def begin(self, groups=None):
        supervisor = self.supervisor(groups)
        return supervisor, Web(self, supervisor.socket_path)

    def token_file(self, mode=0o600, text=TOKEN + "\n"):
        fd, path = tempfile.mkstemp(prefix="troupe-web-token-")
        self.addCleanup(os.unlink, path)
        os.write(fd, text.encode())
        os.fchmod(fd, mode)
        os.close(fd)
        return path

    def changing(self, supervisor, *options):
        return Web(self, supervisor.socket_path, "--allow-changes", "--token-file", self.token_file(), *options)

    def fails(self, status, *options, stderr):
        done = subprocess.run([TROUPE_WEB, "--socket", "/nowhere", *options], capture_output=True, timeout=LIMIT, check=False)
        self.assertEqual(done.returncode, status, done.stderr)
        self.assertIn(stderr, done.stderr.decode())


class Telling(WebTest):
    def test_M5_status_is_that_of_the_socket_with_counts_instead_of_workers(self):
        supervisor, web = self.begin({"work": GROUP, "cells": GROUP + "Cells=by-key\n"})
        supervisor.do("cells", "x", key="a")
        supervisor.do("cells", "x", key="b")
        cells, work = web.get("/api/status")["groups"]
        expected = supervisor.group("work")
        self.assertEqual(work["workers_by_state"], {"idle": 2})
        self.assertEqual({k: v for k, v in work.items() if not k.startswith("workers")},
                         {k: v for k, v in expected.items() if k != "workers"})
        self.assertNotIn("cells", cells)
        self.assertEqual(cells["cells_total"], 2)

    def test_M5_a_page_of_workers_and_of_cells(self):
        supervisor, web = self.begin({"work": GROUP.replace("2", "5"), "cells": GROUP + "Cells=by-key\n"})
        for key in "abc":
            supervisor.do("cells", "x", key=key)
        [work] = web.get("/api/status?target=work&offset=3&limit=10")["groups"]
        self.assertEqual([w["name"] for w in work["workers"]], ["work/3", "work/4"])
        self.assertEqual(work["workers_total"], 5)
        [cells] = web.get("/api/status?target=cells&offset=1&limit=1")["groups"]
        self.assertEqual([c["key"] for c in cells["cells"]], ["b"])
        self.assertEqual(cells["cells"][0]["workers_total"], 2)
        [cell] = web.get("/api/status?target=cells/c&limit=10")["groups"]
        self.assertEqual([w["name"] for w in cell["cells"][0]["workers"]], ["cells/c/0", "cells/c/1"])

    def test_M5_a_change_is_seen_at_once_by_the_next_question(self):
        supervisor, web = self.begin()
        self.assertEqual(web.get("/api/status")["groups"][0]["state"], "running")
        supervisor.call("Pause", target="work")
        supervisor.until(lambda: web.get("/api/status")["groups"][0]["state"] == "paused")

    def test_M5_jobs_deaths_and_dead_letters(self):
        supervisor, web = self.begin({"work": GROUP + "[Jobs]\nMaxRetries=0\n"})
        job = supervisor.create("work", "crash", id="the-job")
        self.assertEqual(supervisor.wait_job(job)["state"], "dead")
        self.assertEqual(web.get(f"/api/job?id={job}")["job"]["state"], "dead")
        self.assertEqual([j["id"] for j in web.get("/api/jobs?ended=true&state=dead")["jobs"]], [job])
        [death] = web.get("/api/deaths")["deaths"]
        self.assertEqual(death["job"], job)
        [letter] = web.get("/api/dead-letters?queue=dead_letters&reason=job")["letters"]
        self.assertEqual(letter["job"], job)
        self.assertEqual(web.get(f"/api/dead-letter?id={letter['id']}")["letter"]["job"], job)
        self.assertIn("job.dead", [e["type"] for e in web.get("/api/past-events")["events"]])
        self.assertEqual(web.status("/api/job?id=nobody"), 404)
        self.assertEqual(web.status("/api/job"), 400)

    def test_M5_events_come_as_they_happen(self):
        supervisor = self.supervisor()
        events = Web(self, supervisor.socket_path).events()
        self.assertEqual(events.next()[0], "here")
        os.kill(supervisor.worker("work/0")["pid"], signal.SIGKILL)
        died = events.wait("event", type="worker.died", worker="work/0")
        self.assertEqual(died["death"]["signal"], "SIGKILL")
        self.assertNotIn("stderr", died["death"])

    def test_X7_events_of_single_jobs_come_only_over_their_own_stream(self):
        supervisor, web = self.begin()
        events, jobs = web.events(), web.events("/api/job-events")
        self.assertEqual([events.next()[0], jobs.next()[0]], ["here", "here"])
        supervisor.do("work", "echo", id="good")
        self.assertEqual(jobs.wait("event", type="job.started", job="good")["worker"][:5], "work/")
        self.assertEqual(jobs.wait("event", type="job.ended", job="good")["job_state"], "succeeded")
        supervisor.call("Pause", target="work")
        jobs.wait("event", type="group.paused")
        seen = events.next()[1]
        while seen["type"] != "group.paused":
            self.assertNotEqual(seen.get("job"), "good")
            seen = events.next()[1]
        jobs.close()
        supervisor.until(lambda: supervisor.call("GetInfo")["clients"] == 2)

    @unittest.skipIf(os.geteuid() != 0, "needs root to be another user")
    def test_X7_events_of_single_jobs_are_only_for_those_who_may_read_contents(self):
        supervisor, _ = self.begin()
        web = Web(self, supervisor.socket_path, user=65534, group=65534, extra_groups=[])
        for _ in range(2):
            stream = web.events("/api/job-events")
            self.assertEqual([stream.next()[0], stream.next()[0]], ["here", "refused"])

    def test_X7_streams_of_events_of_jobs_are_bounded_and_the_oldest_makes_room(self):
        _, web = self.begin()
        streams = [web.events("/api/job-events") for _ in range(9)]
        self.assertEqual({stream.next()[0] for stream in streams[1:]}, {"here"})
        with self.assertRaises((EOFError, OSError, http.client.HTTPException)):
            while streams[0].next():
                pass

    def test_Q13_what_a_job_emits_comes_as_it_happens_and_continues_after_the_last_id(self):
        supervisor, web = self.begin()
        bell = Bell(supervisor, "go")
        job = supervisor.create("work", f"emit one\nemit two\nwait {bell.path}\nemit three\necho done")
        stream = web.events(f"/api/job-stream?id={job}")
        items = [stream.wait("item"), stream.wait("item")]
        self.assertEqual([item["data"]["data"] for item in items], ["one", "two"])
        self.assertEqual(stream.id, str(items[1]["at"]))
        stream.close()
        supervisor.until(lambda: supervisor.call("GetInfo")["clients"] == 1)
        stream = web.events(f"/api/job-stream?id={job}", Last_Event_ID=str(items[0]["at"]))
        self.assertEqual(stream.wait("item"), items[1])
        bell.ring()
        self.assertEqual(stream.wait("item")["data"]["data"], "three")
        self.assertEqual(stream.wait("end")["state"], "succeeded")
        self.assertRaises(EOFError, stream.next)
        again = web.events(f"/api/job-stream?id={job}&after={stream.id}")
        self.assertEqual([again.next()[0], again.next()[0]], ["here", "end"])
        for path, status in ("id=nobody", 404), ("", 400), (f"id={job}&after=x", 400):
            self.assertEqual(web.status("/api/job-stream?" + path), status)
        self.assertEqual(web.status(f"/api/job-stream?id={job}", Last_Event_ID="x"), 400)
        self.assertEqual(web.status(f"/api/job-stream?id={job}", "HEAD"), 200)

    @unittest.skipIf(os.geteuid() != 0, "needs root to be another user")
    def test_Q13_what_a_job_emits_is_only_for_those_who_may_read_it(self):
        supervisor, _ = self.begin()
        job = supervisor.create("work", "emit secret", delay_usec=3600 * 10**6)
        web = Web(self, supervisor.socket_path, user=65534, group=65534, extra_groups=[])
        self.assertEqual(web.status(f"/api/job?id={job}"), 200)
        self.assertEqual(web.status(f"/api/job-stream?id={job}"), 403)

    def test_Q13_a_bounded_number_of_streams_of_jobs_is_served_beside_everything_else(self):
        supervisor, web = self.begin()
        job = supervisor.create("work", "emit x", delay_usec=3600 * 10**6)
        path = f"/api/job-stream?id={job}"
        streams = [web.events(path) for _ in range(16)]
        self.assertEqual({stream.next()[0] for stream in streams}, {"here"})
        latest = web.events(path)
        self.assertEqual((latest.status, latest.next()[0]), (200, "here"))
        self.assert_ends(streams.pop(0))
        self.assertEqual(web.status("/api/status"), 200)
        supervisor.until(lambda: supervisor.call("GetInfo")["clients"] == 17)
        supervisor.stop()
        for stream in (*streams, latest):
            self.assert_ends(stream)
        self.assertEqual(web.status(path), 503)

    def assert_ends(self, stream):
        with self.assertRaises((EOFError, OSError, http.client.HTTPException)):
            while stream.next():
                pass

    def test_M5_the_files_of_the_page(self):
        web = Web(self, "/nowhere")
        for path, kind in (("/", "text/html"), ("/style.css", "text/css"), ("/page.js", "text/javascript")):
            status, headers, body = web.ask(path)
            self.assertEqual(status, 200)
            self.assertIn(kind, headers["Content-Type"])
            self.assertIn("default-src 'none'", headers["Content-Security-Policy"])
            self.assertNotIn("unsafe", headers["Content-Security-Policy"])
            status, head, nothing = web.ask(path, "HEAD")
            self.assertEqual((status, head["Content-Length"], nothing), (200, str(len(body)), b""))

    def test_M5_metrics_are_those_of_troupectl(self):
        supervisor, web = self.begin()
        supervisor.do("work", "x")
        _, headers, body = web.ask("/metrics")
        self.assertIn("text/plain; version=0.0.4", headers["Content-Type"])
        self.assertIn('troupe_jobs_total{group="work",state="succeeded"} 1\n', body.decode())

    def test_M5_nobody_asks_the_supervisor_while_nobody_looks(self):
        supervisor, web = self.begin()
        web.get("/api/status")
        supervisor.until(lambda: supervisor.call("GetInfo")["clients"] == 1)
        events = web.events()
        self.assertEqual(events.next()[0], "here")
        self.assertEqual(supervisor.call("GetInfo")["clients"], 2)
        events.close()
        supervisor.until(lambda: supervisor.call("GetInfo")["clients"] == 1)

    def test_M5_the_last_stream_ends_the_connection_to_the_supervisor(self):
        supervisor, web = self.begin()
        for _ in range(20):
            stream = web.raw(f"GET /api/events HTTP/1.1\r\nHost: {web.name}\r\n\r\n".encode())
            said = b""
            while b"event: here" not in said:
                said += stream.recv(1 << 16)
            # Nothing else is under way, which could wake it, and the end comes in one piece: a reset.
            supervisor.until(lambda: supervisor.status_field("State", web.process.pid) == "S")
            stream.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            stream.close()
            supervisor.until(lambda: supervisor.call("GetInfo")["clients"] == 1)


class Away(WebTest):
    def test_M5_a_supervisor_that_is_away_is_said_and_found_again(self):
        supervisor, web = self.begin()
        events = web.events()
        self.assertEqual(events.next()[0], "here")
        supervisor.stop()
        with self.assertRaises((EOFError, OSError, http.client.HTTPException)):
            while events.next():
                pass
        self.assertEqual(web.events().status, 503)
        status, _, body = web.ask("/api/info")
        self.assertEqual(status, 503)
        self.assertIn("is trouped running?", json.loads(body)["reason"])
        self.assertEqual(web.status("/"), 200)
        supervisor.start()
        web.events().wait("here")
        supervisor.until(lambda: web.status("/api/info") == 200)

    def test_M5_a_supervisor_that_hangs_holds_nobody_up(self):
        supervisor, web = self.begin()
        with supervisor.stopped():
            waiting = web.raw(f"GET /api/info HTTP/1.1\r\nHost: {web.name}\r\n\r\n".encode())
            self.assertEqual(web.status("/"), 200)
            self.assertIn(b"503", waiting.recv(1 << 16).partition(b"\r\n")[0])
        supervisor.until(lambda: web.status("/api/info") == 200)


class Refusing(WebTest):
    def test_M5_paths_and_methods_that_are_not_there_are_refused(self):
        web = Web(self, "/nowhere")
        for path in ("/nothing", "/api", "/api/", "/page/page.js", "/../etc/passwd", "/%2e%2e/%2e%2e/etc/passwd", "//", "/index.html",
                     "/style.css/", "/api/info%0a", "/api/Info"):
            self.assertEqual(web.status(path), 404, path)
        for method in ("POST", "PUT", "DELETE", "OPTIONS", "TRACE", "PATCH"):
            status, headers, _ = web.ask("/", method)
            self.assertEqual((status, headers["Allow"]), (405, "GET, HEAD"), method)
        self.assertEqual(web.ask("/api/purge")[1]["Allow"], "POST")
        self.assertEqual(web.status("/" + "x" * 600), 414)

    def test_M5_changes_need_permission_a_token_and_a_page_of_ours(self):
        supervisor = self.supervisor()
        pause = {"target": "work"}
        self.assertEqual(Web(self, supervisor.socket_path).post("/api/pause", pause)[0], 403)
        only_token = Web(self, supervisor.socket_path, "--token-file", self.token_file())
        self.assertEqual(only_token.post("/api/pause", pause)[0], 403)
        web = self.changing(supervisor)
        for token in (None, "", "wrong", TOKEN[:-1], TOKEN + "x", TOKEN.upper()):
            self.assertEqual(web.post("/api/pause", pause, token=token)[0], 401, token)
        self.assertEqual(web.post(f"/api/pause?token={TOKEN}", pause, token=None)[0], 401)
        self.assertEqual(web.post("/api/pause", pause, Content_Type="text/plain")[0], 415)
        self.assertEqual(web.post("/api/pause", pause, Content_Type="application/x-www-form-urlencoded")[0], 415)
        self.assertEqual(web.post("/api/pause", pause, Origin="https://evil.example")[0], 403)
        self.assertEqual(web.post("/api/pause", pause, Sec_Fetch_Site="cross-site")[0], 403)
        self.assertEqual(web.post("/api/pause", {"target": "work", "force": True})[0], 400)
        self.assertEqual(web.post("/api/pause", [1])[0], 400)
        self.assertEqual(supervisor.group("work")["state"], "running")
        self.assertEqual(web.post("/api/pause", pause, Origin=f"http://{web.name}"), (200, {}))
        self.assertEqual(supervisor.group("work")["state"], "paused")

    def test_M5_dead_letters_are_sent_again_and_purged(self):
        supervisor = self.supervisor({"work": GROUP + "[Jobs]\nMaxRetries=0\n"})
        web = self.changing(supervisor)
        for name in "abc":
            supervisor.wait_job(supervisor.create("work", "crash", id=name))
        first, second, third = web.get("/api/dead-letters")["letters"]
        status, answer = web.post("/api/send-again", {"id": first["id"]})
        self.assertEqual((status, answer["requeued"]), (200, 1))
        self.assertEqual(web.post("/api/purge", {"id": second["id"]}), (200, {"purged": 1}))
        self.assertEqual(web.post("/api/purge", {"id": second["id"]})[0], 404)
        self.assertEqual(web.post("/api/purge", {"job": third["job"]}), (200, {"purged": 1}))
        self.assertEqual(web.post("/api/purge", {})[0], 400)

    def test_M5_with_require_token_only_the_page_itself_is_for_everybody(self):
        web = Web(self, self.supervisor().socket_path, "--require-token", "--token-file", self.token_file())
        self.assertEqual(web.status("/"), 200)
        for path in ("/api/info", "/api/past-events", "/api/session", "/metrics"):
            self.assertEqual(web.status(path), 401, path)
        self.assertEqual(web.status("/api/info", Authorization=f"Bearer {TOKEN}"), 200)

    def test_M5_bad_options_end_it_with_a_reason(self):
        self.fails(2, "--allow-changes", stderr="needs --token-file")
        self.fails(2, "--require-token", stderr="needs --token-file")
        self.fails(2, "--host", "a b", stderr="must be a name")
        self.fails(2, "operand", stderr="no operands")
        self.fails(1, "--listen", "0.0.0.0:0", stderr="other machines can reach")
        self.fails(1, "--listen", "[::]:0", stderr="other machines can reach")
        self.fails(1, "--listen", "localhost", stderr="must be ADDRESS:PORT")
        self.fails(1, "--token-file", self.token_file(0o644), stderr="others may read it")
        self.fails(1, "--token-file", self.token_file(0o660), stderr="others may read it or write it")
        self.fails(1, "--token-file", self.token_file(text="short\n"), stderr="must be a file whose first line")
        self.fails(1, "--token-file", "/", stderr="must be a file")


class Bounds(WebTest):
    def refused(self, web, status, data):
        """An answer to what was not read to its end may be lost; there is no other one then."""
        with contextlib.suppress(ConnectionResetError, BrokenPipeError):
            self.assertEqual(web.raw(data).recv(1 << 16).split(b" ")[1], status, data[:200])

    def test_M5_headers_and_bodies_are_bounded(self):
        web = self.changing(self.supervisor())
        head = f"POST /api/pause HTTP/1.1\r\nHost: {web.name}\r\nContent-Type: application/json\r\nAuthorization: Bearer {TOKEN}\r\n".encode()
        self.refused(web, b"431", head + b"X: " + b"x" * 100000)
        self.refused(web, b"431", head + b"X: x\r\n" * 10000)
        self.refused(web, b"414", b"GET /?" + b"x" * 100000)
        self.refused(web, b"413", head + b"Content-Length: 70000\r\n\r\n")
        self.refused(web, b"413", head + b"Content-Length: 99999999999999999999\r\n\r\n")
        self.refused(web, b"400", head + b"Content-Length: -1\r\n\r\n")
        chunk = b"%x\r\n%s\r\n" % (10000, b"x" * 10000)
        self.refused(web, b"413", head + b"Transfer-Encoding: chunked\r\n\r\n" + chunk * 10 + b"0\r\n\r\n")

    def test_M5_garbage_is_answered_or_closed(self):
        web = Web(self, "/nowhere")
        garbage = (b"\0\n" * 100, b"GET\r\n\r\n", b"\r\n\r\n\r\n", b"GET / HTTP/9.9\r\n\r\n", b"\x16\x03\x01\x02\x00\x01\x00", bytes(range(256)) * 16)
        for connection in [web.raw(data) for data in garbage]:
            with contextlib.suppress(OSError):  # ENOTCONN: it is closed already
                connection.shutdown(socket.SHUT_WR)
            with contextlib.suppress(ConnectionResetError):
                while connection.recv(1 << 16):
                    pass
        self.assertEqual(web.status("/"), 200)

    def test_M5_who_sends_a_byte_now_and_then_is_closed(self):
        web = Web(self, "/nowhere")
        slow = web.raw(f"GET / HTTP/1.1\r\nHost: {web.name}\r\nX: ".encode())
        slow.settimeout(0.5)
        with contextlib.suppress(ConnectionResetError, BrokenPipeError):
            for _ in range(int(2 * LIMIT)):
                slow.sendall(b"x")
                with contextlib.suppress(TimeoutError):
                    self.assertEqual(slow.recv(1), b"")
                    break
            else:
                self.fail("a slow client was not closed")

    def test_M5_the_service_manager_does_not_give_it_up(self):
        with open(os.path.join(TOP, "units", "troupe-web.service"), encoding="utf-8") as file:
            pause = re.search(r"^RestartSec=(\d+)s$", file.read(), re.MULTILINE)
        self.assertIsNotNone(pause, "five starts within 10 s, and the socket is closed")
        self.assertGreater(5 * int(pause[1]), 10)

    def test_M5_who_was_in_time_is_served_although_the_program_was_stopped_meanwhile(self):
        web = Web(self, "/nowhere")
        visitor = web.raw(f"GET / HTTP/1.1\r\nHost: {web.name}\r\n".encode())
        self.assertEqual(web.status("/"), 200)  # the other connection has been accepted, too
        with web.stopped():
            visitor.sendall(b"\r\n")
            time.sleep(10.2)  # its time for the headers passes
        self.assertEqual(visitor.recv(12), b"HTTP/1.1 200")

    def test_M5_those_who_send_nothing_keep_nobody_out(self):
        supervisor, web = self.begin()
        streams = [web.events() for _ in range(48)]
        slow = []
        for _ in range(100):
            slow.append(web.raw(b"GET / HTT"))
            self.assertEqual(web.status("/metrics"), 200)
        self.assertEqual(slow[0].recv(1), b"", "the oldest makes room")
        slow[-1].sendall(f"P/1.1\r\nHost: {web.name}\r\n\r\n".encode())
        self.assertEqual(slow[-1].recv(12), b"HTTP/1.1 200")
        self.assertEqual([stream.status for stream in streams], [200] * 48)

    def test_M5_idle_connections_make_room_before_one_that_waits_for_its_answer(self):
        directory = tempfile.TemporaryDirectory(prefix="troupe-fake-")
        self.addCleanup(directory.cleanup)
        with socket.socket(socket.AF_UNIX) as silent:
            silent.bind(os.path.join(directory.name, "sock"))
            silent.listen(64)
            web = Web(self, silent.getsockname())
            waiting = web.raw(f"GET /api/info HTTP/1.1\r\nHost: {web.name}\r\n\r\n".encode())
            idle = []
            for _ in range(31):
                idle.append(web.raw(f"HEAD / HTTP/1.1\r\nHost: {web.name}\r\n\r\n".encode()))
                self.assertEqual(idle[-1].recv(12), b"HTTP/1.1 200")
            self.assertEqual(web.status("/"), 200)
        self.assertEqual(waiting.recv(12), b"HTTP/1.1 503")

    def test_M5_connections_are_bounded(self):
        web = Web(self, "/nowhere")
        before = web.descriptors()
        connections = []
        for _ in range(1000):
            connection = socket.socket()
            connection.setblocking(False)
            connection.connect_ex(("127.0.0.1", web.port))
            connections.append(connection)
        self.assertLessEqual(web.descriptors() - before, 130)
        for connection in connections:
            connection.close()
        self.assertEqual(web.status("/"), 200)

    def answers(self, parameters, endless=False):
        """The socket of something that answers every call so; `endless`: until the caller is gone, which sets self.gone."""
        self.gone = threading.Event()
        directory = tempfile.TemporaryDirectory(prefix="troupe-fake-")
        self.addCleanup(directory.cleanup)
        listener = socket.socket(socket.AF_UNIX)
        self.addCleanup(listener.close)
        listener.bind(os.path.join(directory.name, "sock"))
        listener.listen(64)
        reply = json.dumps({"parameters": parameters, "continues": endless}).encode() + b"\0"

        def serve():
            while True:
                try:
                    connection = listener.accept()[0]
                except OSError:
                    return
                with connection, contextlib.suppress(OSError):
                    while b"\0" not in connection.recv(1 << 16):
                        pass
                    connection.sendall(reply)
                    while endless:
                        connection.sendall(reply * 100)
                self.gone.set()
        threading.Thread(target=serve, daemon=True).start()
        return listener.getsockname()

    def test_M5_answers_that_nobody_reads_are_bounded(self):
        web = Web(self, self.answers({"lines": ["x" * (7 << 19)]}))  # more than the kernel buffers
        answer = len(web.ask("/api/log?target=many")[2])
        statuses, slow = [], []
        for _ in range(20):
            connection = socket.socket()
            self.addCleanup(connection.close)
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            connection.settimeout(LIMIT)
            connection.connect(("127.0.0.1", web.port))
            connection.sendall(f"GET /api/log?target=many HTTP/1.1\r\nHost: {web.name}\r\n\r\n".encode())
            statuses.append(int(connection.recv(12).split()[1]))
            slow.append(connection)
        bound = (32 << 20) // answer + 1
        self.assertEqual(statuses, [200] * bound + [503] * (20 - bound))
        self.assertEqual(web.status("/"), 200)
        for connection in slow:
            connection.close()
        limit_at = time.monotonic() + LIMIT
        while web.status("/api/log?target=many") != 200:
            self.assertLess(time.monotonic(), limit_at)

    def test_M5_streams_are_bounded_and_the_oldest_makes_room(self):
        supervisor, web = self.begin()
        streams = [web.events() for _ in range(48)]
        self.assertEqual({stream.next()[0] for stream in streams}, {"here"})
        self.assertEqual(supervisor.call("GetInfo")["clients"], 2)
        latest = web.events()
        self.assertEqual((latest.status, latest.next()[0]), (200, "here"))
        with self.assertRaises((EOFError, OSError, http.client.HTTPException)):
            while streams[0].next():
                pass
        supervisor.call("Pause", target="work")
        for stream in (*streams[1:], latest):
            stream.wait("event", type="group.paused")

    def reluctant(self, web, data):
        """A connection on which this was sent as far as it is read, and that reads only that there is an answer."""
        connection = socket.socket()
        self.addCleanup(connection.close)
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        connection.connect(("127.0.0.1", web.port))
        connection.setblocking(False)
        with contextlib.suppress(ConnectionError):
            while data and select.select([], [connection], [], 0.05)[1]:
                data = data[connection.send(data):]
        connection.settimeout(LIMIT)
        connection.recv(1)
        return connection

    def test_M5_a_stream_that_nobody_reads_ends(self):
        web = Web(self, self.answers({"events": [{"id": 1, "text": "x" * 100}]}, endless=True))
        self.reluctant(web, f"GET /api/events HTTP/1.1\r\nHost: {web.name}\r\n\r\n".encode())
        self.assertTrue(self.gone.wait(LIMIT))

    def test_M5_refusals_of_streams_that_nobody_reads_make_room(self):
        web = Web(self, self.supervisor().socket_path)
        streams = [web.events() for _ in range(48)]
        request = f"GET /api/events HTTP/1.1\r\nHost: {web.name}\r\n\r\n".encode()
        for _ in range(60):
            self.reluctant(web, request * 10000)
        self.assertEqual([stream.status for stream in streams], [200] * 48)
        self.assertEqual(web.status("/"), 200)

    def test_M5_a_browser_that_does_not_read_events_delays_nobody(self):
        supervisor, web = self.begin()
        web.raw(f"GET /api/events HTTP/1.1\r\nHost: {web.name}\r\n\r\n".encode())
        events = web.events()
        events.wait("here")
        for _ in range(300):
            supervisor.call("Pause", target="work")
            supervisor.call("Resume", target="work")
            events.wait("event", type="group.resumed")

    def test_M5_a_flood_of_events_reaches_a_browser_that_reads(self):
        supervisor, web = self.begin()
        events = web.events()
        events.wait("here")
        with web.stopped():
            for _ in range(300):
                supervisor.call("Pause", target="work")
                supervisor.call("Resume", target="work")
        for _ in range(300):
            events.wait("event", type="group.resumed")


class Sockets(WebTest):
    def test_M5_serves_the_sockets_of_the_service_manager(self):
        with socket.create_server(("127.0.0.1", 0)) as listener:
            process = subprocess.Popen(
                ["sh", "-c", f'exec 3<&{listener.fileno()}; LISTEN_PID=$$ LISTEN_FDS=1 exec "$@"', "sh", TROUPE_WEB, "--socket", "/nowhere"],
                pass_fds=[listener.fileno()], stderr=subprocess.DEVNULL)
            try:
                with socket.create_connection(listener.getsockname(), timeout=LIMIT) as connection:
                    connection.sendall(b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n")
                    self.assertIn(b" 200 ", connection.recv(1 << 16))
            finally:
                process.terminate()
                self.assertEqual(process.wait(LIMIT), 0)
