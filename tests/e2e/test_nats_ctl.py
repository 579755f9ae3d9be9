# SPDX-License-Identifier: MIT
"""Jobs that clients send to NATS JetStream, and the verbs of troupe-nats that look at machines."""
import os
import subprocess

import nats
from documents import examples, typed
from test_nats import Case, actor
from troupe import LIMIT, Bell, TestCase


def ctl(*arguments, **environment):
    return subprocess.run([nats.TROUPE_NATS, *arguments], text=True, capture_output=True, timeout=LIMIT, env={**os.environ, **environment})


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

    def test_and_so_do_a_few_words_of_bash(self):
        s = self.words()
        [words] = [block for block in examples("troupe-nats.8") if "/dev/tcp" in block]
        script = "\n".join(command for command, _ in typed(words)).replace("/127.0.0.1/4222", f"/{s.nats.host}/{s.nats.port}")
        script = script.replace("any 5' hello", "any 10' 'echo hello'")
        done = subprocess.run(["bash", "-ec", script], check=True, capture_output=True, text=True, timeout=LIMIT)
        self.assertEqual(done.stdout, "hello\n")


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

    def test_without_a_server_or_a_bucket_it_says_so(self):
        server = nats.Server(self)
        self.refused(3, "no NATS server answers", "cluster", NATS_URL=server.url)
        server.start()
        self.refused(5, 'there is no bucket TROUPE_STATE: "troupe-nats setup" makes it', "cluster", NATS_URL=server.url)

    def test_N8_wrong_credentials_are_an_exit_status_of_their_own(self):
        server = nats.Server(self, 'authorization { user: "troupe", password: "sesame" }\n').start()
        url = f"nats://troupe:other@127.0.0.1:{server.port}"
        said = self.refused(4, "NATS refuses the user or the password in URL= or $NATS_URL", "cluster", NATS_URL=url)
        self.assertNotIn("other", said)

    def test_what_the_server_forbids_is_told(self):
        server = nats.Server(self, 'authorization { users: [ { user: "troupe", password: "sesame", permissions: '
                             '{ publish: "other.>" } } ] }\n').start()
        url = f"nats://troupe:sesame@127.0.0.1:{server.port}"
        self.refused(4, 'Permissions Violation for Publish to "$JS.API.', "cluster", NATS_URL=url)
        done = subprocess.run([nats.TROUPE_NATS, "setup", "actor"], text=True, capture_output=True, timeout=LIMIT,
                              env={**os.environ, "NATS_URL": url})
        self.assertIn('Permissions Violation for Publish to "$JS.API.STREAM.', done.stderr)
        self.assertEqual(done.returncode, 1)
