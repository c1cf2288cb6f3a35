"""A tool server that behaves: it answers in every form there is, makes and removes files in the folder it is given.

Started by tests as `python good_server.py FOLDER`. It knows nothing of handrail."""

from __future__ import annotations

import base64
import hashlib
import os
import sys
from pathlib import Path
from typing import Any

import anyio
import mcp_types as types
from mcp.server.context import ServerRequestContext
from mcp.server.lowlevel.server import Server
from mcp.server.stdio import stdio_server
from mcp_types.version import MODERN_PROTOCOL_VERSIONS

FOLDER = Path(sys.argv[1])
PICTURE = b"\x89PNG\r\n\x1a\n and the rest of a picture"
NAMED = {"type": "object", "properties": {"name": {"type": "string", "maxLength": 50}}, "required": ["name"]}
FORM: types.ElicitRequestedSchema = {
    "type": "object",
    "properties": {"color": {"type": "string"}},
    "required": ["color"],
}
READ_ONLY = types.ToolAnnotations(read_only_hint=True)

Context = ServerRequestContext[Any]
Answer = types.CallToolResult | types.InputRequiredResult


def text(*words: str) -> types.CallToolResult:
    return types.CallToolResult(content=[types.TextContent(text=one) for one in words])


def picture() -> types.ImageContent:
    return types.ImageContent(data=base64.b64encode(PICTURE).decode(), mime_type="image/png")


async def say(_: Context, args: dict[str, Any]) -> Answer:
    return text(*args["words"])


async def add(_: Context, args: dict[str, Any]) -> Answer:
    total = {"sum": args["a"] + args["b"], "of": [args["a"], args["b"]]}
    return types.CallToolResult(content=[types.TextContent(text=str(total))], structured_content=total)


async def draw(_: Context, args: dict[str, Any]) -> Answer:
    blocks: list[types.ContentBlock] = [picture()]
    return types.CallToolResult(content=[types.TextContent(text=args["title"]), *blocks] if args else blocks)


async def resources(_: Context, args: dict[str, Any]) -> Answer:
    note = types.TextResourceContents(uri="note://1", text="a note", mime_type="text/markdown")
    blob = types.BlobResourceContents(uri="blob://1", blob=base64.b64encode(PICTURE).decode())
    link = types.ResourceLink(uri="file:///far/away", name="far away", mime_type="text/plain")
    blocks: list[types.ContentBlock] = [
        types.EmbeddedResource(resource=note),
        types.EmbeddedResource(resource=blob),
        link,
    ]
    return types.CallToolResult(content=blocks)


async def fill(_: Context, args: dict[str, Any]) -> Answer:
    letters = "ä" * args["length"]
    if not args.get("structured"):
        return text(letters)
    return types.CallToolResult(content=[], structured_content={"letters": letters, "name": "filled"})


async def measure(_: Context, args: dict[str, Any]) -> Answer:
    found = args["value"]
    plain = found if isinstance(found, str) else str(sorted(found.items()))
    told = {"length": len(plain), "sha256": hashlib.sha256(plain.encode()).hexdigest(), "is_text": found is plain}
    return types.CallToolResult(content=[], structured_content=told)


async def fail(_: Context, args: dict[str, Any]) -> Answer:
    words: list[types.ContentBlock] = [types.TextContent(text=args["words"])]
    return types.CallToolResult(content=words, structured_content=args.get("says"), is_error=True)


async def climb(context: Context, args: dict[str, Any]) -> Answer:
    for step in range(args["steps"]):
        await context.session.report_progress(step + 1, args["steps"], f"{args.get('word', 'step')} {step + 1}")
    return text("at the top")


async def ask(context: Context, args: dict[str, Any]) -> Answer:
    request = types.ElicitRequest(
        params=types.ElicitRequestFormParams(message=f"Which color for {args['name']}?", requested_schema=FORM)
    )
    if context.protocol_version not in MODERN_PROTOCOL_VERSIONS:
        reply = await context.session.elicit_form(request.params.message, FORM)
    elif responses := (context.params or {}).get("inputResponses"):
        reply = types.ElicitResult.model_validate(responses["color"])
    else:
        return types.InputRequiredResult(input_requests={"color": request})
    return text(reply.action, str((reply.content or {}).get("color", "-")))


async def create(context: Context, args: dict[str, Any]) -> Answer:
    file = FOLDER / args["name"]
    file.write_text(str((context.meta or {}).get("handrail/idempotency_key")), encoding="utf-8")
    return types.CallToolResult(content=[], structured_content={"made": args["name"], "number": 7})


async def remove(context: Context, args: dict[str, Any]) -> Answer:
    (FOLDER / args["name"]).unlink(missing_ok=True)
    log = FOLDER / "removed.txt"
    log.write_text(f"{args} {(context.meta or {}).get('handrail/idempotency_key')}", encoding="utf-8")
    return text("removed")


async def environment(_: Context, args: dict[str, Any]) -> Answer:
    return text(f"it is {os.environ.get(args['name'])}")


def tool(name: str, args: dict[str, Any], *, hints: types.ToolAnnotations | None = None) -> types.Tool:
    return types.Tool(name=name, description=f"Does {name}.", input_schema=args, annotations=hints)


ANY = {"type": "object"}
TOOLS = (
    (tool("say", {"type": "object", "properties": {"words": {"type": "array"}}}, hints=READ_ONLY), say),
    (tool("add", {"type": "object", "properties": {"a": {"type": "integer"}, "b": {"type": "integer"}}}), add),
    (tool("draw", ANY, hints=READ_ONLY), draw),
    (tool("resources", ANY), resources),
    (tool("fill", ANY, hints=READ_ONLY), fill),
    (tool("measure", {"type": "object", "properties": {"value": {"type": ["string", "object"]}}}), measure),
    (tool("fail", ANY), fail),
    (tool("climb", ANY), climb),
    (tool("ask", NAMED), ask),
    (tool("create", NAMED, hints=types.ToolAnnotations(destructive_hint=False)), create),
    (tool("remove", NAMED, hints=types.ToolAnnotations(idempotent_hint=True)), remove),
    (tool("environment", NAMED), environment),
)
DEEDS = {listed.name: deed for listed, deed in TOOLS}


async def on_list(_: Context, __: types.PaginatedRequestParams | None) -> types.ListToolsResult:
    words = FOLDER / "words.txt"  # what a test may have it say of itself from the next start on
    if words.exists():
        TOOLS[0][0].description = words.read_text(encoding="utf-8")
    return types.ListToolsResult(tools=[listed for listed, _ in TOOLS])


async def on_call(context: Context, params: types.CallToolRequestParams) -> Answer:
    return await DEEDS[params.name](context, params.arguments or {})


async def main() -> None:
    server = Server("good", version="1.0", on_list_tools=on_list, on_call_tool=on_call)
    async with stdio_server() as (reading, writing):
        await server.run(reading, writing, server.create_initialization_options())


if __name__ == "__main__":
    anyio.run(main)
