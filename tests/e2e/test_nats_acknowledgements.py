# SPDX-License-Identifier: MIT
"""Acknowledgements of troupe-nats that get lost, as when servers elect a leader."""

import nats
from test_nats import JOBS, Case, actor

ACK_WAIT = 9  # seconds; a third of it is the time between two tries


def users(lost):
    """Whatever the bridge publishes there gets lost."""
    return (f'authorization {{ users: [ {{ user: "all", password: "sesame" }}, {{ user: "bridge", password: "sesame", '
            f'permissions: {{ publish: {{ deny: [{lost}] }} }} }} ] }}\nno_auth_user: "all"\n')


class Acknowledgements(Case):
    def losing(self):
        """As bridged(), but no acknowledgement reaches the server."""
        server = nats.Server(self, users('"$JS.ACK.>"')).start()
        s = self.supervisor({"actor": actor()}).start()
        s.bridge = nats.Bridge(self, s, server, "actor", f"AckWaitSec={ACK_WAIT}s\n", environment={
            "NATS_URL": f"nats://bridge:sesame@127.0.0.1:{server.port}"}).setup().start()
        s.bridge.wait_told("Takes messages")
        s.nats, s.client = server, nats.Client(self, server)
        s.results = s.client.subscribe("troupe.result.JOBS.*")
        return s

    def test_N1_an_acknowledgement_that_was_lost_is_sent_again_before_the_message_comes_again(self):
        s = self.losing()
        numbers = [s.client.store("jobs.actor.any", "echo hello") for _ in range(3)]
        self.wait_results(s, numbers)
        s.client.until(lambda: s.client.messages("TROUPE") == len(numbers))
        self.assertEqual(s.client.messages(JOBS), len(numbers))
        s.nats.reload(users('"nothing"'))
        self.wait_empty(s)
        self.assertEqual(self.consumer(s)["delivered"]["consumer_seq"], len(numbers))

    def test_a_result_that_is_lost_after_it_was_confirmed_is_published_again(self):
        s = self.losing()
        number = s.client.store("jobs.actor.any", "echo hello")
        self.result(s)
        s.client.until(lambda: s.client.messages("TROUPE") == 1)
        s.client.api("STREAM.MSG.DELETE.TROUPE", seq=1)
        self.assertEqual(self.result(s)[0], number)
        s.client.until(lambda: s.client.messages("TROUPE") == 1)

    def test_a_dead_letter_that_is_lost_after_it_was_confirmed_is_published_again(self):
        s = self.losing()
        s.client.store("jobs.actor.any", "hello", {"Troupe-Priority": "none"})
        s.client.until(lambda: s.client.messages("TROUPE") == 2)
        s.client.api("STREAM.MSG.DELETE.TROUPE", seq=1)
        s.client.until(lambda: s.client.messages("TROUPE") == 2)
        stored = s.client.api("STREAM.INFO.TROUPE", subjects_filter="troupe.>")["state"]["subjects"]
        self.assertEqual(stored, {"troupe.dead.actor.JOBS.1": 1, "troupe.result.JOBS.1": 1})

    def test_a_result_whose_id_the_server_remembers_without_the_message_is_stored(self):
        s = self.bridged()
        s.client.store("troupe.result.OTHERS.1", "", {"Nats-Msg-Id": f"{JOBS}:1"})
        s.client.store("jobs.actor.any", "echo hello")
        self.wait_empty(s)
        s.client.api("STREAM.MSG.GET.TROUPE", last_by_subj="troupe.result.JOBS.1")

    def test_a_machine_that_stops_does_not_wait_for_confirmations(self):
        s = self.losing()
        s.client.store("jobs.actor.any", "echo hello")
        self.result(s)
        s.client.until(lambda: s.client.messages("TROUPE") == 1)
        self.assertEqual(s.bridge.end(), 0)

    def test_what_the_user_of_the_bridge_is_not_permitted_is_named_once(self):
        s = self.losing()
        numbers = [s.client.store("jobs.actor.any", "echo hello") for _ in range(3)]
        self.wait_results(s, numbers)
        denial = 'NATS denies this user a permission: Permissions Violation for Publish to "$JS.ACK.JOBS.actor.'
        s.client.until(lambda: denial in s.bridge.log())
        s.bridge.end()
        self.assertEqual(s.bridge.log().count(denial), 1)

    def test_a_setup_without_a_server_says_what_is_missing(self):
        server = nats.Server(self)
        done = nats.Bridge(self, self.supervisor({"actor": actor()}), server, "actor").run("setup", "actor")
        self.assertEqual(done.returncode, 1)
        self.assertIn("no NATS server answers at URL=", done.stderr)

    def test_a_setup_that_is_refused_says_so(self):
        server = nats.Server(self, 'authorization { users: [ { user: "troupe", password: "sesame" } ] }\n').start()
        done = nats.Bridge(self, self.supervisor({"actor": actor()}), server, "actor").run("setup", "actor")
        self.assertEqual(done.returncode, 1)
        self.assertIn("NATS wants a user, and none is configured", done.stderr)

    def test_files_that_cannot_be_read_are_named(self):
        bridge = nats.Bridge(self, self.supervisor({"actor": actor()}), nats.Server(self), "actor",
                             "CAFile=/missing/ca.pem\nCredentials=/missing/creds\n")
        for verb in "setup", "serve":
            done = bridge.run(verb, "actor")
            self.assertEqual(done.returncode, 1)
            for name in "ca.pem", "creds":
                self.assertIn(f"/missing/{name}: No such file or directory", done.stderr)
