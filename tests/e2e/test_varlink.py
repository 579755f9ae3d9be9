# SPDX-License-Identifier: MIT
"""Independent clients on the control socket: see varlink_client.py."""
import os
import subprocess
import sys

from troupe import LIMIT, TROUPE_EXEC, TestCase, ini

CLIENT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "varlink_client.py")


class Clients(TestCase):
    def run_client(self, *options):
        s = self.started({"cat": ini(f"{TROUPE_EXEC} cat", Pool={"Size": 2})})
        client = subprocess.run([sys.executable, CLIENT, *options, s.socket_path, "cat"], capture_output=True, text=True,
                                timeout=LIMIT, check=False)
        if client.returncode == 77:
            self.skipTest(client.stdout.strip())
        self.assertEqual(client.returncode, 0, client.stdout + client.stderr)

    def test_a_client_of_the_standard_library_alone(self):
        self.run_client()

    def test_a_client_that_checks_every_answer_against_the_descriptions(self):
        self.run_client("--library")
