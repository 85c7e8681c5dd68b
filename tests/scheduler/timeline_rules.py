"""A timeline's options as the API's values: triggers, definitions, changes."""

from __future__ import annotations

import json
from datetime import UTC, date, datetime
from typing import Any, Literal, cast

from duly import Cron, Every, OncePer, OneShot
from tests.scheduler.timeline_text import Line, TimelineError, describe_instant, parse_duration, parse_instant

Trigger = Cron | Every | OncePer | OneShot
DEFAULT_LIMIT = 10


def definition_of(line: Line) -> tuple[Trigger, dict[str, Any]]:
    """The trigger and the other arguments of `create` and `declare`."""
    trigger = trigger_of(line)
    if trigger is None:
        raise TimelineError(f"line {line.number}: {line.verb} needs a trigger")
    fields = _fields(line)
    fields.setdefault("target", line.subjects[0])
    if line.options.get("overlap") == "parallel":
        fields.setdefault("max_active_runs", DEFAULT_LIMIT)
    return trigger, fields


def changes_of(line: Line) -> dict[str, Any]:
    """The arguments of `edit`: what the line names, and nothing else."""
    trigger = trigger_of(line)
    return _fields(line) | ({} if trigger is None else {"trigger": trigger})


def trigger_of(line: Line) -> Trigger | None:
    options, day = line.options, line.now.date()
    zone = options.get("zone", "UTC")
    fold = cast('Literal["both", "first"]', options.get("fold", "both"))
    if "cron" in options:
        return Cron(options["cron"], zone=zone, fold=fold)
    if "once" in options:
        return OneShot(parse_instant(options["once"], day))
    if "once_per" in options:
        return OncePer(cast('Literal["day", "week", "month"]', options["once_per"]), zone=zone)
    if "every" in options:
        return _every(options, zone, fold, day)
    return None


def value_of(value: object) -> str:
    """What a question answers, as a word of a timeline."""
    if value is None or isinstance(value, bool):
        return {None: "none", True: "yes", False: "no"}[value]
    return describe_instant(value) if isinstance(value, datetime) else str(value)


def _every(options: dict[str, str], zone: str, fold: Literal["both", "first"], day: date) -> Every:
    count, unit = options["every"].split()
    named = cast("Any", unit.removesuffix("s"))
    if named in ("minute", "hour"):
        return Every(int(count), named, anchor=parse_instant(options["anchor"], day).astimezone(UTC))
    anchor = date.fromisoformat(options["anchor"])
    return Every(int(count), named, at=options["at"], zone=zone, anchor=anchor, fold=fold)


def _fields(line: Line) -> dict[str, Any]:
    options = line.options
    named = {"overlap", "misfire", "target", "actor", "note", "request"} & set(options)
    fields: dict[str, Any] = {name: options[name] for name in named}
    if "limit" in options:
        fields["max_active_runs"] = None if options["limit"] == "none" else int(options["limit"])
    if "lateness" in options:
        fields["lateness"] = parse_duration(options["lateness"])
    if "pin" in options:
        fields["target_revision"] = options["pin"]
    fields |= {name: json.loads(options[name]) for name in ("input", "limits") if name in options}
    return fields
