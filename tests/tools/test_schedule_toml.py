"""Schedules in TOML: what is read, and what is refused with its line and what to write instead."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from duly import Cron, Every, OncePer, OneShot
from duly.tools.schedule_file import Declared, ScheduleFile
from duly.tools.schedule_toml import parse_schedule_toml


def parsed(text: str) -> ScheduleFile:
    return parse_schedule_toml(text, source="s.toml", zone="UTC")


def problems(text: str) -> list[str]:
    return [str(problem) for problem in parsed(text).problems]


def test_everything_that_can_be_said():
    file = parsed(
        """
zone = "Europe/Berlin"

[environment]
PATH = "/bin"
A = "file"

[schedules.nightly]
cron = "30 2 * * *"
fold = "first"
command = "backup --full"
stdin = "yes"
user = "backup"
environment = {A = "own"}
misfire = "skip"
lateness = "15m"
overlap = "parallel"
max_active_runs = 2
timeout = "1h30m"

[schedules."web.check"]
once_per = "week"
zone = "UTC"
command = ["curl", "-f", "http://localhost"]

[schedules.fortnight]
every = {count = 2, unit = "week", at = "07:00", anchor = 2026-01-05}
command = "x"

[schedules.quarter]
every = {count = 15, unit = "minute", anchor = 2026-01-05T00:00:00Z}
command = "x"

[schedules.single]
once = 2026-03-29T01:00:00+01:00
command = "x"
"""
    )
    shared = {"PATH": "/bin", "A": "file"}
    assert file.problems == ()
    assert file.entries == (
        Declared(
            "nightly",
            8,
            "30 2 * * *",
            "Europe/Berlin",
            {
                "trigger": Cron("30 2 * * *", zone="Europe/Berlin", fold="first"),
                "target": "command",
                "input": {
                    "command": "backup --full",
                    "stdin": "yes",
                    "user": "backup",
                    "environment": {"PATH": "/bin", "A": "own"},
                },
                "misfire": "skip",
                "overlap": "parallel",
                "max_active_runs": 2,
                "lateness": timedelta(minutes=15),
                "limits": {"timeout": 5400.0},
            },
        ),
        Declared(
            "web.check",
            21,
            "once per week",
            "UTC",
            {
                "trigger": OncePer("week", zone="UTC"),
                "target": "command",
                "input": {"command": ["curl", "-f", "http://localhost"], "environment": shared},
            },
        ),
        Declared(
            "fortnight",
            26,
            "every 2 week from 2026-01-05",
            "Europe/Berlin",
            {
                "trigger": Every(2, "week", at="07:00", zone="Europe/Berlin", anchor=date(2026, 1, 5)),
                "target": "command",
                "input": {"command": "x", "environment": shared},
            },
        ),
        Declared(
            "quarter",
            30,
            "every 15 minute from 2026-01-05T00:00:00+00:00",
            "Europe/Berlin",
            {
                "trigger": Every(15, "minute", anchor=datetime(2026, 1, 5, tzinfo=UTC)),
                "target": "command",
                "input": {"command": "x", "environment": shared},
            },
        ),
        Declared(
            "single",
            34,
            "once at 2026-03-29T01:00:00+01:00",
            "Europe/Berlin",
            {
                "trigger": OneShot(datetime(2026, 3, 29, 0, 0, tzinfo=UTC)),
                "target": "command",
                "input": {"command": "x", "environment": shared},
            },
        ),
    )


def test_an_empty_file_says_nothing():
    assert parsed("") == ScheduleFile("s.toml", "UTC", (), ())


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("x", "s.toml:1:1: Expected '=' after a key in a key/value pair. Write TOML"),
        ("zone = 'Nowhere'", "s.toml:1:1: zone: 'Nowhere' is no zone of tzdata"),
        ("zone = 3", "s.toml:1:1: zone is no text. Write zone"),
        ("zones = 'UTC'", "s.toml:1:1: 'zones' is no key of the file. Write zone"),
        ("schedules = 1", "s.toml:1:1: 'schedules' is no table. Write [schedules.NAME]"),
        ("environment = {A = 1}", "s.toml:1:1: environment is no table of texts. Write environment"),
        ("\n[schedules.a]\ncron = '* * * * *'", "s.toml:2:1: a: command is no text, and no list of words. Write"),
        ("[schedules.a]\nonce_per = 'day'\ncommand = '  '", "s.toml:1:1: a: command names nothing to execute. Write"),
        ("[schedules.a]\nonce_per = 'day'\ncommand = ['']", "s.toml:1:1: a: command names nothing to execute. Write"),
        ("environment = {'a.b' = '1'}", "s.toml:1:1: 'a.b' is no name of a variable. Use letters"),
        ("[schedules.a]\ncommand = 'x'", "s.toml:1:1: a: it has no trigger. Write exactly one of cron, every"),
        (
            "[schedules.a]\ncron = '* * * * *'\nonce_per = 'day'\ncommand = 'x'",
            "s.toml:1:1: a: it has cron and once_per",
        ),
        ("[schedules.a]\ncron = '61 * * * *'\ncommand = 'x'", "s.toml:1:1: a: minute: '61' is out of range"),
        (
            "[schedules.a]\ncron = '* * * * *'\ncomand = 'x'",
            "s.toml:1:1: a: 'comand' is no key of a schedule. Write command",
        ),
        ("[schedules.a]\ncron = 5\ncommand = 'x'", "s.toml:1:1: a: cron is no text. Write cron"),
        ("[schedules.a]\nonce_per = 'year'\ncommand = 'x'", "s.toml:1:1: a: period: 'year' is no period"),
        (
            "[schedules.a]\nonce = 2026-01-01T00:00:00\ncommand = 'x'",
            "s.toml:1:1: a: once is no instant with an offset",
        ),
        (
            "[schedules.a]\nonce_per = 'day'\nfold = 'first'\ncommand = 'x'",
            "s.toml:1:1: a: fold means nothing beside once_per",
        ),
        ("[schedules.a]\nevery = '5m'\ncommand = 'x'", "s.toml:1:1: a: every is no table. Write every"),
        ("[schedules.a]\nevery = {unit = 'day'}\ncommand = 'x'", "s.toml:1:1: a: every has no anchor"),
        ("[schedules.a]\nonce_per = 'day'\ncommand = []", "s.toml:1:1: a: command is no text, and no list"),
        ("[schedules.a]\nonce_per = 'day'\ncommand = ['x', 1]", "s.toml:1:1: a: command is no text, and no list"),
        (
            "[schedules.a]\nonce_per = 'day'\ncommand = 'x'\nlateness = 'soon'",
            "s.toml:1:1: a: 'soon' is not a duration",
        ),
        (
            "[schedules.a]\nonce_per = 'day'\ncommand = 'x'\ntimeout = '0'",
            "s.toml:1:1: a: limits.timeout: 0.0 is not a time",
        ),
        (
            "[schedules.a]\nonce_per = 'day'\ncommand = 'x'\noverlap = 'both'",
            "s.toml:1:1: a: overlap: 'both' is no overlap",
        ),
        (
            "[schedules.a]\nonce_per = 'day'\ncommand = 'x'\nmax_active_runs = 2",
            "s.toml:1:1: a: max_active_runs: 2 goes only",
        ),
        (
            "[schedules.'a b']\nonce_per = 'day'\ncommand = 'x'",
            "s.toml:1:1: a b: schedule_id: 'a b' is not a schedule id",
        ),
        ("[schedules]\na = 1", "s.toml:1:1: a: it is no table. Write [schedules.a]"),
    ],
)
def test_what_is_wrong_is_refused_with_what_to_write(text: str, told: str):
    [problem] = problems(text)
    assert problem.startswith(told)


def test_every_bad_schedule_is_told_of_and_the_good_ones_are_read():
    file = parsed("[schedules.a]\n[schedules.b]\nonce_per='day'\ncommand='x'\n[schedules.c]\n")
    assert ([one.schedule_id for one in file.entries], [one.line for one in file.problems]) == (["b"], [1, 5])


@pytest.mark.parametrize("number", ["9" * 5_000, "0x" + "f" * 5_000])
@pytest.mark.parametrize(
    "text", ["zone = {}", "[schedules.a]\nonce_per='day'\ncommand='x'\nmax_active_runs={}", "[schedules.a]\ntimeout={}"]
)
def test_an_endless_number_is_refused(text: str, number: str):
    assert len(problems(text.format(number))) == 1


@given(st.text())
def test_any_text_is_read_or_refused(text: str):
    parsed(text)


@given(
    st.sampled_from(["cron", "every", "once_per", "once", "command", "stdin", "environment", "lateness", "timeout"]),
    st.sampled_from(["1", "1.5", "true", "[]", "[1]", "{}", "{a = 1}", "'x'", "1979-05-27", "07:32:00", "nan"]),
)
def test_any_value_is_read_or_refused(key: str, value: str):
    for base in ("", "once_per = 'day'\n", "command = 'x'\n", "once_per = 'day'\ncommand = 'x'\n"):
        parsed(f"[schedules.a]\n{base}{key} = {value}\n")
