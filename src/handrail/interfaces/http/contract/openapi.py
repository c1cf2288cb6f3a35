"""The OpenAPI 3.1 document, made from the table of routes. Pure; `python -m` prints it.

It is shipped beside this package and served as it is; a test compares it with the table."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator, Mapping, Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any, Final

import msgspec

from handrail.interfaces.http.contract.problem import PROBLEM, ProblemDetails
from handrail.interfaces.http.contract.route import API, MediaType, Method, Nothing, Route
from handrail.interfaces.http.contract.routes import ROUTES
from handrail.interfaces.http.contract.whole_arrays import requiring_arrays

FILE: Final = Path(__file__).parent.parent / "openapi.json"
IDEMPOTENCY: Final = "Idempotency-Key"
PAGE_KEY: Final = "X-Handrail-Key"
AT: Final = "Handrail-At"
PROJECT: Final = "Handrail-Project"
DESCRIPTION: Final = f"""Everything that the command line and MCP can do, on the same engine and the same policy.

Reads answer with `ETag`, and with `{AT}`: the place in the store that they are at least from, which `/events?from=`
continues. Writes take `{IDEMPOTENCY}`: the same key with the same request is answered as before. Errors are problem
details with handrail's code, name and hint. A page's URL with `.json` behind it is the answer that the page shows.
Every array of an answer is there, also an empty one; other fields are left out when they are empty.

One server has several projects open: a run is worked on by its own, and what is about no run takes `project`. Answers
name the project that answered in `{PROJECT}`. One that is not open here is refused: `handrail open` there opens it.

A browser comes in with the cookie of a one-time link; a write then also sends `{PAGE_KEY}`, which the link gave to the
page. Scripts send `Authorization: Bearer` with the key in HANDRAIL_HOME/console-key."""

_parameter = re.compile(r"{(\w+)(?::(\w+))?}")


def openapi() -> Mapping[str, Any]:
    """The document."""
    types = [ProblemDetails, *_types(ROUTES)]
    schemas, components = msgspec.json.schema_components(types, ref_template="#/components/schemas/{name}")
    for component in components.values():
        if "description" in component:
            # The docstring as it is written: Python 3.13 takes the indentation out by itself, older ones do not.
            component["description"] = inspect.cleandoc(component["description"])
    components = requiring_arrays(components, _answers(schemas, types, components))
    by_type = {_key(one): schema for one, schema in zip(types, schemas, strict=True)}
    paths: dict[str, dict[str, Any]] = {}
    for route in ROUTES:
        place = _parameter.sub(r"{\1}", API + route.path)
        paths.setdefault(place, {})[route.method.value.lower()] = _operation(route, by_type, components)
    return {
        "openapi": "3.1.0",
        "info": {"title": "handrail", "version": version("handrail"), "description": DESCRIPTION},
        "servers": [{"url": "/"}],
        "paths": paths,
        "components": {"schemas": components, "securitySchemes": _SECURITY},
        "security": [{"session": []}, {"key": []}],
    }


def _answers(schemas: Sequence[Any], types: Sequence[Any], components: Mapping[str, Any]) -> frozenset[str]:
    """The names of the components that answers are made of, however deep; errors are no answers."""
    given = {_key(one) for route in ROUTES for one in (route.gives, route.dry) if one is not None}
    left = [name for one, schema in zip(types, schemas, strict=True) if _key(one) in given for name in _named(schema)]
    found: set[str] = set()
    while left:
        name = left.pop()
        if name not in found:
            found.add(name)
            left += _named(components[name])
    return frozenset(found)


def _named(schema: Any) -> Iterator[str]:
    """The components that a schema refers to."""
    if isinstance(schema, Mapping):
        if isinstance(ref := schema.get("$ref"), str):
            yield ref.rpartition("/")[2]
        for one in schema.values():
            yield from _named(one)
    elif isinstance(schema, Sequence) and not isinstance(schema, str):
        for one in schema:
            yield from _named(one)


def encoded() -> bytes:
    """The document as it is shipped: the same bytes for the same table."""
    text = msgspec.json.encode(openapi(), order="sorted")
    return msgspec.json.format(text, indent=1) + b"\n"


_SECURITY: Final = {
    "session": {"type": "apiKey", "in": "cookie", "name": "handrail"},
    "key": {"type": "http", "scheme": "bearer"},
}


def _types(routes: Sequence[Route]) -> Iterator[Any]:
    seen: set[str] = set()
    for route in routes:
        for one in (route.query, route.body, route.gives, route.dry):
            if one is not None and _key(one) not in seen:
                seen.add(_key(one))
                yield one


def _key(one: Any) -> str:
    return f"{one.__module__}.{one.__qualname__}" if isinstance(one, type) else str(one)


def _operation(route: Route, schemas: Mapping[str, Any], components: Mapping[str, Any]) -> dict[str, Any]:
    operation: dict[str, Any] = {
        "operationId": route.name,
        "summary": route.summary,
        "tags": [route.tag],
        "parameters": [*_path_parameters(route), *_query_parameters(route, components)],
        "responses": _responses(route, schemas),
    }
    if route.method is Method.POST:
        operation["parameters"] += _WRITE_HEADERS
        operation["requestBody"] = _body(route, schemas)
    if route.form is MediaType.EVENTS:
        operation["parameters"].append(_header("Last-Event-ID", "The place of the last event that was received."))
    if route.acts:
        operation["x-handrail-acts"] = [act.name.lower() for act in route.acts]
    if route.page:
        operation["x-handrail-page"] = _parameter.sub(r"{\1}", route.page)
    return operation


def _path_parameters(route: Route) -> Iterator[dict[str, Any]]:
    for name, kind in _parameter.findall(route.path):
        schema = {"type": "integer", "minimum": 1} if kind == "int" else {"type": "string"}
        yield {"name": name, "in": "path", "required": True, "schema": schema}


def _query_parameters(route: Route, components: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    if route.query is Nothing:
        return
    for name, schema in components[route.query.__name__]["properties"].items():
        yield {"name": name, "in": "query", "required": False, "schema": schema}


def _header(name: str, description: str) -> dict[str, Any]:
    return {
        "name": name,
        "in": "header",
        "required": False,
        "description": description,
        "schema": {"type": "string", "maxLength": 200},
    }


_WRITE_HEADERS: Final = (
    _header(IDEMPOTENCY, "The same key with the same request is answered as before: it cannot happen twice."),
    _header(PAGE_KEY, "The key that the link gave to the page; with a cookie, a POST needs it."),
)


def _body(route: Route, schemas: Mapping[str, Any]) -> dict[str, Any]:
    if route.takes_bytes:
        content: dict[str, Any] = {MediaType.BUNDLE.value: {}}
    elif route.body is None:
        return {
            "required": False,
            "content": {MediaType.JSON.value: {"schema": {"type": "object", "maxProperties": 0}}},
        }
    else:
        content = {MediaType.JSON.value: {"schema": schemas[_key(route.body)]}}
    return {"required": True, "content": content}


def _responses(route: Route, schemas: Mapping[str, Any]) -> dict[str, Any]:
    content = {} if route.gives is bytes else {"schema": schemas[_key(route.gives)]}
    responses: dict[str, Any] = {
        str(route.status): {
            "description": "done" if route.acts else "the answer",
            "content": {route.form.value: content},
        }
    }
    if route.dry is not None:
        either = {"anyOf": [schemas[_key(route.gives)], schemas[_key(route.dry)]]}
        responses["200"] = {
            "description": "done; or, with dry_run=1, what would happen",
            "content": {route.form.value: {"schema": either}},
        }
    elif route.status != 200:
        responses["200"] = {**responses[str(route.status)], "description": "done before"}
    if route.method is Method.GET and route.form is MediaType.JSON:
        responses["304"] = {"description": "unchanged since the answer with this ETag"}
    responses["default"] = {
        "description": "what went wrong, and what to do next",
        "content": {PROBLEM: {"schema": schemas[_key(ProblemDetails)]}},
    }
    return responses


if __name__ == "__main__":
    FILE.write_bytes(encoded())
