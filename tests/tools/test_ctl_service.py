"""`duly ctl --connect`: the same commands, through the service of a host that runs."""

from __future__ import annotations

from collections.abc import Generator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import NamedTuple

import pytest

from duly import Cron, ManualClock, OncePer, Scheduler
from duly.journal import read
from duly.journal.entries import JournalOpened, kind_of
from duly.tools import ctl_service, extras
from tests.service.serving import serving
from tests.tools.conftest import Duly

AT = datetime(2026, 3, 2, 9, 0, tzinfo=UTC)


class Host(NamedTuple):
    scheduler: Scheduler
    options: list[str]

    def recorded(self, after: int) -> list[tuple[str, str, str]]:
        """What was recorded since: kind, actor, note."""
        return [
            (kind_of(one.entry), getattr(one.entry, "actor", ""), getattr(one.entry, "note", ""))
            for one in read(self.scheduler.path, after=after)
        ]


@pytest.fixture
def host(tmp_path: Path) -> Generator[Host]:
    with Scheduler.open(tmp_path / "j", clock=ManualClock(AT)) as scheduler, serving(scheduler, tmp_path) as served:
        scheduler.create("job", Cron("0 * * * *", zone="UTC"), target="work")
        scheduler.create("tally", OncePer("day", zone="UTC"), target="tally")
        scheduler.start(scheduler.run_now("job").id)
        scheduler.interrupt(4, checkpoint="page 3")
        yield Host(scheduler, ["--connect", served.address, "--token-file", str(served.token_file)])


@pytest.mark.parametrize(
    ("command", "kinds", "said"),
    [
        (["pause", "job"], ["SchedulePaused"], "job  revision 1, paused"),
        (["disable", "job"], ["ScheduleDisabled"], "job  revision 1, disabled"),
        (["delete", "job"], ["ScheduleDeleted"], "job  revision 1, deleted"),
        (["block", "job", "why\x1b[2J"], ["ScheduleBlocked"], r"job  revision 1, blocked since entry 7: why\x1b[2J"),
        (["rebaseline", "job", "2026-03-02T08:30:00Z"], ["ScheduleRebaselined"], "job  revision 1, live"),
        (["record-external-run", "tally", "2026-03-02T04:00:00Z"], ["ExternalRunRecorded"], "tally  revision 1, live"),
        (["run-now", "job"], ["RunAdmittedManually"], "job  run 7 of work: pending"),
        (["run-now", "--target", "t", "--input", '{"a": 1}'], ["RunAdmittedManually"], "-  run 7 of t: pending"),
        (["abandon", "4"], ["RunAbandoned"], "job  run 4 of work: abandoned"),
        (["unpause", "job"], [], "job  revision 1, live"),
        (["enable", "job"], [], "job  revision 1, live"),
        (["unblock", "job"], [], "job  revision 1, live"),
    ],
)
def test_a_command_does_the_same_through_the_service(
    command: list[str], kinds: list[str], said: str, host: Host, duly: Duly
):
    answer = duly("ctl", *command, *host.options, "--actor", "ann", "--note", "why")
    assert (answer.code, answer.out) == (0, f"{said}\n"), answer.err
    recorded = host.recorded(6)
    assert recorded == [(kind, "ann", "why") for kind in kinds]


def test_an_interrupted_run_goes_on(host: Host, duly: Duly):
    assert duly("ctl", "resume", "4", *host.options).out == "job  run 4 of work: started, attempt 7\n"
    assert host.recorded(6)[0][0] == "ResumeMarked"


def test_a_document_has_what_came_of_it(host: Host, duly: Duly):
    document = duly("ctl", "pause", "job", *host.options, "--json").document
    assert document["schema"] == "duly.ctl/1"
    assert (document["recorded"], document["outcome"]["paused"]) == ([], True)
    assert document["outcome"]["trigger"] == {"kind": "cron", "expression": "0 * * * *", "zone": "UTC"}


def test_the_status_is_shown_and_ends_with_whether_it_is_ready(host: Host, duly: Duly):
    result = duly("ctl", "status", *host.options, "-n", "2")
    assert result.code == 0
    assert "j: ready" in result.out
    assert len(result.out.splitlines()) == 3
    document = duly("ctl", "status", *host.options, "--json").document
    assert document["schema"] == "duly.ctl-status/1"
    assert (document["ready"], document["decisions"][-1]["kind"]) == (True, kind_of(first_of(host)))
    host.scheduler.stop_admitting()
    assert duly("ctl", "status", *host.options).code == 1


def first_of(host: Host) -> JournalOpened:
    entry = next(iter(read(host.scheduler.path))).entry
    assert isinstance(entry, JournalOpened)
    return entry


@pytest.mark.parametrize(
    ("command", "code", "words"),
    [
        (["pause", "nope"], 2, "is unknown"),
        (["settle"], 2, "No such option"),
        (["complete-all"], 2, "No such command"),
        (["abandon", "999"], 2, "no run 999"),
    ],
)
def test_what_is_refused_is_told_as_ever(command: list[str], code: int, words: str, host: Host, duly: Duly):
    result = duly("ctl", *command, *host.options)
    assert (result.code, words in result.err) == (code, True)


def test_what_is_typed_beats_what_the_environment_names(
    host: Host, duly: Duly, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    with Scheduler.open(tmp_path / "other", clock=ManualClock(AT)) as other:
        other.create("job", Cron("0 * * * *", zone="UTC"), target="work")
    monkeypatch.setenv("DULY_CONNECT", host.options[1])
    monkeypatch.setenv("DULY_TOKEN_FILE", host.options[3])
    assert "paused; what lay" in duly("ctl", "pause", "job", "-j", tmp_path / "other").out
    assert not host.scheduler.schedule("job").paused
    assert duly("ctl", "pause", "job").out == "job  revision 1, paused\n"
    twice = duly("ctl", "unpause", "job", "-j", tmp_path / "other", *host.options)
    assert (twice.code, "keep -j for a host that is not running" in twice.err) == (2, True)
    monkeypatch.setenv("DULY_JOURNAL", str(tmp_path / "other"))
    assert duly("ctl", "unpause", "job", *host.options).out == "job  revision 1, live\n"


@pytest.mark.parametrize("words", [["resume", "4"], ["status"]])
def test_what_only_a_running_host_can_do_says_so_of_a_journal(words: list[str], host: Host, duly: Duly):
    answer = duly("ctl", *words, "-j", host.scheduler.path)
    assert (answer.code, "asks a running host, and no journal" in answer.err) == (2, True)


def test_a_command_without_a_service_does_not_speak_of_one(duly: Duly):
    assert duly("ctl", "settle").err.startswith("duly: Which journal? Name it with -j PATH or $DULY_JOURNAL. See")


def test_without_the_extra_it_says_which_one_to_install(host: Host, duly: Duly, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(extras, "find_spec", dict[str, object]().get)
    told = (
        "needs httpx2, prometheus_client, starlette and uvicorn, which come with an extra: pip install 'duly[service]'."
    )
    for words in (["ctl", "status", *host.options], ["run", "x", "-j", "j", "--serve", ":0"]):
        answer = duly(*words)
        assert (answer.code, told in answer.err) == (2, True), answer


def test_without_the_token_it_says_where_to_name_it(host: Host, duly: Duly):
    result = duly("ctl", "pause", "job", *host.options[:2])
    assert (result.code, "--token-file" in result.err) == (1, True)
    assert duly("ctl", "status").code == 2
    assert duly("ctl", "pause", "job").code == 2


def test_a_service_that_is_not_there_ends_as_what_cannot_be_read(
    host: Host, duly: Duly, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(ctl_service, "PATIENCE", timedelta())
    result = duly("ctl", "pause", "job", "--connect", "127.0.0.1:9", *host.options[2:])
    assert (result.code, "does not answer" in result.err, "not done" in result.err) == (3, True, True)
