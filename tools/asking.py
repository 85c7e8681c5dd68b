"""What a group of commands answers when none of them is named: its help, as it is, and that this was no usage.

Rule kept here: it does not depend on click, whose releases differ in it (the end of the command, and its code).
"""

from __future__ import annotations

import click

from duly.tools.exit_codes import USAGE


def ask_for_a_command(context: click.Context) -> None:
    """Print the help of the group on standard error and end with 2, unless a command of the group was named."""
    if context.invoked_subcommand is None:
        click.echo(context.get_help(), err=True)
        context.exit(USAGE)
