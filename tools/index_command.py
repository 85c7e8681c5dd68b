"""`duly index`: where the entries of each schedule are, written beside the segments.

Rules kept here: what is written are index files and nothing else; they are `duly.projections.indexed`'s.
"""

from __future__ import annotations

import click

from duly.projections.indexed import index_journal
from duly.tools.options import journal_argument, output_options
from duly.tools.output import Output, working


@click.command(short_help="Makes questions about one schedule quick. Writes index files.")
@journal_argument
@output_options
def index(journal: str, output: Output) -> None:
    """Write the index files that are missing, damaged or behind, also beside a running owner.

    An index is a cache: it says where in its segment the entries of each schedule are, so that explain, history, blame
    and log --schedule read these alone. It can be deleted at any time, and no answer depends on it.

    \b
    Example: duly index state/
    """
    with working("indexing"):
        kept = index_journal(journal)
    if not output.for_people:
        rows = ({"segment": one.segment, "through": one.through, "written": one.fresh} for one in kept)
        output.rows("duly.index/1", {"path": journal}, "indexes", rows)
        return
    if kept:
        rows_for_people = [(one.segment, f"{one.through:,}", "written" if one.fresh else "up to date") for one in kept]
        output.table(("segment", "through entry", "index"), rows_for_people, right=("through entry",))
    else:
        output.line("there is nothing to index")
