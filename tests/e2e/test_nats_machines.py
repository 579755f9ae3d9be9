# SPDX-License-Identifier: MIT
"""What machines say about themselves through NATS, and what troupe-nats cluster makes of it."""
import json
import signal

import nats
from test_nats import Case, actor
from test_nats_ctl import ctl
from troupe import Bell, ended, ini


class Base(Case):
    def machine(self, name, first=None, **options):
        """A machine of that name, which uses the server of the first one."""
        return self.bridged(configuration=f"Machine={name}\nStateSec=1s\n", server=first and first.nats, **options)

    def seen(self, s):
        """What is known of machines, by name."""
        done = ctl("cluster", "--json", NATS_URL=s.nats.url)
        self.assertIn(done.returncode, (0, 1), done.stderr)
        return {machine["name"]: machine for machine in json.loads(done.stdout)["machines"]}

    def until_seen(self, s, condition):
        """Waits until what is known of machines is so, and returns it."""
        def look():
            machines = self.seen(s)
            return machines if condition(machines) else None
        return s.client.until(look)

    def until_state(self, s, **states):
        return self.until_seen(s, lambda machines: {name: machine["state"] for name, machine in machines.items()} == states)

    def shown(self, s):
        done = ctl("cluster", NATS_URL=s.nats.url)
        return done.returncode, done.stdout.splitlines()

    def rows(self, s):
        """The words of each row of the table below its titles, and the exit status."""
        status, lines = self.shown(s)
        titles = next(n for n, line in enumerate(lines) if line.startswith("Machine"))
        return status, [line.split() for line in lines[titles + 1:] if line]


class Machines(Base):
    def test_one_table_shows_the_groups_workers_and_queues_of_all_machines(self):
        a = self.machine("a", group=actor(2))
        b = self.machine("b.example.org", a)
        started, bell = Bell(b, "started"), Bell(b, "bell")
        for _ in range(3):
            b.create("actor", f"ring {started.path}\nwait {bell.path}")
        started.wait()
        machines = self.until_seen(a, lambda machines: "a" in machines and machines.get("b.example.org", {}).get(
            "groups", [{}])[0].get("queued") == 2)
        self.assertEqual([machine["state"] for machine in machines.values()], ["up", "up"])
        [group] = machines["b.example.org"]["groups"]
        self.assertGreater(group.pop("oldest_usec"), 0)
        self.assertEqual(group, {"name": "actor", "type": "actor", "state": "running", "size": 1, "up": 1, "queued": 2,
                                 "running": 1, "waiting": 0})
        status, lines = self.shown(a)
        self.assertEqual((status, lines[0]), (0, "2 machines: 2 up; 3 of 3 workers up, 2 jobs queued, 1 running"))
        [first, second] = self.rows(a)[1]
        self.assertEqual((first[0], first[-6:]), ("a", ["running", "2", "of", "2", "0", "0"]))
        self.assertEqual((second[0], second[-7:-1]), ("b.example.org", ["running", "1", "of", "1", "2", "1"]))
        bell.ring(3)

    def test_a_machine_that_was_killed_is_dead_until_it_is_forgotten(self):
        a = self.machine("a")
        b = self.machine("b", a)
        self.until_state(a, a="up", b="up")
        b.bridge.end(signal.SIGKILL)
        machines = self.until_state(a, a="up", b="dead")
        self.assertEqual(machines["b"]["bridges"], {"actor": "dead"})
        status, rows = self.rows(a)
        self.assertEqual((status, [row[:2] for row in rows[:2]]), (1, [["a", "actor"], ["b", "actor"]]))
        self.assertIn("dead", rows[1])
        self.assertIn("seen", rows[1])
        self.assertEqual(self.nats(a, "forget", "a")[0], 1)  # it is up
        self.assertEqual(self.nats(a, "forget", "c")[0], 5)
        self.assertEqual(self.nats(a, "forget", "b"), (0, ""))
        self.assertEqual(list(self.seen(a)), ["a"])
        self.assertEqual(self.shown(a)[0], 0)

    def nats(self, s, *arguments):
        done = s.bridge.run(*arguments)
        return done.returncode, done.stderr

    def test_a_key_that_is_no_machine_is_named_and_the_others_are_shown(self):
        a = self.machine("a")
        self.until_state(a, a="up")
        a.client.socket.sendall(b'PUB $KV.TROUPE_STATE.b\xffd.actor 14\r\n{"state":"up"}\r\n')
        a.client.store("$KV.TROUPE_STATE.c.actor", '{"state":"up","groups":"none"}')
        done = ctl("cluster", "--json", NATS_URL=a.nats.url)
        self.assertEqual((done.returncode, [machine["name"] for machine in json.loads(done.stdout)["machines"]]), (0, ["a"]))
        for key in "b\ufffdd", "c":
            self.assertIn(f"TROUPE_STATE: the key {key}.actor is no machine's", done.stderr)

    def test_a_key_without_a_value_hides_no_machine(self):
        a = self.machine("a")
        self.until_state(a, a="up")
        a.client.store("$KV.TROUPE_STATE.b.actor", "", ["KV-Operation: DEL"])
        done = ctl("cluster", "--json", NATS_URL=a.nats.url)
        self.assertEqual((done.returncode, [machine["name"] for machine in json.loads(done.stdout)["machines"]]), (0, ["a"]))

    def test_a_machine_that_does_not_tell_its_groups_hides_no_other(self):
        a = self.machine("a")
        self.until_state(a, a="up")
        a.client.store("$KV.TROUPE_STATE.b.actor", '{"state":"up","every_usec":60000000}')
        self.assertEqual({name: machine["state"] for name, machine in self.seen(a).items()}, {"a": "up", "b": "up"})

    def test_a_dead_machine_that_comes_back_is_up(self):
        a = self.machine("a")
        self.until_state(a, a="up")
        a.bridge.end(signal.SIGKILL)
        self.until_state(a, a="dead")
        a.bridge.start()
        self.until_state(a, a="up")

    def test_a_machine_that_stops_on_request_is_not_dead(self):
        a = self.machine("a")
        b = self.machine("b", a)
        self.until_state(a, a="up", b="up")
        self.assertEqual(b.bridge.end(), 0)
        self.assertEqual({name: machine["state"] for name, machine in self.seen(a).items()}, {"a": "up", "b": "stopped"})
        self.assertEqual(self.shown(a)[0], 0)
        ended(a.pidfd, 5)  # nor when an "up" of that age would be dead
        self.assertEqual(self.seen(a)["b"]["state"], "stopped")

    def with_bridges(self, *groups, **others):
        """A machine with a bridge for each of these groups, of which it has heard."""
        s = self.supervisor({**{group: actor() for group in groups}, **others}).start()
        s.nats = nats.Server(self).start()
        s.client = nats.Client(self, s.nats)
        s.bridges = {group: nats.Bridge(self, s, s.nats, group, "Machine=a\nStateSec=1s\n").setup().start() for group in groups}
        self.until_seen(s, lambda machines: machines and machines["a"]["bridges"] == dict.fromkeys(groups, "up"))
        return s

    def test_when_a_dead_machine_was_seen_last_is_known_as_well_as_its_state_was(self):
        s = self.with_bridges("actor")

        def reports():
            return s.client.api("STREAM.INFO.KV_TROUPE_STATE")["state"]["last_seq"]
        before = reports()
        s.client.until(lambda: reports() >= before + 3)

    def test_a_machine_whose_last_bridge_stopped_on_request_is_not_dead_though_another_one_died_before(self):
        s = self.with_bridges("actor", "other")
        s.bridges["other"].end(signal.SIGKILL)
        self.until_seen(s, lambda machines: machines["a"]["bridges"]["other"] == "dead")
        self.assertEqual(s.bridges["actor"].end(), 0)
        machine = self.until_state(s, a="stopped")["a"]
        self.assertEqual(machine["bridges"], {"actor": "stopped", "other": "dead"})
        s.bridges["other"].start()
        self.until_state(s, a="up")
        s.bridges["other"].end(signal.SIGKILL)
        self.until_state(s, a="dead")

    def test_a_group_whose_bridge_alone_is_dead_is_in_trouble(self):
        s = self.with_bridges("actor", "other", local=actor(), service=ini("/bin/sleep infinity", Group={"Type": "service"}))
        s.bridges["other"].end(signal.SIGKILL)
        self.until_seen(s, lambda machines: machines["a"]["bridges"] == {"actor": "up", "other": "dead"})
        status, lines = self.shown(s)
        self.assertEqual((status, [line.split()[-4:] for line in lines if "troupe-nats" in line]),
                         (1, [["its", "troupe-nats", "is", "dead"]]))
        self.assertTrue(any("local jobs only" in line for line in lines))
        # The bridge of one group tells of all.
        self.assertEqual([row[-1] for row in self.rows(s)[1] if "service" in row], ["1"])

    def test_a_group_that_is_not_up_is_in_trouble(self):
        s = self.machine("a")
        self.until_seen(s, lambda machines: machines and machines["a"]["groups"][0]["up"] == 1)
        s.call("Stop", target="actor")
        machines = self.until_seen(s, lambda machines: machines["a"]["groups"][0]["state"] == "stopped")
        self.assertEqual(machines["a"]["groups"][0]["up"], 0)
        self.assertEqual(self.shown(s)[0], 1)

    def test_without_the_bucket_the_bridge_says_so_once_and_goes_on(self):
        s = self.machine("a")
        self.until_state(s, a="up")
        s.client.api("STREAM.DELETE.KV_TROUPE_STATE")
        s.client.until(lambda: "other machines cannot see this one" in s.bridge.log())
        done = ctl("cluster", NATS_URL=s.nats.url)
        self.assertEqual((done.stdout, done.returncode), ("", 5))
        self.assertIn('there is no bucket TROUPE_STATE: "troupe-nats setup" makes it', done.stderr)
        s.client.store("jobs.actor.any", "echo hello")
        self.assertEqual(self.result(s)[2], "hello")
        s.bridge.setup()
        self.until_state(s, a="up")
        self.assertEqual(s.bridge.log().count("other machines cannot see this one"), 1)

    def test_a_machine_is_called_as_its_host_unless_it_has_another_name(self):
        s = self.bridged()
        [name] = self.until_seen(s, bool)
        with open("/proc/sys/kernel/hostname", encoding="utf-8") as file:
            self.assertEqual(name, file.read().strip())
        with open(s.bridge.config, "a", encoding="utf-8") as file:
            file.write("Machine=two words\n")
        done = s.bridge.run("cluster")
        self.assertEqual(done.returncode, 1)
        self.assertIn("Machine=: no valid value; allowed: 1 to 64 characters", done.stderr)


class Permissions(Base):
    SENDS = ["jobs.>", "$JS.API.STREAM.MSG.GET.TROUPE", "$JS.API.STREAM.MSG.GET.JOBS"]
    LOOKS = ["$JS.API.STREAM.INFO.KV_TROUPE_STATE", "$JS.API.STREAM.MSG.GET.KV_TROUPE_STATE"]
    SERVES = ["$JS.API.CONSUMER.INFO.JOBS.actor", "$JS.API.CONSUMER.MSG.NEXT.JOBS.actor", "$JS.ACK.JOBS.actor.>",
              "$JS.API.STREAM.MSG.GET.TROUPE", "troupe.result.JOBS.*", "troupe.dead.actor", "troupe.dead.actor.JOBS.*", "$KV.*.a.actor"]

    def test_N8_who_serves_a_group_need_not_be_allowed_more_than_the_manual_says(self):
        def user(name, subjects):
            return f'{{ user: "{name}", password: "sesame", permissions: {{ publish: {json.dumps(subjects)}, subscribe: "_INBOX.>" }} }}'
        users = f'{{ user: "all", password: "sesame" }}, {user("maker", ["$JS.API.>"])}, {user("bridge", self.SERVES)}'
        server = nats.Server(self, f'authorization {{ users: [ {users} ] }}\nno_auth_user: "all"\n').start()
        nats.Bridge(self, self.supervisor({}), server, "actor", "AckWaitSec=1s\n", {
            "NATS_URL": f"nats://maker:sesame@127.0.0.1:{server.port}"}).setup()
        s = self.bridged(actor(MaxRetries=0), "Machine=a\n", server)
        s.bridge.end()
        s.bridge.environment["NATS_URL"] = f"nats://bridge:sesame@127.0.0.1:{server.port}"
        s.bridge.start().wait_told("Takes messages")
        bell = self.hold(s, "echo hello")
        ended(s.pidfd, 3)  # it hears of life for longer than AckWait
        bell.ring()
        self.assertEqual(self.result(s)[2], "hello")
        s.client.store("jobs.actor.any", "crash kill")
        self.assertEqual(s.client.next(s.letters).data, b"crash kill")
        self.wait_empty(s)
        self.until_state(s, a="up")
        self.assertEqual(s.client.messages("TROUPE"), 3)
        s.bridge.end()
        self.until_state(s, a="stopped")
        self.assertNotIn("refuses", s.bridge.log())

    def with_accounts(self, *senders):
        """A server as the manual shows it, with an account for each sender."""
        imports = """[ { service: { account: TROUPE, subject: "jobs.actor.>" } },
                       { stream: { account: TROUPE, subject: "troupe.result.JOBS.*" } } ]"""
        accounts = "".join(f'{name.upper()}: {{ users: [ {{ user: "{name}", password: "sesame" }} ], imports: {imports} }}\n' for name in senders)
        return nats.Server(self, f"""
            accounts {{
                TROUPE: {{ jetstream: enabled, users: [ {{ user: "troupe", password: "sesame" }} ],
                          exports: [ {{ service: "jobs.actor.>" }}, {{ stream: "troupe.result.JOBS.*" }} ] }}
                {accounts}
            }}
            no_auth_user: "troupe"
            """).start()

    def test_N8_who_sends_from_another_account_neither_hears_jobs_nor_forges_results(self):
        server = self.with_accounts("sender", "stranger")
        s = self.bridged(server=server)
        sender, stranger = (nats.Client(self, server, user=name, **{"pass": "sesame"}) for name in ("sender", "stranger"))
        results, jobs = sender.subscribe("troupe.result.JOBS.*"), stranger.subscribe("jobs.>")
        sender.pending(results)
        stranger.publish("troupe.result.JOBS.1", b"forged", {"Troupe-End": "succeeded"})
        self.assertEqual(stranger.pending(jobs), [])
        self.assertEqual(sender.store("jobs.actor.any", "echo hello"), 1)
        self.assertEqual(sender.next(results).data, b"hello")
        self.assertEqual(stranger.pending(jobs), [])
        self.wait_empty(s)

    def test_N8_who_sends_from_an_account_of_its_own_has_answers_sent_nowhere_else(self):
        server = self.with_accounts("sender")
        s = self.bridged(server=server)
        sender = nats.Client(self, server, user="sender", **{"pass": "sesame"})
        results = sender.subscribe("troupe.result.JOBS.*")
        self.assertEqual(sender.store("jobs.actor.any", "echo hello"), 1)
        self.assertEqual(sender.next(results).data, b"hello")
        other = s.client.store("jobs.other.any")
        for subject in ("$JS.API.STREAM.PURGE.JOBS", "$JS.API.STREAM.PURGE.TROUPE", "$JS.API.STREAM.MSG.DELETE.TROUPE",
                        "troupe.result.JOBS.99", "jobs.other.any"):
            sender.publish("jobs.actor.any", "echo hello", reply=subject)
            while sender.next(results).data != b"hello":  # in its own account, it hears the answer as well
                pass
        s.client.until(lambda: s.client.messages("JOBS") == 1)  # that of the other group
        self.assertEqual(s.client.api("STREAM.MSG.GET.JOBS", seq=other)["message"]["subject"], "jobs.other.any")
        self.assertEqual(s.client.messages("TROUPE"), 6)

    def test_N8_who_sends_jobs_and_looks_at_machines_need_not_be_allowed_more_than_the_manual_says(self):
        def user(name, subjects):
            return (f'{{ user: "{name}", password: "sesame", permissions: {{ publish: {json.dumps(subjects)}, '
                    'subscribe: ["troupe.result.>", "_INBOX.>"] } }')
        users = f'{{ user: "all", password: "sesame" }}, {user("sender", self.SENDS)}, {user("looker", self.LOOKS)}'
        server = nats.Server(self, f'authorization {{ users: [ {users} ] }}\nno_auth_user: "all"\n').start()
        s = self.bridged(configuration="Machine=a\nStateSec=1s\n", server=server)
        self.until_state(s, a="up")

        def url(name):
            return f"nats://{name}:sesame@127.0.0.1:{server.port}"
        sender = nats.Client(self, server, user="sender", **{"pass": "sesame"})
        results = sender.subscribe("troupe.result.JOBS.*")
        self.assertEqual(sender.store("jobs.actor.any", "echo hello"), 1)
        self.assertEqual(sender.next(results).data, b"hello")
        done = ctl("cluster", NATS_URL=url("looker"))
        self.assertEqual((done.stderr, done.returncode), ("", 0))
        self.assertIn("1 machine: 1 up", done.stdout)
        self.assertNotEqual(ctl("cluster", NATS_URL=url("sender")).returncode, 0)
