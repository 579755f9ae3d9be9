# SPDX-License-Identifier: MIT
"""What a worker of user nobody can do beyond its work, by profile: one table. "ok" is what a profile does not stop."""
import ctypes
import os
import pty
import pwd
import shutil
import socket
import subprocess
import tempfile
import unittest

from troupe import ACTOR, BUILD, TROUPE_EXEC, TestCase, can_mount, helper, ini

PROFILES = "none", "basic", "strict"
DENIED = "EACCES", "EPERM"
ABSENT = *DENIED, "ENOENT", "ENODEV", "ENOSYS", "EROFS"  # or the kernel, or the machine, has none

# The answers of each profile; several: kernels, and their settings, differ. PID is a worker of another group of the same
# user, TERMINAL one of that user's that controls a session, DIR a directory that everybody can read, HOME one in /home, NAME
# a number of the test's own.
TABLE = {
    # Other processes of the same user.
    "signal:PID": ("ok", "ok", "ESRCH"),
    "limits:PID": ("ok", "ok", "ESRCH"),
    "trace:PID": (("ok", "EPERM"), "EPERM", "EPERM"),
    "memory:PID": (("ok", "EPERM"), ("ok", "EPERM"), "ESRCH"),
    "descriptor:PID": (("ok", "EPERM"), "EPERM", ("EPERM", "ESRCH", "EINVAL")),
    "read:/proc/PID/environ": ("ok", "ok", "ENOENT"),
    "read:/proc/PID/mem": (("EIO", "EACCES"), ("EIO", "EACCES"), "ENOENT"),
    "list:/proc/PID/root/etc": (("ok", "EACCES"), ("ok", "EACCES"), "ENOENT"),
    "read:/proc/1/stat": ("ok", "ok", "ENOENT"),
    "trace-me": ("ok", "EPERM", "EPERM"),
    # The kernel.
    "load-module": (ABSENT, ABSENT, DENIED),
    "load-kernel": (ABSENT, "EPERM", "EPERM"),
    "reboot": ("EPERM", "EPERM", "EPERM"),
    "swap-on": ("EPERM", "EPERM", "EPERM"),
    "swap-off": ("EPERM", "EPERM", "EPERM"),
    "set-clock": (("EPERM", "EINVAL"), "EPERM", "EPERM"),
    "host-name": ("EPERM", "EPERM", "EPERM"),
    "bpf": (("EPERM", "EINVAL", "ENOSYS"), ("EPERM", "EINVAL", "ENOSYS"), "EPERM"),
    "perf-event": (("ok", *ABSENT), "EPERM", "EPERM"),
    "io-uring": (("EFAULT", "EPERM", "ENOSYS"), ("EFAULT", "EPERM", "ENOSYS"), "EPERM"),  # EFAULT: it would be one
    "wait-at-several": (("EINVAL", "ENOSYS"), ("EINVAL", "ENOSYS"), "EPERM"),  # EINVAL: there is nothing to wait for
    "userfaultfd": (("ok", "EPERM", "ENOSYS"), ("ok", "EPERM", "ENOSYS"), "EPERM"),
    "add-key": (("ok", "ENOSYS"), ("ok", "ENOSYS"), "EPERM"),
    "join-keyring": (("ok", "ENOSYS"), ("ok", "ENOSYS"), "EPERM"),
    "personality": ("ok", "ok", "EPERM"),
    "realtime": ("EPERM", "EPERM", "EPERM"),
    "same-cpus": ("ok", "ok", "EPERM"),
    "terminal-input": ("ENXIO", "ENXIO", "ENOENT"),
    "type:TERMINAL": (("EPERM", "EIO"), ("EPERM", "EIO"), "ENOENT"),
    "write:/dev/ptmx": ("ok", "ok", "ENOENT"),
    # Namespaces and mounts.
    "user-namespace": (("ok", *DENIED, "ENOSPC"), "EPERM", "EPERM"),
    "mount-namespace": ("EPERM", "EPERM", "EPERM"),
    "enter-namespace": ("EPERM", "EPERM", "EPERM"),
    "mount:DIR": ("EPERM", "EPERM", "EPERM"),
    "chroot": ("EPERM", "EPERM", "EPERM"),
    "make-device": (("ENOENT", "EPERM"), ("ENOENT", "EPERM"), ("ENOENT", "EPERM")),
    # Privileges.
    "gain-privileges": ("EPERM", "EPERM", "EPERM"),
    "setuid:DIR/setuid": ("EPERM", "EPERM", "EPERM"),
    "become-root": ("EPERM", "EPERM", "EPERM"),
    "chown": ("EPERM", "EPERM", "EPERM"),
    "writable-code": ("ok", "ok", "EPERM"),
    "code-after-writing": ("ok", "ok", DENIED),
    "program-in-memory": ("ok", "ok", "ok"),
    "child": ("ok", "ok", "ok"),
    # The network.
    "tcp:PORT": ("ok", "ok", "EAFNOSUPPORT"),
    "inet-socket": ("ok", "ok", "EAFNOSUPPORT"),
    "netlink-socket": ("ok", "ok", "EAFNOSUPPORT"),
    "packet-socket": ("EPERM", "EPERM", "EAFNOSUPPORT"),
    "raw-socket": ("EPERM", "EPERM", "EAFNOSUPPORT"),
    "abstract-socket:troupe-escape-NAME": ("ok", "ok", "EAFNOSUPPORT"),
    "socket:SOCKET": ("ok", "ok", "EAFNOSUPPORT"),  # that of the supervisor, which looks at who asks for what
    # Files.
    "create:/tmp": ("ok", "ok", "ok"),  # of strict, its own
    "create:/dev/shm": ("ok", "ok", "ENOENT"),
    "create:/dev/mqueue": (("ok", *ABSENT), ("ok", *ABSENT), ("EROFS", "ENOENT")),
    "large:/tmp": (("ok", "ENOSPC"), ("ok", "ENOSPC"), "ENOSPC"),
    "large:/dev/shm": ("ok", "ok", "ENOENT"),
    "create:/": ("EACCES", "EACCES", "EROFS"),
    "create:/usr": ("EACCES", "EROFS", "EROFS"),
    "create:/etc": ("EACCES", "EROFS", "EROFS"),
    "create:DIR/open": ("ok", "ok", "EROFS"),
    "read:/etc/passwd": ("ok", "ok", "ok"),
    "read:/etc/shadow": ("EACCES", "EACCES", "EACCES"),
    "read:HOME/file": ("ok", "ok", "ENOENT"),
    "list:/root": ("EACCES", "EACCES", "ENOENT"),
    "list:/run": ("ok", "ok", "ENOENT"),
    "write:/proc/sys/kernel/core_pattern": (("EACCES", "EROFS"), ("EACCES", "EROFS"), "ENOENT"),
    "list:/sys": ("ok", "ok", "ENOENT"),
    "write:/sys/fs/cgroup/cgroup.procs": (ABSENT, ABSENT, "ENOENT"),
    "read:/dev/mem": (ABSENT, ABSENT, "ENOENT"),
    "read:/dev/kmsg": (("ok", "EAGAIN", *ABSENT), ("ok", "EAGAIN", *ABSENT), "ENOENT"),
    # Names that outlive whoever made them.
    "make-segment:NAME": ("ok", "ok", "EPERM"),
    "make-queue:/troupe-escape-NAME": ("ok", "ok", "EPERM"),
    "make:/dev/shm/troupe-escape-NAME": ("ok", "ok", "ENOENT"),
    "make:/tmp/troupe-escape-NAME": ("ok", "ok", "ok"),  # of strict, its own
}


@unittest.skipUnless(can_mount(), "users, mounts and PID namespaces need root")
class Escapes(TestCase):
    def setUp(self):
        super().setUp()
        self.name = 0x65730000 + os.getpid() % 0x10000
        self.directories = {}
        for place, parent in ("DIR", "/var/lib"), ("HOME", "/home"):
            self.directories[place] = tempfile.mkdtemp(prefix="troupe-escape-", dir=parent)
            self.addCleanup(shutil.rmtree, self.directories[place])
            os.chmod(self.directories[place], 0o755)
            with open(f"{self.directories[place]}/file", "w", encoding="utf-8") as file:
                file.write("x")
        os.mkdir(self.directories["DIR"] + "/open")
        os.chmod(self.directories["DIR"] + "/open", 0o777)
        program = shutil.copy(helper("probe"), self.directories["DIR"] + "/setuid")
        os.chmod(program, 0o4755)
        self.tcp = self.listener(socket.AF_INET, ("127.0.0.1", 0))
        self.listener(socket.AF_UNIX, f"\0troupe-escape-{self.name}")
        self.terminal = self.terminal_of_nobody()
        self.addCleanup(self.left)

    def terminal_of_nobody(self):
        ends = pty.openpty()
        for end in ends:
            self.addCleanup(os.close, end)
        process = subprocess.Popen(["sleep", "1000"], preexec_fn=lambda: os.login_tty(ends[1]))
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)
        os.fchown(ends[1], pwd.getpwnam("nobody").pw_uid, -1)
        return os.ttyname(ends[1])

    def listener(self, family, address):
        listener = socket.socket(family)
        self.addCleanup(listener.close)
        listener.bind(address)
        listener.listen(100)
        return listener

    def left(self):
        """Which names are there, and removes them."""
        libc, found = ctypes.CDLL(None), []
        segment = libc.shmget(self.name, 0, 0)
        if segment >= 0:
            libc.shmctl(segment, 0, None)
            found.append("segment")
        if ctypes.CDLL("librt.so.1").mq_unlink(f"/troupe-escape-{self.name}".encode()) == 0:
            found.append("queue")
        for directory in "/dev/shm", "/tmp":
            if os.path.exists(path := f"{directory}/troupe-escape-{self.name}"):
                os.unlink(path)
                found.append(directory)
        return found

    def filled(self, attempt, supervisor, pid):
        for word, value in {**self.directories, "PID": pid, "NAME": self.name, "TERMINAL": self.terminal, "SOCKET": supervisor.path("troupe.sock"),
                            "PORT": self.tcp.getsockname()[1]}.items():
            attempt = attempt.replace(word, str(value))
        return attempt

    def answers(self, profile):
        user = {"Group": {"User": "nobody"}, "Resources": {"LimitCORE": 0}}
        s = self.started({"other": ini(ACTOR, **user)})
        attempts = {self.filled(attempt, s, s.worker("other/0")["pid"]): attempt for attempt in TABLE}
        sandbox = {"Profile": profile}
        if profile == "strict":
            sandbox["ReadOnlyPaths"] = f"{BUILD} {self.directories['DIR']}"
        s.write("g.group", ini(" ".join([f"{TROUPE_EXEC} --", helper("probe"), *attempts]), **user, Sandbox=sandbox))
        s.ctl("reload", check=True)
        told = dict(line.split(": ") for line in s.do("g")["result"]["data"].splitlines())
        return {attempts[attempt]: answer for attempt, answer in told.items()}

    def check(self, profile):
        column = PROFILES.index(profile)
        expected = {attempt: row[column] for attempt, row in TABLE.items()}
        answers = self.answers(profile)
        self.assertEqual(set(answers), set(TABLE))
        wrong = {attempt: answer for attempt, answer in answers.items()
                 if answer not in (expected[attempt] if isinstance(expected[attempt], tuple) else [expected[attempt]])}
        self.assertEqual(wrong, {}, {attempt: expected[attempt] for attempt in wrong})

    def test_I1_a_command_has_no_way_into_the_worker_that_has_the_payloads_of_other_jobs(self):
        attempts = "; ".join(f"(exec 3<{mode}/proc/$PPID/mem) && echo {mode}mem" for mode in ("", ">"))
        attempts += "; ls /proc/$PPID/fd; ls -L /proc/$PPID/cwd; cat /proc/$PPID/maps"
        command = f"{TROUPE_EXEC} -- /bin/sh -c '{attempts}; echo end'"
        for profile in PROFILES:
            with self.subTest(profile=profile):
                s = self.started({"g": ini(command, Group={"User": "nobody"}, Sandbox={"Profile": profile})})
                self.assertEqual(s.do("g")["result"]["data"], "end\n")

    def test_I1_what_a_worker_without_a_profile_can_do(self):
        self.check("none")
        self.assertEqual(self.left(), ["segment", "queue", "/dev/shm", "/tmp"])

    def test_I1_what_the_basic_profile_leaves(self):
        self.check("basic")
        self.assertEqual(self.left(), ["/dev/shm", "/tmp"])

    def test_I2_what_the_strict_profile_leaves(self):
        self.check("strict")
        self.assertEqual(self.left(), [])
