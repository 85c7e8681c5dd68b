"""The command line: its commands under one name, and what every ending of one looks like.

Rules kept here:
- exit codes: 0 fine, 1 the answer is bad, 2 usage, 3 unreadable, 4 starving or blocked, 70 our own fault, 130 Ctrl-C;
- an error is one line on standard error that says what to do, or one JSON document there when JSON was asked for; never
  a traceback (set DULY_TRACEBACK=1 to see one);
- a reader that has seen enough (`| head`) ends a command without a word.
"""

from __future__ import annotations

import errno
import json
import os
import sys
import traceback
from collections.abc import Sequence
from io import TextIOWrapper
from itertools import pairwise
from typing import Any

import click

from duly import __version__
from duly.journal.errors import Error, JournalError
from duly.projections.dump import UnknownProjection
from duly.scheduler.errors import DefinitionError, SchedulerError, UnknownRun, UnknownSchedule
from duly.tools.account_command import account
from duly.tools.archive_command import archive
from duly.tools.asking import ask_for_a_command
from duly.tools.audit_commands import dump, head, replay, salvage, verify
from duly.tools.completion_command import completion
from duly.tools.ctl_commands import ctl
from duly.tools.demo_command import demo
from duly.tools.diff_command import diff
from duly.tools.doctor_command import doctor
from duly.tools.exit_codes import BAD, BROKEN_PIPE, FINE, INTERRUPTED, OUR_FAULT, UNREADABLE, USAGE
from duly.tools.explain_command import explain
from duly.tools.export_command import export
from duly.tools.history_commands import blame, history
from duly.tools.index_command import index
from duly.tools.inventory_commands import runs, schedules, show
from duly.tools.log_command import log
from duly.tools.output import ReaderLeft
from duly.tools.printable import printable
from duly.tools.report_command import report
from duly.tools.run_command import run
from duly.tools.schedule_commands import import_crontab, upcoming
from duly.tools.simulate_command import simulate
from duly.tools.whatif_command import whatif

REMEDIES = {
    errno.ENOSPC: "Make room on that disk, and do it again.",
    errno.EDQUOT: "Make room on that disk, and do it again.",
    errno.EROFS: "Name a folder that can be written.",
    errno.EIO: "Look at the system's log: the disk may be failing.",
    errno.EMFILE: "Allow more open files (ulimit -n).",
    errno.ENAMETOOLONG: "Name a shorter path.",
    errno.EADDRINUSE: "Somebody serves there already: stop that, or name another address.",
    errno.EADDRNOTAVAIL: "Name an address of this machine.",
}
"""What to do about an error of the operating system, where checking the path is not it."""

EXPLAINED = """An embeddable, event-sourced scheduler: the command line reads what was decided, and why.

The journal is named by PATH or --journal, or by $DULY_JOURNAL. Every command answers in a table, or with --json for
programs, and reads only, unless it says otherwise.

Exit codes: 0 fine, 1 the answer is bad, 2 usage, 3 unreadable, 4 starving or blocked, 70 a fault of duly, 130 Ctrl-C.

\b
Example: duly demo
"""


@click.group(
    help=EXPLAINED,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    invoke_without_command=True,
    no_args_is_help=False,
)
@click.version_option(__version__, "--version", message="duly %(version)s")
@click.pass_context
def cli(context: click.Context) -> None:
    """The `duly` command."""
    ask_for_a_command(context)


for command in (verify, replay, dump, log, head, salvage, export, import_crontab, upcoming, demo, completion):
    cli.add_command(command)
for command in (explain, account, report, history, blame, schedules, show, runs, run, doctor, index, ctl):
    cli.add_command(command)
for command in (archive, diff, whatif, simulate):
    cli.add_command(command)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command line and return its exit code; nothing escapes from here but a finished completion."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")
    given = sys.argv[1:] if arguments is None else list(arguments)
    try:
        code = cli.main(arguments, prog_name="duly", standalone_mode=False)
        sys.stdout.flush()
    except (click.Abort, KeyboardInterrupt):
        return INTERRUPTED
    except (ReaderLeft, BrokenPipeError, SystemExit):  # the last is click's own way to end when a reader has left
        return _ended_by_reader()
    except Exception as error:
        if os.environ.get("DULY_TRACEBACK"):
            traceback.print_exc()
        return _report(error, as_json=_wants_json(given))
    return code if isinstance(code, int) else FINE


def exit_code_of(error: Exception) -> int:
    """What a command ends with when it meets this error."""
    match error:
        case click.ClickException():
            return error.exit_code
        case DefinitionError() | UnknownSchedule() | UnknownRun() | UnknownProjection():
            return USAGE
        case JournalError() | OSError():
            return UNREADABLE
        case SchedulerError() | Error():
            return BAD
        case _:
            return OUR_FAULT


def message_and_remedy(error: Exception) -> tuple[str, str]:
    """What happened, and what to do about it."""
    match error:
        case click.UsageError():
            path = error.ctx.command_path if error.ctx else "duly"
            return error.format_message(), f"See {path} --help."
        case click.ClickException():
            return error.format_message(), ""
        case JournalError() | SchedulerError():
            hint = error.hint
            return str(error).removesuffix(hint).rstrip(" ."), hint
        case OSError():
            return _of_the_system(error)
        case Error():
            return str(error), ""
        case _:
            said = f"{type(error).__name__}: {error}".rstrip(": ")
            return f"this is a fault of duly itself: {said}", "Please report it, with what DULY_TRACEBACK=1 shows."


def _of_the_system(error: OSError) -> tuple[str, str]:
    if not error.strerror:
        return str(error) or type(error).__name__, "Check the paths that were named, and their disk."
    where = f"{error.filename}: " if error.filename else ""
    return f"{where}{error.strerror}", REMEDIES.get(error.errno or 0, "Check the path and its permissions.")


def _report(error: Exception, *, as_json: bool) -> int:
    code = exit_code_of(error)
    message, hint = message_and_remedy(error)
    if as_json:
        document: dict[str, Any] = {"schema": "duly.error/1", "error": type(error).__name__, "message": message}
        document |= {"hint": hint, "exit_code": code}
        for name in ("path", "offset", "sequence", "field", "schedule_id"):
            value = getattr(error, name, None)
            if value is not None:
                document[name] = value if isinstance(value, int) else str(value)
        text = json.dumps(document)
    else:
        said = message.rstrip(".")
        stop = "" if said.endswith("?") else "."
        text = printable(f"duly: {said}{stop} {hint}".rstrip())
    try:
        print(text, file=sys.stderr, flush=True)
    except BrokenPipeError:
        return _ended_by_reader()
    return code


def _wants_json(given: Sequence[str]) -> bool:
    forms = [after for option, after in pairwise(given) if option == "--format"]
    forms += [word.removeprefix("--format=") for word in given if word.startswith("--format=")]
    return "--json" in given or any(form.startswith("json") for form in forms)


def _ended_by_reader() -> int:
    # What is still buffered would raise again when the interpreter flushes it.
    for stream in (sys.stdout, sys.stderr):
        try:
            os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())
        except (OSError, ValueError):
            continue
    return BROKEN_PIPE
