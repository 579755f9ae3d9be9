#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""How smooth the page is with a thousand workers: long tasks of the browser, gaps between frames, and what
troupe-web and the supervisor spend. Prints figures; the machine decides about them, so no test asserts them."""
import os
import sys
import time
import unittest
from pathlib import Path

sys.path.insert(0, os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "e2e"))
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

from browser import PROGRAM, Browser  # noqa: E402
from troupe import ACTOR, TestCase  # noqa: E402
from web_client import Web  # noqa: E402

WORKERS = int(os.environ.get("WORKERS", "1000"))
SECONDS = int(os.environ.get("SECONDS", "20"))
WATCH = """(() => {
  window.seen = {tasks: [], frames: []};
  if (window.watched) return;
  window.watched = true;
  new PerformanceObserver(list => seen.tasks.push(...list.getEntries().map(e => e.duration))).observe({type: 'longtask'});
  let last = performance.now();
  requestAnimationFrame(function frame(now) { seen.frames.push(now - last); last = now; requestAnimationFrame(frame); });
})()"""


def cpu(pid):
    """Seconds of a processor that a process has used."""
    fields = Path(f"/proc/{pid}/stat").read_text(encoding="ascii").rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def run_usec(pid):
    """Microseconds that the first thread of a process has run."""
    return int(Path(f"/proc/{pid}/schedstat").read_text(encoding="ascii").split()[0]) / 1000


def work_of(browser):
    """Seconds of a processor that the page's thread has used."""
    return next(metric["value"] for metric in browser.call("Performance.getMetrics")["metrics"] if metric["name"] == "TaskDuration")


@unittest.skipUnless(PROGRAM, "there is no chromium here")
class Smooth(TestCase):
    def test_figures(self):
        group = f"[Group]\nExecStart={ACTOR}\n[Pool]\nSize={WORKERS}\n"
        s = self.started({"many": group})
        s.until(lambda: sum(w["state"] == "idle" for w in s.workers("many")) == WORKERS)
        web = Web(self, s.socket_path)
        browser = Browser(self)
        browser.call("Performance.enable", timeDomain="threadTicks")
        for view in "", "group/many", "worker/many/0", "events":
            browser.open(f"http://{web.name}/#/{view}")
            browser.until("document.querySelector('main').innerText.length > 20")
            browser.evaluate("new Promise(done => setTimeout(done, 3000))")  # the first drawing is not the steady state
            browser.evaluate(WATCH)
            before = [run_usec(s.supervisor_pid), cpu(web.process.pid), time.monotonic(), work_of(browser)]
            browser.evaluate(f"new Promise(done => setTimeout(done, {1000 * SECONDS}))")
            took = time.monotonic() - before[2]
            tasks, frames = browser.evaluate("[seen.tasks, seen.frames]")
            frames.sort()
            print(f"{view or 'groups':14} long tasks: {len(tasks)} (longest {max(tasks, default=0):.0f} ms); frames: {len(frames) / took:.0f}/s, "
                  f"99 % within {frames[int(len(frames) * .99)]:.0f} ms, longest {frames[-1]:.0f} ms; "
                  f"supervisor {(run_usec(s.supervisor_pid) - before[0]) / took / 1000:.2f} ms/s, troupe-web {(cpu(web.process.pid) - before[1]) / took * 1000:.1f} ms/s, the page {(work_of(browser) - before[3]) / took * 1000:.1f} ms/s; "
                  f"rows {browser.evaluate('document.querySelectorAll(`tbody tr`).length')}")


if __name__ == "__main__":
    unittest.main()
