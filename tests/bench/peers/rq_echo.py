# SPDX-License-Identifier: MIT
"""A task of RQ: `rq worker`, with this directory in PYTHONPATH."""


def echo(data):
    return data
