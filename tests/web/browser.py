# SPDX-License-Identifier: MIT
"""A headless Chromium, driven over its debugging protocol (WebSocket, JSON) with the standard library alone."""
import base64
import json
import os
import re
import select
import shutil
import socket
import struct
import subprocess
import tempfile
import time
import urllib.request

LIMIT = 60.0  # seconds until something expected counts as missing
PROGRAM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")


class WebSocket:
    """The client's end, RFC 6455: text messages only."""

    def __init__(self, url):
        host, port, path = re.fullmatch(r"ws://([^:/]+):(\d+)(/.*)", url).groups()
        self.socket = socket.create_connection((host, int(port)), timeout=LIMIT)
        key = base64.b64encode(os.urandom(16)).decode()
        self.socket.sendall((f"GET {path} HTTP/1.1\r\nHost: {host}:{port}\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
                             f"Sec-WebSocket-Key: {key}\r\nSec-WebSocket-Version: 13\r\n\r\n").encode())
        self.buffer = b""
        while b"\r\n\r\n" not in self.buffer:
            self._fill()
        head, _, self.buffer = self.buffer.partition(b"\r\n\r\n")
        if b" 101 " not in head:
            raise ConnectionError(head.decode())

    def _fill(self):
        data = self.socket.recv(1 << 16)
        if not data:
            raise EOFError("the browser has closed the connection")
        self.buffer += data

    def _take(self, size):
        while len(self.buffer) < size:
            self._fill()
        data, self.buffer = self.buffer[:size], self.buffer[size:]
        return data

    def send(self, text):
        data, mask = text.encode(), os.urandom(4)
        if len(data) < 126:
            size = struct.pack("!B", 0x80 | len(data))
        elif len(data) < 1 << 16:
            size = struct.pack("!BH", 0x80 | 126, len(data))
        else:
            size = struct.pack("!BQ", 0x80 | 127, len(data))
        repeated = (mask * (len(data) // 4 + 1))[:len(data)]
        masked = (int.from_bytes(data, "big") ^ int.from_bytes(repeated, "big")).to_bytes(len(data), "big")
        self.socket.sendall(b"\x81" + size + mask + masked)

    def receive(self):
        """The next message."""
        message = b""
        while True:
            first, size = self._take(2)
            if size == 126:
                [size] = struct.unpack("!H", self._take(2))
            elif size == 127:
                [size] = struct.unpack("!Q", self._take(8))
            part = self._take(size)
            if first & 0x0F == 8:
                raise EOFError("the browser has closed the connection")
            if first & 0x0F in (0, 1):
                message += part
                if first & 0x80:
                    return message.decode()

    def close(self):
        self.socket.close()


class Browser:
    """Chromium with a profile of its own, and one page. Ends with the test."""

    def __init__(self, test, width=1280, height=900):
        self.test = test
        self.profile = tempfile.mkdtemp(prefix="troupe-browser-")
        test.addCleanup(shutil.rmtree, self.profile, ignore_errors=True)
        self.process = subprocess.Popen(
            [PROGRAM, "--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run", "--hide-scrollbars",
             "--disable-background-networking", "--disable-component-update", "--disable-extensions", "--lang=en",
             "--remote-debugging-port=0", f"--user-data-dir={self.profile}", f"--window-size={width},{height}", "about:blank"],
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, start_new_session=True)
        test.addCleanup(self._end)
        with urllib.request.urlopen(f"http://127.0.0.1:{self._port()}/json/list", timeout=LIMIT) as answer:
            [page] = [target for target in json.load(answer) if target["type"] == "page"]
        self.socket = WebSocket(page["webSocketDebuggerUrl"])
        self.n = 0
        self.problems = []  # errors that the page or the browser has reported
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.call(domain + ".enable")
        self.size(width, height)

    def _port(self):
        said = b""
        while not (match := re.search(rb"DevTools listening on ws://[^:]+:(\d+)/", said)):
            if not select.select([self.process.stderr], [], [], LIMIT)[0]:
                self.test.fail("the browser does not start: " + said.decode(errors="replace"))
            data = os.read(self.process.stderr.fileno(), 1 << 16)
            if not data:
                self.test.fail("the browser ended: " + said.decode(errors="replace"))
            said += data
        return int(match[1])

    def _end(self):
        self.process.kill()
        self.process.wait()
        self.process.stderr.close()

    def _note(self, message):
        parameters = message.get("params", {})
        if message["method"] == "Runtime.exceptionThrown":
            details = parameters["exceptionDetails"]
            self.problems.append(details.get("exception", {}).get("description") or details["text"])
        elif message["method"] == "Log.entryAdded" and parameters["entry"]["level"] == "error":
            self.problems.append(parameters["entry"]["text"])

    def call(self, method, **parameters):
        self.n += 1
        self.socket.send(json.dumps({"id": self.n, "method": method, "params": parameters}))
        while True:
            message = json.loads(self.socket.receive())
            if message.get("id") == self.n:
                if "error" in message:
                    raise RuntimeError(f"{method}: {message['error']}")
                return message["result"]
            self._note(message)

    def open(self, url):
        self.call("Page.navigate", url=url)

    def evaluate(self, expression):
        """The value of an expression in the page; promises are waited for."""
        result = self.call("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        if "exceptionDetails" in result:
            details = result["exceptionDetails"]
            raise RuntimeError(details.get("exception", {}).get("description") or details["text"])
        return result["result"].get("value")

    def until(self, condition):
        """Evaluates a condition in the page until it is true. Returns its value."""
        end = time.monotonic() + LIMIT
        while time.monotonic() < end:
            try:
                value = self.evaluate(f"new Promise(done => setTimeout(() => done({condition}), 20))")
            except RuntimeError:
                value = None  # the page is being loaded
            if value:
                return value
        self.test.fail(f"this has not become true: {condition}; the page says: {self.evaluate('document.body.innerText')}; problems: {self.problems}")

    def text(self):
        return self.evaluate("document.body.innerText")

    def key(self, key, text=None):
        codes = {"Tab": 9, "Enter": 13, "Escape": 27, "/": 191}
        common = {"key": key, "windowsVirtualKeyCode": codes.get(key, 0), "code": key}
        if text or key == "Enter":
            common["text"] = text or "\r"
        self.call("Input.dispatchKeyEvent", type="keyDown", **common)
        self.call("Input.dispatchKeyEvent", type="keyUp", key=key, code=key, windowsVirtualKeyCode=codes.get(key, 0))

    def write(self, text):
        self.call("Input.insertText", text=text)

    def size(self, width, height, phone=False):
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=2 if phone else 1, mobile=phone)

    def scheme(self, name):
        self.call("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": name}])

    def picture(self, path, **options):
        data = self.call("Page.captureScreenshot", format="png", **options)["data"]
        with open(path, "wb") as file:
            file.write(base64.b64decode(data))
