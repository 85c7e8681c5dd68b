"""What is printed cannot drive a terminal."""

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from duly.tools.printable import printable


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("plain, ünïcødé, 日本語, 🎉", "plain, ünïcødé, 日本語, 🎉"),
        ("\x1b[31mred\x1b[0m", "\\x1b[31mred\\x1b[0m"),
        ("a\r\nb\tc", "a\\r\\nb\\tc"),
        ("\x9b31m", "\\x9b31m"),
        ("\u202egnp.exe", "\\u202egnp.exe"),
        ("a\u2028b\x7f\x00", "a\\u2028b\\x7f\\x00"),
        ("\ud800", "\\ud800"),
        ("\U000e0041", "\\U000e0041"),
    ],
)
def test_what_could_drive_a_terminal_is_written_as_an_escape(text: str, shown: str):
    assert printable(text) == shown


@given(st.text(st.characters(exclude_categories=())))
def test_no_control_character_is_left_and_nothing_else_is_changed(text: str):
    shown = printable(text)
    assert [character for character in shown if unicodedata.category(character) in ("Cc", "Cs", "Zl", "Zp")] == []
    if text.isprintable():
        assert shown == text
