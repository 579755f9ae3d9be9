# SPDX-License-Identifier: MIT
"""The site of `make site`: its pages are complete, its links lead somewhere, and its search finds."""
import glob
import json
import os
import re
import shutil
import subprocess
import unittest
import urllib.parse
from html.parser import HTMLParser
from pathlib import Path

from troupe import LIMIT, TOP, TestCase

PYTHON = "/usr/bin/python3"  # which has Debian's packages
JAVASCRIPT = shutil.which("node")


def has_markdown():
    return subprocess.run([PYTHON, "-c", "import markdown"], stderr=subprocess.DEVNULL, check=False).returncode == 0


class Page(HTMLParser):
    """What a page refers to, and what can be referred to."""

    def __init__(self, path):
        super().__init__()
        self.links, self.sources, self.anchors, self.text = [], [], {""}, []
        self.source = path.read_text(encoding="utf-8")
        self.feed(self.source)

    def handle_starttag(self, tag, attrs):
        attributes = dict(attrs)
        self.anchors.add(attributes.get("id", ""))
        if tag == "a":
            self.links.append(attributes.get("href", ""))
        self.sources += [value for name, value in attrs if name == "src" or tag == "link" and name == "href"]

    def handle_data(self, data):
        self.text.append(data)


@unittest.skipUnless(shutil.which("mandoc") and has_markdown(), "mandoc or python3-markdown is not installed")
class Site(TestCase):
    @classmethod
    def setUpClass(cls):
        cls.manuals = [page for folder in ("supervisor", "worker") for page in glob.glob(os.path.join(TOP, folder, "**/*.[1-8]"), recursive=True)]

    def setUp(self):
        self.site = Path(self.supervisor().path("site"))
        subprocess.run([PYTHON, os.path.join(TOP, "units/site/build"), "7.8.9", self.site, *self.manuals], check=True, stdout=subprocess.DEVNULL, timeout=LIMIT)
        self.pages = {path.name: Page(path) for path in self.site.glob("*.html")}

    def test_F2_each_manual_and_each_guide_is_a_complete_page(self):
        guides = [Path(path).stem for path in glob.glob(os.path.join(TOP, "units/guides/*.md"))]
        self.assertGreaterEqual(len(guides), 5)
        self.assertEqual(set(self.pages), {"index.html", *(f"{name}.html" for name in guides), *(f"{os.path.basename(path)}.html" for path in self.manuals)})
        titles = {re.search("<title>(.*)</title>", page.source)[1] for page in self.pages.values()}
        self.assertEqual(len(titles), len(self.pages))
        menu = {link for link in self.pages["index.html"].links}
        for path in self.manuals:
            page = self.pages[os.path.basename(path) + ".html"]
            rendered = subprocess.run(["mandoc", "-T", "utf8", "-O", "width=200", path], check=True, capture_output=True, encoding="utf-8").stdout
            words = set(re.findall(r"[A-Za-z]{3,}", re.sub(".\b", "", rendered)))
            self.assertLessEqual(words, set(re.findall(r"[A-Za-z]{3,}", "".join(page.text))), path)
            self.assertTrue(page.source.rstrip().endswith("</html>"))
        self.assertLessEqual(set(self.pages), menu)

    def test_F2_links_lead_somewhere(self):
        for name, page in self.pages.items():
            for link in page.links:
                address, _, anchor = link.partition("#")
                if re.match("(https?|ssh):", address):
                    continue
                with self.subTest(name, link=link):
                    self.assertIn(address or name, self.pages)
                    self.assertIn(urllib.parse.unquote(anchor), self.pages[address or name].anchors)

    def test_F2_pages_use_only_files_of_the_site(self):
        for name, page in self.pages.items():
            for source in page.sources:
                self.assertTrue((self.site / source).is_file(), f"{name}: {source}")
        self.assertNotRegex((self.site / "site.css").read_text(encoding="utf-8"), "url|@import")

    @unittest.skipUnless(JAVASCRIPT, "node is not installed")
    def test_F2_the_search_finds_pages_and_sections(self):
        script = (self.site / "search.js").read_text(encoding="utf-8")
        for query, address in (("MemoryMax", "troupe.group.5.html#_Resources__SECTION_OPTIONS"), ("thumbnails site", "thumbnails.html"),
                               ("troupe-nats(8)", "troupe-nats.8.html"), ("promtool", "operate.html#prometheus"),
                               ("troupe_job_succ", "troupe.3.html"), ("daylight saving", "troupe-recipes.7.html")):
            probe = self.site / "probe.js"
            probe.write_text(f"{script}\nconsole.log(JSON.stringify(search({json.dumps(query)})));", encoding="utf-8")
            done = subprocess.run([JAVASCRIPT, probe], check=True, capture_output=True, encoding="utf-8", timeout=LIMIT)
            found = [entry[0] for entry in json.loads(done.stdout)]
            self.assertTrue(any(entry.startswith(address) for entry in found), f"{query}: {found}")
            for entry in found:
                page, _, anchor = entry.partition("#")
                self.assertIn(anchor, self.pages[page].anchors)
        probe.write_text(f"{script}\nconsole.log(search('no-such-word').length);", encoding="utf-8")
        self.assertEqual(subprocess.check_output([JAVASCRIPT, probe], timeout=LIMIT), b"0\n")
