"""The API of a host: a client may stop and begin work, and never says anything of it that the host knows better."""

from __future__ import annotations

from collections.abc import Callable, Generator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Event
from typing import NamedTuple

import pytest

from duly import Completed, Failed, SchedulerError
from duly.service import Bounds, Client, Host, Work
from tests.service.hosting import running, until
from tests.service.serving import serving


class World(NamedTuple):
    host: Host
    client: Client
    going: Event


@pytest.fixture
def world(tmp_path: Path) -> Generator[World]:
    going = Event()

    def wait(_work: Work) -> str:
        going.wait(30)
        return "the host's own"

    with (
        Host.open(tmp_path / "j", {"wait": wait, "quick": lambda _work: 1}) as host,
        serving(host, tmp_path, bounds=Bounds(threads=4)) as served,
        served.client() as client,
        running(host),
    ):
        try:
            yield World(host, client, going)
        finally:
            going.set()


REPORTS: dict[str, Callable[[Client, int], object]] = {
    "start": lambda client, run: client.start(run),
    "complete": lambda client, run: client.complete(run, result="a client's"),
    "fail": lambda client, run: client.fail(run, error="a client's"),
    "interrupt": lambda client, run: client.interrupt(run, checkpoint="a client's"),
    "report": lambda client, run: client.report([Completed(999, None, 1), Failed(run, None, "a client's")]),
}


def test_what_the_host_executes_it_reports_itself(world: World):
    host, client, going = world
    run = client.run_now(target="wait")
    until(lambda: run.id in host.at_work)
    for name, report in REPORTS.items():
        with pytest.raises(
            SchedulerError, match=f"the host is executing run {run.id}, and reports it itself"
        ) as caught:
            report(client, run.id)
        assert (type(caught.value), caught.value.run_id) == (SchedulerError, run.id), name
    going.set()
    until(lambda: client.run(run.id).state != "started")
    assert (client.run(run.id).state, client.run(run.id).result) == ("completed", "the host's own")


def test_who_waits_for_the_host_leaves_threads_to_the_others(world: World):
    host, client, going = world
    busy = host.call(lambda: going.wait(30))
    with ThreadPoolExecutor(9) as threads:
        waiting = [threads.submit(client.resume, 999) for _ in range(9)]
        assert client.find("nobody") is None
        going.set()
        told = [str(one.exception()) for one in waiting]
    assert busy.result()
    assert {one.partition(". ")[0] for one in told} == {"there is no run 999", "others wait already, to resume runs"}
