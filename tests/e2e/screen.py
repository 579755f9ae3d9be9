# SPDX-License-Identifier: MIT
"""A program on a terminal of its own: what it has drawn so far, and keys for it."""
import codecs
import fcntl
import os
import pty
import re
import select
import signal
import struct
import subprocess
import termios
import time

from troupe import LIMIT

# What ncurses sends to a vt220, and what goes before the user's eyes unchanged.
SEQUENCE = re.compile(r"\x1b(?:\[([?0-9;]*)([A-Za-z@`])|[()][A-Za-z0-9]|[=>78MDEHc]|\].*?\x07)")
KEYS = {"up": "\x1b[A", "down": "\x1b[B", "right": "\x1b[C", "left": "\x1b[D", "page down": "\x1b[6~", "page up": "\x1b[5~",
        "enter": "\r", "escape": "\x1b", "backspace": "\x7f"}


class Screen:
    """Runs a command on a terminal of this size. A test waits for text on it, never for time."""

    def __init__(self, test, command, rows=24, columns=100, **environment):
        self.test, self.rows, self.columns = test, rows, columns
        self.raw, self.pending = "", ""
        self.decoder = codecs.getincrementaldecoder("utf-8")(errors="replace")
        self._blank()
        self.fd, self.end = pty.openpty()
        self.before = termios.tcgetattr(self.end)
        self._set_size()
        # The end stays open here, so that the settings can be read when the program has ended.
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
        self.row = self.column = self.top = 0
        self.bottom = self.rows - 1
        self.saved = 0, 0

    def _set_size(self):
        fcntl.ioctl(self.fd, termios.TIOCSWINSZ, struct.pack("HHHH", self.rows, self.columns, 0, 0))

    def resize(self, rows, columns):
        self.rows, self.columns = rows, columns
        self._blank()
        self._set_size()
        self.process.send_signal(signal.SIGWINCH)

    # ---- drawing

    def _scroll(self, lines, first=None):
        first = self.top if first is None else first
        for _ in range(abs(lines)):
            if lines > 0:
                self.lines.insert(self.bottom + 1, [" "] * self.columns)
                del self.lines[first]
            else:
                self.lines.insert(first, [" "] * self.columns)
                del self.lines[self.bottom + 1]

    def _put(self, character):
        if character == "\r":
            self.column = 0
        elif character == "\n":
            if self.row == self.bottom:
                self._scroll(1)
            else:
                self.row = min(self.row + 1, self.rows - 1)
        elif character == "\b":
            self.column = max(0, self.column - 1)
        elif character == "\t":
            self.column = min(self.columns - 1, (self.column // 8 + 1) * 8)
        elif character >= " ":
            if self.column >= self.columns:
                self.column = 0
                self._put("\n")
            self.lines[self.row][self.column] = character
            self.column += 1

    def _clear(self, first, last):
        """From one (row, column) up to, and without, another."""
        for row in range(first[0], min(last[0], self.rows - 1) + 1):
            start = first[1] if row == first[0] else 0
            end = last[1] if row == last[0] else self.columns
            self.lines[row][start:end] = [" "] * (end - start)

    def _control(self, parameters, command):
        numbers = [int(n) if n else 0 for n in parameters.lstrip("?").split(";")]
        n = max(1, numbers[0])
        line = self.lines[self.row]
        if command in "Hf":
            self.row = min(n, self.rows) - 1
            self.column = min(max(1, numbers[1] if len(numbers) > 1 else 1), self.columns) - 1
        elif command in "AB":
            self.row = max(0, min(self.rows - 1, self.row + (n if command == "B" else -n)))
        elif command in "CD":
            self.column = max(0, min(self.columns - 1, self.column + (n if command == "C" else -n)))
        elif command in "G`":
            self.column = min(n, self.columns) - 1
        elif command == "d":
            self.row = min(n, self.rows) - 1
        elif command == "J":
            here, end = (self.row, self.column), (self.rows - 1, self.columns)
            self._clear(*{0: (here, end), 1: ((0, 0), (self.row, self.column + 1)), 2: ((0, 0), end)}[numbers[0]])
        elif command == "K":
            start, end = {0: (self.column, self.columns), 1: (0, self.column + 1), 2: (0, self.columns)}[numbers[0]]
            self._clear((self.row, start), (self.row, end))
        elif command == "X":
            self._clear((self.row, self.column), (self.row, min(self.columns, self.column + n)))
        elif command == "P":
            self.lines[self.row] = line[:self.column] + line[self.column + n:] + [" "] * min(n, self.columns - self.column)
        elif command == "@":
            self.lines[self.row] = (line[:self.column] + [" "] * n + line[self.column:])[:self.columns]
        elif command in "LM":
            self._scroll(-n if command == "L" else n, self.row)
        elif command == "r":
            self.top, self.bottom = n - 1, (numbers[1] if len(numbers) > 1 and numbers[1] else self.rows) - 1
            self.row = self.column = 0

    def _escape(self, command):
        if command == "M" and self.row == self.top:
            self._scroll(-1)
        elif command == "M":
            self.row = max(0, self.row - 1)
        elif command == "D":
            self._put("\n")
        elif command == "E":
            self._put("\r")
            self._put("\n")
        elif command == "7":
            self.saved = self.row, self.column
        elif command == "8":
            self.row, self.column = self.saved

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
            if match[2]:
                self._control(match[1], match[2])
            else:
                self._escape(match[0][1])
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

    def press(self, *keys):
        for key in keys:
            os.write(self.fd, KEYS.get(key, key).encode())

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

    def is_restored(self):
        return termios.tcgetattr(self.end) == self.before
