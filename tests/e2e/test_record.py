# SPDX-License-Identifier: MIT
"""Timelines of jobs, workers and deaths, as troupectl record writes them."""
import collections
import json
import os
import signal
import subprocess
import unittest

from troupe import LIMIT, TROUPECTL, TestCase, actor

PHASES = {"X": {"pid", "tid", "ts", "dur", "name", "cat", "args"}, "M": {"pid", "tid", "name", "args"},
          "i": {"pid", "tid", "ts", "name", "s", "cat", "args"}, "C": {"pid", "tid", "ts", "name", "args"}}
METADATA = {"process_name": str, "process_sort_index": int, "thread_name": str, "thread_sort_index": int}


class Recording:
    """troupectl record, from when it has begun until stop()."""

    def __init__(self, test, s, *arguments):
        self.test, self.path = test, s.path("record.json")
        self.process = subprocess.Popen([TROUPECTL, "--socket", s.socket_path, "record", "--for", f"{LIMIT}s", self.path, *arguments],
                                        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        test.addCleanup(self.end)
        test.assertRegex(self.process.stderr.readline(), "^troupectl: recording for ")

    def end(self):
        self.process.kill()
        self.process.wait()
        self.process.stdout.close()
        self.process.stderr.close()

    def stop(self):
        """Returns the file and what was said, after the rules of the format were checked."""
        self.process.send_signal(signal.SIGINT)
        said = "".join(self.process.communicate(timeout=LIMIT))
        self.test.assertEqual(self.process.returncode, 0, said)
        with open(self.path, encoding="utf-8") as file:
            trace = json.load(file)
        self.check(trace)
        return trace, said

    def check(self, trace):
        """https://docs.google.com/document/d/1CvAClvFfyA5R-PhYUmn5OOQtYMH4h6I0nSsKchNAySU, as Perfetto reads it."""
        test, bars = self.test, collections.defaultdict(list)
        test.assertEqual(set(trace), {"traceEvents", "displayTimeUnit", "otherData"})
        test.assertEqual(trace["displayTimeUnit"], "ms")
        for event in trace["traceEvents"]:
            test.assertEqual(set(event) - {"ph"}, PHASES[event["ph"]], event)
            for member in {"pid", "tid", "ts", "dur"} & set(event):
                test.assertIsInstance(event[member], int, event)
                test.assertGreaterEqual(event[member], 0, event)
            if event["ph"] == "X":
                bars[event["pid"], event["tid"]].append((event["ts"], event["ts"] + event["dur"]))
            elif event["ph"] == "i":
                test.assertIn(event["s"], "gpt")
            elif event["ph"] == "C":
                test.assertTrue(all(isinstance(value, int) for value in event["args"].values()), event)
            elif event["ph"] == "M":
                [(name, value)] = event["args"].items()
                test.assertEqual((event["name"].rpartition("_")[2].startswith(name.rpartition("_")[2]), type(value)),
                                 (True, METADATA[event["name"]]), event)
        for row in bars.values():  # a row shows one bar at a time
            row.sort()
            for (_, end), (begin, _) in zip(row, row[1:]):
                test.assertLessEqual(end, begin)


def named(trace, kind):
    """The names of processes or rows, by number."""
    return {event["tid" if kind == "thread" else "pid"]: event["args"]["name"] for event in trace["traceEvents"]
            if event["name"] == f"{kind}_name"}


def bars(trace, **args):
    return [event for event in trace["traceEvents"] if event["ph"] == "X" and args.items() <= event["args"].items()]


def marks(trace, name):
    return [event for event in trace["traceEvents"] if event["ph"] == "i" and event["name"] == name]


class Record(TestCase):
    def test_X5_attempts_deaths_and_numbers_are_in_the_file(self):
        s = self.started({"mail": actor(2), "other": actor()})
        recording = Recording(self, s)
        job = s.do("mail", "echo done")["id"]
        died = s.create("mail", "crash kill", max_retries=1)
        s.until(lambda: s.job(died)["state"] == "dead")
        s.until(lambda: all(worker["state"] == "idle" for worker in s.workers("mail")))
        trace, said = recording.stop()
        self.assertIn("job attempts", said)
        processes, rows = named(trace, "process"), named(trace, "thread")
        self.assertLessEqual({"mail/0", "mail/1", "other/0"}, set(rows.values()))
        [bar] = bars(trace, job=job)
        self.assertEqual((processes[bar["pid"]], rows[bar["tid"]].partition("/")[0], bar["args"]["attempt"], bar["args"]["outcome"]),
                         ("mail", "mail", 1, "succeeded"))
        self.assertEqual([(bar["args"]["attempt"], bar["args"]["outcome"]) for bar in bars(trace, job=died)], [(1, "retried"), (2, "dead")])
        deaths = marks(trace, "died: SIGKILL")
        self.assertEqual([(death["args"]["job"], death["args"]["cause"], death["s"]) for death in deaths], [(died, "signal", "t")] * 2)
        self.assertEqual({rows[death["tid"]] for death in deaths}, {rows[bar["tid"]] for bar in bars(trace, job=died)})
        self.assertTrue([event for event in trace["traceEvents"] if event["ph"] == "X" and event["cat"] == "start"])
        self.assertEqual(trace["otherData"]["lost_usec"], 0)

    def test_X5_what_runs_at_the_beginning_and_at_the_end_is_cut(self):
        s = self.started({"mail": actor(3)})
        before, go = s.busy("mail")
        through, go_on = s.busy("mail")
        recording = Recording(self, s)
        go.ring()
        s.until(lambda: s.job(before)["state"] == "succeeded")
        after, go_last = s.busy("mail")
        trace, _ = recording.stop()
        for bell in go_on, go_last:
            bell.ring()
        expected = {before: (True, None), through: (True, "end of the recording"), after: (False, "end of the recording")}
        for job, (begin, end) in expected.items():
            [bar] = bars(trace, job=job)
            self.assertEqual(("cut_before_usec" in bar["args"], bar["args"].get("cut")), (begin, end), bar)
            self.assertEqual(bar["ts"] == 0, begin)
        self.assertEqual(max(event["args"]["running"] for event in trace["traceEvents"] if event["ph"] == "C"), 2)

    def test_X5_a_job_that_its_worker_had_not_begun_at_the_beginning_is_not_cut(self):
        s = self.started({"mail": actor()})
        pid = s.worker("mail/0")["pid"]
        os.kill(pid, signal.SIGSTOP)
        try:
            job = s.create("mail", "echo done")
            s.until(lambda: s.worker("mail/0").get("job") == job)
            self.assertNotIn("job_since_at", s.worker("mail/0"))
            recording = Recording(self, s)
        finally:
            os.kill(pid, signal.SIGCONT)
        s.wait_job(job)
        trace, _ = recording.stop()
        [bar] = bars(trace, job=job)
        self.assertEqual(("cut_before_usec" in bar["args"], bar["args"].get("attempt")), (False, 1), bar)

    def test_X5_a_lost_connection_is_said_and_what_runs_on_is_in_the_file(self):
        s = self.started({"mail": actor(2)})
        recording = Recording(self, s)
        job, go = s.busy("mail")
        s.until(lambda: s.job(job)["state"] == "running")
        with self.without_supervisor(s):
            self.assertRegex(recording.process.stderr.readline(), "connection to the supervisor is lost")
        self.assertRegex(recording.process.stderr.readline(), "connected again")
        go.ring()
        s.until(lambda: s.job(job)["state"] == "succeeded")
        s.do("mail", "echo done")
        trace, said = recording.stop()
        self.assertRegex(said, "connection was lost for .*: events of that time are missing")
        self.assertGreater(trace["otherData"]["lost_usec"], 0)
        self.assertEqual([mark["s"] for mark in marks(trace, "events lost: connection lost")], ["g"])
        self.assertTrue(bars(trace, job=job))

    def test_X5_one_group_may_be_recorded_and_a_bad_name_leaves_the_file(self):
        s = self.started({"mail": actor(), "other": actor()})
        recording = Recording(self, s, "mail")
        s.do("other", "echo done")
        s.do("mail", "echo done")
        trace, _ = recording.stop()
        self.assertEqual(set(named(trace, "process").values()), {"mail"})
        process = s.ctl("record", recording.path, "none")
        self.assertEqual(process.returncode, 5, process.stderr)
        with open(recording.path, encoding="utf-8") as file:
            self.assertEqual(json.load(file), trace)
        self.assertEqual(sorted(name for name in os.listdir(s.directory) if name.startswith("record.json")), ["record.json"])

    def test_X5_it_ends_by_itself(self):
        s = self.started({"mail": actor()})
        path = s.path("record.json")
        process = s.ctl("record", "--for", "1ms", "--quiet", path)
        self.assertEqual((process.returncode, process.stdout, process.stderr), (0, "", ""))
        self.assertTrue(os.path.exists(path))

    @unittest.skipUnless(os.getuid() == 0, "needs another user")
    def test_X5_strangers_may_not_record(self):
        s = self.started({"mail": actor()})
        process = s.ctl("record", "/dev/shm/troupe-record.json", user="nobody")
        self.assertEqual(process.returncode, 4, process.stderr)
        self.assertFalse(os.path.exists("/dev/shm/troupe-record.json"))


if __name__ == "__main__":
    unittest.main()
