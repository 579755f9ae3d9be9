# SPDX-License-Identifier: MIT
"""A collector of spans, troupe-otlp, and the form of a request of OTLP/HTTP with JSON. Waits for events, as troupe.py."""
import http.server
import json
import os
import queue
import re
import signal
import subprocess
import sys
import threading
import unittest

from troupe import BUILD, LIMIT, ended, failed

TROUPE_OTLP = os.path.join(BUILD, "troupe-otlp")

# The fields of the messages of opentelemetry-proto 1.x in JSON, as far as a program that exports spans may use them: a
# name of a message, a list of such, or a pattern of a scalar. Ids are hexadecimal, enumerations are numbers, and numbers
# of 64 bits are texts.
TEXT, UINT32, UINT64, INT64 = "string", "uint32", r'"\d{1,20}"', r'"-?\d{1,19}"'
TRACE_ID, SPAN_ID = '"[0-9a-f]{32}"', '"[0-9a-f]{16}"'
MESSAGES = {
    "Request": {"resourceSpans": ["ResourceSpans"]},
    "ResourceSpans": {"resource": "Resource", "scopeSpans": ["ScopeSpans"], "schemaUrl": TEXT},
    "Resource": {"attributes": ["KeyValue"], "droppedAttributesCount": UINT32},
    "ScopeSpans": {"scope": "Scope", "spans": ["Span"], "schemaUrl": TEXT},
    "Scope": {"name": TEXT, "version": TEXT, "attributes": ["KeyValue"], "droppedAttributesCount": UINT32},
    "Span": {"traceId": TRACE_ID, "spanId": SPAN_ID, "parentSpanId": SPAN_ID, "traceState": TEXT, "flags": UINT32, "name": TEXT,
             "kind": "[1-5]", "startTimeUnixNano": UINT64, "endTimeUnixNano": UINT64, "attributes": ["KeyValue"],
             "droppedAttributesCount": UINT32, "events": ["Event"], "links": ["Link"], "status": "Status"},
    "Event": {"timeUnixNano": UINT64, "name": TEXT, "attributes": ["KeyValue"]},
    "Link": {"traceId": TRACE_ID, "spanId": SPAN_ID, "traceState": TEXT, "attributes": ["KeyValue"], "flags": UINT32},
    "Status": {"message": TEXT, "code": "[0-2]"},
    "KeyValue": {"key": TEXT, "value": "AnyValue"},
    "AnyValue": {"stringValue": TEXT, "boolValue": "true|false", "intValue": INT64, "doubleValue": "double"},
}
REQUIRED = {"Request": ["resourceSpans"], "Span": ["traceId", "spanId", "name", "startTimeUnixNano", "endTimeUnixNano"],
            "Link": ["traceId", "spanId"], "KeyValue": ["key", "value"]}


def check(kind, value, path="request"):
    """Fails unless the value has the form of the message or scalar."""
    if isinstance(kind, list):
        assert isinstance(value, list), path
        for n, item in enumerate(value):
            check(kind[0], item, f"{path}[{n}]")
    elif kind in MESSAGES:
        assert isinstance(value, dict), path
        assert set(value) <= set(MESSAGES[kind]), f"{path}: {set(value) - set(MESSAGES[kind])}"
        assert set(REQUIRED.get(kind, [])) <= set(value), f"{path}: {set(REQUIRED[kind]) - set(value)} is missing"
        assert kind != "AnyValue" or len(value) == 1, path
        for name, member in value.items():
            check(MESSAGES[kind][name], member, f"{path}.{name}")
    elif kind == TEXT:
        assert isinstance(value, str), path
    elif kind == UINT32:
        assert isinstance(value, int) and 0 <= value < 1 << 32, path
    else:
        assert re.fullmatch(kind, json.dumps(value)), f"{path}: {value}"
        assert kind not in (TRACE_ID, SPAN_ID) or value.strip("0"), path


class Span:
    def __init__(self, span):
        self.raw = span
        self.name, self.kind, self.trace, self.id = span["name"], span["kind"], span["traceId"], span["spanId"]
        self.parent = span.get("parentSpanId")
        self.links = [(link["traceId"], link["spanId"]) for link in span.get("links", [])]
        self.status = span.get("status", {})
        self.start, self.end = int(span["startTimeUnixNano"]), int(span["endTimeUnixNano"])
        self.attributes = attributes(span)

    def __repr__(self):
        return json.dumps(self.raw)


def attributes(of):
    def value(any_value):
        [(kind, value)] = any_value.items()
        return int(value) if kind == "intValue" else value
    found = {pair["key"]: value(pair["value"]) for pair in of["attributes"]}
    assert len(found) == len(of["attributes"]), of
    return found


class Collector:
    """An HTTP server. Each request takes the next of `answers`: (status, headers, body) or None, which closes the connection;
    without one it succeeds. What succeeds is in `spans`, and every request in `requests`."""

    def __init__(self, test, port=0):
        collector = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_POST(self):
                collector.take(self)

            def log_message(self, *_):
                pass

        self.test, self.requests, self.answers, self.spans, self.scopes = test, [], [], queue.Queue(), []
        self.took = queue.Queue()
        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", port), Handler)
        self.port = self.server.server_port
        self.url = f"http://127.0.0.1:{self.port}"
        self.thread = threading.Thread(target=self.server.serve_forever)
        self.thread.start()
        test.addCleanup(self.close)

    def close(self):
        if self.thread.is_alive():
            self.server.shutdown()
            self.thread.join()
            self.server.server_close()

    def take(self, handler):
        body = handler.rfile.read(int(handler.headers["Content-Length"]))
        request = json.loads(body)
        answer = self.answers.pop(0) if self.answers else (200, {}, b"{}")
        self.requests.append((handler.path, dict(handler.headers), request))
        if answer:
            status, headers, text = answer
            handler.send_response(status)
            for name, value in {"Content-Type": "application/json", "Content-Length": str(len(text)), **headers}.items():
                handler.send_header(name, value)
            handler.end_headers()
            handler.wfile.write(text)
        if answer and answer[0] == 200:
            for resource in request["resourceSpans"]:
                for scope in resource["scopeSpans"]:
                    self.scopes.append(scope["scope"])
                    for span in scope["spans"]:
                        self.spans.put(Span(span))
        handler.close_connection = True
        self.took.put(answer)

    def next_request(self):
        return self.took.get(timeout=LIMIT)

    def get(self, n):
        return [self.spans.get(timeout=LIMIT) for _ in range(n)]

    def dropped(self):
        """As the last request that succeeded says."""
        return attributes(self.scopes[-1])["troupe.otlp.dropped_spans"]


class Otlp:
    """troupe-otlp. Ends with the test."""

    def __init__(self, test, socket_path, endpoint, *options, headers=None, environment=None, **popen):
        if not os.path.exists(TROUPE_OTLP):
            raise unittest.SkipTest("libcurl is missing: install libcurl4-openssl-dev")
        variables = {name: value for name, value in os.environ.items() if not name.lower().endswith("_proxy")}
        variables["OTEL_EXPORTER_OTLP_ENDPOINT"] = endpoint
        if headers:
            variables["OTEL_EXPORTER_OTLP_HEADERS"] = headers
        self.test, self.path, self.process = test, os.path.join(os.path.dirname(socket_path), "otlp.log"), None
        self.file = open(self.path, "ab")
        self.process = subprocess.Popen([TROUPE_OTLP, "--socket", socket_path, *options], stdin=subprocess.DEVNULL,
                                        stderr=self.file, env={**variables, **(environment or {})}, **popen)
        self.pidfd = os.pidfd_open(self.process.pid)
        test.addCleanup(self.stop)

    def log(self):
        with open(self.path, encoding="utf8") as file:
            return file.read()

    def stop(self):
        if not self.process:
            return
        self.process.send_signal(signal.SIGTERM)
        if not ended(self.pidfd, LIMIT):
            self.process.kill()
        status, self.process = self.process.wait(), None
        os.close(self.pidfd)
        self.file.close()
        if failed(self.test) or status != 0:
            print(f"---- troupe-otlp\n{self.log()}----", file=sys.stderr)
        self.test.assertEqual(status, 0, "exit status of troupe-otlp after SIGTERM")
