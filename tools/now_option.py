"""The option that says what time it is, for commands that tell what is past from what lies ahead.

Rule: without it the clock is asked, once; with it an answer about a journal that nobody writes is always the same.
"""

from __future__ import annotations

import click

from duly.tools.options import INSTANT

now_option = click.option("--now", type=INSTANT, metavar="INSTANT", help="What time it is. [default: the clock]")
