"""Chromium without a window, driven over its DevTools pipe (descriptors 3 and 4, messages that end with a zero byte), so that nothing but
Python is needed. Used by the tests of the pages and by scripts/pictures.sh.

    with Browser() as browser:
        page = browser.open("file:///…/report.html", width=1280, height=900)
        page.run("document.title")
"""
import base64
import json
import os
import select
import shutil
import subprocess
import tempfile
import time


def find():
    """The path of a Chromium, or None."""
    return next((path for name in ("chromium", "chromium-browser", "google-chrome") if (path := shutil.which(name))), None)


class Browser:
    def __init__(self, deadline_s=60):
        self.deadline_s = deadline_s
        self.home = tempfile.mkdtemp(prefix="scout-page-")
        to_child, self.to = os.pipe()
        self.of, from_child = os.pipe()
        # No sandbox: tests run as root in containers. Names resolve to nothing, so that no request could leave.
        options = ["--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--hide-scrollbars", "--no-first-run",
                   "--remote-debugging-pipe", "--disable-background-networking", "--disable-component-update", "--disable-sync",
                   "--host-resolver-rules=MAP * ~NOTFOUND", f"--user-data-dir={self.home}"]
        self.process = subprocess.Popen(
            ["bash", "-c", 'exec "$@" 3<&"$IN" 4>&"$OUT"', "bash", find(), *options], pass_fds=(to_child, from_child),
            env={**os.environ, "IN": str(to_child), "OUT": str(from_child)}, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        os.close(to_child)
        os.close(from_child)
        self.rest, self.events, self.number = b"", [], 0

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for descriptor in (self.to, self.of):
            os.close(descriptor)
        try:
            self.process.wait(10)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        shutil.rmtree(self.home, ignore_errors=True)

    def message(self, deadline):
        while b"\0" not in self.rest:
            if not select.select([self.of], [], [], max(0, deadline - time.monotonic()))[0]:
                raise TimeoutError("the browser did not answer")
            got = os.read(self.of, 1 << 20)
            if not got:
                raise EOFError("the browser ended")
            self.rest += got
        line, self.rest = self.rest.split(b"\0", 1)
        return json.loads(line)

    def call(self, method, session=None, **params):
        self.number += 1
        call = {"id": self.number, "method": method, "params": params}
        if session:
            call["sessionId"] = session
        data = json.dumps(call).encode() + b"\0"
        while data:
            data = data[os.write(self.to, data):]
        deadline = time.monotonic() + self.deadline_s
        while True:
            message = self.message(deadline)
            if message.get("id") == self.number:
                if "error" in message:
                    raise RuntimeError(f"{method}: {message['error']}")
                return message["result"]
            self.events.append(message)

    def open(self, url, width=1280, height=900, dark=False, script=True, phone=False):
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        page = Page(self, self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"], target)
        for domain in ("Page", "Runtime", "Log", "Network"):
            page.call(f"{domain}.enable")
        page.call("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=2 if phone else 1, mobile=phone)
        page.call("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": "dark" if dark else "light"}])
        page.call("Emulation.setScriptExecutionDisabled", value=not script)
        page.go(url)
        return page


class Page:
    def __init__(self, browser, session, target):
        self.browser, self.session, self.target = browser, session, target

    def call(self, method, **params):
        return self.browser.call(method, self.session, **params)

    def go(self, url):
        self.call("Page.navigate", url=url)
        deadline = time.monotonic() + self.browser.deadline_s
        while not self.events("Page.loadEventFired"):
            self.browser.events.append(self.browser.message(deadline))

    def events(self, *methods):
        return [e for e in self.browser.events if e.get("sessionId") == self.session and e["method"] in methods]

    def run(self, expression):
        """The value of a JavaScript expression; also where the page itself may not run any."""
        result = self.call("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        if "exceptionDetails" in result:
            raise RuntimeError(f"{expression[:200]}: {result['exceptionDetails']}")
        return result["result"].get("value")

    def settle(self, seconds):
        """What was begun to be done within so long is: by the page's own clock, because a busy machine's is late."""
        self.run(f"new Promise(done => setTimeout(done, {1000 * seconds}))")

    def scroll_to(self, selector):
        """There, and the page was told so, which hides what the mouse shows."""
        self.run(f"""new Promise(done => {{
            addEventListener('scroll', () => setTimeout(done), {{once: true}});
            setTimeout(done, 3000); // where it stands there already
            document.querySelector({json.dumps(selector)}).scrollIntoView();
        }})""")

    def complaints(self):
        """What the console said, exceptions and refused loads included."""
        said = self.events("Runtime.consoleAPICalled", "Runtime.exceptionThrown", "Log.entryAdded")
        return [json.dumps(e["params"])[:300] for e in said]

    def requests(self):
        """What the page asked for, beside itself."""
        return [e["params"]["request"]["url"] for e in self.events("Network.requestWillBeSent")
                if e["params"]["request"]["url"] != e["params"]["documentURL"]]

    def press(self, key, text=None):
        extra = {"text": text} if text else {}
        self.call("Input.dispatchKeyEvent", type="keyDown", key=key, code=key, **extra)
        self.call("Input.dispatchKeyEvent", type="keyUp", key=key, code=key)

    def picture(self, path):
        """What the window shows now, as PNG."""
        with open(path, "wb") as out:
            out.write(base64.b64decode(self.call("Page.captureScreenshot", format="png")["data"]))

    def close(self):
        self.browser.call("Target.closeTarget", targetId=self.target)
