# SPDX-License-Identifier: MIT
"""What the guides, troupe-recipes(7), troupe-migration(7) and the README show is what one sees."""
import os
import pwd
import re
import shutil
import socket
import subprocess
import unittest
from pathlib import Path

from documents import Reader, examples, indented, literal, section, subsections
from troupe import BUILD, FAULTY_TROUPED, SANITIZED, TROUPE_EXEC, TestCase, can_mount, ini
from web_client import Web

# The programs that recipes take for granted, by recipe.
PROGRAMS = {
    "A report every night": {"report": 'echo "report for $1"'},
    "One job at a time for each customer": {"import": "[ $1 != 2025 ] || exec sleep 1000; echo $1 is imported"},
    "Customers that do not delay each other": {"import": "[ $1 != 2025 ] || exec sleep 1000; echo $1 is imported"},
    "What a job has written": {"convert": "echo frame 1 is damaged >&2"},
    "A mail when a nightly job fails": {"backup": "echo the disk is full >&2; exit 3", "send-mail": 'echo "to $1: $2:" >/srv/sent; cat >>/srv/sent'},
    "The rate limit of an API": {"call-api": "echo called $1"},
    "One limit for several groups": {"render": "[ $1 = winter ] || exec sleep 1000; echo $1 is rendered"},
    "A chain of jobs": {"step": "echo $1 is done"},
    "A job after many others": {"step": "echo $1 is done"},
    "The same job only once": {"sync": "exec sleep 1000"},
    "Only the last of several changes": {"index": "echo indexed $1"},
    "Time limits": {"convert": "exec sleep 1000"},
    "A job that is stuck": {"convert": "exec sleep 1000"},
    "Jobs that always fail": {"parse": "[ -e /srv/repaired ] || { echo line 7 is wrong >&2; exit 1; }; echo parsed"},
    "Urgent jobs first": {"send-mail": "echo $1 >>/srv/sent"},
    "Later": {"send-mail": "echo $1 is sent"},
    "Many jobs at once": {"send-mail": "echo $1 is sent"},
    # The machine's memory does not run out: a fault point says that a killed worker had none.
    "More memory for the second attempt": {"render": "[ $TROUPE_JOB_ATTEMPT = 2 ] || kill -9 $PPID; echo rendered $1"},
    "Which jobs ran last week": {"send-mail": "[ $1 = ann ] || { echo no such address: $1 >&2; exit 1; }; echo $1 is sent"},
    "Pause for a deployment": {"send-mail": "echo $1 is sent"},
    "Jobs of a web application": {"send-mail": "echo $1 is sent"},
    "From supervisord": {"web": "exec sleep infinity"},
    "From cron": {"orders": "echo 3 orders are done"},
    "From GNU parallel": {"shout": "echo $1 | tr a-z A-Z"},
}


def has_user(name):
    return name in {user.pw_name for user in pwd.getpwall()}


PYTHON = (os.path.exists(os.path.join(BUILD, "python/troupe/_troupe.abi3.so")) and not SANITIZED, "the package for Python is not built")
# What recipes need, and why they are skipped without it.
NEEDS = {
    "A fresh process for each job": PYTHON,
    "From a task of Celery": PYTHON,
    "From a chain of Celery": PYTHON,
    "A mail when a nightly job fails": (os.geteuid() == 0, "it needs root"),
    "Untrusted files": (can_mount() and not SANITIZED, "mounting does not work here"),
    "A service that must not hang": (shutil.which("systemd-notify"), "systemd-notify is not installed"),
    "Jobs of a web application": (os.geteuid() == 0 and has_user("www-data"), "it needs root and the user www-data"),
}
FAULTS = {"More memory for the second attempt": "oom:1+"}


class Documents(TestCase):
    def test_there_are_at_least_twenty_recipes(self):
        titles = subsections(section("troupe-recipes.7", "EXAMPLES"))
        self.assertGreaterEqual(len(titles), 20)
        titles |= subsections(section("troupe-migration.7", "EXAMPLES"))
        self.assertLessEqual(set(PROGRAMS) | set(NEEDS) | set(FAULTS), set(titles))

    def test_the_end_of_a_flood_in_troupe_troubleshooting(self):
        s = self.started({"mail": ini(f"{TROUPE_EXEC} -- cat")})
        ids = [s.create("mail", delay_usec=3600 * 10**6) for _ in range(1000)]
        Reader(self, s).follow(examples("troupe-troubleshooting.7"))
        self.assertEqual({s.job(id)["state"] for id in ids}, {"cancelled"})

    def guide(self, name, **options):
        Reader(self, self.supervisor(state=True), **options).follow(indented(f"units/guides/{name}.md"))

    def test_guide_a_first_job(self):
        self.guide("first-job")

    @unittest.skipUnless(shutil.which("convert") and shutil.which("curl"), "ImageMagick or curl is not installed")
    @unittest.skipUnless(os.geteuid() == 0 and has_user("www-data"), "it needs root and the user www-data")
    @unittest.skipUnless(*PYTHON)
    @unittest.skipUnless(*NEEDS["Untrusted files"])
    def test_guide_thumbnails(self):
        with socket.create_server(("localhost", 0)) as free:
            port = free.getsockname()[1]
        self.guide("thumbnails", places={"8080": str(port)})

    @unittest.skipUnless(*PYTHON)
    def test_guide_a_Python_worker(self):
        self.guide("python-worker")

    @unittest.skipUnless(*PYTHON)
    @unittest.skipUnless(shutil.which("redis-server") and os.path.exists("/usr/lib/python3/dist-packages/celery"),
                         "redis-server or python3-celery is not installed")
    def test_guide_a_Celery_project(self):
        s = self.supervisor(state=True)
        redis = subprocess.Popen(["redis-server", "--port", "0", "--unixsocket", s.path("redis"), "--save", ""], stdout=subprocess.DEVNULL)
        self.addCleanup(redis.wait)
        self.addCleanup(redis.terminate)
        s.start().until(lambda: os.path.exists(s.path("redis")))
        os.chmod(s.path("redis"), 0o777)
        Reader(self, s, places={"redis://localhost": "redis+socket://" + s.path("redis"), "python3 /srv": "/usr/bin/python3 " + s.path("srv")}
               ).follow(indented("units/guides/celery.md"))

    @unittest.skipIf(SANITIZED, "the library then needs the sanitizer's")
    def test_guide_actors_in_C(self):
        self.guide("actors")

    @unittest.skipUnless(shutil.which("curl"), "curl is not installed")
    def test_guide_operation(self):
        s = self.supervisor(state=True).start()
        os.mkdir(s.path("prometheus"))
        Path(s.path("prometheus/prometheus.yml")).write_text("rule_files:\nscrape_configs:\n", encoding="ascii")
        # The service manager and apt are not this machine's; make check-monitoring has a real Prometheus.
        programs = {"systemctl": ":", "apt": ":", "promtool": "grep -q troupe-alerts $3 && grep -q job_name $3 && echo SUCCESS"}
        places = {"localhost:7670": Web(self, s.socket_path).name, "/etc/prometheus": s.path("prometheus"), "troupe-admin": "root"}
        Reader(self, s, programs, places).follow(indented("units/guides/operate.md"))

    def test_the_first_group_of_the_README(self):
        Reader(self, self.supervisor()).follow(indented("README.md", "The first group"))

    def test_the_commands_of_the_README_for_trouble(self):
        s = self.started({"scripts": ini(f"{TROUPE_EXEC} -- sh")})
        reader = Reader(self, s, places={"GROUP": "scripts"})
        [block] = indented("README.md", "When something is wrong")
        commands = re.findall("^troupectl.*", block, re.MULTILINE)
        self.assertEqual(len(commands), 5)
        for command in commands:
            reader.output(command)
        self.assertEqual(reader.output("echo 'echo $((6 * 7))' | troupectl map GROUP --quiet"), "42\n")


def follow(title, source):
    @unittest.skipUnless(*NEEDS.get(title, (True, "")))
    def test(self):
        options = {"program": FAULTY_TROUPED, "environment": {"TROUPE_FAULT": FAULTS[title]}} if title in FAULTS else {}
        Reader(self, self.supervisor(state=True, **options), PROGRAMS.get(title)).follow(block for block in literal(source) if not block.startswith(";"))
    return test


for _title, _source in (*subsections(section("troupe-recipes.7", "EXAMPLES")).items(),
                        *subsections(section("troupe-migration.7", "EXAMPLES")).items()):
    setattr(Documents, "test_recipe_" + re.sub(r"\W+", "_", _title.lower()), follow(_title, _source))
