"""Commands: subprocesses in sessions of their own, behind a gate that opens when the journal knows them.

Rules: no command runs before its process is noted, durably; a command's process group ends with it when it was asked to
end; exit code 0 is success, 75 an interruption whose checkpoint is a file's text, everything else a failure.
"""

from __future__ import annotations

import os
import re
import signal
import subprocess
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from threading import Lock, Thread
from typing import Final, cast

import msgspec

from duly.journal.entries import Json
from duly.scheduler.decisions.runs import Result
from duly.scheduler.errors import DefinitionError
from duly.scheduler.wording import describe_value
from duly.service.accounts import Account, account_of
from duly.service.keeper import Keeper
from duly.service.outliving import GroupActivity, note_of
from duly.service.output import NoFile, RunFiles, opened
from duly.service.processes import process_of, signal_group
from duly.service.work import Report, Work

NAME_OF_A_VARIABLE: Final = re.compile("[A-Za-z_][A-Za-z0-9_]*")
NO_CHARACTER: Final = "has the character 0, which no command can be given"
INTERRUPTED: Final = 75
"""The exit code that says: stopped, and able to go on from the checkpoint."""
LONGEST_CHECKPOINT: Final = 200_000
"""Characters."""
CAN_RUN_COMMANDS: Final = os.name == "posix"
GATE: Final = 'IFS= read -r go && [ "$go" = go ] || exit 1; in=$1; shift; exec "$@" <"$in"'
"""The shell becomes the command when it has read a line; at the end of its input, because its host died, it ends."""

Note = Callable[[int, Json], None]
"""Records JSON about a run, durably."""


class CommandFailed(Exception):
    """A command that ended with another exit code than 0 and 75, was killed, or could not be begun."""


class Command(msgspec.Struct, frozen=True):
    """A program to execute: the words of its command line, or one text for `shell`.

    `environment` comes on top of the host's own; `stdin` is what it reads, nothing if None; `user` needs a host that
    runs as root; `cwd` is the user's home if a user is named, and the host's own folder otherwise. Raises
    DefinitionError for what cannot be executed, or would not reach the command.
    """

    line: str | tuple[str, ...]
    environment: Mapping[str, str] = msgspec.field(default_factory=dict[str, str])
    stdin: str | None = None
    cwd: Path | None = None
    user: str | None = None
    shell: str = "/bin/sh"

    def __post_init__(self) -> None:
        _check_line(self.line)
        _check_environment(self.environment)
        _check_text("stdin", self.stdin, optional=True)
        _check_text("user", self.user, optional=True)
        _check_text("shell", self.shell)
        if not _is_plain(self.shell):
            raise DefinitionError("shell", self.shell, "is no program", "Write shell='/bin/sh'")
        _check_folder(self.cwd)

    @property
    def words(self) -> tuple[str, ...]:
        """The command line as it is executed."""
        return (self.shell, "-c", self.line) if isinstance(self.line, str) else tuple(self.line)


def _check_line(line: object) -> None:
    remedy = "Write a text for the shell, 'date -u', or a tuple of words, ('date', '-u')"
    if isinstance(line, str):
        if not _is_plain(line):
            raise DefinitionError("line", line, "has nothing to execute" if not line.strip() else NO_CHARACTER, remedy)
    elif not isinstance(line, tuple | list):
        raise DefinitionError("line", line, "is no command line", remedy)
    else:
        words = cast("Sequence[object]", line)
        if not words or words[0] == "":
            raise DefinitionError("line", words, "has no word that names a program", remedy)
        for word in words:
            if not isinstance(word, str):
                raise DefinitionError("line", words, f"has a word that is no text, {describe_value(word)}", remedy)
            if "\0" in word:
                raise DefinitionError("line", words, NO_CHARACTER, remedy)


def _check_environment(environment: object) -> None:
    if not isinstance(environment, Mapping):
        raise DefinitionError("environment", environment, "is no mapping", "Write environment={'LANG': 'C'}")
    for name, value in cast("Mapping[object, object]", environment).items():
        if not isinstance(name, str) or NAME_OF_A_VARIABLE.fullmatch(name) is None:
            problem = "is no name that the shell in front of every command passes on"
            raise DefinitionError("environment", name, problem, "Use letters, digits and _, a letter or _ first")
        if not isinstance(value, str) or "\0" in value:
            problem = "is a variable whose value is no text, or has the character 0"
            raise DefinitionError("environment", name, problem, f"Write {{'{name}': '…'}}")


def _check_text(field: str, value: object, *, optional: bool = False) -> None:
    if not (isinstance(value, str) or (optional and value is None)):
        raise DefinitionError(field, value, "is no text", f"Write {field}='…'")


def _check_folder(cwd: object) -> None:
    if not isinstance(cwd, str | Path | None):
        raise DefinitionError("cwd", cwd, "is no path", "Write cwd=Path('/srv')")


def _is_plain(text: str) -> bool:
    return bool(text.strip()) and "\0" not in text


class CommandOf(msgspec.Struct, frozen=True):
    """A handler that makes a command of each work, for example of the run's input."""

    build: Callable[[Work], Command]


class CommandActivity(GroupActivity):
    """A command that this host executes."""

    def __init__(  # noqa: PLR0913, PLR0917 - what a command needs of its host
        self,
        work: Work,
        report: Report,
        build: Callable[[Work], Command],
        files: RunFiles,
        keeper: Keeper,
        note: Note,
    ) -> None:
        super().__init__(work, report)
        self._build = build
        self._files = files
        self._keeper = keeper
        self._note = note
        self._lock = Lock()
        self._group: int | None = None
        """The process group, while its leader is not reaped: until then the id belongs to nobody else."""

    def begin(self) -> None:
        """Begins in a thread, which waits for the command's end."""
        Thread(target=self._execute, name=f"duly run {self.work.run.id}", daemon=True).start()

    def _signal(self, number: signal.Signals) -> None:
        with self._lock:
            if self._group is not None:
                signal_group(self._group, number)

    def _execute(self) -> None:
        try:
            result = self._executed(self._build(self.work))
        except BaseException as error:  # whatever keeps a command from running is how its run ended
            result = self.work.failed(error)
        finally:
            self._files.clean()
        self.report(result)

    def _executed(self, command: Command) -> Result:
        account = account_of(command.user)
        gate: subprocess.Popen[bytes] | None = None
        self._keeper.watch(self._files.log)
        try:
            log = self._prepared(command, account)
            gate = self._opened(command, account, log)
            self._let_through(gate)
            code = self._waited(gate)
        finally:
            self._keeper.leave(self._files.log, None if gate is None else gate.pid)
        return self._result(code)

    def _prepared(self, command: Command, account: Account | None) -> int:
        """Makes the files; a descriptor of the log."""
        owner = None if account is None else account.uid
        with self._keeper.arranging:
            self._files.make_folder()
            self._files.write(self._files.checkpoint, _text(self.work.checkpoint), owner)
            if command.stdin is not None:
                self._files.write(self._files.stdin, command.stdin, owner)
            return self._files.open_log()

    def _opened(self, command: Command, account: Account | None, log: int) -> subprocess.Popen[bytes]:
        source = os.devnull if command.stdin is None else str(self._files.stdin.absolute())
        try:
            gate = subprocess.Popen(  # noqa: S603 - executing commands is what a host is for
                ["/bin/sh", "-c", GATE, "duly", source, *command.words],
                stdin=subprocess.PIPE,
                stdout=log,
                stderr=log,
                cwd=_folder_of(command, account),
                env=environment_of(self.work, command, self._files, account),
                start_new_session=True,
                user=None if account is None else account.uid,
                group=None if account is None else account.gid,
                extra_groups=None if account is None else account.groups,
            )
        finally:
            os.close(log)
        with self._lock:
            self._group = gate.pid
        return gate

    def _let_through(self, gate: subprocess.Popen[bytes]) -> None:
        """Notes the process, and opens the gate; whatever comes in between leaves it shut."""
        assert gate.stdin is not None  # noqa: S101 - it is a pipe by construction
        try:
            process = process_of(gate.pid)
            self._note(self.work.run.id, note_of(gate.pid, process, self.work.attempt_id, self._files.log))
            if not self.work.stopping:
                with suppress(BrokenPipeError):
                    gate.stdin.write(b"go\n")
                    gate.stdin.flush()
        except BaseException:
            with suppress(OSError):
                gate.stdin.close()
            self._waited(gate)
            raise
        with suppress(OSError):
            gate.stdin.close()

    def _waited(self, gate: subprocess.Popen[bytes]) -> int:
        """The exit code. A group that was asked to end is ended with its leader, before the leader's id is free."""
        if hasattr(os, "waitid"):
            os.waitid(os.P_PID, gate.pid, os.WEXITED | os.WNOWAIT)
        with self._lock:
            if self.work.stopping:
                signal_group(gate.pid, signal.SIGKILL)
            code = gate.wait()
            self._group = None
        return code

    def _result(self, code: int) -> Result:
        if code == 0:
            return self.work.completed({"exit_code": 0})
        if code == INTERRUPTED:
            return self.work.interrupted(self._checkpoint())
        return self.work.failed(CommandFailed(f"{describe_exit(code)}; {self._files.describe_output()}"))

    def _checkpoint(self) -> str | None:
        try:
            with open(opened(self._files.checkpoint, os.O_RDONLY), "rb") as file:  # noqa: PTH123 - of a descriptor
                text = file.read(4 * LONGEST_CHECKPOINT + 1).decode("utf-8")
        except FileNotFoundError:
            return None
        except NoFile as error:
            raise CommandFailed("interrupted (exit code 75), with a checkpoint that is no file") from error
        except ValueError as error:
            raise CommandFailed("interrupted (exit code 75), with a checkpoint that is no UTF-8 text") from error
        if len(text) > LONGEST_CHECKPOINT:
            raise CommandFailed(f"interrupted (exit code 75), with a checkpoint over {LONGEST_CHECKPOINT:,} characters")
        return text or None


def _folder_of(command: Command, account: Account | None) -> Path | None:
    if command.cwd is not None or account is None:
        return command.cwd
    if not account.home.is_dir():
        raise CommandFailed(f"the home of {account.name}, {account.home}, does not exist; give the command another cwd")
    return account.home


def describe_exit(code: int) -> str:
    """How a command ended, in words."""
    if code >= 0:
        return f"exit code {code}"
    try:
        return f"killed by {signal.Signals(-code).name}"
    except ValueError:
        return f"killed by signal {-code}"


def environment_of(work: Work, command: Command, files: RunFiles, account: Account | None) -> dict[str, str]:
    """The environment of a command: the host's, the user's, the command's, and what duly tells it."""
    run = work.run
    told = {
        "DULY_SCHEDULE_ID": run.schedule_id,
        "DULY_OCCURRENCE_ID": run.occurrence_id,
        "DULY_SCHEDULED_AT": None if run.scheduled_at is None else f"{run.scheduled_at:%Y-%m-%dT%H:%M:%SZ}",
        "DULY_RUN_ID": str(run.id),
        "DULY_ATTEMPT_ID": None if work.attempt_id is None else str(work.attempt_id),
        "DULY_INPUT": msgspec.json.encode(run.input).decode(),
        "DULY_CHECKPOINT_FILE": str(files.checkpoint.absolute()),
    }
    inherited = {name: value for name, value in os.environ.items() if name not in told}
    own = {} if account is None else account.environment
    return {**inherited, **own, **command.environment, **{k: v for k, v in told.items() if v is not None}}


def _text(checkpoint: Json) -> str:
    if checkpoint is None:
        return ""
    return checkpoint if isinstance(checkpoint, str) else msgspec.json.encode(checkpoint).decode()
