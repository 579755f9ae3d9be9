# SPDX-License-Identifier: MIT
"""Dies, or hangs, as the payload of its job says; the innermost function of this program is named planted_…"""
import ctypes
import faulthandler
import os
import sys
import time

import troupe

extension = ctypes.CDLL(os.environ["PLANTED"])


def planted_call():
    time.sleep(1000)


def planted_loop():
    n = 0
    while True:
        n += 1


def planted_caller():
    extension.planted_extension(None)


def planted_abort():
    os.abort()


def deep(n, end):
    return deep(n - 1, end) if n else end()


@troupe.job
def planted(job):
    ends = {"call": planted_call, "loop": planted_loop, "extension": planted_caller, "abort": planted_abort}
    deep(3, ends[job.text])


if "faulthandler" in sys.argv:
    faulthandler.enable()
troupe.run()
