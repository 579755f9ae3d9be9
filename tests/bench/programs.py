# SPDX-License-Identifier: MIT
"""Programs: where ours are, whether somebody else's are there, and how one is run."""
import contextlib
import json
import os
import shutil
import signal
import subprocess
import tempfile

TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
BUILD = os.environ.get("TESTS_BUILD", os.path.join(TOP, "build"))
LIMIT = 60  # seconds until something that must happen counts as not happening


class Failed(Exception):
    """A program did not do what it should have done."""


def ours(name):
    """A program of the benchmarks: "floors/hops"."""
    return os.path.join(BUILD, "tests", "bench", name)


def directory_on_disk():
    """A new directory beside what is built: the usual place for temporary files may be in memory."""
    return tempfile.mkdtemp(prefix="bench-disk-", dir=BUILD)


def product(name):
    return os.path.join(BUILD, name)


# Debian's, for which the peers are packaged; "" where it is missing.
PYTHON = "/usr/bin/python3" if os.path.exists("/usr/bin/python3") else ""


def python(*arguments):
    """The command of a Python that has the package troupe and the peers' programs, and finds trouped."""
    paths = f"{BUILD}/python:{TOP}/tests/bench/peers"
    return ["env", f"PYTHONPATH={paths}", f"PATH={BUILD}:{os.environ.get('PATH', os.defpath)}", PYTHON or "python3",
            *map(str, arguments)]


def absent_module(name, package):
    """None, or the line that says what to install."""
    if subprocess.run(python("-c", f"import {name}"), capture_output=True, check=False).returncode == 0:
        return None
    return f"the module {name} is missing: package {package}"


def absent(command, package):
    """None, or the line that says what to install."""
    places = os.environ.get("PATH", "") + ":/usr/local/sbin:/usr/sbin:/sbin"
    if shutil.which(command, path=places):
        return None
    return f"{os.path.basename(command)} is missing: package {package}"


def start(command, **options):
    """A process that ends with this one, whatever happens."""
    options.setdefault("stdin", subprocess.DEVNULL)
    options.setdefault("stdout", subprocess.DEVNULL)
    options.setdefault("stderr", subprocess.DEVNULL)
    environment = {**os.environ, **options.pop("env", {})}
    environment["PATH"] = environment.get("PATH", "") + ":/usr/sbin:/sbin"
    return subprocess.Popen(["setpriv", "--pdeathsig", "KILL", "--", *command], env=environment, **options)


def start_ready(command):
    """One that prints "ready" when it is."""
    process = start(command, stdout=subprocess.PIPE, text=True)
    if process.stdout.readline() != "ready\n":
        stop(process)
        raise Failed(f"{' '.join(command)}: is not ready")
    return process


def stop(process, limit=LIMIT):
    if process.poll() is None:
        process.send_signal(signal.SIGTERM)
        with contextlib.suppress(subprocess.TimeoutExpired):
            return process.wait(limit)
        process.kill()
    return process.wait()


def run(*command, limit=LIMIT):
    """Its output."""
    try:
        done = subprocess.run([str(part) for part in command], stdin=subprocess.DEVNULL, capture_output=True,
                              text=True, timeout=limit, check=False)
    except subprocess.TimeoutExpired:
        raise Failed(f"{' '.join(map(str, command))}: has not ended within {limit} s") from None
    if done.returncode != 0:
        raise Failed(f"{' '.join(map(str, command))}: ended with {done.returncode}: {done.stderr.strip()[-300:]}")
    return done.stdout


def measure(*command, limit=LIMIT):
    """What it printed: one JSON object."""
    return json.loads(run(*command, limit=limit))
