"""A real headless browser, driven over its debugging pipe: what a page draws, says and throws."""

from __future__ import annotations

import json
import os
import select
import shutil
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

FLAGS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--disable-dev-shm-usage",
    "--remote-debugging-pipe",
)
_PATIENCE = 120.0
"""Seconds after which a browser that says nothing more is given up."""


def installed() -> str | None:
    """The browser of this machine, if it has one that speaks the protocol."""
    names = ("chromium", "chromium-browser", "google-chrome", "chrome")
    return next((path for name in names if (path := shutil.which(name))), None)


class Page:
    """One page of a browser.

    ``troubles`` are the exceptions, console messages, refused contents and requests beyond the
    file itself since the page was opened.
    """

    def __init__(self, commands: int, answers: int) -> None:
        self._commands, self._answers = commands, answers
        self._buffer = b""
        self._number = 0
        self._session: str | None = None
        self.troubles: list[str] = []
        target = self._call("Target.createTarget", url="about:blank")["targetId"]
        attached = self._call("Target.attachToTarget", targetId=target, flatten=True)
        self._session = attached["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self._call(f"{domain}.enable")

    def open(self, path: Path, *, width: int = 1200, dark: bool = False) -> None:
        """Open a file and wait until it has drawn."""
        self._call(
            "Emulation.setDeviceMetricsOverride",
            width=width,
            height=900,
            deviceScaleFactor=1,
            mobile=False,
        )
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self._call("Emulation.setEmulatedMedia", features=[scheme])
        self._url = path.resolve().as_uri()
        self._call("Page.navigate", url=self._url)
        self.evaluate(
            "new Promise((done) => { const look = () => document.readyState === 'complete'"
            " ? requestAnimationFrame(() => requestAnimationFrame(done)) : setTimeout(look, 10);"
            " look(); })"
        )

    def evaluate(self, expression: str) -> Any:
        """The value of an expression in the page; a promise is waited for."""
        told = self._call(
            "Runtime.evaluate", expression=expression, awaitPromise=True, returnByValue=True
        )
        assert "exceptionDetails" not in told, told
        return told["result"].get("value")

    def press(self, key: str) -> None:
        """Press a key where the focus is, and wait for the next picture."""
        text = {"text": key} if len(key) == 1 else {}
        self._call("Input.dispatchKeyEvent", type="keyDown", key=key, **text)
        self._call("Input.dispatchKeyEvent", type="keyUp", key=key)
        self.evaluate(
            "new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))"
        )

    def _call(self, method: str, **params: Any) -> dict[str, Any]:
        self._number += 1
        message: dict[str, Any] = {"id": self._number, "method": method, "params": params}
        if self._session is not None:
            message["sessionId"] = self._session
        os.write(self._commands, json.dumps(message).encode() + b"\0")
        while True:
            answer = self._next()
            if answer.get("id") == self._number:
                assert "error" not in answer, (method, answer["error"])
                result: dict[str, Any] = answer["result"]
                return result
            self._listen(answer)

    def _listen(self, event: dict[str, Any]) -> None:
        method, params = event.get("method"), event.get("params", {})
        if method == "Runtime.exceptionThrown":
            self.troubles.append(json.dumps(params["exceptionDetails"]))
        elif method == "Runtime.consoleAPICalled":
            self.troubles.append(json.dumps(params["args"]))
        elif method == "Log.entryAdded":
            self.troubles.append(params["entry"]["text"])
        elif method == "Network.requestWillBeSent" and params["request"]["url"] != self._url:
            self.troubles.append(f"asks for {params['request']['url']}")
        elif method == "Page.javascriptDialogOpening":
            self.troubles.append(f"opens a dialog: {params['message']}")

    def _next(self) -> dict[str, Any]:
        until = time.monotonic() + _PATIENCE
        while b"\0" not in self._buffer:
            ready, _, _ = select.select([self._answers], [], [], until - time.monotonic())
            data = os.read(self._answers, 1 << 16) if ready else b""
            assert data, "the browser says nothing more"
            self._buffer += data
        line, _, self._buffer = self._buffer.partition(b"\0")
        message: dict[str, Any] = json.loads(line)
        return message


@contextmanager
def browsing(browser: str, folder: Path) -> Iterator[Page]:
    """A page of a browser that keeps its profile in this folder."""
    commands_out, commands = os.pipe()
    answers, answers_in = os.pipe()
    process = subprocess.Popen(
        [
            "bash",
            "-c",
            f'exec "$0" "$@" 3<&{commands_out} 4>&{answers_in}',
            browser,
            *FLAGS,
            f"--user-data-dir={folder}",
        ],
        pass_fds=(commands_out, answers_in),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    os.close(commands_out)
    os.close(answers_in)
    try:
        yield Page(commands, answers)
    finally:
        process.terminate()
        process.wait()
        os.close(commands)
        os.close(answers)
