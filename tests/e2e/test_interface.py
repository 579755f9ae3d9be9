# SPDX-License-Identifier: MIT
"""The .varlink files: what they declare fits together, and every method replies as they declare.

Each reply that any end-to-end test gets is checked against its declaration (see interface.py); here every method is
called, and the checks themselves are.
"""
import glob
import os
import re
import unittest

from interface import SERVICE, Checker, Enum, Mismatch
from troupe import ACTOR, CHECKER, TOP, VERSION, TestCase, helper, ini, text

ACTORS, JOBS, SUPERVISOR = "io.troupe.Actors.", "io.troupe.Jobs.", "io.troupe.Supervisor."
SCHEDULES = "io.troupe.Schedules."


class Declarations(unittest.TestCase):
    def each(self, kind):
        """(name, interface's name, declaration) of all types or errors of our own interfaces."""
        for interface in CHECKER.interfaces.values():
            for name, declaration in getattr(interface, kind).items():
                yield name, interface.name, declaration

    def test_the_same_error_and_the_same_type_have_the_same_fields_everywhere(self):
        for kind in "errors", "types":
            first = {}
            for name, interface, declaration in self.each(kind):
                there, same = first.setdefault(name, (interface, declaration))
                self.assertEqual(declaration, same, f"{name} in {interface} and in {there}")

    def test_every_type_that_is_used_is_declared(self):
        def used(declaration):
            if isinstance(declaration, dict):
                for _, _, kind in declaration.values():
                    yield from used(kind)
            elif isinstance(declaration, str):
                yield declaration
        for interface in CHECKER.interfaces.values():
            structs = [*interface.types.values(), *interface.errors.values(), *sum(interface.methods.values(), ())]
            names = {name for struct in structs for name in used(struct)} - {"int", "string", "bool"}
            self.assertEqual(names - set(interface.types), set(), interface.name)

    def test_replies_are_written_and_read_with_declared_names_only(self):
        def fields(declaration):
            if isinstance(declaration, dict):
                for name, (_, _, kind) in declaration.items():
                    yield name
                    yield from fields(kind)
            elif isinstance(declaration, Enum):
                yield from declaration
        declared = {"parameters", "continues"}
        for interface in CHECKER.interfaces.values():
            for struct in [*interface.types.values(), *interface.errors.values(), *sum(interface.methods.values(), ())]:
                declared |= set(fields(struct))
        # troupectl adds members to the copies that its patterns are about, and has objects of its own.
        for folder, pattern, added in ("control", r"\breply_\w+\([^;\"]*, \"(\w+)\"", None), \
                ("ctl", r"\b(?:field_\w+|json_object_get)\([^;\"]*?, \"(\w+)\"|(?<!= )\{([a-z_]{2,})(?=[-./=>:}])",
                 r"\b(?:set|set_if|count|json_object_set|json_object_set_new)\([^;\"]*?, \"(\w+)\""):
            used, own = set(), set()
            for path in glob.glob(os.path.join(TOP, "supervisor", folder, "**", "*.c"), recursive=True):
                with open(path, encoding="utf-8") as file:
                    text = file.read()
                used |= {name for names in re.findall(pattern, text) for name in ([names] if isinstance(names, str) else names)} - {""}
                if added:
                    own |= set(re.findall(added, text))
                    own |= {name for call in re.findall(r"json_pack\((.*?)\);", text, re.S) for name in re.findall(r'"(\w+)"', call)}
            self.assertGreater(len(used), 100)
            self.assertEqual(used - declared - own, set(), folder)

    def test_nothing_else_lists_what_the_interface_files_declare(self):
        with open(os.path.join(TOP, "supervisor", "control", "troupe-varlink.7"), encoding="utf-8") as file:
            manual = file.read()
        for name, interface, declaration in self.each("errors"):
            if interface != SERVICE:
                self.assertNotIn(f".It Sy {name}", manual)
        options = CHECKER.interfaces["io.troupe.Jobs"].types["Options"]
        with open(os.path.join(TOP, "worker", "python", "troupe", "data.py"), encoding="utf-8") as file:
            typed = set(re.findall(r"^    (\w+): .* *$", re.search(r"class Options.*?\n\n\n", file.read(), re.DOTALL)[0],
                                   re.MULTILINE))
        self.assertEqual(typed - {"keep_result"}, {name.removesuffix("_usec") for name in options})

    def test_each_list_goes_on_at_a_cursor(self):
        for interface in CHECKER.interfaces.values():
            for name, (parameters, reply) in interface.methods.items():
                if name.startswith("List"):
                    self.assertEqual((parameters["cursor"], parameters["limit"], reply["next"]),
                                     ((True, False, "int"),) * 3, name)


class Checks(unittest.TestCase):
    def refused(self, method, **message):
        with self.assertRaises(Mismatch):
            Checker(os.path.join(TOP, "supervisor", "control")).check(method, message)

    def test_a_reply_of_another_type_is_noticed(self):
        group, get = {"wake": "futex"}, JOBS + "Get"
        self.refused(SUPERVISOR + "GetInfo", parameters=group)  # required fields are missing
        self.refused(SUPERVISOR + "Stop", parameters={"surprise": 1})
        self.refused(SUPERVISOR + "Resize", parameters={"old_size": "1"})
        self.refused(SUPERVISOR + "Resize", parameters={"old_size": True})
        self.refused(SUPERVISOR + "Resize", parameters={"old_size": 2**63})
        self.refused(SUPERVISOR + "GetLog", parameters={"lines": "a"})
        self.refused(SUPERVISOR + "GetLog", parameters={"lines": [1]})
        self.refused(get, error=JOBS + "NoSuchThing", parameters={})
        self.refused(get, error=JOBS + "NoSuchJob", parameters={})
        self.refused(get, error=JOBS + "AlreadyEnded", parameters={"id": "a", "state": "asleep"})
        self.refused(get, error=SUPERVISOR + "NotPermitted2", parameters={})
        self.refused(get, error=ACTORS + "NoSuchActor", parameters={"name": "a"})
        self.refused(get, parameters={}, surprise=1)


class Methods(TestCase):
    def setUp(self):
        self.s = self.supervisor({"actor": ini(ACTOR, Pool={"Size": 1}, Jobs={"MaxRetries": 1, "BackoffMinSec": "1ms", "History": "1d"}),
                                  "keyed": ini(ACTOR, Pool={"Cells": "by-key"}),
                                  "service": ini("/bin/sleep infinity", Group={"Type": "service"})})
        with open(self.s.path("script"), "w", encoding="utf-8") as file:
            file.write("question reply t answer\n")
        environment = ["PLAYER_SCRIPT=" + self.s.path("script"), "PLAYER_NOTES=/dev/null"]
        self.s.write("durable.group", ini(ACTOR, Jobs={"Durable": "yes"}))
        self.s.write("troupe.conf", f"[Supervisor]\nStateDirectory={self.s.path('state')}\n")
        self.s.write("nightly.schedule", "[Schedule]\nOnCalendar=02:00\n[Job]\nGroup=actor\n")
        self.s.write("player.group", ini(helper("workers/player"), Group={"Environment": environment}))
        self.s.start()

    def call_schedules(self):
        for method in "Pause", "Resume", "Run":
            self.s.call(SCHEDULES + method, name="nightly")
        first = self.s.call(SCHEDULES + "Get", name="nightly")["coming"][0]
        self.s.call(SCHEDULES + "Skip", name="nightly", slot=first["slot"])
        self.s.call(SCHEDULES + "Backfill", name="nightly", **{"from": first["slot"] - 3 * 86400 * 10**6, "to": first["slot"]})
        self.assertEqual(self.s.call(SCHEDULES + "List")["schedules"][0]["fired"], 1)

    def test_every_method_replies_as_declared(self):
        self.call_service_and_supervisor()
        self.call_jobs()
        self.call_actors()
        self.call_schedules()
        declared = {f"{interface.name}.{method}" for interface in CHECKER.interfaces.values()
                    for method in interface.methods}
        # A reply to Upgrade is always an error: see test_upgrade.py.
        self.assertEqual(declared - CHECKER.seen, {SUPERVISOR + "Upgrade"})
        shown = {"Death", "Worker", "Cell", "Group", "Event", "GroupMetrics", "StoreMetrics", "SupervisorMetrics"}
        self.assertEqual({name for name in shown if not any(s.startswith(f"{SUPERVISOR}{name}.") for s in CHECKER.seen)},
                         set())

    def call_service_and_supervisor(self):
        call = self.s.call
        for interface in call(SERVICE + ".GetInfo")["interfaces"]:
            call(SERVICE + ".GetInterfaceDescription", interface=interface)
        self.s.create("keyed", "echo", key="one")
        for method in "GetInfo", "GetHistory", "GetMetrics", "GetStatus", "GetLimits", "CountDeaths", "Watch", "Reload":
            call(method)
        call("GetLog", target="actor")
        call("GetStack", target="actor/0")
        call("Profile", target="actor/0", for_usec=1)
        call("Signal", target="actor", signal="SIGCONT")
        call("Explain", target="actor")
        for method in "Start", "Pause", "Drain", "Resume", "Reset":
            call(method, target="actor")
        call("Resize", target="actor", size=2, wait=True)
        call("SetLimit", name="actor", running=1000)
        call("SetLimit", name="actor", reset=True)
        for method in "Restart", "Stop", "Start":
            call(method, target="actor", wait=True)

    def call_jobs(self):
        s = self.s
        self.assertEqual(s.do("actor", "echo hello")["state"], "succeeded")
        self.assertEqual(s.do("actor", "crash", id="dead")["state"], "dead")
        self.assertEqual(s.deaths("actor")[0]["job"], "dead")
        id = s.create("actor", "echo")
        s.call("Wait", id=id)
        s.call("Get", id=id)
        s.call("Stream", id=s.wait_job(s.create("actor", "emit item\necho"))["id"])
        s.call("io.troupe.Jobs.Explain", id=id)
        s.call("List", ended=True)
        s.call("io.troupe.Jobs.History", group="actor")
        s.call("io.troupe.Jobs.PurgeHistory", group="actor")
        s.call("Cancel", id=s.create("actor", "echo", delay_usec=3600 * 10**6))
        for method, parameters in ("CancelAll", {"group": "actor"}), ("Set", {"filter": {"group": "actor"}, "priority": 1}), \
                ("RunNow", {"filter": {"group": "actor"}}), ("Move", {"filter": {"group": "actor"}, "to": "player"}):
            s.call("io.troupe.Jobs." + method, dry_run=True, **parameters)
        s.call("io.troupe.Jobs.CloseBatch", id=s.call("io.troupe.Jobs.OpenBatch", group="actor")["id"])
        with s.connect() as connection:
            connection.call("Attach", version=VERSION)

    def call_actors(self):
        def call(method, **parameters):
            return self.s.call(ACTORS + method, **parameters)
        call("CreateExchange", name="x", kind="typed_single")
        for method in "Subscribe", "Unsubscribe", "Subscribe":
            call(method, exchange="x", actor="actor", type="t", key="k")
        for method in "ListExchanges", "ListActors", "ListDeadLetters":
            call(method)
        call("ListSubscriptions", exchange="x")
        call("Lookup", name="x")
        self.assertEqual(int(call("Lookup", name="actor/0")["actor"]["reference"]) >> 64, 0)
        for method in "Pause", "Resume":
            call(method, actor="actor/0")
        call("Tell", to="actor", payload=text("x"))
        timer = call("Schedule", to="actor", delay_usec=3600 * 10**6, type="t", key="k")["id"]
        call("ListTimers")
        call("Unschedule", id=timer)
        call("SetMessageLog", target="actor")
        letter = self.s.until(lambda: call("ListDeadLetters", filter={"reason": "job"})["letters"])[0]["id"]
        call("GetDeadLetter", id=letter)
        call("Requeue", filter={"reason": "job"})
        call("Purge", filter={})
        call("DeleteExchange", name="x")
        self.assertEqual(call("Ask", to="player", payload=text("question"))["payload"], text("answer"))
