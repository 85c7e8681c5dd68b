"""The refusal of an id that the record does not know."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from duly.scheduler.errors import UnknownSchedule
from duly.scheduler.wording import describe_value


def unknown_schedule(
    schedule_id: str, ids: Iterable[str], *, was_there: Callable[[str], bool] = bool
) -> UnknownSchedule:
    """The error for an id that the record does not know, with the closest that it knows, if `was_there` says so."""
    # Costs its import only when something is refused.
    from difflib import get_close_matches

    near = [one for one in get_close_matches(schedule_id, sorted(ids), n=10) if was_there(one)][:3]
    hint = f"The nearest: {', '.join(near)}." if near else "`duly schedules` lists what there is."
    return UnknownSchedule(f"there is no schedule {describe_value(schedule_id)}", schedule_id=schedule_id, hint=hint)
