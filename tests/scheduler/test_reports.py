"""Public reports about other schedulers, each as the timeline that went wrong there and must go right here.

tests/cases/reports.jsonl has the reports with their outcomes; a test bears the id of its report.
"""

from __future__ import annotations

import json
from collections.abc import Generator
from contextlib import contextmanager
from datetime import date, timedelta
from typing import Any

from duly import Cron, Every
from tests.scheduler import test_reports_of_storage
from tests.scheduler.timeline import check
from tests.scheduler.watch import Watch, utc
from tests.tree import ROOT


@contextmanager
def watching(start: str, **settings: Any) -> Generator[Watch, None, None]:
    watch = Watch(utc(start), **settings)
    try:
        yield watch
    finally:
        watch.close()


def test_every_report_has_its_test() -> None:
    lines = (ROOT / "tests" / "cases" / "reports.jsonl").read_text(encoding="utf-8").splitlines()
    reported = {json.loads(line)["id"].lower() for line in lines}
    names = [name for name in (*globals(), *vars(test_reports_of_storage)) if name.startswith("test_b0")]
    assert {name.split("_")[1] for name in names} == reported


def test_b002_an_hourly_schedule_fires_in_both_passes_and_leaves_the_repeated_hour() -> None:
    with watching("2017-10-28T22:45Z") as watch:
        trigger = Cron("30 * * * *", zone="Europe/Helsinki")
        watch.scheduler.create("hourly", trigger, target="work", overlap="skip", misfire="skip")
        watch.until("2017-10-29T03:45Z", every=timedelta(minutes=1))
        assert watch.due("hourly") == [
            utc("2017-10-28T23:30Z"),
            *[utc(f"2017-10-29T0{hour}:30Z") for hour in range(4)],
        ]


def test_b006_a_daily_calendar_cadence_passes_the_gap() -> None:
    trigger = Every(1, "day", at="01:30", zone="Europe/London", anchor=date(2025, 3, 28))
    assert trigger.next_after(utc("2025-03-30T01:00Z")) == utc("2025-03-31T00:30Z")
    with watching("2025-03-28T12:00Z") as watch:
        watch.scheduler.create("daily", trigger, target="work", overlap="skip", misfire="skip")
        watch.until("2025-04-01T12:00Z")
        assert watch.due("daily") == [
            utc(moment)
            for moment in ("2025-03-29T01:30Z", "2025-03-30T01:00Z", "2025-03-31T00:30Z", "2025-04-01T00:30Z")
        ]


def test_b023_an_impossible_day_beside_a_weekday_gives_the_weekdays_and_disturbs_nobody() -> None:
    with watching("2026-01-01T00:00Z") as watch:
        watch.scheduler.create("mondays", Cron("30 6 31 2 1", zone="UTC"), target="work")
        watch.scheduler.create("daily", Cron("0 7 * * *", zone="UTC"), target="work")
        watch.until("2026-03-01T00:00Z", every=timedelta(days=1))
        assert watch.due("mondays") == [utc(f"2026-02-{day:02}T06:30Z") for day in (2, 9, 16, 23)]
        assert len(watch.due("daily")) == 59


def test_b028_months_are_counted_from_the_anchor_and_clamped_to_their_last_day() -> None:
    with watching("2021-01-01T00:00Z") as watch:
        trigger = Every(1, "month", at="09:00", zone="Europe/Rome", anchor=date(2020, 12, 31))
        watch.scheduler.create("monthly", trigger, target="work", overlap="skip", misfire="skip")
        watch.until("2021-06-01T00:00Z", every=timedelta(days=1))
        days = ("01-31T08", "02-28T08", "03-31T07", "04-30T07", "05-31T07")
        assert watch.due("monthly") == [utc(f"2021-{day}:00Z") for day in days]


def test_b033_a_run_recorded_in_the_future_starves_nobody() -> None:
    check("""
        2018-09-08T12:00Z  create nightly cron="0 0 * * *" overlap=skip misfire=latest lateness=1h
        2018-09-09T06:00Z  poll      -> admit nightly@00:00
        06:00  start nightly@00:00
        06:00  complete nightly@00:00
        2017-09-14T12:00Z  reopen
        12:00  poll                  -> regress
        12:01  poll                  -> nothing
        2017-09-15T00:00Z  poll      -> admit nightly@00:00
        00:00  start nightly@00:00
        00:00  complete nightly@00:00
        2017-09-16T00:00Z  poll      -> admit nightly@00:00
        00:00  start nightly@00:00
        00:00  complete nightly@00:00
        12:00  poll                  -> nothing
    """)


def test_b038_an_early_timer_neither_starts_early_nor_twice() -> None:
    check("""
        2026-02-26T12:00Z  create evening cron="0 20 * * *" overlap=parallel misfire=skip lateness=60s
        19:59:59.8  poll next=20:00  -> nothing
        20:00:00.01  poll next=2026-02-27T20:00Z  -> admit evening@20:00
        20:00:00.01  start evening@20:00
        20:00:00.01  complete evening@20:00
        2026-02-27T19:00Z  poll      -> nothing
    """)


def test_b036_a_jump_forward_yields_one_make_up_run_at_most() -> None:
    check(
        """
        2015-05-14T09:59:30Z  create latest cron="* * * * *" overlap=parallel misfire=latest lateness=30s
        09:59:30  create skip cron="* * * * *" overlap=parallel misfire=skip lateness=5s
        10:00  poll                  -> admit latest@10:00, admit skip@10:00
        10:00  start latest@10:00 skip@10:00
        10:00  complete latest@10:00
        10:00  complete skip@10:00
        10:00:30  poll               -> nothing
        11:00:30  clock
        11:00:30  poll more          -> jump, LATEST, admit latest@11:00, SKIP
        11:00:30  start latest@11:00
        11:00:30  complete latest@11:00
        11:01  poll                  -> admit skip@11:01, admit latest@11:01
        11:01  start skip@11:01 latest@11:01
        11:01  complete skip@11:01
        11:01  complete latest@11:01
        11:02  poll                  -> admit skip@11:02, admit latest@11:02
        11:02:30  poll               -> offer skip@11:02, offer latest@11:02
    """.replace("LATEST", _each("supersede latest@{} by 11:00", 59)).replace("SKIP", _each("skip skip@{} misfire", 60))
    )


def _each(text: str, count: int) -> str:
    return ", ".join(text.format(f"{10 + minute // 60}:{minute % 60:02}") for minute in range(1, count + 1))


def test_b045_unpausing_makes_up_for_nothing() -> None:
    check("""
        2021-10-21T11:30:30Z  create minutely cron="* * * * *" overlap=parallel misfire=latest lateness=10m
        11:31  poll                  -> admit minutely@11:31
        11:31  start minutely@11:31
        11:31  complete minutely@11:31
        11:31:10  pause minutely
        11:33  poll                  -> nothing
        11:35:20  unpause minutely covers=11:31:10..11:35:20
        11:35:20  poll               -> nothing
        11:36  poll                  -> admit minutely@11:36
        11:37  poll                  -> admit minutely@11:37, offer minutely@11:36
        11:37:30  poll               -> offer minutely@11:36, offer minutely@11:37
    """)


def test_b049_an_edit_leaves_no_wake_up_of_the_old_time_and_fires_nothing_retroactively() -> None:
    check("""
        2025-03-13T12:00Z  create nightly cron="0 23 * * *" overlap=skip misfire=latest lateness=86400s
        23:00  poll                  -> admit nightly@23:00
        23:00  start nightly@23:00
        23:00  complete nightly@23:00
        2025-03-14T12:00Z  edit nightly cron="0 5 * * *"
        12:00  poll next=2025-03-15T05:00Z  -> nothing
        23:00  poll                  -> nothing
        2025-03-15T05:00Z  poll      -> admit nightly@05:00
        06:00  poll                  -> offer nightly@05:00
    """)


def test_b054_a_finishing_run_brings_no_deleted_schedule_back() -> None:
    check("""
        2026-09-08T09:59:30Z  create minutely cron="* * * * *" overlap=skip misfire=latest lateness=10m
        10:00  poll                  -> admit minutely@10:00
        10:00  start minutely@10:00
        10:00:20  delete minutely
        10:00:20  schedule minutely listed=no
        10:00:40  complete minutely@10:00
        10:01  poll                  -> nothing
        10:01:30  crash
        10:01:30  schedule minutely listed=no
        10:01:30  run minutely@10:00 state=completed
        10:05:30  poll               -> nothing
    """)


def test_b056_an_id_is_never_used_again_and_a_new_one_has_no_past() -> None:
    check("""
        2019-08-12T10:00:30Z  create ticker cron="* * * * *" overlap=parallel misfire=latest lateness=10m
        10:01  poll start=yes        -> admit ticker@10:01, start ticker@10:01
        10:02  poll start=yes        -> admit ticker@10:02, start ticker@10:02
        10:02:30  delete ticker
        10:05:30  create ticker cron="* * * * *"  raises=DuplicateSchedule
        10:05:30  create ticker-2 cron="* * * * *" overlap=parallel misfire=latest lateness=10m
        10:05:30  poll               -> nothing
        10:06  poll start=yes        -> admit ticker-2@10:06, start ticker-2@10:06
        10:07  poll start=yes        -> admit ticker-2@10:07, start ticker-2@10:07
        10:07:30  poll               -> nothing
    """)


def test_b066_a_dead_run_blocks_nobody() -> None:
    check("""
        2018-04-20T09:59:30Z  create minutely cron="* * * * *" overlap=skip misfire=skip lateness=5s
        10:00  poll start=yes        -> admit minutely@10:00, start minutely@10:00
        10:00:40  crash              -> abandon minutely@10:00 crash
        10:01  poll start=yes        -> admit minutely@10:01, start minutely@10:01
        10:01:50  complete minutely@10:01
        10:02  poll start=yes        -> admit minutely@10:02, start minutely@10:02
        10:02:30  poll               -> nothing
    """)


def test_b070_only_the_run_that_took_a_slot_gives_it_back() -> None:
    check("""
        2025-12-10T09:59:00Z  open slots=1
        09:59  create a cron="0 10 * * *" overlap=parallel misfire=latest lateness=10m
        09:59  create b cron="1 10 * * *" overlap=parallel misfire=latest lateness=10m
        09:59  create c cron="3 10 * * *" overlap=parallel misfire=latest lateness=10m
        10:00  poll start=yes        -> admit a@10:00, start a@10:00
        10:01  poll start=yes        -> hold b@10:01
        10:02  delete b              -> skip b@10:01 deleted
        10:03  poll start=yes        -> hold c@10:03
        10:04  poll start=yes        -> nothing
        10:05  complete a@10:00
        10:05  poll start=yes        -> admit c@10:03, start c@10:03
        10:06  poll start=yes        -> nothing
    """)


def test_b059_a_claim_that_was_never_started_is_offered_once() -> None:
    check("""
        2026-01-22T09:30:00Z  create hourly cron="0 * * * *" overlap=skip misfire=latest lateness=5m
        10:00:00.01  poll            -> admit hourly@10:00
        10:00:20  crash
        10:00:20  poll               -> offer hourly@10:00
        10:00:20  start hourly@10:00
        10:00:21  complete hourly@10:00
        10:30  poll                  -> nothing
    """)


def test_b078_a_past_one_shot_declared_again_is_no_error_and_a_new_one_beyond_its_allowance_is() -> None:
    check("""
        2024-05-29T09:00Z  declare m once=10:00  -> create m
        10:00  poll start=yes        -> admit m@10:00, start m@10:00
        10:01  complete m@10:00
        11:00  reopen
        11:00  declare m once=10:00  -> nothing
        11:00  poll                  -> nothing
        12:00  declare n once=08:00 misfire=skip  raises=DefinitionError
        12:00  schedule n known=no
        12:05  declare k once=11:58 misfire=latest lateness=900s  -> create k
        12:05  poll                  -> admit k@11:58
    """)
