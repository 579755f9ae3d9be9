# SPDX-License-Identifier: MIT
"""Rounds: the subjects of a measure take turns, A B C A B C …, so that what else happens on the machine meets all."""
import contextlib
import shutil
import sys
import time

import medians
import programs


class System:
    """What is up between __enter__ and __exit__."""
    system = None  # that this is made of

    def missing(self):
        """None, or why it cannot be measured here."""
        return self.system.missing() if self.system else None

    def __enter__(self):
        if self.system:
            self.system.__enter__()
        return self

    def __exit__(self, *_):
        if self.system:
            self.system.__exit__()


class Subject(System):
    """Something that is measured. While it is up, it takes turns."""
    name = ""
    rounds = None  # fewer than the others, because a turn takes long
    skips = ()  # points that it cannot or shall not do
    role = "peer"  # or "floor", or "troupe"

    def turn(self, point):
        """{metric: number}; "histogram" is a list of [upper bound, count]."""
        raise NotImplementedError


class Measure:
    """points: what the cost grows with, or [None]. headline: the metric that budgets go by; shown: those of tables
    and plots, with their titles, and after a comma their units where these are others."""

    def __init__(self, name, title, subjects, headline, unit, points=(None,), less_is_better=True, axis="", shown=None):
        self.name, self.title, self.subjects = name, title, subjects
        self.headline, self.unit, self.points = headline, unit, list(points)
        self.less_is_better, self.axis = less_is_better, axis
        self.shown = shown or {headline: ""}


class Progress:
    """One line that is written over and over, on a terminal; else a line per measure and round."""

    def __init__(self, out=sys.stderr):
        self.out, self.live, self.begin = out, out.isatty(), time.monotonic()

    def seconds(self):
        return f"{int(time.monotonic() - self.begin):4d} s "

    def show(self, text, important=False):
        if self.live:
            width = shutil.get_terminal_size().columns - 1
            self.out.write("\r\033[K" + (self.seconds() + text)[:width])
            self.out.flush()
        elif important:
            self.say(text)

    def say(self, text):
        """To stay."""
        self.out.write(("\r\033[K" if self.live else "") + self.seconds() + text + "\n")
        self.out.flush()


def run(measure, rounds, progress):
    """The results of a measure, as they are kept in results.json."""
    results = {"title": measure.title, "headline": measure.headline, "unit": measure.unit, "axis": measure.axis,
               "less_is_better": measure.less_is_better, "shown": measure.shown, "subjects": {}}
    with contextlib.ExitStack() as stack:
        taking_part = []
        for subject in measure.subjects:
            kept = results["subjects"][subject.name] = {"role": subject.role, "points": {}}
            progress.show(f"{measure.name}: starting {subject.name}")
            reason = subject.missing()
            if reason is None:
                reason = attempt(lambda s=subject: stack.enter_context(s))
            if reason:
                drop(kept, measure, subject, reason, progress)
            else:
                taking_part.append(subject)
        for number in range(rounds):
            progress.show(f"{measure.name}: round {number + 1} of {rounds}", important=True)
            for point in measure.points:
                one_round(measure, taking_part, point, number, rounds, results, progress)
    for kept in results["subjects"].values():
        for point in kept["points"].values():
            point["median"] = medians.of(point.get("samples", {}))
    return results


def one_round(measure, taking_part, point, number, rounds, results, progress):
    for subject in list(taking_part):
        if point in subject.skips or number >= (subject.rounds or rounds):
            continue
        where = "" if point is None else f", {measure.axis} {point}"
        progress.show(f"{measure.name}: round {number + 1} of {rounds}: {subject.name}{where}")
        kept = results["subjects"][subject.name]

        def turn(subject=subject, kept=kept):
            medians.add(kept["points"].setdefault("" if point is None else str(point), {}), subject.turn(point))
        reason = attempt(turn)
        if reason:
            taking_part.remove(subject)
            drop(kept, measure, subject, reason, progress)


def attempt(action):
    """None, or why it did not work."""
    try:
        action()
    except (programs.Failed, OSError, ValueError, KeyError) as error:
        return f"failed: {type(error).__name__ + ': ' if not isinstance(error, programs.Failed) else ''}{error}"
    return None


def drop(kept, measure, subject, reason, progress):
    kept["failed" if reason.startswith("failed") else "skipped"] = reason
    progress.say(f"{measure.name}: {subject.name} {'' if reason.startswith('failed') else 'skipped: '}{reason}")
