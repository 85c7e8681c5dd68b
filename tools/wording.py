"""Numbers with the noun that fits them, and commands as they are typed."""

from __future__ import annotations


def counted(number: int, noun: str, plural: str = "") -> str:
    """`1 segment`, `2 segments`, `1,204 entries`."""
    return f"{number:,} {noun if number == 1 else plural or f'{noun}s'}"


def lost_entries(number: int) -> str:
    """What salvage could not save, as a sentence's beginning."""
    return f"{counted(number, 'entry', 'entries')} {'was' if number == 1 else 'were'} lost"


def command_about(schedule_id: str, verb: str, place: str, *more: str) -> str:
    """The command line of a verb about a schedule of the journal at `place`, which is quoted already, as it works when
    it is typed: an id may begin like an option, and is then named behind all of them."""
    if schedule_id.startswith("-"):
        return " ".join(("duly", verb, "-j", place, "--", schedule_id, *more))
    return " ".join(("duly", verb, schedule_id, *more, "-j", place))
