"""The description holds: what clients send, and what they are answered, is as its schemas say."""

from __future__ import annotations

import json
from collections.abc import Generator
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from duly import Error
from duly.service import Client
from duly.service.api.calls import Answer, Received, Send
from duly.service.api.methods import METHODS
from tests.service.serving import Served, call, post, serving
from tests.service.test_api_round_trip import STEPS, open_scheduler

Talk = tuple[dict[str, Any], dict[str, Any]]


class Recording(Client):
    """A client that keeps every call with its reply."""

    talks: list[Talk]

    def _post(self, step: Send) -> Answer:
        answer = super()._post(step)
        assert isinstance(answer, Received)
        self.talks.append((json.loads(step.body), json.loads(answer.body)))
        return answer


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Generator[Served]:
    folder: Path = tmp_path_factory.mktemp("described")
    with open_scheduler(folder / "j") as scheduler, serving(scheduler, folder) as served:
        yield served


@pytest.fixture(scope="module")
def talks(served: Served) -> list[Talk]:
    """All steps of the round trip, and what they lack."""
    kept: dict[str, Any] = {}
    with Recording(served.address, token_file=served.token_file) as client:
        client.talks = []
        for step in STEPS:
            try:
                step(client, kept)
            except Error:
                continue
        client.digest()
        client.status()
    return client.talks


@pytest.fixture(scope="module")
def document(served: Served) -> dict[str, Any]:
    found: dict[str, Any] = post(served.address, call("rpc.discover")).json["result"]
    return found


def problems(document: dict[str, Any], schema: dict[str, Any], value: Any) -> list[str]:
    whole = {**schema, "components": document["components"]}
    Draft202012Validator.check_schema(whole)
    validator: Any = Draft202012Validator(whole)
    return [f"{error.json_path}: {error.message[:300]}" for error in validator.iter_errors(value)]


def test_every_parameter_that_is_sent_is_as_described(document: dict[str, Any], talks: list[Talk]):
    methods = {one["name"]: one for one in document["methods"]}
    seen: set[tuple[str, str]] = set()
    for request, reply in talks:
        method = methods[request["method"]]
        schemas = {one["name"]: one["schema"] for one in method["params"]}
        assert set(request["params"]) <= set(schemas), request
        required = {one["name"] for one in method["params"] if one["required"]}
        assert required <= set(request["params"]), request
        for name, value in request["params"].items():
            seen.add((method["name"], name))
            assert problems(document, schemas[name], value) == [], (request, reply)
    described = {(name, one["name"]) for name in METHODS for one in methods[name]["params"]}
    assert {name for _, name in described} - {name for _, name in seen} == set()


def test_every_reply_is_as_described(document: dict[str, Any], talks: list[Talk]):
    methods = {one["name"]: one for one in document["methods"]}
    codes = {name: one["code"] for name, one in document["components"]["errors"].items()}
    seen: set[str] = set()
    for request, reply in talks:
        if "error" in reply:
            assert codes[reply["error"]["data"]["error"]] == reply["error"]["code"], reply
            continue
        seen.add(request["method"])
        assert problems(document, methods[request["method"]]["result"]["schema"], reply["result"]) == [], request
    assert seen == {*METHODS, "service.status"}


def test_no_description_is_empty(document: dict[str, Any]):
    """Each schema refuses something: what is of no type that any of them has."""
    nothing = {"nobody": {"expects": "this"}}
    free = {"limits", "result", "checkpoint", "data"}  # any JSON, or any object of it
    for method in document["methods"]:
        schemas = {one["name"]: one["schema"] for one in method["params"] if one["name"] not in free}
        if method["name"] != "rpc.discover":
            schemas["-> result"] = method["result"]["schema"]
        for name, schema in schemas.items():
            assert problems(document, schema, nothing), (method["name"], name)
