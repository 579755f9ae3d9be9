# SPDX-License-Identifier: MIT
"""Reads the .varlink files and checks replies against them.

The language is https://varlink.org/Interface-Definition. A reply must have exactly the declared fields, each of
its declared type; a field declared with `?` may be absent.
"""
import glob
import os
import re

TOKEN = re.compile(r"\[string\]|\[\]|->|[A-Za-z][A-Za-z0-9_.]*|[?(),:]")
INTEGERS = range(-2**63, 2**63)
SERVICE = "org.varlink.service"
# Errors that come before the method is known, in the name of io.troupe.Supervisor: the message was too large, or no memory
# was left to read it.
UNREAD = ("TooLarge", "NotPermitted", "Internal")


class Mismatch(AssertionError):
    """A reply is not of its declared type."""


class Enum(tuple):
    """The members of an enum."""


class _Parser:
    """Parses one interface. `methods` maps names to (parameters, reply), `errors` and `types` to a struct or an Enum."""

    def __init__(self, text):
        self.tokens = TOKEN.findall(re.sub(r"#.*", "", text))
        self.methods, self.errors, self.types = {}, {}, {}
        self.take("interface")
        self.name = self.next()
        while self.tokens:
            kind, name = self.next(), self.next()
            if kind == "method":
                parameters = self.struct()
                self.take("->")
                self.methods[name] = (parameters, self.struct())
            else:
                {"type": self.types, "error": self.errors}[kind][name] = self.struct()

    def next(self):
        return self.tokens.pop(0)

    def take(self, token):
        found = self.next()
        assert found == token, f"{token} expected, {found} found"

    def struct(self):
        """Returns (name: type, ...) as a dict, or (name, ...) as an Enum."""
        fields, names = {}, []
        self.take("(")
        while self.tokens[0] != ")":
            name = self.next()
            if self.tokens[0] == ":":
                self.take(":")
                fields[name] = self.type()
            else:
                names.append(name)
            if self.tokens[0] == ",":
                self.take(",")
        self.take(")")
        assert not (fields and names), f"{self.name}: neither a struct nor an enum: {names}"
        return Enum(names) if names else fields

    def type(self):
        """Returns (may be absent, is an array, type of the element)."""
        optional = self.tokens[0] == "?"
        if optional:
            self.next()
        array = self.tokens[0] == "[]"
        if array:
            self.next()
        return optional, array, self.struct() if self.tokens[0] == "(" else self.next()


def load(directory):
    interfaces = {}
    for path in glob.glob(os.path.join(directory, "*.varlink")):
        with open(path, encoding="utf-8") as file:
            interface = _Parser(file.read())
        interfaces[interface.name] = interface
    return interfaces


class Checker:
    """Checks replies, and records which methods, errors and fields it has seen."""

    def __init__(self, directory):
        self.interfaces = load(directory)
        self.seen = set()

    def check(self, method, message):
        """Checks a reply to a call of this method; None = the call could not be read."""
        unknown = set(message) - {"parameters", "error", "continues"}
        if unknown:
            raise Mismatch(f"{method}: unknown members of the reply: {unknown}")
        parameters = message.get("parameters", {})
        if "error" in message:
            self._check_error(method, message["error"], parameters)
            return
        interface, _, name = method.rpartition(".")
        self._struct(self.interfaces[interface], self.interfaces[interface].methods[name][1], parameters, method)
        self.seen.add(method)

    def _check_error(self, method, full, parameters):
        interface, _, name = full.rpartition(".")
        if interface not in self.interfaces or name not in self.interfaces[interface].errors:
            raise Mismatch(f"{method}: an error that is not declared: {full}")
        own = method and method.rpartition(".")[0]
        if method and interface not in (own, SERVICE) and own != SERVICE and name not in UNREAD:
            raise Mismatch(f"{method}: an error of another interface: {full}")
        self._struct(self.interfaces[interface], self.interfaces[interface].errors[name], parameters, full)
        self.seen.add(full)

    def _struct(self, interface, fields, value, where):
        if not isinstance(value, dict):
            raise Mismatch(f"{where}: not an object: {value!r}")
        if set(value) - set(fields):
            raise Mismatch(f"{where}: not declared: {set(value) - set(fields)}")
        for name, (optional, array, element) in fields.items():
            if name not in value or value[name] is None:
                if not optional:
                    raise Mismatch(f"{where}: {name} is missing")
                continue
            self.seen.add(f"{where}.{name}")
            if not array:
                self._value(interface, element, value[name], f"{where}.{name}")
                continue
            if not isinstance(value[name], list):
                raise Mismatch(f"{where}.{name}: not an array: {value[name]!r}")
            for item in value[name]:
                self._value(interface, element, item, f"{where}.{name}")

    def _value(self, interface, kind, value, where):
        if isinstance(kind, str) and kind in interface.types:
            where, kind = f"{interface.name}.{kind}", interface.types[kind]
        if isinstance(kind, Enum):
            fits = value in kind
        elif isinstance(kind, dict):
            self._struct(interface, kind, value, where)
            return
        else:
            fits = {"string": lambda: isinstance(value, str),
                    "bool": lambda: isinstance(value, bool),
                    "int": lambda: isinstance(value, int) and not isinstance(value, bool) and value in INTEGERS,
                    }[kind]()
        if not fits:
            raise Mismatch(f"{where}: not of type {kind}: {value!r}")
