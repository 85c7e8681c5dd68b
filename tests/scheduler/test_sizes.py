"""Texts that grow when they are encoded: what is accepted stays within 256 KiB of the record, and a failure is never
lost over its words."""

from __future__ import annotations

import json

import pytest

from duly import DefinitionError
from duly.scheduler.definitions import LONGEST_WORDS
from tests.scheduler.embedding import QUARTERLY, Program, begun, refused

MOST = 256 * 1024
CONTROL = "\x01"


def longest_line(program: Program) -> int:
    return max(len(line) for line in program.bytes().split(b"\n"))


def test_a_note_that_would_be_too_long_when_it_is_encoded_is_refused(program: Program):
    scheduler = program.open()
    scheduler.create("a", QUARTERLY, target="x")
    note = CONTROL * 64_000
    assert len(json.dumps(note)) > MOST
    refused(program, lambda: scheduler.pause("a", note=note), DefinitionError)
    refused(program, lambda: scheduler.block("a", note), DefinitionError)
    refused(program, lambda: scheduler.pause("a", actor=note), DefinitionError)
    refused(program, lambda: scheduler.run_now("a", request=note), DefinitionError)


def test_the_longest_note_there_may_be_fits_whatever_its_characters_are(program: Program):
    scheduler = program.open()
    scheduler.create("a", QUARTERLY, target="x")
    scheduler.pause("a", note=CONTROL * LONGEST_WORDS)
    assert LONGEST_WORDS < longest_line(program) <= MOST
    assert program.consistent(scheduler)


@pytest.mark.parametrize("text", [CONTROL * 100_000, "é" * 200_000, "\U0001f600" * 100_000, "\ud800" * 100_000])
def test_an_exception_at_length_fails_its_run_and_is_cut_to_what_a_record_may_hold(program: Program, text: str):
    scheduler = program.open()
    run = begun(scheduler)
    failed = scheduler.fail(run.id, error=ValueError(text))
    assert (failed.state, failed.error and failed.error.type) == ("failed", "ValueError")
    assert longest_line(program) <= MOST
    assert program.consistent(scheduler)


def test_a_text_that_is_given_as_an_error_and_is_too_long_when_it_is_encoded_is_refused(program: Program):
    scheduler = program.open()
    run = begun(scheduler)
    error = CONTROL * 60_000
    assert len(error) < MOST < len(json.dumps(error))
    refused(program, lambda: scheduler.fail(run.id, error=error), DefinitionError)
    assert scheduler.fail(run.id, error=error[:1_000]).state == "failed"
