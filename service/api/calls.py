"""A call from the client's side, without the network: what is sent, when it is sent again, what the answer means.

Rules:
- a call is repeated only if it cannot take effect twice: it is a question, it has a `request` key, or it was certainly
  not made (no connection, too many requests); what a proxy says of a service that it cannot reach is no such certainty;
- what may be repeated is, too, until the host has opened a journal again that failed;
- a keyed method gets a key for each call, if the caller gives none, so that it takes effect once over all repetitions,
  also across a restart of the server;
- what was neither answered nor certainly not made raises ServiceUnreachable with `indeterminate`.
"""

from __future__ import annotations

import inspect
import secrets
from collections.abc import Callable, Generator
from contextlib import suppress
from http import HTTPStatus
from typing import Any, Final, NamedTuple, TypeAlias, cast

import msgspec

from duly.journal.errors import Error, JournalPoisoned
from duly.scheduler.errors import DefinitionError
from duly.service.api.methods import METHODS, Method
from duly.service.api.refusals import CODES, NOT_LET_IN, Refusal, error_of
from duly.service.api.rpc import Listing
from duly.service.api.wire import Sources, obtained, plain, sent

FIRST_PAUSE: Final = 0.05
LONGEST_PAUSE: Final = 2.0


class ServiceError(Error):
    """The service did not do what it was asked, for a reason that is not the scheduler's. `hint` says what to do."""

    def __init__(self, message: str, *, hint: str = "") -> None:
        self.message = message
        self.hint = hint
        super().__init__(f"{message}. {hint}" if hint else message)


class ServiceUnreachable(ServiceError):
    """The service did not answer. `indeterminate` tells that the call may have taken effect all the same."""

    def __init__(self, message: str, *, indeterminate: bool, hint: str = "") -> None:
        self.indeterminate = indeterminate
        super().__init__(message, hint=hint)


class Unauthorized(ServiceError):
    """The service does not accept the token, or takes no commands at all."""


class ServiceRefused(ServiceError):
    """The service refuses the request as such: it is too long, of another version, or there are too many."""


class Send(NamedTuple):
    """Post this body."""

    body: bytes


class Pause(NamedTuple):
    """Wait so many seconds."""

    seconds: float


class Received(NamedTuple):
    """What the server answered."""

    status: int
    body: bytes
    wait: float = 0.0


class Lost(NamedTuple):
    """No answer came; `made` tells that the call may have been made."""

    why: str
    made: bool


Step: TypeAlias = Send | Pause
Answer: TypeAlias = Received | Lost | None
Conversation: TypeAlias = Generator[Step, Answer, Any]


class Patience(NamedTuple):
    """How long a call is repeated, in seconds, by a monotonic clock."""

    seconds: float
    now: Callable[[], float]


class _Reply(msgspec.Struct):
    result: msgspec.Raw = msgspec.Raw(b"")
    error: Refusal | None = None


def conversation(
    method: Method, arguments: dict[str, object], patience: Patience, sources: Sources, actor: str
) -> Conversation:
    """The steps of a call; its result is what the Scheduler's method returns, or the exception it raises."""
    named = {name: sent(name, value) for name, value in arguments.items()}
    if "actor" in method.parameters.__struct_fields__ and not named.get("actor") and actor:
        named["actor"] = actor
    if method.keyed and not named.get("request"):
        named["request"] = secrets.token_hex(16)
    if method.listing:
        return (yield from _pieces(method, named, patience, sources))
    raw = yield from exchange(method.name, named, patience, repeatable=method.question or method.keyed)
    return obtained(msgspec.json.decode(raw, type=method.result), sources)


def _pieces(method: Method, named: dict[str, object], patience: Patience, sources: Sources) -> Conversation:
    """A list, asked for piece by piece."""
    found: list[object] = []
    wanted = named.get("limit")
    while True:
        if wanted is not None:
            named["limit"] = cast("int", wanted) - len(found)
        raw = yield from exchange(method.name, named, patience, repeatable=True)
        piece = msgspec.json.decode(raw, type=Listing)
        found.extend(cast("tuple[object, ...]", obtained(msgspec.convert(piece.items, method.result), sources)))
        if piece.next is None or (wanted is not None and len(found) >= cast("int", wanted)):
            return tuple(found)
        named["after"] = piece.next


def exchange(
    name: str, params: dict[str, object], patience: Patience, *, repeatable: bool
) -> Generator[Step, Answer, msgspec.Raw]:
    """Sends one call until it is answered, as far as it may be repeated; the result, as it came."""
    request = {"jsonrpc": "2.0", "method": name, "params": params, "id": 1}
    try:
        body = msgspec.json.encode(request, enc_hook=plain)
    except (TypeError, ValueError, RecursionError) as error:
        raise DefinitionError("params", "…", f"cannot be sent: {error}", "Give what is JSON.") from None
    until = patience.now() + patience.seconds
    pause = FIRST_PAUSE
    doubt: Answer = None  # the answer after which it may have been made
    while True:
        answer = _meant((yield Send(body)))
        wait = _repetition(answer, repeatable)
        if wait is None:
            return _result(answer)
        if doubt is None and _may_be_made(answer):
            doubt = answer
        wait = max(wait, pause)
        if patience.now() + wait > until:
            return _result(doubt or answer)
        yield Pause(wait)
        pause = min(2 * pause, LONGEST_PAUSE)


def _meant(answer: Answer) -> Answer:
    """The answer, or what a proxy says of it."""
    match answer:
        case Received(status=503, body=body) if _code(body) == NOT_LET_IN:
            return answer
        case Received(status=500):  # the service answers so only where a call was broken off as it closed
            return Lost("the service broke it off (HTTP status 500)", made=True)
        case Received(status=502 | 503 | 504 as status):
            return Lost(f"a proxy answers with HTTP status {status}", made=True)
        case _:
            return answer


def _repetition(answer: Answer, repeatable: bool) -> float | None:
    """How many seconds to wait before the call is made again; None if it is not."""
    match answer:
        case Lost(made=made):
            return 0.0 if repeatable or not made else None
        case Received(status=HTTPStatus.TOO_MANY_REQUESTS | HTTPStatus.SERVICE_UNAVAILABLE, wait=wait):
            return wait
        case Received(status=HTTPStatus.OK, body=body) if repeatable and _is_reopening(body):
            return 0.0
        case _:
            return None


def _may_be_made(answer: Answer) -> bool:
    match answer:
        case Lost(made=made):
            return made
        case Received(status=HTTPStatus.OK, body=body):
            return _code(body) == CODES[JournalPoisoned]
        case _:
            return False


def _code(body: bytes) -> int | None:
    """The code of the error that it tells, or None."""
    refusal = _refusal_in(body)
    return None if refusal is None else refusal.code


def _is_reopening(body: bytes) -> bool:
    """Whether the journal failed, and the host opens it again."""
    refusal = _refusal_in(body)
    if refusal is None:
        return False
    return refusal.code == CODES[JournalPoisoned] or bool((refusal.data or {}).get("reopening"))


def _refusal_in(body: bytes) -> Refusal | None:
    with suppress(ServiceRefused):
        return _decoded(body).error
    return None


def _decoded(body: bytes) -> _Reply:
    try:
        return msgspec.json.decode(body, type=_Reply)
    except (msgspec.DecodeError, UnicodeDecodeError):
        raise ServiceRefused("what answers is no service of duly", hint="Look at the address") from None


def _result(answer: Answer) -> msgspec.Raw:
    match answer:
        case Lost(why=why, made=made):
            hint = "Ask what became of it before it is done again" if made else "It was not done: try again"
            raise ServiceUnreachable(f"the service does not answer: {why}", indeterminate=made, hint=hint)
        case Received(status=HTTPStatus.OK, body=body):
            reply = _decoded(body)
            if reply.error is None:
                return reply.result
            raise error_of(reply.error) or ServiceRefused(f"{reply.error.message} (code {reply.error.code})")
        case Received(status=status, body=body):
            raise _refused(status, body)
        case None:
            raise TypeError("a step was not answered")


def _refused(status: int, body: bytes) -> ServiceError:
    refusal = _refusal_in(body)
    words = refusal.message if refusal is not None else f"the service answers with HTTP status {status}"
    if status in (HTTPStatus.UNAUTHORIZED, HTTPStatus.FORBIDDEN):
        return Unauthorized(words)
    return ServiceRefused(words)


def arguments_of(name: str, given: tuple[object, ...], named: dict[str, object]) -> tuple[Method, dict[str, object]]:
    """The method, and what it is called with by name. Raises TypeError, as the Scheduler would."""
    method = METHODS[name]
    bound = method.signature.bind(None, *given, **named)
    arguments: dict[str, object] = {}
    for parameter, value in list(bound.arguments.items())[1:]:
        if method.signature.parameters[parameter].kind is inspect.Parameter.VAR_KEYWORD:
            arguments.update(value)
        else:
            arguments[parameter] = value
    return method, arguments
