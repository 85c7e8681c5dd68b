"""What is seen of a service from outside: health, metrics, the log of decisions, the status."""

from __future__ import annotations

import io
import json
import logging
from collections.abc import Generator
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from prometheus_client.parser import text_string_to_metric_families

from duly import Cron, Error, ManualClock, Scheduler, SchedulerClosed
from duly.journal import read
from duly.projections.archiving import archive
from duly.service import Bounds, DecisionLog, Host, JsonFormatter, Server, TimedDisk
from duly.service.watching.record import Growing
from duly.service.watching.watched import Alone, health_of
from tests.service.hosting import due, ended, running, until
from tests.service.serving import HOURLY, Served, request, serving
from tests.service.test_failing_journal import FailingDisk

NINE = datetime(2026, 3, 2, 9, 0, tzinfo=UTC)
Samples = dict[str, dict[tuple[str, ...], float]]


def scraped(address: str) -> Samples:
    """What Prometheus' own parser reads: by the name of the sample, by its labels."""
    reply = request(address, "GET", "/metrics")
    assert (reply.status, reply.headers["content-type"].split(";")[0]) == (200, "text/plain")
    found: Samples = {}
    for family in text_string_to_metric_families(reply.body.decode()):
        for sample in family.samples:
            labels = tuple(sample.labels[name] for name in sorted(sample.labels))
            found.setdefault(sample.name, {})[labels] = sample.value
    return found


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock(NINE)


@pytest.fixture
def scheduler(tmp_path: Path, clock: ManualClock) -> Generator[Scheduler]:
    with Scheduler.open(tmp_path / "j", clock=clock, task_slots=2, disk=TimedDisk()) as scheduler:
        yield scheduler


def test_metrics_tell_what_was_decided_and_what_stands(tmp_path: Path, clock: ManualClock):
    disk = TimedDisk()
    with (
        Scheduler.open(tmp_path / "j", clock=clock, disk=disk) as scheduler,
        serving(scheduler, tmp_path, disk=disk) as served,
    ):
        scheduler.create("a", HOURLY, target="t")
        scheduler.create("b", HOURLY, target="t")
        clock.advance(timedelta(hours=1, seconds=30))
        first, second = (run.id for run in scheduler.poll(start=True).offered)
        scheduler.complete(first)
        clock.advance(timedelta(hours=1))
        (third,) = (run.id for run in scheduler.poll(start=True).offered)
        scheduler.fail(third, error="it broke")
        clock.advance(timedelta(hours=300))
        scheduler.poll()
        clock.step(timedelta(hours=-10))
        scheduler.poll()
        found = scraped(served.address)
        assert found["duly_journal_bytes"][()] == sum(one.stat().st_size for one in (tmp_path / "j").glob("*.jsonl"))
    assert found["duly_occurrences_total"] == {
        ("admitted", ""): 4.0,
        ("skipped", "overlap"): 2.0,
        ("superseded", ""): 200.0,
    }
    assert found["duly_runs_ended_total"] == {("completed",): 1.0, ("failed",): 1.0}
    assert found["duly_lateness_seconds_bucket"]["60.0",] >= 3
    assert found["duly_runs"]["started",] == 1.0
    assert second
    assert found["duly_clock_regressions_total"] == {(): 1.0}
    assert found["duly_last_success_timestamp_seconds"] == {(): (NINE + timedelta(hours=1, seconds=30)).timestamp()}
    assert found["duly_next_due_timestamp_seconds"][()] > NINE.timestamp()
    assert found["duly_journal_fsync_seconds_count"][()] >= 8
    assert found["duly_ready"] == {(): 1.0}
    assert set(found["duly_poll_age_seconds"]) == {()}


def test_every_metric_of_the_reference_is_there_and_every_one_is_told(scheduler: Scheduler, tmp_path: Path):
    disk = TimedDisk()
    with serving(scheduler, tmp_path, disk=disk) as served:
        text = request(served.address, "GET", "/metrics").body.decode()
    names = {family.name for family in text_string_to_metric_families(text) if not family.name.endswith("_created")}
    shown = {f"{name}_total" if f"# TYPE {name}_total counter" in text else name for name in names}
    reference = (Path(__file__).parents[2] / "docs" / "reference" / "service-api.md").read_text(encoding="utf-8")
    assert {name for name in shown if f"`{name}" not in reference} == set()
    assert shown == {
        "duly_occurrences_total",
        "duly_runs_ended_total",
        "duly_lateness_seconds",
        "duly_clock_regressions_total",
        "duly_runs",
        "duly_next_due_timestamp_seconds",
        "duly_last_success_timestamp_seconds",
        "duly_poll_age_seconds",
        "duly_journal_bytes",
        "duly_journal_fsync_seconds",
        "duly_ready",
    }


def test_schedules_have_a_label_only_if_asked_for_and_only_so_many(
    scheduler: Scheduler, clock: ManualClock, tmp_path: Path
):
    with serving(scheduler, tmp_path, schedule_labels=2) as served:
        for name in ("a", "b", "c", "d"):
            scheduler.create(name, HOURLY, target="t", misfire="skip")
        clock.advance(timedelta(hours=5))
        scheduler.poll()
        found = scraped(served.address)
    assert {labels[2] for labels in found["duly_occurrences_total"]} == {"a", "b", "(others)"}
    assert {labels[0] for labels in found["duly_next_due_timestamp_seconds"]} == {"a", "b"}


def test_health_is_told_by_status(tmp_path: Path):
    disk = FailingDisk()
    with (
        Host.open(tmp_path / "j", {"t": lambda _work: None}, disk=disk) as host,
        serving(host, tmp_path) as served,
    ):
        assert request(served.address, "GET", "/healthz").body == b"ok\n"
        assert ready(served) == (503, "the host is ready")
        with running(host):
            until(lambda: ready(served) == (200, ""))
            disk.failing = True
            host.scheduler.wake()
            due_soon(host)
            until(lambda: ready(served)[0] == 503)
            assert "out of reach" in ready(served)[1]
            assert request(served.address, "GET", "/healthz").status == 200
            assert scraped(served.address)["duly_ready"] == {(): 0.0}
            disk.failing = False
            until(lambda: ready(served) == (200, ""))
        assert ready(served) == (503, "the host is closed")


def ready(served: Served) -> tuple[int, str]:
    reply = request(served.address, "GET", "/readyz")
    return reply.status, reply.json["problem"]


def due_soon(host: Host) -> None:
    """Something that the journal has to take, and cannot."""
    with suppress(Error):
        host.ask(lambda scheduler: scheduler.run_now(target="t"))


def test_an_old_poll_is_no_health(tmp_path: Path):
    with Host.open(tmp_path / "j", {"t": lambda _work: None}) as host, running(host):
        until(lambda: host.last_poll is not None)
        assert host.last_poll is not None
        at = host.last_poll[1]
        assert health_of(host, lambda: at + 119).ready
        assert health_of(host, lambda: at + 121).problem == "the last poll was 121 s ago"


def test_a_scheduler_alone_is_ready_as_long_as_it_answers(scheduler: Scheduler):
    alone = Alone(scheduler)
    assert health_of(alone).ready
    scheduler.stop_admitting()
    assert health_of(alone).problem == "the host is draining"
    scheduler.close()
    assert "closed" in health_of(alone).problem


def test_the_log_has_one_record_for_each_decision_as_json(tmp_path: Path):
    stream = io.StringIO()
    handler = logging.StreamHandler(stream)
    handler.setFormatter(JsonFormatter())
    logger = logging.getLogger("duly.decisions")
    logger.addHandler(handler)
    logger.setLevel(logging.INFO)
    try:
        with Host.open(tmp_path / "j", {"t": lambda _work: "done\nwith\u2028it"}) as host:
            host.observe(DecisionLog(tmp_path / "j"))
            with running(host):
                due(host, "t")
                until(ended(host))
    finally:
        logger.removeHandler(handler)
        logger.setLevel(logging.NOTSET)
    rows: list[dict[str, Any]] = [json.loads(line) for line in stream.getvalue().split("\n") if line]
    assert [row["sequence"] for row in rows] == list(range(1, len(rows) + 1))
    kinds = "JournalOpened ScheduleCreated OccurrenceAdmitted RunStarted RunCompleted JournalClosed"
    assert [row["entry"]["kind"] for row in rows] == kinds.split()
    assert rows[4]["entry"]["result"] == "done\nwith\u2028it"
    assert {row["level"] for row in rows} == {"info"}


def test_a_text_of_many_lines_is_logged_as_one(tmp_path: Path, caplog: pytest.LogCaptureFixture):
    caplog.set_level(logging.INFO, "duly.decisions")
    with Scheduler.open(tmp_path / "j") as scheduler:
        scheduler.create("a", HOURLY, target="t")
    DecisionLog(tmp_path / "j", words=lambda _entry: "größer\n\x1b[31m\u2028\u202e")()
    assert [record.getMessage() for record in caplog.records][1] == r"#2 a: größer\n\x1b[31m\u2028\u202e"


def test_what_was_archived_meanwhile_is_followed_all_the_same(tmp_path: Path, clock: ManualClock):
    """As after an outage: the journal is closed, archived, and opened again before anybody looks."""
    path = tmp_path / "j"
    seen: list[int] = []
    with Scheduler.open(path, clock=clock) as scheduler:
        scheduler.create("a", HOURLY, target="t")
        growing = Growing(path, after=0)
        growing.listen(lambda record: seen.append(record.sequence))
        growing.look()
        assert seen == [1, 2]
        scheduler.pause("a")
    archive(path, tmp_path / "archive", now=NINE)
    with Scheduler.open(path, clock=clock) as scheduler:
        scheduler.unpause("a")
        growing.look()
        assert seen == [record.sequence for record in read(path)]


def test_a_record_that_cannot_be_followed_is_told_of_once(tmp_path: Path, caplog: pytest.LogCaptureFixture):
    with Scheduler.open(tmp_path / "j") as scheduler:
        scheduler.create("a", HOURLY, target="t")
    (tmp_path / "j").rename(tmp_path / "away")
    growing = Growing(tmp_path / "j", after=0)
    for _ in range(3):
        growing.look()
    assert [record.levelname for record in caplog.records] == ["WARNING"]
    (tmp_path / "away").rename(tmp_path / "j")
    assert [one.kind for one in growing.newest()] == ["JournalClosed", "ScheduleCreated", "JournalOpened"]


def test_a_log_record_with_an_error_is_one_line():
    try:
        raise ValueError("two\nlines")
    except ValueError as error:
        cause = (type(error), error, error.__traceback__)
        record = logging.LogRecord("duly", logging.ERROR, "", 0, "it %s", ("broke",), cause)
    line = JsonFormatter().format(record)
    assert "\n" not in line
    assert (json.loads(line)["text"], "ValueError: two" in json.loads(line)["error"]) == ("it broke", True)


def test_the_status_says_how_it_is_and_what_was_decided(tmp_path: Path):
    with Host.open(tmp_path / "j", {"t": lambda _work: 1}) as host, serving(host, tmp_path) as served:
        with served.client() as client:
            assert (client.status().ready, client.status().problem) == (False, "the host is ready")
            with running(host):
                host.scheduler.create("later", Cron("0 3 29 2 *", zone="UTC"), target="t")
                due(host, "t")
                until(ended(host))
                status = client.status()
                assert status.due == {"later": host.scheduler.next_due("later")}
        assert (status.state, status.ready, status.journal) == ("admitting", True, str(tmp_path / "j"))
        assert [one.kind for one in status.decisions][:2] == ["RunCompleted", "RunStarted"]
        assert [(run.schedule_id, run.state) for run in status.runs] == [("t", "completed")]


def test_a_run_is_not_resumed_by_a_host_that_does_not_run_yet(tmp_path: Path):
    with Host.open(tmp_path / "j", {"t": lambda _work: 1}) as host, serving(host, tmp_path) as served:
        run = host.scheduler.run_now(target="t")
        host.scheduler.start(run.id)
        host.scheduler.interrupt(run.id, checkpoint=1)
        with served.client() as client:
            with pytest.raises(SchedulerClosed, match="does not run yet"):
                client.resume(run.id)
            with running(host):
                until(lambda: host.state == "admitting")
                assert client.resume(run.id).checkpoint == 1
                until(lambda: client.run(run.id).state == "completed")


def test_metrics_are_not_asked_for_without_end(scheduler: Scheduler, tmp_path: Path):
    with serving(scheduler, tmp_path, bounds=Bounds(scrapes=0.01)) as served:
        assert [request(served.address, "GET", "/metrics").status for _ in range(2)] == [200, 429]


def test_a_page_holds_no_data_and_lets_nothing_in(tmp_path: Path, scheduler: Scheduler):
    scheduler.create("secret-name", HOURLY, target="t")
    with Server.open(scheduler, "127.0.0.1:0") as server:
        for path in ("/", "/status.js", "/status.css", "/theme.css", "/theme.js"):
            reply = request(str(server.address), "GET", path)
            assert reply.status == 200
            assert "secret-name" not in reply.body.decode()
            assert "default-src 'none'" in reply.headers["content-security-policy"]
            assert reply.headers["cache-control"] == "no-store"
