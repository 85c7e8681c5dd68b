"""duly: an embeddable, event-sourced scheduler. This package holds its public names and nothing else.

Rules kept here:
- a name is loaded when it is first asked for: `import duly.journal` loads neither the scheduler nor croniter;
- `PUBLIC` is the list of public names, each with the module it lives in. The `TYPE_CHECKING` block says the same to
  type checkers, and tests/test_facade.py holds the two together.
"""

from importlib import import_module
from types import MappingProxyType
from typing import TYPE_CHECKING

if __name__ != "duly":
    raise ImportError(f"this is the package duly, not {__name__}: pip install it (-e . in a checkout) and import duly")

if TYPE_CHECKING:
    from duly.journal.errors import Error as Error

__version__ = "0.1.0"

PUBLIC = MappingProxyType(
    {
        "Error": "duly.journal.errors",
    }
)


def __getattr__(name: str) -> object:
    if name == "__all__":
        return list(PUBLIC)
    module = PUBLIC.get(name)
    if module is None:
        raise AttributeError(f"module 'duly' has no attribute {name!r}")
    value = getattr(import_module(module), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted([*PUBLIC, *(name for name in globals() if name.startswith("__"))])
