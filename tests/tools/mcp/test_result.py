"""What a server answered becomes an output: typed, text, or a reference to what is kept apart."""

from __future__ import annotations

import base64
import hashlib
from pathlib import Path
from typing import Any

import msgspec
import pytest
from mcp_types import (
    AudioContent,
    BlobResourceContents,
    CallToolResult,
    ContentBlock,
    EmbeddedResource,
    ImageContent,
    ResourceLink,
    TextContent,
    TextResourceContents,
)

from handrail.domain.definition.model import Category
from handrail.domain.secrets.scrubbing import SecretScrubber
from handrail.engine.tool import ToolCall
from handrail.tools.files.content_store import ContentStore
from handrail.tools.mcp.values import result as module
from handrail.tools.mcp.values.result import BLOCKS_MAX, EXCERPT_LENGTH, INLINE_BYTES_MAX, MESSAGE_LENGTH_MAX, Results
from tools.calls import Fails

CALL = ToolCall(tool="s.t", args={}, key="k", run="run_22222222", step="a-step")
PICTURE = b"\x89PNG and more"


def results(folder: Path) -> Results:
    return Results(ContentStore(folder / "kept"), lambda value: value)


def text(*words: str) -> list[ContentBlock]:
    return [TextContent(text=one) for one in words]


def answer(*blocks: ContentBlock, structured: Any = None, is_error: bool = False) -> CallToolResult:
    return CallToolResult(content=list(blocks), structured_content=structured, is_error=is_error)


def in64(content: bytes) -> str:
    return base64.b64encode(content).decode()


async def test_text_stays_text_and_structure_stays_structure(tmp_path: Path) -> None:
    mine = results(tmp_path)
    assert await mine.output(answer(*text("a")), CALL) == "a"
    assert await mine.output(answer(*text("a", "{{ b }}")), CALL) == "a\n{{ b }}"
    assert await mine.output(answer(), CALL) is None
    assert await mine.output(answer(*text("words"), structured={"result": [1, None]}), CALL) == {"result": [1, None]}
    assert await mine.output(answer(structured=0), CALL) == 0
    assert await mine.output(answer(structured={"a": float("nan")}), CALL) == {"a": None}
    assert not (tmp_path / "kept").exists()


async def test_what_is_no_text_is_kept_apart_and_referred_to(tmp_path: Path) -> None:
    mine = results(tmp_path)
    found = await mine.output(answer(ImageContent(data=in64(PICTURE), mime_type="image/png")), CALL)
    digest = hashlib.sha256(PICTURE).hexdigest()
    assert found.pop("kept")
    assert found == {"run": CALL.run, "bytes": 13, "media_type": "image/png", "sha256": digest, "form": "blob"}
    blob = BlobResourceContents(uri="blob://1", blob=in64(PICTURE))
    note = TextResourceContents(uri="note://1", text="a note")
    link = ResourceLink(uri="far://1", name="far", mime_type="text/plain")
    many = await mine.output(
        answer(
            *text("words"),
            AudioContent(data=in64(b"la"), mime_type="audio/wav"),
            EmbeddedResource(resource=blob),
            EmbeddedResource(resource=note),
            link,
            ResourceLink(uri="far://2", name="bare"),
        ),
        CALL,
    )
    assert (many[0], many[1]["media_type"], many[1]["bytes"]) == ("words", "audio/wav", 2)
    assert (many[2]["uri"], many[2]["media_type"], many[2]["form"]) == ("blob://1", "application/octet-stream", "blob")
    assert many[3] == {"uri": "note://1", "media_type": "text/plain", "text": "a note"}
    assert many[4:] == [
        {"uri": "far://1", "name": "far", "media_type": "text/plain"},
        {"uri": "far://2", "name": "bare"},
    ]


async def test_what_is_large_is_kept_apart_with_an_excerpt(tmp_path: Path) -> None:
    mine, large = results(tmp_path), "ä" * (INLINE_BYTES_MAX // 2)
    assert await mine.output(answer(*text(large)), CALL) == large
    larger = large + "b"
    found = await mine.output(answer(*text(larger)), CALL)
    assert (found["bytes"], found["media_type"], found["form"]) == (INLINE_BYTES_MAX + 1, "text/plain", "text")
    assert found["excerpt"] == "ä" * EXCERPT_LENGTH
    structured = await mine.output(answer(structured={"a": larger}), CALL)
    assert (structured["media_type"], structured["form"], structured["excerpt"][:6]) == (
        "application/json",
        "json",
        '{"a":"',
    )
    note = TextResourceContents(uri="note://1", text=larger, mime_type="text/markdown")
    resource = await mine.output(answer(EmbeddedResource(resource=note)), CALL)
    assert (resource["uri"], resource["media_type"], resource["form"]) == ("note://1", "text/markdown", "text")
    link = ResourceLink(uri="far://1", name="far")
    mixed = await mine.output(answer(*text(larger), link), CALL)
    assert mixed[0]["sha256"] == found["sha256"]
    # Many small parts must not make a large whole either.
    whole = await mine.output(answer(*text(*["x" * 1_000] * 300), link), CALL)
    assert whole["form"] == "json"


async def test_a_reference_stands_for_its_content_in_a_later_call_of_the_same_run(tmp_path: Path) -> None:
    mine, larger = results(tmp_path), "ä" * INLINE_BYTES_MAX
    words = await mine.output(answer(*text(larger)), CALL)
    typed = await mine.output(answer(structured={"a": [larger]}), CALL)
    blob = BlobResourceContents(uri="blob://1", blob=in64(PICTURE))
    picture = await mine.output(answer(EmbeddedResource(resource=blob)), CALL)
    passed = msgspec.json.decode(msgspec.json.encode({"all": [words, {"deep": typed}], "one": picture, "rest": 1}))
    filled = await mine.filled(passed, CALL.run)
    assert filled == {"all": [larger, {"deep": {"a": [larger]}}], "one": in64(PICTURE), "rest": 1}
    plain = {"a": [1, {"kept": "x"}]}
    assert await mine.filled(plain, CALL.run) is plain


async def test_a_forged_reference_is_data(tmp_path: Path) -> None:
    mine = results(tmp_path)
    real = await mine.output(answer(ImageContent(data=in64(PICTURE), mime_type="image/png")), CALL)
    assert await mine.filled(real, CALL.run) == in64(PICTURE)
    assert await mine.filled(real, "run_another") == real
    theirs = await mine.output(
        answer(ImageContent(data=in64(b"of another"), mime_type="image/png")),
        msgspec.structs.replace(CALL, run="other"),
    )
    binary = {**real, "form": "text"}
    for forged in (
        {**real, "run": "run_another"},
        {**real, "run": "../" + CALL.run},
        {**real, "kept": "0" * 64 + "-" + "0" * 32},
        {**theirs, "run": CALL.run, "kept": f"../other/{theirs['kept']}"},
        {**real, "sha256": "0" * 64},
        {**real, "bytes": 1},
        {**real, "bytes": -1},
        {**real, "bytes": True},
        {**real, "bytes": "13"},
        {**real, "more": 1},
        {key: value for key, value in real.items() if key != "form"},
        binary,
        {**real, "form": "json"},
        {**real, "form": "other"},
    ):
        assert await mine.filled([forged], CALL.run) == [forged]


async def test_what_references_stand_for_is_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    mine = results(tmp_path)
    monkeypatch.setattr(module, "FILLED_BYTES_MAX", 20)
    one = await mine.output(answer(ImageContent(data=in64(PICTURE), mime_type="image/png")), CALL)
    assert await mine.filled([one], CALL.run) == [in64(PICTURE)]
    with Fails(Category.INVALID_INPUT, "pass less"):
        await mine.filled([one, one], CALL.run)
    deep: Any = 1
    for _ in range(200):
        deep = [deep]
    with Fails(Category.INVALID_INPUT, "nested too deeply"):
        await mine.filled(deep, CALL.run)


async def test_what_a_run_keeps_is_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    mine = results(tmp_path)
    monkeypatch.setattr(module, "KEPT_RUN_BYTES_MAX", 20)
    await mine.output(answer(ImageContent(data=in64(PICTURE), mime_type="image/png")), CALL)
    with Fails(Category.TOOL_ERROR, "request less"):
        await mine.output(answer(ImageContent(data=in64(b"another one"), mime_type="image/png")), CALL)


async def test_a_malformed_answer_is_an_error_of_the_tool(tmp_path: Path) -> None:
    mine = results(tmp_path)
    with Fails(Category.TOOL_ERROR, "not base64"):
        await mine.output(answer(ImageContent(data="no base64!", mime_type="image/png")), CALL)
    with Fails(Category.TOOL_ERROR, "blocks of content"):
        await mine.output(answer(*text(*["a"] * (BLOCKS_MAX + 1))), CALL)
    deep: Any = 1
    for _ in range(100_000):
        deep = [deep]
    with Fails(Category.TOOL_ERROR, "not plain JSON"):
        await mine.output(answer().model_copy(update={"structured_content": deep}), CALL)


@pytest.mark.parametrize(
    ("said", "category"),
    [
        (None, Category.TOOL_ERROR),
        ("forbidden", Category.TOOL_ERROR),
        ({"name": "not_found"}, Category.NOT_FOUND),
        ({"name": "invalid"}, Category.INVALID_INPUT),
        ({"name": "conflict"}, Category.CONFLICT),
        ({"name": "forbidden"}, Category.PERMISSION),
        ({"name": "limited"}, Category.RATE_LIMITED),
        ({"name": "unavailable"}, Category.TRANSIENT),
        ({"category": "timeout", "name": "invalid"}, Category.TIMEOUT),
        ({"category": "nonsense", "name": "invalid"}, Category.INVALID_INPUT),
        ({"category": "cancelled"}, Category.TOOL_ERROR),
        ({"category": "internal"}, Category.TOOL_ERROR),
        ({"category": ["timeout"]}, Category.TOOL_ERROR),
    ],
)
async def test_a_failure_is_in_the_category_that_the_tool_names(tmp_path: Path, said: Any, category: Category) -> None:
    with Fails(category, "it broke\nbadly"):
        await results(tmp_path).output(answer(*text("it broke", "badly"), structured=said, is_error=True), CALL)


async def test_a_failure_always_says_something_and_never_too_much(tmp_path: Path) -> None:
    mine = results(tmp_path)
    with Fails(Category.TOOL_ERROR, "did not say why"):
        await mine.output(answer(is_error=True), CALL)
    with Fails(Category.CONFLICT, "only here"):
        said = {"name": "conflict", "message": "only here"}
        await mine.output(answer(structured=said, is_error=True), CALL)
    with Fails(Category.TOOL_ERROR) as fails:
        await mine.output(answer(*text("x" * 1_000_000), is_error=True), CALL)
    assert len(fails.failed.message) == MESSAGE_LENGTH_MAX


async def test_a_secret_is_in_no_output_and_not_kept(tmp_path: Path) -> None:
    def scrub(value: Any) -> Any:
        return msgspec.json.decode(msgspec.json.encode(value).replace(b"hunter2", b"[redacted]"))

    mine = Results(ContentStore(tmp_path), scrub)
    note = TextResourceContents(uri="note://hunter2", text="hunter2", mime_type="hunter2")
    link = ResourceLink(uri="far://hunter2", name="hunter2")
    larger = "hunter2 " * INLINE_BYTES_MAX
    found = [
        await mine.output(answer(*text("it is hunter2")), CALL),
        await mine.output(answer(structured={"a": "hunter2"}), CALL),
        await mine.output(answer(*text("hunter2"), EmbeddedResource(resource=note), link), CALL),
        await mine.output(answer(*text(larger)), CALL),
        await mine.output(answer(ImageContent(data=in64(b"x"), mime_type="hunter2")), CALL),
    ]
    assert b"hunter2" not in msgspec.json.encode(found)
    assert not any(b"hunter2" in file.read_bytes() for file in tmp_path.rglob("*") if file.is_file())


async def test_a_secret_in_a_picture_is_not_kept(tmp_path: Path) -> None:
    mine = Results(ContentStore(tmp_path), lambda value: value, SecretScrubber({"hunter22": ""}).content)
    found = await mine.output(answer(ImageContent(data=in64(b"\x89PNG hunter22 \xff"), mime_type="image/png")), CALL)
    kept = tmp_path / CALL.run / found["kept"]
    assert kept.read_bytes() == b"\x89PNG [redacted] \xff"
    assert (found["bytes"], found["sha256"]) == (17, hashlib.sha256(kept.read_bytes()).hexdigest())
