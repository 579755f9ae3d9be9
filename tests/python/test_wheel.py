# SPDX-License-Identifier: MIT
"""The wheel of `make python`, in an environment that has nothing else."""
import base64
import glob
import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
import unittest
import zipfile

import troupe_python
from troupe_python import TOP, e2e, needed

PYTHON = "/usr/bin/python3"  # DEBIAN_PYTHON of the Makefile

WORKER = """
import troupe

@troupe.job
def upper(job):
    return job.text.upper()

troupe.run()
"""

CLIENT = """
import sys
import troupe

with troupe.Client(sys.argv[1]) as client:
    print(troupe.__file__, client.do("upper", "from the wheel").data.decode())
"""


def makes_wheels():
    return subprocess.run([PYTHON, "-c", "import setuptools, wheel"], check=False, capture_output=True).returncode == 0


@needed
@unittest.skipUnless(makes_wheels(), "there is no setuptools here: install python3-setuptools and python3-wheel")
@unittest.skipIf(e2e.SANITIZED, "a wheel has no sanitizer")
class Wheel(troupe_python.TestCase):
    def setUp(self):
        super().setUp()
        self.directory = tempfile.mkdtemp(prefix="troupe-wheel-")
        self.addCleanup(shutil.rmtree, self.directory)
        inherited = {name: value for name, value in os.environ.items() if name not in ("MAKEFLAGS", "MAKELEVEL", "MFLAGS")}
        made = subprocess.run(["make", "-C", TOP, "-s", "--no-print-directory", "wheel", "BUILD=" + e2e.BUILD,
                               "WHEEL=" + self.directory], env=inherited, capture_output=True, text=True, check=False)
        self.assertEqual(made.returncode, 0, made.stdout + made.stderr)
        self.wheel, = glob.glob(os.path.join(self.directory, "*.whl"))

    def installed(self):
        """Into a virtual environment, as pip does with a wheel that has neither scripts nor data."""
        environment = os.path.join(self.directory, "environment")
        subprocess.run([sys.executable, "-m", "venv", "--without-pip", environment], check=True)
        python = os.path.join(environment, "bin", "python3")
        into = subprocess.check_output([python, "-Ic", "import sysconfig; print(sysconfig.get_path('platlib'))"], text=True).strip()
        with zipfile.ZipFile(self.wheel) as wheel:
            wheel.extractall(into)
        return python, into

    def test_it_is_for_every_python_that_has_the_stable_abi_of_3_11(self):
        name, _, tags = os.path.basename(self.wheel).removesuffix(".whl").partition("-cp311-")
        self.assertTrue(name.startswith("troupe-"), self.wheel)
        self.assertEqual(tags, f"abi3-linux_{os.uname().machine}")

    def test_it_has_what_its_record_says_and_the_whole_package(self):
        with zipfile.ZipFile(self.wheel) as wheel:
            record, = (name for name in wheel.namelist() if name.endswith(".dist-info/RECORD"))
            rows = [line.rsplit(",", 2) for line in wheel.read(record).decode().splitlines()]
            self.assertEqual({name for name, _, _ in rows}, set(wheel.namelist()))
            for name, digest, _ in rows:
                if name != record:
                    told = base64.urlsafe_b64encode(hashlib.sha256(wheel.read(name)).digest()).rstrip(b"=").decode()
                    self.assertEqual(digest, "sha256=" + told, name)
            packed = {name for name in wheel.namelist() if name.startswith("troupe/")}
        top = os.path.join(TOP, "worker", "python", "troupe")
        wanted = {os.path.relpath(os.path.join(place, name), os.path.dirname(top)) for place, _, names in os.walk(top)
                  for name in names if name.endswith((".py", ".pyi")) or name == "py.typed"}
        self.assertEqual(packed, wanted | {"troupe/_troupe.abi3.so"})

    def test_a_worker_and_a_client_that_have_it_installed_work_together(self):
        python, into = self.installed()
        program = os.path.join(self.directory, "worker.py")
        with open(program, "w", encoding="utf-8") as file:
            file.write(WORKER)
        server = self.started({"upper": e2e.ini(f"{python} -I {program}", Jobs={"MaxRetries": 0})})
        said = subprocess.run([python, "-Ic", CLIENT, server.socket_path], capture_output=True, text=True, timeout=e2e.LIMIT,
                              check=False)
        self.assertEqual((said.stdout, said.stderr), (f"{into}/troupe/__init__.py FROM THE WHEEL\n", ""))
