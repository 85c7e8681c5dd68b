"""The status page in a real browser: it asks for the token, shows what there is as it changes, and explains."""

from __future__ import annotations

from collections.abc import Generator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import NamedTuple

import pytest

from duly import Cron, ManualClock, Scheduler
from duly.service import Server
from duly.tools.describe import describe_entry
from tests.service.serving import SECRET, Served, serving
from tests.tools.chromium import Browser, chromium

pytestmark = pytest.mark.browser
NINE = datetime(2026, 3, 2, 9, 0, tzinfo=UTC)
HOSTILE = "<img src=x onerror=\"document.title='broken'\"><script>document.title='broken'</script>"


class World(NamedTuple):
    scheduler: Scheduler
    clock: ManualClock
    served: Served

    @property
    def url(self) -> str:
        return f"http://{self.served.address}/"


@pytest.fixture
def world(tmp_path: Path) -> Generator[World]:
    clock = ManualClock(NINE)
    with (
        Scheduler.open(tmp_path / "j", clock=clock) as scheduler,
        serving(scheduler, tmp_path, words=describe_entry) as served,
    ):
        scheduler.create("hourly", Cron("0 * * * *", zone="UTC"), target="work")
        scheduler.create("daily", Cron("0 4 * * *", zone="Europe/Berlin"), target=HOSTILE, actor=HOSTILE)
        scheduler.block("daily", HOSTILE)
        clock.advance(timedelta(hours=1))
        (run,) = scheduler.poll(start=True).offered
        scheduler.fail(run.id, error=HOSTILE)
        yield World(scheduler, clock, served)


@pytest.fixture(scope="module")
def window() -> Generator[Browser]:
    with chromium() as browser:
        yield browser


@pytest.fixture
def browser(window: Browser) -> Generator[Browser]:
    window.screen(1280, 900)
    window.prefer("light")
    window.said()
    yield window
    said = [one for one in window.said() if "401" not in one]  # a wrong token is answered so
    assert said == []


def shown(browser: Browser, table: str) -> list[list[str]]:
    cells = "[...row.children].map((cell) => cell.textContent)"
    rows: list[list[str]] = browser.run(f"return [...document.querySelectorAll('#{table} tr')].map((row) => {cells})")
    return rows


def look(browser: Browser, world: World) -> None:
    browser.driver.get("about:blank")
    browser.driver.get(f"{world.url}#token={SECRET}")
    browser.wait("return !document.getElementById('shown').hidden && document.querySelectorAll('#runs tr').length > 0")


def test_it_asks_for_the_token_and_keeps_it_in_its_tab(browser: Browser, world: World):
    browser.driver.get(world.url)
    browser.wait("return !document.getElementById('gate').hidden")
    assert browser.run("return document.activeElement.id") == "token"
    browser.press("wrong-token-wrong-token", browser.keys.ENTER)
    browser.wait("return document.getElementById('refused').textContent !== ''")
    assert browser.text("#refused") == "the token is not this service's"
    assert browser.run("return document.getElementById('shown').hidden") is True
    browser.press(SECRET, browser.keys.ENTER)
    browser.wait("return !document.getElementById('shown').hidden")
    browser.driver.refresh()
    browser.wait("return !document.getElementById('shown').hidden")
    browser.run("sessionStorage.clear()")


def test_it_shows_schedules_runs_and_decisions(browser: Browser, world: World):
    look(browser, world)
    assert browser.driver.current_url == world.url  # the token is in no history
    assert shown(browser, "schedules") == [
        ["daily", "0 4 * * * Europe/Berlin", HOSTILE, f"blocked: {HOSTILE}", "", ""],
        ["hourly", "0 * * * * UTC", "work", "live", "2026-03-02 11:00:00", ""],
    ]
    assert shown(browser, "runs") == [["5", "hourly", "2026-03-02 10:00:00", "failed", "2026-03-02 10:00:00", HOSTILE]]
    decisions = shown(browser, "decisions")
    assert [row[0] for row in decisions] == ["7", "6", "5", "4", "3", "2", "1"]
    assert decisions[2] == ["5", "2026-03-02 10:00:00", "hourly", "admitted 2026-03-02T10:00:00Z"]
    assert browser.run("return document.title").endswith("duly status")
    assert browser.run("return document.images.length") == 0


def test_every_schedule_has_its_next_due_however_far_away(browser: Browser, world: World):
    world.scheduler.create("minutely", Cron("* * * * *", zone="UTC"), target="work")
    world.scheduler.create("monthly", Cron("0 3 1 * *", zone="UTC"), target="work")
    look(browser, world)
    assert [(row[0], row[4]) for row in shown(browser, "schedules")] == [
        ("daily", ""),  # it is blocked
        ("hourly", "2026-03-02 11:00:00"),
        ("minutely", "2026-03-02 10:01:00"),
        ("monthly", "2026-04-01 03:00:00"),
    ]


def test_an_interrupted_run_says_what_to_do(browser: Browser, world: World):
    run = world.scheduler.run_now("hourly")
    world.scheduler.start(run.id)
    world.scheduler.interrupt(run.id)
    look(browser, world)
    (row,) = [row for row in shown(browser, "runs") if row[3] == "interrupted"]
    assert row[5].endswith(f"until: duly ctl resume {run.id}, or duly ctl abandon {run.id}")


def test_without_a_token_file_it_says_at_once_that_only_watching_is_on(browser: Browser, world: World):
    with Server.open(world.scheduler, "127.0.0.1:0") as server:
        browser.driver.get(f"http://{server.address}/")
        browser.wait("return document.getElementById('facts').textContent === 'ready'")
        assert browser.run("return document.querySelector('main').innerText").startswith("Only watching is on\n")
        assert browser.run("return document.getElementById('gate').hidden") is True
        browser.driver.get("about:blank")


def test_it_is_live(browser: Browser, world: World):
    look(browser, world)
    world.scheduler.pause("hourly")
    world.scheduler.create("new", Cron("30 * * * *", zone="UTC"), target="work")
    browser.wait("return document.querySelectorAll('#schedules tr').length === 3")
    assert [row[3] for row in shown(browser, "schedules")][1:] == ["paused", "live"]
    world.scheduler.close()
    browser.wait("return document.getElementById('facts').textContent.includes('problem')")


def test_it_explains_by_keys_alone_and_gives_the_focus_back(browser: Browser, world: World):
    look(browser, world)
    browser.run("document.querySelector('#runs [data-key]').focus()")
    browser.press(browser.keys.ENTER)
    browser.wait("return !document.getElementById('panel').hidden")
    assert browser.text("#subject") == "hourly@2026-03-02T10:00:00Z"
    assert browser.text("#became") == "admitted"
    lines = browser.run("return [...document.querySelectorAll('#lines dt')].map((one) => one.textContent)")
    assert lines[:1] == ["rule"]
    assert HOSTILE in browser.run("return document.getElementById('lines').textContent")
    browser.press(browser.keys.ESCAPE)
    assert browser.run("return document.getElementById('panel').hidden") is True
    assert browser.focused("data-key").startswith("2026-03-02 10:00:00|hourly")
    browser.wait("return document.activeElement.dataset.key !== undefined")  # also after the next look


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_it_fits_a_phone_and_both_schemes(browser: Browser, world: World, scheme: str):
    browser.screen(390, 800)
    browser.prefer(scheme)
    look(browser, world)
    assert browser.run("return document.documentElement.scrollWidth <= innerWidth") is True
    paper = browser.run("return getComputedStyle(document.body).backgroundColor")
    assert paper == {"light": "rgb(247, 246, 242)", "dark": "rgb(17, 21, 27)"}[scheme]
