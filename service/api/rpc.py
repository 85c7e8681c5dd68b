"""JSON-RPC 2.0: from the bytes of a request to the bytes of its reply.

Rules: nothing here knows of HTTP; a call is checked whole before anything is done; the calls of a batch are made in
their order, and each stands for itself; whatever a client sends, the answer is a reply, and a fault of the server's own
is logged and tells nothing.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, Protocol, TypeVar, cast

import msgspec

from duly.journal.entries import Json
from duly.journal.errors import Error, JournalError
from duly.projections import Page
from duly.scheduler.embedded import Scheduler
from duly.scheduler.errors import DefinitionError, SchedulerError
from duly.scheduler.execution import Attempt
from duly.service.api import refusals
from duly.service.api.bounds import Bounds, Bucket, is_deeper
from duly.service.api.methods import METHODS, Method
from duly.service.api.refusals import Refusal, refusal_of
from duly.service.api.wire import plain, received_fields
from duly.service.loop import HostState

T = TypeVar("T")
ACTOR: Final = "api"
"""Who is named in the record, if a caller does not say who he is."""
REPORTS: Final = frozenset({"start", "complete", "fail", "interrupt", "report"})
"""What is told of a run by whoever executes it."""
_log: Final = logging.getLogger("duly.service.api")


class Served(Protocol):
    """What is administered: a `Host`, or a Scheduler in its wrapper."""

    @property
    def state(self) -> HostState:
        """Where in its life it is."""
        ...

    @property
    def at_work(self) -> tuple[int, ...]:
        """The runs that it is executing."""
        ...

    def ask(self, question: Callable[[Scheduler], T]) -> T:
        """Asks, or tells, the scheduler something."""
        ...

    def resume(self, run_id: int) -> Attempt:
        """Resumes an interrupted run; a host executes it, too."""
        ...


class TooMany(Exception):
    """The rate is exceeded; nothing was done. `seconds` is how long to wait."""

    def __init__(self, seconds: float) -> None:
        super().__init__(f"too many calls: wait {seconds:.2f} s")
        self.seconds = seconds


class _Refused(Exception):
    def __init__(self, code: int, message: str, data: dict[str, Json] | None = None) -> None:
        super().__init__(message)
        self.refusal = Refusal(code, message, data)


class Listing(msgspec.Struct, frozen=True):
    """A piece of a list, and what to give as `after` for the next piece, or None at the end."""

    items: Sequence[Any]
    next: str | int | None


class Dispatcher:
    """Makes the calls that clients ask for. Any thread may use it."""

    def __init__(self, served: Served, own: Mapping[str, Callable[[], object]], bounds: Bounds, rate: Bucket) -> None:
        self._served = served
        self._own = own
        self._bounds = bounds
        self._rate = rate

    def reply(self, body: bytes) -> bytes | None:
        """The reply to a request; None if there is nothing to say. Raises TooMany."""
        try:
            request = self._parsed(body)
        except _Refused as refused:
            self._take(1)
            return _encoded(None, refused.refusal)
        if not isinstance(request, list):
            self._take(1)
            return self._answer(request)
        calls = cast("list[object]", request)
        if not 0 < len(calls) <= self._bounds.batch:
            self._take(1)
            words = f"a batch has 1 to {self._bounds.batch} calls, and this one {len(calls)}"
            return _encoded(None, Refusal(refusals.INVALID_REQUEST, words))
        self._take(len(calls))
        answers: list[bytes] = []
        size = 0
        for call in calls:
            answer = self._answer(call, full=size > self._bounds.reply)
            if answer is not None:
                answers.append(answer)
                size += len(answer)
        return b"[" + b",".join(answers) + b"]" if answers else None

    def _take(self, count: int) -> None:
        seconds = self._rate.take(count)
        if seconds:
            raise TooMany(seconds)

    def _parsed(self, body: bytes) -> object:
        try:
            request: object = msgspec.json.decode(body)
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            raise _Refused(refusals.PARSE_ERROR, f"the request is no JSON: {error}") from None
        except RecursionError:
            request = None
            deeper = True
        else:
            deeper = is_deeper(request, self._bounds.depth)
        if deeper:
            raise _Refused(refusals.INVALID_REQUEST, f"the request is nested deeper than {self._bounds.depth} levels")
        return request

    def _answer(self, call: object, *, full: bool = False) -> bytes | None:
        """The answer to one call; None to a notification."""
        problem = _problem_of(call)
        asked = cast("dict[str, object]", call) if isinstance(call, dict) else {}
        if problem:
            words = f'{problem}: a call is {{"jsonrpc": "2.0", "method": …, "params": …, "id": …}}'
            return _encoded(_id_of(asked), Refusal(refusals.INVALID_REQUEST, words))
        try:
            if full:
                raise _Refused(refusals.REPLY_TOO_LARGE, "the reply is full: this call was not made; ask for less")
            encoded = _encoded(_id_of(asked), self._outcome(str(asked["method"]), asked.get("params", {})))
        except Exception as error:
            encoded = _encoded(_id_of(asked), self._refusal_by(error))
        return encoded if "id" in asked else None

    def _refusal_by(self, error: Exception) -> Refusal:
        """What is told of an exception; of a fault of the server's own, nothing."""
        match error:
            case _Refused():
                return error.refusal
            case JournalError():
                return self._out_of_reach(error)
            case Error():
                return refusal_of(error)
            case OSError():  # the host cannot open the journal again
                return self._out_of_reach(JournalError(f"the journal is out of reach: {error}"))
            case _:
                _log.error("a call failed by a fault of the server's own", exc_info=error)
                return Refusal(refusals.INTERNAL_ERROR, "the server failed at this call: its log says how")

    def _out_of_reach(self, error: JournalError) -> Refusal:
        refusal = refusal_of(error)
        data = {**(refusal.data or {}), "reopening": self._served.state == "reopening"}
        return Refusal(refusal.code, refusal.message, data)

    def _outcome(self, name: str, params: object) -> object:
        if name in self._own:
            if params not in ({}, []):
                raise _Refused(refusals.INVALID_PARAMS, f"{name} takes no parameters")
            return self._own[name]()
        method = METHODS.get(name)
        if method is None:
            raise _Refused(refusals.METHOD_NOT_FOUND, f"there is no method {name[:100]!r}: rpc.discover lists all")
        arguments = received_fields(_parameters(method, params))
        if "actor" in method.parameters.__struct_fields__:
            arguments["actor"] = arguments.get("actor") or ACTOR
        if method.name == "resume":
            return self._served.resume(cast("int", arguments["run_id"]))
        if method.name in REPORTS:
            self._check_reports(arguments)
        spread = cast("tuple[object, ...]", arguments.pop(method.spread, ())) if method.spread else ()
        if method.listing:
            return self._listed(method, arguments)
        self._check_limit(arguments.get("limit"))
        found: object = self._served.ask(lambda scheduler: getattr(scheduler, method.name)(*spread, **arguments))
        if not isinstance(found, Page):
            return found
        fitting = len(self._fitting(found.items))
        if fitting == len(found.items):
            return found
        return self._served.ask(lambda scheduler: getattr(scheduler, method.name)(**arguments | {"limit": fitting}))

    def _listed(self, method: Method, arguments: dict[str, object]) -> Listing:
        wanted = arguments.get("limit")
        limit = self._bounds.listed if wanted is None else min(cast("int", wanted), self._bounds.listed)
        # One more than is told, so as to know whether there is more.
        asked = arguments | {"limit": limit + 1 if limit > 0 else limit}
        found = self._served.ask(lambda scheduler: getattr(scheduler, method.name)(**asked))
        told = self._fitting(found[:limit])
        return Listing(told, found[len(told) - 1].id if len(found) > len(told) else None)

    def _fitting(self, items: Sequence[object]) -> list[msgspec.Raw]:
        """As many of the items, encoded, as a reply has room for, and one at least."""
        told: list[msgspec.Raw] = []
        room = self._bounds.reply
        for item in items:
            encoded = msgspec.json.encode(item, enc_hook=plain)
            room -= len(encoded)
            if room < 0 and told:
                break
            told.append(msgspec.Raw(encoded))
        return told

    def _check_reports(self, arguments: dict[str, object]) -> None:
        """Raises SchedulerError for a run that the host is executing: it would be told two things of it."""
        named = cast("tuple[Any, ...]", arguments.get("run_ids", arguments.get("results", ())))
        runs = {arguments.get("run_id"), *(one if isinstance(one, int) else one.run_id for one in named)}
        for run_id in runs.intersection(self._served.at_work):
            words = f"the host is executing run {run_id}, and reports it itself"
            raise SchedulerError(words, run_id=cast("int", run_id), hint="To end it for good, abandon it")

    def _check_limit(self, limit: object) -> None:
        if isinstance(limit, int) and limit > self._bounds.listed:
            raise DefinitionError("limit", limit, "is too much for one reply", f"Ask for {self._bounds.listed:,}.")


def _problem_of(call: object) -> str:
    """Why this is no call, or nothing if it is one."""
    if not isinstance(call, dict):
        return "this is no object"
    known = cast("dict[str, object]", call)
    unknown = known.keys() - {"jsonrpc", "method", "params", "id"}
    call_id = known.get("id")
    problems = {
        f"the member {min(unknown, default='')[:100]!r} is unknown": bool(unknown),
        'jsonrpc is not "2.0"': known.get("jsonrpc") != "2.0",
        "method is no string": not isinstance(known.get("method"), str),
        "params is neither an object nor an array": not isinstance(known.get("params", {}), dict | list),
        "id is neither a string nor a number": (
            isinstance(call_id, bool) or not isinstance(call_id, str | int | float | None)
        ),
    }
    return next((words for words, holds in problems.items() if holds), "")


def _id_of(call: dict[str, object]) -> Json:
    given = call.get("id")
    return given if isinstance(given, str | int | float) and not isinstance(given, bool) else None


def _parameters(method: Method, params: object) -> msgspec.Struct:
    """The parameters, checked and decoded. Raises _Refused."""
    names = method.parameters.__struct_fields__
    given = params
    if isinstance(params, list):
        values = cast("list[object]", params)
        if len(values) > len(names):
            words = f"{method.name} takes {len(names)} parameters: {', '.join(names) or 'none'}"
            raise _Refused(refusals.INVALID_PARAMS, words)
        given = dict(zip(names, values, strict=False))
    try:
        return msgspec.convert(given, method.parameters)
    except (msgspec.ValidationError, OverflowError, RecursionError) as error:
        raise _Refused(*_invalid(method, cast("dict[str, object]", given), str(error))) from None


def _invalid(method: Method, given: dict[str, object], words: str) -> tuple[int, str, dict[str, Json] | None]:
    problem, _, place = words.partition(" - at `$")
    field = place.strip(".`").split(".")[0].split("[")[0]
    remedy = f"{method.name} takes: {', '.join(method.parameters.__struct_fields__) or 'nothing'}."
    if field:
        error = DefinitionError(field, given.get(field), f"is refused: {problem}", remedy)
    else:  # it is about a name: "… missing required field `x`", "… unknown field `x`"
        field = problem.rpartition(" `")[2].rstrip("`") if problem.endswith("`") else "params"
        error = DefinitionError(field, given.get(field), f"is refused: {problem}", remedy)
        if field in given:
            error.message = f"{field} is no parameter of {method.name}"
        elif field != "params":
            error.message = f"{field} is missing"
    refusal = refusal_of(error, refusals.INVALID_PARAMS)
    return refusal.code, refusal.message, refusal.data


def _encoded(call_id: Json, outcome: object) -> bytes:
    name = "error" if isinstance(outcome, Refusal) else "result"
    return msgspec.json.encode({"jsonrpc": "2.0", name: outcome, "id": call_id}, enc_hook=plain)
