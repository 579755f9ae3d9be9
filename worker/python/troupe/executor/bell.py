# SPDX-License-Identifier: MIT
"""Wakes a thread that waits in poll()."""
import contextlib
import socket


class Bell:
    """Any thread may ring; the waiting thread polls `ear` and acknowledges."""

    sockets: tuple[socket.socket, ...] = ()

    def __init__(self) -> None:
        self.sockets = self.hammer, self.ear = socket.socketpair()
        for end in self.sockets:
            end.setblocking(False)

    def __del__(self) -> None:
        self.close()

    def close(self) -> None:
        """Idempotent."""
        for end in self.sockets:
            end.close()

    def ring(self) -> None:
        with contextlib.suppress(BlockingIOError):
            self.hammer.send(b"\0")

    def heard(self) -> None:
        with contextlib.suppress(BlockingIOError):
            self.ear.recv(4096)
