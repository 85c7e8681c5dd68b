"""The page of `duly report` in a real browser: it renders, it explains, keys alone are enough, and nothing of a journal
runs in it.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator
from pathlib import Path

import pytest

from duly.scheduler.explaining import explain
from duly.scheduler.reporting import report_data
from duly.tools.describe import describe_entry
from duly.tools.explain_command import explanation_lines, headline, zone_of_rule
from duly.tools.moments import parse_instant
from duly.tools.printable import printable
from duly.tools.report_page import render_page
from tests.tools.chromium import Browser, chromium, click_mark, marks
from tests.tools.hostile import make_hostile
from tests.tools.many import make_many, make_seventy_years
from tests.tools.recorded import make_recorded

pytestmark = pytest.mark.browser

Pages = dict[str, Path]


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> Pages:
    """A page of each journal, by its name."""
    folder = tmp_path_factory.mktemp("pages")
    journals = {
        "recorded": make_recorded(folder / "recorded"),
        "hostile": make_hostile(folder / "hostile"),
        "many": make_many(folder / "many"),
        "minutely": make_many(folder / "minutely", schedules=2, days=12, minutely=2),
        "empty": make_many(folder / "empty", schedules=0, days=0),
        "seventy-years": make_seventy_years(folder / "seventy-years"),
    }
    for name, journal in journals.items():
        page = render_page(report_data(journal, most_shown=600 if name == "minutely" else 5_000), str(journal))
        (folder / f"{name}.html").write_text(page, encoding="utf-8")
    return {name: folder / f"{name}.html" for name in journals}


@pytest.fixture(scope="module")
def window() -> Generator[Browser]:
    with chromium() as browser:
        yield browser


@pytest.fixture
def browser(window: Browser) -> Iterator[Browser]:
    """The browser in its usual state; whatever a test did in it, nothing was written to the console."""
    window.screen(1280, 900)
    window.prefer("light")
    window.said()
    yield window
    assert window.said() == []


def focus_in_timeline(browser: Browser) -> str:
    """Puts the focus where Tab would bring it, and says on which mark it is."""
    browser.run("document.querySelector('#lanes .mark[tabindex=\"0\"]').focus()")
    return browser.focused("aria-label")


def panel_lines(browser: Browser) -> list[tuple[str, str]]:
    """What the panel says, line by line."""
    children = "[...one.children].map((child) => child.textContent)"
    script = f"return [...document.querySelectorAll('#panel dl > div')].map((one) => {children})"
    return [(name, text) for name, text in browser.run(script)]


def words_of(journal: Path, schedule_id: str, instant: str) -> list[tuple[str, str]]:
    """What `duly explain` says."""
    [one] = [one for one in report_data(journal).schedules if one.id == schedule_id]
    assert one.definition is not None
    explanation = explain(journal, schedule_id, parse_instant(instant))
    lines = explanation_lines(explanation, zone_of_rule(one.definition.trigger), str(journal))
    return [(name, printable(text)) for name, text in lines]


def test_the_page_renders_and_asks_the_network_for_nothing(browser: Browser, pages: Pages):
    browser.open(pages["recorded"])
    assert browser.run("return [...document.querySelectorAll('.lane strong')].map((one) => one.textContent)") == [
        "capped",
        "gone",
        "hourly",
        "nightly",
        "often",
        "once",
        "tally",
        "by hand",
    ]
    assert browser.run("return [...document.querySelectorAll('main h2')].map((one) => one.textContent)") == [
        "Totals",
        "Needs attention",
        "Calendar",
        "Timeline",
        "Occurrences as a table",
        "Schedules",
    ]
    assert "47" in browser.text(".tiles")
    told = "1\u201350 of 50 (47 occurrences and 3 runs by hand) in the visible time, newest first"
    assert browser.text("#table-count") == told
    assert browser.run("return performance.getEntriesByType('resource').length") == 0


@pytest.mark.parametrize(
    ("schedule_id", "instant"),
    [
        ("nightly", "2026-03-28T01:30:00Z"),
        ("hourly", "2026-03-28T05:00:00Z"),
        ("capped", "2026-03-29T04:10:00Z"),
        ("tally", "2026-03-29T04:00:00Z"),
        ("capped", "2026-03-29T10:10:00Z"),
        ("once", "2026-03-28T00:20:00Z"),
    ],
)
def test_a_click_shows_the_words_of_explain(browser: Browser, pages: Pages, schedule_id: str, instant: str):
    browser.open(pages["recorded"])
    moment = instant[:-4].replace("T", " ")
    there = marks(browser, f"{schedule_id}, {moment} UTC: ")
    [name] = [name for name in there if not name.endswith("changes") and " created: " not in name]
    click_mark(browser, name)
    assert browser.text("#panel .subject") == f"{schedule_id}@{instant}"
    assert panel_lines(browser) == words_of(pages["recorded"].with_suffix(""), schedule_id, instant)
    expected = headline(explain(pages["recorded"].with_suffix(""), schedule_id, parse_instant(instant)))
    assert browser.text("#panel h3").startswith(expected)
    assert browser.text("#panel dd") in browser.run("return document.getElementById('announced').textContent")


def test_a_mark_that_stands_for_many_lists_them_and_zooms(browser: Browser, pages: Pages):
    browser.open(pages["recorded"])
    [name] = marks(browser, "often, 2026-03-28 00:15 to")
    click_mark(browser, name)
    assert browser.text("#panel h3") == "4 occurrences"
    assert "admitted, failed" in browser.text("#panel")
    browser.click("#panel .tools .button")
    assert [name for name in marks(browser, "often, 2026-03-28 0") if "skipped" in name or "admitted" in name][:4] == [
        "often, 2026-03-28 00:15 UTC: admitted, failed",
        "often, 2026-03-28 00:30 UTC: skipped (overlap)",
        "often, 2026-03-28 00:45 UTC: admitted, completed",
        "often, 2026-03-28 01:00 UTC: skipped (overlap)",
    ]
    browser.click("#panel li .link")
    assert browser.text("#panel .subject") == "often@2026-03-28T00:15:00Z"


def test_the_timeline_is_used_with_keys_alone(browser: Browser, pages: Pages):
    keys = browser.keys
    browser.open(pages["recorded"])
    assert browser.run("return document.querySelectorAll('#lanes [tabindex=\"0\"]').length") == 1
    first = focus_in_timeline(browser)
    assert first.startswith("capped, ")
    assert browser.run("return getComputedStyle(document.activeElement.querySelector('.halo')).strokeWidth") == "2px"
    browser.press(keys.ARROW_RIGHT)
    second = browser.focused("aria-label")
    assert second.startswith("capped, ")
    assert second != first
    browser.press(keys.ARROW_LEFT)
    assert browser.focused("aria-label") == first
    browser.press(keys.END)
    assert browser.focused("aria-label") != first
    browser.press(keys.HOME)
    assert browser.focused("aria-label") == first
    browser.press(keys.ARROW_DOWN)
    assert browser.focused("aria-label").startswith("gone, ")
    browser.press(keys.ARROW_DOWN, keys.ARROW_DOWN, keys.END)
    assert browser.focused("aria-label").startswith("nightly, 2026-03-31")
    assert browser.run("return document.querySelectorAll('#lanes [tabindex=\"0\"]').length") == 1
    browser.press(keys.ENTER)
    assert browser.text("#panel .subject").startswith("nightly@2026-03-31T")
    assert browser.focused("aria-pressed") == "true"
    browser.press(keys.ESCAPE)
    assert browser.run("return document.getElementById('panel').hidden") is True
    assert browser.focused("aria-label").startswith("nightly, 2026-03-31")
    browser.press("+")
    assert browser.focused("aria-label").startswith("nightly, 2026-03-31")
    assert not browser.text("#visible").startswith("2026-03-27")
    browser.press("0")
    assert browser.text("#visible").startswith("2026-03-27")


def test_tab_comes_to_the_timeline_once_and_leaves_it(browser: Browser, pages: Pages):
    browser.open(pages["many"])
    browser.run("document.getElementById('search').focus()")
    for _ in range(6):
        browser.press(browser.keys.TAB)
        if browser.focused("class") == "mark":
            break
    assert browser.focused("class") == "mark"
    browser.press(browser.keys.TAB)
    assert browser.focused("class") != "mark"


def test_a_search_filters_lanes_marks_and_table(browser: Browser, pages: Pages):
    browser.open(pages["recorded"])
    browser.click("#search")
    browser.press("OSError")
    browser.wait("return [...document.querySelectorAll('.lane')].filter((one) => !one.hidden).length === 1")
    assert browser.text(".lane:not([hidden]) strong") == "often"
    became = "return [...document.querySelectorAll('#rows td:nth-child(3)')].map((one) => one.textContent)"
    assert browser.run(became) == ["skipped (overlap)", "failed"]  # the one that failed, and what it blocked
    browser.press(*[browser.keys.BACKSPACE] * 7, "there is none of this")
    browser.wait("return !document.getElementById('nothing').hidden")
    assert browser.text("#table-count") == "No occurrence matches in the visible time"
    browser.press(*[browser.keys.BACKSPACE] * 30, "Europe/Berlin")
    browser.wait("return [...document.querySelectorAll('.lane')].filter((one) => !one.hidden).length === 1")
    assert browser.text(".lane:not([hidden]) strong") == "nightly"


def test_an_outcome_can_be_left_out(browser: Browser, pages: Pages):
    browser.open(pages["recorded"])
    assert len(marks(browser, "superseded")) > 20
    browser.click("[data-outcome='superseded']")
    assert [name for name in marks(browser, "superseded") if "hourly" in name and "occurrences" not in name] == []
    assert browser.run("return document.querySelector('[data-outcome=superseded]').ariaPressed") == "false"
    browser.click("[data-outcome='superseded']")
    assert len(marks(browser, "superseded")) > 20


def test_dragging_zooms(browser: Browser, pages: Pages):
    browser.open(pages["many"])
    before = browser.text("#visible")
    lane = browser.driver.find_element("css selector", ".lane svg")
    browser.run("arguments[0].scrollIntoView({ block: 'center' })", lane)
    browser.actions().move_to_element_with_offset(lane, -300, 12).click_and_hold().move_by_offset(
        200, 0
    ).release().perform()
    assert browser.text("#visible") != before
    assert browser.run("return document.getElementById('panel').hidden") is True
    browser.click("#whole")
    assert browser.text("#visible") == before


def test_the_calendar_is_used_with_keys_and_shows_a_day(browser: Browser, pages: Pages):
    keys = browser.keys
    browser.open(pages["many"])
    assert browser.run("return document.querySelectorAll('#calendar [tabindex=\"0\"]').length") == 1
    browser.run("document.querySelector('#calendar [tabindex=\"0\"]').focus()")
    browser.press(keys.ARROW_LEFT, keys.ARROW_UP)
    assert browser.focused("aria-label").startswith("Tue 24 Mar 2026: 50 occurrences, ")
    browser.press(keys.ENTER)
    assert browser.text("#visible").startswith("2026-03-23 22:48 to 2026-03-25 01:12 UTC")
    assert browser.focused("class") == "mark"


def test_the_calendar_leaves_out_long_times_without_an_occurrence(browser: Browser, pages: Pages):
    browser.open(pages["seventy-years"])
    days = browser.run(
        "return [...document.querySelectorAll('.weeks .day')].map((one) => one.getAttribute('aria-label'))"
    )
    assert [day.split(":")[0] for day in days] == ["Tue 3 Mar 2026", "Tue 14 Feb 2096"]
    months = "return [...document.querySelectorAll('.month')].map((one) => one.textContent)"
    assert browser.run(months) == ["Mar 2026", "Feb 2096"]
    assert len(marks(browser, "a, ")) >= 2


def test_a_journal_in_which_nothing_happened_has_a_page(browser: Browser, pages: Pages):
    browser.open(pages["empty"])
    assert browser.text("#calendar") == "No occurrence was decided."
    assert browser.text("#nothing") == "Nothing matches."
    assert browser.text("#table-count") == "No occurrence matches in the visible time"


def test_light_and_dark_follow_the_system_until_somebody_chooses(browser: Browser, pages: Pages):
    background = "return getComputedStyle(document.body).backgroundColor"
    browser.open(pages["recorded"])
    light = browser.run(background)
    browser.prefer("dark")
    dark = browser.run(background)
    assert (light, dark) == ("rgb(247, 246, 242)", "rgb(17, 21, 27)")
    assert browser.text("#theme") == "Light"
    browser.click("#theme")
    assert browser.run(background) == light
    browser.click("#theme")
    assert browser.run(background) == dark
    browser.run("localStorage.clear()")


def test_an_address_with_an_occurrence_opens_its_explanation(browser: Browser, pages: Pages):
    browser.open(pages["many"], "#daily-07@2026-02-03T11:49:00Z")
    assert browser.text("#panel .subject") == "daily-07@2026-02-03T11:49:00Z"


def test_nothing_that_a_journal_says_runs(browser: Browser, pages: Pages):
    browser.open(pages["hostile"])
    title = browser.run("return document.title")
    shown = browser.run(
        "let shown = ''; const panel = document.getElementById('panel');"
        "const click = () => new MouseEvent('click', { bubbles: true });"
        "const look = (one) => { one.dispatchEvent(click()); shown += panel.textContent; };"
        "const open = (mark) => { look(mark); return panel.querySelectorAll('li .link').length; };"
        "for (const mark of document.querySelectorAll('.mark')) for (let at = 0, all = open(mark); at < all; at++) {"
        " open(mark); look(panel.querySelectorAll('li .link')[at]); } return shown"
    )
    assert "error </script><script>document.title='owned'</script><img src=x onerror=" in shown
    assert "{{7*7}}" in shown
    assert (
        browser.run("return [...document.querySelectorAll('img, iframe, a[href^=javascript], [onerror]')].length") == 0
    )
    assert browser.run("return document.title") == title
    assert "owned" not in title


def test_the_policy_stops_what_would_get_past_the_escaping(window: Browser, pages: Pages):
    window.open(pages["recorded"])
    window.run(
        "const script = document.createElement('script'); script.textContent = 'document.title = \"owned\"';"
        "document.body.append(script); document.body.insertAdjacentHTML('beforeend',"
        ' \'<img src="https://example.invalid/x.png" onerror="document.title = 1">\')'
    )
    assert "owned" not in window.run("return document.title")
    complaints = " ".join(window.said())
    assert "script-src" in complaints
    assert "img-src" in complaints


@pytest.mark.parametrize("width", [390, 1280])
@pytest.mark.parametrize("name", ["recorded", "hostile", "many", "minutely", "seventy-years"])
def test_nothing_lies_beyond_the_edge_of_the_screen(browser: Browser, pages: Pages, name: str, width: int):
    browser.screen(width, 900)
    browser.open(pages[name])
    beyond = "return document.documentElement.scrollWidth - document.documentElement.clientWidth"
    assert browser.run(beyond) == 0
    browser.run("document.querySelector('.mark').dispatchEvent(new MouseEvent('click', { bubbles: true }))")
    assert browser.run("return document.getElementById('panel').hidden") is False
    assert browser.run(beyond) == 0


@pytest.mark.parametrize("name", ["many", "minutely"])
def test_a_large_report_draws_few_elements(browser: Browser, pages: Pages, name: str):
    browser.open(pages[name])
    browser.run("for (const lane of document.querySelectorAll('.lane')) lane.scrollIntoView()")
    browser.wait("return [...document.querySelectorAll('.lane')].at(-1).querySelector('.mark') !== null")
    assert browser.run("return document.querySelectorAll('*').length") < 25_000
    most = (
        "return Math.max(...[...document.querySelectorAll('.lane')].map((one) => one.querySelectorAll('.mark').length))"
    )
    assert browser.run(most) <= 260
    assert browser.run("return document.querySelectorAll('#rows tr').length") == 50


def test_what_is_only_counted_says_how_to_see_it(browser: Browser, pages: Pages):
    browser.open(pages["minutely"])
    name = marks(browser, "every-minute-0, 2026-01-05 ")[0]
    click_mark(browser, name)
    assert "of them are only counted in this page" in browser.text("#panel")
    journal = pages["minutely"].with_suffix("")
    again = f"duly report -j {journal} -o report.html --schedule every-minute-0 --since 2026-01-05T"
    assert browser.text("#panel .command").startswith(again)
    assert "bins of 3h" in browser.text("#left-out")


def test_without_scripts_the_totals_and_the_schedules_are_there(browser: Browser, pages: Pages):
    browser.command("Emulation.setScriptExecutionDisabled", value=True)
    try:
        browser.open(pages["recorded"])
        text = browser.driver.find_element("css selector", "main").text
        assert "need scripts" in text
        assert "hourly is blocked (operator): its host is gone" in text
        assert "nightly" in browser.text("section[aria-labelledby=schedules-title]")
        assert "Timeline" not in text
    finally:
        browser.command("Emulation.setScriptExecutionDisabled", value=False)


def test_whatever_can_be_pressed_has_a_name(browser: Browser, pages: Pages):
    browser.open(pages["recorded"])
    nameless = (
        "return [...document.querySelectorAll('button, [role=button], [role=group], [role=region], select, input')]"
        ".filter((one) => !(one.ariaLabel || one.getAttribute('aria-labelledby') || one.textContent.trim()"
        " || one.closest('label')?.textContent.trim())).length"
    )
    assert browser.run(nameless) == 0
    assert browser.run(
        "return ['h1', 'main', 'header', 'footer'].map((tag) => document.querySelectorAll(tag).length)"
    ) == [
        1,
        1,
        1,
        1,
    ]


def test_a_change_of_a_schedule_and_a_run_by_hand_are_told(browser: Browser, pages: Pages):
    journal = pages["recorded"].with_suffix("")
    browser.open(pages["recorded"])
    [hourly] = [one for one in report_data(journal).schedules if one.id == "hourly"]
    edited = next(step for step in hourly.acts if step.entry.__struct_config__.tag == "ScheduleEdited")
    told = "return Duly.schedules.find((one) => one.id === 'hourly').acts.map((one) => Duly.text(one.head))"
    assert printable(describe_entry(edited.entry)) in browser.run(told)
    assert len(marks(browser, "nightly, 2026-03-28 00:30 UTC: run by hand, completed")) == 1
