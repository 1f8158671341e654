"""Draw the top of a report as a PNG, with what `./scons test` installs:

PYTHONPATH=tests/support .venv/bin/python docs/images/page.py build/B/resnet8/report.html#train_step-80 report.png
"""

import base64
import sys
from pathlib import Path

from browser import Browser


def png(path: str, fragment: str) -> bytes:
    browser = Browser()
    try:
        browser.window(1080, 1250)
        browser.open(f"{Path(path).resolve().as_uri()}#{fragment}")
        browser.run("scrollTo(0, 0)")
        return base64.b64decode(browser.command("Page.captureScreenshot", format="png")["data"])
    finally:
        browser.close()


if __name__ == "__main__":
    page, _, step = sys.argv[1].partition("#")
    Path(sys.argv[2]).write_bytes(png(page, step))
