# SPDX-License-Identifier: MIT
"""A network of namespaces on one machine: each node has one of its own, with a cable to a switch, and so has the test.

The switch is in a namespace, too, so that all may use the same addresses as another network, and nothing of the machine
is touched. Cables can be cut and made slow, and nodes made mute.
"""
import contextlib
import ctypes
import os
import shutil
import socket
import subprocess
import unittest

CLONE_NEWNET = 0x40000000
ESTABLISHED = "01"
SUBNET = "10.77.0."
NOBODY = "02:00:00:00:00:00"
SLOW = (("netem", "delay", "20ms", "5ms", "loss", "1%"), ("tbf", "rate", "2mbit", "burst", "8k", "latency", "100ms"))


def run(*command):
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise OSError(f"{' '.join(command)}: {done.stderr.strip()}")


def require():
    if os.geteuid() != 0:
        raise unittest.SkipTest("network namespaces need root")
    for program in "ip", "nsenter":
        if not shutil.which(program):
            raise unittest.SkipTest(f"{program} is missing")


def enter(fd):
    """Moves the calling thread into the namespace, and closes the descriptor."""
    with open(fd, "rb"):
        if ctypes.CDLL(None, use_errno=True).setns(fd, CLONE_NEWNET) < 0:
            raise OSError(ctypes.get_errno(), f"setns: {os.strerror(ctypes.get_errno())}")


class Node:
    def __init__(self, network, name, number):
        self.network, self.name, self.address = network, name, f"{SUBNET}{number}"
        self.namespace = network.namespace(name)
        self.wrapper = ["nsenter", f"--net=/run/netns/{self.namespace}"]
        run("ip", "link", "add", name, "netns", network.switch, "type", "veth", "peer", "name", "eth0", "netns", self.namespace)
        run("ip", "-n", network.switch, "link", "set", name, "master", "switch", "up")
        run("ip", "-n", self.namespace, "address", "add", self.address + "/24", "dev", "eth0")
        run("ip", "-n", self.namespace, "link", "set", "eth0", "up")

    def enter(self):
        """Moves the calling thread there."""
        enter(os.open(f"/run/netns/{self.namespace}", os.O_RDONLY))

    def cut(self):
        """Pulls the cable. Returns how to put it in again, as the others do."""
        run("ip", "-n", self.network.switch, "link", "set", self.name, "down")
        return lambda: run("ip", "-n", self.network.switch, "link", "set", self.name, "up")

    def mute(self, others):
        """It hears the others, and what it says to them goes to an address that nobody has."""
        for other in others:
            run("ip", "-n", self.namespace, "neighbour", "replace", other.address, "lladdr", NOBODY, "dev", "eth0", "nud", "permanent")

        def mend():
            for other in others:
                run("ip", "-n", self.namespace, "neighbour", "del", other.address, "dev", "eth0")
        return mend

    def slow(self):
        """What it says takes longer, and some of it is lost. Returns None if this kernel can do no such thing."""
        for how in SLOW:
            with contextlib.suppress(OSError):
                run("tc", "-n", self.namespace, "qdisc", "add", "dev", "eth0", "root", *how)
                return lambda: run("tc", "-n", self.namespace, "qdisc", "del", "dev", "eth0", "root")
        return None


def connections(pid):
    """Those of its namespace that are up: the address of each peer, and how many bytes have not arrived there yet."""
    with open(f"/proc/{pid}/net/tcp", encoding="ascii") as file:
        rows = [line.split() for line in file.readlines()[1:]]
    return [(socket.inet_ntoa(bytes.fromhex(row[2].partition(":")[0])[::-1]), int(row[4].partition(":")[0], 16))
            for row in rows if row[3] == ESTABLISHED]


class Network:
    def __init__(self, test):
        """Lasts as long as the test, which is in it. Skips it where there can be none."""
        require()
        self.test = test
        self.switch = self.namespace("switch", unittest.SkipTest)
        run("ip", "-n", self.switch, "link", "add", "switch", "type", "bridge")
        run("ip", "-n", self.switch, "link", "set", "switch", "up")
        outside = self.node("outside", 100)
        with open("/proc/self/ns/net", "rb") as before:
            test.addCleanup(enter, os.dup(before.fileno()))
        outside.enter()

    def namespace(self, name, error=OSError):
        namespace = f"troupe-{os.getpid()}-{name}"
        try:
            run("ip", "netns", "add", namespace)
        except OSError as reason:
            raise error(str(reason)) from reason
        self.test.addCleanup(run, "ip", "netns", "del", namespace)
        run("ip", "-n", namespace, "link", "set", "lo", "up")
        return namespace

    def node(self, name, number):
        return Node(self, name, number)
