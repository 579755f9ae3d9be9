#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Exercises a running supervisor's control socket as an independent client.

    varlink_client.py [--library] SOCKET GROUP

GROUP is a group of troupe-exec or any other actor that succeeds on any payload; it is the same after the run as
before. By default the client is a hundred lines of Python with the standard library alone; with --library it is
python3-varlink, which parses the interface descriptions and checks every reply against them. Prints a line per
check. The exit status is 1 if a check failed, 77 if --library is not installed.
"""
import argparse
import base64
import json
import socket
import sys

SUPERVISOR, JOBS, SERVICE = "io.troupe.Supervisor", "io.troupe.Jobs", "org.varlink.service"


class Refused(Exception):
    def __init__(self, name, parameters):
        super().__init__(f"{name} {json.dumps(parameters)}")
        self.name, self.parameters = name, parameters


class PlainClient:
    """One connection; builds and reads messages itself."""

    def __init__(self, path):
        self.socket = socket.socket(socket.AF_UNIX)
        self.socket.settimeout(30)
        self.socket.connect(path)
        self.data = b""

    def close(self):
        self.socket.close()

    def send(self, method, parameters=None, **flags):
        self.socket.sendall(json.dumps({"method": method, "parameters": parameters or {}, **flags}).encode() + b"\0")

    def receive(self):
        """Returns (parameters, more follow)."""
        while b"\0" not in self.data:
            piece = self.socket.recv(65536)
            if not piece:
                raise EOFError
            self.data += piece
        message, self.data = self.data.split(b"\0", 1)
        message = json.loads(message)
        if "error" in message:
            raise Refused(message["error"], message.get("parameters", {}))
        return message["parameters"], message.get("continues", False)

    def call(self, method, **parameters):
        self.send(method, parameters)
        return self.receive()[0]

    def more(self, method, **parameters):
        self.send(method, parameters, more=True)
        continues = True
        while continues:
            answer, continues = self.receive()
            yield answer


class LibraryClient:
    """The same through python3-varlink, one connection per interface."""

    def __init__(self, path):
        self.client = varlink.Client.new_with_address("unix:" + path)
        self.interfaces = {}

    def close(self):
        for interface in self.interfaces.values():
            interface.close()
        self.client.cleanup()

    def method(self, name):
        interface, method = name.rsplit(".", 1)
        if interface not in self.interfaces:
            self.interfaces[interface] = self.client.open(interface)
        return getattr(self.interfaces[interface], method)

    def call(self, method, **parameters):
        try:
            return self.method(method)(**parameters)
        except varlink.VarlinkError as error:
            raise Refused(error.error(), error.parameters()) from None

    def more(self, method, **parameters):
        return self.method(method)(_more=True, **parameters)


class Checks:
    def __init__(self, connect, group):
        self.connect, self.group = connect, group
        self.client = connect()
        self.failures = 0

    def check(self, what, condition):
        print("ok  " if condition else "FAIL", what)
        self.failures += not condition

    def refused(self, error, method, **parameters):
        try:
            self.client.call(method, **parameters)
            self.check(f"{method} is refused with {error}", False)
        except Refused as refusal:
            self.check(f"{method} is refused with {error}", refusal.name == error)
            return refusal.parameters
        return {}

    def run(self):
        for name in sorted(dir(self)):
            if name.startswith("check_"):
                getattr(self, name)()
        self.client.close()
        return self.failures

    def check_1_service(self):
        info = self.client.call(SERVICE + ".GetInfo")
        self.check("the service names its interfaces", {SUPERVISOR, JOBS, SERVICE} <= set(info["interfaces"]))
        for name in info["interfaces"]:
            text = self.client.call(SERVICE + ".GetInterfaceDescription", interface=name)["description"]
            self.check(f"{name} is described", f"interface {name}" in text)
        self.refused(SERVICE + ".InterfaceNotFound", SERVICE + ".GetInterfaceDescription", interface="no.such")

    def check_2_supervisor(self):
        info = self.client.call(SUPERVISOR + ".GetInfo")
        self.check("the supervisor runs", info["state"] == "running" and info["pid"] > 0)
        groups = self.client.call(SUPERVISOR + ".GetStatus", target=self.group)["groups"]
        self.check("status shows the group and its workers",
                   groups[0]["name"] == self.group and len(groups[0]["workers"]) >= groups[0]["size"])
        self.check("everything is shown without a target",
                   self.group in [group["name"] for group in self.client.call(SUPERVISOR + ".GetStatus")["groups"]])
        parameters = self.refused(SUPERVISOR + ".NoSuchTarget", SUPERVISOR + ".GetStatus", target=self.group + "x")
        self.check("the nearest name is told", parameters.get("nearest") == self.group)
        self.check("deaths are a list", isinstance(self.client.call(SUPERVISOR + ".ListDeaths", limit=5)["deaths"], list))
        self.check("the log is a list", isinstance(self.client.call(SUPERVISOR + ".GetLog", target=self.group)["lines"], list))
        self.refused(SUPERVISOR + ".BadSize", SUPERVISOR + ".Resize", target=self.group, size=0)
        self.check("resizing to the same size changes nothing",
                   self.client.call(SUPERVISOR + ".Resize", target=self.group, size=groups[0]["size"], wait=True)
                   == {"old_size": groups[0]["size"]})

    def ended_jobs(self):
        """The ids of all kept jobs, page by page."""
        page = self.client.call(JOBS + ".List", group=self.group, ended=True)
        ids = [job["id"] for job in page["jobs"]]
        while page.get("next") is not None:
            page = self.client.call(JOBS + ".List", group=self.group, ended=True, cursor=page["next"])
            ids += [job["id"] for job in page["jobs"]]
        return ids

    def check_3_jobs(self):
        payload = {"encoding": "utf8", "data": "gr\u00fc\u00dfe"}
        job = self.client.call(JOBS + ".Do", group=self.group, payload=payload)["job"]
        self.check("a job is done", job["state"] == "succeeded" and job["attempt"] >= 1)
        payload = {"encoding": "base64", "data": base64.b64encode(bytes(range(256))).decode()}
        id = self.client.call(JOBS + ".Create", group=self.group, payload=payload)["id"]
        self.check("a created job is awaited", self.client.call(JOBS + ".Wait", id=id)["job"]["state"] == "succeeded")
        self.check("its result is kept", self.client.call(JOBS + ".Get", id=id)["job"]["id"] == id)
        self.check("and listed", id in self.ended_jobs())
        self.refused(JOBS + ".NoSuchJob", JOBS + ".Get", id="nobody")
        self.refused(JOBS + ".AlreadyEnded", JOBS + ".Cancel", id=id)
        self.refused(JOBS + ".NoSuchGroup", JOBS + ".Create", group="no-such-group")
        self.refused(JOBS + ".BadId", JOBS + ".Create", group=self.group, options={"id": "a b"})
        self.refused(JOBS + ".BadOption", JOBS + ".Create", group=self.group, options={"max_retries": -1})
        self.refused(JOBS + ".BadPayload", JOBS + ".Create", group=self.group,
                     payload={"encoding": "base64", "data": "?"})
        self.refused(JOBS + ".BadVersion", JOBS + ".Attach", version=0)

    def check_4_streams(self):
        states = [answer["job"]["state"] for answer in self.client.more(JOBS + ".Do", group=self.group)]
        self.check("a job's states are told one by one", states[0] == "queued" and states[-1] == "succeeded")
        watcher = self.connect()
        events = watcher.more(SUPERVISOR + ".Watch", replay=True)
        self.check("kept events are replayed", len(next(events)["events"]) >= 1)
        self.client.call(SUPERVISOR + ".Pause", target=self.group)
        self.client.call(SUPERVISOR + ".Resume", target=self.group)
        seen = set()
        while "group.resumed" not in seen:
            seen.update(event["type"] for event in next(events)["events"])
        self.check("new events follow", "group.paused" in seen)
        watcher.close()
        self.check("the others go on", self.client.call(SUPERVISOR + ".GetInfo")["state"] == "running")


def check_by_hand(path, failures):
    """Calls that a library does not allow."""
    client = PlainClient(path)
    try:
        client.call(SUPERVISOR + ".GetInfo", surprise=1)
        ok = False
    except Refused as refusal:
        ok = refusal.parameters == {"parameter": "surprise"}
    print("ok  " if ok else "FAIL", "unknown parameters are named")
    failures += not ok
    client.send(SUPERVISOR + ".GetInfo", oneway=True)
    client.send(JOBS + ".List")
    ok = "jobs" in client.receive()[0]
    print("ok  " if ok else "FAIL", "oneway calls are not answered")
    failures += not ok
    client.socket.sendall(b"no JSON\0")
    try:
        client.receive()
        ok = False
    except Refused as refusal:
        ok = refusal.name == SERVICE + ".InvalidParameter"
    print("ok  " if ok else "FAIL", "what is no JSON is refused")
    client.close()
    return failures + (not ok)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--library", action="store_true", help="use python3-varlink")
    parser.add_argument("socket")
    parser.add_argument("group")
    options = parser.parse_args()
    if options.library:
        global varlink
        try:
            import varlink
        except ImportError:
            print("python3-varlink is not installed")
            return 77
    kind = LibraryClient if options.library else PlainClient
    failures = Checks(lambda: kind(options.socket), options.group).run()
    return 1 if check_by_hand(options.socket, failures) > 0 else 0


if __name__ == "__main__":
    sys.exit(main())
