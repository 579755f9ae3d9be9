# SPDX-License-Identifier: MIT
"""The verbs of troupe-nats that send jobs to NATS JetStream, and wait for their results."""
import base64
import json
import os
import shutil
import signal
import subprocess
import unittest
import urllib.request

import nats
from test_manuals import commands, examples
from test_nats import JOBS, Case, actor
from troupe import LIMIT, Bell, TestCase


def ctl(*arguments, input="", binary=False, **environment):
    return subprocess.run([nats.TROUPE_NATS, *arguments], input=input, text=not binary, capture_output=True, timeout=LIMIT,
                          env={**os.environ, **environment})


def sent(*arguments, **options):
    """The number in the stream of a job that is created."""
    done = ctl("create", *arguments, **options)
    assert done.returncode == 0, done.stderr
    stream, _, number = done.stdout.strip().partition(":")
    assert stream == JOBS
    return int(number)


class Waits(Case):
    def watched(self):
        """As bridged(), with a server that tells who subscribes to what."""
        self.http = nats.free_port()
        return self.bridged(server=nats.Server(self, f'http: "127.0.0.1:{self.http}"\n').start())

    def is_awaited(self, number):
        with urllib.request.urlopen(f"http://127.0.0.1:{self.http}/connz?subs=1", timeout=LIMIT) as answer:
            connections = json.load(answer)["connections"]
        return any(f"troupe.result.JOBS.{number}" in connection.get("subscriptions_list", []) for connection in connections)

    def waiting(self, s, number, **options):
        """troupe-nats, once it waits for a job."""
        process = subprocess.Popen([nats.TROUPE_NATS, "wait", f"JOBS:{number}"], text=True, env={**os.environ, "NATS_URL": s.nats.url}, **options)
        self.addCleanup(process.communicate)
        self.addCleanup(process.kill)
        s.client.until(lambda: self.is_awaited(number))
        return process

    def test_a_wait_ends_when_the_job_ends(self):
        s = self.watched()
        started, bell = Bell(s, "started"), Bell(s, "bell")
        number = sent("actor", input=f"ring {started.path}\nwait {bell.path}\nname", NATS_URL=s.nats.url)
        started.wait()
        self.assertEqual(ctl("wait", f"JOBS:{number}", "--timeout", "10ms", NATS_URL=s.nats.url).returncode, 8)
        process = self.waiting(s, number, stdout=subprocess.PIPE)
        bell.ring()
        self.assertEqual(process.communicate(timeout=LIMIT)[0], "actor/0")

    def test_an_interrupted_wait_says_how_to_go_on_and_leaves_nothing_behind(self):
        s = self.watched()
        started = Bell(s, "started")
        number = sent("actor", input=f"ring {started.path}\nuntil-cancelled", NATS_URL=s.nats.url)
        started.wait()
        process = self.waiting(s, number, stderr=subprocess.PIPE)
        process.send_signal(signal.SIGINT)
        said = process.communicate(timeout=LIMIT)[1]
        self.assertEqual(process.returncode, 130)
        self.assertIn(f"job JOBS:{number} continues; 'troupe-nats wait JOBS:{number}' waits for it", said)
        s.client.until(lambda: not self.is_awaited(number))
        s.call("Cancel", id=f"JOBS:{number}")


class Jobs(Case):
    def stored(self, s, number):
        """A message of the stream of jobs: its subject, and its headers as lines."""
        message = s.client.api(f"STREAM.MSG.GET.{JOBS}", seq=number)["message"]
        headers = base64.b64decode(message["hdrs"]).decode().split("\r\n") if "hdrs" in message else []
        return message["subject"], headers

    def silent(self):
        """A server with the streams, and no machine that takes jobs of the group."""
        s = self.bridged()
        s.bridge.end()
        return s

    def test_a_job_is_sent_and_its_result_is_waited_for_on_any_machine(self):
        s = self.bridged()
        number = sent("actor", input="echo hello", NATS_URL=s.nats.url)
        waited = ctl("wait", f"JOBS:{number}", NATS_URL=s.nats.url)
        self.assertEqual((waited.stdout, waited.stderr, waited.returncode), ("hello", "", 0))
        self.wait_empty(s)  # once more, after its message is gone
        job = json.loads(ctl("wait", f"JOBS:{number}", "--json", NATS_URL=s.nats.url).stdout)["job"]
        self.assertEqual(job, {"id": f"JOBS:{number}", "state": "succeeded", "attempt": 1, "code": 0,
                               "result": {"encoding": "utf8", "data": "hello"}})

    def test_do_sends_a_job_of_any_bytes_and_writes_its_result(self):
        s = self.bridged()
        payload = b"echo " + bytes(byte for byte in range(1, 256) if byte != ord("\n")) * 8
        done = ctl("do", "actor", input=payload, binary=True, NATS_URL=s.nats.url)
        self.assertEqual((done.stdout, done.stderr, done.returncode), (payload[5:], b"", 0))

    def test_a_job_that_does_not_succeed_tells_why(self):
        s = self.bridged(actor(MaxRetries=1))
        done = ctl("do", "actor", input="crash kill", NATS_URL=s.nats.url)
        self.assertEqual((done.stdout, done.returncode), ("", 1))
        self.assertIn("job JOBS:1 is dead after 2 attempts", done.stderr)

    def test_the_options_become_headers_and_the_subject(self):
        s = self.silent()
        number = sent("actor", "--id", "mine", "--key", "acme", "--priority", "7", "--delay", "90000ms", "--timeout", "1ms", NATS_URL=s.nats.url, input="x")
        subject, headers = self.stored(s, number)
        self.assertEqual(subject, "jobs.actor.acme")
        self.assertEqual(set(filter(None, headers)), {"NATS/1.0", "Nats-Msg-Id: mine", "Troupe-Priority: 7",
                                                      "Troupe-Delay: 90000ms", "Troupe-Timeout: 1ms"})

    def test_a_key_that_cannot_be_part_of_a_subject_goes_into_a_header(self):
        s = self.silent()
        for key in "two words", "*", "a..b", ".", "\u00e9":
            subject, headers = self.stored(s, sent("actor", "--key", key, NATS_URL=s.nats.url))
            self.assertEqual(subject, "jobs.actor.any")
            self.assertIn(f"Troupe-Key: {key}", headers)
        self.assertEqual(self.stored(s, sent("actor", "--key", "a.b/c", NATS_URL=s.nats.url))[0], "jobs.actor.a.b/c")

    def test_a_second_message_with_the_same_id_is_not_stored(self):
        s = self.silent()
        first = ctl("create", "actor", "--id", "mine", NATS_URL=s.nats.url)
        second = ctl("create", "actor", "--id", "mine", NATS_URL=s.nats.url)
        self.assertEqual((first.stdout, first.stderr, second.returncode), (second.stdout, "", 0))
        self.assertIn("stored before, as job JOBS:1", second.stderr)
        self.assertEqual(s.client.messages(JOBS), 1)

    def test_servers_and_credentials_come_from_a_file_too(self):
        s = self.silent()
        self.assertEqual(sent("actor", TROUPE_NATS_CONFIG=s.bridge.config), 1)


class Manual(Case):
    def words(self):
        """The group of the examples, its bridge, and a server with their streams."""
        s = self.started({"words": actor()})
        s.nats = nats.Server(self).start()
        s.bridge = nats.Bridge(self, s, s.nats, "words").setup().start()
        s.bridge.wait_told("Takes messages")
        s.client = nats.Client(self, s.nats)
        return s

    def test_a_few_lines_with_any_client_send_a_job_and_wait_for_its_result(self):
        s = self.words()
        [source] = [text for text in examples("troupe-nats.8") if "#include" in text]
        with open(s.path("client.c"), "w", encoding="utf-8") as file:
            file.write(source.replace("nats://127.0.0.1:4222", s.nats.url).replace('"hello", 5', '"echo hello", 10'))
        subprocess.run(["cc", "-std=gnu17", "-Wall", "-Wextra", "-Werror", "-o", s.path("client"), s.path("client.c"), "-lnats"],
                       check=True, timeout=LIMIT)
        done = subprocess.run([s.path("client")], capture_output=True, text=True, timeout=LIMIT)
        self.assertEqual((done.stdout, done.returncode), ("hello\n", 0))
        job = s.job("JOBS:1")
        self.assertEqual((job["priority"], job["state"]), (7, "succeeded"))

    def test_and_so_do_the_commands(self):
        s = self.words()
        export, create, wait = commands(examples("troupe-nats.8"))
        script = f"{export}{create}{wait}".replace("nats://127.0.0.1:4222", s.nats.url)
        for old, new in ("troupe-nats ", f"{nats.TROUPE_NATS} "), ("JOBS:17", "JOBS:1"), ("echo hello", "echo 'echo hello'"):
            script = script.replace(old, new)
        self.assertEqual(subprocess.run(["sh", "-ec", script], check=True, capture_output=True, text=True, timeout=LIMIT).stdout,
                         "JOBS:1\nhello")


class Here(TestCase):
    def test_a_job_of_this_machine_is_waited_for_by_troupectl(self):
        s = self.started({"actor": actor(MaxRetries=0)})
        bell = Bell(s, "bell")
        s.create("actor", f"wait {bell.path}\nname", id="nightly")
        self.assertEqual(s.ctl("wait", "nightly", "--timeout", "10ms").returncode, 8)
        bell.ring()
        waited = s.ctl("wait", "nightly")
        self.assertEqual((waited.stdout, waited.stderr, waited.returncode), ("actor/0", "", 0))
        self.assertEqual(s.ctl_json("wait", "nightly")["job"]["state"], "succeeded")
        s.create("actor", "crash kill", id="bad")
        waited = s.ctl("wait", "bad")
        self.assertEqual((waited.stdout, waited.returncode), ("", 1))
        self.assertIn("job bad is dead", waited.stderr)
        self.assertEqual(s.ctl("wait", "unknown").returncode, 5)


class Refusals(Case):
    def refused(self, status, text, *arguments, **options):
        done = ctl(*arguments, **options)
        self.assertEqual((done.stdout, done.returncode), ("", status), done.stderr)
        self.assertIn(text, done.stderr)
        return done.stderr

    def test_what_no_machine_would_take_is_refused(self):
        self.refused(2, "Troupe-Delay: no valid value", "create", "actor", "--delay", "400d")
        self.refused(2, "--key: no valid value", "create", "actor", "--key", "a\nb")
        self.refused(2, "--id: no valid value", "create", "actor", "--id", " a")
        self.refused(2, "not the id of a NATS job", "wait", "nightly")

    def test_without_a_server_or_a_stream_it_says_so(self):
        server = nats.Server(self)
        self.refused(3, "no NATS server answers", "create", "actor", NATS_URL=server.url)
        server.start()
        self.refused(3, "troupe-nats setup actor", "create", "actor", NATS_URL=server.url)
        self.refused(5, "there is no job JOBS:1", "wait", "JOBS:1", NATS_URL=server.url)

    def test_N8_wrong_credentials_are_an_exit_status_of_their_own(self):
        server = nats.Server(self, 'authorization { user: "troupe", password: "sesame" }\n').start()
        url = f"nats://troupe:other@127.0.0.1:{server.port}"
        said = self.refused(4, "NATS refuses the user or the password in URL= or $NATS_URL", "create", "actor", NATS_URL=url)
        self.assertNotIn("other", said)

    @unittest.skipUnless(os.geteuid() == 0 and shutil.which("unshare") and shutil.which("setpriv"), "needs root, unshare and setpriv")
    def test_who_may_not_read_the_file_is_told_what_else_names_the_servers(self):
        file = "mount -t tmpfs none /etc && mkdir -m 755 /etc/troupe && install -m 640 /dev/null /etc/troupe/nats.conf && "
        shell = ["unshare", "--mount", "sh", "-c", file + 'exec setpriv --reuid 65534 --regid 65534 --clear-groups "$@"', "sh"]
        for arguments in ("create", "actor"), ("wait", "JOBS:1"), ("cluster",):
            command = [*shell, nats.TROUPE_NATS, *arguments]
            environment = {name: value for name, value in os.environ.items() if not name.startswith("NATS_")}
            done = subprocess.run(command, text=True, capture_output=True, timeout=LIMIT, env=environment)
            self.assertIn("/etc/troupe/nats.conf: Permission denied; set $NATS_URL to the servers", done.stderr)
            self.assertEqual(done.returncode, 4)
            done = subprocess.run(command, text=True, capture_output=True, timeout=LIMIT,
                                  env={**environment, "NATS_URL": f"nats://127.0.0.1:{nats.free_port()}"})
            self.assertEqual(done.returncode, 3, done.stderr)

    def test_what_the_server_forbids_is_told(self):
        server = nats.Server(self, 'authorization { users: [ { user: "troupe", password: "sesame", permissions: '
                             '{ publish: "other.>" } } ] }\n').start()
        url = f"nats://troupe:sesame@127.0.0.1:{server.port}"
        self.refused(4, 'Permissions Violation for Publish to "jobs.actor.any"', "create", "actor", NATS_URL=url)
        self.refused(4, 'Permissions Violation for Publish to "$JS.API.', "cluster", NATS_URL=url)
        done = subprocess.run([nats.TROUPE_NATS, "setup", "actor"], text=True, capture_output=True, timeout=LIMIT,
                              env={**os.environ, "NATS_URL": url})
        self.assertIn('Permissions Violation for Publish to "$JS.API.STREAM.', done.stderr)
        self.assertEqual(done.returncode, 1)

    def test_what_the_server_forbids_who_waits_is_told(self):
        server = nats.Server(self, 'authorization { users: [ { user: "troupe", password: "sesame", permissions: '
                             '{ publish: "other.>" } } ] }\n').start()
        url = f"nats://troupe:sesame@127.0.0.1:{server.port}"
        self.refused(8, 'Permissions Violation for Publish to "$JS.API.STREAM.MSG.GET.TROUPE"', "wait", "JOBS:1", "--timeout", "1s", NATS_URL=url)

    def test_a_stream_without_room_says_so(self):
        server = nats.Server(self).start()
        client = nats.Client(self, server)
        client.api("STREAM.CREATE.JOBS", name="JOBS", subjects=["jobs.>"], storage="memory", max_msgs=1, discard="new")
        client.store("jobs.actor.any")
        self.refused(1, "the job: maximum messages exceeded", "create", "actor", NATS_URL=server.url)

    def test_a_payload_above_the_limit_of_the_server_is_refused(self):
        server = nats.Server(self, "max_payload: 8192\n").start()
        self.refused(2, "8192 bytes with headers (max_payload)", "create", "actor", input="x" * 9000, NATS_URL=server.url)
