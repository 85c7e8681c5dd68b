"""duly report: what it writes, what it refuses, how large it gets, and that no text in a journal becomes markup."""

from __future__ import annotations

import base64
import hashlib
import json
import os
import re
import shutil
import sys
from html.parser import HTMLParser
from importlib.resources import files
from io import BytesIO, TextIOWrapper
from pathlib import Path
from typing import Any

import pytest

from duly import Scheduler
from duly.scheduler.explaining import explain_all
from duly.scheduler.reporting import report_data
from duly.tools.cli import main
from duly.tools.explain_command import explanation_lines, zone_of_rule
from duly.tools.printable import printable
from duly.tools.report_command import write_whole
from duly.tools.report_data import script_json
from duly.tools.report_page import render_page
from tests.tools.conftest import Duly
from tests.tools.eventful import HOSTILE
from tests.tools.hostile import make_hostile
from tests.tools.many import make_many
from tests.tools.recorded import make_recorded

PLAIN = ("completed", "failed", "abandoned", "open", "skipped", "superseded", "held", "waiting")
"""The colours that are named after outcomes."""


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The journal in which everything happens. It is only read."""
    return make_recorded(tmp_path_factory.mktemp("recorded") / "journal")


@pytest.fixture(scope="module")
def many(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Fifty schedules over ninety days. It is only read."""
    return make_many(tmp_path_factory.mktemp("many") / "journal")


class Page(HTMLParser):
    """What a page is made of: the elements, and what its scripts and styles hold."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str]]] = []
        self.texts: list[str] = []
        self.inside: list[tuple[str, dict[str, str], str]] = []
        self._open: tuple[str, dict[str, str]] | None = None
        self.feed(text)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        attributes = {name: value or "" for name, value in attrs}
        self.elements.append((tag, attributes))
        self._open = (tag, attributes) if tag in {"script", "style"} else None

    def handle_endtag(self, tag: str) -> None:
        self._open = None

    def handle_data(self, data: str) -> None:
        if self._open is not None:
            self.inside.append((*self._open, data))
        else:
            self.texts.append(data)

    @property
    def data(self) -> dict[str, Any]:
        [text] = [text for _, attributes, text in self.inside if attributes.get("id") == "data"]
        loaded: dict[str, Any] = json.loads(text)
        return loaded

    @property
    def policy(self) -> str:
        [policy] = [one["content"] for _, one in self.elements if one.get("http-equiv") == "Content-Security-Policy"]
        return policy


def page_of(journal: Path) -> Page:
    return Page(render_page(report_data(journal), str(journal)))


def lines_of(data: dict[str, Any], numbers: list[int]) -> list[tuple[str, str]]:
    texts = [data["texts"][number] for number in numbers]
    return list(zip(texts[::2], texts[1::2], strict=True))


def test_a_page_is_written_and_a_report_is_replaced(recorded: Path, duly: Duly, tmp_path: Path):
    target = tmp_path / "report.html"
    before = {path.name: path.read_bytes() for path in recorded.rglob("*") if path.is_file()}
    answer = duly("report", recorded, "-o", target)
    size = target.stat().st_size
    assert (answer.code, answer.err) == (0, "")
    assert answer.out == (
        f"{target}: 7 schedules, 47 occurrences, 2026-03-28T00:00:00Z to 2026-03-31T07:00:00Z, {size:,} bytes\n"
    )
    document = duly("report", "-j", recorded, "-o", target, "--json", "-s", "often", "-s", "once").document
    assert document | {"bytes": 0, "anchor": "", "journal_id": ""} == {
        "schema": "duly.report/1",
        "file": str(target),
        "bytes": 0,
        "journal_id": "",
        "anchor": "",
        "entries": 201,
        "lost": 0,
        "since": "2026-03-28T00:00:00Z",
        "until": "2026-03-29T10:12:00Z",
        "now": "2026-03-29T10:12:00Z",
        "schedules": 2,
        "occurrences": 6,
        "shown": 6,
        "counts": dict.fromkeys(("abandoned", "open", "superseded", "held", "waiting"), 0)
        | {"completed": 3, "failed": 1, "skipped": 2},
        "anomalies": 0,
        "clock_regressions": 1,
    }
    assert target.stat().st_size < size
    assert [path.name for path in tmp_path.iterdir()] == ["report.html"]
    assert {path.name: path.read_bytes() for path in recorded.rglob("*") if path.is_file()} == before


def test_the_same_record_gives_the_same_page(recorded: Path, duly: Duly, tmp_path: Path):
    duly("report", recorded, "-o", tmp_path / "a.html")
    duly("report", recorded, "-o", tmp_path / "b.html")
    assert (tmp_path / "a.html").read_bytes() == (tmp_path / "b.html").read_bytes()


def test_another_file_is_replaced_only_if_that_is_asked_for(recorded: Path, duly: Duly, tmp_path: Path):
    target = tmp_path / "precious.txt"
    target.write_text("precious", encoding="utf-8")
    answer = duly("report", recorded, "-o", target)
    assert (answer.code, target.read_text(encoding="utf-8")) == (2, "precious")
    assert "is there already and is no report: name another file, or say --force" in answer.err
    assert duly("report", recorded, "-o", target, "--force").code == 0
    assert target.read_text(encoding="utf-8").startswith("<!doctype html>")


def test_nothing_is_written_into_the_journals_folder(recorded: Path, duly: Duly, tmp_path: Path):
    copy = tmp_path / "journal"
    shutil.copytree(recorded, copy)
    [segment] = copy.glob("*.jsonl")
    before = {path.name: path.read_bytes() for path in copy.iterdir()}
    targets = [segment, copy / "report.html", tmp_path / "other" / ".." / "journal" / "report.html"]
    if os.name != "nt":  # there a link takes a privilege
        (tmp_path / "link").symlink_to(copy)
        targets.append(tmp_path / "link" / "report.html")
    for target in targets:
        answer = duly("report", copy, "-o", target, "--force")
        assert (answer.code, "lies in the journal's folder" in answer.err) == (2, True)
    assert {path.name: path.read_bytes() for path in copy.iterdir()} == before
    Scheduler.open(other := tmp_path / "another").close()
    answer = duly("report", copy, "-o", other / "LOCK", "--force")
    assert (answer.code, "in the folder of a journal" in answer.err, (other / "LOCK").read_bytes()) == (2, True, b"")


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["-o", "-", "--json"], "no room for JSON"),
        (["-o", "DIR"], "is a folder"),
        (["-o", "DIR/r.html", "--since", "2026-03-29T00:00:00Z", "--until", "2026-03-28T00:00:00Z"], "lies before"),
        (["-o", "DIR/r.html", "-s", "oftn"], "The nearest: often"),
        ([], "Missing option"),
    ],
)
def test_usage_is_refused_with_its_remedy(options: list[str], said: str, recorded: Path, duly: Duly, tmp_path: Path):
    answer = duly("report", recorded, *(option.replace("DIR", str(tmp_path)) for option in options))
    assert (answer.code, answer.out) == (2, "")
    assert said in answer.err
    assert list(tmp_path.iterdir()) == []


def test_a_page_that_cannot_be_finished_leaves_what_was_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    target = tmp_path / "report.html"
    write_whole(target, "first")

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="No space"):
        write_whole(target, "second")
    assert {path.name: path.read_text(encoding="utf-8") for path in tmp_path.iterdir()} == {"report.html": "first"}


def test_a_page_goes_to_standard_output_as_utf_8(recorded: Path, monkeypatch: pytest.MonkeyPatch):
    written = BytesIO()
    stream = TextIOWrapper(written, encoding="ascii")
    monkeypatch.setattr(sys, "stdout", stream)
    assert main(["report", str(recorded), "-o", "-"]) == 0
    stream.flush()
    assert written.getvalue().decode() == render_page(report_data(recorded), str(recorded))


def test_no_damage_anywhere_leaves_half_a_page(recorded: Path, duly: Duly, tmp_path: Path):
    [segment] = recorded.glob("*.jsonl")
    content = segment.read_bytes()
    copy, target = tmp_path / "copy", tmp_path / "report.html"
    for place in range(0, len(content), len(content) // 12):
        shutil.rmtree(copy, ignore_errors=True)
        target.unlink(missing_ok=True)
        shutil.copytree(recorded, copy)
        (copy / segment.name).write_bytes(content[:place] + b"\xff" + content[place + 1 :])
        answer = duly("report", copy, "-o", target)
        assert (answer.code, target.exists(), "duly salvage" in answer.err or "HEAD" in answer.err) == (3, False, True)
    assert [path.name for path in tmp_path.iterdir()] == ["copy"]
    assert duly("report", tmp_path / "nowhere", "-o", target).code == 3


def test_an_occurrence_has_the_words_of_explain(recorded: Path):
    data = page_of(recorded).data
    report = report_data(recorded)
    compared = 0
    for packed, one in zip(data["schedules"], report.schedules, strict=True):
        if one.definition is None:
            continue
        zone = zone_of_rule(one.definition.trigger)
        asked = [shown.explanation.scheduled_at for shown in one.shown]
        for mark, explanation in zip(packed["marks"], explain_all(recorded, one.id, asked), strict=True):
            words = [(name, printable(text)) for name, text in explanation_lines(explanation, zone, str(recorded))]
            assert lines_of(data, mark[-1]) == words
            compared += 1
    assert compared == 47


def test_a_page_names_each_of_its_scripts_and_styles_and_lets_in_nothing_else(recorded: Path):
    text = render_page(report_data(recorded), str(recorded))
    page = Page(text)
    policy = dict(part.split(" ", 1) for part in page.policy.split("; "))
    executed = [(tag, text) for tag, one, text in page.inside if one.get("type") != "application/json"]
    for tag in ("script", "style"):
        hashes = [
            "'sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode() + "'"
            for name, text in executed
            if name == tag
        ]
        assert policy.pop(f"{tag}-src") == " ".join(hashes)
    assert policy == {"default-src": "'none'", "img-src": "data:", "base-uri": "'none'", "form-action": "'none'"}
    fetching = [one for _, one in page.elements if {"src", "srcset", "action", "style"} & set(one)]
    handlers = [name for _, one in page.elements for name in one if name.startswith("on")]
    assert (fetching, handlers) == ([], [])
    assert set(re.findall(r"https?://[^'\" ]+", text)) == {"http://www.w3.org/2000/svg"}
    assert re.findall(r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|eval\(|new Function|fetch\(", text) == []


def test_no_text_of_a_journal_becomes_markup(tmp_path: Path):
    hostile = make_hostile(tmp_path / "hostile")
    text = render_page(report_data(hostile), "</title><script>document.title='owned'</script>")
    page = Page(text)
    plain = page_of(make_recorded(tmp_path / "recorded"))
    assert [tag for tag, _ in page.elements if tag in {"script", "img", "iframe", "style", "link"}] == [
        tag for tag, _ in plain.elements if tag in {"script", "img", "iframe", "style", "link"}
    ]
    assert "owned" in "".join(page.texts)
    told = json.dumps(page.data)
    for word in ("note", "actor", "target", "reason", "error"):
        assert f"{word} </script><script>" in told.replace("\\u003c", "<")
    assert not set(text) & set("\u202e\u2028\u2029\x1b\x00")
    assert "49" not in "".join(one for one in page.texts if "target" in one)


def test_what_would_drive_a_terminal_or_turn_text_around_is_shown_as_an_escape(journal: Path):
    text = render_page(report_data(journal), str(journal))
    assert not set(text) & set(HOSTILE) & set("\x1b\x07\u202e")
    assert "\\\\x1b[2J" in text


def test_json_in_a_script_ends_nothing():
    value = {"<!--<script>": ["</script>", "&lt;", "\u2028\u2029", "\ud800"]}
    assert script_json(value) == (
        '{"\\u003c!--\\u003cscript\\u003e":["\\u003c/script\\u003e","\\u0026lt;","\\u2028\\u2029","\\ud800"]}'
    )
    assert json.loads(script_json(value)) == value


def test_fifty_schedules_over_ninety_days_are_one_page_of_few_bytes(many: Path):
    report = report_data(many)
    text = render_page(report, str(many))
    data = Page(text).data
    assert (report.shown, report.occurrences, len(report.schedules)) == (4_501, 4_501, 50)
    assert sum(len(one["marks"]) for one in data["schedules"]) == 4_501
    assert data["shortened"] == 0
    assert len(text) < 3_000_000


def test_a_schedule_of_every_minute_is_counted_and_the_page_says_so(tmp_path: Path):
    journal = make_many(tmp_path / "many", schedules=2, days=10, minutely=2)
    report = report_data(journal, most_shown=400)
    text = render_page(report, str(journal))
    page = Page(text)
    assert report.occurrences > 28_000
    assert len(text) < 500_000
    said = " ".join(page.texts)
    assert (
        f"400 occurrences can be opened one by one; {report.occurrences - 400:,} more are counted in bins of 3h."
        in said
    )
    assert "duly report … --schedule ID --since INSTANT --until INSTANT" in said


def test_a_record_of_long_texts_is_cut_to_size(many: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("duly.tools.report_data.MOST_TEXT", 100_000)
    text = render_page(report_data(many), str(many))
    data = Page(text).data
    assert data["shortened"] > 4_000
    assert len(text) < 1_200_000
    assert "explanations are cut short" in text
    shortened = lines_of(data, data["schedules"][-1]["marks"][-1][-1])
    assert [name for name, _ in shortened] == ["why", "more"]


def luminance(colour: str) -> float:
    """How light an sRGB colour is, as WCAG 2 reckons it."""
    parts = [int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)]
    red, green, blue = (part / 12.92 if part <= 0.03928 else ((part + 0.055) / 1.055) ** 2.4 for part in parts)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def contrast(one: str, other: str) -> float:
    darker, lighter = sorted((luminance(one), luminance(other)))
    return (lighter + 0.05) / (darker + 0.05)


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_texts_and_marks_stand_out_from_what_they_stand_on(scheme: str):
    css = files("duly.service").joinpath("watching", "pages", "theme.css").read_text(encoding="utf-8")
    light, by_system, chosen = (
        dict(re.findall(r"--([a-z-]+): (#[0-9a-f]{6})", block)) for block in css.split(":root")[1:4]
    )
    assert by_system == chosen
    colours = light | (chosen if scheme == "dark" else {})
    weak = [
        (name, ground)
        for ground in ("paper", "surface", "raised")
        for name, least in [("ink", 7.0), *[(name, 4.5) for name in ("muted", "accent", "failed", "skipped")]]
        if contrast(colours[name], colours[ground]) < least
    ]
    weak += [(name, "surface") for name in (*PLAIN, "focus") if contrast(colours[name], colours["surface"]) < 3]
    assert weak + [("accent-ink", "accent")] * (contrast(colours["accent-ink"], colours["accent"]) < 4.5) == []


def test_what_needs_attention_comes_first(recorded: Path, many: Path):
    page = Page(render_page(report_data(recorded), "j"))
    said = [text.strip() for text in page.texts if text.strip()]
    start = said.index("Needs attention")
    assert said[start + 1 : start + 4] == ["problem", "entry 200", "hourly is blocked (operator): its host is gone"]
    assert "2026-03-29T07:12:00Z CLOCK went back 2d from 2026-03-31T07:12:00Z (tolerance 5m)" in " ".join(said).replace(
        "  ", " "
    )
    said = [text.strip() for text in Page(render_page(report_data(many), "j")).texts if text.strip()]
    start = said.index("Needs attention")
    assert said[start + 1 : start + 4] == [
        "problem",
        "daily-04",
        "its last run came to nothing, the latest of 2026-03-31T20:28:00Z: OSError: no route to host 765",
    ]
    assert "275 failed: the timeline marks them, and the table says why" in said
    assert any(text.startswith("it stepped back 2,265 times, by up to 41m; ") for text in said)


def test_an_occurrence_that_ended_badly_says_why_beside_its_rule(recorded: Path):
    data = page_of(recorded).data
    ends = {
        mark[5]: data["texts"][mark[6]] for one in data["schedules"] for mark in one["marks"] if mark[6] is not None
    }
    assert set(ends) == {7, 30}
    assert ends[7].startswith("OSError: ")
    assert ends[30].startswith("its owner ended while it was under way; ")


def test_now_is_the_record_unless_somebody_says_otherwise(recorded: Path, duly: Duly, tmp_path: Path):
    target = tmp_path / "report.html"
    assert duly("report", recorded, "-o", target, "--json").document["now"] == "2026-03-29T10:12:00Z"
    later = duly("report", recorded, "-o", target, "--json", "--now", "2026-03-29T20:00:00Z").document
    assert (later["now"], later["counts"]["waiting"]) == ("2026-03-29T20:00:00Z", 23)
