# SPDX-License-Identifier: MIT
"""The examples, troupe-exec, and what `make install` installs."""
import gzip
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import unittest
import urllib.request
from pathlib import Path

from troupe import BUILD, LIMIT, QUICK, SANITIZED, TOP, TROUPECTL, TROUPE_EXEC, TestCase, can_mount, end_process, example, ini, limit, text

FAST = {"BackoffMinSec": "1ms", "BackoffMaxSec": "5ms"}


class Count(TestCase):
    def setUp(self):
        self.s = self.started({"count": ini(example("count"), Pool={"Size": 2}, Jobs=FAST, Restart=QUICK,
                                            Resources={"LimitCORE": 0})})

    def published(self, id):
        """Its published state, once that has reached 3."""
        return self.s.until(lambda: (lambda j: j if '"count":3' in (j.get("published") or {}).get("data", "") else None)
                            (self.s.job(id)))

    def test_J1_J3_it_counts_and_what_is_rejected_is_final(self):
        for work, end in ("5", "succeeded"), ("5 reject", "rejected"):
            job = self.s.do("count", work)
            self.assertEqual((job["state"], job["attempt"]), (end, 1))

    @unittest.skipIf(SANITIZED, "it crashes on purpose, which is what a sanitizer is there to find")
    def test_J3_J4_a_crash_and_an_error_are_retried_and_always_crashing_is_dead(self):
        for word in "crash-at=3", "error-at=3":
            job = self.s.do("count", f"5 {word} attempts=2")
            self.assertEqual((job["state"], job["attempt"]), ("succeeded", 3), word)
        job = self.s.do("count", "5 crash-at=3", max_retries=1)
        self.assertEqual((job["state"], job["attempt"]), ("dead", 2))

    def test_J5_cancelled_while_it_counts(self):
        self.s.create("count", "1000000000 pause=1", id="long")
        self.s.until(lambda: self.s.job("long").get("published"))
        self.s.call("Cancel", id="long")
        self.assertEqual(self.s.wait_job("long")["state"], "cancelled")

    def test_J6_how_far_it_got_is_read_while_it_hangs_and_after_it_died(self):
        self.s.create("count", "5 stuck-at=3 attempts=1", id="stuck", timeout_usec=1000000)
        self.assertEqual(self.published("stuck")["state"], "running")
        self.assertEqual(self.s.wait_job("stuck")["state"], "succeeded")
        self.assertIn('"count":3', self.s.deaths()[0]["state"]["data"])


class Header(TestCase):
    @unittest.skipUnless(shutil.which("g++"), "no g++")
    def test_troupe_h_is_understood_by_every_C_plus_plus_since_2011(self):
        program = ('#include "troupe.h"\nint main()\n{\n    struct troupe_job_options options = TROUPE_JOB_DEFAULTS;\n'
                   "    return options.max_retries == -1 ? 0 : 1;\n}\n")
        for standard in "c++11", "c++14", "c++17", "c++20":
            with self.subTest(standard):
                subprocess.run(["g++", f"-std={standard}", "-pedantic", "-Wall", "-Wextra", "-Werror", "-fsyntax-only",
                                "-I", os.path.join(TOP, "worker"), "-x", "c++", "-"], input=program, text=True, check=True)


class Groups(TestCase):
    """The examples for programs of the archive, as they are installed, except for paths, the user, and memory limits; and
    for the profile where there is no CAP_SYS_ADMIN."""

    # Places that Profile=strict hides, although this tree, and with it troupe-exec, may be there.
    OPENED = {"/tmp/": "PrivateTmp=no\nReadWritePaths=/tmp", "/home/": "ProtectHome=no", "/root/": "ProtectHome=no"}

    FOLDER = os.path.join(TOP, "units", "examples")

    def read(self, name):
        body = Path(os.path.join(self.FOLDER, name + ".group")).read_text(encoding="utf-8")
        body = body.replace("/usr/libexec/troupe/troupe-exec", TROUPE_EXEC).replace("/usr/share/doc/troupe/examples", self.FOLDER)
        if can_mount():
            if "Profile=strict\n" in body:
                body = body.replace("User=troupe\n", "User = nobody\n")  # root is refused
            opened = {key for place, key in self.OPENED.items() if TROUPE_EXEC.startswith(place)}
            body = body.replace("Profile=strict\n", "\n".join(["Profile=strict", *opened, ""]))
        else:
            body = re.sub(r"^Profile=.*\n", "", body, flags=re.M)
        return re.sub(r"^(User|MemoryMax|CPUWeight)=.*\n", "", body, flags=re.M)

    def test_each_has_a_profile_and_strict_if_it_reads_files_of_strangers(self):
        strict = set()
        for name in os.listdir(self.FOLDER):
            if name.endswith(".group"):
                with open(os.path.join(self.FOLDER, name), encoding="utf-8") as file:
                    [profile] = re.findall(r"^Profile=(\w+)$", file.read(), re.M)
                self.assertIn(profile, ("basic", "strict"))
                strict |= {name} if profile == "strict" else set()
        self.assertEqual(strict, {"office-pdf.group", "pdf-text.group", "thumbnails.group"})

    def made(self, *command, input=b""):
        """What a program makes for the example; skips the test without it."""
        if not shutil.which(command[0]):
            self.skipTest(f"no {command[0]}")
        return subprocess.run(command, input=input, check=True, capture_output=True, timeout=LIMIT).stdout

    def done(self, name, data, program):
        """The exit status, output and errors of a job."""
        if not shutil.which(program):
            self.skipTest(f"no {program}")
        s = self.started({name: self.read(name)})
        process = subprocess.run([TROUPECTL, "--socket", s.socket_path, "do", name, "--file", "-", "--timeout", f"{int(LIMIT)}s"],
                                 input=data, capture_output=True, timeout=LIMIT)
        return process.returncode, process.stdout, process.stderr

    def test_each_is_valid(self):
        names = [name[:-len(".group")] for name in sorted(os.listdir(self.FOLDER)) if name.endswith(".group")]
        self.assertGreaterEqual(len(names), 6)
        with tempfile.TemporaryDirectory() as directory:
            for name in names:
                path = os.path.join(directory, name + ".group")
                Path(path).write_text(self.read(name), encoding="utf-8")
            process = subprocess.run([TROUPECTL, "verify", "--config", directory], capture_output=True, text=True, timeout=LIMIT)
        problems = [line for line in process.stdout.splitlines() if not re.match(r"no (problems|errors, \d+ warnings?)$", line) and "no such file" not in line]  # a program may be missing here
        self.assertEqual((problems, process.stderr), ([], ""))

    def test_thumbnails_of_pictures(self):
        if not shutil.which("identify"):  # a program named convert may be another one
            self.skipTest("no ImageMagick")
        picture = self.made("convert", "-size", "1600x900", "gradient:red-blue", "jpg:-")
        status, result, _ = self.done("thumbnails", picture, "convert")
        self.assertEqual(status, 0)
        self.assertEqual(self.made("identify", "-format", "%m %w", "-", input=result), b"PNG 256")

    def test_the_text_of_a_pdf_and_that_something_is_none(self):
        drawing = b"%!PS\n/Helvetica findfont 20 scalefont setfont 100 500 moveto (Hello Troupe) show showpage\n"
        pdf = self.made("ps2pdf", "-", "-", input=drawing)
        status, result, _ = self.done("pdf-text", pdf, "pdftotext")
        self.assertEqual((status, result.split()), (0, [b"Hello", b"Troupe"]))
        status, _, complaint = self.done("pdf-text", b"nothing", "pdftotext")
        self.assertEqual(status, 1)
        self.assertIn(b"rejected", complaint)

    def test_a_pdf_of_a_document(self):
        status, result, complaint = self.done("office-pdf", b"Hello Troupe\n", "soffice")
        self.assertEqual((status, result[:4]), (0, b"%PDF"), complaint)

    def test_the_sound_of_a_film(self):
        with tempfile.TemporaryDirectory() as directory:
            path = os.path.join(directory, "a film.mkv")
            self.made("ffmpeg", "-v", "error", "-f", "lavfi", "-i", "sine=duration=1", "-c:a", "flac", "file:" + path)
            status, result, complaint = self.done("sound", path.encode(), "ffmpeg")
            self.assertEqual((status, result[:4]), (0, b"OggS"), complaint)

    def test_words_by_a_script_in_python(self):
        status, result, _ = self.done("words", "Hüte, Hüte und Töne".encode(), "python3")
        self.assertEqual((status, json.loads(result)), (0, {"hüte": 2, "und": 1, "töne": 1}))
        status, _, complaint = self.done("words", b"\xff", "python3")
        self.assertEqual(status, 1)
        self.assertIn(b"not a text in UTF-8", complaint)

    def test_senders_by_a_pipeline(self):
        status, result, _ = self.done("senders", gzip.compress(b"10.0.0.1 a\n10.0.0.2 b\n10.0.0.2 c\n"), "zcat")
        self.assertEqual((status, result.split()), (0, [b"2", b"10.0.0.2", b"1", b"10.0.0.1"]))


@unittest.skipIf(SANITIZED, "what is installed is not instrumented")
class Installed(TestCase):
    def make(self, root, *arguments):
        environment = {key: value for key, value in os.environ.items() if key not in ("MAKEFLAGS", "MAKELEVEL", "MFLAGS")}
        subprocess.run(["make", "--no-print-directory", "-C", TOP, f"BUILD={BUILD}", f"DESTDIR={root}", *arguments],
                       check=True, timeout=LIMIT, capture_output=True, env=environment)

    def files(self, root):
        return sorted(os.path.relpath(os.path.join(folder, name), root) for folder, _, names in os.walk(root)
                      for name in names)

    @limit(180)
    def test_uninstall_removes_exactly_what_install_put_there(self):
        with tempfile.TemporaryDirectory() as root:
            own = os.path.join(root, "usr/bin/other")
            os.makedirs(os.path.dirname(own))
            with open(own, "w", encoding="ascii"):
                pass
            self.make(root, "PREFIX=/usr", "install-files")
            names = self.files(root)
            for name in ("usr/sbin/trouped", "usr/bin/troupectl", "usr/libexec/troupe/troupe-exec", "usr/include/troupe.h", "usr/include/troupe-actor.h",
                         "usr/include/troupe-query.h",
                         "usr/lib/systemd/system/trouped.service", "usr/lib/systemd/system/trouped.socket",
                         "usr/lib/sysusers.d/troupe.conf", "usr/share/man/man8/trouped.8"):
                self.assertIn(name, names)
            package = os.path.join(root, "usr/lib/python3/dist-packages/troupe")
            subprocess.run([sys.executable, "-m", "compileall", "-q", package], check=True, timeout=LIMIT)
            self.make(root, "PREFIX=/usr", "uninstall")
            self.assertEqual(self.files(root), ["usr/bin/other"])
            self.assertFalse(os.path.exists(package))  # Python would import an empty package

    @limit(180)
    def test_the_worker_of_the_manual_compiles_against_what_is_installed_and_works(self):
        manual = Path(os.path.join(TOP, "worker/troupe.3")).read_text(encoding="utf-8")
        code = manual.split(".Sh EXAMPLES")[1].split(".Bd -literal\n")[1].split(".Ed")[0].replace("\\e", "\\")
        with tempfile.TemporaryDirectory() as root:
            os.chmod(root, 0o755)
            self.make("", f"PREFIX={root}", "install-files")
            source = os.path.join(root, "echo.c")
            Path(source).write_text(code, encoding="utf-8")
            [pkgconfig] = [folder for folder, _, names in os.walk(root) if "troupe.pc" in names]
            flags = subprocess.run(["pkg-config", "--cflags", "--libs", "troupe"], check=True, capture_output=True, text=True,
                                   env={**os.environ, "PKG_CONFIG_PATH": pkgconfig}).stdout.split()
            program = os.path.join(root, "echo")
            subprocess.run(["gcc", "-Wall", "-Wextra", "-Werror", "-o", program, source, *flags], check=True, timeout=LIMIT)
            group = ini(program, Group={"Environment": f"LD_LIBRARY_PATH={os.path.dirname(pkgconfig)}"})
            s = self.started({"echo": group})
            self.assertEqual(s.do("echo", "hello")["result"], text("olleh"))
            s.stop()

    def test_every_symbol_of_the_header_is_exported_with_a_version_and_nothing_else_is(self):
        declared = set()
        for header in "troupe.h", "troupe-actor.h", "troupe-query.h":
            with open(os.path.join(TOP, "worker", header), encoding="utf-8") as file:
                text_of_it = re.sub(r"/\*.*?\*/", "", file.read(), flags=re.S)
                functions = re.sub(r"#define (?:.*\\\n)*.*", "", text_of_it)
                declared.update(re.findall(r"\b(troupe_\w+)\(", functions))
        out = subprocess.run(["nm", "-D", "--defined-only", os.path.join(BUILD, "libtroupe.so.2")], check=True,
                             capture_output=True, text=True).stdout
        symbols = [line.split()[2] for line in out.splitlines() if line.split()[1] != "A"]
        self.assertEqual({symbol.split("@")[0] for symbol in symbols}, declared)
        self.assertTrue(all("@@" in symbol for symbol in symbols), symbols)


class Demonstration(TestCase):
    """units/demo, which `troupectl init --demo` runs."""

    def test_its_workers_crash_the_page_shows_them_and_nothing_stays(self):
        with tempfile.TemporaryDirectory() as directory:
            environment = {**os.environ, "PATH": f"{BUILD}:{os.environ['PATH']}", "TMPDIR": directory, "DISPLAY": ":7"}
            os.chmod(directory, 0o755)
            opened = Path(directory, "opened")
            Path(directory, "xdg-open").write_text(f"#!/bin/sh\necho $1 >{opened}\n", encoding="ascii")
            Path(directory, "xdg-open").chmod(0o755)
            environment["PATH"] = f"{directory}:{environment['PATH']}"
            process = subprocess.Popen([os.path.join(TOP, "units", "demo")], stdout=subprocess.PIPE, text=True, env=environment)
            self.addCleanup(end_process, process)
            said = []
            while not said or not said[-1].startswith("Ctrl-C"):
                line = process.stdout.readline()
                self.assertTrue(line, said)
                said.append(line)
            address = re.search("^The page: (.*)$", "".join(said), re.MULTILINE)[1]
            self.assertEqual(opened.read_text(encoding="ascii").strip(), address)
            path = re.search("TROUPE_SOCKET=(.*)$", "".join(said), re.MULTILINE)[1]
            events = subprocess.Popen([TROUPECTL, "--socket", path, "events", "pictures", "--follow"], stdout=subprocess.PIPE, text=True)
            self.addCleanup(end_process, events)
            self.assertTrue(any("died" in line for line in events.stdout))
            with urllib.request.urlopen(f"{address}api/status", timeout=LIMIT) as answer:
                groups = {group["name"] for group in json.load(answer)["groups"]}
            self.assertEqual(groups, {"pictures", "mail", "imports", "broken", "clock"})
            process.terminate()
            self.assertEqual(process.wait(LIMIT), 0)
            self.assertEqual(set(os.listdir(directory)), {"xdg-open", "opened"})


@unittest.skipIf(SANITIZED, "the address space limit of the example leaves no room for a sanitizer")
class MakeRun(TestCase):
    @limit(180)
    def test_all_files_come_back_right_whatever_their_names_are(self):
        with tempfile.TemporaryDirectory() as directory:
            for i in range(2000):
                Path(os.path.join(directory, f"file {i}")).write_text(str(i), encoding="ascii")
            for odd in b"new\nline", b"tab\t", b"\xff\xfe", b" ", b"back\\slash":
                with open(os.path.join(os.fsencode(directory), odd), "wb") as file:
                    file.write(odd)
            process = subprocess.run([os.path.join(TOP, "worker", "examples", "run"), directory], capture_output=True,
                                     text=True, timeout=170, check=False)
        self.assertEqual(process.returncode, 0, process.stdout + process.stderr)
        self.assertIn("2005 right by sha256sum, 0 wrong, 0 lost", process.stdout)
        self.assertRegex(process.stdout, r"crashes survived +[1-9]")
        self.assertNotIn("Traceback", process.stderr)

    def test_the_progress_is_read_while_workers_are_down(self):
        code = ("import runpy, subprocess, sys; run = runpy.run_path(sys.argv[1]); supervisor = run['Supervisor'](['digest'])\n"
                "try:\n"
                "    subprocess.run(supervisor.command('stop', '--wait', 'digest/0'), check=True)\n"
                "    assert supervisor.group('digest')['state'] == 'degraded'\n"
                "finally:\n"
                "    supervisor.stop(); supervisor.remove()\n")
        process = subprocess.run([sys.executable, "-c", code, os.path.join(TOP, "worker", "examples", "run")], text=True,
                                 capture_output=True, timeout=LIMIT, check=False)
        self.assertEqual(process.returncode, 0, process.stderr)

    def test_a_command_finds_all_the_examples_and_its_exit_status_is_told(self):
        def run(*command):
            return subprocess.run([os.path.join(TOP, "worker", "examples", "run"), "--", *command], capture_output=True, text=True,
                                  timeout=LIMIT, check=False, input='{"customer":"acme","product":"mailbox","properties":'
                                                                    '{"name":"info","providers":"provider"}}\n')
        process = run("provision", "submit", "provision")
        self.assertEqual(process.returncode, 0, process.stderr)
        self.assertIn('"provider":"provider/0","address":"info@acme.example"', process.stdout)
        self.assertEqual(run("sh", "-c", "troupectl start nobody").returncode, 5)
        self.assertEqual(run("no-such-command").stderr, "no-such-command: No such file or directory\n")
