"""Mutants of the service: its door, what a request may take, and where it listens; each with tests that notice it."""

from __future__ import annotations

from tests.mutation import Mutant

HERE = "tests/service"

MUTANTS: tuple[Mutant, ...] = (
    Mutant(
        "a listener removes what took its place",
        "duly.service.api.addresses",
        (("if self._file is not None and _identity(self.address) == self._file:", "if self._file is not None:"),),
        (f"{HERE}/test_api_addresses.py::test_a_listener_that_ends_leaves_the_socket_of_the_next_one",),
    ),
    Mutant(
        "a token is compared byte by byte",
        "duly.service.api.tokens",
        (("hmac.compare_digest(digest, self._digest)", "digest == self._digest"),),
        (f"{HERE}/test_api_tokens.py::test_a_token_is_compared_in_constant_time",),
    ),
    Mutant(
        "the token is not asked for",
        "duly.service.api.app",
        (("if not self._token.opens(given):", "if False:"),),
        (f"{HERE}/test_api_requests.py::test_without_the_token_nothing_takes_effect",),
    ),
    Mutant(
        "a body is read before the token is checked",
        "duly.service.api.app",
        (
            (
                "            self._admit(request)\n",
                "            body = await self._arrived(request)\n            self._admit(request)\n",
            ),
            ("self._reply(await self._arrived(request))", "self._reply(body)"),
        ),
        (f"{HERE}/test_api_requests.py::test_who_has_no_token_is_answered_before_his_request_has_arrived",),
    ),
    Mutant(
        "a body that says how long it is has no bound",
        "duly.service.api.app",
        (
            ("int(length) > self._bounds.body", "False"),
            ("if len(body) > self._bounds.body:", "if len(body) > self._bounds.body and not length:"),
        ),
        (f"{HERE}/test_api_requests.py::test_a_body_has_a_bound_told_or_not",),
    ),
    Mutant(
        "a body that does not say how long it is has no bound",
        "duly.service.api.app",
        (("if len(body) > self._bounds.body:", "if False:"),),
        (f"{HERE}/test_api_requests.py::test_a_body_has_a_bound_told_or_not",),
    ),
    Mutant(
        "a request has no depth",
        "duly.service.api.rpc",
        (("deeper = is_deeper(request, self._bounds.depth)", "deeper = False"),),
        (f"{HERE}/test_api_requests.py::test_a_request_has_a_depth",),
    ),
    Mutant(
        "a batch has no length",
        "duly.service.api.rpc",
        (("if not 0 < len(calls) <= self._bounds.batch:", "if not calls:"),),
        (f"{HERE}/test_api_requests.py::test_a_batch_has_a_length_and_its_reply_a_size",),
    ),
    Mutant(
        "a list has as many bytes as its items",
        "duly.service.api.rpc",
        (("if room < 0 and told:", "if False:"),),
        (f"{HERE}/test_api_requests.py::test_a_list_of_long_items_is_cut_and_goes_on",),
    ),
    Mutant(
        "a page of occurrences has as many bytes as its rows",
        "duly.service.api.rpc",
        (("if fitting == len(found.items):", "if True:"),),
        (f"{HERE}/test_api_requests.py::test_a_page_of_long_items_is_cut_and_goes_on",),
    ),
    Mutant(
        "others may read the token",
        "duly.service.api.tokens",
        (("status.st_mode & (stat.S_IRWXG | stat.S_IRWXO)", "False"),),
        (f"{HERE}/test_api_tokens.py::test_a_token_file_that_others_can_use_is_refused",),
    ),
    Mutant(
        "a token of anybody's is taken",
        "duly.service.api.tokens",
        (("status.st_uid not in (0, os.geteuid())", "False"),),
        (f"{HERE}/test_api_tokens.py::test_a_token_file_is_ones_own_or_roots",),
    ),
    Mutant(
        "a repeated call has no key",
        "duly.service.api.calls",
        (('if method.keyed and not named.get("request"):', "if False:"),),
        (f"{HERE}/test_api_retries.py::test_every_repetition_has_the_same_key",),
    ),
    Mutant(
        "a call without a key is repeated after it may have been made",
        "duly.service.api.calls",
        (("return 0.0 if repeatable or not made else None", "return 0.0"),),
        (f"{HERE}/test_api_retries.py::test_what_may_have_been_made_is_not_repeated",),
    ),
    Mutant(
        "what a proxy says is taken for the service's word",
        "duly.service.api.calls",
        (('return Lost(f"a proxy answers with HTTP status {status}", made=True)', "return answer"),),
        (f"{HERE}/test_api_retries.py::test_what_may_have_been_made_is_not_repeated",),
    ),
    Mutant(
        "who gives up has forgotten that it may have been made",
        "duly.service.api.calls",
        (("return _result(doubt or answer)", "return _result(answer)"),),
        (f"{HERE}/test_api_retries.py::test_who_gives_up_says_whether_it_may_have_been_made",),
    ),
    Mutant(
        "a client contradicts the host",
        "duly.service.api.rpc",
        (("if method.name in REPORTS:", "if False:"),),
        (f"{HERE}/test_api_host.py::test_what_the_host_executes_it_reports_itself",),
    ),
    Mutant(
        "those who wait for the host take every thread",
        "duly.service.api.server",
        (("threading.BoundedSemaphore(max(bounds.threads // 2, 1))", "threading.BoundedSemaphore(1_000)"),),
        (f"{HERE}/test_api_host.py::test_who_waits_for_the_host_leaves_threads_to_the_others",),
    ),
    Mutant(
        "a head has no deadline",
        "duly.service.api.connections",
        (("self.loop.call_later(self.bounds.arrival, self._late)", "self.loop.call_later(3_600, self._late)"),),
        (f"{HERE}/test_api_connections.py::test_a_connection_without_a_whole_request_is_ended",),
    ),
    Mutant(
        "each byte of a head wins time",
        "duly.service.api.connections",
        (("        if self._arrival is None:\n", "        self._arrived()\n        if True:\n"),),
        (
            f"{HERE}/test_api_connections.py::test_a_head_that_comes_byte_by_byte_has_no_more_time_than_one_that_comes_at_once",
        ),
    ),
    Mutant(
        "a reply waits for ever to be taken",
        "duly.service.api.connections",
        (("        if self._taking is None:\n            self._watch()\n", ""),),
        (f"{HERE}/test_api_connections.py::test_a_reply_that_is_not_taken_is_given_up",),
    ),
    Mutant(
        "connections have no number",
        "duly.service.api.connections",
        (("if len(self.connections) > self.bounds.connections:", "if False:"),),
        (f"{HERE}/test_api_connections.py::test_connections_that_ask_for_nothing_keep_out_nobody",),
    ),
    Mutant(
        "a newcomer is turned away for those who ask for nothing",
        "duly.service.api.connections",
        (("self._leaver().leave()", "self.leave()"),),
        (f"{HERE}/test_api_connections.py::test_connections_that_ask_for_nothing_keep_out_nobody",),
    ),
    Mutant(
        "the administration takes the place of those who watch",
        "duly.service.api.app",
        (("if self._pending >= self._bounds.pending:", "if False:"),),
        (f"{HERE}/test_api_connections.py::test_whoever_watches_is_answered_while_the_administration_is_at_its_limit",),
    ),
    Mutant(
        "a server that did not come up is one",
        "duly.service.api.server",
        (("if not self._uvicorn.started or self._uvicorn.fault is not None:", "if False:"),),
        (f"{HERE}/test_api_connections.py::test_a_server_that_does_not_come_up_is_no_server",),
    ),
    Mutant(
        "a service is ready while its journal failed",
        "duly.service.watching.watched",
        (
            ("if failure is not None:", "if False:"),
            ('if state != "admitting":', 'if state not in ("admitting", "reopening"):'),
        ),
        (f"{HERE}/test_watching.py::test_health_is_told_by_status",),
    ),
    Mutant(
        "what was archived meanwhile is lost to those who follow",
        "duly.journal.following",
        (("except (UnconfirmedGone, JournalArchived):", "except UnconfirmedGone:"),),
        (f"{HERE}/test_watching.py::test_what_was_archived_meanwhile_is_followed_all_the_same",),
    ),
    Mutant(
        "a piece of a list is described as the list",
        "duly.service.api.openrpc",
        (("if not method.listing:", "if True:"),),
        (f"{HERE}/test_api_description.py::test_every_reply_is_as_described",),
    ),
    Mutant(
        "a parameter is described as another one",
        "duly.service.api.openrpc",
        (('"schema": next(schemas)}', '"schema": (next(schemas), {"type": "boolean"})[field.name == "lateness"]}'),),
        (f"{HERE}/test_api_description.py::test_every_parameter_that_is_sent_is_as_described",),
    ),
)
