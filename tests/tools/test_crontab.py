"""The crontab parser: what each line means, what is refused where, and that no text whatever makes it fail."""

from datetime import timedelta
from pathlib import PurePosixPath

import pytest
from hypothesis import given
from hypothesis import strategies as st

from duly.service.commands import NAME_OF_A_VARIABLE
from duly.tools.crontab import VARIABLE, Crontab, CrontabEntry, is_system_crontab, parse_crontab, slug_of, split_percent
from duly.tools.crontab_options import DIRECTIVE, SCHEDULE_ID, Malformed, Options, parse_options
from tests.tree import ROOT

SAMPLE = ROOT / "tools" / "samples" / "crontab"


def only_entry(text: str, *, system: bool = False) -> CrontabEntry:
    parsed = parse_crontab(text, system=system)
    assert parsed.problems == ()
    [entry] = parsed.entries
    return entry


def places(text: str, *, system: bool = False) -> list[tuple[int, int, str]]:
    return [(one.line, one.column, one.message) for one in parse_crontab(text, system=system).problems]


def ids(parsed: Crontab) -> list[str]:
    return [entry.schedule_id for entry in parsed.entries]


@pytest.mark.parametrize(
    ("line", "expression", "command"),
    [
        ("30 2 * * * backup", "30 2 * * *", "backup"),
        ("\t30\t2 * *\t* \t backup  --full  ", "30 2 * * *", "backup  --full"),
        ("@daily backup", "@daily", "backup"),
        ("@Midnight backup", "@Midnight", "backup"),
        ("@hourly  backup", "@hourly", "backup"),
        ("*/5 7-18 * jan-mar mon-fri check # not a comment", "*/5 7-18 * jan-mar mon-fri", "check # not a comment"),
        ("0 0 * * * A=1 B=2 backup", "0 0 * * *", "A=1 B=2 backup"),
        ("30 2 * * * backup\r", "30 2 * * *", "backup"),
        ("0 0 * * * echo ünïcødé", "0 0 * * *", "echo ünïcødé"),
    ],
)
def test_an_entry_is_a_time_and_a_command(line: str, expression: str, command: str):
    entry = only_entry(line)
    assert (entry.expression, entry.command, entry.zone, entry.stdin, entry.user) == (
        expression,
        command,
        "UTC",
        None,
        None,
    )


def test_comments_and_blank_lines_say_nothing():
    assert parse_crontab("# a\n\n   # b\n\t\n") == Crontab("crontab", "UTC", (), ())


def test_a_byte_order_mark_is_no_part_of_the_first_line():
    assert only_entry("\ufeff0 0 * * * backup").command == "backup"


@pytest.mark.parametrize(
    ("text", "command", "stdin"),
    [
        ("backup", "backup", None),
        ("mail ops%Hello%World", "mail ops", "Hello\nWorld\n"),
        ("mail ops%Hello%", "mail ops", "Hello\n"),
        ("mail ops %", "mail ops", ""),
        (r"date +\%F", "date +%F", None),
        (r"echo 100\% %50\% off", "echo 100%", "50% off\n"),
    ],
)
def test_a_percent_sign_begins_the_standard_input_unless_escaped(text: str, command: str, stdin: str | None):
    assert split_percent(text) == (command, stdin)


def test_what_names_a_variable_here_names_one_for_a_command():
    assert VARIABLE.pattern == NAME_OF_A_VARIABLE.pattern  # two, as reading a crontab loads nothing that executes


def test_environment_lines_hold_for_the_entries_below_them():
    parsed = parse_crontab(
        'SHELL=/bin/bash\n0 0 * * * a\n "MAIL TO" = "ops@example.com" \nEMPTY=\nX=\'a b\'\n0 0 * * * b\nSHELL=/bin/sh\n'
    )
    assert [dict(entry.environment) for entry in parsed.entries] == [
        {"SHELL": "/bin/bash"},
        {"SHELL": "/bin/bash", "MAIL TO": "ops@example.com", "EMPTY": "", "X": "a b"},
    ]
    assert parsed.notices == (
        "the variable 'MAIL TO' is kept, but no command is given it: a shell does not pass on such a name",
    )


@pytest.mark.parametrize(
    ("lines", "zone"),
    [
        ("CRON_TZ=Europe/Berlin", "Europe/Berlin"),
        ('CRON_TZ = "Europe/Berlin"', "Europe/Berlin"),
        ("CRON_TZ='Europe/Berlin' ", "Europe/Berlin"),
        ("TZ=Asia/Tokyo", "Asia/Tokyo"),
        ("TZ=:Asia/Tokyo", "Asia/Tokyo"),
        ("CRON_TZ=Europe/Berlin\nTZ=Asia/Tokyo", "Europe/Berlin"),
        ("TZ=Asia/Tokyo\nCRON_TZ=Europe/Berlin", "Europe/Berlin"),
        ("TZ=Asia/Tokyo\nCRON_TZ=Europe/Berlin\nCRON_TZ=", "Asia/Tokyo"),
        ("CRON_TZ=Europe/Berlin\nCRON_TZ=''", "UTC"),
        ("CRON_TZ=Nowhere/Land\nCRON_TZ=Europe/Berlin", "Europe/Berlin"),
    ],
)
def test_the_zone_is_that_of_the_last_line_that_names_one(lines: str, zone: str):
    assert [entry.zone for entry in parse_crontab(f"{lines}\n0 0 * * * a\n").entries] == [zone]


def test_the_zone_of_the_times_is_no_part_of_the_command_s_environment_but_tz_is():
    parsed = parse_crontab("CRON_TZ=Europe/Berlin\nTZ=Asia/Tokyo\n0 0 * * * a\n")
    assert [dict(entry.environment) for entry in parsed.entries] == [{"TZ": "Asia/Tokyo"}]


def test_entries_under_an_unknown_zone_are_refused_and_the_others_are_not():
    text = "0 0 * * * a\nCRON_TZ=Europe/Berln\n0 0 * * * b\n0 1 * * * c\nCRON_TZ=UTC\n0 0 * * * d\n"
    assert ids(parse_crontab(text)) == ["a", "d"]
    assert [(line, column) for line, column, _ in places(text)] == [(2, 9), (3, 1), (4, 1)]


def test_a_system_crontab_has_a_user_before_the_command():
    entry = only_entry("17 * * * *\troot\tcd / && run-parts --report /etc/cron.hourly", system=True)
    assert (entry.user, entry.command) == ("root", "cd / && run-parts --report /etc/cron.hourly")
    assert only_entry("@daily www-data tidy", system=True).user == "www-data"


@pytest.mark.parametrize(
    ("path", "system"),
    [
        ("/etc/crontab", True),
        ("/etc/cron.d/certbot", True),
        ("/var/spool/cron/crontabs/alice", False),
        ("crontab", False),
        ("/srv/crontab", False),
    ],
)
def test_a_system_crontab_is_known_by_its_place(path: str, system: bool):
    assert is_system_crontab(PurePosixPath(path)) is system


def test_a_system_crontab_read_as_a_user_s_is_noticed():
    [notice] = parse_crontab("0 0 * * * root backup\n").notices
    assert "--system" in notice
    assert parse_crontab("0 0 * * * root backup\n", system=True).notices == ()


@pytest.mark.parametrize(
    ("command", "slug"),
    [
        ("/usr/local/bin/backup", "backup"),
        ("/usr/local/bin/backup --full /srv > /dev/null 2>&1", "backup-full-srv"),
        ("cd /srv/shop && bin/stock-sync --quick", "stock-sync-quick"),
        ("LANG=C MODE=x report.sh | mail ops", "report.sh"),
        ("Backup_DB", "backup_db"),
        ("日本語", "entry"),
        ("...", "entry"),
        ("a" * 80, "a" * 48),
        ("word " * 20, "-".join(["word"] * 9)),
    ],
)
def test_the_slug_of_a_command(command: str, slug: str):
    assert slug_of(command) == slug


def test_repeated_slugs_are_numbered_around_the_given_ids():
    text = "0 1 * * * backup\n0 2 * * * backup\n# duly: id=backup-2\n0 3 * * * other\n0 4 * * * backup\n"
    assert ids(parse_crontab(text)) == ["backup", "backup-3", "backup-2", "backup-4"]


def test_a_mended_entry_takes_no_id_away_from_the_others():
    broken = parse_crontab("61 1 * * * backup\n0 2 * * * backup\n")
    mended = parse_crontab("1 1 * * * backup\n0 2 * * * backup\n")
    assert (ids(broken), ids(mended)) == (["backup-2"], ["backup", "backup-2"])


def test_a_comment_gives_the_id_and_the_policies():
    text = (
        "# duly: id=nightly-backup misfire=skip lateness=30m overlap=parallel max=3\n"
        "#duly:  fold=first timeout=1h30m\n"
        "30 2 * * * backup\n"
    )
    entry = only_entry(text)
    assert (entry.schedule_id, entry.options) == (
        "nightly-backup",
        Options(
            "nightly-backup", "skip", timedelta(minutes=30), "parallel", 3, "first", timedelta(hours=1, minutes=30)
        ),
    )


def test_another_comment_may_stand_between_the_options_and_the_entry():
    assert only_entry("# duly: id=a\n# the nightly backup\n0 0 * * * x\n").schedule_id == "a"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("61 * * * * x", [(1, 1, "minute: '61' is out of range")]),
        ("0,5,99 * * * * x", [(1, 5, "minute: '99' is out of range")]),
        ("* * * * 1,9 x", [(1, 11, "day of week: '9' is out of range")]),
        ("* * * *", [(1, 8, "only 4 of the five time fields are here")]),
        ("  \t* * * ", [(1, 9, "only 3 of the five time fields are here")]),
        ("0 0 * * *  ", [(1, 10, "there is no command after the time")]),
        ("0 0 * * * %in", [(1, 14, "there is no command after the time")]),
        ("@daily", [(1, 7, "there is no command after the time")]),
        ("@reboot start", [(1, 1, "@reboot is not a time")]),
        ("@dayly x", [(1, 1, "'@dayly' is not known")]),
        ("0 0 31 2 * x", [(1, 1, "this time never fires: no month in it has such a day")]),
        ("0 0 L * * x", [(1, 5, "day of month: 'l' is not in the Unix dialect")]),
        ("ZONE='Berlin", [(1, 6, "the quote ' is not closed")]),
        ('""=x', [(1, 1, "the name before '=' is empty")]),
        ("0 0 * * * a\x1b[31m", [(1, 12, "there is a control character (U+001B)")]),
        ("0 0 * * * caf\udce9", [(1, 14, "this is not UTF-8 text")]),
        ("CRON_TZ=Asia/Tokyo 0 4 * * * x", [(1, 9, "'Asia/Tokyo 0 4 * * * x' is not a zone")]),
        ("# duly: id=a\n", [(1, 1, "this '# duly:' comment belongs to no entry")]),
        ("# duly: id=a\n\n0 0 * * * x", [(1, 1, "this '# duly:' comment belongs to no entry")]),
        ("# duly: id=a\nX=1\n0 0 * * * x", [(1, 1, "this '# duly:' comment belongs to no entry")]),
    ],
)
def test_a_malformed_line_is_reported_where_it_is_wrong(text: str, expected: list[tuple[int, int, str]]):
    assert places(text) == expected


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("0 0 * * * root", (1, 15, "there is no command after the user 'root'")),
        ("0 0 * * * /bin/x y", (1, 11, "'/bin/x' is not a user")),
        ("0 0 * * *", (1, 10, "there is no command after the time")),
    ],
)
def test_a_malformed_line_of_a_system_crontab_is_reported(line: str, expected: tuple[int, int, str]):
    assert places(line, system=True) == [expected]


@pytest.mark.parametrize(
    ("comment", "column", "message"),
    [
        ("# duly: misfire=skpi", 17, "'skpi' is not known here"),
        ("# duly: missfire=skip", 9, "'missfire=skip' is not an option"),
        ("# duly: id", 9, "'id' is not an option"),
        ("# duly: id=", 9, "'id=' is not an option"),
        ("# duly: id=a/b", 12, "'a/b' is not an id"),
        ("# duly: id=a id=b", 14, "the option 'id' is given twice"),
        ("# duly: lateness=5", 18, "'5' is not a duration"),
        ("# duly: max=0", 13, "'0' is not a number of runs"),
        ("# duly: timeout=0", 17, "a timeout of nothing leaves no time to run"),
        ("# duly:", 7, "the '# duly:' comment is empty"),
    ],
)
def test_a_misspelt_option_is_refused_together_with_its_entry(comment: str, column: int, message: str):
    refused = (2, 1, "the '# duly:' comment on line 1 is refused, so this entry is not imported")
    assert places(f"{comment}\n0 0 * * * x\n") == [(1, column, message), refused]
    assert parse_crontab(f"{comment}\n0 0 * * * x\n0 0 * * * y\n").entries != ()


@pytest.mark.parametrize("comment", ["# duly: overlap=parallel", "# duly: max=2", "# duly: max=2 overlap=skip"])
def test_parallel_runs_and_their_limit_go_together(comment: str):
    assert [(line, column) for line, column, _ in places(f"{comment}\n0 0 * * * x\n")] == [(1, 1), (2, 1)]


def test_an_id_is_given_once():
    text = "# duly: id=a\n0 0 * * * x\n# duly: id=a\n0 1 * * * y\n"
    assert ids(parse_crontab(text)) == ["a"]
    assert places(text)[0] == (3, 1, "the id 'a' is already that of line 2")


def test_a_problem_reads_as_file_line_column_message_and_remedy():
    [problem] = parse_crontab("@dayly x", source="jobs/c").problems
    assert str(problem) == "jobs/c:1:1: '@dayly' is not known. Write @daily"


def test_the_sample_crontab_is_read_without_a_problem():
    parsed = parse_crontab(SAMPLE.read_text(encoding="utf-8"))
    assert parsed.problems == ()
    assert len(parsed.entries) == 14
    assert {"Europe/Berlin", "America/New_York", "Asia/Ho_Chi_Minh", "Australia/Sydney"} == {
        entry.zone for entry in parsed.entries
    }


PIECES = st.sampled_from(
    [
        *(
            "*",
            "0",
            "61",
            "*/5",
            "1-3",
            "mon",
            "@daily",
            "@reboot",
            "L",
            "%",
            "\\%",
            "=",
            "#",
            "# duly:",
            "id=a",
            "max=2",
        ),
        *("CRON_TZ=", "TZ", "Europe/Berlin", '"', "'", "root", "cmd", " ", "  ", "\t", "\n", "\r\n", "\x00", "\x1b"),
        *("\udcff", "é", "\u2028", "\ufeff", "max=2", "overlap=parallel", "lateness=99999999999w", "0 0 * * * x"),
    ]
)
TEXTS = st.one_of(st.text(), st.lists(PIECES, max_size=40).map("".join), st.lists(PIECES, max_size=40).map(" ".join))


@given(TEXTS, st.booleans())
def test_no_text_makes_the_parser_fail_and_every_position_lies_in_it(text: str, system: bool):
    parsed = parse_crontab(text, system=system)
    lines = text.removeprefix("\ufeff").split("\n")
    for problem in parsed.problems:
        assert 1 <= problem.line <= len(lines)
        assert 1 <= problem.column <= len(lines[problem.line - 1]) + 1
        assert problem.message
        assert problem.remedy


@given(TEXTS, st.booleans())
def test_every_line_that_is_no_comment_is_an_entry_an_assignment_or_a_problem(text: str, system: bool):
    parsed = parse_crontab(text, system=system)
    names = ids(parsed)
    assert len(names) == len(set(names))
    assert all(SCHEDULE_ID.fullmatch(name) for name in names)
    known = {entry.line for entry in parsed.entries} | {problem.line for problem in parsed.problems}
    for number, line in enumerate(text.removeprefix("\ufeff").split("\n"), start=1):
        begins = line.strip(" \t\r")[:1]
        if begins.isdigit() or begins in ("@", "*"):
            assert number in known


@given(TEXTS)
def test_good_lines_are_read_the_same_beside_any_others(text: str):
    good = "CRON_TZ=Asia/Tokyo\n# duly: id=the-good-one\n5 4 * * * good\n"
    parsed = parse_crontab(f"{text}\n\n{good}")
    found = [entry for entry in parsed.entries if entry.schedule_id == "the-good-one"]
    assert [(one.expression, one.zone, one.command) for one in found] == [("5 4 * * *", "Asia/Tokyo", "good")]


@given(st.text())
def test_any_options_are_read_or_refused_within_their_line(text: str):
    line = "# duly:" + text.replace("\n", " ")
    assert DIRECTIVE.match(line)
    column = 1
    try:
        parse_options(line, Options())
    except Malformed as error:
        column = error.column
    assert 1 <= column <= len(line) + 1


def test_equal_commands_are_numbered_past_the_ids_that_are_taken_and_in_linear_time():
    lines = ["* * * * * x"] * 3 + ["# duly: id=x-2", "* * * * * y"] + ["* * * * * x"] * 20_000
    found = [one.schedule_id for one in parse_crontab("\n".join(lines)).entries]
    assert found[:5] == ["x", "x-3", "x-4", "x-2", "x-5"]
    assert len(set(found)) == len(found) == 20_004
