# SPDX-License-Identifier: MIT
"""The slots of random expressions, beside those of "systemd-analyze calendar" and of an enumeration of minutes.

The seed is printed; TESTS_SEED= repeats it, and TESTS_CALENDARS= says how many expressions are tried.
"""
import datetime
import os
import random
import re
import shutil
import subprocess
import unittest
import zoneinfo

from troupe import BUILD, TestCase, limit

SEED = int(os.environ.get("TESTS_SEED", "0")) or random.SystemRandom().randrange(1, 1 << 32)
CALENDARS = int(os.environ.get("TESTS_CALENDARS", "150"))
PROGRAM = os.path.join(BUILD, "tests/unit/calendar/test-calendar")
ANALYZE = shutil.which("systemd-analyze")
SECOND = 1_000_000
DAY = 86400
# Fixed, so that a case does not depend on the installed tzdata; others are drawn.
ZONES = ["UTC", "Europe/Berlin", "America/New_York", "Australia/Lord_Howe", "Africa/Cairo", "America/Santiago",
         "Asia/Kathmandu", "Pacific/Apia", "Europe/Dublin", "Africa/Casablanca", "America/Havana"]
# tzdata says that these have saved daylight in winter, by turning clocks back. In such zones systemd 252 passes over slots
# at changes of the clocks, up to a whole day.
WINTER_SAVERS = ["Europe/Dublin", "Africa/Casablanca", "Africa/El_Aaiun", "Africa/Windhoek", "Europe/Prague",
                 "Europe/Bratislava"]
WEEKDAYS = ["Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun"]
MONTHS = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"]


def utc(*date):
    return int(datetime.datetime(*date, tzinfo=datetime.timezone.utc).timestamp())


def is_repeated(time):
    return time.replace(fold=0).utcoffset() != time.replace(fold=1).utcoffset()


FIRST, LAST = utc(1975, 1, 1), utc(2090, 1, 1)


class Product:
    """The product's slots, from the unit test's program. Use it as a context manager."""

    def __enter__(self):
        self.process = subprocess.Popen([PROGRAM, "slots"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        return self

    def __exit__(self, *_):
        self.process.communicate()

    def slots(self, expression, after, count):
        """Slots in microseconds; fewer than count if there are no more."""
        self.process.stdin.write(f"{after} {count} {expression}\n")
        self.process.stdin.flush()
        line = self.process.stdout.readline()
        if line.startswith("error"):
            raise ValueError(f"{expression}: {line}")
        return [int(slot) for slot in line.split() if slot != "end"]


def systemd_slots(expression, after, count):
    """Slots in seconds, after an instant in seconds. None if systemd refuses the expression, as 252 does with some
    lists after ~, or gives up at a change of the clocks ("deadlock")."""
    command = [ANALYZE, "calendar", f"--base-time=@{after}", f"--iterations={count}", "--", expression]
    run = subprocess.run(command, env={"TZ": "UTC", "LC_ALL": "C", "PATH": os.environ["PATH"]}, text=True,
                         stdout=subprocess.PIPE, stderr=subprocess.PIPE, check=False)
    if run.returncode:
        return None
    dates = re.findall(r"^ *(?:Next elapse|Iter\. #\d+|Iteration #\d+): \w+ (.*) UTC$", run.stdout, re.M)
    return [utc(*map(int, re.split(r"[- :]", date))) for date in dates]


class Draw:
    """Draws expressions. Methods return text, and for cron lines the set of numbers that it means."""

    def __init__(self, rng):
        self.rng = rng

    def zone(self, without=()):
        names = sorted(name for name in zoneinfo.available_timezones() if "/" in name and "." not in name)
        names = ZONES if self.rng.random() < 0.7 else names
        return self.rng.choice([name for name in names if name not in without])

    def element(self, low, high):
        rng = self.rng
        a, b = sorted(rng.randint(low, high) for _ in range(2))
        return rng.choice([f"{a}", f"{a:02}", f"{a}..{b}", f"{a}..{b}/{rng.randint(1, 9)}", f"{a}..{high}"])

    def repetition(self, low, high):
        """One of minutes or seconds that reaches the next unit at its first match. After others, after those of hours, and
        in lists, systemd 252 passes over slots at the end of a day, month or year."""
        step = self.rng.choice([n for n in range(2, 31) if (high + 1 - low) % n == 0 and n < high])
        return f"{low + self.rng.randrange(step)}/{step}"

    def list(self, low, high, star=0.4):
        if self.rng.random() < star:
            return "*"
        if high == 59 and self.rng.random() < 0.2:
            return self.repetition(low, high)
        return ",".join(self.element(low, high) for _ in range(self.rng.choice([1, 1, 1, 2, 3])))

    def weekdays(self):
        days = sorted(self.rng.sample(range(7), self.rng.randint(1, 3)))
        names = [WEEKDAYS[day] for day in days]
        return "..".join(names) if len(names) == 2 else ",".join(names)

    def date(self):
        rng = self.rng
        year = self.list(1990, 2100, star=0.85)
        day = "~" + self.list(1, 28) if rng.random() < 0.3 else "-" + self.list(1, 31)
        month = self.list(1, 12, star=0.6)
        return month + day if rng.random() < 0.2 else f"{year}-{month}{day}"

    def time(self):
        rng = self.rng
        time = f"{self.list(0, 23)}:{self.list(0, 59)}"
        return time if rng.random() < 0.8 else time + ":" + self.list(0, 59, star=0.1)

    def calendar(self, zone):
        rng = self.rng
        if rng.random() < 0.1:
            return rng.choice(["hourly", "daily", "weekly", "monthly", "quarterly", "semiannually", "yearly"]) + " " + zone
        parts = [part for part, chance in ((self.weekdays(), 0.4), (self.date(), 0.6), (self.time(), 0.7))
                 if rng.random() < chance] or [self.time()]
        return " ".join(parts + [zone])

    def daily(self, zone):
        """About once a day, when clocks change."""
        return f"{self.weekdays()},{self.weekdays()} {self.rng.randint(0, 3)}:{self.rng.randint(0, 59)} {zone}"

    def cron_field(self, low, high, names=(), star=0.4):
        """Text, and the set of numbers that it means."""
        rng = self.rng
        if rng.random() < star:
            step = rng.choice([1, 1, 2, 5])
            return "*" if step == 1 else f"*/{step}", set(range(low, high + 1, step))
        texts, numbers = [], set()
        for _ in range(rng.choice([1, 1, 2])):
            a, b = sorted(rng.randint(low, high) for _ in range(2))
            step = rng.randint(1, 4)
            name = (lambda n: rng.choice([str(n), names[n - low], names[n - low].upper()])) if names else str
            text, meant = rng.choice([(name(a), [a]), (f"{name(a)}-{name(b)}", range(a, b + 1)),
                                      (f"{name(a)}-{name(b)}/{step}", range(a, b + 1, step))])
            texts.append(text)
            numbers.update(meant)
        return ",".join(texts), numbers

    def cron(self):
        """Text, and a function that says whether a local time matches."""
        fields = [self.cron_field(0, 59, star=0.1), self.cron_field(0, 23), self.cron_field(1, 31, star=0.6),
                  self.cron_field(1, 12, MONTHS, 0.8), self.cron_field(0, 6, WEEKDAYS[6:] + WEEKDAYS[:6], 0.6)]
        minutes, hours, days, months, weekdays = (numbers for _, numbers in fields)
        both = fields[2][0].startswith("*") or fields[4][0].startswith("*")

        def matches(time):
            day, weekday = time.day in days, time.isoweekday() % 7 in weekdays
            return time.minute in minutes and time.hour in hours and time.month in months and \
                (day and weekday if both else day or weekday)
        return " ".join(text for text, _ in fields), matches

    def instant(self, zone):
        """Often close to a change of the clocks, but not in an hour that they repeat: there systemd may begin with the
        second time."""
        rng = self.rng
        instant = rng.randrange(FIRST, LAST)
        for _ in range(400):
            here, there = (datetime.datetime.fromtimestamp(at, zone) for at in (instant, instant + DAY))
            if here.utcoffset() != there.utcoffset():
                instant += rng.randrange(DAY)
                break
            instant += DAY
        else:
            instant = rng.randrange(FIRST, LAST)
        while is_repeated(datetime.datetime.fromtimestamp(instant, zone)):
            instant += 600
        return instant


class Calendar(TestCase):
    def setUp(self):
        print(f"seed {SEED} (TESTS_SEED= repeats it)")
        self.draw = Draw(random.Random(SEED))

    @limit(300)
    @unittest.skipIf(ANALYZE is None, "systemd-analyze is missing")
    def test_slots_are_those_of_systemd(self):
        compared = 0
        with Product() as product:
            for _ in range(CALENDARS):
                name = self.draw.zone(WINTER_SAVERS)
                expression, after = self.draw.calendar(name), self.draw.instant(zoneinfo.ZoneInfo(name))
                with self.subTest(expression=expression, after=after):
                    ours = [slot // SECOND for slot in product.slots(expression, after * SECOND, 15)]
                    theirs = systemd_slots(expression, after, 15)
                    compared += theirs is not None
                    self.assertIn(theirs, (ours, None))
        self.assertGreater(compared, CALENDARS * 0.8)

    @limit(300)
    @unittest.skipIf(ANALYZE is None, "systemd-analyze is missing")
    def test_ten_years_have_the_slots_of_systemd(self):
        compared = 0
        with Product() as product:
            while compared < 3:
                name = self.draw.zone(WINTER_SAVERS)
                expression, after = self.draw.daily(name), self.draw.instant(zoneinfo.ZoneInfo(name))
                ours = [slot // SECOND for slot in product.slots(expression, after * SECOND, 4000)]
                ours = [slot for slot in ours if slot < after + 3652 * DAY]
                theirs = systemd_slots(expression, after, len(ours))
                compared += theirs is not None
                self.assertIn(theirs, (ours, None), expression)

    @limit(300)
    def test_a_start_at_any_instant_finds_the_same_slots(self):
        with Product() as product:
            for _ in range(20):
                name = self.draw.zone()
                expression, after = self.draw.daily(name), self.draw.instant(zoneinfo.ZoneInfo(name)) * SECOND
                slots = product.slots(expression, after, 4000)
                self.assertEqual(sorted(set(slots)), slots)
                for slot, following in self.draw.rng.sample(list(zip(slots, slots[1:])), 50):
                    between = self.draw.rng.randrange(slot, following)
                    for start in (slot, between, following - 1, following - self.draw.rng.randrange(1, 3600 * SECOND)):
                        expected = following if start >= slot else slot
                        self.assertEqual(product.slots(expression, start, 1), [expected], (expression, start))

    @limit(300)
    def test_cron_lines_have_the_minutes_that_they_name(self):
        with Product() as product:
            for _ in range(25):
                name = self.draw.zone()
                zone = zoneinfo.ZoneInfo(name)
                (expression, matches), after = self.draw.cron(), self.draw.instant(zone) // 60 * 60
                times = ((instant, datetime.datetime.fromtimestamp(instant, zone))
                         for instant in range(after + 60, after + 40 * DAY, 60))
                expected = [instant * SECOND for instant, time in times if not time.fold and matches(time)][:2000]
                ours = product.slots(f"{expression} {name}", after * SECOND, 2000)
                end = expected[-1] if len(expected) == 2000 else (after + 40 * DAY - 1) * SECOND
                self.assertEqual([slot for slot in ours if slot <= end], expected, (expression, name, after))


if __name__ == "__main__":
    unittest.main()
