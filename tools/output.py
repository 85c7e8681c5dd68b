"""How an answer leaves the command line: a table for people, JSON for programs, both safe to print.

Rules kept here:
- every text passes `printable` (tables, lines) or is ASCII JSON, so that nothing in a journal can drive a terminal;
- a JSON document carries its schema and grows only additively; `jsonl` is one document, or one row, a line;
- colour and progress appear on terminals only; what is piped is never wrapped to a screen's width;
- a table that a screen is too narrow for is told row by row, one field a line: nothing is cut off or crushed;
- nothing of a list is written before its first row is there, or known to be missing: what cannot be read has no answer.
"""

from __future__ import annotations

import json
import os
import re
import sys
from collections.abc import Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from enum import StrEnum
from itertools import chain, islice
from threading import Timer
from typing import Any, TypeVar

from rich import box
from rich.cells import cell_len
from rich.console import Console, RenderableType
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table
from rich.text import Text

from duly.tools.printable import printable

T = TypeVar("T")

PIPED_WIDTH = 10_000
"""Wide enough for any row: what is piped is not folded, unless $COLUMNS says so."""
READABLE = 14
"""Columns of text that may be folded to no less than this."""
LONGEST_FIGURE = 28
"""An instant with its fraction: what begins with a digit is not broken unless it is longer than this."""
PROGRESS_AFTER = 1.0
"""Seconds of work after which a progress bar appears."""


class Format(StrEnum):
    """The form of an answer."""

    TABLE = "table"
    JSON = "json"
    JSONL = "jsonl"


class ReaderLeft(Exception):
    """Whoever read standard output has closed it. It is no BrokenPipeError: click and rich would end the program for
    one, in their own way."""


class Output:
    """Standard output in one of the formats."""

    def __init__(self, form: Format) -> None:
        self.format = form
        self.console = terminal(sys.stdout)

    @property
    def for_people(self) -> bool:
        return self.format is Format.TABLE

    def document(self, schema: str, content: Mapping[str, Any]) -> None:
        """One JSON document."""
        indent = 2 if self.format is Format.JSON else None
        self._write(json.dumps({"schema": schema, **content}, indent=indent) + "\n")

    def rows(self, schema: str, content: Mapping[str, Any], name: str, rows: Iterable[Mapping[str, Any]]) -> None:
        """A list that is written as it comes: in one document under `name` beside `content`, or one row a line."""
        if self.format is Format.JSONL:
            for row in rows:
                self._write(json.dumps({"schema": schema, **row}) + "\n")
            return
        following = iter(rows)
        begin = list(islice(following, 1))
        opening = json.dumps({"schema": schema, **content}, indent=2).removesuffix("\n}")
        self._write(f"{opening},\n  {json.dumps(name)}: [")
        separator = "\n    "
        for row in chain(begin, following):
            self._write(separator + json.dumps(row))
            separator = ",\n    "
        self._write("]\n}\n" if separator == "\n    " else "\n  ]\n}\n")

    def line(self, text: str = "", *, style: str = "") -> None:
        """One line for people, as long as it is."""
        if style:
            self._print(Text(printable(text), style=style), soft_wrap=True)
        else:
            self._write(printable(text) + "\n")

    def table(
        self,
        columns: Sequence[str],
        rows: Iterable[Sequence[object]],
        *,
        right: Sequence[str] = (),
        whole: Sequence[str] = (),
        dispensable: Sequence[str] = (),
    ) -> None:
        """A table for people. The columns in `right` hold numbers; the first one and those in `whole` stay in one
        piece, while the others are folded between words where a screen is too narrow. There, those in `dispensable`
        are left out if they hold nothing but zeros; and where that is not enough, the table is told row by row."""
        cells = [[cell if isinstance(cell, Text) else Text(printable(str(cell))) for cell in row] for row in rows]
        kept = list(range(len(columns)))
        if self._widths(columns, cells, whole) is None:
            kept = [at for at in kept if columns[at] not in dispensable or any(row[at].plain != "0" for row in cells)]
        columns, cells = [columns[at] for at in kept], [[row[at] for at in kept] for row in cells]
        widths = self._widths(columns, cells, whole)
        if widths is None:
            self._told_row_by_row(columns, cells)
            return
        table = Table(box=box.SIMPLE_HEAD, padding=(0, 1, 0, 0), pad_edge=False, show_edge=False, header_style="bold")
        for position, column in enumerate(columns):
            table.add_column(
                column,
                justify="right" if column in right else "left",
                overflow="fold",
                no_wrap=position == 0 or column in whole,
                width=widths[position],
            )
        for row in cells:
            table.add_row(*row)
        self._print(table)

    def _widths(self, columns: Sequence[str], rows: Sequence[Sequence[Text]], whole: Sequence[str]) -> list[int] | None:
        """How wide each column is; None where one would be cut off, or folded to less than can be read."""
        wanted = [
            max([len(column), *(row[position].cell_len for row in rows)]) for position, column in enumerate(columns)
        ]
        widths = [
            width
            if position == 0 or columns[position] in whole
            else min(width, _least([row[position] for row in rows]))
            for position, width in enumerate(wanted)
        ]
        widths = [max(width, len(column)) for width, column in zip(widths, columns, strict=True)]
        spare = self.console.width - sum(widths) - 2 * (len(columns) - 1)
        if spare < 0:
            return None
        # The columns that want more share what is left, those that want little first.
        hungry = sorted(
            (at for at in range(len(columns)) if wanted[at] > widths[at]), key=lambda at: wanted[at] - widths[at]
        )
        for done, position in enumerate(hungry):
            more = min(wanted[position] - widths[position], spare // (len(hungry) - done))
            widths[position] += more
            spare -= more
        return widths

    def _told_row_by_row(self, columns: Sequence[str], rows: Sequence[Sequence[Text]]) -> None:
        indent = max(map(len, columns)) + 2
        for number, row in enumerate(rows):
            if number:
                self._write("\n")
            for column, cell in zip(columns, row, strict=True):
                if cell.plain:
                    self._print(Text.assemble((column.ljust(indent), "bold"), cell, overflow="fold"))

    def grid(self, rows: Iterable[tuple[Sequence[object], str]]) -> None:
        """Cells in columns without lines around them, each row in its style; the last column wraps."""
        grid = Table.grid(padding=(0, 2))
        told = list(rows)
        for _ in range(max((len(cells) for cells, _ in told), default=0)):
            grid.add_column(overflow="fold")
        for cells, style in told:
            grid.add_row(*(Text(printable(str(cell))) for cell in cells), style=style)
        self._print(grid)

    def flush(self) -> None:
        """Hand on what was written so far."""
        try:
            sys.stdout.flush()
        except BrokenPipeError:
            raise ReaderLeft from None

    def _print(self, renderable: RenderableType, *, soft_wrap: bool = False) -> None:
        if self.console.legacy_windows:  # it is coloured by calls, not by text
            self.console.print(renderable, soft_wrap=soft_wrap)
            return
        with self.console.capture() as captured:
            self.console.print(renderable, soft_wrap=soft_wrap)
        text = captured.get()
        if not self.console.is_terminal:
            text = "".join(f"{line.rstrip()}\n" for line in text.splitlines())
        self._write(text)

    def _write(self, text: str) -> None:
        try:
            sys.stdout.write(text)
        except BrokenPipeError:
            raise ReaderLeft from None


def _least(cells: Iterable[Text]) -> int:
    """The width in which no instant and no other figure is broken."""
    words = (word for cell in cells for line in cell.plain.split("\n") for word in line.split(" "))
    return max([READABLE, *(min(cell_len(word), LONGEST_FIGURE) for word in words if word[:1].isdigit())])


def _asked_width(columns: str) -> int:
    """What $COLUMNS says, where it says a width at all."""
    return int(columns) if re.fullmatch(r"[1-9][0-9]{0,5}", columns, re.ASCII) else PIPED_WIDTH


def terminal(stream: Any) -> Console:
    """A console on the stream that interprets nothing in the texts it is given."""
    width = None if stream.isatty() else _asked_width(os.environ.get("COLUMNS", "").strip())
    return Console(file=stream, width=width, markup=False, highlight=False, emoji=False)


@contextmanager
def working(what: str, *, after: float = PROGRESS_AFTER) -> Generator[None]:
    """A bar on standard error while the block works longer than `after`, if that is a terminal."""
    if not sys.stderr.isatty():
        yield
        return
    bar = Progress(
        TextColumn("{task.description}"), BarColumn(), TimeElapsedColumn(), console=terminal(sys.stderr), transient=True
    )
    bar.add_task(what, total=None)
    timer = Timer(after, bar.start)
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()
        timer.join()
        bar.stop()


def awaited(rows: Iterable[T], what: str = "reading") -> Iterator[T]:
    """The rows, with a bar until there is a first one to show."""
    following = iter(rows)
    with working(what):
        begin = list(islice(following, 1))
    return chain(begin, following)


def counting_bar() -> Progress:
    """A bar on standard error for work whose amount is known; it leaves no trace."""
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    return Progress(*columns, console=terminal(sys.stderr), transient=True)
