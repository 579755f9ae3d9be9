# SPDX-License-Identifier: MIT
"""[Sandbox]: what a confined worker cannot do, and that it can do its work."""
import ctypes
import os
import pwd
import shutil
import signal
import socket
import subprocess
import tempfile
import unittest
from pathlib import Path

from troupe import (ACTOR, BUILD, FAULTY_TROUPED, LIMIT, SANITIZED, TROUPE_EXEC, TestCase, can_mount, ended, helper, ini,
                    text)

PROBE = f"{TROUPE_EXEC} -- {helper('probe')}"
WHOLE = {"NoNewPrivileges": "yes", "UMask": "0077", "CapabilityBoundingSet": "none",
         "SystemCallFilter": "@system-service", "SystemCallErrorNumber": "EPERM", "SystemCallArchitectures": "native",
         "RestrictAddressFamilies": "AF_UNIX", "RestrictNamespaces": "yes", "MemoryDenyWriteExecute": "yes"}


def probe(**sandbox):
    return ini(PROBE, Sandbox=sandbox, Resources={"LimitCORE": 0})


def mounts():
    """Those at the places of ProtectSystem=, ProtectHome= and PrivateTmp=. Elsewhere, other programs may mount meanwhile."""
    places = {"/", "/home", "/root", "/run/user", "/tmp", "/var/tmp"}
    with open("/proc/self/mountinfo", encoding="utf-8") as file:
        return [line for line in file if line.split()[4] in places]


def results(job):
    return dict(line.split(": ") for line in job["result"]["data"].splitlines())


class Probes(TestCase):
    def answers(self, **sandbox):
        s = self.started({"g": probe(**sandbox)})
        return results(s.do("g"))

    def assert_answers(self, answers, **expected):
        expected = {name.replace("_", "-"): answer for name, answer in expected.items()}
        self.assertEqual({name: answers[name] for name in expected}, expected)

    def test_a_whole_sandbox_leaves_a_command_its_work_and_nothing_else(self):
        s = self.started({"g": probe(**WHOLE)})
        self.assert_answers(
            results(s.do("g")), child="ok", unix_socket="ok", inet_socket="EAFNOSUPPORT", netlink_socket="EAFNOSUPPORT",
            user_namespace="EPERM", mount_namespace="EPERM", net_namespace="EPERM", enter_namespace="EPERM",
            writable_code="EPERM", code_after_writing="EPERM", mount="EPERM", trace_me="EPERM", set_clock="EPERM",
            reboot="EPERM", load_module="EPERM", swap_off="EPERM", bpf="EPERM", perf_event="EPERM", chroot="EPERM",
            gain_privileges="EPERM")
        self.assertEqual(s.group("g")["sandbox"], ", ".join(WHOLE))
        self.assertIn("Sandbox: NoNewPrivileges, UMask", s.ctl("status", "g").stdout)

    def test_without_keys_nothing_is_forbidden(self):
        s = self.started({"g": probe()})
        self.assert_answers(results(s.do("g", "")), inet_socket="ok", writable_code="ok", code_after_writing="ok",
                            punch_hole="ok", remove_pages="ok")
        self.assertNotIn("sandbox", s.group("g"))

    def programs(self, calls, **sandbox):
        """How many a worker's system calls are filtered by."""
        inherited = int(Path("/proc/self/status").read_text(encoding="ascii").partition("Seccomp_filters:")[2].split()[0])
        s = self.started({"g": probe(RestrictAddressFamilies="AF_UNIX", SystemCallFilter=calls, **sandbox)})
        self.assertIn("filtered system calls", s.worker("g/0")["in_force"])
        return int(s.status_field("Seccomp_filters", s.worker("g/0")["pid"])) - inherited

    def test_filters_of_arguments_and_of_calls_are_one_program_and_another_forbids_to_hand_the_listener_on(self):
        self.assertEqual(self.programs("@system-service"), 2)
        self.assertEqual(self.programs("~sendmsg", SystemCallLog="@swap"), 2)

    @unittest.skipUnless(os.getuid() == 0, "only root can change the user")
    def test_a_user_that_may_gain_privileges_again(self):
        user = {"Group": {"User": "nobody"}, "Resources": {"LimitCORE": 0}}
        command = f"{TROUPE_EXEC} -- /bin/grep -E ^(NoNewPrivs|CapBnd|CapEff|Seccomp): /proc/self/status"
        s = self.started({"plain": ini(command, **user), "free": ini(command, **user, Sandbox={"NoNewPrivileges": "no"}),
                          "ambient": ini(command, **user, Sandbox={"AmbientCapabilities": "CAP_KILL"}),
                          "filtered": ini(command, **user, Sandbox={"NoNewPrivileges": "no",
                                                                   "SystemCallFilter": "@system-service"})})
        def told(group):
            return {line.split(":\t")[0]: int(line.split(":\t")[1], 16) for line in s.do(group)["result"]["data"].splitlines()}
        inherited = {key: s.status_field(key, s.process.pid) for key in ("NoNewPrivs", "Seccomp")}
        if any(inherited.values()):
            self.skipTest(f"here, all processes have {inherited}")
        self.assertEqual(told("plain"), {"CapEff": 0, "CapBnd": 0, "NoNewPrivs": 1, "Seccomp": 0})
        self.assertEqual(told("free"), {"CapEff": 0, "CapBnd": 0, "NoNewPrivs": 0, "Seccomp": 0})
        self.assertEqual(told("ambient"), {"CapEff": 32, "CapBnd": 32, "NoNewPrivs": 1, "Seccomp": 0})
        self.assertEqual(told("filtered"), {"CapEff": 0, "CapBnd": 0, "NoNewPrivs": 1, "Seccomp": 2})


@unittest.skipUnless(can_mount(), "mount namespaces need CAP_SYS_ADMIN")
class Files(TestCase):
    def setUp(self):
        super().setUp()
        self.top = tempfile.mkdtemp(prefix="troupe-files-", dir="/var/lib")
        self.addCleanup(shutil.rmtree, self.top)
        for directory in ("open", "open/kept", "closed", "target"):
            os.makedirs(f"{self.top}/{directory}")
        for name in ("open/file", "closed/file"):
            Path(f"{self.top}/{name}").write_text("x", encoding="utf-8")
        os.symlink("target", f"{self.top}/link")

    def answers(self, attempts, wrapper=(), **sandbox):
        s = self.started({"g": ini(" ".join([PROBE] + [attempt.replace(":", ":" + self.top, 1) for attempt in attempts]),
                                   Sandbox={key: value.replace("@", self.top) for key, value in sandbox.items()})},
                         wrapper=wrapper)
        answers = dict(line.split(": ") for line in s.do("g")["result"]["data"].splitlines())
        return {attempt.replace(self.top, "", 1): answer for attempt, answer in answers.items()}

    def test_paths_are_read_only_writable_again_or_hidden(self):
        self.assertEqual(
            self.answers(["create:/open", "write:/open/file", "read:/open/file", "create:/open/kept", "list:/closed",
                          "create:/target", "create:/link", "create:/"],
                         ReadOnlyPaths="@/open @/link -/nowhere", ReadWritePaths="@/open/kept", InaccessiblePaths="@/closed"),
            {"create:/open": "EROFS", "write:/open/file": "EROFS", "read:/open/file": "ok", "create:/open/kept": "ok",
             "list:/closed": "ENOENT", "create:/target": "EROFS", "create:/link": "EROFS", "create:/": "ok"})

    def test_strict_leaves_what_is_listed(self):
        self.assertEqual(self.answers(["create:/open", "create:/closed"], ProtectSystem="strict", ReadWritePaths="@/open"),
                         {"create:/open": "ok", "create:/closed": "EROFS"})

    def test_the_supervisor_holds_the_mounts_of_a_worker_until_that_has_ended(self):
        """The kernel would take them down before it reports the death."""
        s = self.started({"g": ini(ACTOR, Sandbox={"PrivateTmp": "yes"})})
        pid = s.worker("g/0")["pid"]
        mounts = os.readlink(f"/proc/{pid}/ns/mnt")
        s.until(lambda: mounts in s.fds())
        s.call("Stop", target="g")
        s.until(lambda: mounts not in s.fds())

    def test_each_start_sees_the_paths_as_they_are_then(self):
        s = self.started({"g": ini(f"{PROBE} read:{self.top}/open/file",
                                   Sandbox={"InaccessiblePaths": f"{self.top}/open/file"})})
        self.assertIn(": ENODATA", s.do("g")["result"]["data"])
        Path(f"{self.top}/new").write_text("x", encoding="utf-8")
        os.rename(f"{self.top}/new", f"{self.top}/open/file")
        s.ctl("restart", "g", "--wait", check=True)
        self.assertIn(": ENODATA", s.do("g")["result"]["data"])

    def test_in_a_private_root_mounts_of_the_machine_appear_and_none_gets_out(self):
        shown, later = f"{self.top}/open", f"{self.top}/open/later"
        for command in (["mount", "-t", "tmpfs", "tmpfs", shown], ["mount", "--make-shared", shown], ["mkdir", later]):
            subprocess.run(command, check=True)
        self.addCleanup(subprocess.run, ["umount", "-R", shown], check=True)
        for key in "ReadOnlyPaths", "ReadWritePaths":
            with self.subTest(key):
                s = self.started({"g": ini(PROBE, Sandbox={"PrivateRoot": "yes", key: f"{BUILD} {shown}"})})
                worker = s.worker("g/0")["pid"]
                self.assertEqual({mount[0] for mount in self.mounts(worker, "/") if mount[1] == "/"}, {"tmpfs"})
                [(_, _, propagation)] = self.mounts(worker, shown)
                self.assertTrue(propagation.startswith("master:"))
                subprocess.run(["mount", "-t", "tmpfs", "tmpfs", later], check=True)
                self.assertEqual([mount[1] for mount in self.mounts(worker, shown)], [shown, later])
                subprocess.run(["umount", later], check=True)
                self.assertEqual([mount[1] for mount in self.mounts(worker, shown)], [shown])

    def strict(self, command, wrapper=(), **sandbox):
        os.chmod(self.top, 0o755)
        return self.started({"g": ini(f"{TROUPE_EXEC} -- {command}", Group={"User": "nobody"},
                                      Sandbox={"Profile": "strict", **sandbox})}, wrapper=wrapper)

    @staticmethod
    def restart(s):
        s.ctl("restart", "g", "--wait", check=True)

    def replace(self, name, text):
        Path(f"{self.top}/new").write_text(text, encoding="utf-8")
        os.rename(f"{self.top}/new", f"{self.top}/{name}")

    def test_each_start_in_a_private_root_sees_the_paths_as_they_are_then(self):
        s = self.strict(f"/bin/sh -c 'cat {self.top}/open/file; cd {self.top}; echo $(echo link/* late/*)'",
                        ReadOnlyPaths=f"{self.top}/open/file {self.top}/link -{self.top}/late")

        def change_file():
            self.replace("open/file", "y")

        def change_link():
            os.symlink("closed", f"{self.top}/other")
            os.rename(f"{self.top}/other", f"{self.top}/link")

        def appear():
            os.makedirs(f"{self.top}/late/there")
        for change, shown in ((lambda: None, "xlink/* late/*\n"), (change_file, "ylink/* late/*\n"),
                              (change_link, "ylink/file late/*\n"), (appear, "ylink/file late/there\n")):
            with self.subTest(shown):
                change()
                self.restart(s)
                self.assertEqual(s.do("g")["result"]["data"], shown)

    def test_what_is_mounted_below_proc_is_in_a_private_root(self):
        s = self.strict("/bin/cat /proc/version", wrapper=["unshare", "--mount", "sh", "-ec", f"""
            mount --bind {self.top}/open/file /proc/version
            exec "$@\"""", "sh"], ProcSubset="all")
        self.assertEqual(s.do("g")["result"]["data"], "x")

    def test_below_a_chroot_a_private_root_has_nothing_that_is_above(self):
        top = f"{self.top}/target"
        s = self.strict("/bin/sh -c 'echo /*'", wrapper=["unshare", "--mount", "sh", "-ec",
                                                         f'mount --rbind / {top}; exec chroot {top} "$@"', "sh"])
        self.assertNotIn("/root", s.do("g")["result"]["data"])

    def test_a_device_that_was_a_file_by_mistake_is_one_again_after_a_restart(self):
        devices = f"{self.top}/target"
        s = self.strict("/usr/bin/stat --printf=%%F /dev/null", wrapper=["unshare", "--mount", "sh", "-ec", f"""
            mount -t tmpfs tmpfs {devices}
            cp -a /dev/null /dev/zero /dev/full /dev/random /dev/urandom {devices}
            mount --move {devices} /dev
            rm /dev/null
            echo x >/dev/null
            exec "$@\"""", "sh"])
        self.restart(s)
        self.assertEqual(s.do("g")["result"]["data"], "regular file")
        subprocess.run(["nsenter", "-t", str(s.process.pid), "-m", "sh", "-ec",
                        "rm /dev/null; mknod -m 666 /dev/null c 1 3"], check=True)
        self.restart(s)
        self.assertEqual(s.do("g")["result"]["data"], "character special file")

    def test_a_path_that_is_replaced_by_itself_stays_hidden(self):
        """The kernel takes a mount away with the name on which it is."""
        s = self.strict(f"{helper('probe')} read:{self.top}/open/file", ReadOnlyPaths=f"{self.top}/open {BUILD}",
                        InaccessiblePaths=f"{self.top}/open/file")
        self.restart(s)
        os.link(f"{self.top}/open/file", f"{self.top}/open/same")
        self.replace("open/file", "y")
        os.rename(f"{self.top}/open/same", f"{self.top}/open/file")
        self.restart(s)
        self.assertIn(": EACCES", s.do("g")["result"]["data"])

    def test_what_a_worker_that_may_mount_does_to_its_root_no_other_start_sees(self):
        attack = "; ".join(["mount -o remount,bind,rw /", "mkdir -p /evil", "ln -sf /evil /dev/evil",
                            "mount -t tmpfs evil /evil", "mount -t tmpfs evil /etc", "ls -d /evil /dev/evil"])
        show = "echo $(echo /* /dev/*); head -c 4 /etc/passwd; echo"
        paths = {"PrivateRoot": "yes", "ReadOnlyPaths": BUILD}
        s = self.started({"g": ini(f"{TROUPE_EXEC} -- /bin/sh -ec '{show}; {attack}'",
                                   Sandbox={**paths, "SystemCallFilter": "@system-service @mount"}),
                          "other": ini(f"{TROUPE_EXEC} -- /bin/sh -ec '{show}'", Group={"User": "nobody"},
                                       Sandbox={**paths, "RestrictNamespaces": "yes"})})
        shown = s.do("other")["result"]["data"]
        self.assertTrue(shown.endswith("root\n"), shown)
        for group, rest in ("g", "/dev/evil\n/evil\n"), ("other", ""), ("g", "/dev/evil\n/evil\n"):
            s.ctl("restart", group, "--wait", check=True)
            self.assertEqual(s.do(group)["result"]["data"], shown + rest)

    def test_each_start_sees_the_mounts_of_the_machine_as_they_are_then(self):
        shown, later = f"{self.top}/open", f"{self.top}/open/kept"
        for command in ["mount", "--bind", shown, shown], ["mount", "--make-private", shown]:
            subprocess.run(command, check=True)
        self.addCleanup(subprocess.run, ["umount", "-R", shown], check=True)
        s = self.strict(f"/bin/sh -c 'mountpoint -q {later} || echo no'", ReadOnlyPaths=shown)
        self.restart(s)
        for command, answer in (["mount", "-t", "tmpfs", "tmpfs", later], ""), (["umount", later], "no\n"):
            with self.subTest(answer):
                subprocess.run(command, check=True)
                self.restart(s)
                self.assertEqual(s.do("g")["result"].get("data", ""), answer)

    @staticmethod
    def mounts(pid, below):
        """The (type, place, propagation) of each."""
        with open(f"/proc/{pid}/mountinfo", encoding="utf-8") as file:
            lines = [line.split() for line in file]
        return [(line[line.index("-") + 1], line[4], line[6]) for line in lines if line[4].startswith(below)]

    def test_I2_a_strict_profile_leaves_a_worker_its_work_and_a_private_directory(self):
        attempts = ["create:/", "create:/tmp", "create:/etc", "create:/dev", "create:/dev/shm", "create:/usr", "list:/home",
                    "list:/run", "list:/var/lib", "list:/sys", "list:/usr", "read:/etc/passwd", "read:/proc/self/stat",
                    "read:/proc/sys/kernel/core_pattern", "read:/proc/meminfo", "read:/dev/urandom", "write:/dev/null",
                    "inet-socket", "unix-socket", "io-uring", "user-namespace", "mount", "trace-me", "writable-code",
                    "become-root", "add-key", "shared-memory-name", "userfaultfd", "queue:/probe", "child",
                    "punch-hole", "remove-pages", "allocate-pages", "forget-pages"]
        group = {"Group": {"User": "nobody"}, "Sandbox": {"Profile": "strict", "ReadOnlyPaths": BUILD}}
        s = self.started({"g": ini(" ".join([PROBE] + attempts), **group), "worker": ini(ACTOR, **group)})
        answers = results(s.do("g"))
        self.assertEqual({name for name, answer in answers.items() if answer == "ok"},
                         {"create:/tmp", "list:/usr", "read:/etc/passwd", "read:/proc/self/stat", "read:/dev/urandom",
                          "write:/dev/null", "child", "allocate-pages", "forget-pages"})
        self.assertEqual((answers["create:/"], answers["list:/home"], answers["io-uring"]), ("EROFS", "ENOENT", "EPERM"))
        self.assertEqual((answers["punch-hole"], answers["remove-pages"]), ("EOPNOTSUPP", "EINVAL"))
        self.assertEqual(s.do("worker", "echo hello")["result"], text("hello"))
        self.assertEqual(len(s.do("worker", "blob 300000")["result"]["data"]), 400000)
        in_force = s.worker("worker/0")["in_force"]
        self.assertIn("files by mounts", in_force)
        self.assertEqual("signals to itself only" in in_force, landlock_abi() >= 6)

    def test_I2_a_strict_profile_leaves_nothing_at_the_top_but_what_is_listed(self):
        command = f"{TROUPE_EXEC} -- /bin/sh -c 'cd /; echo *'"
        s = self.started({"g": ini(command, Group={"User": "nobody"}, Sandbox={"Profile": "strict"}),
                          "more": ini(command, Group={"User": "nobody"},
                                      Sandbox={"Profile": "strict", "ReadOnlyPaths": f"{self.top}/open"})})
        known = {"bin", "dev", "etc", "lib", "lib32", "lib64", "libx32", "proc", "sbin", "tmp", "usr", "var"}
        program = {TROUPE_EXEC.split("/")[1]}
        top = set(s.do("g")["result"]["data"].split())
        self.assertLessEqual(top, known | program)
        self.assertLessEqual({"bin", "dev", "etc", "proc", "tmp", "usr"} | program, top)
        self.assertEqual(set(s.do("more")["result"]["data"].split()), top | {"var"})

    def test_a_private_root_has_what_is_listed(self):
        for wrapper in (), ("setpriv", "--bounding-set", "-sys_chroot"):
            with self.subTest(wrapper):
                self.assertEqual(
                    self.answers(["create:/open", "write:/open/file", "read:/open/file", "create:/open/kept", "list:/closed",
                                  "list:/", "list:/link", "create:/link", "create:/target"], wrapper, PrivateRoot="yes",
                                 ReadOnlyPaths=f"@/open -/nowhere {BUILD}", ReadWritePaths="@/open/kept @/link"),
                    {"create:/open": "EROFS", "write:/open/file": "EROFS", "read:/open/file": "ok", "create:/open/kept": "ok",
                     "list:/closed": "ENOENT", "list:/": "ok", "list:/link": "ENOENT", "create:/link": "ok",
                     "create:/target": "ok"})

    def test_a_private_root_has_the_usual_devices_and_those_that_are_listed(self):
        def group(**sandbox):
            return ini(f"{TROUPE_EXEC} -- /bin/sh -c 'cd /dev && echo * && echo x 2>stderr >null && head -c 3 zero | wc -c'",
                       Sandbox={"PrivateRoot": "yes", **sandbox})
        usual = {"fd", "full", "null", "random", "stderr", "stdin", "stdout", "urandom", "zero", "3"}
        for wrapper in (), ("setpriv", "--bounding-set", "-sys_chroot"):
            with self.subTest(wrapper):
                s = self.started({"a": group(), "more": group(ReadOnlyPaths="/dev/shm"), "b": group(PrivateTmp="yes")},
                                 wrapper=wrapper)
                shown = {name: set(s.do(name)["result"]["data"].split()) - {"mqueue"} for name in ("a", "more", "b")}
                self.assertEqual(shown, {"a": usual, "more": usual | {"shm"}, "b": usual})

    def test_in_a_user_namespace_a_private_root_has_a_proc_of_the_worker_s_own(self):
        """The kernel makes one only for a process that sees another one."""
        wrapper = ["unshare", "--user", "--map-root-user", "--mount"]
        if subprocess.run([*wrapper, "--pid", "--fork", "mount", "-t", "proc", "proc", "/proc"], check=False).returncode != 0:
            self.skipTest("no /proc can be mounted in a user namespace here")
        s = self.started({"g": ini(f"{PROBE} read:/proc/self/stat read:/proc/meminfo",
                                   Sandbox={"PrivateRoot": "yes", "PrivatePIDs": "yes", "ProcSubset": "pid",
                                            "ReadOnlyPaths": BUILD})}, wrapper=wrapper)
        self.assertEqual(results(s.do("g")), {"read:/proc/self/stat": "ok", "read:/proc/meminfo": "ENOENT"})

    def test_a_command_that_a_private_root_hides_is_told_from_one_that_does_not_exist(self):
        for private, reason in ("yes", "not in the root of this worker: .* name it in ReadOnlyPaths=, then run 'troupectl reload'$"), ("no", "No such file"):
            with self.subTest(private):
                s = self.started({"g": ini(f"{TROUPE_EXEC} -- /srv/no/converter", Restart={"Restart": "no"},
                                           Sandbox={"PrivateRoot": private})})
                s.wait_event("worker.died", "g")
                self.assertRegex(s.deaths("g")[0]["stderr"], r"^troupe-exec: /srv/no/converter: " + reason)

    def test_that_the_sandbox_hides_the_file_of_a_job_is_told(self):
        path = os.path.join(self.top, "input")
        Path(path).write_text("text", encoding="utf-8")
        for shown in (False, True):
            with self.subTest(shown):
                sandbox = {"PrivateRoot": "yes", **({"ReadOnlyPaths": path} if shown else {})}
                s = self.started({"g": ini(f"{TROUPE_EXEC} -- /bin/cat {{}}", Jobs={"MaxRetries": 0}, Sandbox=sandbox)})
                job = s.do("g", path)
                if shown:
                    self.assertEqual(job["state"], "succeeded")
                    continue
                self.assertRegex(job["reason"], "^exited with status 1, and the sandbox does not show the file in its argument: "
                                                "if the file exists, list it, or a directory above, in ReadOnlyPaths= and run 'troupectl reload': .*No such file")

    def test_a_file_that_a_listed_directory_lacks_is_not_hidden(self):
        s = self.started({"g": ini(f"{TROUPE_EXEC} -- /bin/cat {{}}", Jobs={"MaxRetries": 0},
                                   Sandbox={"PrivateRoot": "yes", "ReadOnlyPaths": BUILD})})
        self.assertRegex(s.do("g", f"{BUILD}/none")["reason"], "^exited with status 1: .*No such file")

    def test_what_is_hidden_in_a_private_root_is_hidden(self):
        s = self.started({"g": ini(f"{PROBE} read:/etc/passwd list:/usr/bin list:/usr/lib read:/etc/group",
                                   Sandbox={"PrivateRoot": "yes", "ReadOnlyPaths": BUILD,
                                            "InaccessiblePaths": "/etc/passwd /usr/bin -/nowhere"})})
        self.assertEqual(results(s.do("g")), {"read:/etc/passwd": "ENODATA", "list:/usr/bin": "ENOENT", "list:/usr/lib": "ok",
                                              "read:/etc/group": "ok"})

    def test_a_strict_profile_is_refused_for_root(self):
        refusal = ("Profile=strict: the workers would run as root, from which it does not protect the machine; "
                   "allowed: with another User= in [Group], such as User=nobody")
        s = self.started({"g": ini(ACTOR)})
        pid = s.worker("g/0")["pid"]
        for user in {}, {"User": "root"}:
            s.write("g.group", ini(ACTOR, Group=user, Sandbox={"Profile": "strict"}))
            verified = s.ctl("verify", f"{s.config}/g.group")
            self.assertEqual((verified.returncode, refusal in verified.stdout + verified.stderr), (7, True), verified)
            s.ctl("reload")
            self.assertIn(f"g keeps its previous configuration: {refusal}", s.log())
        self.assertEqual(s.worker("g/0")["pid"], pid)

    def test_keys_refine_a_profile(self):
        attempts = ["create:/usr", "create:/tmp", "mount", "user-namespace", "inet-socket", "child"]
        s = self.started({"g": ini(" ".join([PROBE] + attempts),
                                   Sandbox={"Profile": "basic", "RestrictNamespaces": "no", "UMask": "0022"})})
        self.assertEqual(results(s.do("g")), {
            "create:/usr": "EROFS", "create:/tmp": "ok", "mount": "EPERM", "user-namespace": "ok", "inet-socket": "ok",
            "child": "ok"})
        self.assertEqual(s.group("g")["sandbox"], "Profile=basic, UMask, RestrictNamespaces")

    def test_a_group_has_a_network_of_its_own(self):
        with socket.socket(socket.AF_UNIX) as listener:
            connect = f"abstract-socket:troupe-probe-{os.getpid()}"
            listener.bind("\0" + connect.partition(":")[2])
            listener.listen(100)
            command = f"{PROBE} {connect} loopback other-interface"
            show = f"{TROUPE_EXEC} -- readlink /proc/self/ns/net"
            private = {"PrivateNetwork": "yes"}
            s = self.started({"open": ini(command), "own": ini(command, Sandbox=private),
                              "a": ini(show, Pool={"MaxJobs": 1}, Sandbox=private), "b": ini(show, Sandbox=private)})
            self.assertEqual(results(s.do("own")),
                             {connect: "ECONNREFUSED", "loopback": "ok", "other-interface": "ENODEV"})
            self.assertEqual(results(s.do("open"))[connect], "ok")
            first, second = s.do("a")["result"], s.do("a")["result"]
            self.assertEqual(first, second)
            self.assertNotIn(first, (s.do("b")["result"], text(os.readlink("/proc/self/ns/net") + "\n")))

    def test_why_a_worker_cannot_start_names_the_key_of_the_group_and_the_path(self):
        nowhere = "/nowhere/" + "x" * 200
        for key, path, sandbox in (
                ("ReadOnlyPaths", nowhere, {"ReadOnlyPaths": f"/usr {nowhere}", "ProtectSystem": "full"}),
                ("ReadWritePaths", "/nowhere", {"ReadWritePaths": "/nowhere", "ProtectSystem": "strict"}),
                ("InaccessiblePaths", "/nowhere", {"InaccessiblePaths": "/nowhere", "ProtectHome": "yes"})):
            with self.subTest(key=key):
                s = self.started({"g": ini(ACTOR, Sandbox=sandbox)})
                s.wait_not_started("g/0", f"{key}=: {path}: No such file or directory")

    def test_a_path_that_may_be_missing_is_not_if_it_leads_through_a_file_or_into_a_loop(self):
        """As with systemd, which ignores nothing but ENOENT."""
        os.symlink("loop", f"{self.top}/loop")
        for path, why in ("open/file/below", "Not a directory"), ("loop", "Too many levels of symbolic links"):
            with self.subTest(path=path):
                s = self.started({"g": ini(ACTOR, Sandbox={"ReadOnlyPaths": f"-{self.top}/{path}"})})
                s.wait_not_started("g/0", f"ReadOnlyPaths=: {self.top}/{path}: {why}")

    def test_a_working_directory_that_has_gone_from_a_private_root_is_named(self):
        directory = f"{self.top}/target"
        s = self.started({"g": ini(ACTOR, Group={"WorkingDirectory": directory}, Sandbox={"PrivateRoot": "yes"})})
        os.rmdir(directory)
        os.kill(s.worker("g/0")["pid"], signal.SIGKILL)
        s.until(lambda: f"g/0 could not be started: WorkingDirectory=: {directory}: No such file or directory" in s.log())

    def test_a_program_that_the_sandbox_hides_is_refused_with_the_key_and_the_directory(self):
        programs = {}
        for place in "/tmp", "/var/tmp", "/root", "/opt":
            directory = tempfile.mkdtemp(prefix="troupe-program-", dir=place)
            self.addCleanup(shutil.rmtree, directory)
            os.chmod(directory, 0o755)
            programs[place] = shutil.copy("/bin/true", f"{directory}/true")
        s = self.started({"g": ini(ACTOR)})
        def verify(place, **sandbox):
            s.write("g.group", ini(programs[place], Sandbox=sandbox))
            return s.ctl("verify", f"{s.config}/g.group").stdout
        for place, key, value in (("/tmp", "PrivateTmp", "yes"), ("/var/tmp", "PrivateTmp", "job"), ("/root", "ProtectHome", "yes"),
                                  ("/root", "ProtectHome", "tmpfs"), ("/opt", "InaccessiblePaths", "/opt"),
                                  ("/opt", "InaccessiblePaths", programs["/opt"])):
            with self.subTest(place=place, key=key):
                path = value if place == "/opt" else place
                refusal = (f"ExecStart=: program '{programs[place]}' is in {path}, which {key}= in [Sandbox] hides from the worker; "
                           "allowed: a program elsewhere")
                self.assertIn(refusal, verify(place, **{key: value}))
                s.ctl("reload")
                self.assertIn(f"g keeps its previous configuration: {refusal}", s.log())
        for place, sandbox in (("/root", {"ProtectHome": "read-only"}), ("/opt", {"PrivateTmp": "yes", "ProtectHome": "yes"}),
                               ("/tmp", {"PrivateRoot": "yes", "PrivateTmp": "yes"})):  # which shows the program's directory
            self.assertRegex(verify(place, **sandbox), r"^no (problems|errors, 1 warning)\n$")

    def test_temporary_files_end_with_their_worker(self):
        with tempfile.NamedTemporaryFile(prefix="troupe-outside-") as outside:
            command = f"{TROUPE_EXEC} -- /bin/sh -c 'ls -A /tmp /var/tmp; touch /tmp/of-job /var/tmp/of-job; exec cat'"
            s = self.started({"g": ini(command, Group={"User": "nobody"}, Pool={"MaxJobs": 1}, Sandbox={"PrivateTmp": "yes"})})
            for _ in range(3):
                self.assertEqual(s.do("g")["result"], text("/tmp:\n\n/var/tmp:\n"))
            self.assertTrue(os.path.exists(outside.name))
        self.assertFalse(os.path.exists("/tmp/of-job") or os.path.exists("/var/tmp/of-job"))

    def test_I7_temporary_files_end_with_their_job(self):
        tree = "i=0; while [ $i -lt 50 ]; do mkdir -m 700 d && cd d && echo x >file && chmod 500 . || exit 1; i=$((i+1)); done"
        tree = tree.replace("chmod 500 .", "ln -s /etc/passwd link")
        command = (f"{TROUPE_EXEC} -- /bin/sh -c 'ls -A /tmp /var/tmp; cd /tmp && {tree}; cd /tmp;"
                   " chmod 0 d/d; echo x >/var/tmp/x; echo x >/tmp/.x'")
        for sandbox in {"PrivateTmp": "job"}, {"Profile": "strict"}:
            with self.subTest(sandbox=sandbox):
                s = self.started({"g": ini(command, Group={"User": "nobody"}, Sandbox=sandbox)})
                pid = s.worker("g/0")["pid"]
                for _ in range(3):
                    self.assertTrue(s.do("g")["result"]["data"].startswith("/tmp:\n\n/var/tmp:\n"))
                self.assertEqual((s.worker("g/0")["pid"], s.deaths()), (pid, []))

    def test_temporary_files_of_a_worker_stay_from_job_to_job(self):
        command = f"{TROUPE_EXEC} -- /bin/sh -c 'ls -A /tmp; echo x >/tmp/x'"
        s = self.started({"g": ini(command, Group={"User": "nobody"}, Sandbox={"PrivateTmp": "yes"})})
        self.assertEqual([s.do("g")["result"]["data"] for _ in range(2)], ["", "x\n"])

    def test_a_worker_in_a_strict_sandbox_does_its_work_and_leaves_no_mount(self):
        before = mounts()
        s = self.started({"g": ini(ACTOR, Pool={"Size": 2}, Sandbox={"ProtectSystem": "strict", "ProtectHome": "tmpfs",
                                                                   "PrivateTmp": "yes"})})
        self.assertEqual(s.do("g", "echo hello")["result"], text("hello"))
        self.assertEqual(len(s.do("g", "blob 300000")["result"]["data"]), 400000)
        self.assertEqual(s.group("g")["sandbox"], "ProtectSystem, ProtectHome, PrivateTmp")
        self.assertEqual(mounts(), before)


@unittest.skipUnless(can_mount(), "PID namespaces need CAP_SYS_ADMIN")
class Processes(TestCase):
    """PrivatePIDs=, ProtectProc=, ProcSubset= and PrivateIPC=: what a worker can do to others of its user."""
    USER = {"Group": {"User": "nobody"}}

    def beside(self, attempts, **sandbox):
        """What a worker can do beside another of the same user; @ = the pid of that."""
        s = self.started({"other": ini(ACTOR, **self.USER)})
        self.pid = str(s.worker("other/0")["pid"])
        s.write("g.group", ini(" ".join([PROBE] + attempts).replace("@", self.pid), **self.USER, Sandbox=sandbox))
        s.ctl("reload", check=True)
        return {attempt.replace(self.pid, "@"): answer for attempt, answer in results(s.do("g")).items()}

    def namespace_is_empty(self, namespace):
        for pid in filter(str.isdigit, os.listdir("/proc")):
            try:
                if os.readlink(f"/proc/{pid}/ns/pid") == namespace:
                    return False
            except OSError:
                pass
        return True

    TO_OTHERS = ["signal:@", "limits:@", "read:/proc/@/environ", "read:/proc/@/mem", "list:/proc/@/fd", "list:/proc/@/root/tmp"]

    def test_each_worker_has_an_ipc_namespace_of_its_own(self):
        s = self.started({"g": ini(ACTOR, Group={"User": "nobody"}, Pool={"Size": 2},
                                   Sandbox={"Profile": "strict", "ReadOnlyPaths": BUILD})})
        pids = [worker["pid"] for worker in s.group("g")["workers"]]
        self.assertEqual(len({os.readlink(f"/proc/{pid}/ns/ipc") for pid in [*pids, os.getpid()]}), 3)

    def test_status_shows_the_namespaces_of_processes_and_ipc_that_are_in_force(self):
        pids, ipc = "a PID namespace of its own", "an IPC namespace of its own"
        strict = {"Profile": "strict", "ReadOnlyPaths": BUILD}
        for sandbox, shown in (({"PrivatePIDs": "yes"}, {pids}), ({"PrivateIPC": "yes"}, {ipc}), (strict, {pids, ipc}),
                               ({"ProtectProc": "invisible"}, set())):
            with self.subTest(sandbox=sandbox):
                s = self.started({"g": ini(ACTOR, Group={"User": "nobody"}, Sandbox=sandbox)})
                s.do("g", "echo hello")
                for _ in range(2):
                    self.assertEqual({pids, ipc} & set(s.worker("g/0")["in_force"].split(", ")), shown)
                    self.assertTrue(all(part in s.ctl("status", "g/0").stdout for part in shown))
                    s.crash()

    def test_without_keys_a_worker_reaches_others_of_its_user(self):
        answers = self.beside(self.TO_OTHERS)
        self.assertEqual((answers["signal:@"], answers["limits:@"], answers["read:/proc/@/environ"]), ("ok", "ok", "ok"))

    def test_I1_a_worker_in_a_pid_namespace_reaches_no_other_process(self):
        self.assertEqual(self.beside(self.TO_OTHERS + ["read:/proc/self/stat", "read:/proc/meminfo"], PrivatePIDs="yes"), {
            "signal:@": "ESRCH", "limits:@": "ESRCH", "read:/proc/@/environ": "ENOENT", "read:/proc/@/mem": "ENOENT",
            "list:/proc/@/fd": "ENOENT", "list:/proc/@/root/tmp": "ENOENT", "read:/proc/self/stat": "ok",
            "read:/proc/meminfo": "ok"})

    def test_I1_proc_hides_processes_of_others(self):
        attempts = ["read:/proc/1/stat", "list:/proc/1/fd", "read:/proc/@/stat", "read:/proc/meminfo"]
        expected = {"default": "ok", "noaccess": "EPERM", "invisible": "ENOENT", "ptraceable": "ENOENT"}
        for value, answer in expected.items():
            with self.subTest(ProtectProc=value):
                answers = self.beside(attempts, ProtectProc=value)
                self.assertEqual((answers["read:/proc/1/stat"], answers["read:/proc/@/stat"], answers["read:/proc/meminfo"]),
                                 (answer, "ok", "ok"))

    def test_I1_proc_has_processes_only(self):
        self.assertEqual(self.beside(["read:/proc/meminfo", "read:/proc/sys/kernel/core_pattern", "read:/proc/self/stat"],
                                     ProcSubset="pid"),
                         {"read:/proc/meminfo": "ENOENT", "read:/proc/sys/kernel/core_pattern": "ENOENT",
                          "read:/proc/self/stat": "ok"})

    def test_what_is_mounted_below_proc_stays_there(self):
        keep = "mount --bind /proc/sys /proc/sys; mount -o remount,bind,ro /proc/sys; exec \"$@\""
        s = self.started({"g": ini(f"{PROBE} write:/proc/sys/kernel/core_pattern write:/proc/self/comm read:/proc/1/stat",
                                   Sandbox={"PrivatePIDs": "yes"})}, wrapper=("unshare", "--mount", "sh", "-c", keep, "sh"))
        self.assertEqual(results(s.do("g")), {"write:/proc/sys/kernel/core_pattern": "EROFS", "write:/proc/self/comm": "ok",
                                              "read:/proc/1/stat": "ok"})

    def test_I1_an_ipc_namespace_has_no_segments_of_others(self):
        key = 0x74720000 | os.getpid() & 0xffff  # other runs of the tests on this machine have theirs
        libc = ctypes.CDLL(None, use_errno=True)
        segment = libc.shmget(key, 4096, 0o1666)
        self.assertGreaterEqual(segment, 0)
        self.addCleanup(libc.shmctl, segment, 0, None)
        self.assertEqual(self.beside([f"segment:{key}"])[f"segment:{key}"], "ok")
        self.assertEqual(self.beside([f"segment:{key}"], PrivateIPC="yes")[f"segment:{key}"], "ENOENT")

    def test_the_worker_is_the_first_process_and_is_known_by_the_pid_outside(self):
        s = self.started({"g": ini(ACTOR, Sandbox={"PrivatePIDs": "yes"}),
                          "service": ini(helper("workers/notifier"), Group={"Type": "service"}, Worker={"TimeoutStopSec": "50ms"},
                                         Sandbox={"PrivatePIDs": "yes"})})
        self.assertEqual(s.do("g", "pid")["result"], text("1"))
        pid = s.worker("g/0")["pid"]
        self.assertIn(f"NSpid:\t{pid}\t1\n", Path(f"/proc/{pid}/status").read_text(encoding="ascii"))
        s.until(lambda: "signs of life" in s.worker("service/0").get("status", ""))
        self.assertEqual(s.group("g")["sandbox"], "PrivatePIDs")

    def test_I6_all_processes_of_a_namespace_end_with_the_worker(self):
        command = f"{TROUPE_EXEC} -- /bin/sh -c 'setsid sleep 1000 </dev/null >/dev/null 2>&1 & exec sleep 1000'"
        s = self.started({"g": ini(command, Restart={"Restart": "no"}, Jobs={"MaxRetries": 0}, Sandbox={"PrivatePIDs": "yes"})})
        job = s.create("g")
        s.wait_job_state(job, "running")
        pid = s.worker("g/0")["pid"]
        namespace = os.readlink(f"/proc/{pid}/ns/pid")
        self.assertFalse(self.namespace_is_empty(namespace))
        os.kill(pid, signal.SIGKILL)
        s.wait_event("worker.died", "g")
        s.until(lambda: self.namespace_is_empty(namespace))
        [death] = s.deaths("g")
        self.assertEqual((death["pid"], death["signal"]), (pid, "SIGKILL"))

    def test_D9_a_strict_worker_outlives_a_crash_and_an_upgrade_of_the_supervisor(self):
        s = self.started({"g": ini(ACTOR, **self.USER, Sandbox={"Profile": "strict"})})
        pid = s.worker("g/0")["pid"]
        s.crash()
        self.assertEqual((s.worker("g/0")["pid"], s.do("g", "pid")["result"]), (pid, text("1")))
        s.ctl("upgrade", check=True)
        self.assertEqual((s.worker("g/0")["pid"], s.do("g", "pid")["result"]), (pid, text("1")))
        os.kill(pid, signal.SIGKILL)
        s.wait_event("worker.died", "g")
        self.assertEqual(s.deaths("g")[-1]["pid"], pid)
        self.assertEqual(s.do("g", "echo again")["result"], text("again"))

    def test_a_worker_that_ignores_the_signal_to_stop_as_the_first_process_is_killed_in_time(self):
        s = self.started({"g": ini("/bin/sleep 1000", Group={"Type": "service"}, Worker={"TimeoutStopSec": "50ms"},
                                   Sandbox={"PrivatePIDs": "yes"})})
        pid = os.pidfd_open(s.worker("g/0")["pid"])
        self.addCleanup(os.close, pid)
        s.ctl("stop", "g")
        self.assertTrue(ended(pid, LIMIT))

    def test_an_actor_that_is_the_first_process_ends_by_a_signal_that_it_handles(self):
        for group, command, payload in ("scope", ACTOR, "wait {}"), ("command", TROUPE_EXEC + " -- sleep 1000", ""):
            with self.subTest(group=group):
                s = self.supervisor()
                os.mkfifo(s.path("never"))
                s.write(group + ".group", ini(command, Group={"Environment": "ACTOR_SCOPE_SIGNALS=1"},
                                              Jobs={"TimeoutSec": "50ms", "MaxRetries": 0},
                                              Worker={"TimeoutStopSec": "infinity"}, Sandbox={"PrivatePIDs": "yes"}))
                s.start()
                self.assertEqual(s.wait_job(s.create(group, payload.format(s.path("never"))))["state"], "dead")
                s.wait_event("worker.died", group)
                self.assertIn("exited with status 143", s.deaths(group)[0]["detail"])
                s.wait_worker(group + "/0", "idle")

    def test_I3_the_forbidden_call_of_a_command_is_named(self):
        s = self.started({"g": ini(f"{TROUPE_EXEC} -- /bin/sh -c '/bin/true; exec mkdir /no/such/directory'", Jobs={"MaxRetries": 0},
                                   Sandbox={"PrivatePIDs": "yes", "SystemCallFilter": "~mkdir mkdirat"},
                                   Resources={"LimitCORE": 0})})
        self.assertEqual([attempt["cause"] for attempt in s.do("g")["attempts"]], ["system_call"])
        self.assertRegex(s.deaths("g")[0]["detail"], ForbiddenCalls.MKDIR)

    def test_I3_a_forbidden_call_ends_the_first_process(self):
        s = self.started({"g": ini("/bin/mkdir /no/such/directory", Group={"Type": "service"}, Restart={"Restart": "no"},
                                   Sandbox={"PrivatePIDs": "yes", "SystemCallFilter": "~mkdir mkdirat"},
                                   Resources={"LimitCORE": 0})})
        s.wait_event("worker.died", "g")
        [death] = s.deaths("g")
        self.assertEqual((death["cause"], death["signal"]), ("system_call", "SIGKILL"))
        self.assertRegex(death["detail"], ForbiddenCalls.MKDIR)

    def test_without_the_privilege_the_worker_does_not_start_and_the_log_names_the_namespace(self):
        for key, step in ("PrivatePIDs", "PID namespace"), ("ProtectProc", "mount namespace"):
            with self.subTest(key=key):
                s = self.supervisor({"g": ini(ACTOR, Restart={"Restart": "no"},
                                              Sandbox={key: "invisible" if key == "ProtectProc" else "yes"})},
                                    wrapper=("setpriv", "--bounding-set", "-sys_admin"))
                s.start()
                s.until(lambda: f"g/0 could not be started: {step}: Operation not permitted" in s.log())


def landlock_abi():
    return max(0, ctypes.CDLL(None).syscall(444, None, 0, 1))


class WithoutMounts(TestCase):
    """A supervisor that may not mount."""
    def unprivileged(self, groups):
        wrapper = ["setpriv", "--bounding-set", "-sys_admin,-setpcap"] if os.getuid() == 0 else []
        return self.started(groups, wrapper=wrapper)

    def test_I1_keys_about_files_are_not_enforced_and_status_says_so(self):
        s = self.unprivileged({"g": ini(f"{PROBE} list:/etc", Sandbox={"InaccessiblePaths": "/etc"})})
        self.assertEqual(results(s.do("g")), {"list:/etc": "ok"})
        self.assertIn("not the keys about files (no mounts of its own are permitted)", s.ctl("status", "g").stdout)
        self.assertIn("g/0 runs without the keys of [Sandbox] about files: no mounts of its own are permitted", s.log())

    def test_I1_with_strict_a_worker_that_cannot_be_confined_in_full_is_not_started(self):
        s = self.unprivileged({"g": ini(ACTOR, Sandbox={"Strict": "yes", "ProtectSystem": "full"}), "other": ini(ACTOR)})
        s.wait_for(lambda: s.worker("g/0")["state"] == "failed", "g")
        self.assertEqual(s.worker("g/0")["status"], "could not be started: Strict=yes: mounts of its own, for the keys about "
                                                    "files: Operation not permitted")
        self.assertEqual(s.group("g")["state"], "failed")
        self.assertIn("cannot be confined as it has to be (Strict=yes): it stays down until it is reset", s.log())
        self.assertEqual(s.do("other", "echo hello")["result"], text("hello"))
        s.write("g.group", ini(ACTOR, Sandbox={"ProtectSystem": "full"}))
        s.ctl("reload", check=True)
        self.assertEqual(s.do("g", "echo hello")["result"], text("hello"))

    def test_I1_with_strict_what_the_supervisor_may_not_do_is_not_tried_again(self):
        for key, value, step in (("PrivatePIDs", "yes", "PID namespace"), ("PrivateNetwork", "yes", "network namespace"),
                                 ("AmbientCapabilities", "CAP_SYS_ADMIN", "capabilities")):
            with self.subTest(key=key):
                s = self.unprivileged({"g": ini(ACTOR, Sandbox={"Strict": "yes", key: value})})
                s.wait_for(lambda: s.worker("g/0")["state"] == "failed", "g")
                self.assertEqual(s.worker("g/0")["status"],
                                 f"could not be started: Strict=yes: {step}: Operation not permitted")
                self.assertIn("failed – 1 worker given up", s.ctl("status", "g").stdout)
                self.assertRegex(s.ctl("why", "g/0").stdout, r"not restarted .*Strict=yes.*'troupectl reset g/0'")

    def test_I1_without_the_privilege_ipc_is_shared_and_status_says_so(self):
        s = self.unprivileged({"g": ini(ACTOR, Sandbox={"Profile": "basic"}),
                               "strict": ini(ACTOR, Sandbox={"Strict": "yes", "PrivateIPC": "yes"})})
        self.assertEqual(s.do("g", "echo hello")["result"], text("hello"))
        self.assertRegex(s.worker("g/0")["in_force"], r"not the keys about files .*not PrivateIPC= \(namespaces are not permitted\)")
        s.wait_for(lambda: s.worker("strict/0")["state"] == "failed", "strict")
        self.assertEqual(s.worker("strict/0")["status"],
                         "could not be started: Strict=yes: IPC namespace: Operation not permitted")

    @unittest.skipUnless(os.getuid() == 0, "only root can change the user")
    def test_I1_status_shows_what_could_not_be_limited(self):
        s = self.unprivileged({"g": ini(ACTOR, Group={"User": "nobody"}, Sandbox={"CapabilityBoundingSet": "CAP_KILL"})})
        s.do("g", "echo hello")
        shown = "In force: no new privileges, not CapabilityBoundingSet= (CAP_SETPCAP is missing)"
        self.assertIn(shown, s.ctl("status", "g").stdout)
        s.crash()
        self.assertIn(shown, s.ctl("status", "g").stdout)


class Workers(TestCase):
    @unittest.skipUnless(os.getuid() == 0, "only root can change the user")
    def test_I1_status_shows_what_a_user_implies(self):
        s = self.started({"g": ini(ACTOR, Group={"User": "nobody"}), "plain": ini(ACTOR)})
        s.do("g", "echo hello")
        s.do("plain", "echo hello")
        self.assertEqual(s.worker("g/0")["in_force"], "no new privileges, limited capabilities")
        self.assertNotIn("in_force", s.worker("plain/0"))
        self.assertIn("In force: no new privileges, limited capabilities", s.ctl("status", "g/0").stdout)

    def test_a_worker_in_a_whole_sandbox_does_its_work(self):
        s = self.started({"g": ini(ACTOR, Pool={"Size": 2}, Sandbox={**WHOLE, "SystemCallErrorNumber": "kill"})})
        self.assertEqual(s.do("g", "echo hello")["result"], text("hello"))
        self.assertEqual(len(s.do("g", "blob 300000")["result"]["data"]), 400000)
        self.assertEqual(s.do("g", "sum\n\n" + 1000000 * "x")["state"], "succeeded")
        self.assertEqual(s.do("g", "state busy\necho done")["state"], "succeeded")
        self.assertEqual(s.deaths(), [])

    def test_a_worker_that_cannot_even_start_tells_why(self):
        s = self.started({"g": ini(ACTOR, Restart={"Restart": "no"}, Sandbox={"SystemCallFilter": "~execve"},
                                   Resources={"LimitCORE": 0})})
        s.wait_event("worker.died", "g")
        [death] = s.deaths("g")
        self.assertEqual((death["cause"], death["signal"]), ("system_call", "SIGSYS"))
        self.assertRegex(death["detail"], r"^killed: system call execve\(0x\w+, .*\) is not allowed \(SystemCallFilter=\)$")

    @unittest.skipIf(SANITIZED, "a sanitizer makes system calls that the list does not allow")
    def test_a_program_that_cannot_be_executed_under_a_list_without_write_tells_why(self):
        script = tempfile.NamedTemporaryFile("w", delete=False)
        self.addCleanup(os.unlink, script.name)
        with script:
            script.write("\x7fELF: no program\n")
        os.chmod(script.name, 0o755)
        s = self.started({"g": ini(script.name, Restart={"Restart": "no"}, Sandbox={"SystemCallFilter": "@default"},
                                   Resources={"LimitCORE": 0})})
        s.until(lambda: "g/0 could not be started: exec: Exec format error" in s.log())
        self.assertEqual(s.deaths("g"), [])


class Supervisors(TestCase):
    @unittest.skipIf(SANITIZED, "a sanitizer traces")
    def test_the_supervisor_is_confined_and_neither_the_keeper_nor_a_worker(self):
        s = self.started({"g": ini(ACTOR)})
        def confined(pid):
            return [s.status_field(key, pid) for key in ("Seccomp", "NoNewPrivs")]
        outside = confined(os.getpid())
        s.do("g", "echo hello")
        self.assertEqual(confined(s.supervisor_pid), [2, 1])
        self.assertEqual([confined(s.process.pid), confined(s.worker("g/0")["pid"])], [outside, outside])
        s.crash()
        s.call("GetInfo")  # it runs
        self.assertEqual(confined(s.supervisor_pid), [2, 1])
        s.ctl("upgrade", check=True)
        self.assertEqual(confined(s.supervisor_pid), [2, 1])
        self.assertEqual(s.do("g", "echo hello")["result"], text("hello"))

    def test_without_its_confinement_it_runs_all_the_same(self):
        s = self.started({"g": ini(ACTOR)}, options=["--unconfined"])
        self.assertEqual(s.status_field("Seccomp"), s.status_field("Seccomp", os.getpid()))
        self.assertEqual(s.do("g", "echo hello")["result"], text("hello"))


class Recordings(TestCase):
    COMMAND = f"{TROUPE_EXEC} -- /bin/sh -c 'cat >/dev/null; mkdir -p /tmp; echo done'"

    def group(self, **sandbox):
        return ini(self.COMMAND, Sandbox=sandbox, Jobs={"MaxRetries": 0}, Resources={"LimitCORE": 0})

    def test_I9_a_recording_turns_into_keys_with_which_the_same_work_passes(self):
        s = self.started({"g": self.group(SystemCallLog="~@default", SystemCallFilter="~mkdir mkdirat")})
        self.assertEqual(s.do("g", "input")["result"], text("done\n"))
        self.assertEqual(s.deaths(), [])
        suggestion = s.ctl("sandbox", "suggest", "g", check=True).stdout
        keys = [line.removeprefix("SystemCallFilter=") for line in suggestion.splitlines()[1:]]
        self.assertTrue({"mkdir", "read", "write"} <= set(" ".join(keys).split()), suggestion)
        s.write("g.group", self.group(SystemCallFilter=" ".join(keys)))
        s.ctl("reload", check=True)
        self.assertEqual(s.do("g", "input")["result"], text("done\n"))
        self.assertEqual([death["cause"] for death in s.deaths() if death["cause"] != "stop"], [])
        self.assertIn("no system calls are recorded", s.ctl("sandbox", "suggest", "g").stderr)

    def test_what_is_not_recorded_is_still_forbidden(self):
        s = self.started({"g": self.group(SystemCallLog="read", SystemCallFilter="~mkdir mkdirat")})
        s.do("g", "input")
        self.assertEqual(s.group("g")["system_calls"], ["read"])
        self.assertRegex(s.log(), "killed process .*: system call mkdir")

    def test_I9_after_a_crash_a_worker_may_make_the_calls_that_were_recorded_when_it_was_started(self):
        s = self.supervisor()
        go = s.path("go")
        os.mkfifo(go)
        def group(**sandbox):
            return ini(f"{TROUPE_EXEC} -- /bin/sh -c 'read word <{go}; mkdir -p /tmp; echo $word'", Jobs={"MaxRetries": 0},
                       Sandbox={**sandbox, "SystemCallFilter": "~mkdir mkdirat"}, Resources={"LimitCORE": 0})
        s.write("g.group", group(SystemCallLog="mkdir mkdirat"))
        s.start()
        job = s.create("g")
        with open(go, "w", encoding="ascii") as file:  # the command reads
            s.write("g.group", group())
            s.crash()
            s.call("GetInfo")
            file.write("done\n")
        self.assertEqual(s.wait_job(job).get("result"), text("done\n"))
        self.assertNotIn("is not allowed", s.log())


class ForbiddenCalls(TestCase):
    """The death report names the system call and its arguments."""
    MKDIR = r"^killed: system call mkdir(at)?\(.*, 511, .*\) is not allowed \(SystemCallFilter=\)$"

    @unittest.skipUnless(os.geteuid() == 0, "another user takes root")
    def test_descriptors_that_its_user_has_under_way_keep_no_worker_from_starting(self):
        """The kernel limits them for all processes of a user together; then, a worker cannot send the listener of its filters."""
        sender, receiver = socket.socketpair()
        self.addCleanup(receiver.close)
        with sender:
            other = os.fork()
            if other == 0:
                os.setuid(pwd.getpwnam("nobody").pw_uid)
                os._exit(socket.send_fds(sender, [b"x"], [0] * 253) - 1)
            self.assertEqual(os.waitpid(other, 0)[1], 0)
        s = self.started({"g": ini(ACTOR, Group={"User": "nobody"}, Resources={"LimitNOFILE": 64},
                                   Sandbox={"SystemCallFilter": "~@debug"})})
        self.assertEqual(s.worker("g/0")["state"], "idle")

    def confined(self, command, **jobs):
        return self.started({"g": ini(command, Jobs={"MaxRetries": 0, **jobs}, Sandbox={"SystemCallFilter": "~mkdir mkdirat"},
                                      Resources={"LimitCORE": 0})})

    def assert_died(self, s, signal, command=True):
        [death] = s.deaths("g")
        self.assertRegex(death["detail"], self.MKDIR)
        self.assertEqual((death["cause"], death["signal"], "command" in death), ("system_call", signal, command))

    def test_I3_a_command_that_makes_a_forbidden_call(self):
        s = self.confined(f"{TROUPE_EXEC} -- /bin/mkdir /no/such/directory")
        job = s.do("g")
        self.assertEqual([attempt["cause"] for attempt in job["attempts"]], ["system_call"])
        self.assert_died(s, "SIGSYS")
        self.assertIn("is not allowed (SystemCallFilter=)", s.ctl("deaths", "g").stdout)

    def test_I3_a_command_that_ignores_the_signal_dies_all_the_same(self):
        s = self.confined(f"{TROUPE_EXEC} -- /bin/sh -c 'trap \"\" SYS; exec mkdir /no/such/directory'")
        s.do("g")
        self.assert_died(s, "SIGKILL")

    def test_I3_a_worker_that_makes_a_forbidden_call(self):
        s = self.started({"g": ini("/bin/mkdir /no/such/directory", Group={"Type": "service"}, Restart={"Restart": "no"},
                                   Sandbox={"SystemCallFilter": "~mkdir mkdirat"}, Resources={"LimitCORE": 0})})
        s.wait_event("worker.died", "g")
        self.assert_died(s, "SIGSYS", command=False)
        [group] = s.call("io.troupe.Supervisor.GetMetrics")["groups"]
        self.assertEqual(group["deaths"]["system_call"], 1)

    def test_only_the_process_that_makes_the_call_is_killed(self):
        s = self.confined(f"{TROUPE_EXEC} -- /bin/sh -c '/bin/mkdir /no/such/directory; echo $?; exit 0'")
        job = s.do("g")
        self.assertEqual((job["state"], job["result"]), ("succeeded", text("159\n")))
        self.assertRegex(s.log(), r"g/0: killed process \d+: system call mkdir")
        self.assertEqual(s.deaths(), [])

    def test_a_worker_with_ever_more_forbidden_calls_is_killed_as_a_whole(self):
        s = self.started({"g": ini(f"{TROUPE_EXEC} -- /bin/sh -c 'while :; do (umask 22); done'", Jobs={"MaxRetries": 0},
                                   Sandbox={"SystemCallFilter": "~umask"}, Resources={"LimitCORE": 0})})
        s.do("g")
        [death] = s.deaths("g")
        self.assertEqual((death["cause"], death["signal"], "command" in death), ("system_call", "SIGKILL", False))
        self.assertRegex(death["detail"], r"^killed: system call umask\(.*\) is not allowed \(SystemCallFilter=\)$")

    def test_after_a_crash_of_the_supervisor_calls_are_named_and_still_forbidden(self):
        s = self.started({"g": ini(f"{TROUPE_EXEC} -- /bin/sh -c 'read path; exec mkdir $path'", Jobs={"MaxRetries": 0},
                                   Sandbox={"SystemCallFilter": "~mkdir mkdirat"}, Resources={"LimitCORE": 0})})
        pid = s.worker("g/0")["pid"]
        s.crash()
        self.assertEqual(s.worker("g/0")["pid"], pid)
        s.do("g", "/no/such/directory\n")
        self.assert_died(s, "SIGSYS")

    def die_in_the_middle_of_a_call(self, point, **sandbox):
        """The supervisor dies at this point of a command's mkdir(); the next one goes on with it."""
        s = self.supervisor(program=FAULTY_TROUPED)
        go, fault = s.path("go"), s.path("fault")
        os.mkfifo(go)
        s.environment["TROUPE_FAULT_POINT"] = "@" + fault
        s.write("g.group", ini(f"{TROUPE_EXEC} -- /bin/sh -c 'read word <{go}; exec mkdir -p /tmp'", Jobs={"MaxRetries": 0},
                               Sandbox={**sandbox, "SystemCallFilter": "~mkdir mkdirat"}, Resources={"LimitCORE": 0}))
        Path(fault).write_text(point + ":1", encoding="ascii")
        s.start()
        supervisor = os.pidfd_open(s.supervisor_pid)
        self.addCleanup(os.close, supervisor)
        job = s.create("g")
        Path(go).write_text("go\n", encoding="ascii")
        self.assertTrue(ended(supervisor, LIMIT))
        return s, s.wait_job(job)

    def test_I3_a_call_during_which_the_supervisor_dies_is_still_forbidden_and_named(self):
        s, _ = self.die_in_the_middle_of_a_call("call.received")
        self.assert_died(s, "SIGSYS")

    def test_I9_a_recorded_call_during_which_the_supervisor_dies_is_made(self):
        for point in "call.received", "call.answered":
            with self.subTest(point=point):
                s, job = self.die_in_the_middle_of_a_call(point, SystemCallLog="mkdir mkdirat")
                self.assertEqual(job["state"], "succeeded")
                self.assertEqual(s.deaths("g"), [])

    def test_a_call_of_another_architecture_is_named(self):
        s = self.started({"g": probe(SystemCallArchitectures="native")})
        if results(s.do("g"))["foreign-call"] != "SIGSYS" or os.uname().machine != "x86_64":
            self.skipTest("this kernel has no calls of another architecture")
        self.assertRegex(s.log(), r"system call getpid\(.*\) is not allowed \(SystemCallArchitectures=\)")
