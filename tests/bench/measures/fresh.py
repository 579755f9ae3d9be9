# SPDX-License-Identifier: MIT
"""Processes that have just started: one for each job, and the next one after a death. By exec, and forked from a template."""
import programs
import servers
import troupe_daemon
from rounds import Measure, Subject, System

HEAVY = f"{programs.TOP}/tests/bench/peers/heavy.py"


class Group(troupe_daemon.Daemon):
    """A group "fresh": in C, or a program in Python that takes 300 ms to load."""

    def __init__(self, program, template, workers, max_jobs):
        self.python = program == HEAVY
        command = f"{programs.PYTHON or 'python3'} {HEAVY}" if self.python else programs.ours(program)
        super().__init__({"fresh": troupe_daemon.group(
            command, Group={"Environment": f"PYTHONPATH={programs.BUILD}/python"},
            Pool={"Size": workers, "MaxJobs": max_jobs, "Template": template},
            Jobs={"BackoffMinSec": "1us", "BackoffMaxSec": "1us"}, Restart={"ResetAfterSec": "10ms", "StartLimitBurst": 0})})

    def missing(self):
        return programs.absent_module("troupe._troupe", "python3-dev, then make python")

    @property
    def where(self):
        return self.socket


class Web(System):
    """A server that loads an application, and forks the processes that answer."""

    def __init__(self, command, package):
        self.command, self.package = command, package

    def missing(self):
        return programs.absent(self.command[0], self.package)

    def __enter__(self):
        self.where = servers.free_port()
        directory = f"{programs.TOP}/tests/bench/peers"
        self.process = programs.start([part.format(port=self.where) for part in self.command], cwd=directory,
                                      env={"PYTHONDONTWRITEBYTECODE": "1"})
        return self

    def __exit__(self, *_):
        programs.stop(self.process, 10)


def gunicorn(workers, max_jobs):
    return Web(["gunicorn", "--preload", "-w", str(workers), "--max-requests", str(max_jobs), "-b", "127.0.0.1:{port}",
                "heavy:application"], "gunicorn")


def uwsgi(workers, max_jobs):
    return Web(["uwsgi", "--plugin", "python3", "--http-socket", "127.0.0.1:{port}", "--wsgi-file", "heavy.py", "--master",
                "--processes", str(workers), "--min-worker-lifetime", "0",
                *(["--max-requests", str(max_jobs)] if max_jobs else [])], "uwsgi-core and uwsgi-plugin-python3")


class Fresh(Subject):
    def __init__(self, name, system, what, count, role="peer"):
        self.name, self.system, self.what, self.count, self.role = name, system, what, count, role

    def turn(self, _point):
        if self.role == "troupe":  # until it has a template
            programs.run(*self.command("deaths" if self.what == "deaths" else "jobs", 10))
        return programs.measure(*self.command(self.what, self.count))

    def command(self, what, count):
        return programs.python(f"{programs.TOP}/tests/bench/peers/fresh.py", self.system.where, what, count)


class Forks(Subject):
    name, role = "floor: fork() of a Python process that has loaded, one at a time", "floor"

    def turn(self, _point):
        return programs.measure(*programs.python(f"{programs.TOP}/tests/bench/peers/fresh.py", "-", "forks", 100))


def subjects(what, workers, max_jobs, few, many):
    return [Fresh(f"Troupe, {program}, {how}", Group(path, template, workers, max_jobs), what,
                  few if template == "no" and path == HEAVY else many, "troupe")
            for program, path in (("C", "troupe/fresh"), ("Python that loads for 300 ms", HEAVY))
            for how, template in (("by exec", "no"), ("from a template", "slot"))] + [
        Fresh("gunicorn, preloaded", gunicorn(workers, max_jobs), what, few),
        Fresh("uWSGI, preloaded", uwsgi(workers, max_jobs), what, few)]


def measures(quick):
    return [Measure("fresh-jobs", "A fresh process for each job, two workers",
                    [Forks(), *subjects("jobs", 2, 1, 20, 200 if quick else 1000)],
                    "jobs_per_s", "jobs/s", less_is_better=False,
                    shown={"jobs_per_s": "", "jobs_per_process": "jobs of a process"}),
            Measure("fresh-deaths", "From kill -9 of the only worker to the next one's answer",
                    subjects("deaths", 1, 0, 5, 10 if quick else 30), "p50_ms", "ms", shown={"p50_ms": "p50", "max_ms": "most", "private_mib": "memory of its own, MiB"})]
