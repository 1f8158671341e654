"""Draw the top of a report as a PNG: `python docs/images/page.py build/B/resnet8/report.html#train_step-80 report.png`.

Needs chromium, chromium-driver and selenium, which `./scons test` installs.
"""

import base64
import sys
from pathlib import Path

from selenium import webdriver
from selenium.webdriver.chrome.service import Service

WIDTH, HEIGHT = 1080, 1250


def png(path: str, fragment: str) -> bytes:
    options = webdriver.ChromeOptions()
    for flag in ("headless=new", "no-sandbox", "disable-gpu", "hide-scrollbars"):
        options.add_argument(f"--{flag}")
    options.binary_location = "/usr/bin/chromium"
    driver = webdriver.Chrome(options, Service("/usr/bin/chromedriver"))
    try:
        size = {"width": WIDTH, "height": HEIGHT, "deviceScaleFactor": 1, "mobile": False}
        driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
        driver.get(f"{Path(path).resolve().as_uri()}#{fragment}")
        driver.execute_script("scrollTo(0, 0)")
        return base64.b64decode(driver.execute_cdp_cmd("Page.captureScreenshot", {"format": "png"})["data"])
    finally:
        driver.quit()


if __name__ == "__main__":
    page, _, step = sys.argv[1].partition("#")
    Path(sys.argv[2]).write_bytes(png(page, step))
