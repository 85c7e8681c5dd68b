"""A journal that goes away under the host: no other one is taken for it, and it is found again when it is back."""

from __future__ import annotations

import errno
import os
import threading
from collections.abc import Callable
from datetime import timedelta
from itertools import count, pairwise
from pathlib import Path
from shutil import copytree

import pytest

from duly import Cron, ForeignJournal, JournalPoisoned, OneShot, Run, Scheduler
from duly.journal import RealDisk
from duly.projections import replay
from duly.scheduler.accounting import account
from duly.service import Ended, Host, JournalFailed, Opened, Warned, Work
from tests.service.hosting import Seen, due, just_now, outcomes, running, until
from tests.service.test_failing_journal import FailingDisk

pytestmark = pytest.mark.skipif(os.name != "posix", reason="a folder that is in use is moved away")


NUMBERS = count()


def break_it(host: Host) -> None:
    """Somebody tells the journal something that changes nothing here, and it fails."""
    never = Cron("0 0 29 2 *", zone="UTC")
    with pytest.raises(JournalPoisoned):
        host.ask(lambda scheduler: scheduler.create(f"never-{next(NUMBERS)}", never, target="slow"))


def replaced(host: Host, before: Scheduler) -> Callable[[], bool]:
    return lambda: host.scheduler is not before


def nothing(_journal: Path) -> None:
    """The folder is gone."""


def an_empty_folder(journal: Path) -> None:
    journal.mkdir()


def another_journal(journal: Path) -> None:
    with Scheduler.open(journal) as scheduler:
        scheduler.run_now(target="somebody else's")


@pytest.mark.parametrize("instead", [nothing, an_empty_folder, another_journal])
def test_what_lies_in_its_place_is_not_taken_for_the_journal(tmp_path: Path, instead: Callable[[Path], None]):
    go, seen, journal = threading.Event(), Seen(), tmp_path / "j"
    with running(Host.open(journal, {"slow": lambda _: go.wait(30)}, observers=[seen])) as host:
        due(host, "slow")
        until(lambda: host.at_work)
        journal.rename(tmp_path / "away")
        instead(journal)
        before = sorted(path.relative_to(tmp_path) for path in tmp_path.rglob("*"))
        break_it(host)
        go.set()  # it ends while nobody can record it
        until(lambda: not host.at_work)
        until(lambda: len([one for one in seen if isinstance(one, JournalFailed)]) > 2)
        assert (host.state, host.failure is None) == ("reopening", False)
        assert isinstance(host.failure, ForeignJournal) or instead is not another_journal
        # Nothing was made there, and nothing was written to what is somebody else's.
        assert [path for path in before if not (tmp_path / path).exists()] == []
        assert sorted(path.relative_to(tmp_path) for path in tmp_path.rglob("*")) == before
        if instead is another_journal:
            assert [run.state for run in replay(journal).runs()] == ["pending"]
        if journal.exists():
            journal.rename(tmp_path / "other")
        (tmp_path / "away").rename(journal)
        until(lambda: host.state == "admitting")
        until(lambda: host.scheduler.runs(state="completed"))
    assert outcomes(journal) == {"slow": True}
    assert [one.again for one in seen if isinstance(one, Opened)] == [False, True]
    assert account(journal).balanced


def test_it_is_found_again_from_another_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    disk = FailingDisk()
    monkeypatch.chdir(tmp_path)
    with running(Host.open("j", {"slow": lambda _: None}, disk=disk)) as host:
        (tmp_path / "elsewhere").mkdir()
        monkeypatch.chdir(tmp_path / "elsewhere")
        disk.failing = True
        break_it(host)
        disk.failing = False
        until(lambda: host.state == "admitting")
    assert list((tmp_path / "elsewhere").iterdir()) == []


def test_a_run_that_an_older_copy_of_the_journal_does_not_know_is_dropped_with_a_warning(tmp_path: Path):
    """Somebody brings a backup back while the host runs."""
    go, seen, journal, disk = threading.Event(), Seen(), tmp_path / "j", FailingDisk()
    Scheduler.open(journal).close()
    copytree(journal, tmp_path / "backup")
    host = Host.open(journal, {"slow": lambda _: go.wait(30)}, disk=disk, observers=[seen])
    with running(host):
        due(host, "slow")
        [run_id] = until(lambda: host.at_work)
        disk.failing = True
        break_it(host)
        journal.rename(tmp_path / "away")
        copytree(tmp_path / "backup", journal)
        go.set()
        until(lambda: not host.at_work)
        disk.failing = False
        until(lambda: host.state == "admitting")
        until(lambda: any(isinstance(one, Warned) for one in seen))
    assert [one.run_id for one in seen if isinstance(one, Warned)] == [run_id]
    assert replay(journal).runs() == ()


class TightDisk(RealDisk):
    """A disk with room for short lines alone, while it is tight."""

    tight = False

    def write(self, file: int, offset: int, data: bytes | memoryview) -> int:
        if self.tight and len(data) > 450 and offset > 0:
            raise OSError(errno.ENOSPC, "no space left")
        return super().write(file, offset, data)


def test_a_journal_that_opens_and_takes_nothing_is_tried_less_and_less_often(tmp_path: Path):
    disk, seen = TightDisk(), Seen()
    with running(Host.open(tmp_path / "j", {"quick": lambda _: "done"}, disk=disk, observers=[seen])) as host:
        until(lambda: host.last_poll)
        soon = OneShot(just_now() + timedelta(seconds=2))
        host.scheduler.create("quick", soon, target="quick", input={"words": "x" * 500})
        disk.tight = True
        until(lambda: len([one for one in seen if isinstance(one, JournalFailed)]) > 4)
        disk.tight = False
        until(lambda: host.state == "admitting" and host.scheduler.runs(state="completed"))
    pauses = [one.retry_in.total_seconds() for one in seen if isinstance(one, JournalFailed)]
    assert pauses[:4] == [0.1, 0.2, 0.4, 0.8]
    assert all(later == 2 * earlier for earlier, later in pairwise(pauses))
    assert len([one for one in seen if isinstance(one, Opened)]) == len(pauses) + 1  # each time it could be opened


def test_a_thread_at_work_stays_started_over_a_reopening_and_its_end_is_told_once(tmp_path: Path):
    disk, go, seen = FailingDisk(), threading.Event(), Seen()
    host = Host.open(tmp_path / "j", {"slow": lambda _: go.wait(30)}, disk=disk, observers=[seen])
    with running(host):
        due(host, "slow")
        [run_id] = until(lambda: host.at_work)
        for _ in range(2):
            before = host.scheduler
            disk.failing = True
            break_it(host)
            disk.failing = False
            until(replaced(host, before))
            assert [run.id for run in host.scheduler.recovery.running] == [run_id]
        disk.failing = True
        break_it(host)
        go.set()  # the next opening takes its result as evidence
        until(lambda: not host.at_work)
        disk.failing = False
        until(lambda: any(isinstance(one, Ended) for one in seen))
        host.call(lambda: None).result(30)
    ends = [(one.run.id, one.run.state) for one in seen if isinstance(one, Ended)]
    assert ends == [(run_id, "completed")]
    assert outcomes(tmp_path / "j") == {"slow": True}


def test_a_result_that_cannot_be_recorded_blocks_no_schedule(tmp_path: Path):
    """It is no JSON, and it comes while the journal is out of reach."""
    disk, go = FailingDisk(), threading.Event()

    def wrong(_work: Work) -> object:
        go.wait(30)
        return object()

    with running(Host.open(tmp_path / "j", {"wrong": wrong}, disk=disk)) as host:
        due(host, "wrong")
        until(lambda: host.at_work)
        disk.failing = True
        break_it(host)
        go.set()
        until(lambda: not host.at_work)
        disk.failing = False
        until(lambda: host.state == "admitting")
        [run] = until(lambda: host.scheduler.runs(state="failed"))
        assert host.scheduler.schedule("wrong").blocked is None
    assert (run.error and run.error.type, outcomes(tmp_path / "j")) == ("DefinitionError", {"wrong": "DefinitionError"})


def test_a_run_that_was_abandoned_during_an_outage_by_another_owner_is_told_as_refused(tmp_path: Path):
    """The operator takes the journal while the host has lost it."""
    disk, go, seen = FailingDisk(), threading.Event(), Seen()
    ended: list[Run] = []
    host = Host.open(tmp_path / "j", {"slow": lambda _: go.wait(30)}, disk=disk, observers=[seen])
    with running(host):
        due(host, "slow")
        [run_id] = until(lambda: host.at_work)
        disk.failing = True
        break_it(host)
        with Scheduler.open(tmp_path / "j", lock_timeout=5) as operator:
            ended.append(operator.run(run_id))
        go.set()
        until(lambda: not host.at_work)
        disk.failing = False
        until(lambda: any(isinstance(one, Warned) for one in seen))
    assert [run.state for run in ended] == ["abandoned"]
    assert [one for one in seen if isinstance(one, Ended)] == []
