#!/usr/bin/env python3
"""Reads the site with headless Chromium: check_site.py SITE CHROMIUM

Every page is opened at the width of a desk and of a phone; the tabs, the next page, the phone's menu, the search and the dark
mode are used (check_site.js). Links and anchors of the HTML are checked, and the browser's console must show no errors.
"""

import functools
import html.parser
import http.server
import json
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import threading
import urllib.parse

HERE = pathlib.Path(__file__).resolve().parent
SITE, CHROMIUM = pathlib.Path(sys.argv[1]).resolve(), sys.argv[2]
LIMIT = 180  # seconds


class Page(html.parser.HTMLParser):
    def __init__(self, text):
        super().__init__()
        self.ids, self.links, self.away = set(), [], set()
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        attributes = dict(attributes)
        if "id" in attributes:
            self.ids.add(attributes["id"])
        for name in ("href", "src"):
            if attributes.get(name):
                self.links.append(attributes[name])
                # Links may lead to other sites, but all resources of a page come from this one.
                if tag == "a" and re.match(r"https?:", attributes[name]):
                    self.away.add(attributes[name])


def check_links(paths):
    pages = {path: Page(path.read_text()) for path in paths}
    for path, page in pages.items():
        for link in page.links:
            target = urllib.parse.urlsplit(link)
            if target.scheme == "javascript" or link in page.away:
                continue
            if target.scheme not in ("", "data") or target.netloc:
                yield f"{path.relative_to(SITE)}: {link} is fetched from elsewhere"
                continue
            there = (path.parent / urllib.parse.unquote(target.path)).resolve() if target.path else path
            if there.is_dir():
                there /= "index.html"
            if not there.exists():
                yield f"{path.relative_to(SITE)}: {link} is not there"
            elif target.fragment and there in pages and not target.fragment.startswith("__"):
                if urllib.parse.unquote(target.fragment) not in pages[there].ids:
                    yield f"{path.relative_to(SITE)}: {link} has no such anchor"


class Handler(http.server.SimpleHTTPRequestHandler):
    result, done, paths = None, threading.Event(), []

    def log_message(self, *_):
        pass

    def answer(self, text, kind):
        body = text.encode()
        self.send_response(200)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def do_GET(self):
        if self.path == "/__check__":
            script = (HERE / "check_site.js").read_text()
            self.answer(f'<!doctype html><link rel="icon" href="data:,"><iframe height="800"></iframe><script>{script}</script>', "text/html")
        elif self.path == "/__pages__":
            self.answer(json.dumps(self.paths), "application/json")
        else:
            super().do_GET()

    def do_POST(self):
        Handler.result = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.answer("", "text/plain")
        self.done.set()


def main():
    paths = sorted(path for path in SITE.rglob("*.html") if not path.is_relative_to(SITE / "headers"))
    written = [path for path in paths if path.name != "404.html"]
    problems = list(check_links(written))
    Handler.paths = ["/" + str(path.relative_to(SITE)) for path in written]
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Handler, directory=str(SITE)))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    profile = tempfile.mkdtemp()
    browser = subprocess.Popen(
        [CHROMIUM, "--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--disable-background-networking",
         "--disable-component-update", "--no-first-run", "--enable-logging=stderr", "--window-size=1400,900",
         f"--user-data-dir={profile}", "--remote-debugging-port=0", f"http://127.0.0.1:{server.server_address[1]}/__check__"],
        stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True,
    )
    said = []
    reader = threading.Thread(target=lambda: said.extend(browser.stderr), daemon=True)
    reader.start()
    if not Handler.done.wait(LIMIT):
        problems.append(f"the browser did not finish within {LIMIT} s")
    browser.terminate()
    browser.wait(20)
    reader.join(5)
    shutil.rmtree(profile, ignore_errors=True)
    console = [line.strip() for line in said if ":CONSOLE" in line and not re.search(r"DevTools|preload", line)]
    problems += [f"the console says: {line}" for line in console]
    if Handler.result:
        problems += Handler.result["problems"]
        if Handler.result["pages"] < 20:
            problems.append(f"read too little: {Handler.result['pages']} pages")
    for text in problems:
        print(text)
    print(f"{len(written)} pages, {len(problems)} problems")
    sys.exit(1 if problems else 0)


if __name__ == "__main__":
    main()
