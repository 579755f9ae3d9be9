# SPDX-License-Identifier: MIT
"""The page of troupe-web in a real browser."""
import json
import os
import queue
import signal
import socket
import sys
import tempfile
import threading
import time
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "e2e"))
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

from browser import PROGRAM, Browser  # noqa: E402
from troupe import ACTOR, BUILD, SANITIZED, TROUPE_EXEC, Bell, Supervisor, helper  # noqa: E402
from web_client import TOKEN, Web  # noqa: E402

EVIL = "<img src=x onerror=document.title='evil'><script>document.title='evil'</script>"
WORK = f"[Group]\nDescription=Work\nExecStart={ACTOR}\n[Pool]\nSize=2\n[Jobs]\nMaxRetries=0\n"
ECHO = f"[Group]\nDescription={EVIL}\nExecStart={TROUPE_EXEC} -- sh -c 'cat >&2; exit 3'\n[Jobs]\nMaxRetries=0\n"
VIEWS = ("", "jobs", "jobs/work", "dead-letters", "dead-letters/work", "deaths", "deaths/work", "events", "group/work", "group/cells", "group/cells/acme",
         "worker/work/0", "log/work", "job/the-job", "schedules", "limits", "schedule/nightly", "schedule/none", "history", "history/work", "timeline", "timeline/work", "nothing", "group/%", "job/<img src=x>")

# Texts whose contrast with what is behind them is below 4.5, as WCAG 2 (AA) counts it.
FAINT = """(() => {
    const rgb = text => { const n = text.match(/[\\d.]+/g).map(Number); return text.startsWith('color(') ? [...n.slice(0, 3).map(x => x * 255), n[3] ?? 1] : [...n.slice(0, 3), n[3] ?? 1]; };
    const over = (top, below) => top.slice(0, 3).map((x, i) => x * top[3] + below[i] * (1 - top[3]));
    const light = color => { const [r, g, b] = color.map(x => (x /= 255) <= 0.04045 ? x / 12.92 : ((x + 0.055) / 1.055) ** 2.4); return 0.2126 * r + 0.7152 * g + 0.0722 * b; };
    const behind = e => e ? over(rgb(getComputedStyle(e).backgroundColor), behind(e.parentElement)) : [255, 255, 255];
    const faint = [];
    const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
    while (walker.nextNode()) {
        const e = walker.currentNode.parentElement;
        if (!walker.currentNode.data.trim() || !e.checkVisibility({visibilityProperty: true}) || e.getBoundingClientRect().width < 2) continue;
        const below = behind(e), [a, b] = [light(over(rgb(getComputedStyle(e).color), below)), light(below)].sort((x, y) => y - x);
        const contrast = (a + 0.05) / (b + 0.05);
        if (contrast < 4.5) faint.push(`${walker.currentNode.data.trim()} in ${e.className || e.tagName}: ${contrast.toFixed(2)}`);
    }
    return [...new Set(faint)];
})()"""


class FakeSupervisor:
    """Answers as a supervisor with many workers does, and counts what it is asked."""

    def __init__(self, test, n_workers):
        self.directory = tempfile.TemporaryDirectory(prefix="troupe-fake-")
        test.addCleanup(self.directory.cleanup)
        self.path = os.path.join(self.directory.name, "sock")
        self.listener = socket.socket(socket.AF_UNIX)
        self.listener.bind(self.path)
        self.listener.listen(64)
        test.addCleanup(self.listener.close)
        self.asked = {}
        self.events = queue.SimpleQueue()  # batches for whoever watches jobs
        now = int(time.time() * 1e6)
        workers = [{"name": f"many/{n}", "slot": n, "generation": 1, "state": ("busy", "idle", "backoff")[n % 3], "pid": 1000 + n, "since_at": now,
                    "restarts": 0, "job": f"job-{n}", "job_since_at": now, "jobs_done": n, "recycled": 0} for n in range(n_workers)]
        del workers[0]["job_since_at"]  # its worker has the job, but has not begun it
        counters = ("queued", "queue_bytes", "running", "waiting", "senders", "results", "results_bytes", "succeeded", "rejected", "cancelled", "dead",
                    "retries", "refused", "deaths")
        self.group = {"name": "many", "description": "", "type": "actor", "state": "running", "size": n_workers, "workers": workers,
                      **dict.fromkeys(counters, 0)}
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self):
        while True:
            try:
                connection, _ = self.listener.accept()
            except OSError:
                return
            threading.Thread(target=self._serve, args=(connection,), daemon=True).start()

    def _serve(self, connection):
        with connection, connection.makefile("rwb") as file:
            text = b""
            while byte := file.read(1):
                if byte != b"\0":
                    text += byte
                    continue
                call = json.loads(text)
                method = call["method"].rpartition(".")[2]
                self.asked[method] = self.asked.get(method, 0) + 1
                text = b""
                if method == "GetStatus":
                    self.group["succeeded"] += 100
                    answer = {"groups": [self.group]}
                elif method == "GetInfo":
                    answer = {"version": "1", "state": "running", "workers": len(self.group["workers"]), "groups": 1, "started_at": 1, "recent_turn_usec": 1}
                else:
                    answer = {"events": [], "deaths": [], "letters": [], "counts": [], "jobs": [], "lines": [], "places": [], "groups": []}
                if not (method == "Watch" and call.get("more")):
                    file.write(json.dumps({"parameters": answer}).encode() + b"\0")
                    file.flush()
                elif call["parameters"].get("jobs"):
                    while batch := self.events.get():
                        for event in batch:
                            file.write(json.dumps({"parameters": {"events": [event]}, "continues": True}).encode() + b"\0")
                        file.flush()


@unittest.skipUnless(PROGRAM, "there is no chromium here")
class Page(unittest.TestCase):
    def start(self, *options, groups=None, state=False):
        self.supervisor = Supervisor(self, groups or {"work": WORK, "cells": WORK + "[Pool]\nCells=by-key\n", "evil": ECHO}, state=state or not groups)
        if not groups:
            self.supervisor.write("nightly.schedule", "[Schedule]\nDescription=Every night\nOnCalendar=03:00\n[Job]\nGroup=work\nData=echo\n")
        self.supervisor.start()
        self.web = Web(self, self.supervisor.socket_path, *options)
        self.browser = Browser(self)
        self.go("")
        self.browser.until("document.querySelectorAll('tbody tr').length > 0")

    def start_changing(self, **options):
        token = tempfile.NamedTemporaryFile(prefix="troupe-token-")
        self.addCleanup(token.close)
        token.write(TOKEN.encode() + b"\n")
        token.flush()
        self.start("--allow-changes", "--token-file", token.name, **options)

    def unlock(self):
        self.press("Unlock changes")
        self.browser.until("document.activeElement.type === 'password'")
        self.browser.write(TOKEN)
        self.browser.key("Enter")
        self.says("Lock changes")

    def go(self, view):
        self.browser.open(f"http://{self.web.name}/#/{view}")

    def says(self, text):
        self.browser.until(f"document.body.innerText.includes({json.dumps(text)})")

    def press(self, label):
        find = f"[...document.querySelectorAll('button, summary, a')].find(e => e.offsetParent && e.innerText.trim() === {json.dumps(label)})"
        self.browser.until(f"!!({find})")
        self.browser.evaluate(f"({find}).click()")

    def fine(self):
        # A view of something that does not exist asks for it.
        problems = [p for p in self.browser.problems if "status of 404" not in p and "status of 400" not in p]
        self.assertEqual(problems, [])

    def test_M5_all_views_are_shown_without_an_error(self):
        self.start()
        self.supervisor.wait_job(self.supervisor.create("work", "crash", id="the-job"))
        self.supervisor.do("cells", "x", key="acme")
        for view in VIEWS:
            self.go(view)
            self.browser.until("document.querySelector('main').innerText.length > 0")
            for scheme in ("dark", "light"):
                self.browser.scheme(scheme)
            for width in (390, 1280):
                self.browser.size(width, 800)
                self.assertLessEqual(self.browser.evaluate("document.documentElement.scrollWidth"), width, f"{view} is wider than {width}")
        self.fine()

    def test_Q8_schedules_are_shown_paused_and_run(self):
        self.start_changing()
        self.unlock()
        self.go("schedules")
        self.press("nightly")
        self.says("Every night")
        self.says("No slot has come yet.")
        self.press("Pause")
        self.browser.until("document.querySelector('.headline .state').innerText === 'paused'")
        self.press("Resume")
        self.browser.until("document.querySelector('.headline .state').innerText === 'active'")
        self.press("Run now …")
        self.press("Yes")
        self.says("Ended: succeeded")
        self.fine()

    def test_Q14_the_history_is_searched_as_one_types(self):
        self.start(groups={"work": WORK.replace("[Jobs]\n", "[Jobs]\nHistory=1d\n")}, state=True)
        for number in range(3):
            self.supervisor.do("work", "echo", id=f"good-{number}")
        self.supervisor.do("work", "crash", id="bad-job")
        self.go("history")
        rows = "[...document.querySelectorAll('tbody tr')].map(e => e.querySelector('a').innerText).join()"
        self.browser.until(f"{rows} === 'bad-job,good-2,good-1,good-0'")
        self.browser.until("document.querySelectorAll('.days rect').length === 2")
        self.browser.evaluate("document.querySelector('.filters input').focus()")
        self.browser.write("good-1")
        self.browser.until(f"{rows} === 'good-1'")
        self.browser.evaluate("document.querySelector('.filters input').value = ''")
        self.browser.evaluate("{ const s = document.querySelector('.filters select'); s.value = 'dead'; s.dispatchEvent(new Event('change')); }")
        self.browser.until(f"{rows} === 'bad-job'")
        for value, found in ("2020-01-01T00:00", ""), ("2999-01-01T00:00", "bad-job"):
            self.browser.evaluate("{ const s = document.querySelectorAll('.filters input')[2]; s.value = '%s'; s.dispatchEvent(new Event('change')); }" % value)
            self.browser.until(f"{rows} === '{found}'")
        self.press("bad-job")
        self.says("Ended: dead")
        self.fine()

    def test_Q10_the_jobs_that_a_job_waits_for_are_shown_as_a_tree(self):
        self.start()
        self.supervisor.create("work", "echo", id="root", delay_usec=3600 * 10**6)
        self.supervisor.create("work", "echo", id="middle", after="root")
        self.supervisor.create("work", "echo", id="leaf", after="middle,root", condition="end")
        self.go("job/leaf")
        self.says("Waits for")
        links = "[...document.querySelectorAll('.tree a')].map(e => e.innerText).sort().join()"
        self.browser.until(f"{links} === 'middle,root'")
        self.browser.evaluate("[...document.querySelectorAll('.tree details')].find(e => e.innerText.includes('middle')).open = true")
        self.browser.until(f"{links} === 'middle,root,root'")
        self.supervisor.call("Cancel", id="root")
        self.browser.until("[...document.querySelectorAll('.tree .state')].some(e => e.innerText === 'cancelled')")
        self.go("job/root")
        self.says("Ended: cancelled")
        self.fine()

    def test_Q13_what_a_job_emits_is_shown_while_it_runs(self):
        self.start()
        bell = Bell(self.supervisor, "go")
        job = self.supervisor.create("work", f"emit first {EVIL}\nwait {bell.path}\nemit second", id="speaker")
        self.go("job/" + job)
        self.says("first " + EVIL)
        bell.ring()
        self.says("second")
        self.says("Ended: succeeded")
        self.assertEqual(self.browser.evaluate("document.querySelectorAll('main img, main script').length"), 0)
        self.fine()

    def attempts(self):
        """How many attempts of each outcome the timeline shows."""
        return dict(self.browser.evaluate("[...document.querySelectorAll('tbody tr')].map(e => [e.children[0].innerText, e.children[1].innerText])"))

    def point(self, row, from_right=3, **options):
        """Moves the mouse to a row of the timeline, or does something else there."""
        box = self.browser.evaluate("(() => { const b = document.querySelector('canvas').getBoundingClientRect(); return {right: b.right, top: b.top}; })()")
        self.browser.call("Input.dispatchMouseEvent", **{"type": "mouseMoved", "x": box["right"] - from_right, "y": box["top"] + 22 + 18 * row + 8, **options})

    def test_X7_jobs_are_bars_and_deaths_are_marks_of_a_timeline_that_zooms(self):
        self.start(groups={"work": WORK})
        bell = Bell(self.supervisor, "go")
        self.supervisor.create("work", f"wait {bell.path}", id="early")
        self.supervisor.until(lambda: self.supervisor.job("early").get("worker"))
        self.go("timeline")
        self.browser.until("document.querySelector('canvas').ariaLabel.includes('2 workers')")
        self.supervisor.do("work", "echo", id="good")
        self.supervisor.do("work", "crash", id="bad")
        self.browser.until("document.querySelector('canvas').ariaLabel.includes('3 attempts and 1 death')")
        self.assertEqual(self.attempts(), {"dead": "1", "running": "1", "succeeded": "1"})
        worker = self.supervisor.job("early")["worker"]
        self.point(1 + int(worker[-1]))
        self.browser.until("document.querySelector('.tip').innerText.startsWith('early\\n')")
        self.assertIn(worker, self.browser.evaluate("document.querySelector('.tip').innerText"))
        self.browser.until("document.querySelector('canvas').ariaLabel.includes('1 min 0 s')")
        self.point(1, type="mouseWheel", deltaX=0, deltaY=-400)
        self.browser.until("!document.querySelector('canvas').ariaLabel.includes('1 min 0 s')")
        self.press("Zoom out")
        self.press("Zoom out")
        self.browser.until("document.querySelector('canvas').ariaLabel.includes('1 min')")
        # Two minutes back, there is nothing.
        self.browser.evaluate("document.querySelector('canvas').focus()")
        for _ in range(20):
            self.browser.key("ArrowLeft")
        self.browser.until("document.querySelector('canvas').ariaLabel.includes('0 attempts and 0 deaths')")
        self.press("Now")
        self.browser.until("document.querySelector('canvas').ariaLabel.includes('3 attempts and 1 death')")
        for scheme in ("light", "dark"):
            self.browser.scheme(scheme)
            self.assertEqual(self.browser.evaluate(FAINT), [], scheme)
        for kind in ("mousePressed", "mouseReleased"):
            self.point(1 + int(worker[-1]), type=kind, button="left", clickCount=1)
        self.browser.until("location.hash === '#/job/early'")
        bell.ring()
        self.says("Ended: succeeded")
        self.fine()

    @unittest.skipIf(os.geteuid() != 0, "needs root to be another user")
    def test_X7_a_timeline_without_the_right_to_read_contents_shows_deaths_alone(self):
        self.supervisor = Supervisor(self, {"work": WORK})
        self.supervisor.start()
        self.web = Web(self, self.supervisor.socket_path, user=65534, group=65534, extra_groups=[])
        self.browser = Browser(self)
        self.go("timeline")
        self.says("Attempts of jobs are only for users who may read contents")
        self.supervisor.do("work", "crash", id="bad")
        self.browser.until("document.querySelector('canvas').ariaLabel.includes('0 attempts and 1 death')")
        self.fine()

    @unittest.skipUnless(os.path.exists(os.path.join(BUILD, "troupe-trace")), "needs libdw")
    @unittest.skipIf(SANITIZED, "the sanitizer's processes are too large to be traced")
    def test_X7_stacks_and_a_flame_graph_of_a_running_worker_are_shown_on_request(self):
        self.start(groups={"crasher": f"[Group]\nExecStart={helper('workers/crasher')}\n"})
        self.supervisor.create("crasher", "loop", id="the-job")
        self.supervisor.until(lambda: "planted_loop" in str(self.supervisor.call("GetStack", target="crasher/0")))
        for view in "worker/crasher/0", "job/the-job":
            self.go(view)
            self.press("Stacks")
            self.says("planted_loop")
            self.press("Profile for 3 s")
            self.browser.until("!document.querySelector('.flame').hidden")
            self.assertIn("planted_loop", self.browser.evaluate("document.querySelector('.flame').ariaLabel"))
            titles = self.browser.evaluate("[...document.querySelectorAll('.frame span')].map(e => e.title)")
            self.assertRegex(titles[0], r"^all \(\d+ samples?, 100.0 %\)$")
            self.assertTrue(any(title.startswith("planted_loop (") for title in titles), titles)
            for scheme in ("light", "dark"):
                self.browser.scheme(scheme)
                self.assertEqual(self.browser.evaluate(FAINT), [], f"{view} {scheme}")
        self.fine()

    @unittest.skipIf(os.geteuid() != 0, "needs root to be another user")
    def test_X7_stacks_are_only_for_those_who_may_read_contents(self):
        self.supervisor = Supervisor(self, {"work": WORK})
        self.supervisor.start()
        self.web = Web(self, self.supervisor.socket_path, user=65534, group=65534, extra_groups=[])
        self.browser = Browser(self)
        self.go("worker/work/0")
        for button in "Stacks", "Profile for 3 s":
            self.press(button)
            self.says("Stacks are only for users who may read contents")
        self.assertEqual([self.web.status(f"/api/{path}?target=work/0") for path in ("stack", "profile")], [403, 403])

    def test_X7_a_timeline_of_a_thousand_workers_draws_the_rows_that_are_seen(self):
        fake = FakeSupervisor(self, 1000)
        self.addCleanup(fake.events.put, None)
        self.web = Web(self, fake.path)
        self.browser = Browser(self)
        self.go("timeline")
        self.browser.until("document.querySelector('canvas')?.ariaLabel.includes('of 1\u202f000 workers')")
        # 334 of them work; names of workers and of the group are drawn only in rows that are seen.
        self.assertIn("running", self.attempts())
        self.assertNotIn("NaN", self.browser.text())
        self.browser.evaluate("""{
            window.most = window.names = window.draws = window.frames = 0;
            const {fillText, clearRect} = CanvasRenderingContext2D.prototype;
            CanvasRenderingContext2D.prototype.fillText = function(text, ...rest) { if (text.startsWith('many')) most = Math.max(most, ++names); fillText.call(this, text, ...rest); };
            CanvasRenderingContext2D.prototype.setTransform = new Proxy(CanvasRenderingContext2D.prototype.setTransform, {apply(f, self, a) { draws++; names = 0; return f.apply(self, a); }});
            const frame = () => { frames++; requestAnimationFrame(frame); };
            frame();
        }""")
        now = int(time.time() * 1e6)
        for n in range(0, 3000, 100):
            fake.events.put([{"id": 0, "at": now + k, "type": kind, "group": "many", "worker": f"many/{3 * (k % 5) + 1}", "job": f"quick-{k}", "attempt": 1,
                              **({"job_state": "succeeded"} if kind == "job.ended" else {})} for k in range(n, n + 100) for kind in ("job.started", "job.ended")])
        fake.events.put([{"id": 0, "at": now, "type": "job.started", "group": EVIL, "worker": EVIL, "job": EVIL, "attempt": 1}])
        self.browser.until("document.querySelector('canvas').ariaLabel.includes('of 1\u202f001 workers')")
        self.browser.until("[...document.querySelectorAll('tbody tr')].some(e => e.innerText.includes('succeeded') && e.children[1].innerText === '3\u202f000')")
        self.assertLess(self.browser.evaluate("most"), 60)
        self.assertGreater(self.browser.evaluate("most"), 10)
        self.assertLessEqual(self.browser.evaluate("draws - frames"), 1)
        self.point(1)
        self.browser.until(f"document.querySelector('.tip').innerText.startsWith({json.dumps(EVIL)})")
        self.assertEqual(self.browser.evaluate("document.querySelectorAll('main img, main script').length"), 0)
        self.browser.evaluate("document.querySelector('.timeline').scrollTop = 1e6")
        height = self.browser.evaluate("document.querySelector('canvas').clientHeight")
        self.point((height - 22 - 12) / 18 - 0.4)
        self.browser.until("document.querySelector('.tip').innerText.includes('many/999')")
        self.fine()

    def test_M5_a_change_shows_by_itself(self):
        self.start()
        self.browser.until("[...document.querySelectorAll('.state')].every(e => e.innerText === 'running')")
        self.supervisor.call("Pause", target="work")
        self.browser.until("[...document.querySelectorAll('.state')].some(e => e.innerText === 'paused')")
        self.go("events")
        self.says("group paused")
        os.kill(self.supervisor.worker("work/0")["pid"], signal.SIGKILL)
        self.says("worker died")
        self.go("deaths")
        self.says("SIGKILL")
        self.fine()

    def test_U8_charts_begin_with_what_was_before_the_page(self):
        self.start()
        self.supervisor.do("work", "echo")
        [second] = [g["samples"][-1]["second"] for g in self.supervisor.call("GetHistory")["groups"] if g["name"] == "work"]
        self.supervisor.until(lambda: time.time() >= second + 4)
        self.supervisor.do("work", "crash")
        self.browser.evaluate("location.reload()")
        values = "Math.max(...[...document.querySelectorAll('.chart .stroke')].map(e => (e.getAttribute('d') ?? '').split('L').length))"
        self.browser.until(f"{values} > 1")
        self.assertGreater(self.browser.evaluate(values), 3)
        self.fine()

    def test_M5_what_jobs_and_workers_say_is_never_markup(self):
        self.start()
        job = self.supervisor.create("evil", EVIL, id="evil-job")
        self.assertEqual(self.supervisor.wait_job(job)["state"], "dead")
        self.supervisor.do("cells", "x", key="-".join(["a"] * 20))
        for view, text in (("", EVIL), ("group/evil", EVIL), ("job/evil-job", "Ended: dead"), ("log/evil", "onerror"), ("dead-letters", "retries exhausted"),
                           ("events", "job dead"), ("job/" + EVIL.replace("/", "%2F"), "no such job")):
            self.go(view)
            self.says(text)
            self.browser.evaluate("document.querySelectorAll('details').forEach(e => e.open = true)")
            self.assertEqual(self.browser.evaluate("document.querySelectorAll('main img, main script').length"), 0)
        self.assertNotEqual(self.browser.evaluate("document.title"), "evil")
        self.fine()

    def test_M5_a_job_is_found_by_its_id_with_the_keyboard_alone(self):
        self.start()
        self.supervisor.wait_job(self.supervisor.create("work", "crash", id="job-42"))
        self.browser.key("Tab")
        self.assertEqual(self.browser.evaluate("document.activeElement.className"), "skip")
        self.browser.key("/", "/")
        self.browser.until("document.activeElement.id === 'search-text'")
        self.browser.write("job-42")
        self.browser.key("Enter")
        self.says("Attempt 1 failed")
        self.says("Ended: dead")
        self.browser.until("document.activeElement.id === 'content'")
        self.fine()

    def test_M5_a_supervisor_that_restarts_is_said_and_found_again(self):
        self.start()
        self.supervisor.stop()
        self.browser.until("!document.getElementById('banner').hidden")
        self.says("is trouped running?")
        self.supervisor.start()
        self.browser.until("document.getElementById('banner').hidden")
        self.says("All is well")

    def test_U8_not_all_is_well_when_a_schedule_cannot_start(self):
        self.start()
        self.supervisor.stop()
        self.supervisor.write("bad.schedule", "[Schedule]\nOnCalendar=never\n[Job]\nGroup=work\n")
        self.supervisor.start()
        self.says("bad.schedule:2: OnCalendar=never")
        self.assertEqual(self.browser.evaluate("document.getElementById('summary').dataset.tone"), "bad")

    def test_M5_changes_are_made_with_the_token_alone(self):
        self.start_changing()
        self.supervisor.wait_job(self.supervisor.create("work", "crash", id="doomed"))
        self.go("dead-letters")
        self.says("retries exhausted")
        self.press("Unlock changes")
        self.browser.until("document.activeElement.type === 'password'")
        self.browser.write("wrong-token-0123456789")
        self.browser.key("Enter")
        self.says("That is not the token.")
        self.unlock()
        self.browser.until("!!document.querySelector('.list details')")
        self.browser.evaluate("document.querySelector('.list details').open = true")
        self.press("Purge …")
        self.press("Yes")
        self.says("No dead letters here.")
        self.go("group/work")
        self.press("Pause")
        self.browser.until("document.querySelector('.headline .state').innerText === 'paused'")
        self.assertEqual(self.supervisor.group("work")["state"], "paused")
        self.assertNotIn(TOKEN, self.browser.evaluate("location.href"))

    def test_E1_a_pool_whose_size_follows_the_work_is_not_resized(self):
        elastic = WORK.replace("Size=2", "Size=1..4")
        self.start_changing(groups={"fixed": WORK, "elastic": elastic, "cells": elastic + "[Pool]\nCells=by-key\n"})
        self.supervisor.do("cells", "echo", key="acme")
        self.unlock()
        for view, resizable in ("group/fixed", True), ("group/elastic", False), ("group/cells", False), ("group/cells/acme", False):
            with self.subTest(view):
                self.go(view)
                self.browser.until(f"document.querySelector('h1').innerText.includes({json.dumps(view.rpartition('/')[2])})")
                self.says("Restart …")
                self.assertEqual(self.browser.evaluate("document.body.innerText.includes('Resize …')"), resizable)
        self.fine()

    def test_E1_workers_wanted_and_up_waiting_time_and_pressure_are_charts(self):
        self.supervisor = FakeSupervisor(self, 3)
        group = self.supervisor.group
        self.web = Web(self, self.supervisor.path)
        self.browser = Browser(self)
        drawn = "[...document.querySelectorAll('.tile')].filter(e => e.offsetParent).map(e => e.innerText.split('\\n')[0] + ' ' + [...e.querySelectorAll('.dashed, .marks')].filter(p => p.getAttribute('d')).length)"
        self.go("group/many")
        self.says("Jobs running")
        self.assertEqual(self.browser.evaluate(drawn), ["Jobs per second 0", "Jobs waiting 0", "Jobs running 0"])
        group.update(size_min=1, size_max=8, wanted=8, up=3, held="pressure", pressure="cpu", pressure_usec=180000, queued=2,
                     oldest_queued_at=int(time.time() * 1e6) - 5000000)
        self.says("8 wanted (dashed), held by CPU pressure, 180 ms/s")
        self.browser.until(f"{drawn}.includes('Workers 2') && {drawn}.includes('Longest wait 0')")
        self.browser.until("[...document.querySelectorAll('.tile')].some(e => /^Longest wait\\n[5-9][.]/.test(e.innerText))")
        group.update(held="share", pool_max=6)
        self.says("held by its share of PoolMax=6")
        self.fine()

    def test_W1_a_template_shows_what_it_is_and_what_it_saves(self):
        mode = tempfile.NamedTemporaryFile("w", encoding="ascii")
        self.addCleanup(mode.close)
        print("socket", file=mode, flush=True)
        warm = f"[Group]\nExecStart={helper('workers/warm')}\n[Pool]\nTemplate=slot\n"
        self.start(groups={"warm": warm, "cold": f"{warm}[Group]\nEnvironment=WARM={mode.name}\n"})
        self.supervisor.wait_event("template.ready", "warm")
        os.kill(self.supervisor.worker("warm/0")["pid"], signal.SIGKILL)
        self.go("worker/warm/0")
        self.says(f"ready, process {self.supervisor.worker('warm/0')['template']['pid']}")
        self.says(" by fork")
        self.go("worker/cold/0")
        self.says("unsafe, as it cannot be forked: descriptor")
        self.fine()

    def test_M5_a_screen_reader_gets_names_and_roles(self):
        self.start()
        self.supervisor.wait_job(self.supervisor.create("work", "complain a line\ncrash", id="the-job"))
        self.supervisor.do("cells", "x", key="acme")
        for view, text in (("", "work"), ("group/work", "process"), ("group/cells", "acme"), ("worker/work/0", "Last output"), ("jobs", "State"),
                           ("job/the-job", "Ended: dead"), ("log/work", "a line"), ("deaths", "killed by"), ("dead-letters", "the-job"), ("events", "job dead"), ("timeline", "Zoom in")):
            self.go(view)
            self.says(text)
            nodes = [n for n in self.browser.call("Accessibility.getFullAXTree")["nodes"] if not n.get("ignored")]
            roles = {n["role"]["value"] for n in nodes}
            self.assertLessEqual({"banner", "navigation", "main", "search", "status", "contentinfo", "heading"}, roles, view)
            if view in ("", "group/work", "group/cells"):
                self.assertLessEqual({"table", "columnheader", "row", "cell"}, roles, view)
            nameless = [n["role"]["value"] for n in nodes if n["role"]["value"] in ("button", "link", "searchbox", "textbox", "combobox", "image", "img", "table")
                        and not n.get("name", {}).get("value")]
            self.assertEqual(nameless, [], view)
        self.assertEqual(self.browser.evaluate("document.getElementById('summary').getAttribute('aria-live')"), "polite")

    def test_M5_everything_is_reached_with_the_keyboard_and_can_be_seen(self):
        self.start()
        self.supervisor.wait_job(self.supervisor.create("work", "crash", id="the-job"))
        for view, text in (("", "work"), ("group/work", "process"), ("job/the-job", "Ended: dead")):
            self.go(view)
            self.says(text)
            if view:  # the page moves the focus there once it is drawn
                self.browser.until("document.activeElement.id === 'content'")
            self.browser.evaluate("document.activeElement.blur()")
            reached = []
            while True:
                self.browser.key("Tab")
                seen = self.browser.evaluate("""(() => {
                    const e = document.activeElement, style = getComputedStyle(e);
                    window.reached ??= new Map();
                    if (e === document.body || window.reached.get(e) === location.hash) return null;
                    window.reached.set(e, location.hash);
                    return {name: (e.innerText || e.ariaLabel || e.id).trim(), shown: style.outlineStyle !== 'none' || style.boxShadow !== 'none'};
                })()""")
                if seen is None:
                    break
                reached.append(seen)
            self.assertEqual([one["name"] for one in reached if not one["shown"]], [], view)
            wanted = self.browser.evaluate("""[...document.querySelectorAll('a[href], button, input, select, summary')]
                .filter(e => e.checkVisibility() && !e.disabled && !window.reached.has(e)).map(e => e.outerHTML.slice(0, 100))""")
            self.assertEqual(wanted, [], view)

    def test_M5_text_has_contrast_in_light_and_dark(self):
        self.start()
        self.supervisor.wait_job(self.supervisor.create("work", "crash", id="the-job"))
        for view, text in (("", "work"), ("group/work", "process"), ("job/the-job", "Ended: dead"), ("dead-letters", "the-job"), ("events", "job dead")):
            self.go(view)
            self.says(text)
            for scheme in ("light", "dark"):
                self.browser.scheme(scheme)
                self.assertEqual(self.browser.evaluate(FAINT), [], f"{view} {scheme}")

    def test_M5_a_thousand_workers_are_shown_in_pages_and_cost_one_question_a_second(self):
        fake = FakeSupervisor(self, 1000)
        self.web = Web(self, fake.path)
        self.browser = Browser(self)
        self.go("group/many")
        self.says("1 to 50 of 1")
        self.assertEqual(self.browser.evaluate("document.querySelectorAll('tbody tr').length"), 50)
        self.press("Next")
        self.says("51 to 100 of 1")
        # Rows are updated, not made anew.
        self.browser.evaluate("document.querySelector('tbody tr').id = 'kept'")
        asked = fake.asked["GetStatus"]
        while fake.asked["GetStatus"] < asked + 6:
            self.browser.evaluate("new Promise(done => setTimeout(done, 100))")
        self.assertEqual(self.browser.evaluate("document.querySelectorAll('#kept').length"), 1)
        self.fine()
