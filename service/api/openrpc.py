"""The OpenRPC description of the service, made from the table of methods.

Rules: nothing is written here that the signatures and docstrings say; every type is a JSON Schema of msgspec's, in the
form in which it travels.
"""

from __future__ import annotations

from typing import Any, Final

import msgspec

from duly import __version__
from duly.service.api.methods import METHODS, Method
from duly.service.api.refusals import CODES
from duly.service.api.rpc import Listing

OPENRPC: Final = "1.3.2"
_REFERENCES: Final = "#/components/schemas/{name}"


def description(own: dict[str, tuple[str, Any]]) -> dict[str, Any]:
    """The document. `own` are the service's own methods: by name, what they do and the type that they return."""
    methods = list(METHODS.values())
    types = [_result_type(one) for one in methods] + [form for _, form in own.values()]
    fields = [field for one in methods for field in msgspec.structs.fields(one.parameters)]
    shown, components = msgspec.json.schema_components(
        [*types, *(_without_unset(field.type) for field in fields)], ref_template=_REFERENCES
    )
    results, schemas = list(shown[: len(types)]), iter(shown[len(types) :])
    described = [_method(one, result, schemas) for one, result in zip(methods, results, strict=False)]
    for (name, (words, _)), result in zip(own.items(), results[len(methods) :], strict=True):
        described.append(
            {"name": name, "description": words, "params": [], "result": {"name": "result", "schema": result}}
        )
    errors = {
        known.__name__: {"code": code, "message": " ".join((known.__doc__ or "").split())}
        for known, code in CODES.items()
    }
    return {
        "openrpc": OPENRPC,
        "info": {"title": "duly", "version": __version__},
        "methods": described,
        "components": {"schemas": components, "errors": errors},
    }


def _method(method: Method, result: Any, schemas: Any) -> dict[str, Any]:
    params = [
        {"name": field.name, "required": field.required, "schema": next(schemas)}
        for field in msgspec.structs.fields(method.parameters)
    ]
    errors = [{"$ref": f"#/components/errors/{one}"} for one in _errors_in(method.description)]
    return {
        "name": method.name,
        "description": method.description,
        "paramStructure": "either",
        "params": params,
        "result": {"name": "result", "schema": result},
        "errors": errors,
    }


def _errors_in(words: str) -> list[str]:
    return [known.__name__ for known in CODES if known.__name__ in words.replace(",", " ").replace(".", " ").split()]


def _result_type(method: Method) -> Any:
    if not method.listing:
        return method.result
    items = msgspec.structs.fields(Listing)
    return msgspec.defstruct(
        f"{method.name.capitalize()}Listing",
        [(one.name, method.result if one.name == "items" else one.type) for one in items],
    )


def _without_unset(form: Any) -> Any:
    arguments = getattr(form, "__args__", ())
    if msgspec.UnsetType not in arguments:
        return form
    kept = [one for one in arguments if one is not msgspec.UnsetType]
    joined = kept[0]
    for one in kept[1:]:
        joined |= one
    return joined
