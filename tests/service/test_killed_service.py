"""A service, or a client, that dies in the middle of a call: whoever repeats the call changes nothing twice."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from threading import Thread
from typing import Any

import pytest

from duly import Cron, Scheduler
from duly.journal import read, verify
from duly.journal.entries import kind_of
from duly.projections import replay
from duly.scheduler.accounting import account
from duly.service import Client, ServiceUnreachable
from tests.service.serving import write_token
from tests.tree import ROOT

HOURLY = Cron("0 * * * *", zone="UTC")
NOW = datetime(2026, 3, 2, 9, 0, tzinfo=UTC)
Call = Callable[[Client], Any]


class World:
    """A journal, and one service after the other on it, at one address."""

    def __init__(self, folder: Path) -> None:
        self.journal = folder / "j"
        self.token_file = write_token(folder / "token")
        self.address = "127.0.0.1:0"
        with Scheduler.open(self.journal) as scheduler:
            scheduler.create("a", HOURLY, target="t")
        self.before = self.counted()

    def serve(self, fatal: str = "") -> subprocess.Popen[str]:
        command = [sys.executable, "-P", "-m", "tests.service.killed_service", str(self.journal), self.address]
        process = subprocess.Popen(
            [*command, str(self.token_file), fatal],
            cwd=ROOT,
            stdout=subprocess.PIPE,
            text=True,
            env=os.environ | {"PYTHONPATH": str(ROOT)},
        )
        assert process.stdout is not None
        self.address = process.stdout.readline().strip()
        return process

    def client(self, patience: timedelta = timedelta(seconds=60)) -> Client:
        return Client(self.address, token_file=self.token_file, patience=patience, actor="ann")

    def counted(self) -> dict[str, int]:
        """How many entries of each kind there are, but for those of the journal itself."""
        found: dict[str, int] = {}
        for record in read(self.journal):
            kind = kind_of(record.entry)
            if kind not in ("JournalOpened", "JournalClosed"):
                found[kind] = found.get(kind, 0) + 1
        return found

    def recorded(self) -> dict[str, int]:
        """What came to be recorded since the world began."""
        return {kind: count - self.before.get(kind, 0) for kind, count in self.counted().items()}


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(tmp_path)


def end(process: subprocess.Popen[str]) -> None:
    process.kill()
    process.wait(30)
    if process.stdout is not None:
        process.stdout.close()


KEYED: dict[str, tuple[Call, str]] = {
    "run_now": (lambda client: client.run_now("a"), "RunAdmittedManually"),
    "create": (lambda client: client.create("b", HOURLY, target="t"), "ScheduleCreated"),
    "create_many": (
        lambda client: client.create_many([{"schedule_id": "b", "trigger": HOURLY, "target": "t"}]),
        "ScheduleCreated",
    ),
    "declare": (lambda client: client.declare("a", HOURLY, target="u"), "ScheduleEdited"),
    "record_external_run": (lambda client: client.record_external_run("a", NOW), "ExternalRunRecorded"),
}


@pytest.mark.parametrize("name", KEYED)
def test_a_call_that_a_dying_server_recorded_takes_effect_once(name: str, world: World):
    call, kind = KEYED[name]
    dying = world.serve(fatal=name)
    outcome: list[Any] = []
    with world.client() as client:
        thread = Thread(target=lambda: outcome.append(call(client)))
        thread.start()
        assert dying.wait(60) == 9
        after = world.serve()  # on the same port; the client has been trying since
        thread.join(60)
    end(dying)
    end(after)
    changed = {kind: count for kind, count in world.recorded().items() if count}
    assert changed == {kind: 1}
    assert outcome
    assert verify(world.journal).intact
    assert account(world.journal).balanced


KEYLESS: dict[str, tuple[Call, str]] = {
    "pause": (lambda client: client.pause("a"), "SchedulePaused"),
    "edit": (lambda client: client.edit("a", expected_revision=1, target="u"), "ScheduleEdited"),
    "delete": (lambda client: client.delete("a"), "ScheduleDeleted"),
}


@pytest.mark.parametrize("name", KEYLESS)
def test_a_call_without_a_key_is_not_repeated_and_said_to_be_indeterminate(name: str, world: World):
    call, kind = KEYLESS[name]
    dying = world.serve(fatal=name)
    with world.client() as client, pytest.raises(ServiceUnreachable, match="Ask what became of it") as caught:
        call(client)
    end(dying)
    assert caught.value.indeterminate is True
    assert world.recorded()[kind] == 1


def test_a_question_is_repeated_until_the_service_is_back(world: World):
    dying = world.serve(fatal="schedule")
    found: list[str] = []
    with world.client() as client:
        thread = Thread(target=lambda: found.append(client.schedule("a").id))
        thread.start()
        assert dying.wait(60) == 9
        after = world.serve()
        thread.join(60)
        assert found == ["a"]
    end(dying)
    end(after)


def test_a_client_that_dies_after_asking_and_asks_again_with_its_key_changes_nothing_twice(world: World):
    program = (
        "import sys; from duly.service import Client\n"
        "client = Client(sys.argv[1], token_file=sys.argv[2])\n"
        "import httpx2, os\n"
        "send = client._http.post\n"
        "def post(*a, **k):\n"
        "    send(*a, **k); os._exit(9)\n"  # it was answered, and dies before it knows
        "client._http.post = post if sys.argv[3] == 'dies' else send\n"
        "print(client.run_now('a', request='the order 4711').id)\n"
    )
    server = world.serve()

    def ask(how: str) -> subprocess.CompletedProcess[str]:
        arguments = [world.address, str(world.token_file), how]
        return subprocess.run(
            [sys.executable, "-P", "-c", program, *arguments], capture_output=True, text=True, check=False, timeout=60
        )

    assert ask("dies").returncode == 9
    first = ask("lives").stdout
    end(server)
    server = world.serve()
    second = ask("lives").stdout
    end(server)
    assert (first, world.recorded()["RunAdmittedManually"]) == (second, 1)
    assert [run.id for run in replay(world.journal).runs()] == [int(first)]
