"""The token: in whose file it is, how that is made, and how what is given is compared with it."""

from __future__ import annotations

import errno
import hmac
import os
import stat
from pathlib import Path

import pytest

from duly import DefinitionError
from duly.service.api.tokens import Token, ensure_token, read_token
from tests.service.serving import SECRET, write_token


@pytest.mark.skipif(os.name != "posix", reason="modes are of POSIX")
def test_a_token_file_that_others_can_use_is_refused(tmp_path: Path):
    path = write_token(tmp_path / "t")
    for mode in (0o640, 0o604, 0o660, 0o666, 0o644):
        path.chmod(mode)
        with pytest.raises(DefinitionError, match="chmod 600") as caught:
            read_token(path)
        assert SECRET not in str(caught.value)
    path.chmod(0o400)
    assert read_token(path).opens(f"Bearer {SECRET}")


def test_a_token_file_that_is_missing_is_made_for_its_owner_alone(tmp_path: Path):
    token = ensure_token(tmp_path / "t")
    assert token.header == ensure_token(tmp_path / "t").header
    assert stat.S_IMODE((tmp_path / "t").stat().st_mode) == 0o600 or os.name != "posix"
    assert [one.name for one in tmp_path.iterdir()] == ["t"]


def test_a_token_file_is_made_whole_or_not_at_all(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    def fail(_file: int) -> None:
        raise OSError(errno.ENOSPC, "the disk is full")

    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", fail)
        with pytest.raises(OSError, match="full"):
            ensure_token(tmp_path / "t")
    assert list(tmp_path.iterdir()) == []
    write_token(tmp_path / "other")
    (tmp_path / "t").symlink_to(tmp_path / "other")
    assert ensure_token(tmp_path / "t").opens(f"Bearer {SECRET}")  # what is there is not replaced


@pytest.mark.parametrize("content", ["", "short\n"])
def test_a_token_file_without_a_token_is_named(tmp_path: Path, content: str):
    write_token(tmp_path / "t", "x")
    (tmp_path / "t").write_text(content, encoding="ascii")
    with pytest.raises(DefinitionError, match=r"token_file: '.*/t' holds no token. Remove it"):
        ensure_token(tmp_path / "t")


@pytest.mark.skipif(os.name != "posix", reason="owners are of POSIX")
@pytest.mark.parametrize(("owner", "works"), [(None, True), (0, True), (12_345, False)])
def test_a_token_file_is_ones_own_or_roots(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, owner: int | None, works: bool
):
    path = write_token(tmp_path / "t")
    found = os.fstat

    def fstat(file: int) -> os.stat_result:
        status = list(found(file))
        status[4] = status[4] if owner is None else owner
        return os.stat_result(status)

    monkeypatch.setattr(os, "fstat", fstat)
    if works:
        assert read_token(path).opens(f"Bearer {SECRET}")
        return
    with pytest.raises(DefinitionError, match="belongs to the user 12345") as caught:
        read_token(path)
    assert SECRET not in str(caught.value)


def test_a_token_is_compared_in_constant_time(monkeypatch: pytest.MonkeyPatch):
    """Every guess of whatever length is compared as a whole, with what is as long as it."""
    compared: list[tuple[bytes, bytes]] = []
    found = hmac.compare_digest

    def compare(one: bytes, other: bytes) -> bool:
        compared.append((one, other))
        return found(one, other)

    monkeypatch.setattr(hmac, "compare_digest", compare)
    token = Token(SECRET)
    guesses = [f"Bearer {SECRET}", f"Bearer {SECRET[:-1]}", f"Bearer {SECRET}x", "Bearer ", "", f"Basic {SECRET}"]
    assert [token.opens(guess) for guess in guesses] == [True, False, False, False, False, False]
    assert [(len(one), len(other)) for one, other in compared] == [(32, 32)] * len(guesses)
