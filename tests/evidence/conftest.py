"""What the documents' examples run in is the same here as in tests/test_docs.py."""

from tests.test_docs import namespace

__all__ = ["namespace"]
