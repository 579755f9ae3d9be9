# SPDX-License-Identifier: MIT
"""Helpers of the tests of the package troupe: the package itself, and groups whose workers are Python programs."""
import os
import signal
import sys
import unittest

TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, os.path.join(TOP, "tests", "e2e"))

import troupe as e2e  # noqa: E402  the helpers of the end-to-end tests have the name of the package

PACKAGES = os.path.join(e2e.BUILD, "python")
WORKERS = os.path.join(TOP, "tests", "python", "workers")


def _runtime():
    """The sanitizers' run time, which has to be in a process before the extension."""
    for name in ("libasan.so.8", "libasan.so.6", "libasan.so.5"):
        path = os.path.join("/usr/lib", f"{os.uname().machine}-linux-gnu", name)
        if os.path.exists(path):
            return path
    return None


# Python itself leaks by design, and is not what is under test.
ENVIRONMENT = {"PYTHONPATH": PACKAGES, "PYTHONUNBUFFERED": "1"}
if e2e.SANITIZED:
    ENVIRONMENT |= {"LD_PRELOAD": _runtime() or "", "ASAN_OPTIONS": "detect_leaks=0:handle_segv=0:handle_abort=0",
                    "PYTHONMALLOC": "malloc"}


def _take_package():
    """Makes "troupe" the package in this process, which begins anew if the sanitizers' run time must come first."""
    if e2e.SANITIZED and os.environ.get("LD_PRELOAD") != ENVIRONMENT["LD_PRELOAD"]:
        os.execve(sys.executable, [sys.executable, *sys.argv], {**os.environ, **ENVIRONMENT})
    del sys.modules["troupe"]
    sys.path.insert(0, PACKAGES)


# tests/run asks for the names of the tests first, where "troupe" has to stay what other tests expect.
if os.path.basename(sys.argv[0]) != "run" or "--case" in sys.argv:
    _take_package()


def needed(case):
    """Decorates a test case that needs the package."""
    return unittest.skipUnless(os.path.exists(os.path.join(PACKAGES, "troupe", "_troupe.abi3.so")),
                               "the package troupe is not built: Python's headers are missing")(case)


def group(program, *arguments, python=sys.executable, environment=ENVIRONMENT, **sections):
    """A group file whose workers run a program of tests/python/workers."""
    own = sections.pop("Group", {})
    own = {**own, "Environment": [f"{name}={value}" for name, value in environment.items()]}
    path = os.path.join(WORKERS, program)
    return e2e.ini(" ".join([python, path, *arguments]), Group=own, **sections)


def waits(low):
    """Whether a call of this client of the extension waits."""
    try:
        low.flush()
    except RuntimeError:
        return True
    return False


class TestCase(e2e.TestCase):
    """Starts supervisors; connects clients of the extension, which end with the test."""

    def interrupt(self, error, ready):
        """Has a signal handler raise the error, once, as soon as ready() is true."""
        raised = []

        def handler(*_):
            signal.setitimer(signal.ITIMER_REAL, 0)
            if raised:
                return
            if ready():
                raised.append(True)
                raise error
            signal.setitimer(signal.ITIMER_REAL, 0.05, 0.05)
        signal.signal(signal.SIGALRM, handler)
        # Again and again: one that comes right before a wait does not end it.
        signal.setitimer(signal.ITIMER_REAL, 0.05, 0.05)

    def client(self, supervisor):
        from troupe import _troupe
        client = _troupe.Client(supervisor.socket_path)
        self.addCleanup(client.close)
        return client
