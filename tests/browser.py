"""A headless Chromium for tests, spoken to over a pipe in the DevTools protocol: no driver, no port, no network."""

from __future__ import annotations

import base64
import json
import os
import select
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

NAMES = ("chromium", "chromium-browser", "google-chrome")
CHROMIUM = next((path for name in NAMES if (path := shutil.which(name))), "")
PATIENCE = 60.0
LAUNCH = """
import fcntl, os, sys
read, write = (fcntl.fcntl(int(end), fcntl.F_DUPFD, 10) for end in sys.argv[1:3])
os.dup2(read, 3), os.dup2(write, 4)
os.execv(sys.argv[3], sys.argv[3:])
"""
OPTIONS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--disable-dev-shm-usage",
    "--no-first-run",
    "--no-default-browser-check",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--hide-scrollbars",
    "--host-resolver-rules=MAP * ~NOTFOUND",
    "--remote-debugging-pipe",
)


@dataclass
class Browser:
    """One page of a running browser."""

    to_browser: int
    from_browser: int
    session: str = ""
    events: list[dict[str, Any]] = field(default_factory=list)
    _count: int = 0
    _rest: bytes = b""

    def call(self, method: str, **parameters: Any) -> dict[str, Any]:
        """Ask the browser, and wait for its answer; events that come in between are kept."""
        self._count += 1
        request: dict[str, Any] = {"id": self._count, "method": method, "params": parameters}
        if self.session:
            request["sessionId"] = self.session
        os.write(self.to_browser, json.dumps(request).encode() + b"\0")
        while True:
            message = self._next()
            if message.get("id") != self._count:
                self.events.append(message)
            elif "error" in message:
                raise RuntimeError(f"{method}: {message['error']}")
            else:
                return message["result"]

    def wait_for(self, method: str) -> None:
        """Wait until the browser tells of an event of this name."""
        while not any(event.get("method") == method for event in self.events):
            self.events.append(self._next())

    def _next(self) -> dict[str, Any]:
        until = time.monotonic() + PATIENCE
        while b"\0" not in self._rest:
            ready, _, _ = select.select([self.from_browser], [], [], max(until - time.monotonic(), 0))
            content = os.read(self.from_browser, 1 << 20) if ready else b""
            if not content:
                raise RuntimeError("the browser does not answer")
            self._rest += content
        message, self._rest = self._rest.split(b"\0", 1)
        return json.loads(message)

    def open(self, path: Path, width: int, height: int = 900) -> None:
        """Open a file in a window of this width."""
        self.events.clear()
        self.call(
            "Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=width < 600
        )
        self.call("Page.navigate", url=path.absolute().as_uri())
        self.wait_for("Page.loadEventFired")

    def value(self, script: str) -> Any:
        """What a script gives on the page."""
        found = self.call("Runtime.evaluate", expression=script, returnByValue=True, awaitPromise=True)
        if "exceptionDetails" in found:
            raise RuntimeError(str(found["exceptionDetails"]))
        return found["result"].get("value")

    def complaints(self) -> list[str]:
        """Errors and warnings of the console, exceptions, and whatever the page asked of a network."""
        found = []
        for event in self.events:
            name, content = event.get("method"), event.get("params", {})
            if name == "Runtime.exceptionThrown" or (
                name == "Runtime.consoleAPICalled" and content["type"] in ("error", "warning")
            ):
                found.append(json.dumps(content))
            elif name == "Log.entryAdded" and content["entry"]["level"] in ("error", "warning"):
                found.append(content["entry"]["text"])
            elif name == "Network.requestWillBeSent" and not content["request"]["url"].startswith(("file:", "data:")):
                found.append(f"asked for {content['request']['url']}")
        return found

    def screenshot(self, path: Path) -> bytes:
        """The whole page as PNG, also written to ``path``."""
        size = self.call("Page.getLayoutMetrics")["cssContentSize"]
        clip = {"x": 0, "y": 0, "width": size["width"], "height": size["height"], "scale": 1}
        found = self.call("Page.captureScreenshot", format="png", captureBeyondViewport=True, clip=clip)
        content = base64.b64decode(found["data"])
        path.write_bytes(content)
        return content

    def paper(self, path: Path) -> bytes:
        """The page as it would be printed."""
        content = base64.b64decode(self.call("Page.printToPDF", printBackground=True)["data"])
        path.write_bytes(content)
        return content


@contextmanager
def browser(profile: Path) -> Iterator[Browser]:
    """A browser with a profile of its own, ended with the block."""
    theirs_in, ours_out = os.pipe()
    ours_in, theirs_out = os.pipe()
    start = [sys.executable, "-c", LAUNCH, str(theirs_in), str(theirs_out)]
    command = [*start, CHROMIUM, *OPTIONS, f"--user-data-dir={profile}", "about:blank"]
    with subprocess.Popen(
        command, pass_fds=(theirs_in, theirs_out), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    ) as process:
        os.close(theirs_in)
        os.close(theirs_out)
        try:
            made = Browser(ours_out, ours_in)
            target = made.call("Target.createTarget", url="about:blank")["targetId"]
            made.session = made.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
            for domain in ("Page", "Runtime", "Log", "Network"):
                made.call(f"{domain}.enable")
            yield made
        finally:
            process.kill()
            os.close(ours_out)
            os.close(ours_in)
