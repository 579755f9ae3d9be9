# SPDX-License-Identifier: MIT
"""Templates: what @troupe.warm loads is in all workers, and what must differ between them does.

TESTS_FORKS=10000 is the number for a release.
"""
import json
import os
import tempfile
import unittest

import troupe_python
from troupe_python import group, needed

FORKS = int(os.environ.get("TESTS_FORKS", "50"))


@needed
class Template(troupe_python.TestCase):
    def test_each_job_gets_a_fork_of_what_was_loaded_and_its_own_random_numbers(self):
        notes = tempfile.NamedTemporaryFile("r", encoding="ascii")
        self.addCleanup(notes.close)
        environment = {**troupe_python.ENVIRONMENT, "PYTHONUNBUFFERED": "", "NOTES": notes.name}
        s = self.started({"warm": group("warm.py", environment=environment, Pool={"Size": 1, "Template": "slot", "MaxJobs": 1})})
        executed = json.loads(s.do("warm")["result"]["data"])
        self.assertEqual((executed["loaded"], executed["hooked"]), ([executed["pid"]], []))
        s.wait_event("template.ready", "warm")
        answers = [json.loads(s.do("warm")["result"]["data"]) for _ in range(FORKS)][1:]
        [loaded] = {answer["loaded"][0] for answer in answers}
        for answer in answers:
            self.assertEqual((answer["loaded"], answer["hooked"]), ([loaded], [answer["pid"]]))
            self.assertEqual((answer["threads"], answer["variables"]), (executed["threads"], executed["variables"]))
        self.assertEqual({answer["jobs"] for answer in answers}, {1})
        self.assertNotIn(loaded, {answer["pid"] for answer in answers})
        for drawn in zip(*(answer["drawn"] for answer in answers)):
            self.assertEqual(len(set(drawn)), len(answers))
        s.stop()
        ended = set(notes.read().split())
        self.assertLessEqual({str(answer["pid"]) for answer in answers}, ended)
        log = s.log()
        for answer in answers[-50:]:
            self.assertIn(f"[warm/0] after {answer['pid']}\n", log)


if __name__ == "__main__":
    unittest.main()
