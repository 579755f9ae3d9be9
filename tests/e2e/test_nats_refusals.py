# SPDX-License-Identifier: MIT
"""What troupe-nats says, and troupectl shows, when a NATS server does not take its connection."""
import os
import shutil
import unittest
from pathlib import Path

import nats
import nkeys
from test_nats import Case, actor
from troupe import ini

USERS = 'authorization { user: "troupe", password: "sesame" }\n'


@unittest.skipUnless(shutil.which("openssl"), "openssl is missing")
class Refusals(Case):
    def server(self, configuration="", certificate=None, **tls):
        if certificate:
            lines = {"cert_file": certificate[0], "key_file": certificate[1], **tls}
            configuration += "tls {" + "\n".join(f'{name}: "{value}"' for name, value in lines.items()) + "}\n"
        return nats.Server(self, configuration).start()

    def service(self, s, server, configuration="", url=None):
        """troupe-nats as a service of the supervisor, which restarts it."""
        bridge = nats.Bridge(self, s, server, "actor", configuration)
        if url:
            Path(bridge.config).write_text(f"[Nats]\nURL={url}\n{configuration}", encoding="utf-8")
        s.write("nats.group", ini(
            f"{nats.TROUPE_NATS} --config {bridge.config} serve actor",
            Group={"Type": "notify", "After": "actor", "Environment": f"TROUPE_SOCKET={s.socket_path}"}))
        s.start()
        return bridge

    def test_a_server_over_which_the_consumer_does_not_answer_is_kept_with_tls(self):
        certificate = nkeys.certificate(self, "IP:127.0.0.1")
        server = self.server('authorization { users: [ { user: "troupe", password: "sesame", permissions: '
                             '{ publish: { deny: "$JS.API.CONSUMER.INFO.>" } } } ] }\n', certificate)
        s = self.supervisor({"actor": actor()}).start()
        bridge = nats.Bridge(self, s, server, "actor")
        with open(bridge.config, "w", encoding="utf-8") as file:
            file.write(f"[Nats]\nURL=tls://troupe:sesame@127.0.0.1:{server.port}\nCAFile={certificate[0]}\nAckWaitSec=1s\n")
        bridge.start()
        s.until(lambda: "does not answer over this server; " in bridge.log())
        self.assertIn("does not answer over this server; asks again there, as TLS is in use", bridge.log())

    def test_the_reason_is_told(self):
        mine, other, elsewhere = (nkeys.certificate(self, name) for name in ("IP:127.0.0.1", "IP:127.0.0.1", "DNS:elsewhere"))
        bare, users = self.server(), self.server(USERS)
        secure, misplaced = self.server(certificate=mine), self.server(certificate=elsewhere)
        mutual = nats.Server(self, f'tls {{ cert_file: "{mine[0]}", key_file: "{mine[1]}", ca_file: "{mine[0]}", verify: true }}\n').start()
        account = self.server(nkeys.Tree(self).server_configuration())
        stranger, seedless = nkeys.Tree(self).credentials("jobs"), other[0]
        s = self.supervisor({"actor": actor()})
        for server, scheme, configuration, reason in (
                (users, "nats://", "", "NATS wants a user, and none is configured by URL=, Credentials= or NKey=: Authorization Violation"),
                (users, "nats://troupe:wrong@", "", "NATS refuses the user or the password in URL= or $NATS_URL: Authorization Violation"),
                (account, "nats://", f"Credentials={stranger}\n", "NATS refuses the user of Credentials= or $NATS_CREDS: Authorization Violation"),
                (account, "nats://", f"Credentials={seedless}\n", f"no connection to NATS: no nkey user seed found in '{seedless}'"),
                (bare, "tls://", "", "NATS: the server has no TLS, which URL=tls://, CAFile= or CertificateFile= demands"),
                (secure, "nats://", "", "NATS: the certificate of the server is not accepted: self"),
                (secure, "nats://", f"CAFile={other[0]}\n", "NATS: the certificate of the server is not accepted: self"),
                (misplaced, "nats://", f"CAFile={elsewhere[0]}\n",
                 "NATS: the certificate of the server is not accepted: IP address mismatch; see the host in URL="),
                (secure, "nats://", f"CAFile={mine[1]}\n", f"NATS: TLS: Error loading trusted certificates '{mine[1]}'"),
                (mutual, "nats://", f"CAFile={mine[0]}\n", "if it wants a certificate of this client, see CertificateFile=")):
            bridge = nats.Bridge(self, s, server, "actor")
            Path(bridge.config).write_text(f"[Nats]\nURL={scheme}127.0.0.1:{server.port}\n{configuration}", encoding="utf-8")
            for verb in ("serve", "actor"), ("cluster",):
                with self.subTest(verb=verb, reason=reason):
                    self.assertIn(reason, done := bridge.run(*verb).stderr)
                    self.assertNotIn("wrong", done)
            os.unlink(bridge.environment["NOTIFY_SOCKET"])

    def test_the_status_of_the_group_tells_of_a_wrong_password(self):
        server = self.server(USERS)
        s = self.supervisor({"actor": actor()})
        self.service(s, server, url=f"nats://troupe:wrong@127.0.0.1:{server.port}")
        s.until(lambda: "in backoff" in s.ctl("status", "nats").stdout)
        self.assertIn("NATS refuses the user or the password in URL= or $NATS_URL: Authorization Violation",
                      s.ctl("status", "nats").stdout)

    def test_the_status_of_the_group_tells_of_a_server_that_has_another_certificate_now(self):
        mine, other = nkeys.certificate(self), nkeys.certificate(self)
        server = self.server(certificate=mine)
        s = self.supervisor({"actor": actor()})
        self.service(s, server, f"CAFile={mine[0]}\n").setup()
        s.until(lambda: "Takes messages" in s.worker("nats/0").get("status", ""))
        before = s.worker("nats/0")["pid"]
        server.end()
        server.configuration = server.configuration.replace(mine[0], other[0]).replace(mine[1], other[1])
        server.start()
        s.until(lambda: "the certificate of the server is not accepted: self" in s.worker("nats/0").get("status", ""))
        server.end()
        server.configuration = server.configuration.replace(other[0], mine[0]).replace(other[1], mine[1])
        server.start()
        s.until(lambda: "Takes messages" in s.worker("nats/0").get("status", ""))
        self.assertEqual(s.worker("nats/0")["pid"], before)
