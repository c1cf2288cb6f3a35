"""What the suite expects, with the names it requires: tools with their schemas, resources, prompts.

Values only. Those that handrail's surface can express are answered in deeds.py, the others in beyond.py."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from handrail.interfaces.mcp.surface.offer import PromptArgument, PromptOffer, Resource, ResourceTemplate, ToolOffer

Schema = Mapping[str, Any]

EMPTY: Schema = {"type": "object", "additionalProperties": False}
ANY: Schema = {"type": "object"}


def needing(**kinds: str) -> Schema:
    """A schema of arguments that are all required."""
    return {
        "type": "object",
        "properties": {name: {"type": kind} for name, kind in kinds.items()},
        "required": [*kinds],
    }


HEADER: Schema = {
    "type": "object",
    "properties": {"region": {"type": "string", "x-mcp-header": "Region"}},
    "required": ["region"],
}
FULL_2020_12: Schema = {
    "$schema": "https://json-schema.org/draft/2020-12/schema",
    "type": "object",
    "additionalProperties": False,
    "$defs": {"address": {"$anchor": "addressDef", "type": "object", "properties": {"city": {"type": "string"}}}},
    "properties": {
        "name": {"type": "string"},
        "address": {"$ref": "#/$defs/address"},
        "phone": {"type": "string"},
        "email": {"type": "string"},
        "contactMethod": {"enum": ["phone", "email"]},
    },
    "allOf": [{"anyOf": [{"required": ["phone"]}, {"required": ["email"]}]}],
    "if": {"properties": {"contactMethod": {"const": "phone"}}, "required": ["contactMethod"]},
    "then": {"required": ["phone"]},
    "else": {"required": ["email"]},
}

SCHEMAS: Mapping[str, Schema] = {
    "test_simple_text": EMPTY,
    "test_image_content": EMPTY,
    "test_audio_content": EMPTY,
    "test_embedded_resource": EMPTY,
    "test_multiple_content_types": EMPTY,
    "test_error_handling": EMPTY,
    "test_tool_with_progress": EMPTY,
    "test_tool_with_logging": EMPTY,
    "test_logging_tool": EMPTY,
    "test_sampling": needing(prompt="string"),
    "test_elicitation": needing(message="string"),
    "test_elicitation_sep1034_defaults": EMPTY,
    "test_elicitation_sep1330_enums": EMPTY,
    "test_streaming_elicitation": EMPTY,
    "test_missing_capability": EMPTY,
    "test_trigger_tool_change": EMPTY,
    "test_trigger_prompt_change": EMPTY,
    "test_input_required_result_elicitation": EMPTY,
    "test_input_required_result_sampling": EMPTY,
    "test_input_required_result_list_roots": EMPTY,
    "test_input_required_result_request_state": EMPTY,
    "test_input_required_result_tampered_state": EMPTY,
    "test_input_required_result_multiple_inputs": EMPTY,
    "test_input_required_result_multi_round": EMPTY,
    "test_input_required_result_capabilities": EMPTY,
    "header_tool": HEADER,
    "json_schema_2020_12_tool": FULL_2020_12,
    "greet": needing(name="string"),
    "slow_compute": needing(seconds="number"),
    "failing_job": ANY,
    "protocol_error_job": ANY,
    "confirm_delete": ANY,
    "multi_input": ANY,
    "test_tool_with_task": ANY,
}
TOOLS = tuple(ToolOffer(name=name, description=f"Fixture {name}.", input=schema) for name, schema in SCHEMAS.items())

STATIC_TEXT = "test://static-text"
STATIC_BINARY = "test://static-binary"
WATCHED = "test://watched-resource"
TEMPLATE_START, TEMPLATE_END = "test://template/", "/data"
RESOURCES = (
    Resource(uri=STATIC_TEXT, name="static-text", description="Fixture", type="text/plain"),
    Resource(uri=STATIC_BINARY, name="static-binary", description="Fixture", type="image/png"),
    Resource(uri=WATCHED, name="watched-resource", description="Fixture", type="text/plain"),
)
TEMPLATES = (ResourceTemplate(pattern="test://template/{id}/data", name="template", description="Fixture"),)

BLANKS: Mapping[str, tuple[str, ...]] = {
    "test_simple_prompt": (),
    "test_prompt_with_arguments": ("arg1", "arg2"),
    "test_prompt_with_embedded_resource": ("resourceUri",),
    "test_prompt_with_image": (),
    "test_input_required_result_prompt": (),
}
PROMPTS = tuple(
    PromptOffer(
        name=name,
        description="Fixture",
        arguments=tuple(PromptArgument(name=blank, required=True) for blank in blanks),
    )
    for name, blanks in BLANKS.items()
)
