# SPDX-License-Identifier: MIT
"""What shells offer for a command line of troupectl."""
import os
import re
import shutil
import subprocess
import unittest

from troupe import ACTOR, LIMIT, TOP, TROUPECTL, TestCase, ini

SHELLS = os.path.join(TOP, "supervisor", "ctl", "complete")
ACTORS = "io.troupe.Actors."
NOWHERE = "/dev/null/none"


def said(pattern, *arguments):
    process = subprocess.run([TROUPECTL, *arguments], text=True, check=True, timeout=LIMIT, stdout=subprocess.PIPE)
    return re.findall(pattern, process.stdout, re.MULTILINE)


def offered(*words, socket=NOWHERE):
    """The lines for the last of the words, without descriptions. Waits as long as it takes."""
    process = subprocess.run([TROUPECTL, "--socket", socket, "complete", "--timeout", f"{LIMIT}s", "--", *words], text=True,
                             check=True, timeout=LIMIT, capture_output=True)
    return [line.split("\t")[0] or line for line in process.stdout.splitlines()]


def enum(file, name):
    """The values of an enum of an interface, a type's or a member's, as people write them."""
    with open(os.path.join(TOP, "supervisor", "control", file), encoding="utf-8") as interface:
        values = re.search(rf"^(?:type {name} |  {name}: )\(([^)]*)\)", interface.read(), re.MULTILINE)[1]
    return [value.strip().replace("_", "-") for value in values.split(",")]


class Words(unittest.TestCase):
    """What needs no supervisor; compared with troupectl's help."""

    def setUp(self):
        self.verbs = said(r"^  ([a-z-]+)(?: .*)?$", "help")
        self.assertGreater(len(self.verbs), 30)

    def test_M11_all_verbs_are_offered(self):
        self.assertEqual(offered(""), self.verbs)
        self.assertEqual(offered("help", ""), self.verbs)

    def test_M11_all_options_of_each_verb_are_offered(self):
        for verb in self.verbs:
            with self.subTest(verb):
                self.assertEqual(offered(verb, "--"), said(r"^  (?:-., |    )(--[a-z-]+)", verb, "--help"))

    def test_M11_options_are_offered_after_a_flag_but_not_in_place_of_a_value(self):
        seen = set()
        for verb in self.verbs:
            options = set(said(r"^  (?:(-.), |    )(--[a-z-]+)( [^ ]|)", verb, "--help")) - seen
            seen |= options
            for letter, option, value in options:
                for spelling in {letter, option} - {""}:
                    with self.subTest(verb, option=spelling):
                        self.assertEqual([word for word in offered(verb, spelling, "--js") if word != "\tfiles"],
                                         [] if value else ["--json"])

    def test_M11_the_values_of_an_option_are_those_of_the_interface(self):
        for verb, option, file, name in (("jobs", "--state", "io.troupe.Jobs.varlink", "State"),
                                         ("dead-letters", "--reason", "io.troupe.Actors.varlink", "Reason"),
                                         ("purge", "--cause", "io.troupe.Jobs.varlink", "cause"),
                                         ("actors", "--kind", "io.troupe.Actors.varlink", "Kind")):
            with self.subTest(option):
                self.assertEqual(offered(verb, option, ""), enum(file, name))
        self.assertEqual(offered("exchanges", "create", "x", ""), enum("io.troupe.Actors.varlink", "ExchangeKind"))
        self.assertEqual(offered("jobs", "--state=qu"), ["--state=queued"])

    def test_M11_files_are_offered_where_one_is_named(self):
        for words in ("verify", ""), ("create", "x", "--file", ""), ("create", "-f", ""), ("status", "--socket", ""), \
                ("create", "--file=/et"):
            with self.subTest(words):
                self.assertEqual(offered(*words), ["\tfiles"])

    def test_M11_nothing_is_offered_for_what_is_not_known(self):
        for words in ("nonsense", ""), ("create", "--id", ""), ("jobs", "--limit", ""), ("info", ""), ("status", "--nonsense="):
            with self.subTest(words):
                self.assertEqual(offered(*words), [])

    def test_M11_without_a_supervisor_there_are_no_names_and_no_errors(self):
        process = subprocess.run([TROUPECTL, "-s", NOWHERE, "complete", "--", "status", ""], timeout=LIMIT, capture_output=True)
        self.assertEqual((process.returncode, process.stdout, process.stderr), (0, b"", b""))


class Names(TestCase):
    """What exists in a supervisor."""

    def setUp(self):
        self.s = self.started({"actor": ini(ACTOR, Pool={"Size": 2}), "digest": ini(ACTOR),
                               "mail": ini(ACTOR, Pool={"Cells": "by-key"}), "sleep": ini("/bin/sleep infinity", Group={"Type": "service"})})
        self.s.do("mail", "echo x", key="acme")

    def offered(self, *words):
        return sorted(offered(*words, socket=self.s.socket_path))

    def test_M11_targets_are_groups_cells_and_workers(self):
        workers = ["actor/0", "actor/1", "digest/0", "mail/acme/0", "sleep/0"]
        groups = ["actor", "digest", "mail", "sleep"]
        for verb in "status", "stop", "deaths":
            self.assertEqual(self.offered(verb, ""), sorted(groups + ["mail/acme"] + workers), verb)
        self.assertEqual(self.offered("create", ""), groups)
        self.assertEqual(self.offered("jobs", ""), sorted(groups + ["mail/acme"]))
        self.assertEqual(self.offered("cancel", "--all", ""), sorted(groups + ["mail/acme"]))
        self.assertEqual(self.offered("resize", "mail/"), ["mail/acme"])
        self.assertEqual(self.offered("status", "actor/"), ["actor/0", "actor/1"])
        self.assertEqual(self.offered("status", "nobody/"), [])
        self.assertEqual(self.offered("status", "digest", "sl"), ["sleep", "sleep/0"])

    def test_M11_a_group_that_comes_and_goes_is_offered_while_it_is_there(self):
        self.s.write("late.group", ini(ACTOR))
        self.s.call("Reload")
        self.assertEqual(self.offered("create", "l"), ["late"])
        os.unlink(os.path.join(self.s.config, "late.group"))
        self.s.call("Reload")
        self.s.until(lambda: self.offered("create", "l") == [])

    def test_M11_jobs_are_offered_and_to_cancel_only_live_ones(self):
        self.s.create("digest", "echo x", id="ended")
        self.s.wait_job("ended")
        self.s.call("Pause", target="digest")
        self.s.create("digest", "echo x", id="waits:1")
        self.assertEqual(self.offered("job", "w"), ["waits:1"])
        self.assertIn("ended", self.offered("job", ""))
        self.assertEqual(self.offered("cancel", ""), ["waits:1"])

    def test_M11_timers_dead_letters_and_exchanges_are_offered(self):
        timer = self.s.call(ACTORS + "Schedule", to="digest/0", type="tick", delay_usec=3600 * 10**6)["id"]
        self.assertEqual(self.offered("timer", "cancel", ""), [str(timer)])
        self.s.create("digest", "crash kill", id="doomed", max_retries=0)
        self.s.wait_job("doomed")
        [letter] = self.s.call(ACTORS + "ListDeadLetters")["letters"]
        self.assertEqual(self.offered("dead-letters", "show", ""), [str(letter["id"])])
        self.assertEqual(self.offered("dead-letters", "sh"), ["show"])
        self.assertEqual(self.offered("retry", ""), [str(letter["id"])])
        self.s.call(ACTORS + "CreateExchange", name="events", kind="pattern")
        self.assertEqual(self.offered("exchanges", "show", ""), ["events"])
        self.assertEqual(self.offered("tell", "ev"), ["events"])
        self.assertEqual(self.offered("subscribe", "events", "dig"), ["digest", "digest/0"])

    def test_M11_many_names_are_bounded(self):
        self.s.call("Pause", target="digest")
        for i in range(1100):
            self.s.create("digest", id=f"job-{i}")
        self.assertEqual(len(self.offered("job", "job-")), 1000)
        self.assertEqual(len(self.offered("job", "job-109")), 11)

    def shell(self, name, script, *arguments):
        """Runs a script in a shell whose troupectl is this one, asks this supervisor, and waits as long as it takes."""
        if not shutil.which(name):
            self.skipTest(f"no {name}")
        with open(self.s.path("troupectl"), "w", encoding="ascii") as file:
            file.write(f'#!/bin/sh\n[ "$1" = complete ] || exit 1\nshift\nexec {TROUPECTL} complete --timeout {int(LIMIT)}s "$@"\n')
        os.chmod(self.s.path("troupectl"), 0o755)
        process = subprocess.run([name, *script, *arguments], text=True, timeout=LIMIT, capture_output=True, cwd=SHELLS,
                                 env={**os.environ, "PATH": f"{self.s.directory}:{os.environ['PATH']}", "HOME": self.s.directory,
                                      "TROUPE_SOCKET": self.s.socket_path, "XDG_CONFIG_HOME": self.s.directory})
        self.assertEqual(process.stderr, "")
        return sorted(process.stdout.splitlines())

    def bash(self, *words):
        script = ('source ./troupectl.bash; COMP_WORDS=(troupectl "$@"); COMP_CWORD=$#; _troupectl; '
                  '[[ ${#COMPREPLY[@]} = 0 ]] || printf "%s\\n" "${COMPREPLY[@]}"')
        return self.shell("bash", ["-c", script, "bash"], *words)

    def test_M11_bash_offers_the_same(self):
        self.s.call("Pause", target="digest")
        self.s.create("digest", id="waits:1")
        self.s.create("digest", id="waits:2")
        self.assertEqual(self.bash("st"), ["stack", "start", "status", "stop"])
        self.assertEqual(self.bash("status", "mail"), ["mail", "mail/acme", "mail/acme/0"])
        self.assertEqual(self.bash("jobs", "--state", "=", "qu"), ["queued"])
        self.assertEqual(self.bash("jobs", "--state", "="), sorted(enum("io.troupe.Jobs.varlink", "State")))
        self.assertEqual(self.bash("job", "waits", ":"), ["1", "2"])
        self.assertEqual(self.bash("job", "waits", ":", "2"), ["2"])
        self.assertEqual(self.bash("verify", "troupectl.b"), ["troupectl.bash"])
        self.assertEqual(self.bash("create", "digest", "--file", "=", "troupectl.f"), ["troupectl.fish"])

    def test_M11_zsh_offers_the_same(self):
        script = ("compadd() { print -rl -- $candidates }; _files() { print files }; compset() { : }; complete_() { . ./_troupectl }; "
                  'words=(troupectl "$@"); CURRENT=$#words; complete_')
        self.assertEqual(self.shell("zsh", ["-f", "-c", script, "zsh"], "status", "mail"), ["mail", "mail/acme", "mail/acme/0"])
        self.assertEqual(self.shell("zsh", ["-f", "-c", script, "zsh"], "st"), ["stack", "start", "status", "stop"])
        self.assertIn("files", self.shell("zsh", ["-f", "-c", script, "zsh"], "verify", ""))

    def test_M11_fish_offers_the_same(self):
        script = "source ./troupectl.fish; complete -C $argv[1]"
        for line, expected in (("troupectl status mail", ["mail", "mail/acme", "mail/acme/0"]), ("troupectl st", ["stack", "start", "status", "stop"]),
                               ("troupectl verify ./troupectl.f", ["./troupectl.fish"])):
            words = [word.split("\t")[0] for word in self.shell("fish", ["-N", "-c", script], line)]
            self.assertEqual(words, expected, line)
