# SPDX-License-Identifier: MIT
"""troupe-nats tells of jobs in progress, gives back what others are to do, and takes over what others had."""
import os
import shutil
import signal
import subprocess
import time
import unittest
from pathlib import Path

import nats
import nkeys
from test_nats import JOBS, Case, actor
from troupe import ACTOR, LIMIT, QUICK, Bell, VarlinkError, ended, ini


class Life(Case):
    def one_behind_another(self, s, payload):
        """A job that runs until the bell rings that is returned, and one with this payload that waits for it."""
        bell = self.hold(s, "echo first")
        s.client.store("jobs.actor.any", payload)
        self.wait_state(s, "JOBS:2", "queued")
        return bell

    def test_N2_a_message_is_not_delivered_again_while_its_worker_lives(self):
        s = self.bridged(configuration="AckWaitSec=4s\n")
        bell = self.hold(s, "echo done")
        ended(s.pidfd, 10)  # more than twice AckWait, of which a busy machine may delay a good part
        self.assertEqual(self.consumer(s)["num_redelivered"], 0)
        with s.stopped():  # nobody says that the worker lives
            s.client.until(lambda: self.consumer(s)["num_redelivered"] > 0)
        bell.ring()
        self.assertEqual(self.result(s)[2], "done")
        self.wait_empty(s)

    def test_N5_what_a_dead_machine_had_is_done_by_another(self):
        first = self.bridged(configuration="AckWaitSec=1s\n")
        bell = Bell(first, "bell")
        first.client.store("jobs.actor.any", f"wait {bell.path}\npid")
        first.client.store("jobs.actor.any", "pid")
        self.wait_state(first, "JOBS:1", "running")
        self.wait_state(first, "JOBS:2", "queued")
        second = self.bridged(server=first.nats)
        worker = os.pidfd_open(first.worker("actor/0")["pid"])
        self.addCleanup(os.close, worker)
        first.bridge.end(signal.SIGKILL)
        first.kill()
        self.assertTrue(ended(worker, LIMIT))  # it would hear the bell
        bell.ring()
        pid = second.worker("actor/0")["pid"]
        self.assertEqual(sorted((number, int(data)) for number, _, data in (self.result(second), self.result(second))),
                         [(1, pid), (2, pid)])
        self.wait_empty(second)

    def test_N5_what_a_dead_or_frozen_machine_had_is_taken_over_within_twice_AckWait(self):
        for blow in signal.SIGKILL, signal.SIGSTOP:
            first = self.bridged(configuration="AckWaitSec=4s\n")
            second = self.bridged(server=first.nats)
            first.bridge.process.send_signal(blow)
            begun = time.monotonic()
            for _ in range(8):  # a part of them goes to the first, which has asked for messages
                second.client.store("jobs.actor.any", "pid")
            pid = second.worker("actor/0")["pid"]
            self.assertEqual([int(self.result(second)[2]) for _ in range(8)], [pid] * 8)
            self.assertLess(time.monotonic() - begun, 2 * 4 + 2)  # the last is delivered within 8 s, and done after that
            # The first delivery, and one more of what the first machine had.
            self.assertLessEqual(self.consumer(second)["delivered"]["consumer_seq"], 2 * 8)
            first.bridge.end(signal.SIGKILL)
            second.bridge.end()

    def freeze_until_done_elsewhere(self, server=None, configuration=""):
        first = self.bridged(configuration="AckWaitSec=2s\n" + configuration, server=server)
        second = self.bridged(configuration=configuration, server=first.nats)
        first.bridge.process.send_signal(signal.SIGSTOP)
        numbers = {second.client.store("jobs.actor.any", "pid") for _ in range(8)}
        self.wait_results(second, numbers)
        self.wait_empty(second)
        self.assertGreater(self.consumer(second)["delivered"]["consumer_seq"], len(numbers))  # the first machine had some
        second.bridge.end()
        first.bridge.process.send_signal(signal.SIGCONT)
        number = first.client.store("jobs.actor.any", "pid")
        self.wait_results(first, {number})
        self.assertEqual([job["id"] for job in first.call("List", ended=True)["jobs"]], [f"JOBS:{number}"])

    def test_N2_what_a_frozen_machine_had_and_another_has_done_is_not_done_again(self):
        self.freeze_until_done_elsewhere()

    @unittest.skipUnless(shutil.which("openssl"), "openssl is missing")
    def test_N2_what_a_frozen_machine_had_and_another_has_done_is_not_done_again_with_TLS(self):
        certificate, key = nkeys.certificate(self)
        server = nats.Server(self, f'tls {{ cert_file: "{certificate}", key_file: "{key}" }}\n', certificate=certificate).start()
        self.freeze_until_done_elsewhere(server, f"CAFile={certificate}\n")

    def test_N5_a_machine_that_stops_gives_back_what_has_not_begun(self):
        first = self.bridged()
        bell = self.one_behind_another(first, "pid")
        second = self.bridged(server=first.nats)
        first.bridge.process.terminate()
        number, _, pid = self.result(second)
        self.assertEqual((number, int(pid)), (2, second.worker("actor/0")["pid"]))
        bell.ring()
        self.assertEqual(self.result(second)[2], "first")
        self.assertEqual(first.bridge.process.wait(LIMIT), 0)
        self.wait_empty(second)

    def test_N5_a_machine_that_stops_gives_back_what_it_has_no_room_for(self):
        first = self.bridged(actor(QueueMax=1), "AckWaitSec=60min\n")
        bell = self.one_behind_another(first, "pid")
        with first.stopped():
            first.client.store("jobs.actor.any", "pid")
            first.client.until(lambda: self.consumer(first)["num_ack_pending"] == 3)
            second = self.bridged(server=first.nats)
            first.bridge.process.terminate()
            first.bridge.wait_told("STOPPING=1")
        pid = second.worker("actor/0")["pid"]
        self.assertEqual({(number, int(data)) for number, _, data in (self.result(second) for _ in range(2))}, {(2, pid), (3, pid)})
        bell.ring()
        self.assertEqual(first.bridge.process.wait(LIMIT), 0)
        self.wait_empty(second)

    def withdrawing(self, ack_wait):
        """A machine that has a job in its queue, and gives it back once its group stops."""
        s = self.supervisor({"actor": actor()}).start()
        s.nats, s.client = (server := nats.Server(self).start()), nats.Client(self, server)
        s.bridge = nats.Bridge(self, s, server, "actor", f"AckWaitSec={ack_wait}\n").setup().start()
        s.bridge.wait_told("Takes messages")
        s.bell = Bell(s, "bell")
        s.call("Pause", target="actor")
        s.client.store("jobs.actor.any", f"wait {s.bell.path}\necho first")
        self.wait_state(s, "JOBS:1", "queued")
        return s

    def test_N2_what_is_given_back_while_the_engine_is_away_is_not_given_back_later(self):
        s = self.withdrawing("60min")
        s.nats.end()
        s.bridge.wait_told("NATS is away")
        s.call("Stop", target="actor")
        s.until(lambda: s.job("JOBS:1")["state"] == "cancelled")
        s.call("Resume", target="actor")
        s.call("Start", target="actor")
        s.nats.start()
        s.bridge.wait_told("Takes messages")
        s.client = nats.Client(self, s.nats)
        s.results = s.client.subscribe("troupe.result.JOBS.*")
        s.bell.ring()
        s.client.store("jobs.actor.any", "echo second")
        self.assertEqual(self.result(s)[::2], (2, "second"))
        self.assertEqual(self.consumer(s)["delivered"]["consumer_seq"], 2)

    def test_N2_a_machine_that_was_frozen_does_not_give_back_what_another_one_has(self):
        first = self.withdrawing("2s")
        first.bridge.process.send_signal(signal.SIGSTOP)
        second = self.bridged(server=first.nats)
        self.wait_state(second, "JOBS:1", "running")
        of_first = second.client.subscribe("$JS.ACK.JOBS.actor.1.1.>")
        second.client.pending(of_first)
        first.call("Stop", target="actor")
        first.bridge.process.send_signal(signal.SIGCONT)
        first.until(lambda: first.job("JOBS:1")["state"] == "cancelled")
        first.bridge.end()
        self.assertNotIn(b"-NAK", [message.data for message in second.client.pending(of_first)])
        first.bell.ring()
        self.assertEqual(self.result(second)[::2], (1, "first"))

    def test_N5_what_was_given_back_is_done_when_it_comes_again(self):
        s = self.bridged()
        bell = self.one_behind_another(s, "echo second")
        s.bridge.process.terminate()
        s.wait_job("JOBS:2")  # cancelled
        bell.ring()
        self.assertEqual(s.bridge.process.wait(LIMIT), 0)
        s.bridge.start()
        self.assertEqual([self.result(s)[2] for _ in range(2)], ["first", "second"])
        self.wait_empty(s)

    def test_N3_what_was_given_back_and_has_come_again_is_recognised_though_the_first_result_is_gone(self):
        s = self.bridged(actor(2, ResultsMax=1), "AckWaitSec=1s\n")
        started, bell = Bell(s, "started"), Bell(s, "bell")
        s.call("Pause", target="actor")
        s.client.store("jobs.actor.any", f"ring {started.path}\nwait {bell.path}\necho done")
        self.wait_state(s, "JOBS:1", "queued")
        self.assertEqual(s.bridge.end(), 0)  # gives it back
        s.call("Resume", target="actor")
        s.bridge.start()
        self.wait_state(s, "JOBS:1:1", "running")
        s.wait_job(s.create("actor", "echo local"))  # its result takes the place of that of the first one
        self.assertRaises(VarlinkError, s.job, "JOBS:1")
        s.bridge.end(signal.SIGKILL)
        bell.ring()
        s.wait_job("JOBS:1:1")
        s.bridge.start()
        self.wait_empty(s)
        self.assertEqual(os.read(started.fd, 100), b"rung\n")

    FAILS = {**QUICK, "StartLimitBurst": 3, "StartLimitIntervalSec": "1h"}

    def test_what_has_come_again_is_done_though_the_store_of_other_groups_has_failed(self):
        s = self.supervisor({"actor": actor(), "kept": actor(Durable="yes")}, state=True).with_failing_syncs().start()
        server = nats.Server(self).start()
        s.client = nats.Client(self, server)
        s.results, taken = s.client.subscribe("troupe.result.JOBS.*"), s.client.subscribe("taken")
        bridge = nats.Bridge(self, s, server, "actor").setup()
        s.client.store("jobs.actor.any", "echo hello")
        s.client.publish("$JS.API.CONSUMER.MSG.NEXT.JOBS.actor", reply="taken")
        s.client.publish(s.client.next(taken).reply, "-NAK")
        with open(s.path("fails"), "w", encoding="ascii"):
            pass
        self.assertRaises(VarlinkError, s.create, "kept", "echo")
        bridge.start()
        self.assertEqual(self.result(s)[2], "hello")
        self.assertNotIn("takes no jobs", bridge.log())

    def fail_group(self, s):
        """Kills the worker until its group has failed."""
        def next_state(generation):
            worker = s.worker("actor/0")
            return worker if worker["state"] == "failed" or (worker["generation"], worker["state"]) == (generation, "idle") else None
        worker = s.worker("actor/0")
        while worker["state"] != "failed":
            os.kill(worker["pid"], signal.SIGKILL)
            worker = s.wait_for(lambda: next_state(worker["generation"] + 1), "actor")

    # In these, nothing comes again by itself: AckWait is an hour.

    def test_N5_a_group_that_has_failed_gives_its_jobs_to_another_machine_at_once(self):
        first = self.bridged(ini(ACTOR, Restart=self.FAILS, Jobs={"BackoffMinSec": "1h", "BackoffMaxSec": "1h"}),
                             "AckWaitSec=60min\n")
        first.client.store("jobs.actor.any", "before 2 retry 1 again\npid")
        self.wait_state(first, "JOBS:1", "backoff")
        first.call("Pause", target="actor")
        first.client.store("jobs.actor.any", "pid")
        self.wait_state(first, "JOBS:2", "queued")
        first.client.store("jobs.actor.any", "pid", {"Troupe-Delay": "100ms"})
        first.client.until(lambda: self.consumer(first)["num_ack_pending"] == 3)
        second = self.bridged(server=first.nats)
        self.fail_group(first)
        pid = second.worker("actor/0")["pid"]
        self.assertEqual({(number, int(data)) for number, _, data in (self.result(second) for _ in range(3))},
                         {(1, pid), (2, pid), (3, pid)})
        self.wait_empty(second)

    def test_N5_a_group_that_has_failed_takes_nothing_until_it_is_reset(self):
        s = self.bridged(ini(ACTOR, Restart=self.FAILS), "AckWaitSec=60min\n")
        self.fail_group(s)
        s.bridge.wait_told("Gives messages back")
        s.client.store("jobs.actor.any", "echo later")
        ended(s.pidfd, 7)  # it asks again every 5 seconds
        # By the request that was open, if it was quick; it is given back then, and pending all the same.
        self.assertLessEqual(self.consumer(s)["delivered"]["consumer_seq"], 1)
        s.call("Reset", target="actor")
        self.assertEqual(self.result(s)[2], "later")
        self.wait_empty(s)

    def test_N5_a_stopped_group_gives_its_jobs_to_another_machine(self):
        first = self.bridged(configuration="AckWaitSec=60min\n")
        first.call("Pause", target="actor")
        first.client.store("jobs.actor.any", "pid")
        self.wait_state(first, "JOBS:1", "queued")
        second = self.bridged(server=first.nats)
        first.call("Stop", target="actor")
        self.assertEqual(int(self.result(second)[2]), second.worker("actor/0")["pid"])
        self.wait_empty(second)

    def test_N5_a_supervisor_that_stops_gives_what_it_refuses_to_another_machine(self):
        for durable in "no", "yes":
            first = self.bridged(actor(Durable=durable), "AckWaitSec=60min\n")
            bell = self.hold(first, "echo first")  # the job that waits for it may come to the other machine, too
            first.terminate()
            first.wait_told("STOPPING=1")
            first.client.store("jobs.actor.any", "pid")
            first.client.until(lambda: "takes no jobs" in first.bridge.log())
            second = self.bridged(actor(2), server=first.nats)
            # By the first one's subscription, which was there before the other bridge has started.
            self.assertIn(int(self.result(first)[2]), [second.worker(f"actor/{n}")["pid"] for n in range(2)])
            bell.ring()
            first.bridge.end(signal.SIGKILL)
            second.bridge.end()

    def test_N2_a_durable_job_is_not_done_elsewhere_while_its_supervisor_stops(self):
        first = self.bridged(actor(Durable="yes"), "AckWaitSec=1s\n")
        bell = self.one_behind_another(first, "pid")
        second = self.bridged(server=first.nats)
        first.terminate()
        first.wait_told("STOPPING=1")
        first.client.until(lambda: "takes no jobs" in first.bridge.log())
        ended(first.pidfd, 4)  # it hears of no life for longer than AckWait
        self.assertEqual(second.client.pending(second.results), [])
        self.assertEqual(self.consumer(second)["num_redelivered"], 0)
        bell.ring()
        first.bridge.end()

    def test_a_message_without_a_key_is_refused_as_no_group_takes_it(self):
        s = self.bridged()
        self.assertIn("503", s.client.request("jobs.actor", "echo").headers[""])
        s.client.store("jobs.actor.any", "echo done")
        self.assertEqual(self.result(s)[2], "done")

    def test_setup_says_what_is_new_and_leaves_alone_what_exists(self):
        server = nats.Server(self).start()
        client = nats.Client(self, server)
        bridge = nats.Bridge(self, self.supervisor({}), server, "actor")

        def said(configuration=""):
            Path(bridge.config).write_text(f"[Nats]\nURL={server.url}\n{configuration}", encoding="utf-8")
            done = bridge.run("setup", "actor")
            self.assertEqual(done.returncode, 0, done.stderr)
            return done.stderr.replace("troupe-nats: ", "").splitlines()
        everything = ["stream JOBS", "stream TROUPE", "consumer actor", "bucket TROUPE_STATE"]
        self.assertEqual(said(), [f"info: {what} is new" for what in everything])
        self.assertEqual(said("AckWaitSec=1500ms\n"), [f"info: {what} exists and is unchanged" for what in everything])
        [consumer] = client.api("CONSUMER.LIST.JOBS")["consumers"]
        self.assertEqual(consumer["config"]["ack_wait"], 30 * 10**9)

    def test_setup_does_not_make_a_stream_anew_whose_name_has_results(self):
        server = nats.Server(self).start()
        client = nats.Client(self, server)
        supervisor = self.supervisor({})
        bridge = nats.Bridge(self, supervisor, server, "actor").setup()
        client.store("troupe.result.JOBS2.17")
        client.store("troupe.result.JOBS.17")
        client.store("troupe.dead.JOBS.JOBS2.17")
        client.store("troupe.dead.other.JOBS.17")
        bridge.setup()  # the stream exists, and has results of its own
        nats.Bridge(self, supervisor, server, "another").setup()
        for stream in "JOBS", "KV_TROUPE_STATE":
            client.api(f"STREAM.DELETE.{stream}")
        done = bridge.run("setup", "actor")
        self.assertEqual(done.returncode, 1)
        self.assertEqual(len(done.stderr.splitlines()), 1)
        for part in "stream JOBS: not created", "troupe.result.JOBS.17", "Stream=":
            self.assertIn(part, done.stderr)
        self.assertEqual(client.api("STREAM.NAMES")["streams"], ["TROUPE"])
        client.api("STREAM.PURGE.TROUPE", filter="troupe.result.JOBS.>")
        self.assertIn("troupe.dead.other.JOBS.17", bridge.run("setup", "actor").stderr)
        client.api("STREAM.PURGE.TROUPE", filter="troupe.dead.*.JOBS.>")
        bridge.setup()
        self.assertEqual(client.messages("TROUPE"), 2)

    def test_setup_makes_no_stream_if_it_cannot_learn_of_results(self):
        server = nats.Server(self, 'authorization { users: [ { user: "troupe", password: "sesame", permissions: '
                             '{ publish: { deny: "$JS.API.STREAM.MSG.GET.>" } } } ] }\n').start()
        client = nats.Client(self, server, user="troupe", **{"pass": "sesame"})
        bridge = nats.Bridge(self, self.supervisor({}), server, "actor", environment={
            "NATS_URL": f"nats://troupe:sesame@127.0.0.1:{server.port}"})
        done = bridge.run("setup", "actor")
        self.assertEqual(done.returncode, 1)
        self.assertIn("stream JOBS: not created, because it is unknown whether there are results", done.stderr)
        self.assertFalse(client.api("STREAM.NAMES")["streams"])

    def test_setup_leaves_a_consumer_alone_that_it_cannot_learn_of(self):
        server = nats.Server(self).start()
        s = self.supervisor({})
        nats.Bridge(self, s, server, "actor", "AckWaitSec=1s\n").setup()
        server.end()
        server.configuration = ('authorization { users: [ { user: "troupe", password: "sesame", permissions: '
                                '{ publish: { deny: "$JS.API.CONSUMER.INFO.>" } } } ] }\n')
        server.start()
        client = nats.Client(self, server, user="troupe", **{"pass": "sesame"})
        Path(s.path("nats.conf")).write_text("[Nats]\nAckWaitSec=2s\n", encoding="utf-8")
        done = subprocess.run([nats.TROUPE_NATS, "--config", s.path("nats.conf"), "setup", "actor"], capture_output=True, text=True,
                              env={**os.environ, "NATS_URL": f"nats://troupe:sesame@127.0.0.1:{server.port}"}, timeout=LIMIT)
        self.assertEqual(done.returncode, 1)
        self.assertIn("consumer actor: ", done.stderr)
        [consumer] = client.api("CONSUMER.LIST.JOBS")["consumers"]
        self.assertEqual(consumer["config"]["ack_wait"], 10**9)

    def test_a_warning_tells_that_a_consumer_does_not_deliver_for_ever(self):
        s = self.bridged()
        self.assertNotIn("max deliver", s.bridge.log())
        s.bridge.end()
        s.client.api("CONSUMER.DELETE.JOBS.actor")
        s.client.api("CONSUMER.DURABLE.CREATE.JOBS.actor", stream_name=JOBS, config={"durable_name": "actor", "ack_policy": "explicit", "max_deliver": 5})
        s.bridge.start().wait_told("Takes messages")
        self.assertIn("consumer actor of stream JOBS: max deliver is 5, not -1", s.bridge.log())

    def test_a_consumer_that_needs_no_acknowledgement_of_each_message_is_not_used(self):
        s = self.supervisor({"actor": actor()}).start()
        server = nats.Server(self).start()
        client = nats.Client(self, server)
        client.api("STREAM.CREATE.JOBS", name=JOBS, subjects=["jobs.*.>"], storage="file")
        client.api("CONSUMER.DURABLE.CREATE.JOBS.actor", stream_name=JOBS, config={"durable_name": "actor", "ack_policy": "all"})
        bridge = nats.Bridge(self, s, server, "actor").start()
        bridge.wait_told("Waits for the consumer")
        self.assertIn('its ack policy is not explicit; "troupe-nats setup" creates another one once it is deleted', bridge.log())

    def test_setup_says_that_a_server_has_no_JetStream(self):
        s = self.supervisor({"actor": actor()})
        server = nats.Server(self, "jetstream: false\n").start()
        done = nats.Bridge(self, s, server, "actor").run("setup", "actor")
        self.assertEqual(done.returncode, 1)
        self.assertIn("stream JOBS: the server has no JetStream, or is electing a leader", done.stderr)

    @unittest.skipUnless(os.geteuid() == 0, "needs root")
    def test_who_may_create_no_jobs_is_told_who_may(self):
        s = self.bridged()
        s.bridge.end()
        s.bridge.wrapper = "setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"
        self.assertEqual(s.bridge.start().process.wait(LIMIT), 1)
        self.assertIn("members of AdminGroup= may create jobs", s.bridge.log())

    def test_keys_are_pinned_to_machines_by_consumers_with_filters(self):
        s = self.bridged(configuration="Consumer=a\nFilter=jobs.actor.a.>\n")
        other = self.bridged(server=s.nats, configuration="Consumer=b\nFilter=jobs.actor.b.>\n")
        for n in range(10):
            for key in "a", "b":
                s.client.store(f"jobs.actor.{key}.{n}", "pid")
        pids = {}
        while len(pids) < 20:
            number, _, pid = self.result(s)
            pids[number] = int(pid)
        self.assertEqual(pids, {n: (s, other)[n % 2 == 0].worker("actor/0")["pid"] for n in range(1, 21)})
        for configuration, problem in (
                ("", "consumer actor: another consumer of stream JOBS has messages of jobs.actor.>, and must be removed first"),
                ("Consumer=c\nFilter=jobs.other.>\n", "nats.conf:4: Filter=: no valid value; allowed: jobs.GROUP.KEY with the group of the command, where"),
                ("Filter=jobs.actor.>.a\n", "nats.conf:3: Filter=: no valid"),
                ("Filter=jobs.actor.a..b\n", "nats.conf:3: Filter=: no valid"),
                ("Filter=jobs.actor.a*\n", "nats.conf:3: Filter=: no valid"),
                ("Consumer=a.b\n", "nats.conf:3: Consumer=: no valid value; allowed: a name of A-Z a-z")):
            Path(s.bridge.config).write_text(f"[Nats]\nURL={s.nats.url}\n{configuration}", encoding="utf-8")
            done = subprocess.run([nats.TROUPE_NATS, "--config", s.bridge.config, "setup", "actor"], capture_output=True,
                                  text=True, timeout=LIMIT)
            self.assertRegex(done.stderr, problem)
            self.assertEqual(done.returncode, 1)

    def test_N5_a_drained_group_gives_its_messages_to_another_machine(self):
        first = self.bridged()
        first.call("Drain", target="actor")
        first.client.store("jobs.actor.any", "pid")
        first.client.until(lambda: "takes no jobs" in first.bridge.log())
        second = self.bridged(server=first.nats)
        # By the first one's subscription, which was there before the other bridge has started.
        self.assertEqual(int(self.result(first)[2]), second.worker("actor/0")["pid"])

    def test_N5_a_group_that_drains_gives_back_what_waits_for_another_attempt_and_works_off_the_queue(self):
        first = self.bridged(actor(BackoffMinSec="60min", BackoffMaxSec="60min"), "AckWaitSec=3s\n")
        bell = Bell(first, "bell")
        crashed = first.client.store("jobs.actor.any", f"before 2 wait {bell.path}\nbefore 2 crash kill\nattempt")
        queued = first.client.store("jobs.actor.any", "pid")
        self.wait_state(first, f"JOBS:{queued}", "queued")
        first.call("Drain", target="actor")
        first.client.until(lambda: "takes no jobs" in first.bridge.log())
        second = self.bridged(server=first.nats)
        bell.ring()
        done, _, data = self.result(first)
        self.assertEqual((done, int(data)), (queued, first.worker("actor/0")["pid"]))
        self.wait_state(second, f"JOBS:{crashed}", "running")
        bell.ring()
        self.assertEqual(self.result(first)[0], crashed)

    def test_a_job_that_somebody_cancelled_is_not_done_when_it_comes_again(self):
        s = self.bridged(configuration="AckWaitSec=1s\n")
        s.client.store("jobs.actor.any", "until-cancelled")
        self.wait_state(s, "JOBS:1", "running")
        s.bridge.end(signal.SIGKILL)
        s.call("Cancel", id="JOBS:1")
        s.wait_job("JOBS:1")
        s.bridge.start()
        self.assertEqual(self.result(s)[1]["Troupe-End"], "cancelled")
        self.wait_empty(s)

    def test_a_job_that_somebody_cancels_is_not_done_elsewhere(self):
        s = self.bridged()
        s.client.store("jobs.actor.any", "until-cancelled")
        self.wait_state(s, "JOBS:1", "running")
        s.call("Cancel", id="JOBS:1")
        self.assertEqual(self.result(s)[1]["Troupe-End"], "cancelled")
        self.wait_empty(s)

    def test_a_durable_job_that_somebody_cancels_is_not_done_again_though_the_supervisor_crashes(self):
        s = self.bridged(actor(Durable="yes"), "AckWaitSec=1s\n")
        bell = self.hold(s, "echo done")
        s.call("Cancel", id="JOBS:1")
        s.crash()
        s.until(lambda: s.job("JOBS:1").get("cancel_requested"))
        bell.ring()
        self.assertEqual(self.result(s)[1]["Troupe-End"], "cancelled")
        self.wait_empty(s)

    def test_N2_a_consumer_whose_AckWait_becomes_shorter_hears_of_life_more_often(self):
        s = self.bridged(configuration="AckWaitSec=60min\n")
        consumer = self.consumer(s)["config"]
        s.client.api("CONSUMER.DURABLE.CREATE.JOBS.actor", stream_name=JOBS, config={**consumer, "ack_wait": 2 * 10**9})
        acknowledgements = s.client.subscribe("$JS.ACK.JOBS.>")
        bell = Bell(s, "bell")
        s.client.store("jobs.actor.any", f"wait {bell.path}")
        self.assertEqual(s.client.next(acknowledgements).data, b"+WPI")
        bell.ring()

    def test_a_consumer_that_is_made_anew_is_used_as_it_is_now(self):
        s = self.bridged(configuration="AckWaitSec=60min\n")
        s.client.api("CONSUMER.DELETE.JOBS.actor")
        s.bridge.wait_told("Waits for the consumer")
        self.assertEqual(s.bridge.log().count("consumer actor of stream JOBS: consumer not found"), 1)
        s.bridge.setup()
        s.bridge.wait_told("Takes messages")
        s.client.store("jobs.actor.any", "echo hello")
        self.assertEqual(self.result(s)[2], "hello")

    def test_a_consumer_with_a_tiny_AckWait_does_not_keep_the_bridge_from_its_work(self):
        s = self.supervisor({"actor": actor()})
        s.start()
        server = nats.Server(self).start()
        client = nats.Client(self, server)
        client.api("STREAM.CREATE.JOBS", name="JOBS", subjects=["jobs.>"], retention="workqueue", storage="file")
        client.api("CONSUMER.DURABLE.CREATE.JOBS.actor", stream_name="JOBS", config={
            "durable_name": "actor", "ack_policy": "explicit", "ack_wait": 2000, "filter_subject": "jobs.actor.>",
            "max_deliver": -1})
        bridge = nats.Bridge(self, s, server, "actor").setup().start()
        bridge.wait_told("Takes messages")
        results = client.subscribe("troupe.result.JOBS.*")
        bell = Bell(s, "bell")
        client.store("jobs.actor.any", f"wait {bell.path}\necho hello")
        self.wait_state(s, "JOBS:1", "running")
        bell.ring()
        self.assertEqual(client.next(results).data, b"hello")
