"""Numbers with the noun that fits them."""

from __future__ import annotations


def counted(number: int, noun: str, plural: str = "") -> str:
    """`1 segment`, `2 segments`, `1,204 entries`."""
    return f"{number:,} {noun if number == 1 else plural or f'{noun}s'}"


def lost_entries(number: int) -> str:
    """What salvage could not save, as a sentence's beginning."""
    return f"{counted(number, 'entry', 'entries')} {'was' if number == 1 else 'were'} lost"
