"""A run by hand: what becomes of somebody's word that something should run now.

Rules: it has no occurrence and moves no watermark; it is admitted pending and never refused for capacity; a target
that is unknown, an input that does not resolve or a preflight that refuses is the caller's error, and nothing is
recorded.
"""

from __future__ import annotations

from collections.abc import Generator, Mapping

from duly.journal.entries import Expression, Json, RunAdmittedManually
from duly.projections.schedules import ScheduleState
from duly.scheduler.decisions.administration import Command
from duly.scheduler.decisions.questions import Answer, AskPreflight, AskTarget, Invocation, Question, Refusal
from duly.scheduler.errors import DefinitionError
from duly.scheduler.inputs import InputUnresolved, resolve_unbound


def decide_manual_run(
    schedule: ScheduleState | None,
    target: str | None,
    bindings: Mapping[str, Expression] | None,
    limits: Mapping[str, Json] | None,
    command: Command,
) -> Generator[Question, Answer, RunAdmittedManually]:
    """The admission of a run by hand; asks for the target and the preflight. Raises DefinitionError."""
    definition = None if schedule is None else schedule.definition
    name = target or (definition.target if definition is not None else None)
    if name is None:
        raise DefinitionError("target", target, "is missing", "Name a schedule or a target.")
    known = yield AskTarget(name, None if schedule is None else schedule.id)
    if known is None or isinstance(known, Refusal):
        detail = "is unknown" if known is None else f"is refused: {known.detail}"
        raise DefinitionError("target", name, detail, "Name a target that the host knows.")
    pinned = None if definition is None or target is not None else definition.target_revision
    if pinned is not None and known.revision != pinned:
        raise DefinitionError("target", name, f"is not at the pinned revision {pinned!r}", "Edit the schedule's pin.")
    source = bindings if bindings is not None else (definition.input if definition is not None else {})
    try:
        resolved = resolve_unbound(source)
    except InputUnresolved as error:
        raise DefinitionError(
            "input", dict(source), f"does not resolve: {error}", "Give input= for this run."
        ) from error
    chosen = dict(limits) if limits is not None else (dict(definition.limits) if definition is not None else {})
    invocation = Invocation(
        schedule_id=None if schedule is None else schedule.id,
        occurrence_id=None,
        scheduled_at=None,
        target=known.name,
        target_revision=known.revision,
        environment=known.environment,
        input=resolved,
        limits=chosen,
    )
    refusal = yield AskPreflight(invocation)
    if isinstance(refusal, Refusal):
        raise DefinitionError("input", resolved, f"is refused by the preflight: {refusal.detail}", "Mend what it says.")
    return RunAdmittedManually(
        schedule_id=invocation.schedule_id,
        revision=None if schedule is None else schedule.revision,
        target=known.name,
        target_revision=known.revision,
        environment=known.environment,
        input=resolved,
        limits=chosen,
        **command.fields(),
    )
