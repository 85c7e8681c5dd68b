"""Words about what a host did wrong, as they can be recorded.

Rules: whatever an exception or a value of the host does when it is asked for its text, there is a text; it can be
encoded, and it is short. A fault must never cost more than the one schedule it is about.
"""

from __future__ import annotations

from typing import Final

LONGEST: Final = 2_000
"""Characters."""


def describe_error(error: BaseException) -> str:
    """The exception's type and its text."""
    return shortened(f"{type(error).__name__}: {error_text(error)}")


def describe_value(value: object) -> str:
    """The value's repr."""
    try:
        return shortened(repr(value))
    except Exception:  # a host's repr may do anything
        return f"a {type(value).__name__} without a repr"


def shortened(text: str) -> str:
    """The text, cut to size, and with what cannot be encoded replaced."""
    clean = text[: LONGEST + 1].encode("utf-8", "replace").decode()
    return clean if len(clean) <= LONGEST else f"{clean[:LONGEST]}…"


def error_text(error: BaseException) -> str:
    """What the exception says of itself, as far as it can."""
    try:
        return str(error)
    except Exception:  # a host's exception may do anything
        return "(it cannot say why)"


def is_encodable(text: str) -> bool:
    """Whether the text can stand in a journal: it holds no lone surrogate."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True
