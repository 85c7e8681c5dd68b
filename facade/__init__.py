"""duly: an embeddable, event-sourced scheduler. This package holds its public names and nothing else.

Rules kept here:
- a name is loaded when it is first asked for, so that `import duly.journal` loads neither the scheduler nor croniter;
- `PUBLIC` is the one list of public names, with the module each lives in. The `TYPE_CHECKING` block repeats it for type
  checkers and `__all__` for `import *`; tests/test_facade.py holds the three together.
"""

from importlib import import_module
from types import MappingProxyType
from typing import TYPE_CHECKING

if __name__ != "duly":
    raise ImportError(f"this is the package duly, imported as {__name__}: install it (pip install -e .) and import duly")

if TYPE_CHECKING:
    from duly.journal.errors import Error as Error

__version__ = "0.1.0"

PUBLIC = MappingProxyType(
    {
        "Error": "duly.journal.errors",
    }
)


def __getattr__(name: str) -> object:
    module = PUBLIC.get(name)
    if module is None:
        raise AttributeError(f"module 'duly' has no attribute {name!r}")
    value = getattr(import_module(module), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *PUBLIC})
