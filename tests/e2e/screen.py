# SPDX-License-Identifier: MIT
"""A program on a terminal of its own: what it has drawn so far."""
import codecs
import fcntl
import os
import pty
import re
import select
import struct
import subprocess
import termios
import time

from troupe import LIMIT

SEQUENCE = re.compile(r"\x1b\[[?0-9;]*([A-Za-z])")


class Screen:
    """Runs a command on a terminal of this size. A test waits for text on it, never for time."""

    def __init__(self, test, command, rows=24, columns=100, **environment):
        self.test, self.rows, self.columns = test, rows, columns
        self.raw, self.pending = "", ""
        self.decoder = codecs.getincrementaldecoder("utf-8")(errors="replace")
        self._blank()
        self.fd, self.end = pty.openpty()
        self._set_size()
        self.process = subprocess.Popen(command, stdin=self.end, stdout=self.end, stderr=self.end, start_new_session=True,
                                        preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0),
                                        env={**os.environ, "TERM": "vt220", "LC_ALL": "C.UTF-8", "LINES": "", "COLUMNS": "",
                                             **environment})
        test.addCleanup(self.clean_up)

    def clean_up(self):
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()
        os.close(self.fd)
        os.close(self.end)

    def _blank(self):
        self.lines = [[" "] * self.columns for _ in range(self.rows)]
        self.row = self.column = 0

    def _set_size(self):
        fcntl.ioctl(self.fd, termios.TIOCSWINSZ, struct.pack("HHHH", self.rows, self.columns, 0, 0))

    def resize(self, rows, columns):
        self.rows, self.columns = rows, columns
        self._blank()
        self._set_size()

    # ---- drawing

    def _put(self, character):
        if character == "\r":
            self.column = 0
        elif character == "\n":
            self.row += 1
            if self.row == self.rows:
                self.row -= 1
                self.lines = self.lines[1:] + [[" "] * self.columns]
        elif character >= " ":
            if self.column >= self.columns:
                self.column = 0
                self._put("\n")
            self.lines[self.row][self.column] = character
            self.column += 1

    def _control(self, command):
        if command == "H":
            self.row = self.column = 0
        elif command in "JK":
            self.lines[self.row][self.column:] = [" "] * (self.columns - self.column)
        if command == "J":
            self.lines[self.row + 1:] = [[" "] * self.columns for _ in self.lines[self.row + 1:]]

    def _draw(self, data):
        self.pending += data
        while self.pending:
            if self.pending[0] != "\x1b":
                self._put(self.pending[0])
                self.pending = self.pending[1:]
                continue
            match = SEQUENCE.match(self.pending)
            if not match:
                return  # the rest of it is still to come
            self._control(match[1])
            self.pending = self.pending[match.end():]

    def _read(self, seconds):
        ready, _, _ = select.select([self.fd], [], [], max(0, seconds))
        if not ready:
            return False
        data = self.decoder.decode(os.read(self.fd, 65536))
        self.raw += data
        self._draw(data)
        return True

    # ---- what tests use

    def text(self):
        return "\n".join("".join(line).rstrip() for line in self.lines)

    def wait(self, condition):
        """Waits until the screen has this text, or the condition is true of it. Returns the text of the screen."""
        holds = condition if callable(condition) else lambda text: re.search(condition, text, re.M)
        limit = time.monotonic() + LIMIT
        while not holds(self.text()):
            if not self._read(min(0.5, limit - time.monotonic())) and self.process.poll() is not None:
                self.test.fail(f"the program has ended with {self.process.returncode}; its screen:\n{self.text()}")
            if time.monotonic() > limit:
                self.test.fail(f"{condition} was not drawn within {LIMIT} s; the screen:\n{self.text()}")
        return self.text()

    def wait_end(self):
        """Reads what comes until the program has ended. Returns its exit status."""
        limit = time.monotonic() + LIMIT
        while self.process.poll() is None:
            self._read(0.05)
            if time.monotonic() > limit:
                self.test.fail(f"it has not ended; the screen:\n{self.text()}")
        while self._read(0):
            pass
        return self.process.returncode
