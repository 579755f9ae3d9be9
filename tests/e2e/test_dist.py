# SPDX-License-Identifier: MIT
"""`make dist`: everybody who has the commit makes the same archive, which has what is committed, and a bill of materials."""
import json
import os
import re
import shutil
import subprocess
import tarfile
import tempfile
import unittest

TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))


def git(*arguments):
    return subprocess.run(["git", *arguments], cwd=TOP, capture_output=True, text=True, check=False)


@unittest.skipUnless(shutil.which("git") and git("rev-parse", "HEAD").returncode == 0, "needs git and its repository")
class Dist(unittest.TestCase):
    def setUp(self):
        directory = tempfile.TemporaryDirectory()
        self.addCleanup(directory.cleanup)
        self.directory = directory.name
        self.clone = os.path.join(self.directory, "clone")
        self.assertEqual(git("clone", "--quiet", "--no-hardlinks", TOP, self.clone).returncode, 0)

    def make(self, name, umask=0o022):
        out = os.path.join(self.directory, name)
        return out, subprocess.run([os.path.join(self.clone, "units/dist/make-dist"), "9.9", out], cwd=self.clone, text=True,
                                   capture_output=True, check=False, preexec_fn=lambda: os.umask(umask))

    def test_two_archives_are_the_same_and_have_what_is_committed(self):
        contents = []
        for name, umask in ("one", 0o022), ("two", 0o077):
            out, ended = self.make(name, umask)
            self.assertEqual(ended.returncode, 0, ended.stderr)
            contents.append({file: open(os.path.join(out, file), "rb").read() for file in sorted(os.listdir(out))})
        self.assertEqual(list(contents[0]), ["SHA256SUMS", "troupe-9.9.spdx.json", "troupe-9.9.tar.gz"])
        self.assertEqual(contents[0], contents[1])
        summed = subprocess.run(["sha256sum", "-c", "SHA256SUMS"], cwd=out, capture_output=True, check=False)
        self.assertEqual(summed.returncode, 0)
        with tarfile.open(os.path.join(out, "troupe-9.9.tar.gz")) as archive:
            names = {member.name for member in archive if not member.isdir()}
        self.assertEqual(names, {f"troupe-9.9/{name}" for name in git("ls-tree", "-r", "--name-only", "HEAD").stdout.split("\n")[:-1]})

    def test_what_is_not_committed_is_refused(self):
        with open(os.path.join(self.clone, "README.md"), "a", encoding="utf-8") as file:
            file.write("more\n")
        _, ended = self.make("out")
        self.assertEqual(ended.returncode, 1)
        self.assertIn("not committed", ended.stderr)

    def test_the_bill_lists_what_the_programs_are_linked_with(self):
        out, _ = self.make("out")
        with open(os.path.join(out, "troupe-9.9.spdx.json"), encoding="ascii") as file:
            bill = json.load(file)
        names = {package["name"] for package in bill["packages"]} - {"troupe"}
        with open(os.path.join(TOP, "Makefile"), encoding="utf-8") as file:
            linked = set(re.findall(r"\b(liburing|libsystemd|jansson|libseccomp|libmicrohttpd|libcurl|libdw|libnats|nettle|sqlite3)\b",
                                    file.read()))
        self.assertEqual(names, {"elfutils" if name == "libdw" else name for name in linked})


if __name__ == "__main__":
    unittest.main()
