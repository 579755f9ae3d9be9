# SPDX-License-Identifier: MIT
"""A task of Celery: `celery -A celery_echo worker`, with the port of redis in BENCH_REDIS."""
import os

from celery import Celery


def echo(data):
    return data


def make(port):
    where = f"redis://127.0.0.1:{port}/0"
    made = Celery("bench", broker=where, backend=where)
    made.conf.update(task_serializer="pickle", result_serializer="pickle", accept_content=["pickle"])
    return made.task(name="echo")(echo)


if "BENCH_REDIS" in os.environ:
    app = make(os.environ["BENCH_REDIS"]).app
