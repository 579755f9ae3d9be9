# SPDX-License-Identifier: MIT
"""Clients that create jobs of all kinds, cancel them, wait for them, and note what they were promised."""
import contextlib
import itertools
import random
import subprocess
import threading

from promises import ENDS, KINDS, Job
from troupe import Varlink, VarlinkError, helper, text


class Load:
    """All jobs, and the clients that make them. position() is that of the disk's log."""

    def __init__(self, group, position, seed):
        self.group, self.position = group, position
        self.random = random.Random(seed)
        self.jobs, self.numbers = [], itertools.count()
        self.left = []  # jobs whose end nobody has seen

    def start(self, supervisor, n_clients, n_steps):
        """Starts clients. Each ends after so many steps, or when the supervisor is gone."""
        self._cancel_unknown(supervisor)
        clients = [Client(self, supervisor.socket_path, n_steps) for _ in range(n_clients)]
        for i, job in enumerate(self.left):
            clients[i % n_clients].own.append(job)
        clients.append(RingClient(self, supervisor.socket_path, n_steps))
        for client in clients:
            client.start()
        return clients

    def finish(self, clients):
        """Waits for the end of the clients."""
        for client in clients:
            client.join()
            if client.problem:
                raise client.problem
        self.left = [job for client in clients for job in client.own]

    def new_job(self, kind, **options):
        job = Job(next(self.numbers), kind, options)
        self.jobs.append(job)
        return job

    def _cancel_unknown(self, supervisor):
        """Jobs that were accepted when the supervisor died, and nobody knows their ids. They may need to be ended."""
        known = {job.id for job in self.left}
        for job in supervisor.pages("List", "jobs")[0]:
            if job["id"] not in known:
                with contextlib.suppress(VarlinkError):
                    supervisor.call("Cancel", id=job["id"])


class Client(threading.Thread):
    def __init__(self, load, socket_path, n_steps):
        super().__init__()
        self.load, self.socket_path, self.n_steps = load, socket_path, n_steps
        self.random = random.Random(load.random.random())
        self.own = []  # jobs whose end it has not seen
        self.released = set()
        self.problem = None

    def run(self):
        try:
            with contextlib.suppress(EOFError, ConnectionError), Varlink(self.socket_path) as self.varlink:
                for _ in range(self.n_steps):
                    self.random.choices((self.create, self.do, self.wait, self.cancel_any), (6, 2, 4, 1))[0]()
                self.release_workers()
        except Exception as problem:  # pylint: disable=broad-except
            self.problem = problem

    def new_job(self, kinds):
        kind = self.random.choices(kinds, [KINDS[name].chance for name in kinds])[0]
        job = self.load.new_job(kind, priority=self.random.randrange(64), key=f"key-{self.random.randrange(3)}")
        if self.random.random() < 0.3:
            job.options["id"] = job.id = "chosen-" + job.text
        return job, {"group": self.load.group, "payload": text(job.payload), "options": job.options}

    def call(self, method, parameters):
        """None if the call is refused because the store does not work. Returns when it works again."""
        try:
            return self.varlink.call(method, **parameters)
        except VarlinkError as error:
            if error.name not in ("StoreFull", "StoreFailed"):
                raise
        with Varlink(self.socket_path) as watch:
            for answer in watch.more("Watch", replay=True):
                states = [event["type"] for event in answer["events"] if event["type"].startswith("store.")]
                if states and states[-1] == "store.open":
                    return None

    def create(self):
        job, parameters = self.new_job(list(KINDS))
        reply = self.call("Create", parameters)
        if not reply:
            return
        job.id = reply["id"]
        job.created = self.load.position()
        self.own.append(job)
        found = self.call("Get", {"id": job.id})
        job.shown = found and found["job"]

    def do(self):
        self.release_workers()
        job, parameters = self.new_job([name for name, kind in KINDS.items() if kind.worker_ends])
        reply = self.call("Do", parameters)
        if reply:
            self.note_end(job, reply["job"])

    def wait(self):
        self.release_workers()
        job = self.pick()
        if job and (job.kind.worker_ends or job.cancelled):
            self.note_end(job, self.varlink.call("Wait", id=job.id)["job"])
            self.own.remove(job)

    def cancel_any(self):
        job = self.pick()
        if job:
            self.cancel(job)

    def cancel(self, job):
        job.cancel_asked = True
        with contextlib.suppress(VarlinkError):  # it has ended, or is being cancelled
            self.varlink.call("Cancel", id=job.id)
            job.cancelled = self.load.position()

    def release_workers(self):
        """Cancels what would keep a worker for ever."""
        for job in self.own:
            if job.kind is KINDS["hold"] and job not in self.released:
                self.cancel(job)
                self.released.add(job)

    def pick(self):
        return self.random.choice(self.own) if self.own else None

    def note_end(self, job, shown):
        assert shown["state"] in ENDS
        job.id = shown["id"]
        job.end = shown
        job.ended = self.load.position()


class RingClient(threading.Thread):
    """Runs ./ring.c, which submits jobs by shared memory."""

    def __init__(self, load, socket_path, n_jobs):
        super().__init__()
        self.load, self.own, self.problem = load, [], None
        self.command = [helper("../powercut/ring"), socket_path, load.group]
        kinds = load.random.choices(["echo", "reject", "again", "big", "large"], [8, 2, 2, 1, 1], k=n_jobs)
        self.jobs = [load.new_job(kind) for kind in kinds]

    def run(self):
        try:
            with subprocess.Popen(self.command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
                feeder = threading.Thread(target=self.feed, args=(process.stdin,))
                feeder.start()
                for line in process.stdout:
                    self.note(*line.split())
                feeder.join()
        except Exception as problem:  # pylint: disable=broad-except
            self.problem = problem

    def feed(self, file):
        with contextlib.suppress(BrokenPipeError), file:
            for job in self.jobs:
                file.write(job.payload.replace("\n", "\t") + "\n")

    def note(self, number, what, id):
        job = self.jobs[int(number)]
        job.id = id
        if what == "created":
            job.created = self.load.position()
            self.own.append(job)
            return
        job.end = {"state": what, "id": id}
        job.ended = self.load.position()
        if job in self.own:
            self.own.remove(job)
