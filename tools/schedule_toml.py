"""Reads schedules from TOML: text in, entries and problems out.

Rules kept here: pure; arbitrary text never raises; a key that is not known is refused with the nearest one, because a
misspelt policy must never turn into the default; a problem names the line of its table.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Callable, Mapping
from datetime import date, datetime
from difflib import get_close_matches
from typing import Any, cast

from duly.scheduler.definitions import DefinitionFields, check_schedule_id, parse_definition
from duly.scheduler.errors import SchedulerError
from duly.scheduler.triggers import Cron, Every, OccurrenceSource, OncePer, OneShot
from duly.scheduler.zones import zone_of
from duly.tools.crontab import VARIABLE, Problem
from duly.tools.declaring import TARGET
from duly.tools.moments import parse_duration
from duly.tools.schedule_file import Declared, ScheduleFile

TRIGGERS = ("cron", "every", "once_per", "once")
TOP = ("zone", "environment", "schedules")
KEYS = (
    *TRIGGERS,
    *("command", "stdin", "user", "environment"),
    *("zone", "fold", "misfire", "lateness", "overlap", "max_active_runs", "timeout"),
)
EVERY = ("count", "unit", "at", "anchor")
_PLACE = re.compile(r" *\(at (?:line (?P<line>\d+), column (?P<column>\d+)|end of document)\)$")


class Refused(Exception):
    """What is wrong, and what to write instead."""

    def __init__(self, message: str, remedy: str) -> None:
        super().__init__(message)
        self.remedy = remedy


def parse_schedule_toml(text: str, *, source: str, zone: str) -> ScheduleFile:
    """Reads a whole file. `zone` is where its times are meant where it does not say."""
    try:
        document = tomllib.loads(text)
    except (ValueError, RecursionError) as error:  # a TOMLDecodeError, or what int() says of thousands of digits
        place = _PLACE.search(str(error))
        line, column = (int(place["line"] or 1), int(place["column"] or 1)) if place else (1, 1)
        told = _PLACE.sub("", str(error))
        return ScheduleFile(source, zone, (), (Problem(source, line, column, told, "write TOML"),))
    problems: list[Problem] = []
    entries: list[Declared] = []
    try:
        used, environment, tables = _top(document, zone)
    except (Refused, SchedulerError, ValueError) as error:
        return ScheduleFile(source, zone, (), (_problem(source, 1, error),))
    for name, table in tables.items():
        line = _line_of(text, name)
        try:
            entries.append(_declared(name, line, table, used, environment))
        except (Refused, SchedulerError, ValueError) as error:
            problems.append(_problem(source, line, error, f"{name}: "))
    return ScheduleFile(source, used, tuple(entries), tuple(problems))


def _top(document: Mapping[str, Any], zone: str) -> tuple[str, dict[str, str], Mapping[str, object]]:
    _check_keys(document, TOP, "of the file")
    tables = document.get("schedules", {})
    if not isinstance(tables, dict):
        raise Refused("'schedules' is no table", "write [schedules.NAME] above each schedule")
    used = zone_of(_text(document, "zone", zone) or zone).name
    return used, _environment(document), cast("dict[str, object]", tables)


def _declared(name: str, line: int, table: object, zone: str, environment: dict[str, str]) -> Declared:
    check_schedule_id(name)
    if not isinstance(table, dict):
        raise Refused("it is no table", f"write [schedules.{name}], and its keys below")
    keys = cast("dict[str, Any]", table)
    _check_keys(keys, KEYS, "of a schedule")
    own = zone_of(_text(keys, "zone", zone) or zone).name
    trigger, when = _trigger(keys, own)
    fields: DefinitionFields = {"trigger": trigger, "target": TARGET, "input": _input(keys, environment)}
    given = cast("dict[str, Any]", fields)
    for key in ("misfire", "overlap", "max_active_runs"):
        if key in keys:
            given[key] = keys[key]
    if "lateness" in keys:
        given["lateness"] = parse_duration(_required(keys, "lateness"))
    if "timeout" in keys:
        given["limits"] = {"timeout": parse_duration(_required(keys, "timeout")).total_seconds()}
    parse_definition(fields)
    return Declared(name, line, when, own, fields)


def _trigger(keys: Mapping[str, Any], zone: str) -> tuple[OccurrenceSource, str]:
    named = [key for key in TRIGGERS if key in keys]
    if len(named) != 1:
        said = " and ".join(named) if named else "no trigger"
        raise Refused(f"it has {said}", f"write exactly one of {', '.join(TRIGGERS)}")
    fold = keys.get("fold", "both")
    if "fold" in keys and named[0] not in ("cron", "every"):
        raise Refused(f"fold means nothing beside {named[0]}", "leave it out")
    readers: dict[str, Callable[[], tuple[OccurrenceSource, str]]] = {
        "cron": lambda: (Cron(_required(keys, "cron"), zone=zone, fold=fold), str(keys["cron"])),
        "every": lambda: _every(keys["every"], zone, fold),
        "once_per": lambda: (OncePer(keys["once_per"], zone=zone), f"once per {keys['once_per']}"),
        "once": lambda: _once(keys["once"]),
    }
    return readers[named[0]]()


def _once(at: object) -> tuple[OccurrenceSource, str]:
    if not isinstance(at, datetime) or at.tzinfo is None:
        raise Refused("once is no instant with an offset", "write once = 2026-03-29T01:00:00Z, without quotes")
    return OneShot(at), f"once at {at.isoformat()}"


def _every(every: object, zone: str, fold: Any) -> tuple[OccurrenceSource, str]:
    if not isinstance(every, dict):
        raise Refused(
            "every is no table", 'write every = {count = 2, unit = "week", at = "07:00", anchor = 2026-01-05}'
        )
    keys = cast("dict[str, Any]", every)
    _check_keys(keys, EVERY, "of every")
    anchor, count, unit = keys.get("anchor"), keys.get("count", 1), keys.get("unit")
    if not isinstance(anchor, date):
        raise Refused("every has no anchor", "write from when it counts: anchor = 2026-01-05, without quotes")
    days = not isinstance(anchor, datetime)
    trigger = Every(count, cast("Any", unit), anchor=anchor, at=keys.get("at"), zone=zone if days else None, fold=fold)
    return trigger, f"every {count} {unit} from {anchor.isoformat()}"


def _input(keys: Mapping[str, Any], environment: dict[str, str]) -> dict[str, object]:
    command: object = keys.get("command")
    words = cast("list[object]", command) if isinstance(command, list) else [command]
    if not command or not all(isinstance(word, str) for word in words):
        raise Refused("command is no text, and no list of words", 'write command = "…", for the shell, or ["…", "…"]')
    if not str(words[0]).strip() or any("\0" in str(word) for word in words):
        raise Refused("command names nothing to execute", 'write command = "…", for the shell, or ["…", "…"]')
    given: dict[str, object] = {"command": command}
    for key in ("stdin", "user"):
        if key in keys:
            given[key] = _required(keys, key)
    merged = environment | _environment(keys)
    return given | ({"environment": merged} if merged else {})


def _environment(keys: Mapping[str, Any]) -> dict[str, str]:
    found: object = keys.get("environment", {})
    pairs = cast("dict[str, object]", found) if isinstance(found, dict) else None
    if pairs is None or not all(isinstance(value, str) for value in pairs.values()):
        raise Refused("environment is no table of texts", 'write environment = {NAME = "value"}')
    for name in pairs:
        if VARIABLE.fullmatch(name) is None:
            raise Refused(f"{name!r} is no name of a variable", "use letters, digits and _, a letter or _ first")
    return cast("dict[str, str]", dict(pairs))


def _text(keys: Mapping[str, Any], key: str, default: str | None) -> str | None:
    return _required(keys, key) if key in keys else default


def _required(keys: Mapping[str, Any], key: str) -> str:
    value = keys[key]
    if not isinstance(value, str):
        raise Refused(f"{key} is no text", f'write {key} = "…", in quotes')
    return value


def _check_keys(keys: Mapping[str, Any], known: tuple[str, ...], where: str) -> None:
    for key in keys:
        if key not in known:
            near = get_close_matches(key, known, n=1)
            raise Refused(f"{key!r} is no key {where}", f"write {near[0] if near else 'one of ' + ', '.join(known)}")


def _line_of(text: str, name: str) -> int:
    header = re.compile(
        rf"""^[ \t]*\[[ \t]*schedules[ \t]*\.[ \t]*["']?{re.escape(name)}["']?[ \t]*[].]""", re.MULTILINE
    )
    found = header.search(text)
    return text.count("\n", 0, found.start()) + 1 if found else 1


def _problem(source: str, line: int, error: Exception, subject: str = "") -> Problem:
    if isinstance(error, SchedulerError):
        return Problem(source, line, 1, f"{subject}{error.message}", error.hint)
    if isinstance(error, Refused):
        return Problem(source, line, 1, f"{subject}{error}", error.remedy)
    message, _, remedy = str(error).partition(": ")
    return Problem(source, line, 1, f"{subject}{message}", remedy or "mend it")
