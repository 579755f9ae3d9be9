# SPDX-License-Identifier: MIT
"""Runs a private trouped as long as another program lives, and removes the files that both leave behind.

    guardian.py DIRECTORY      standard input: a socket to that program

The program sends descriptors. The first is a file with "command" and "files" as JSON; @directory@ in the files is replaced
by the directory in the answer. The answer is the path of a directory with these files, in which `socket` accepts connections;
or NO, followed by an error message. A process that connects to the directory's socket `descriptors` gets the other
descriptors. The end of the program, or of the connection, ends everything. If trouped ends first, its last log lines are
sent before the connection ends.
"""
import contextlib
import json
import os
import select
import shutil
import signal
import socket
import sys
import tempfile
from typing import Any

DESCRIPTORS_MAX = 253  # the kernel's SCM_MAX_FD
LISTEN_FD = 3  # sd_listen_fds(3)
WORDS_MAX = 4096  # of the log
AGAIN_MS = 20
NO = b"\0"  # before an error message, instead of a path


def read_all(fd: int) -> bytes:
    return os.pread(fd, os.fstat(fd).st_size, 0)


def near(directory: int, name: str) -> str:
    """Returns a path to a socket that is short enough for an address, however long the directory's path is."""
    return f"/proc/self/fd/{directory}/{name}"


def listen(path: str) -> socket.socket:
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(path)
    listener.listen(64)
    return listener


def start(command: list[str], listener: socket.socket, log: int) -> int:
    """Starts trouped with its socket passed on, as systemd does. The kernel kills it if this process is killed."""
    pid = os.fork()
    if pid > 0:
        return pid
    try:
        os.dup2(log, 2)
        if listener.fileno() == LISTEN_FD:
            os.set_inheritable(LISTEN_FD, True)
        else:
            os.dup2(listener.fileno(), LISTEN_FD)
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGPIPE):
            signal.signal(number, signal.SIG_DFL)
        environment = {"PATH": os.environ.get("PATH", os.defpath), "LISTEN_FDS": "1", "LISTEN_PID": str(os.getpid())}
        os.execvpe("setpriv", ["setpriv", "--pdeathsig", "KILL", "--", *command], environment)
    except OSError as error:
        os.write(2, f"setpriv: {error}\n".encode())
    finally:
        os._exit(127)


def serve(program: socket.socket, doorway: socket.socket, daemon: int, log: int, descriptors: list[int]) -> bool:
    """Serves until the program or trouped ends. Returns whether workers may finish their tasks."""
    words = b""
    poll = select.poll()
    for fd in (program.fileno(), doorway.fileno(), daemon, log):
        poll.register(fd, select.POLLIN)
    while True:
        ready = [fd for fd, _ in poll.poll()]
        if log in ready:
            more = os.read(log, WORDS_MAX)
            words = (words + more)[-WORDS_MAX:]
            if not more:
                poll.unregister(log)
        elif program.fileno() in ready:
            return read_wish(program)
        elif daemon in ready:
            program.sendall(words or f"trouped has ended: {end_of(daemon)}".encode())
            return False
        else:
            give(doorway, descriptors)


def end_of(daemon: int) -> str:
    """Returns the exit status of a child, without reaping it."""
    ended = os.waitid(os.P_PIDFD, daemon, os.WEXITED | os.WNOWAIT)
    assert ended is not None
    return f"exit status {ended.si_status}" if ended.si_code == os.CLD_EXITED else f"signal {ended.si_status}"


def read_wish(program: socket.socket) -> bool:
    try:
        return program.recv(1) != b""
    except ConnectionError:
        return False


def give(doorway: socket.socket, descriptors: list[int]) -> None:
    worker, _ = doorway.accept()
    with worker, contextlib.suppress(OSError):  # it has been killed
        socket.send_fds(worker, [b"\0"], descriptors)


def stop(pid: int, daemon: int, gently: bool) -> None:
    """A second signal, once the first has been handled, immediately ends trouped and its workers."""
    poll = select.poll()
    poll.register(daemon, select.POLLIN)
    with contextlib.suppress(ProcessLookupError):
        signal.pidfd_send_signal(daemon, signal.SIGTERM)
        while not poll.poll(None if gently else AGAIN_MS):
            signal.pidfd_send_signal(daemon, signal.SIGTERM)
    os.waitpid(pid, 0)


def run(program: socket.socket, wanted: dict[str, Any], directory: str, descriptors: list[int]) -> None:
    for name, text in wanted["files"].items():
        with open(os.path.join(directory, name), "w", encoding="utf-8", errors="surrogateescape") as file:
            file.write(text.replace("@directory@", directory))
    inside = os.open(directory, os.O_PATH)
    doorway = listen(near(inside, "descriptors"))
    with listen(near(inside, "socket")) as listener:
        log, said = os.pipe()
        pid = start([*wanted["command"], "--config", directory], listener, said)
        os.close(said)
    daemon = os.pidfd_open(pid)
    program.sendall(os.fsencode(directory))
    stop(pid, daemon, serve(program, doorway, daemon, log, descriptors))


def main() -> None:
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    program = socket.socket(fileno=0)
    _, received, _, _ = socket.recv_fds(program, 1, DESCRIPTORS_MAX)
    if not received:
        return
    for fd in received:
        os.set_inheritable(fd, False)
    setup, *descriptors = received
    try:
        directory = tempfile.mkdtemp(prefix="troupe-", dir=sys.argv[1] or None)
        try:
            run(program, json.loads(read_all(setup)), directory, descriptors)
        finally:
            shutil.rmtree(directory, ignore_errors=True)
    except OSError as error:
        with contextlib.suppress(OSError):
            program.sendall(NO + str(error).encode(errors="replace"))


if __name__ == "__main__":
    main()
