"""What a schedule gives its runs, in words."""

import pytest

from duly.journal.entries import Expression, FromOccurrence, Literally
from duly.tools.given import command_of, cut, cut_apart, describe_inputs, describe_limits

DAY = FromOccurrence("scheduled_at")


def test_a_command_is_told_apart_from_the_other_inputs():
    given: dict[str, Expression] = {"command": Literally("backup --full"), "user": Literally("root"), "day": DAY}
    assert command_of(given) == "backup --full"
    assert describe_inputs(given).startswith('user="root", day={"from": ')


@pytest.mark.parametrize("command", [Literally(["backup", "--full"]), DAY])
def test_what_is_no_command_line_is_an_input_as_any_other(command: Expression):
    assert command_of({"command": command}) == ""
    assert describe_inputs({"command": command}).startswith("command=")


def test_a_timeout_is_told_as_a_duration_and_another_limit_as_it_is():
    assert describe_limits({"timeout": 900.5, "memory": "1G"}) == 'timeout=15m0.5s memory="1G"'
    assert describe_limits({"timeout": True}) == "timeout=true"


def test_long_texts_are_cut_so_that_they_differ():
    assert cut("a" * 9, 8) == "aaaaaaa…"
    same = "x" * 100
    assert cut_apart(f"{same}one", f"{same}two", 40) == ("…xxxxxxxxxxxxone", "…xxxxxxxxxxxxtwo")
    assert cut_apart("one", "two", 40) == ("one", "two")
    was, now = cut_apart(f"a{same}", f"b{same}", 40)
    assert (was[0], now[0], len(was), len(now)) == ("a", "b", 40, 40)
