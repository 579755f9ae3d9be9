# SPDX-License-Identifier: MIT
"""libtroupe as a library: its exports, and programs built for an older version."""

import re
import subprocess

from troupe import BUILD, TOP, TestCase, helper, ini


class Library(TestCase):
    def test_a_program_built_with_an_older_header_runs(self):
        s = self.started({"actor": ini(helper("workers/actor"))})
        done = subprocess.run([helper("old-layout"), s.socket_path, "actor"], capture_output=True, text=True, timeout=60)
        self.assertEqual((done.returncode, done.stdout.splitlines(), done.stderr),
                         (0, ["do 0 0 by-do one", "next 0 0 by-submit two", "told hello", "later hello"], ""))

    def test_it_exports_what_its_headers_declare_and_nothing_else(self):
        declared = set()
        for name in "troupe.h", "troupe-actor.h", "troupe-query.h":
            with open(f"{TOP}/worker/{name}", encoding="utf-8") as file:
                text = re.sub(r"/\*.*?\*/", "", file.read(), flags=re.S)
            text = re.sub(r"#define(.*\\\n)*.*\n", "", text)
            declared |= set(re.findall(r"\b(troupe_\w+)\(", text))
        shown = subprocess.run(["nm", "-D", "--defined-only", f"{BUILD}/libtroupe.so.2"], capture_output=True, text=True,
                               check=True).stdout
        exported = {line.split()[2].split("@")[0] for line in shown.splitlines() if " A " not in line}
        self.assertEqual(exported, declared)
