# SPDX-License-Identifier: MIT
"""A real Prometheus for the tests. Waits for what it says, as troupe.py."""
import json
import os
import re
import shutil
import subprocess
import tempfile
import threading
import urllib.parse
import urllib.request

from troupe import LIMIT, TOP

PROGRAM, PROMTOOL = shutil.which("prometheus"), shutil.which("promtool")
ALERTS = os.path.join(TOP, "units", "monitoring", "troupe-alerts.yml")
CONFIGURATION = """
global: {{scrape_interval: 1s, evaluation_interval: 1s}}
rule_files: [{rules}]
scrape_configs:
  - job_name: troupe
    static_configs: [{{targets: ['{target}']}}]
"""


class Prometheus:
    """Scrapes `target` and evaluates the alert rules every second. Ends with the test."""

    def __init__(self, test, target):
        self.test = test
        self.directory = tempfile.TemporaryDirectory(prefix="troupe-prometheus-")
        test.addCleanup(self.directory.cleanup)
        with open(os.path.join(self.directory.name, "prometheus.yml"), "w", encoding="utf-8") as file:
            file.write(CONFIGURATION.format(rules=ALERTS, target=target))
        self.log, self.heard = "", threading.Condition()
        self.process = subprocess.Popen([PROGRAM, f"--config.file={file.name}", f"--storage.tsdb.path={self.directory.name}/data",
                                         "--web.listen-address=127.0.0.1:0"], stdin=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        test.addCleanup(self.end)
        self.reader = threading.Thread(target=self._read)
        self.reader.start()
        self.wait_line("Server is ready to receive web requests")
        self.address = self.wait_line(r'msg="Listening on" address=(\S+)')[1]

    def end(self):
        self.process.terminate()
        try:
            self.process.wait(LIMIT)
        except subprocess.TimeoutExpired:
            self.process.kill()
        self.reader.join()
        self.process.stderr.close()

    def _read(self):
        for line in self.process.stderr:
            with self.heard:
                self.log += line
                self.heard.notify_all()

    def wait_line(self, pattern):
        with self.heard:
            if not self.heard.wait_for(lambda: re.search(pattern, self.log), LIMIT):
                self.test.fail(f"Prometheus has not said {pattern}:\n{self.log}")
            return re.search(pattern, self.log)

    def ask(self, path, **parameters):
        url = f"http://{self.address}/api/v1/{path}?{urllib.parse.urlencode(parameters)}"
        with urllib.request.urlopen(url, timeout=LIMIT) as answer:
            return json.load(answer)["data"]

    def query(self, expression, at=None):
        """Maps the labels of each series, as sorted pairs without the name, to its value, at that time or now."""
        answer = self.ask("query", query=expression, **({} if at is None else {"time": f"{at:.3f}"}))
        return {tuple(sorted((k, v) for k, v in series["metric"].items() if k != "__name__")): float(series["value"][1])
                for series in answer["result"]}
