"""`Scheduler`: what a program embeds.

Rules: opening takes ownership, replays, reconciles, and only then is ready; it executes nothing and offers nothing by
itself. One Scheduler owns one journal. All methods may be called from any thread.
"""

from __future__ import annotations

import os
import platform
from collections.abc import Mapping
from datetime import timedelta
from pathlib import Path
from types import TracebackType
from typing import Self

from duly import __version__
from duly.journal import Disk, Journal, RealDisk
from duly.journal.entries import CalendarChanged, Entry, JournalOpened
from duly.projections.checkpoints import StateFolding
from duly.scheduler.administration import Administration
from duly.scheduler.answers import HostAnswers, Preflight, Targets
from duly.scheduler.checkpoints import EVERY, Checkpoints
from duly.scheduler.clock import CheckedClock, Clock, SystemClock
from duly.scheduler.copies import round_trip, run_copies
from duly.scheduler.cron import croniter_version
from duly.scheduler.decisions.admission import ENGINE
from duly.scheduler.decisions.recovery import Findings, decide_recovery
from duly.scheduler.decisions.runs import StillRunning
from duly.scheduler.definitions import check_count, check_words
from duly.scheduler.errors import DefinitionError
from duly.scheduler.execution import Execution
from duly.scheduler.instants import describe_instant
from duly.scheduler.polls import Polling
from duly.scheduler.reconciling import EvidenceSource, Recovery, calendar_changes, gather
from duly.scheduler.sources import SourceFactory
from duly.scheduler.zones import tzdata_version


class Scheduler(Polling, Administration, Execution):
    """An event-sourced scheduler over one journal. It decides; the host executes and reports back.

    Open it with `Scheduler.open`, and use it as a context manager or close it.
    """

    recovery: Recovery
    """What opening found, decided and left."""

    @classmethod
    def open(  # noqa: PLR0913 - what an owner may settle
        cls,
        path: Path | str,
        *,
        task_slots: int = 8,
        clock: Clock | None = None,
        targets: Targets | None = None,
        preflight: Preflight | None = None,
        evidence: EvidenceSource | None = None,
        sources: Mapping[str, SourceFactory] | None = None,
        batch: int = 1000,
        clock_tolerance: timedelta = timedelta(minutes=5),
        create: bool = True,
        lock_timeout: timedelta | float | None = None,
        actor: str = "",
        block_unevaluable: bool = True,
        checkpoint_every: int | None = EVERY,
        disk: Disk | None = None,
    ) -> Self:
        """Takes the journal in the folder `path`, replays it, and reconciles what a crash left open.

        `task_slots` is how many runs the host executes at once; `batch` how many entries one poll may make;
        `clock_tolerance` how far the clock may step back unnoticed. `targets`, `preflight` and `evidence` are the
        host's answers; `sources` the factories of its own triggers, by name. Without `create` a journal must be there.
        `lock_timeout` is how long to wait for another owner to leave (seconds or timedelta; None: not at all). Without
        `block_unevaluable`, schedules whose triggers this process cannot evaluate are not blocked at opening: for a
        visitor to a stopped host's journal, who lacks the host's `sources` and admits nothing. `checkpoint_every` is
        after how many entries the state is written beside the journal, so that opening is quick; None: never.

        Raises JournalLocked, LockUnsupported, JournalCorrupt, ForeignJournal, UnreadableJournal, DefinitionError.
        """
        _check_what_the_host_brings(path, clock, lock_timeout, sources)
        for name, callback in (("targets", targets), ("preflight", preflight)):
            if callback is not None and not callable(callback):
                raise DefinitionError(name, callback, "is no function", "Give a function, or leave it out.")
        check_count("task_slots", task_slots)
        check_count("batch", batch)
        if checkpoint_every is not None:
            check_count("checkpoint_every", checkpoint_every)
        _check_tolerance(clock_tolerance)
        actor = check_words("actor", actor)
        used = CheckedClock(clock if clock is not None else SystemClock())
        known = dict(sources or {})
        disk = disk if disk is not None else RealDisk()
        folding = StateFolding()
        journal = Journal.open(
            path,
            now=used.now(),
            create=create,
            lock_timeout=timedelta(seconds=lock_timeout) if isinstance(lock_timeout, int | float) else lock_timeout,
            disk=disk,
            folding=folding,
        )
        try:
            scheduler = cls(
                journal,
                folding.whole(journal.path),
                used,
                answers=HostAnswers(targets, preflight),
                sources=known,
                actor=actor,
                checkpoints=Checkpoints(journal, disk, checkpoint_every),
            )
            opened = JournalOpened(
                at=used.now(),
                host=platform.node(),
                pid=os.getpid(),
                duly=__version__,
                croniter=croniter_version(),
                tzdata=tzdata_version(),
                python=platform.python_version(),
                task_slots=task_slots,
                batch=batch,
                clock_tolerance=clock_tolerance,
                torn=tuple(journal.recovery.torn),
                actor=actor,
                engine=ENGINE,
            )
            scheduler.recovery = scheduler._exclusively(
                lambda: scheduler._reconcile(opened, evidence, block_unevaluable=block_unevaluable)
            )
        except BaseException:
            journal.close()
            raise
        return scheduler

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    @property
    def path(self) -> Path:
        """The journal's folder."""
        return self._journal.path

    def _reconcile(
        self, opened: JournalOpened, evidence: EvidenceSource | None, *, block_unevaluable: bool
    ) -> Recovery:
        replayed = self._state.sequence
        self._compare_clocks(opened.at)
        findings = gather(
            self._state, self._journal.entries, evidence, self._sources, block_unevaluable=block_unevaluable
        )
        changes = calendar_changes(self._state, self._sources, opened.at, opened)
        # Changes of the calendar come before the entry that carries its versions: cut between them, the next opening
        # still sees that the versions differ.
        entries: tuple[Entry, ...] = (*changes, opened, *decide_recovery(self._state, findings, opened.at))
        self._record_in_chunks(entries, opened.at)
        self._agenda.fill(self._state.by_id.values())
        interrupted = [run for run in self._state.runs_open.values() if run.state == "interrupted"]
        return Recovery(
            created=self._journal.recovery.created,
            replayed=replayed,
            checkpoint=self._journal.recovery.checkpoint,
            torn=tuple(self._journal.recovery.torn),
            decisions=tuple(
                (sequence, round_trip(entry))
                for sequence, entry in enumerate(entries, replayed + 1)
                if entry is not opened
            ),
            pending=run_copies(self._state.runs_open[run_id] for run_id in self._state.pending),
            interrupted=run_copies(interrupted),
            running=run_copies(
                self._state.runs_open[run_id] for run_id in self._state.started if _goes_on(findings, run_id)
            ),
            warnings=(*self._journal.recovery.warnings, *findings.warnings, *_described(changes)),
        )


def _goes_on(findings: Findings, run_id: int) -> bool:
    return isinstance(findings.evidence.get(run_id), StillRunning)


def _described(changes: tuple[CalendarChanged, ...]) -> tuple[str, ...]:
    return tuple(
        f"schedule {change.schedule_id}: {describe_instant(change.was)} is no instant of it by this machine's calendar"
        for change in changes
    )


def _check_what_the_host_brings(path: object, clock: object, lock_timeout: object, sources: object) -> None:
    """Refuses, before anything is touched, what would fail later in words that tell nobody what to do."""
    if not isinstance(path, str | os.PathLike):
        raise DefinitionError("path", path, "is no path", "Give the journal's folder, as a str or a Path.")
    if clock is not None and not all(callable(getattr(clock, name, None)) for name in ("now", "monotonic", "wait")):
        raise DefinitionError("clock", clock, "is no Clock", "Give a ManualClock, your own Clock, or leave it out.")
    seconds = lock_timeout.total_seconds() if isinstance(lock_timeout, timedelta) else lock_timeout
    if seconds is not None and (not isinstance(seconds, int | float) or isinstance(seconds, bool) or not seconds >= 0):
        raise DefinitionError(
            "lock_timeout", lock_timeout, "is no time to wait", "Give seconds or a timedelta, or None."
        )
    if sources is not None and not isinstance(sources, Mapping):
        raise DefinitionError("sources", sources, "is no mapping", "Give a dict of names to factories.")


def _check_tolerance(tolerance: object) -> None:
    if not isinstance(tolerance, timedelta) or not timedelta() <= tolerance <= timedelta(days=365):
        raise DefinitionError("clock_tolerance", tolerance, "is no tolerance", "Give a timedelta from 0 to 365 days.")
