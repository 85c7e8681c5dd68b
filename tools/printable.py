"""Text from a journal or a file, made safe for a terminal.

Rule: what could move a cursor, hide or reorder text, or end a line (control characters of either set, marks of
direction, line separators, lone surrogates) comes out as a visible escape; everything else as it is.
"""

from __future__ import annotations

import re

_UNSAFE = re.compile(
    "[\x00-\x1f\x7f-\x9f\u061c\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb\ud800-\udfff\U000e0000-\U000e007f]"
)


def printable(text: str) -> str:
    """The text with every unsafe character written as `\\x1b`, `\\n`, `\\u202e` and the like."""
    return _UNSAFE.sub(lambda match: match.group().encode("unicode_escape", "surrogatepass").decode("ascii"), text)
