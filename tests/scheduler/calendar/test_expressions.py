"""What an expression may be, the plain form that it becomes, and every refusal with its field and its remedy."""

import pytest
from croniter import croniter

from duly.scheduler.errors import DefinitionError
from duly.scheduler.expressions import ALIASES, FIELDS, parse_expression
from duly.scheduler.triggers import Cron
from tests.scheduler.calendar.oracle import Matcher


def span(first: int, last: int, step: int = 1) -> str:
    return ",".join(map(str, range(first, last + 1, step)))


@pytest.mark.parametrize(
    ("text", "plain"),
    [
        ("* * * * *", "* * * * *"),
        ("  5   4 * * *  ", "5 4 * * *"),
        ("05 04 01 01 *", "5 4 1 1 *"),
        ("@hourly", "0 * * * *"),
        ("@Daily", "0 0 * * *"),
        ("@weekly", "0 0 * * 0"),
        ("@yearly", "0 0 1 1 *"),
        ("0 0 * JAN,Mar sun", "0 0 * 1,3 0"),
        ("0 0 * nov-feb *", "0 0 * 1,2,11,12 *"),
        ("5/15 * * * *", "5,20,35,50 * * * *"),
        ("59/15 * * * *", "59 * * * *"),
        ("3-3 * * * *", "3 * * * *"),
        ("3-3/2 * * * *", "3 * * * *"),
        ("50-51/15 * * * *", "50 * * * *"),
        ("*/1 */1 */1 */1 */1", "* * * * *"),
        ("0-59 0-23 * 1-12 *", "* * * * *"),
        ("0-29,30-59 * * * *", "* * * * *"),
        ("5,5,3 * * * *", "3,5 * * * *"),
        ("*,5 * * * *", "* * * * *"),
        ("50-10/20 * * * *", "10,50 * * * *"),
        ("0 22-4/3 * * *", "0 1,4,22 * * *"),
        ("0 22-2 * * *", "0 0,1,2,22,23 * * *"),
        ("0 0 * apr-jan/3 *", "0 0 * 1,4,7,10 *"),
        ("0 0 25-5 * *", f"0 0 {span(1, 5)},{span(25, 31)} * *"),
        ("0 0 * * fri-mon", "0 0 * * 0,1,5,6"),
        ("0 0 * * sat-tue/2", "0 0 * * 1,6"),
        ("0 0 * * 5-7", "0 0 * * 0,5,6"),
        ("0 0 * * 7-2", "0 0 * * 0,1,2"),
        ("0 0 * * 0-7", "0 0 * * *"),
        ("0 0 * * 1-7/2", "0 0 * * 0,1,3,5"),
        ("0 0 * * 7,0,sun", "0 0 * * 0"),
        ("0 0 * * 7-7", "0 0 * * 0"),
        ("0 0 * * 7-0", "0 0 * * 0"),
        ("0 0 * * 1/2", "0 0 * * 1,3,5"),
        ("0 0 */10 * *", "0 0 1,11,21,31 * *"),
        ("0 0 1-31 * *", "0 0 * * *"),
        ("0 0 1-31 * fri", f"0 0 {span(1, 31)} * 5"),
        ("0 0 13 * 0-6", f"0 0 13 * {span(0, 6)}"),
        ("0 0 1/2 * fri", f"0 0 {span(1, 31, 2)} * 5"),
        ("0 0 */2 * */1", f"0 0 {span(1, 31, 2)} * *"),
        ("0 0 30,31 2,4 *", "0 0 30 2,4 *"),
        ("0 0 31 2 1", "0 0 * 2 1"),
        ("0 0 31 2,4 0-6", "0 0 * 2,4 *"),
        ("0 0 29 2 *", "0 0 29 2 *"),
        ("0 0 1-31 2 fri", f"0 0 {span(1, 29)} 2 5"),
    ],
)
def test_an_expression_becomes_plain(text: str, plain: str):
    assert parse_expression(text).plain == plain
    assert Cron(text, "UTC").rule.expression == " ".join(text.split())


@pytest.mark.parametrize(
    ("text", "field", "says", "remedy"),
    [
        ("", "expression", "has 0 fields", "Write minute, hour"),
        ("* * * *", "expression", "has 4 fields", "Write minute, hour"),
        ("0 * * * * *", "expression", "has 6 fields", "no seconds and no years"),
        ("0 0 1 1 * 2026 *", "expression", "has 7 fields", "no seconds and no years"),
        ("0\t0 * * *", "expression", "a control character, '\\t'", "Separate the fields by spaces"),
        ("0 0 * * *\n", "expression", "a control character", "Separate the fields by spaces"),
        ("0 0 * * *\x00", "expression", "a control character", "Separate the fields by spaces"),
        ("0\u00a00 * * *", "expression", "outside ASCII", "plain ASCII"),
        ("\u0663 0 * * *", "expression", "outside ASCII", "plain ASCII"),
        ("0 0 * * " + "1," * 130 + "1", "expression", "longer than 256", "Split"),
        ("@reboot", "expression", "names no time", "run_now"),
        ("@every 5m", "expression", "is not cron", "Every"),
        ("@fortnightly", "expression", "no known alias", "@daily"),
        ("@daily 5", "expression", "no known alias", "@daily"),
        ("60 * * * *", "minute", "out of range", "0 … 59"),
        ("* 24 * * *", "hour", "out of range", "0 … 23"),
        ("* * 0 * *", "day of month", "out of range", "1 … 31"),
        ("* * 32 * *", "day of month", "out of range", "1 … 31"),
        ("* * * 0 *", "month", "out of range", "jan … dec"),
        ("* * * 13 *", "month", "out of range", "1 … 12"),
        ("* * * * 8", "day of week", "out of range", "0 … 7"),
        ("0-60 * * * *", "minute", "out of range", "0 … 59"),
        ("*/0 * * * *", "minute", "a step of 0", "1 or more"),
        ("5-10/0 * * * *", "minute", "a step of 0", "1 or more"),
        ("*/90 * * * *", "minute", "a step that leaves the field", "Every"),
        ("* */24 * * *", "hour", "a step that leaves the field", "Every"),
        ("-5 * * * *", "minute", "not understood", "a range a-b"),
        ("1- * * * *", "minute", "not understood", "a range a-b"),
        ("1-2-3 * * * *", "minute", "not understood", "a range a-b"),
        ("1/2/3 * * * *", "minute", "not understood", "a range a-b"),
        ("*-5 * * * *", "minute", "not understood", "a range a-b"),
        ("** * * * *", "minute", "not understood", "a range a-b"),
        ("1.5 * * * *", "minute", "not understood", "a range a-b"),
        ("1,,2 * * * *", "minute", "an empty element", "Remove the comma"),
        (", * * * *", "minute", "an empty element", "Remove the comma"),
        ("mon * * * *", "minute", "not understood", "a value (0 … 59)"),
        ("* * * mon *", "month", "not understood", "jan … dec"),
        ("* * * * january", "day of week", "not understood", "sun … sat"),
        ("* * * * monday", "day of week", "not understood", "sun … sat"),
        ("h * * * *", "minute", "hash or at random", "write the number"),
        ("H/15 * * * *", "minute", "hash or at random", "write the number"),
        ("R(0-10) * * * *", "minute", "hash or at random", "write the number"),
        ("* * L * *", "day of month", "not in the Unix dialect", "Every"),
        ("* * l-3 * *", "day of month", "not in the Unix dialect", "Every"),
        ("* * 15W * *", "day of month", "not in the Unix dialect", "Every"),
        ("* * w15 * *", "day of month", "not in the Unix dialect", "Every"),
        ("* * LW * *", "day of month", "not in the Unix dialect", "Every"),
        ("* * * * 5L", "day of week", "not in the Unix dialect", "Every"),
        ("* * * * friL", "day of week", "not in the Unix dialect", "Every"),
        ("* * * * fri#2", "day of week", "not in the Unix dialect", "n-th weekday"),
        ("* * ? * *", "day of month", "Quartz", "* instead of ?"),
        ("* * * * ?", "day of week", "Quartz", "* instead of ?"),
        ("0 0 */2 * fri", "day of month", "AND and some as OR", "1,3,5"),
        ("0 0 13 * */2", "day of week", "AND and some as OR", "0,2,4,6"),
        ("0 0 13 * 1,*/3", "day of week", "AND and some as OR", "0,1,3,6"),
        ("0 0 *,13 * fri", "day of month", "AND and some as OR", "1,2,3"),
        ("0 0 */2 * */2", "day of month", "AND and some as OR", "split the schedule"),
        ("0 0 31 2 *", "expression", "never fires", "29 days"),
        ("0 0 30 feb *", "expression", "never fires", "29 days"),
        ("0 0 31 4,6,9,11 *", "expression", "never fires", "30 days"),
    ],
)
def test_a_refusal_names_the_field_and_says_what_to_write(text: str, field: str, says: str, remedy: str):
    with pytest.raises(DefinitionError) as caught:
        Cron(text, "UTC")
    error = caught.value
    assert (error.field, says in error.problem, remedy in error.remedy) == (field, True, True), str(error)
    assert isinstance(error, ValueError)
    assert str(error).startswith(f"{field}: ")
    assert len(str(error)) < 600


@pytest.mark.parametrize("text", [None, 5, b"* * * * *", ["*"] * 5])
def test_what_is_no_text_is_no_expression(text: object):
    with pytest.raises(DefinitionError, match=r"^expression: .* is no text"):
        Cron(text, "UTC")  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType] - it is what is refused


def test_croniter_reads_the_plain_form_as_it_is_meant():
    texts = [f"{low}-{high}/{step}" for low in (0, 5, 6) for high in (0, 2, 6) for step in (1, 2, 3)]
    texts += [f"{low}/{step}" for low in (0, 1, 6) for step in (1, 2, 5)]
    for text in texts:
        plain = parse_expression(f"0 0 * * {text}").plain
        read = croniter.expand(plain)[0]
        expected = Matcher(f"0 0 * * {text}").sets[4]
        assert set(range(7) if read[4] == ["*"] else read[4]) == expected, text


def test_every_alias_is_five_fields():
    assert {len(text.split()) for text in ALIASES.values()} == {len(FIELDS)}


def test_equal_texts_are_parsed_once():
    assert parse_expression("1 2 3 4 5") is parse_expression("1 2 3 4 5")
