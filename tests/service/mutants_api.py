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
)
