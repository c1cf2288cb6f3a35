"""Templates: text with `{{ expression | filter }}`, `{% if %}` and `{% for %}`, in the language of expressions.

Pure. The text is split in template_text.py, the blocks are built in template_blocks.py, the filters are in
template_filters.py. As in Jinja, a line with only a block tag keeps its line break (a dash, `{%-` or `-%}`, removes the
white space on that side); unlike Jinja, the last line break stays. Values are data: braces in them are not evaluated.
A template that is exactly one `{{ }}` gives the value itself, with its type."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final, cast

from msgspec import Struct

from handrail.domain.checks.finding import Path
from handrail.domain.errors import Invalid
from handrail.domain.json import Json
from handrail.domain.language.expression import Scope
from handrail.domain.language.expression_path import path_text
from handrail.domain.language.expression_value import ExpressionRefused
from handrail.domain.language.shape import STRING, Shape
from handrail.domain.language.template_blocks import Builder, Draw, Page
from handrail.domain.language.template_text import Part, cut, has_tags

VALUE_DEPTH_MAX: Final = 40


class TemplateError(Invalid):
    """A template that can't be parsed or does not match its values; line and column count from 1 in its text."""

    def __init__(self, message: str, *, line: int, column: int, path: Path = ()) -> None:
        super().__init__(message, hint="fix the template at the named line and column")
        self.line = line
        self.column = column
        self.path = path
        """The keys to the template inside a nested value."""

    @property
    def where(self) -> str:
        """The path inside a nested value, to be appended to that value's own: `.headers.X`; empty for the root."""
        return path_text(self.path)


class Template(Struct, frozen=True):
    """A template that was checked against its scope."""

    source: str
    paths: tuple[Path, ...]
    """Every path it reads, once each; not those of its own loops."""
    is_literal: bool
    shape: Shape
    draw: Draw

    def render(self, values: Mapping[str, Json]) -> Json:
        """The text, or the value of the only `{{ }}`; TemplateError if the values do not allow it."""
        return _drawn(self, Page(values))


class ValueTemplate(Struct, frozen=True):
    """A nested value whose strings are templates."""

    paths: tuple[Path, ...]
    parts: Any
    """The value, with a Template in place of each string that has tags."""

    def render(self, values: Mapping[str, Json]) -> Json:
        """The value with all its templates rendered; one size limit applies to all of them together."""
        return _filled(self.parts, Page(values), ())


def compile_template(source: str, scope: Scope) -> Template:
    """The template, checked against the names and shapes it can see."""
    try:
        return _template(source, scope)
    except ExpressionRefused as refused:
        raise _error(refused, source) from None


def compile_value(value: Json, scope: Scope) -> ValueTemplate:
    """The value with every string in it compiled; keys stay as they are. The first error is raised."""
    compiler = _ValueCompiler(scope)
    parts = compiler.part(value, ())
    if compiler.errors:
        raise compiler.errors[0]
    return ValueTemplate(tuple(compiler.paths), parts)


def has_templates(value: Any) -> bool:
    """Whether a string anywhere in the value could be a template."""
    match value:
        case str():
            return "{" in value
        case Mapping():
            return any(map(has_templates, value.values()))
        case list() | tuple():
            return any(map(has_templates, value))
        case _:
            return False


def template_errors(value: Json, scope: Scope) -> list[TemplateError]:
    """Everything that compile_value would find wrong, at most one error for each string."""
    compiler = _ValueCompiler(scope)
    compiler.part(value, ())
    return compiler.errors


class _ValueCompiler:
    """Compiles the strings of one nested value, and collects the errors and the paths read."""

    def __init__(self, scope: Scope) -> None:
        self.scope = scope
        self.errors: list[TemplateError] = []
        self.paths: dict[Path, None] = {}

    def part(self, value: Json, path: Path) -> Any:
        if len(path) > VALUE_DEPTH_MAX:
            self.errors.append(TemplateError("the value is nested too deeply", line=1, column=1, path=path))
            return None
        if isinstance(value, str):
            return self.string(value, path)
        if isinstance(value, Mapping):
            return {key: self.part(item, (*path, key)) for key, item in value.items()}
        if isinstance(value, Sequence):
            return [self.part(item, (*path, index)) for index, item in enumerate(value)]
        return value

    def string(self, source: str, path: Path) -> Template | str:
        try:
            template = _template(source, self.scope)
        except ExpressionRefused as refused:
            self.errors.append(_error(refused, source, path))
            return source
        self.paths.update(dict.fromkeys(template.paths))
        return source if template.is_literal else template


def _template(source: str, scope: Scope) -> Template:
    if not has_tags(source):
        return Template(source=source, paths=(), is_literal=True, shape=STRING, draw=lambda _: source)
    tags = cut(source)
    builder = Builder(tags, scope)
    if len(tags) == 1 and tags[0].part is Part.OUTPUT and source[:2] == "{{" and source[-2:] == "}}":
        shape, draw = builder.value(tags[0])
    else:
        shape, draw = STRING, builder.text()
    return Template(source=source, paths=tuple(builder.paths), is_literal=False, shape=shape, draw=draw)


def _filled(part: Any, page: Page, path: Path) -> Json:
    """A part of a value with its templates rendered."""
    if isinstance(part, Template):
        return _drawn(part, page, path)
    if isinstance(part, dict):
        return {key: _filled(item, page, (*path, key)) for key, item in part.items()}
    if isinstance(part, list):
        return [_filled(item, page, (*path, index)) for index, item in enumerate(part)]
    return cast("Json", part)


def _drawn(template: Template, page: Page, path: Path = ()) -> Json:
    try:
        return template.draw(page)
    except ExpressionRefused as refused:
        raise _error(refused, template.source, path) from None


def _error(refused: ExpressionRefused, source: str, path: Path = ()) -> TemplateError:
    before = source[: max(0, refused.column - 1)]
    line, column = before.count("\n") + 1, len(before) - (before.rfind("\n") + 1) + 1
    return TemplateError(refused.reason, line=line, column=column, path=path)
