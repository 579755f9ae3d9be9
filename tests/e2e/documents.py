# SPDX-License-Identifier: MIT
"""Follows a page as a reader does: writes its files, types its commands, and compares what these print.

If the first line of a literal block, or the line after "#!", is a comment of one word, then the block is a file, and the word is
its path. Lines that begin with "$ ", or for root "# ", are commands; a backslash continues them. The lines that follow are the
command's output, in which "…" stands for any text, and a line "…" for any number of lines. White space is not compared, nor are
times, ids, pids and rates. If a block shows no output at all, its commands only have to succeed.
"""
import glob
import os
import re
import shutil
import subprocess
import textwrap
import time
from pathlib import Path

from troupe import BUILD, LIMIT, TOP, TROUPE_EXEC, TROUPECTL, can_mount

ESCAPES = {r"\e": "\\", r"\(aq": "'", r"\-": "-", r"\&": ""}


def section(name, title):
    """The source of a section of a manual page."""
    [path] = glob.glob(os.path.join(TOP, "**", name), recursive=True)
    return re.search(rf"^\.Sh {title}\n(.*?)(?=^\.Sh |\Z)", Path(path).read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)[1]


def subsections(source):
    """The subsections of a section, by their titles."""
    return dict(re.findall(r"^\.Ss (.*?)\n(.*?)(?=^\.Ss |\Z)", source, re.MULTILINE | re.DOTALL))


def literal(source):
    """The literal blocks and lines, as a reader sees them."""
    found = re.findall(r"^\.Bd -literal.*?\n(.*?)^\.Ed|^\.Dl ([^\n]*\n)", source, re.MULTILINE | re.DOTALL)
    return [re.sub(r"\\(e|\(aq|-|&)", lambda match: ESCAPES[match[0]], block or line) for block, line in found]


def indented(name, title=None):
    """The indented blocks of a Markdown file, or of a section of it."""
    source = Path(os.path.join(TOP, name)).read_text(encoding="utf-8")
    if title:
        source = re.search(rf"^## {title}\n(.*?)(?=^## |\Z)", source, re.MULTILINE | re.DOTALL)[1]
    return [textwrap.dedent(block) for block in re.findall(r"^ {4}\S.*\n(?:\n*(?: {4}.*\n)+)*", source, re.MULTILINE)]


def examples(name):
    return literal(section(name, "EXAMPLES"))


def named_file(block):
    """The path of the file that the block is, or None."""
    match = re.match(r"(?:#!.*\n)?(?:# (\S+)|/\* (\S+) \*/)\n", block)
    return match and (match[1] or match[2])


def typed(block):
    """The commands of a block, each with its output. A command in quotes may have several lines."""
    found = re.findall(r'^[$#] ((?:.*\\\n)*(?:[^"\n]*"[^"]*\n[^"]*"[^"\n]*|.*)\n)((?:(?![$#] ).*\n)*)', block, re.MULTILINE)
    silent = not any(shown for _, shown in found)
    return [(command.replace("\\\n", "").strip(), None if silent else shown) for command, shown in found]


# What differs each time: ids, pids, slots, memory, rates, times.
VARYING = re.compile(r"\b[0-9a-f]{32}\b|\bpid \d+|(?<=[a-z])/\d+\b|\b\d[\d.]* [KM]iB\b|\b[\d,]+/s\b|\b\d\d:\d\d(?::\d\d)?\b"
                     r"|(?:\b\d[\d.]*(?:us|ms|s|min|h|d)\b ?)+(?:ago\b)?|\bnow\b")


def is_as_shown(output, shown):
    def words(text):
        return "".join(" ".join(VARYING.sub(" N ", line).split()) + "\n" for line in text.splitlines())
    parts = re.split(r"(^…\n|…)", words(shown), flags=re.MULTILINE)
    pattern = "".join({"…\n": r"(?:.*\n)*", "…": ".*"}.get(part) or re.escape(part) for part in parts)
    return re.fullmatch(pattern, words(output)) is not None


class Reader:
    """Follows a page with a supervisor, and has it read the files that are written. Paths of the page become paths of the test."""

    # Commands that change nothing are typed until they print what is shown, as a reader waits for something to happen.
    LOOKS = re.compile(r"troupectl( (status|jobs|job|history|why|actors|deaths|dead-letters|logs|schedule( list| show|$))\b|$)|curl -s http")

    def __init__(self, test, s, programs=None, places=None):
        """programs: the shell scripts, by name, that the page takes for granted in /usr/local/bin. places: what else is other here."""
        self.test, self.s, self.folder, self.changed, self.confined = test, s, s.path("bin"), False, {}
        self.places = {"/etc/troupe/NAME": "/etc/troupe/NAME", "/etc/troupe": s.config, "/usr/libexec/troupe/troupe-exec": TROUPE_EXEC, "/usr/local/bin": self.folder,
                       "/usr/bin/troupectl": f"{self.folder}/troupectl",
                       "/etc/logrotate.d": s.path("srv"), "/usr/share/doc": os.path.join(TOP, "units"), "/srv": s.path("srv"),
                       "$(pkg-config --cflags --libs troupe)": f"-I{TOP}/worker -L{BUILD} -ltroupe -Wl,-rpath,{BUILD}", **(places or {})}
        for folder in self.folder, s.path("srv"):
            os.mkdir(folder)
            os.chmod(folder, 0o777)
        shutil.copy(TROUPECTL, s.path("bin/ctl"))  # another user may not enter the tree
        self.write("/usr/local/bin/troupectl", f'#!/bin/sh\ncase $1 in verify) set -- "$@" --config {s.config};; esac\n'
                                               f'exec {self.folder}/ctl "$@"\n')
        for name, script in (programs or {}).items():
            self.write(f"/usr/local/bin/{name}", "#!/bin/sh\n" + script)

    def local(self, text):
        return re.sub("|".join(map(re.escape, self.places)), lambda match: self.places[match[0]], text)

    def write(self, name, text):
        path = Path(self.s.directory, self.local(name))
        text = self.local(text)
        if path.name == "troupe.conf":
            text += f"StateDirectory={self.s.path('state')}\n"
        path.write_text(text, encoding="utf-8")
        if text.startswith("#!"):
            path.chmod(0o755)
        self.changed |= name.startswith("/etc/troupe/")

    def confine(self):
        """Changes the groups that the page has written or copied: as far as this machine has their users, and can confine them."""
        for path in Path(self.s.config).glob("*.group"):
            text = path.read_text(encoding="utf-8")
            if self.confined.get(path) != text:
                self.confined[path] = self.possible(text.replace("/usr/libexec/troupe/troupe-exec", TROUPE_EXEC))
                path.write_text(self.confined[path], encoding="utf-8")

    def possible(self, text):
        user = "User=root\n" if os.geteuid() == 0 else ""
        if re.search("^Profile=strict$", text, re.MULTILINE):
            user = "User=nobody\n"
            text = text.replace("Profile=strict\n", f"Profile=strict\nReadOnlyPaths={os.path.realpath(BUILD)} {self.folder}\nProtectHome=no\n")
        if not can_mount():
            text = re.sub("^Profile=.*\n", "", text, flags=re.MULTILINE)
        text = re.sub("^ExecStart=/usr/bin/python3 .*\n", rf"\g<0>Environment=PYTHONPATH={BUILD}/python PATH={BUILD}:/usr/bin:/bin\n", text, flags=re.MULTILINE)
        return re.sub("^User=(troupe|www-data)\n", user, text, flags=re.MULTILINE)

    def follow(self, blocks):
        if not self.s.process:
            self.s.start()
        for block in blocks:
            name = named_file(block)
            if name:
                self.write(name, block)
                continue
            self.test.assertTrue(typed(block), f"neither a file nor commands:\n{block}")
            for command, shown in typed(block):
                self.type(command, shown)

    def type(self, command, shown):
        if self.changed and not re.search("troupectl (verify|reload)|cp ", command):
            self.confine()
            self.s.ctl("reload", check=True)
        self.changed &= command == "troupectl verify"
        limit_at = time.monotonic() + LIMIT
        status, output = self.run(command)
        while self.LOOKS.match(command) and not self.is_right(status, output, shown) and time.monotonic() < limit_at:
            status, output = self.run(command)
        self.test.assertTrue(self.is_right(status, output, shown), f"$ {command}\n{output}\nis not as shown:\n{shown or status}")
        self.changed |= command.startswith("cp ")

    def is_right(self, status, output, shown):
        """A command that fails shows so."""
        if shown is None:
            return status == 0
        return is_as_shown(output, self.local(shown)) and (status == 0 or shown)

    def output(self, command):
        """The output of a command that succeeds."""
        status, output = self.run(command)
        self.test.assertEqual(status, 0, f"{command}: {output}")
        return output

    def run(self, command):
        self.confine()
        done = subprocess.run(["bash", "-o", "pipefail", "-c", self.local(command)], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, encoding="utf-8",
                              timeout=LIMIT, cwd=self.s.directory,
                              env={**os.environ, "LC_ALL": "C.UTF-8", "TROUPE_SOCKET": self.s.socket_path, "PYTHONPATH": f"{BUILD}/python",
                                   "PATH": f"{self.folder}:{os.environ['PATH']}"})
        return done.returncode, done.stdout
