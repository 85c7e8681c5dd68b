"""Reads a crontab: text in, entries and problems out.

Rules kept here:
- pure: no file, no clock, no environment; arbitrary text never raises;
- every line that is not imported has a problem with line and column (both from 1) and a remedy; the others are read;
- nothing is guessed: an entry under a zone or a `# duly:` comment that is not understood is refused as well;
- an entry keeps its id when another one is mended: a refused entry still takes its number.

Both forms are read: the user's (`m h dom mon dow command`) and the system's, with a user before the command.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from difflib import get_close_matches
from pathlib import PurePath

from duly.scheduler.errors import DefinitionError
from duly.scheduler.expressions import ALIASES, FIELDS, parse_expression
from duly.scheduler.zones import zone_of
from duly.tools.crontab_options import DIRECTIVE, Malformed, Options, check_together, parse_options

LONGEST_ID = 48
VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
"""The names of variables that every shell passes on."""

_WORD = re.compile(r"[^ \t]+")
_USER = re.compile(r"[A-Za-z_][A-Za-z0-9_.-]*\$?(?:[:/][A-Za-z0-9_.-]+)*", re.ASCII)
_ENVIRONMENT = re.compile(
    r"""[ \t]*(?:"(?P<double>[^"]*)"|'(?P<single>[^']*)'|(?P<bare>[A-Za-z_][A-Za-z0-9_]*))[ \t]*=[ \t]*(?P<value>.*)""",
    re.ASCII,
)


@dataclass(frozen=True, slots=True)
class Problem:
    """A line, or a part of one, that was not understood."""

    source: str
    line: int
    column: int
    message: str
    remedy: str

    def __str__(self) -> str:
        remedy = self.remedy[:1].upper() + self.remedy[1:]
        return f"{self.source}:{self.line}:{self.column}: {self.message}. {remedy}"


@dataclass(frozen=True, slots=True)
class CrontabEntry:
    """One entry: when (`expression` in `zone`), what (`command`, `stdin`, `user`, `environment`), by which policies."""

    schedule_id: str
    line: int
    expression: str
    zone: str
    command: str
    stdin: str | None
    user: str | None
    environment: Mapping[str, str]
    options: Options


@dataclass(frozen=True, slots=True)
class Crontab:
    """What a crontab says, in its order; `notices` are for people and change nothing."""

    source: str
    zone: str
    entries: tuple[CrontabEntry, ...]
    problems: tuple[Problem, ...]
    notices: tuple[str, ...] = ()


def parse_crontab(text: str, *, source: str = "crontab", system: bool = False, zone: str = "UTC") -> Crontab:
    """Read a whole crontab. `zone` is where its times are meant until a `CRON_TZ` line says otherwise."""
    reader = _Reader(source, system, zone)
    for number, line in enumerate(text.removeprefix("\ufeff").split("\n"), start=1):
        reader.read(number, line.removesuffix("\r"))
    return reader.finish()


def is_system_crontab(path: PurePath) -> bool:
    """Whether a file of this name has a user before each command: /etc/crontab, /etc/cron.d/…"""
    return path.parent.name == "cron.d" or (path.name == "crontab" and path.parent.name == "etc")


def slug_of(command: str) -> str:
    """A schedule id made of the words of a command: paths shortened to their last part, redirections cut off."""
    essence = re.sub(r"^(?:cd\s+\S+\s*(?:&&|;)\s*|[A-Za-z_][A-Za-z0-9_]*=\S*\s+)+", "", command)
    essence = re.split(r"[<>|]|\d>|&>", essence, maxsplit=1)[0]
    words = [word.rstrip("/").rsplit("/", 1)[-1] for word in essence.split()]
    slug = re.sub(r"[^A-Za-z0-9._:]+", "-", "-".join(words), flags=re.ASCII).strip("-.:_").lower()
    if len(slug) > LONGEST_ID:
        slug = slug[: LONGEST_ID + 1].rpartition("-")[0] or slug[:LONGEST_ID]
    return slug.strip("-.:_") or "entry"


def split_percent(text: str) -> tuple[str, str | None]:
    r"""The command and its standard input: a bare `%` ends the command, the ones after it are newlines, `\%` is `%`."""
    parts = [part.replace("\\%", "%") for part in re.split(r"(?<!\\)%", text)]
    if len(parts) == 1:
        return parts[0].rstrip(" \t"), None
    stdin = "\n".join(parts[1:])
    return parts[0].rstrip(" \t"), stdin if not stdin or stdin.endswith("\n") else stdin + "\n"


@dataclass(slots=True)
class _Draft:
    """An entry line whose command is known; `entry` is None if it is refused for another reason."""

    line: int
    command: str
    options: Options
    option_line: int
    entry: CrontabEntry | None = None


@dataclass(slots=True)
class _Reader:
    source: str
    system: bool
    default_zone: str
    problems: list[Problem] = field(default_factory=list[Problem])
    drafts: list[_Draft] = field(default_factory=list[_Draft])
    environment: dict[str, str] = field(default_factory=dict[str, str])
    zones: dict[str, tuple[str | None, int]] = field(default_factory=dict[str, "tuple[str | None, int]"])
    options: Options = field(default_factory=Options)
    option_line: int = 0
    options_failed: bool = False

    def read(self, number: int, line: str) -> None:
        try:
            if not line.strip(" \t"):
                self._expect_no_options()
            elif DIRECTIVE.match(line):
                self._read_options(number, line)
            elif not line.lstrip(" \t").startswith("#"):
                self._read_content(number, line)
        except Malformed as error:
            self._refuse(number, error)

    def finish(self) -> Crontab:
        self._expect_no_options()
        entries = self._name_entries()
        self.problems.sort(key=lambda problem: (problem.line, problem.column))
        return Crontab(
            self.source, self.default_zone, tuple(entries), tuple(self.problems), tuple(self._notices(entries))
        )

    def _refuse(self, number: int, error: Malformed) -> None:
        self.problems.append(Problem(self.source, number, error.column, error.message, error.remedy))

    def _read_options(self, number: int, line: str) -> None:
        self.option_line = number
        try:
            self.options = parse_options(line, self.options)
        except Malformed:
            self.options_failed = True
            raise

    def _expect_no_options(self) -> None:
        if self.option_line:
            remedy = "put it directly above the entry it is about, or remove it"
            self._refuse(self.option_line, Malformed(1, "this '# duly:' comment belongs to no entry", remedy))
        self._forget_options()

    def _forget_options(self) -> None:
        self.options, self.option_line, self.options_failed = Options(), 0, False

    def _read_content(self, number: int, line: str) -> None:
        # A name cannot begin a schedule, so what looks like an assignment is one.
        assignment = _ENVIRONMENT.match(line)
        if assignment is not None:
            self._expect_no_options()
            _check_characters(line)
            self._read_assignment(number, assignment)
            return
        options, option_line, failed = self.options, self.option_line, self.options_failed
        self._forget_options()
        _check_characters(line)
        fields, rest = _split_time(line)
        user, start = self._split_user(line, rest)
        command, stdin = split_percent(line[start:])
        if not command:
            raise _without_command(line, user)
        draft = _Draft(number, command, options, option_line)
        self.drafts.append(draft)
        if failed:
            raise _under_refused_options(fields[0].start() + 1, option_line)
        zone = self._zone_here(fields[0].start() + 1)
        expression = _check_time(fields)
        try:
            check_together(options)
        except ValueError as error:
            message, _, remedy = str(error).partition(": ")
            self._refuse(option_line, Malformed(1, message, remedy))
            raise _under_refused_options(fields[0].start() + 1, option_line) from None
        environment = {name: value for name, value in self.environment.items() if name != "CRON_TZ"}
        draft.entry = CrontabEntry("", number, expression, zone, command, stdin, user, environment, options)

    def _read_assignment(self, number: int, assignment: re.Match[str]) -> None:
        name = next(value for value in (assignment[key] for key in ("double", "single", "bare")) if value is not None)
        column = assignment.start("value") + 1
        value = assignment["value"].rstrip(" \t")
        if not name:
            raise Malformed(1, "the name before '=' is empty", "write NAME=value")
        if value[:1] in ('"', "'"):
            if len(value) < 2 or value[-1] != value[0]:
                raise Malformed(column, f"the quote {value[0]} is not closed", "close it at the end of the line")
            value = value[1:-1]
        if name in ("CRON_TZ", "TZ"):
            self._read_zone(number, column, name, value)
        self.environment[name] = value

    def _read_zone(self, number: int, column: int, name: str, value: str) -> None:
        zone = value.strip().removeprefix(":")
        if not zone:
            self.zones.pop(name, None)
            return
        self.zones[name] = (None, number)
        if len(zone.split()) > 1:
            raise Malformed(column, f"{value!r} is not a zone", f"put {name}={zone.split()[0]} on a line of its own")
        try:
            zone_of(zone)
        except DefinitionError as error:
            raise Malformed(column, f"the zone {zone!r} {error.problem}", error.remedy) from None
        self.zones[name] = (zone, number)

    def _zone_here(self, column: int) -> str:
        zone, number = self.zones.get("CRON_TZ") or self.zones.get("TZ") or (self.default_zone, 0)
        if zone is None:
            message = f"the zone on line {number} is unknown, so this entry is not imported"
            raise Malformed(column, message, "mend that line")
        return zone

    def _split_user(self, line: str, rest: int) -> tuple[str | None, int]:
        word = _WORD.search(line, rest)
        if word is None:
            raise _without_command(line, None)
        if not self.system:
            return None, word.start()
        if not _USER.fullmatch(word.group()):
            remedy = "In a system crontab a user stands before the command; --user-form reads the form without"
            raise Malformed(word.start() + 1, f"{word.group()!r} is not a user", remedy)
        command = _WORD.search(line, word.end())
        return word.group(), command.start() if command else len(line)

    def _name_entries(self) -> list[CrontabEntry]:
        taken: dict[str, int] = {}
        for draft in self.drafts:
            wanted = draft.options.schedule_id
            if wanted is None:
                continue
            if wanted in taken:
                message = f"the id {wanted!r} is already that of line {taken[wanted]}"
                self._refuse(draft.option_line, Malformed(1, message, "give each entry an id of its own"))
                self._refuse(draft.line, _under_refused_options(1, draft.option_line))
                draft.entry = None
            taken.setdefault(wanted, draft.line)
        entries: list[CrontabEntry] = []
        numbers: Counter[str] = Counter()
        for draft in self.drafts:
            name = draft.options.schedule_id or _free_name(slug_of(draft.command), taken, numbers)
            taken.setdefault(name, draft.line)
            if draft.entry is not None:
                entries.append(replace(draft.entry, schedule_id=name))
        return entries

    def _notices(self, entries: list[CrontabEntry]) -> Iterator[str]:
        first = next((entry for entry in entries if entry.command.startswith("root ")), None)
        if first is not None and not self.system:
            yield (
                f"line {first.line}: the command begins with 'root'. If a user stands before each command, "
                "this is a system crontab: import it with --system"
            )
        for name in sorted({name for entry in entries for name in entry.environment}):
            if VARIABLE.fullmatch(name) is None:
                yield f"the variable {name!r} is kept, but no command is given it: a shell does not pass on such a name"


def _split_time(line: str) -> tuple[list[re.Match[str]], int]:
    """The words of the time, one (@daily) or five, and where the rest begins."""
    words = _WORD.finditer(line)
    first = next(words)
    nickname = first.group()
    if nickname.startswith("@"):
        if nickname.lower() == "@reboot":
            remedy = "let the service manager start it with the machine, or write a time"
            raise Malformed(first.start() + 1, "@reboot is not a time", remedy)
        if nickname.lower() not in ALIASES:
            near = get_close_matches(nickname.lower(), ALIASES, n=1)
            remedy = f"write {near[0]}" if near else f"write five fields, or one of {', '.join(sorted(ALIASES))}"
            raise Malformed(first.start() + 1, f"{nickname!r} is not known", remedy)
        return [first], first.end()
    fields = [first, *(word for word, _ in zip(words, range(4), strict=False))]
    if len(fields) < 5:
        message = f"only {len(fields)} of the five time fields are here"
        raise Malformed(
            len(line.rstrip(" \t")) + 1, message, "write: minute hour day-of-month month day-of-week command"
        )
    return fields, fields[-1].end()


def _without_command(line: str, user: str | None) -> Malformed:
    after = f"the user {user!r}" if user else "the time"
    return Malformed(len(line.rstrip(" \t")) + 1, f"there is no command after {after}", "write the command at the end")


def _under_refused_options(column: int, option_line: int) -> Malformed:
    message = f"the '# duly:' comment on line {option_line} is refused, so this entry is not imported"
    return Malformed(column, message, "mend that comment")


def _check_characters(line: str) -> None:
    for index, character in enumerate(line):
        code = ord(character)
        if 0xD800 <= code <= 0xDFFF:
            raise Malformed(index + 1, "this is not UTF-8 text", "save the file as UTF-8")
        if (code < 0x20 and character != "\t") or 0x7F <= code <= 0x9F:
            raise Malformed(index + 1, f"there is a control character (U+{code:04X})", "remove it")


def _check_time(fields: list[re.Match[str]]) -> str:
    """The expression, or where in it the fault is."""
    expression = " ".join(word.group() for word in fields)
    try:
        parse_expression(expression)
    except DefinitionError as error:
        names = [one.name for one in FIELDS]
        word = fields[names.index(error.field)] if error.field in names and len(fields) == len(names) else fields[0]
        value = str(error.value)
        within = word.group().lower().find(value)
        what = "this time" if error.field == "expression" else f"{error.field}: {value!r}"
        raise Malformed(word.start() + 1 + max(within, 0), f"{what} {error.problem}", error.remedy) from None
    return expression


def _free_name(slug: str, taken: Mapping[str, int], numbers: Counter[str]) -> str:
    """A name that is not taken; `numbers` holds the last number of each slug, as the ones up to it stay taken."""
    while True:
        numbers[slug] += 1
        name = slug if numbers[slug] == 1 else f"{slug}-{numbers[slug]}"
        if name not in taken:
            return name
