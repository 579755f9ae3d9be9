# SPDX-License-Identifier: MIT
"""A real Prometheus with the alert rules and the dashboard. Its answers are compared with what the test has counted."""
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "e2e"))
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

from prometheus import ALERTS, PROGRAM, PROMTOOL, Prometheus  # noqa: E402
from test_cells import keyed  # noqa: E402
from test_metrics import Chaos, tough  # noqa: E402
from troupe import ACTOR, TOP, ini, limit  # noqa: E402
from web_client import Web  # noqa: E402

DEBIANS = "/etc/prometheus/prometheus.yml"
DASHBOARD = os.path.join(TOP, "units", "monitoring", "troupe-dashboard.json")
RULE_TESTS = os.path.join(TOP, "tests", "monitoring", "alerts.yml")


def read(path):
    with open(path, encoding="utf-8") as file:
        return file.read()


def promtool(*arguments, **options):
    return subprocess.run([PROMTOOL, *arguments], capture_output=True, text=True, check=False, **options)


@unittest.skipUnless(PROMTOOL, "promtool is missing (package prometheus)")
class Rules(unittest.TestCase):
    def test_M3_promtool_accepts_the_alert_rules(self):
        found = promtool("check", "rules", ALERTS)
        self.assertEqual(found.returncode, 0, found.stdout + found.stderr)

    def test_M3_each_alert_fires_when_it_should_and_not_otherwise(self):
        found = promtool("test", "rules", RULE_TESTS)
        self.assertEqual(found.returncode, 0, found.stdout + found.stderr)
        alerts = set(re.findall(r"- alert: (\w+)", read(ALERTS)))
        tests = read(RULE_TESTS)
        self.assertEqual(set(re.findall(r"^ +- alertname: (\w+)", tests, re.M)), alerts, "these fire")
        self.assertEqual(set(re.findall(r"- {alertname: (\w+), eval_time: 29m}", tests)), alerts, "these do not")

    @unittest.skipUnless(os.path.exists(DEBIANS), f"{DEBIANS} is missing")
    def test_M3_the_lines_of_the_manual_fit_debians_configuration_as_they_stand(self):
        manual = read(os.path.join(TOP, "supervisor/metrics/troupe-metrics.7")).replace("\\e", "\\")
        lines = re.search(r"\n# (sed -i .*?)\n# promtool", manual, re.S)[1].replace("\n# ", "\n")
        with tempfile.TemporaryDirectory() as directory:
            copy = shutil.copy(DEBIANS, directory)
            script = re.sub(r"/usr/share/troupe/monitoring/", os.path.dirname(ALERTS) + "/", lines.replace(DEBIANS, copy))
            done = subprocess.run(["sh", "-ec", script], capture_output=True, text=True, check=False)
            found = promtool("check", "config", copy)
            self.assertEqual((done.returncode, found.returncode), (0, 0), script + done.stderr + found.stdout + found.stderr)
            self.assertRegex(read(copy), r"(?s)troupe-alerts\.yml.*job_name: troupe\n")


@unittest.skipUnless(PROGRAM and PROMTOOL, "Prometheus is missing (package prometheus)")
class Scraped(Chaos):
    def monitored(self):
        """A supervisor with groups of all kinds, a limit, a schedule, its page, and a Prometheus that has begun to scrape that."""
        s = self.supervisor({"tough": tough(3), "mail": keyed(), "kept": tough(1, Durable="yes"), "limited": ini(ACTOR, Limits={"Uses": "mail"})})
        s.write("mail.limit", "[Limit]\nRunning=1\n")
        s.write("nightly.schedule", "[Schedule]\nOnCalendar=02:00\n[Job]\nGroup=kept\n")
        s.write("troupe.conf", f"[Supervisor]\nStateDirectory={s.path('state')}\n")
        s.start()
        s.wait_for(lambda: "store_problem" not in s.group("kept"))
        web = Web(self, s.socket_path)
        prometheus = Prometheus(self, web.name)
        self.scraped(s, prometheus)
        return s, web, prometheus

    def scraped(self, s, prometheus):
        """Waits until Prometheus has stored numbers of after now: troupe-web may answer with some that are a second old.
        Returns their time: on a busy machine the next scrape may fail, after which there are no numbers for a while."""
        asked_at = time.time() + 1
        return s.until(lambda: [t for t in prometheus.query("timestamp(troupe_build_info)").values() if t > asked_at])[0]

    @limit(300)
    def test_M1_the_answers_of_prometheus_equal_an_outside_count(self):
        s, web, prometheus = self.monitored()
        counted = self.chaos(s, "tough", 60)
        at = self.scraped(s, prometheus)
        tough_only = '{group="tough"}'
        jobs = prometheus.query(f"sum by (state) (troupe_jobs_total{tough_only})", at)
        self.assertEqual({key[0][1]: value for key, value in jobs.items() if value}, dict(counted.ended))
        deaths = prometheus.query(f"sum by (cause) (troupe_worker_deaths_total{tough_only})", at)
        self.assertEqual({key[0][1]: value for key, value in deaths.items() if value}, dict(counted.deaths))
        for name, value in (("jobs_accepted_total", counted.accepted), ("jobs_retried_total", counted.retries), ("jobs_running", 0),
                            ("queue_jobs", 0), ("job_run_seconds_count", counted.measured), ("job_wait_seconds_count", counted.measured)):
            self.assertEqual(list(prometheus.query(f"sum(troupe_{name}{tough_only})", at).values()), [value], name)
        [run] = prometheus.query(f"troupe_job_run_seconds_sum{tough_only}", at).values()
        self.assertEqual(round(run * 1e6), counted.run)
        self.assertEqual(prometheus.query(f"sum by (state) (troupe_workers{tough_only}) > 0", at), {(("state", "idle"),): 3})
        self.assertEqual(list(prometheus.query("sum(troupe_dead_letters)", at).values()), [counted.ended["dead"]])
        s.until(lambda: [a for a in prometheus.ask("alerts")["alerts"]
                         if (a["state"], a["labels"]["alertname"], a["labels"].get("group")) == ("firing", "TroupeJobsDead", "tough")])
        status, _, body = web.ask("/metrics")
        found = promtool("check", "metrics", input=body.decode())
        self.assertEqual((status, found.returncode, found.stdout, found.stderr), (200, 0, "", ""))

    @limit(300)
    def test_M3_each_query_of_the_dashboard_and_each_series_of_the_alerts_exists(self):
        s, _, prometheus = self.monitored()
        s.wait_job(s.create("kept", "echo"))
        self.chaos(s, "tough", 30)
        s.call("Pause", target="mail")
        s.create("mail", "echo", key="a")
        at = self.scraped(s, prometheus)
        for panel in panels(json.loads(read(DASHBOARD))):
            for target in panel.get("targets", ()):
                expression = target["expr"]
                for variable, value in (("$instance", ".*"), ("$group", ".*"), ("$__rate_interval", "5m")):
                    expression = expression.replace(variable, value)
                with self.subTest(panel=panel["title"], expression=expression):
                    answers = prometheus.query(expression, at)
                    self.assertTrue(answers, "no answer")
                    labels = {label for series in answers for label, _ in series}
                    self.assertEqual(set(re.findall(r"{{(\w+)}}", target["legendFormat"])) - labels, set())
        for name, text in sorted(set(re.findall(r"series: '(\w+){(.*?)}'", read(RULE_TESTS)))):
            with self.subTest(series=name, labels=text):
                found = prometheus.query(name, at)
                self.assertTrue(found, "there is none")
                labels = {label for series in found for label, _ in series} - {"job"}
                self.assertEqual(set(re.findall(r'(\w+)=', text)), labels)


def panels(dashboard):
    for panel in dashboard["panels"]:
        yield panel
        yield from panel.get("panels", ())


class Dashboard(unittest.TestCase):
    """What Grafana expects of the JSON model of a dashboard."""

    def setUp(self):
        self.dashboard = json.loads(read(DASHBOARD))

    def test_M3_it_can_be_imported(self):
        d = self.dashboard
        self.assertEqual([type(d[key]) for key in ("title", "uid", "schemaVersion", "version", "panels")], [str, str, int, int, list])
        self.assertNotIn("id", d, "a number of somebody's database")
        self.assertRegex(d["uid"], r"^[a-zA-Z0-9_-]{1,40}$")
        self.assertGreaterEqual(d["schemaVersion"], 36, "the first with data sources as objects")

    def test_M3_panels_have_a_place_of_their_own_and_a_data_source_that_is_chosen(self):
        all_panels = list(panels(self.dashboard))
        self.assertEqual(len({p["id"] for p in all_panels}), len(all_panels))
        taken = set()
        for p in all_panels:
            at = p["gridPos"]
            cells = {(x, y) for x in range(at["x"], at["x"] + at["w"]) for y in range(at["y"], at["y"] + at["h"])}
            self.assertFalse(cells & taken, p["title"])
            self.assertLessEqual(at["x"] + at["w"], 24, p["title"])
            taken |= cells
            targets = p.get("targets", [])
            self.assertEqual(len({t["refId"] for t in targets}), len(targets), p["title"])
            for source in [t["datasource"] for t in targets] + ([p["datasource"]] if p["type"] != "row" else []):
                self.assertEqual(source, {"type": "prometheus", "uid": "${datasource}"}, p["title"])

    # Of Grafana's schema (kinds/dashboard, packages/grafana-schema/src/common), what the dashboard uses.
    FIELDS = {
        "panel": {"id", "type", "title", "description", "datasource", "gridPos", "targets", "fieldConfig", "options"},
        "target": {"refId", "datasource", "expr", "legendFormat", "format", "instant"},
        "defaults": {"unit", "min", "max", "decimals", "thresholds", "custom"},
        "custom": {"fillOpacity", "showPoints", "stacking"},
    }
    VALUES = {"displayMode": {"list", "table"}, "placement": {"bottom", "right"}, "mode": {"single", "multi", "none"}, "sort": {"asc", "desc", "none"},
              "colorMode": {"none", "value", "background", "background_solid"}, "graphMode": {"none", "line", "area"}}

    def check_options(self, options, required):
        """`required`: the type of each field."""
        for name, kind in required.items():
            self.assertIsInstance(options[name], kind, name)
            if kind is str:
                self.assertIn(options[name], self.VALUES[name])
        self.assertEqual(set(options), set(required))

    def test_M3_panels_have_the_fields_that_grafana_knows_and_requires(self):
        for p in panels(self.dashboard):
            if p["type"] == "row":
                continue
            with self.subTest(p["title"]):
                defaults, options = p["fieldConfig"]["defaults"], p["options"]
                custom, steps = defaults.get("custom", {}), defaults.get("thresholds", {}).get("steps", [{"value": None}])
                for part, name in ((p, "panel"), (defaults, "defaults"), (custom, "custom"), *((t, "target") for t in p["targets"])):
                    self.assertEqual(set(part) - self.FIELDS[name], set())
                self.assertIn(custom.get("showPoints", "auto"), {"auto", "always", "never"})
                self.assertIn(custom.get("stacking", {"mode": "none"})["mode"], {"none", "normal", "percent"})
                self.assertEqual([step["value"] for step in steps], [None, *sorted(step["value"] for step in steps[1:])])
                if p["type"] == "timeseries":
                    self.check_options(options["legend"], {"displayMode": str, "placement": str, "showLegend": bool, "calcs": list})
                    self.check_options(options["tooltip"], {"mode": str, "sort": str})
                elif p["type"] == "stat":
                    self.check_options(options, {"colorMode": str, "graphMode": str, "reduceOptions": dict})
                    self.check_options(options["reduceOptions"], {"calcs": list})
                else:
                    self.assertEqual((p["type"], options), ("table", {}))

    def test_M3_the_variables_of_queries_exist(self):
        variables = {v["name"] for v in self.dashboard["templating"]["list"]}
        self.assertEqual(set(re.findall(r"\$(?!__)\{?(\w+)", read(DASHBOARD))) - variables, set())
