# SPDX-License-Identifier: MIT
"""troupe-nats and the server: away, with TLS, with users and permissions."""
import os
import shutil
import unittest

import nats
import nkeys
from test_nats import Case, actor
from troupe import LIMIT, ini


class Engine(Case):
    def test_N6_a_result_waits_for_the_engine(self):
        s = self.bridged()
        bell = self.hold(s, "echo late")
        s.nats.end()
        s.bridge.wait_told("NATS is away")
        bell.ring()
        s.wait_job("JOBS:1")
        server = f"127.0.0.1:{s.nats.port}"
        s.bridge.wait_told(f"NATS is away, which was last at {server}, connects again; 1 result waits; group actor")
        self.assertIn(f"the connection to NATS at {server} is lost", s.bridge.log())
        self.assertEqual(s.do("actor", "echo local")["state"], "succeeded")
        s.nats.start()
        s.bridge.wait_told("Takes messages")
        s.client = nats.Client(self, s.nats)
        self.wait_empty(s)
        self.assertEqual(s.client.messages("TROUPE"), 1)

    def test_N6_it_starts_without_the_engine(self):
        s = self.started({"actor": actor()})
        s.nats = nats.Server(self).start()
        s.nats.end()
        s.bridge = nats.Bridge(self, s, s.nats, "actor").start()
        s.bridge.wait_told("READY=1")
        s.nats.start()
        s.bridge.setup()
        s.client = nats.Client(self, s.nats)
        s.client.store("jobs.actor.any", "echo hello")
        self.wait_empty(s)

    def test_N8_a_password_is_in_no_log(self):
        server = nats.Server(self, 'authorization { user: "troupe", password: "sesame" }\n').start()
        s = self.started({"actor": actor()})
        s.bridge = nats.Bridge(self, s, server, "actor", environment={
            "NATS_URL": f"nats://troupe:sesame@127.0.0.1:{server.port}"}).setup().start()
        s.bridge.wait_told("Takes messages")
        server.end()
        s.bridge.wait_told("NATS is away")
        server.configuration = 'authorization { user: "troupe", password: "other" }\n'
        server.start()
        self.assertEqual(s.bridge.process.wait(LIMIT), 1)
        self.assertIn("NATS refuses the user or the password in URL=", s.bridge.log())
        self.assertNotIn("sesame", s.bridge.log())

    def test_it_runs_as_a_service_of_the_supervisor(self):
        server = nats.Server(self).start()
        s = self.supervisor({"actor": actor()})
        nats.Bridge(self, s, server, "actor").setup()
        s.write("nats.group", ini(
            f"{nats.TROUPE_NATS} --config {s.path('nats.conf')} serve actor",
            Group={"Type": "notify", "After": "actor", "Environment": f"TROUPE_SOCKET={s.socket_path}"}))
        s.start()
        s.until(lambda: "Takes messages" in s.worker("nats/0").get("status", ""))
        client = nats.Client(self, server)
        results = client.subscribe("troupe.result.JOBS.*")
        client.store("jobs.actor.any", "echo hello")
        self.assertEqual(client.next(results).data, b"hello")

    @unittest.skipUnless(shutil.which("openssl"), "openssl is missing")
    def test_N8_it_speaks_TLS_with_certificates_on_both_sides(self):
        certificate, key = nkeys.certificate(self)
        server = nats.Server(self, f'tls {{ cert_file: "{certificate}", key_file: "{key}", ca_file: "{certificate}", '
                                   'verify: true }\n').start()
        s = self.started({"actor": actor()})
        bridge = nats.Bridge(self, s, server, "actor",
                             f"CAFile={certificate}\nCertificateFile={certificate}\nKeyFile={key}\n").setup().start()
        bridge.wait_told("Takes messages")

    @unittest.skipUnless(shutil.which("openssl"), "openssl is missing")
    def test_N8_it_proves_who_it_is_by_an_nkey(self):
        user = nkeys.Key(self, nkeys.USER)
        s, server = self.started({"actor": actor()}), nats.Server(self)
        server.configuration = f'authorization {{ users: [ {{ nkey: "{user.public}" }} ] }}\n'
        server.start()
        bridge = nats.Bridge(self, s, server, "actor", f"NKey={user.public}\nNKeyFile={user.seed_file()}\n")
        bridge.setup().start().wait_told("Takes messages")
        bridge.end()
        self.assertNotIn("can read a secret", bridge.log())
        os.chmod(user.seed_file(), 0o644)
        bridge.start().wait_told("Takes messages")
        self.assertIn(f"{user.seed_file()}: everybody can read a secret; leave it to the user of serve: "
                      f"chown root:troupe-nats {user.seed_file()} && chmod 640 {user.seed_file()}", bridge.log())
        stranger = nkeys.Key(self, nkeys.USER)
        with open(bridge.config, "w", encoding="utf-8") as file:
            file.write(f"[Nats]\nURL={server.url}\nNKey={stranger.public}\nNKeyFile={stranger.seed_file()}\n")
        bridge.end()
        self.assertEqual(bridge.start().process.wait(LIMIT), 1)
        self.assertIn("NATS refuses the user of NKey= and NKeyFile=", bridge.log())

    @unittest.skipUnless(shutil.which("openssl"), "openssl is missing")
    def test_N8_it_works_in_an_account_with_a_file_of_credentials(self):
        tree = nkeys.Tree(self)
        server = nats.Server(self, tree.server_configuration()).start()
        s = self.started({"actor": actor()})
        bridge = nats.Bridge(self, s, server, "actor", f"Credentials={tree.credentials('jobs')}\n")
        bridge.setup().start().wait_told("Takes messages")

        # Another account has streams of its own.
        self.assertEqual(bridge.run("cluster").returncode, 0)
        with open(bridge.config, "w", encoding="utf-8") as file:
            file.write(f"[Nats]\nURL={server.url}\nCredentials={tree.credentials('other')}\n")
        self.assertNotEqual(bridge.run("cluster").returncode, 0)

    def test_N8_tls_in_a_URL_demands_TLS(self):
        server = nats.Server(self).start()
        for scheme in "tls", "TLS":
            s = self.started({"actor": actor()})
            bridge = nats.Bridge(self, s, server, "actor", environment={
                "NATS_URL": f"{scheme}://127.0.0.1:{server.port}"}).start()
            self.assertEqual(bridge.process.wait(LIMIT), 1)
            self.assertIn("the server has no TLS", bridge.log())
            self.assertNotIn("connected to NATS", bridge.log())
            s.stop()

    def test_more_servers_than_it_can_use_are_refused(self):
        s = self.started({"actor": actor()})
        bridge = nats.Bridge(self, s, nats.Server(self), "actor", "URL=" + "nats://host," * 17 + "\n").start()
        self.assertEqual(bridge.process.wait(LIMIT), 1)
        self.assertIn("URL=: no valid value; allowed: 1 to 16 servers with commas", bridge.log())

    def test_mistakes_in_the_configuration_are_reported_together(self):
        s = self.started({"actor": actor()})
        bridge = nats.Bridge(self, s, nats.Server(self), "actor", "InFlight=0\nInflight=1\nCAFile=ca.pem\nMachine=two words\n"
                             "Stream=a.b\nConsumer=a.b\nFilter=jobs.other.>\nNKey=SU\nCredentials=/missing\nURL=http://host:4222\n").start()
        self.assertEqual(bridge.process.wait(LIMIT), 1)
        for line in ("nats.conf:3: InFlight=: no valid value; allowed: a number from 1 to 65536",
                     'nats.conf:4: unknown key "Inflight"; allowed: URL, ',
                     "nats.conf:5: CAFile=: no valid value; allowed: the absolute path of a file",
                     "nats.conf:6: Machine=: no valid value; allowed: 1 to 64 characters of A-Z a-z 0-9 _ - and dots between them",
                     "nats.conf:7: Stream=: no valid value; allowed: 1 to 32 characters of A-Z a-z 0-9 _ -, not beginning with -",
                     "nats.conf:8: Consumer=: no valid value; allowed: a name of A-Z a-z 0-9 _ -, not beginning with -",
                     "nats.conf:9: Filter=: no valid value; allowed: jobs.GROUP.KEY with the group of the command, where parts of KEY may be * and the last part >",
                     "nats.conf:10: NKey=: no valid value; allowed: the public key of a user, 56 letters and digits that begin with U",
                     "Credentials=/missing: No such file or directory",
                     "nats.conf:12: URL=: no valid value; allowed: 1 to 16 servers with commas: nats://HOST:PORT or tls://HOST:PORT"):
            self.assertIn(line, bridge.log())

    def test_N8_no_part_of_a_password_that_stands_in_a_wrong_place_is_logged(self):
        s = self.started({"actor": actor()})
        for lines, reason in (
                ("URL=nats://me:sesame,more@127.0.0.1:1", "nats.conf:3: URL=: no valid value; allowed: 1 to 16 servers"),
                ("URL=nats://me:sesame more@127.0.0.1:1", "nats.conf:3: URL=: no valid value"),
                ("URL=nats://me:sesame", "nats.conf:3: URL=: no valid value"),
                ("URL=nats://me:sesame@127.0.0.1:", "nats.conf:3: URL=: no valid value"),
                ("URL=nats://me:sesame@[::1]:port", "nats.conf:3: URL=: no valid value"),
                ("URL=nats://127.0.0.1:1,\nnats://me:sesame==@127.0.0.1:1", 'nats.conf:4: no name of a key before the "="'),
                ("URL nats://me:sesame=@127.0.0.1:1", 'nats.conf:3: no name of a key before the "="'),
                ("Filter=jobs.other.>\nURL=nats://me:sesame=:@[::1],host,tls://[::1]:1,127.0.0.1", "nats.conf:3: Filter=: no valid value")):
            with self.subTest(lines=lines):
                bridge = nats.Bridge(self, s, nats.Server(self), "actor", lines + "\n")
                done = bridge.run("serve", "actor")
                self.assertIn(reason, done.stderr)
                self.assertNotIn("sesame", done.stderr)
                self.assertEqual("URL=: no" in done.stderr, "URL=: no" in reason)
                os.unlink(bridge.environment["NOTIFY_SOCKET"])

    def test_a_URL_has_a_scheme_of_NATS_or_none(self):
        s, server = self.supervisor({}), nats.Server(self).start()
        bridge = nats.Bridge(self, s, server, "actor")
        for url, right in (("http://127.0.0.1", False), ("ws://127.0.0.1", False), (f"{server.url}, tcp://127.0.0.1", False), ("nats://", False),
                           (",", False), (f"NATS://127.0.0.1:{server.port}", True), (f" 127.0.0.1:{server.port},", True)):
            bridge.environment["NATS_URL"] = url
            done = bridge.run("setup", "actor")
            self.assertEqual((done.returncode == 0, "NATS_URL: URL=: no valid value; allowed: 1 to 16" in done.stderr),
                             (right, not right), (url, done.stderr))
