"""The models for hints: the default list, with additions and changes from the configuration."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from functools import cache
from importlib.resources import files
from typing import Any, Final

import msgspec

from handrail.domain.definition.model_hint import Model
from handrail.domain.errors import Invalid

FILE: Final = "models.toml"


def models_of(configured: Mapping[str, Any]) -> tuple[Model, ...]:
    """All known models by name; Invalid if the configuration has something else."""
    known = {**_default()}
    for name, table in configured.items():
        if not isinstance(table, Mapping):
            raise Invalid(f"config.toml: [models.{name}] is not a table", hint='write: tier = "strong"')
        known[name] = {**known.get(name, {}), **table}
    try:
        return tuple(msgspec.convert({"name": name, **table}, Model) for name, table in sorted(known.items()))
    except msgspec.ValidationError as error:
        raise Invalid(
            f"config.toml: [models]: {error}", hint="a model has tier, can, cost and speed; see models.toml"
        ) from error


@cache
def _default() -> Mapping[str, Mapping[str, Any]]:
    text = files("handrail.library").joinpath(FILE).read_text("utf-8")
    models: Mapping[str, Mapping[str, Any]] = tomllib.loads(text)["models"]
    return models
