"""Chromium for tests of pages: Qt WebEngine's, which pip installs alike everywhere, without a window.

Another process shows one page (`main`); `Browser` drives it by the DevTools protocol,
https://chromedevtools.github.io/devtools-protocol/.
"""

from __future__ import annotations

import itertools
import json
import os
import socket
import subprocess
import sys
import tempfile
import threading
import time
import urllib.request
from collections.abc import Callable
from pathlib import Path
from typing import Any

PRINTED = "AUTODIFF_TEST_PRINTED"  # where print() of a page writes a PDF
_FLAGS = "--no-sandbox --disable-gpu --disable-dev-shm-usage"
_SECONDS = 60  # until a page is shown, or an answer comes

# Keys by their names in KeyboardEvent.key, with their codes in Windows, which the protocol takes.
_KEYS = {"Tab": 9, "Enter": 13, "End": 35, "Home": 36} | {
    f"Arrow{way}": code for way, code in (("Left", 37), ("Up", 38), ("Right", 39), ("Down", 40))
}

# The middle of the first box of the element, after scrolling there, where a click must reach the element.
_MIDDLE = """
    const element = document.querySelector(arguments[0]);
    element.scrollIntoView({block: 'center', behavior: 'instant'});
    const box = element.getClientRects()[0], at = [box.x + box.width / 2, box.y + box.height / 2];
    const there = document.elementFromPoint(...at);
    if (!element.contains(there)) throw new Error(`${arguments[0]} is below ${there?.outerHTML.slice(0, 120)}`);
    return at;"""


class Browser:
    """One page. `close` ends it."""

    def __init__(self) -> None:
        import websocket

        with socket.socket() as any_port:
            any_port.bind(("127.0.0.1", 0))
            port = any_port.getsockname()[1]
        self._folder = tempfile.TemporaryDirectory(prefix="autodiff browser ")
        self._printed = Path(self._folder.name) / "printed.pdf"
        self._output = open(Path(self._folder.name) / "output", "w+")  # noqa: SIM115
        environment = {
            **os.environ,
            PRINTED: str(self._printed),
            "QT_QPA_PLATFORM": "offscreen",
            "QTWEBENGINE_CHROMIUM_FLAGS": _FLAGS,
            "QTWEBENGINE_REMOTE_DEBUGGING": str(port),
        }
        command = [sys.executable, __file__]
        self._process = subprocess.Popen(
            command, env=environment, stdin=subprocess.PIPE, stdout=self._output, stderr=subprocess.STDOUT
        )
        self._socket: Any = None
        self._numbers = itertools.count(1)
        self._events: list[dict[str, Any]] = []
        try:
            pages = self._until(lambda: _pages(port))
            self._socket = websocket.create_connection(
                pages[0]["webSocketDebuggerUrl"], timeout=_SECONDS, suppress_origin=True
            )
            for domain in ("Page", "Runtime", "Log"):
                self.command(f"{domain}.enable")
            self.command("Emulation.setFocusEmulationEnabled", enabled=True)
            self.command("Emulation.setScrollbarsHidden", hidden=True)
        except BaseException:
            self.close()
            raise

    def _until(self, found: Callable[[], Any]) -> Any:
        """What `found` returns, as soon as that is true."""
        end = time.monotonic() + _SECONDS
        while not (value := found()):
            if self._process.poll() is not None or time.monotonic() > end:
                self._output.seek(0)
                raise RuntimeError(f"the browser of the tests does not answer:\n{self._output.read()}")
            time.sleep(0.02)
        return value

    def command(self, method: str, **parameters: Any) -> dict[str, Any]:
        """The result of a method of the protocol."""
        number = next(self._numbers)
        self._socket.send(json.dumps({"id": number, "method": method, "params": parameters}))
        while (answer := json.loads(self._socket.recv())).get("id") != number:
            self._events.append(answer)
        if "error" in answer:
            raise RuntimeError(f"{method}: {answer['error']['message']}")
        return dict(answer["result"])

    def run(self, script: str, *arguments: Any) -> Any:
        """The result of a JavaScript function's body, or of the promise that it returns."""
        expression = f"(function() {{{script}\n}})(...{json.dumps(arguments)})"
        answer = self.command(
            "Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True
        )
        if "exceptionDetails" in answer:
            raise RuntimeError(answer["exceptionDetails"].get("exception", {}).get("description"))
        return answer["result"].get("value")

    def until(self, script: str) -> Any:
        """The script's result, as soon as it is true."""
        return self._until(lambda: self.run(script))

    def window(self, width: int, height: int = 800, media: str = "", **features: str) -> None:
        """A window of the size, and media features by their names with _ for -."""
        size = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": False}
        self.command("Emulation.setDeviceMetricsOverride", **size)
        wanted = [{"name": name.replace("_", "-"), "value": value} for name, value in features.items()]
        self.command("Emulation.setEmulatedMedia", media=media, features=wanted)

    def open(self, address: str) -> None:
        """Load a page, even if it is shown, and wait until it has loaded."""
        for url in ("about:blank", address):
            failure = self.command("Page.navigate", url=url).get("errorText")
            assert failure is None, f"{url}: {failure}"
        self.until("return document.readyState === 'complete'")

    def click(self, selector: str) -> None:
        """Click on the first element that the selector selects."""
        x, y = self.run(_MIDDLE, selector)
        for kind in ("mouseMoved", "mousePressed", "mouseReleased"):
            self.command("Input.dispatchMouseEvent", type=kind, x=x, y=y, button="left", clickCount=1)

    def press(self, *keys: str) -> None:
        """Press keys, one after the other: characters, and names of _KEYS."""
        for key in keys:
            what = {"key": key, "code": key, "windowsVirtualKeyCode": _KEYS.get(key, 0)}
            text = "\r" if key == "Enter" else "" if key in _KEYS else key
            self.command("Input.dispatchKeyEvent", type="keyDown", text=text, **what)
            self.command("Input.dispatchKeyEvent", type="keyUp", **what)

    def shown(self, selector: str) -> bool:
        """Whether the elements that the selector selects, at least one, are displayed."""
        script = """
            const all = [...document.querySelectorAll(arguments[0])];
            return all.length > 0 && all.every((e) => e.checkVisibility({visibilityProperty: true}));"""
        return bool(self.run(script, selector))

    def messages(self) -> list[Any]:
        """New lines of the console since the last call: messages of scripts, uncaught exceptions, failed requests."""
        self.run("")  # events come before its answer
        kinds = ("Runtime.consoleAPICalled", "Runtime.exceptionThrown", "Log.entryAdded")
        found = [event["params"] for event in self._events if event["method"] in kinds]
        self._events.clear()
        return found

    def pdf(self) -> bytes:
        """The page as it is printed."""
        self._printed.unlink(missing_ok=True)
        self.run("print()")
        self._until(self._printed.exists)
        return self._printed.read_bytes()

    def close(self) -> None:
        if self._socket is not None:
            self._socket.close(timeout=1)
        self._process.kill()
        self._process.communicate()
        self._output.close()
        self._folder.cleanup()


def _pages(port: int) -> Any:
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/json/list", timeout=_SECONDS) as answer:
            return json.load(answer)
    except OSError:
        return None


def main() -> None:
    """Show an empty page until the process is ended, or the one that began it."""
    from PySide6.QtWebEngineWidgets import QWebEngineView
    from PySide6.QtWidgets import QApplication

    threading.Thread(target=lambda: (sys.stdin.read(), os._exit(0)), daemon=True).start()
    printed = os.environ[PRINTED]
    application = QApplication(sys.argv[:1])
    view = QWebEngineView()
    view.setHtml("")
    view.printRequested.connect(lambda: view.page().printToPdf(f"{printed}.part"))
    view.pdfPrintingFinished.connect(lambda part, _: os.rename(part, printed))
    view.show()
    application.exec()


if __name__ == "__main__":
    main()
