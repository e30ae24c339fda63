"""What the conformance suite's server holds: contents of tools, resources, prompts, and JSON Schemas."""

from collections.abc import Mapping, Sequence
from typing import Any

JsonObject = dict[str, Any]

# A picture of one red pixel, and a sound of no samples.
PNG = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8DwHwAFBQIAX8jx0gAAAABJRU5ErkJggg=="
WAV = "UklGRiQAAABXQVZFZm10IBAAAAABAAEARKwAAIhYAQACABAAZGF0YQAAAAA="

NO_ARGUMENTS: JsonObject = {"type": "object", "properties": {}}
TEMPLATE_BEGIN, TEMPLATE_END = "test://template/", "/data"


def text(content: str) -> JsonObject:
    return {"type": "text", "text": content}


def embedded(address: str, mime_type: str, content: str) -> JsonObject:
    return {"type": "resource", "resource": {"uri": address, "mimeType": mime_type, "text": content}}


def takes(required: Sequence[str] = (), **properties: JsonObject) -> JsonObject:
    """The schema of an object with these properties."""
    schema: JsonObject = {"type": "object", "properties": properties}
    return {**schema, "required": list(required)} if required else schema


IMAGE = {"type": "image", "data": PNG, "mimeType": "image/png"}
AUDIO = {"type": "audio", "data": WAV, "mimeType": "audio/wav"}

TOOL_CONTENTS: Mapping[str, list[JsonObject]] = {
    "test_simple_text": [text("This is a simple text response for testing.")],
    "test_image_content": [IMAGE],
    "test_audio_content": [AUDIO],
    "test_embedded_resource": [
        embedded("test://embedded-resource", "text/plain", "This is an embedded resource content.")
    ],
    "test_multiple_content_types": [
        text("Multiple content types test:"),
        IMAGE,
        embedded("test://mixed-content-resource", "application/json", '{"test":"data","value":123}'),
    ],
    "json_schema_2020_12_tool": [text("The arguments fit the schema.")],
    "test_headers": [text("The region is in a header too.")],
}

RESOURCE_CONTENTS: Mapping[str, JsonObject] = {
    "test://static-text": {
        "mimeType": "text/plain",
        "text": "This is the content of the static text resource.",
    },
    "test://static-binary": {"mimeType": "image/png", "blob": PNG},
    "test://watched-resource": {"mimeType": "text/plain", "text": "Nothing has changed yet."},
}

# A schema with what the 2020-12 dialect has over its elders.
RICH_SCHEMA: JsonObject = {
    "$schema": "https://json-schema.org/draft/2020-12/schema",
    "type": "object",
    "$defs": {
        "address": {
            "$anchor": "addressDef",
            "type": "object",
            "properties": {"street": {"type": "string"}, "city": {"type": "string"}},
        }
    },
    "properties": {
        "name": {"type": "string"},
        "address": {"$ref": "#/$defs/address"},
        "contactMethod": {"type": "string", "enum": ["phone", "email"]},
        "phone": {"type": "string"},
        "email": {"type": "string"},
    },
    "allOf": [{"anyOf": [{"required": ["phone"]}, {"required": ["email"]}]}],
    "if": {"properties": {"contactMethod": {"const": "phone"}}, "required": ["contactMethod"]},
    "then": {"required": ["phone"]},
    "else": {"required": ["email"]},
    "additionalProperties": False,
}
HEADER_SCHEMA = takes(("region",), region={"type": "string", "x-mcp-header": "Region"})

WITH_DEFAULTS = takes(
    name={"type": "string", "default": "John Doe"},
    age={"type": "integer", "default": 30},
    score={"type": "number", "default": 95.5},
    status={"type": "string", "enum": ["active", "inactive", "pending"], "default": "active"},
    verified={"type": "boolean", "default": True},
)


def _titled(word: str) -> list[JsonObject]:
    return [
        {"const": f"value{n}", "title": f"{place} {word}"}
        for n, place in enumerate(("First", "Second", "Third"), start=1)
    ]


_OPTIONS = ["option1", "option2", "option3"]
WITH_CHOICES = takes(
    untitledSingle={"type": "string", "enum": _OPTIONS},
    titledSingle={"type": "string", "oneOf": _titled("Option")},
    legacyEnum={
        "type": "string",
        "enum": ["opt1", "opt2", "opt3"],
        "enumNames": ["Option One", "Option Two", "Option Three"],
    },
    untitledMulti={"type": "array", "items": {"type": "string", "enum": _OPTIONS}},
    titledMulti={"type": "array", "items": {"anyOf": _titled("Choice")}},
)


def prompt_messages(name: str, arguments: Mapping[str, str]) -> list[JsonObject] | None:
    """What a prompt says; none where there is no such prompt."""
    contents = {
        "test_simple_prompt": [text("This is a simple prompt for testing.")],
        "test_prompt_with_arguments": [
            text(f"Prompt with arguments: arg1='{arguments.get('arg1')}', arg2='{arguments.get('arg2')}'")
        ],
        "test_prompt_with_embedded_resource": [
            embedded(
                arguments.get("resourceUri", ""), "text/plain", "Embedded resource content for testing."
            ),
            text("Please process the embedded resource above."),
        ],
        "test_prompt_with_image": [IMAGE, text("Please analyze the image above.")],
    }.get(name)
    return contents and [{"role": "user", "content": content} for content in contents]


PROMPT_ARGUMENTS: Mapping[str, Sequence[str]] = {
    "test_simple_prompt": (),
    "test_prompt_with_arguments": ("arg1", "arg2"),
    "test_prompt_with_embedded_resource": ("resourceUri",),
    "test_prompt_with_image": (),
    "test_input_required_result_prompt": (),
}
