"""A client is a Scheduler in another process: every method goes there and back, with the same values and errors."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Callable, Generator
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any

import msgspec
import pytest

from duly import (
    Completed,
    Cron,
    DefinitionError,
    Error,
    Every,
    Failed,
    Interrupted,
    ManualClock,
    OncePer,
    OneShot,
    Run,
    Schedule,
    Scheduler,
    Target,
    occurrence,
)
from duly.scheduler.execution import Attempt
from duly.service import AsyncClient, Client
from duly.service.api.methods import METHODS
from duly.service.api.refusals import CODES, attributes_of, error_of, refusal_of
from tests.service.serving import HOURLY, Served, serving

NINE = datetime(2026, 3, 2, 9, 0, tzinfo=UTC)
Step = Callable[[Any, dict[str, Any]], object]


def open_scheduler(path: Path) -> Scheduler:
    known = {"t": Target("t"), "u": Target("u", revision="7")}
    return Scheduler.open(path, clock=ManualClock(NINE), targets=known.get, task_slots=3)


@pytest.fixture
def embedded(tmp_path: Path) -> Generator[Scheduler]:
    with open_scheduler(tmp_path / "embedded") as scheduler:
        yield scheduler


@pytest.fixture
def distant(tmp_path: Path) -> Generator[tuple[Scheduler, Served]]:
    with open_scheduler(tmp_path / "distant") as scheduler, serving(scheduler, tmp_path) as served:
        yield scheduler, served


# Every step is done to both, and has the same outcome. What steps need of each other is kept in the dict.

STEPS: list[Step] = [
    lambda s, _: s.create("a", HOURLY, target="t", actor="ann", note="why", request="k1"),
    lambda s, _: s.create("a", HOURLY, target="t", actor="ann", note="why", request="k1"),
    lambda s, _: s.create("a", HOURLY, target="t", actor="ann"),
    lambda s, _: s.create("b c", HOURLY, target="t", actor="ann"),
    lambda s, _: s.create(
        "b",
        Every(2, "week", anchor=date(2026, 1, 5), at="07:00", zone="Europe/Berlin"),
        target="u",
        target_revision="7",
        overlap="parallel",
        max_active_runs=3,
        misfire="skip",
        lateness=timedelta(minutes=5),
        input={"day": occurrence.scheduled_at, "list": [1, {"x": occurrence.schedule_id}], "deep": {"y": None}},
        limits={"timeout": 30, "own": [1, 2]},
        actor="ann",
    ),
    lambda s, _: s.create("bad", HOURLY, target="t", lateness=timedelta(seconds=-1), actor="ann"),
    lambda s, _: s.create("bad", HOURLY, target="", actor="ann"),
    lambda s, _: s.create("late", OneShot(datetime(2020, 1, 1, tzinfo=UTC)), target="t", actor="ann"),
    lambda s, _: s.create_many(
        [
            {"schedule_id": "m1", "trigger": OncePer("day", zone="UTC"), "target": "t"},
            {"schedule_id": "m2", "trigger": OneShot(NINE + timedelta(hours=2)), "target": "t", "input": {"n": 1}},
        ],
        actor="ann",
        request="many",
    ),
    lambda s, _: s.declare("a", HOURLY, target="t", actor="ann"),
    lambda s, _: s.declare("a", Cron("5 * * * *", zone="UTC"), target="t", actor="ann"),
    lambda s, _: s.edit("a", expected_revision=1, target="t", actor="ann"),
    lambda s, _: s.edit("a", expected_revision=2, trigger=HOURLY, lateness=timedelta(hours=1), actor="ann"),
    lambda s, _: s.edit("gone", expected_revision=2, trigger=HOURLY, actor="ann"),
    lambda s, _: s.pause("a", actor="ann", note="n"),
    lambda s, _: s.unpause("a", actor="ann"),
    lambda s, _: s.disable("a", actor="ann"),
    lambda s, _: s.enable("a", actor="ann"),
    lambda s, _: s.block("a", "a fault", actor="ann"),
    lambda s, _: s.run_now("a", actor="ann"),
    lambda s, _: s.unblock("a", actor="ann"),
    lambda s, _: s.rebaseline("a", NINE - timedelta(hours=3), actor="ann"),
    lambda s, _: s.rebaseline("a", NINE + timedelta(hours=3), actor="ann"),
    lambda s, _: s.rebaseline("a", datetime(2026, 1, 1), actor="ann"),  # noqa: DTZ001 - it is refused
    lambda s, _: s.record_external_run("m1", NINE, actor="ann", request="ext"),
    lambda s, _: s.delete("m2", actor="ann"),
    lambda s, _: s.delete("m2", actor="ann"),
    lambda s, kept: kept.setdefault("run", s.run_now("a", actor="ann", request="now")),
    lambda s, _: s.run_now("a", actor="ann", request="now"),
    lambda s, _: s.run_now("b", actor="ann", request="now"),
    lambda s, _: s.run_now("b", actor="ann"),
    lambda s, _: s.run_now(target="nobody", actor="ann"),
    lambda s, kept: kept.setdefault("other", s.run_now(target="t", input={"x": [1]}, limits={"own": 1}, actor="ann")),
    lambda s, kept: s.start(kept["run"].id, kept["other"].id),
    lambda s, kept: s.start(kept["run"].id),
    lambda s, kept: s.note_run(kept["run"].id, {"group": 77}),
    lambda s, kept: s.interrupt(kept["run"].id, checkpoint={"page": 3}),
    lambda s, kept: kept.setdefault("attempt", s.resume(kept["run"].id)),
    lambda s, kept: s.complete(kept["run"].id),
    lambda s, kept: s.complete(kept["run"].id, attempt_id=kept["attempt"].attempt_id, result={"rows": [1, 2.5, None]}),
    lambda s, kept: s.complete(kept["run"].id, attempt_id=kept["attempt"].attempt_id),
    lambda s, kept: s.fail(kept["other"].id, error=ValueError("no such table")),
    lambda s, kept: s.fail(kept["other"].id, error="again"),
    lambda s, kept: kept.setdefault("many", [s.run_now("a", actor="ann").id for _ in range(3)]),
    lambda s, kept: s.start(*kept["many"]),
    lambda s, _: s.start(),
    lambda s, _: s.start(999),
    lambda s, kept: s.report(
        [
            Completed(kept["many"][0], None, "r"),
            Failed(kept["many"][1], None, "e"),
            Interrupted(kept["many"][2], None, 5),
        ]
    ),
    lambda s, kept: s.abandon(kept["many"][2], actor="ann", note="n"),
    lambda s, _: s.complete(999),
    lambda s, _: s.complete(1, result=float("nan")),
    lambda s, _: s.find("a"),
    lambda s, _: s.find("m2"),
    lambda s, _: s.find("never"),
    lambda s, _: s.schedule("b"),
    lambda s, _: s.schedule("m2"),
    lambda s, _: s.schedules(),
    lambda s, _: s.schedules(after="a", limit=1),
    lambda s, kept: s.run(kept["run"].id),
    lambda s, _: s.run(1),
    lambda s, _: s.runs(),
    lambda s, kept: s.runs(schedule_id="a", state="completed", after=kept["run"].id, limit=2),
    lambda s, _: s.runs(limit=0),
    lambda s, _: s.upcoming(5),
    lambda s, _: s.upcoming(0),
    lambda s, _: s.next_due("a"),
    lambda s, _: s.next_due("never"),
    lambda s, _: s.occurrences("a", limit=2),
    lambda s, _: s.occurrences("a", after=s.occurrences("a", limit=1).next, limit=2),
    lambda s, _: s.occurrences("a", after="no cursor"),
    lambda s, _: s.explain("a", NINE),
    lambda s, _: s.explain("m1", NINE - timedelta(days=1)),
    lambda s, _: s.explain("a", NINE + timedelta(hours=1)),
]


def outcome(step: Step, scheduler: object, kept: dict[str, Any]) -> object:
    """What a step returns, or what the error says: everything but the identity of exceptions."""
    try:
        value = step(scheduler, kept)
    except Error as error:
        attributes = {name: value for name, value in vars(error).items() if name != "value"}
        return type(error), str(error), attributes
    return value


def test_every_step_has_the_same_outcome_here_and_there(embedded: Scheduler, distant: tuple[Scheduler, Served]):
    scheduler, served = distant
    here: dict[str, Any] = {}
    there: dict[str, Any] = {}
    with served.client() as client:
        for number, step in enumerate(STEPS):
            expected, found = outcome(step, embedded, here), outcome(step, client, there)
            assert found == expected, f"step {number}"
        assert client.digest() == scheduler.digest()


def test_every_method_is_among_the_steps():
    asked = {name for step in STEPS for name in step.__code__.co_names}
    assert set(METHODS) - asked == {"digest"}  # it has the keys in it that a client makes


def test_values_are_the_schedulers_own_types(distant: tuple[Scheduler, Served]):
    with distant[1].client() as client:
        schedule = client.create("a", HOURLY, target="t")
        run = client.run_now("a")
        client.start(run.id)
        client.interrupt(run.id, checkpoint=1)
        assert (type(schedule), type(run), type(client.resume(run.id))) == (Schedule, Run, Attempt)
        assert schedule.trigger == HOURLY
        assert schedule.trigger.next_after(NINE) == NINE + timedelta(hours=1)


def test_the_very_next_poll_sees_what_a_client_did(tmp_path: Path):
    clock = ManualClock(NINE)
    with (
        Scheduler.open(tmp_path / "j", clock=clock) as scheduler,
        serving(scheduler, tmp_path) as served,
        served.client() as client,
    ):
        client.create("a", HOURLY, target="t")
        client.create("b", HOURLY, target="t")
        clock.advance(timedelta(hours=1))
        client.pause("a")
        assert [run.schedule_id for run in scheduler.poll().admitted] == ["b"]
        by_hand = client.run_now("a")
        assert by_hand.id in [run.id for run in scheduler.poll().offered]
        client.abandon(by_hand.id)
        assert by_hand.id not in [run.id for run in scheduler.poll().offered]


def test_both_clients_have_every_method_with_the_signature_of_the_scheduler():
    for client in (Client, AsyncClient):
        shown = {name: inspect.signature(getattr(client, name)) for name in METHODS}
        assert shown == {name: method.signature for name, method in METHODS.items()}
    assert all(inspect.iscoroutinefunction(getattr(AsyncClient, name)) for name in METHODS)


def test_what_is_not_served_is_what_only_the_host_itself_may_do():
    methods = {name for name, _ in inspect.getmembers(Scheduler, callable) if not name.startswith("_")}
    assert methods - set(METHODS) == {"open", "close", "poll", "polls", "wait", "wake", "stop_admitting", "running"}


def test_an_async_client_asks_many_things_at_once(distant: tuple[Scheduler, Served]):
    served = distant[1]

    async def main() -> tuple[list[str], list[int], str]:
        async with AsyncClient(served.address, token_file=served.token_file, actor="bob") as client:
            made = await asyncio.gather(*(client.create(f"s{n}", HOURLY, target="t") for n in range(20)))
            runs = await asyncio.gather(*(client.run_now(f"s{n}") for n in range(20)))
            with pytest.raises(DefinitionError) as caught:
                await client.create("s 1", HOURLY, target="t")
            assert (await client.status()).ready
            return [one.id for one in made], [run.id for run in runs], caught.value.field

    made, runs, field = asyncio.run(main())
    assert (made, len(set(runs)), field) == ([f"s{n}" for n in range(20)], 20, "schedule_id")


def test_a_list_that_is_longer_than_a_piece_comes_whole(tmp_path: Path):
    from duly.service import Bounds

    with open_scheduler(tmp_path / "j") as scheduler, serving(scheduler, tmp_path, bounds=Bounds(listed=7)) as served:
        scheduler.create_many({"schedule_id": f"s{n:02}", "trigger": HOURLY, "target": "t"} for n in range(30))
        runs = [scheduler.run_now(f"s{n:02}").id for n in range(15)]
        with served.client() as client:
            assert client.schedules() == scheduler.schedules()
            assert client.schedules(limit=14) == scheduler.schedules(limit=14)
            assert client.schedules(after="s10", limit=8) == scheduler.schedules(after="s10", limit=8)
            assert [run.id for run in client.runs()] == runs
            with pytest.raises(DefinitionError, match="too much for one reply"):
                client.upcoming(8)


def test_a_source_of_the_hosts_own_is_known_to_a_client_that_has_its_factory(tmp_path: Path):
    from duly.journal.entries import SourceRule

    class Daily:
        def __init__(self, hour: int) -> None:
            self.rule = SourceRule("daily", hour)

        def next_after(self, instant: datetime, /) -> datetime | None:
            return instant.replace(minute=0, second=0, microsecond=0) + timedelta(hours=1)

        def prev_before(self, instant: datetime, /) -> datetime | None:
            return None

    with (
        Scheduler.open(tmp_path / "j", clock=ManualClock(NINE), sources={"daily": Daily}) as scheduler,
        serving(scheduler, tmp_path) as served,
        served.client(sources={"daily": Daily}) as knowing,
        served.client() as ignorant,
    ):
        assert isinstance(knowing.create("a", Daily(9), target="t").trigger, Daily)
        assert repr(ignorant.schedule("a").trigger).startswith("Unevaluable(SourceRule(source='daily'")
        with pytest.raises(DefinitionError, match="not registered"):
            ignorant.create("b", _Unknown(), target="t")
        with pytest.raises(DefinitionError, match="is not a trigger"):
            ignorant.create("b", "@daily", target="t")  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType] - it is refused


class _Unknown:
    def __init__(self) -> None:
        from duly.journal.entries import SourceRule

        self.rule = SourceRule("unknown", None)

    def next_after(self, instant: datetime, /) -> datetime | None:
        return None

    def prev_before(self, instant: datetime, /) -> datetime | None:
        return None


@pytest.mark.parametrize("kind", list(CODES), ids=lambda kind: kind.__name__)
def test_an_error_goes_there_and_back(kind: type[Error]):
    samples: dict[str, Any] = {
        "field": "target",
        "value": "x",
        "problem": "is bad",
        "remedy": "mend it",
        "schedule_id": "a",
        "run_id": 7,
        "expected": 2,
        "actual": 3,
        "given": None,
        "active": 9,
        "state": "started",
        "recorded": None,
        "reason": "r",
        "sequence": 4,
        "offset": 5,
        "path": "/j",
        "instant": NINE,
        "reading": NINE,
        "hint": "do it",
    }
    names = attributes_of(kind)
    told = () if "field" in names else ("it is so",)
    error = kind(*told, **{name: samples[name] for name in names})
    refusal = msgspec.json.decode(msgspec.json.encode(refusal_of(error)), type=type(refusal_of(error)))
    found = error_of(refusal)
    assert found is not None
    assert (type(found), str(found), vars(found)) == (type(error), str(error), vars(error))


def test_codes_are_unique_and_cover_every_error_of_duly():
    assert len(set(CODES.values())) == len(CODES)
    import duly

    known = {getattr(duly, name) for name in duly.PUBLIC}
    errors = {one for one in known if isinstance(one, type) and issubclass(one, Error)} - {Error}
    assert errors - set(CODES) == set()


class Nameless:
    def __repr__(self) -> str:
        raise LookupError("no")


def test_a_value_without_a_text_is_refused_as_any_other_is():
    refusal = refusal_of(DefinitionError("input", Nameless(), "is no JSON", "Give what is JSON."))
    told = error_of(refusal)
    assert isinstance(told, DefinitionError)
    assert (told.field, told.value) == ("input", "a Nameless without a repr")
