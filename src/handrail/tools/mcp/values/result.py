"""Results of MCP servers, as outputs of steps.

Structured content is used as it is, and the text beside it is dropped as redundant; text stays text. Other content
(images, audio, files), and content that is too large for the journal, is stored separately (content_store.py). The
output then has a reference, which is replaced by the content when a later call of the same run uses it. Results are
only data: nothing in them is executed or followed."""

from __future__ import annotations

import asyncio
import base64
import binascii
import hashlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

import msgspec

from handrail.domain.definition.model import Category
from handrail.engine.tool import ToolCall, ToolFailed
from handrail.tools.files.content_store import ContentStore

if TYPE_CHECKING:
    # Imported late where it is needed: the SDK takes half a second, and only calls of a server need it.
    from mcp_types import CallToolResult

INLINE_BYTES_MAX: Final = 256_000
FILLED_BYTES_MAX: Final = 16_000_000
KEPT_RUN_BYTES_MAX: Final = 2_000_000_000
BLOCKS_MAX: Final = 1_000
EXCERPT_LENGTH: Final = 500
MESSAGE_LENGTH_MAX: Final = 2_000
NAME_LENGTH_MAX: Final = 1_000
DEPTH_MAX: Final = 100

REFERENCE_KEYS: Final = frozenset({"kept", "run", "bytes", "media_type", "sha256", "form"})
REFERENCE_EXTRAS: Final = frozenset({"excerpt", "uri"})
TEXT, JSON, BLOB = "text", "json", "blob"

READERS: Final[Mapping[str, Callable[[bytes], Any]]] = {
    TEXT: bytes.decode,
    JSON: msgspec.json.decode,
    BLOB: lambda content: base64.b64encode(content).decode(),
}
"""How stored content is passed to a later call, by its form."""

CATEGORIES: Final[Mapping[str, Category]] = {
    **{category.value: category for category in Category if category not in (Category.CANCELLED, Category.INTERNAL)},
    "invalid": Category.INVALID_INPUT,
    "forbidden": Category.PERMISSION,
    "limited": Category.RATE_LIMITED,
    "unavailable": Category.TRANSIENT,
}
"""Names that a server may use for a failure: handrail's categories, and the names of its errors."""


class Results:
    """Converts results of calls to outputs."""

    def __init__(
        self,
        kept: ContentStore,
        scrubbed: Callable[[Any], Any],
        scrubbed_content: Callable[[bytes], bytes] = bytes,
    ) -> None:
        """`scrubbed` removes secrets from a value, `scrubbed_content` from bytes."""
        self._kept = kept
        self._scrubbed = scrubbed
        self._scrubbed_content = scrubbed_content

    async def output(self, result: CallToolResult, call: ToolCall) -> Any:
        """The output of a call; ToolFailed if the tool reported an error, or an invalid result."""
        if result.is_error:
            raise _failure(result)
        if result.structured_content is not None:
            return await self._bounded(self._scrubbed(_plain(result.structured_content)), call)
        return await self._unstructured(result.content, call) if result.content else None

    async def _unstructured(self, content: Sequence[Any], call: ToolCall) -> Any:
        if len(content) > BLOCKS_MAX:
            raise ToolFailed(Category.TOOL_ERROR, f"it answered with more than {BLOCKS_MAX} blocks of content")
        if all(block.type == "text" for block in content):
            return await self._bounded(self._scrubbed(_text(content)), call)
        parts = [await self._part(block, call) for block in content]
        return parts[0] if len(parts) == 1 else await self._bounded(parts, call)

    async def _part(self, block: Any, call: ToolCall) -> Any:
        match block.type:
            case "text":
                return await self._bounded(self._scrubbed(block.text), call)
            case "image" | "audio":
                return await self._put(call, _decoded(block.data), form=BLOB, media_type=block.mime_type)
            case "resource":
                return await self._resource(block.resource, call)
            case _:
                return self._scrubbed(_link(block))

    async def _resource(self, resource: Any, call: ToolCall) -> Any:
        uri = self._scrubbed(str(resource.uri)[:NAME_LENGTH_MAX])
        if getattr(resource, "blob", None) is not None:
            media_type = resource.mime_type or "application/octet-stream"
            content = _decoded(resource.blob)
            return {**await self._put(call, content, form=BLOB, media_type=media_type), "uri": uri}
        media_type = self._scrubbed((resource.mime_type or "text/plain")[:NAME_LENGTH_MAX])
        text = await self._bounded(self._scrubbed(resource.text), call, media_type=media_type)
        if isinstance(text, str):
            return {"uri": uri, "media_type": media_type, "text": text}
        return {**text, "uri": uri}

    async def _bounded(self, value: Any, call: ToolCall, *, media_type: str = "text/plain") -> Any:
        """The value, or a reference if it is too large."""
        if isinstance(value, str):
            content, form = value.encode(errors="replace"), TEXT
        else:
            content, form, media_type = msgspec.json.encode(value), JSON, "application/json"
        if len(content) <= INLINE_BYTES_MAX:
            return value
        excerpt = content[: 4 * EXCERPT_LENGTH].decode(errors="ignore")[:EXCERPT_LENGTH]
        return {**await self._put(call, content, form=form, media_type=media_type), "excerpt": excerpt}

    async def _put(self, call: ToolCall, content: bytes, *, form: str, media_type: str) -> dict[str, Any]:
        content = await asyncio.to_thread(self._scrubbed_content, content)
        name = await asyncio.to_thread(self._stored, call, content)
        return {
            "kept": name,
            "run": call.run,
            "bytes": len(content),
            "media_type": self._scrubbed(media_type[:NAME_LENGTH_MAX]),
            "sha256": hashlib.sha256(content).hexdigest(),
            "form": form,
        }

    def _stored(self, call: ToolCall, content: bytes) -> str:
        if self._kept.size(call.run) + len(content) > KEPT_RUN_BYTES_MAX:
            message = f"the tools of this run have returned more than {KEPT_RUN_BYTES_MAX // 10**9} GB; request less"
            raise ToolFailed(Category.TOOL_ERROR, message)
        return self._kept.put(call.run, call.step, content)

    async def filled(self, value: Any, run: str) -> Any:
        """A value with references to stored content of this run replaced by the content; the same object if there are
        none. What only looks like a reference is not changed."""
        references = list(references_in(value))
        if not references:
            return value
        if sum(one["bytes"] for one in references) > FILLED_BYTES_MAX:
            message = f"its arguments refer to more than {FILLED_BYTES_MAX // 10**6} MB; pass less"
            raise ToolFailed(Category.INVALID_INPUT, message)
        return await asyncio.to_thread(self._replaced, value, run)

    def _replaced(self, value: Any, run: str) -> Any:
        if _is_reference(value):
            return self._content(value, run)
        if isinstance(value, Mapping):
            return {key: self._replaced(item, run) for key, item in value.items()}
        if isinstance(value, list | tuple):
            return [self._replaced(item, run) for item in value]
        return value

    def _content(self, reference: Mapping[str, Any], run: str) -> Any:
        """The content of a reference, or the reference itself if this run has not stored that content."""
        if reference["run"] != run:
            return reference
        content = self._kept.find(run, reference["kept"], sha256=reference["sha256"])
        if content is None or len(content) != reference["bytes"]:
            return reference
        try:
            return READERS[reference["form"]](content)
        except (KeyError, ValueError):  # another form than it was stored in: the reference was written by hand
            return reference


def _is_reference(value: Any) -> bool:
    if not isinstance(value, Mapping) or not value.keys() >= REFERENCE_KEYS:
        return False
    texts = all(isinstance(value[key], str) for key in REFERENCE_KEYS - {"bytes"})
    size = value["bytes"]
    return texts and type(size) is int and size >= 0 and value.keys() <= REFERENCE_KEYS | REFERENCE_EXTRAS


def references_in(value: Any, depth: int = DEPTH_MAX) -> Iterator[Mapping[str, Any]]:
    """Everything in a value that looks like a reference to stored content."""
    if _is_reference(value):
        yield value
    elif depth == 0:
        raise ToolFailed(Category.INVALID_INPUT, "its arguments are nested too deeply")
    elif isinstance(value, Mapping):
        for item in value.values():
            yield from references_in(item, depth - 1)
    elif isinstance(value, list | tuple):
        for item in value:
            yield from references_in(item, depth - 1)


def _plain(value: Any) -> Any:
    """A value as the journal would return it."""
    try:
        return msgspec.json.decode(msgspec.json.encode(value))
    except (RecursionError, TypeError, ValueError, OverflowError) as error:
        raise ToolFailed(Category.TOOL_ERROR, f"its answer is not plain JSON: {error}") from None


def _decoded(text: str) -> bytes:
    try:
        return base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        raise ToolFailed(Category.TOOL_ERROR, "it answered with content that is not base64") from None


def _link(block: Any) -> Mapping[str, Any]:
    link = {"uri": str(block.uri)[:NAME_LENGTH_MAX], "name": block.name[:NAME_LENGTH_MAX]}
    return {**link, "media_type": block.mime_type[:NAME_LENGTH_MAX]} if block.mime_type else link


def _failure(result: CallToolResult) -> ToolFailed:
    """The failure that a tool reported, with the category that it named, if any."""
    said = result.structured_content if isinstance(result.structured_content, Mapping) else {}
    words = [said[key] for key in ("category", "name") if isinstance(said.get(key), str)]
    category = next((CATEGORIES[word] for word in words if word in CATEGORIES), Category.TOOL_ERROR)
    message = _text(result.content) or (str(said["message"]) if "message" in said else "")
    return ToolFailed(category, message[:MESSAGE_LENGTH_MAX] or "the tool failed and did not say why")


def _text(content: Sequence[Any]) -> str:
    return "\n".join(block.text for block in content[:BLOCKS_MAX] if block.type == "text")
