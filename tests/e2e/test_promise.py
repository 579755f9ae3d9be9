# SPDX-License-Identifier: MIT
"""What a release promises stays: each line of units/promise/interfaces is still true, and libtroupe's ABI is that of
units/promise/libtroupe.abi or larger. What is new must be taken over into these files, so that it is promised on purpose."""
import os
import re
import shutil
import subprocess
import unittest

from troupe import BUILD

TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
PROMISE = os.path.join(TOP, "units", "promise")
LIBRARY = os.path.join(BUILD, "libtroupe.so.2")


def has_types(path):
    """Whether the library was built with -g: -g1 has no types, and sanitizers change the library."""
    shown = subprocess.run(["readelf", "--debug-dump=info", path], capture_output=True, text=True, check=False).stdout
    return "DW_TAG_structure_type" in shown and "-fsanitize" not in shown and "GNU C" in shown


class Promise(unittest.TestCase):
    def test_keys_verbs_options_exit_statuses_and_interfaces_stay(self):
        now = subprocess.run([os.path.join(PROMISE, "list")], cwd=TOP, capture_output=True, text=True, check=True).stdout.splitlines()
        with open(os.path.join(PROMISE, "interfaces"), encoding="ascii") as file:
            promised = file.read().splitlines()
        self.assertGreater(len(promised), 1000)
        self.assertEqual([line for line in promised if line not in set(now)], [], "promised, and no longer true")
        self.assertEqual([line for line in now if line not in set(promised)], [],
                         "new: run units/promise/list >units/promise/interfaces")

    def test_the_version_is_that_of_the_change_log_and_the_library_has_its_number(self):
        with open(os.path.join(TOP, "Makefile"), encoding="utf-8") as makefile:
            version, soname = re.search(r"^VERSION := (.*)\nSONAME := (.*)$", makefile.read(), re.M).groups()
        with open(os.path.join(TOP, "CHANGELOG.md"), encoding="utf-8") as log:
            self.assertEqual(re.search("^## (.*)$", log.read(), re.M)[1], version)
        self.assertEqual(soname, "libtroupe.so." + version.partition(".")[0])
        shown = subprocess.run([os.path.join(BUILD, "trouped"), "--version"], capture_output=True, text=True, check=True).stdout
        self.assertEqual(shown, f"trouped {version}\n")

    @unittest.skipUnless(shutil.which("abidiff") and shutil.which("readelf"), "abidiff is missing: install abigail-tools")
    def test_programs_that_are_linked_with_the_library_go_on_working(self):
        if not has_types(LIBRARY):
            self.skipTest("the library was not built by gcc with -g alone")
        compared = subprocess.run(["abidiff", os.path.join(PROMISE, "libtroupe.abi"), LIBRARY], capture_output=True, text=True,
                                  check=False)
        self.assertEqual(compared.returncode, 0, compared.stdout + compared.stderr +
                         "\nIf programs go on working: units/promise/list-abi LIBRARY >units/promise/libtroupe.abi")


if __name__ == "__main__":
    unittest.main()
