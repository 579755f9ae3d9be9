# SPDX-License-Identifier: MIT
"""What the EXAMPLES sections of the manuals show works, with paths and users of the test."""
import base64
import glob
import gzip
import io
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import unittest
from contextlib import redirect_stdout
from pathlib import Path

from documents import Reader, examples, typed
from test_durable import Case, actor
from troupe import ACTOR, BUILD, LIMIT, SANITIZED, TOP, TROUPE_EXEC, TROUPECTL, TROUPED, TestCase, ini
from web_client import Web

DIGEST = ini(f"{TROUPE_EXEC} -- sha256sum {{}}", Pool={"Size": 2})


class Manuals(TestCase):
    @unittest.skipUnless(shutil.which("jq"), "jq is not installed")
    def test_M11_troupectl(self):
        s = self.started({"digest": DIGEST, "stock": ini(ACTOR)})
        Reader(self, s).follow(examples("troupectl.1"))
        with open(s.path("digests"), encoding="ascii") as file:
            self.assertEqual(len(file.readlines()), sum(len(files) for _, _, files in os.walk(os.path.join(TOP, "units"))))

    @unittest.skipUnless(os.path.exists(os.path.join(BUILD, "python/troupe/_troupe.abi3.so")), "the package for Python is not built")
    @unittest.skipIf(SANITIZED, "the extension then needs the sanitizer's library")
    def test_M11_a_first_group(self):
        Reader(self, self.supervisor()).follow(examples("troupe.7"))

    def test_M11_maintenance(self):
        Reader(self, self.started({"digest": DIGEST}), {"systemctl": ":"}).follow(examples("troupe-continuity.7"))

    def test_M11_configurations(self):
        s = self.started({"digest": DIGEST})
        kinds = {"Supervisor": "troupe.conf", "Exchange": "orders.exchange", "Group": "some.group", "Limit": "licence.limit"}
        n = 0
        for page in "troupe.group.5", "troupe.conf.5", "troupe.exchange.5", "troupe.limit.5", "troupe-exec.1":
            for block in examples(page):
                if block.startswith("#!"):
                    continue
                body = block if block.startswith("[") else "[Group]\n" + block
                body = body.replace("[Limits]", "[Group]\nExecStart=/bin/true\n[Limits]")
                body = re.sub(r"^(User=|SubmitUser=|AdminGroup=).*", r"\g<1>root", body, flags=re.MULTILINE)
                body = body.replace("/usr/libexec/troupe/troupe-exec", TROUPE_EXEC).replace("/var/www", "/tmp")
                path = s.write(kinds[re.match(r"\[(\w+)\]", body)[1]], body)
                s.ctl("verify", "--config", s.config, check=True)
                if not path.endswith(".limit"):
                    os.unlink(path)
                n += 1
        self.assertEqual(n, 10)

    def test_M11_commands_as_workers(self):
        [_, grep, pipeline, _] = examples("troupe-exec.1")
        s = self.started({name: "[Group]\n" + line.replace("User=troupe\n", "").replace("/usr/libexec/troupe/troupe-exec", TROUPE_EXEC)
                          for name, line in (("grep", grep), ("lines", pipeline))})
        self.assertEqual(s.do("grep", "an error\n")["result"]["data"], "1\n")
        self.assertEqual(s.do("grep", "all is well\n")["state"], "rejected")
        with gzip.open(s.path("three's.gz"), "wb") as file:
            file.write(b"1\n2\n3\n")
        self.assertEqual(s.do("lines", s.path("three's.gz"))["result"]["data"].strip(), "3")

    def test_M11_a_script_that_continues(self):
        s = self.supervisor()
        script = Path(s.write("import-file", examples("troupe-exec.1")[-1].replace("import-line", s.path("import-line"))))
        stub = Path(s.path("import-line"))
        stub.write_text("#!/bin/sh\ncd ${0%/*}\n[ $1 != three ] || [ -e again ] || { touch again; exit 1; }\necho $1 >>imported\n", encoding="ascii")
        for path in script, stub:
            path.chmod(0o755)
        s.write("import.group", ini(f"{TROUPE_EXEC} --channels -- {script} {{}}", Jobs={"BackoffMinSec": "1ms"}))
        Path(s.path("lines")).write_text("one\ntwo\nthree\nfour\n", encoding="ascii")
        s.start()
        job = s.wait_job(s.create("import", s.path("lines")))
        self.assertEqual((job["state"], job["attempt"]), ("succeeded", 2))
        self.assertEqual(Path(s.path("imported")).read_text(encoding="ascii"), "one\ntwo\nthree\nfour\n")
        self.assertEqual(s.ctl("watch", job["id"]).stdout, "".join(f"line {n}\n" for n in range(1, 5)))

    def test_M11_numbers(self):
        s = self.started({"digest": DIGEST})
        s.do("digest", "/etc/passwd")
        names = set(re.findall(r"\btroupe_\w+", "".join(examples("troupe-metrics.7"))))
        self.assertEqual(names, {"troupe_jobs_total", "troupe_job_wait_seconds_bucket"})
        have = {line.split("{")[0].split(" ")[0] for line in s.ctl("metrics", check=True).stdout.splitlines()}
        self.assertLessEqual(names, have)

    @unittest.skipUnless(shutil.which("curl"), "curl is not installed")
    def test_M11_the_page(self):
        s = self.started({"digest": DIGEST})
        [start, ask] = examples("troupe-web.8")
        options = shlex.split(start)[1:]
        self.assertEqual([option.partition("=")[0] for option in options], ["--socket", "--listen"])
        web = Web(self, s.socket_path)
        self.assertIn("letters", json.loads(Reader(self, s, places={"localhost:7670": web.name}).output(ask.removeprefix("$ "))))

    def test_M11_calls(self):
        s = self.started({"digest": DIGEST})
        *shown, python = examples("troupe-varlink.7")
        calls = re.findall(r"varlinkctl call (?:--more )?(?:-j )?\S+ +(?:\\\n *)?(\S+) (?:\\\n *)?'(.*?)'", "".join(shown), re.DOTALL)
        self.assertEqual([method.rpartition(".")[2] for method, _ in calls], ["GetStatus", "Do", "Watch", "Resize"])
        for method, parameters in calls:
            s.call(method, **json.loads(parameters))
        with redirect_stdout(io.StringIO()) as output:
            exec(python.replace("/run/troupe/troupe.sock", s.socket_path), {})
        self.assertIn("'parameters': {'id': ", output.getvalue())

    def test_M11_units(self):
        [socket, boot, recurring, _] = examples("trouped.8")
        named = re.findall(r"[\w@-]+\.(?:socket|service|timer)", socket + boot)
        self.assertEqual(set(named), {"trouped.socket", "trouped.service"})
        for name in named:
            with open(os.path.join(TOP, "units", name), encoding="utf-8") as file:
                self.assertIn("\n[Install]\n", file.read())
        s = self.started({"backup": ini(f"{TROUPE_EXEC} -- echo saved {{}}")}, state=True)
        reader = Reader(self, s)
        reader.follow([recurring])
        id = reader.output("troupectl schedule run backup").strip()
        self.assertEqual(s.wait_job(id)["result"]["data"], f"saved {s.path('srv')}\n")

    def test_M11_schedules(self):
        s = self.supervisor({"reports": DIGEST, "x": DIGEST})
        bodies = examples("troupe.schedule.5")
        self.assertEqual(len(bodies), 3)
        for body in bodies:
            s.write("x.schedule", body)
            self.assertEqual(s.ctl("verify", "--config", s.config).returncode, 0, body)

    def test_M11_in_the_foreground_as_an_ordinary_user(self):
        s = self.supervisor()
        home = s.path("home")
        os.mkdir(home, 0o755)
        os.chmod(s.path("notify"), 0o777)
        places = {"HOME": home, "XDG_RUNTIME_DIR": home}
        *prepare, (start, _) = typed(examples("trouped.8")[3])
        reader = Reader(self, s, places={"~/": home + "/", "$XDG_RUNTIME_DIR": home})
        for command, _ in prepare:
            reader.output(command)
        user = {}
        if os.geteuid() == 0:
            user = {"user": 65534, "group": 65534, "extra_groups": []}
            subprocess.run(["chown", "-R", "65534:65534", home], check=True)
        s.command = ["bash", "-ec", "exec " + start.replace("/usr/sbin/trouped ", TROUPED + " ", 1)]
        s.environment.update(places)
        s.socket_path = os.path.join(home, "troupe/troupe.sock")
        s.start(**user)
        job = s.do("gzip", "again and again")
        self.assertEqual(gzip.decompress(base64.b64decode(job["result"]["data"])), b"again and again")

    @unittest.skipUnless(os.path.exists(os.path.join(BUILD, "python/troupe/_troupe.abi3.so")), "the package for Python is not built")
    @unittest.skipIf(SANITIZED, "the extension then needs the sanitizer's library")
    def test_M11_an_executor(self):
        s = self.supervisor()
        [program] = examples("troupe-python.7")
        with open(s.path("digests.py"), "w", encoding="utf-8") as file:
            file.write(program.replace('"/etc"', f'"{TOP}/units"').replace("*.conf", "*.service"))
        done = subprocess.run([sys.executable, s.path("digests.py")], capture_output=True, text=True, timeout=LIMIT,
                              env={**os.environ, "PYTHONPATH": os.path.join(BUILD, "python"), "PATH": f"{BUILD}:{os.environ['PATH']}"})
        self.assertEqual(done.returncode, 0, done.stderr)
        services = sorted(glob.glob(os.path.join(TOP, "units", "*.service")))
        self.assertEqual(done.stdout, subprocess.run(["sha256sum", *services], check=True, capture_output=True, text=True).stdout)

    def test_M11_every_manual_has_examples(self):
        pages = [page for folder in ("supervisor", "worker") for page in glob.glob(os.path.join(TOP, folder, "**/*.[1-8]"), recursive=True)]
        self.assertGreaterEqual(len(pages), 14)
        for page in pages:
            self.assertTrue(examples(os.path.basename(page)), page)

    def build(self, s, name, source):
        Path(s.path(name + ".c")).write_text(source, encoding="utf-8")
        subprocess.run(["cc", "-std=gnu17", "-Wall", "-Wextra", "-Werror", "-I", os.path.join(TOP, "worker"), "-o", s.path(name), s.path(name + ".c"),
                        "-L", BUILD, "-ltroupe", f"-Wl,-rpath,{BUILD}"], check=True, timeout=LIMIT)
        return s.path(name)

    @unittest.skipIf(SANITIZED, "the library then needs the sanitizer's")
    def test_M11_programs(self):
        s = self.supervisor()
        [worker, client] = examples("troupe.3")
        [greeter, ask] = examples("troupe-actor.3")
        for name, source in ("backwards", worker), ("greeters", greeter):
            s.write(name + ".group", f"[Group]\nExecStart={self.build(s, name, source)}\n")
        group = re.search(r'troupe_client_group\(client, "(\w+)"', client)[1]
        program = self.build(s, "client", client.replace(f'"{group}"', '"backwards"').replace("connect(&client, NULL)", f'connect(&client, "{s.socket_path}")'))
        s.start()
        self.assertEqual(subprocess.run([program, "abc", "de"], check=True, capture_output=True, text=True, timeout=LIMIT).stdout,
                         "1: succeeded cba\n2: succeeded ed\n")
        s.wait_worker("greeters/0", "idle")
        self.assertIn("hello", Reader(self, s).output(ask.removeprefix("$ ")))


class Database(Case):
    @unittest.skipUnless(shutil.which("sqlite3"), "sqlite3 is not installed")
    def test_M11_queries(self):
        s = self.durable({"other": actor(Durable="yes")}).start()
        s.call("Pause", target="kept")
        s.create("kept", "the payload", id="invoice-7")
        subprocess.run([TROUPECTL, "--socket", s.socket_path, "create", "kept", "-", "--id", "invoice-8"], text=True,
                       input=2500000 * "x", check=True, timeout=LIMIT)
        reader = Reader(self, s, places={"/var/lib/troupe/troupe.db": s.database})
        said = [reader.output(command) for block in examples("troupe.db.5") for command, _ in typed(block)]
        self.assertRegex(said[0], r"^kept\|2\|20\d\d-")
        self.assertEqual(Path(s.path("payload")).read_text(encoding="ascii"), "the payload")
        self.assertEqual(Path(s.path("large")).read_text(encoding="ascii"), 2500000 * "x")
