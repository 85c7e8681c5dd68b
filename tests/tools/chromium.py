"""A real Chromium without a screen, as the tests of the report drive it: with a fresh profile, and without what it asks
the network for by itself.
"""

from __future__ import annotations

import os
import shutil
import tempfile
import time
from collections.abc import Generator
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from typing import Any

BROWSERS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
FLAGS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--disable-dev-shm-usage",
    "--window-size=1280,900",
)


def program(*names: str) -> str:
    """The path of the first of these programs that is there."""
    found = next(filter(None, map(shutil.which, names)), None)
    assert found is not None, f"{' or '.join(names)} is missing: sh .ci/browser installs it, or says how"
    return found


class Browser:
    """One window of Chromium."""

    def __init__(self, driver: Any) -> None:
        self.driver = driver
        self.keys: Any = import_module("selenium.webdriver.common.keys").Keys

    def open(self, page: Path, fragment: str = "") -> None:
        """Shows a page anew."""
        self.driver.get("about:blank")
        self.driver.get(page.as_uri() + fragment)

    def wait(self, script: str) -> None:
        """Waits until a script in the page says true."""
        for _ in range(200):
            if self.run(script) is True:
                return
            time.sleep(0.03)
        raise AssertionError(f"never true: {script}")

    def run(self, script: str, *arguments: object) -> Any:
        """The result of a script in the page."""
        return self.driver.execute_script(script, *arguments)

    def text(self, selector: str) -> str:
        """The text that is to be seen in the first element that a selector finds."""
        return str(self.driver.find_element("css selector", selector).text)

    def click(self, selector: str) -> None:
        """A click of the mouse on the first element that a selector finds."""
        self.driver.find_element("css selector", selector).click()

    def press(self, *keys: str) -> None:
        """Keys, pressed one after the other, wherever the focus is."""
        actions = self.actions()
        for key in keys:
            actions.send_keys(key)
        actions.perform()

    def actions(self) -> Any:
        return import_module("selenium.webdriver.common.action_chains").ActionChains(self.driver, duration=0)

    def focused(self, attribute: str) -> str:
        """An attribute of what has the focus."""
        return str(self.run("return document.activeElement.getAttribute(arguments[0]) ?? ''", attribute))

    def command(self, name: str, **parameters: Any) -> None:
        """A command of the browser's own protocol."""
        self.driver.execute_cdp_cmd(name, parameters)

    def screen(self, width: int, height: int) -> None:
        self.command(
            "Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=False
        )

    def prefer(self, scheme: str) -> None:
        self.command("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": scheme}])

    def said(self) -> list[str]:
        """What was written to the console since it was asked last."""
        return [str(line["message"]) for line in self.driver.get_log("browser")]


def marks(browser: Browser, wanted: str) -> list[str]:
    """The names of the marks that hold a text."""
    script = "return [...document.querySelectorAll('.mark')].map((one) => one.getAttribute('aria-label'))"
    return [name for name in browser.run(script) if wanted in name]


def click_mark(browser: Browser, name: str) -> None:
    """A click of the mouse on the mark of this name, as far as nothing lies over it."""
    find = "[...document.querySelectorAll('.mark')].find((one) => one.getAttribute('aria-label') === arguments[0])"
    mark = browser.run(
        f"const mark = {find}; mark.closest('.lane').scrollIntoView({{ block: 'center' }}); return mark", name
    )
    browser.actions().move_to_element(mark).click().perform()


@contextmanager
def chromium() -> Generator[Browser]:
    """A browser, ended afterwards, with all that it wrote."""
    webdriver: Any = import_module("selenium.webdriver")
    options = webdriver.ChromeOptions()
    options.binary_location = program(*BROWSERS)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    with tempfile.TemporaryDirectory(prefix="chromium-", ignore_cleanup_errors=True) as profile:
        for flag in (*FLAGS, f"--user-data-dir={profile}"):
            options.add_argument(flag)
        environment = os.environ | {"SE_OFFLINE": "true", "SE_AVOID_STATS": "true"}
        driver = webdriver.Chrome(
            options=options, service=webdriver.ChromeService(program("chromedriver"), env=environment)
        )
        try:
            yield Browser(driver)
        finally:
            driver.quit()
