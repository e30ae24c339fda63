"""An MCP server with every tool, resource, prompt and completion that the conformance suite asks for.

Runs as `granian --interface asgi tests.clients.conformance_server:application`.
"""

from collections.abc import Awaitable, Callable, Mapping
from typing import Any

import anyio
from mcp.server.lowlevel import Server
from mcp.shared.exceptions import MCPError
from mcp_types import (
    INVALID_PARAMS,
    MISSING_REQUIRED_CLIENT_CAPABILITY,
    CallToolRequestParams,
    CallToolResult,
    CompleteResult,
    Completion,
    EmptyResult,
    GetPromptRequestParams,
    GetPromptResult,
    InputRequiredResult,
    ListPromptsResult,
    ListResourcesResult,
    ListResourceTemplatesResult,
    ListToolsResult,
    ReadResourceRequestParams,
    ReadResourceResult,
)

from tests.clients.conformance_content import (
    HEADER_SCHEMA,
    NO_ARGUMENTS,
    PROMPT_ARGUMENTS,
    RESOURCE_CONTENTS,
    RICH_SCHEMA,
    TEMPLATE_BEGIN,
    TEMPLATE_END,
    TOOL_CONTENTS,
    JsonObject,
    prompt_messages,
    takes,
    text,
)
from tests.clients.conformance_questions import (
    ROUNDS,
    Context,
    answer_rounds,
    ask_for_words,
    ask_model,
    ask_with_choices,
    ask_with_defaults,
)

STEP_SECONDS = 0.05
TEMPLATE = f"{TEMPLATE_BEGIN}{{id}}{TEMPLATE_END}"


async def fail(_: Context, __: JsonObject) -> str:
    raise RuntimeError("This tool intentionally returns an error for testing")


async def report_progress(ctx: Context, _: JsonObject) -> str:
    for progress in (0, 50, 100):
        await ctx.session.report_progress(progress, 100)
        await anyio.sleep(STEP_SECONDS)
    return "Progress was reported."


async def write_log(ctx: Context, _: JsonObject) -> str:
    for message in ("Tool execution started", "Tool processing data", "Tool execution completed"):
        await ctx.session.send_log_message("info", message, related_request_id=ctx.request_id)
        await anyio.sleep(STEP_SECONDS)
    return "The log was written."


async def want_sampling(_: Context, __: JsonObject) -> str:
    wanted: JsonObject = {"requiredCapabilities": {"sampling": {}}}
    raise MCPError(MISSING_REQUIRED_CLIENT_CAPABILITY, "This tool needs sampling", wanted)


ACTIVE: Mapping[str, Callable[[Context, JsonObject], Awaitable[str]]] = {
    "test_error_handling": fail,
    "test_tool_with_progress": report_progress,
    "test_tool_with_logging": write_log,
    "test_logging_tool": write_log,
    "test_missing_capability": want_sampling,
    "test_sampling": ask_model,
    "test_elicitation": ask_for_words,
    "test_elicitation_sep1034_defaults": ask_with_defaults,
    "test_elicitation_sep1330_enums": ask_with_choices,
}
SCHEMAS: Mapping[str, JsonObject] = {
    **dict.fromkeys([*TOOL_CONTENTS, *ACTIVE, *ROUNDS], NO_ARGUMENTS),
    "json_schema_2020_12_tool": RICH_SCHEMA,
    "test_headers": HEADER_SCHEMA,
    "test_sampling": takes(("prompt",), prompt={"type": "string"}),
    "test_elicitation": takes(("message",), message={"type": "string"}),
}
PROMPT_OF_ROUNDS = "test_input_required_result_prompt"


async def list_tools(_: Context, __: Any) -> ListToolsResult:
    tools = [
        {"name": name, "description": f"For the conformance suite: {name}.", "inputSchema": schema}
        for name, schema in SCHEMAS.items()
        if name != PROMPT_OF_ROUNDS
    ]
    return ListToolsResult.model_validate({"tools": tools})


async def call_tool(ctx: Context, params: CallToolRequestParams) -> CallToolResult | InputRequiredResult:
    if params.name in TOOL_CONTENTS:
        return CallToolResult.model_validate({"content": TOOL_CONTENTS[params.name]})
    if params.name in ROUNDS:
        said = answer_rounds(ctx, params, ROUNDS[params.name])
        return said if isinstance(said, InputRequiredResult) else _say(said)
    if params.name not in ACTIVE:
        raise MCPError(INVALID_PARAMS, f"Unknown tool: {params.name}")
    try:
        return _say(await ACTIVE[params.name](ctx, params.arguments or {}))
    except RuntimeError as error:
        return _say(str(error), is_error=True)


def _say(content: str, *, is_error: bool = False) -> CallToolResult:
    return CallToolResult.model_validate({"content": [text(content)], "isError": is_error})


async def list_resources(_: Context, __: Any) -> ListResourcesResult:
    resources = [
        {"uri": uri, "name": uri, "description": f"The resource at {uri}.", "mimeType": content["mimeType"]}
        for uri, content in RESOURCE_CONTENTS.items()
    ]
    return ListResourcesResult.model_validate({"resources": resources})


async def list_templates(_: Context, __: Any) -> ListResourceTemplatesResult:
    template = {"uriTemplate": TEMPLATE, "name": "data", "description": "The data of an id."}
    return ListResourceTemplatesResult.model_validate({"resourceTemplates": [template]})


async def read_resource(_: Context, params: ReadResourceRequestParams) -> ReadResourceResult:
    uri = str(params.uri)
    content = RESOURCE_CONTENTS.get(uri) or _from_template(uri)
    if content is None:
        raise MCPError(INVALID_PARAMS, "Resource not found", {"uri": uri})
    return ReadResourceResult.model_validate({"contents": [{"uri": uri, **content}]})


def _from_template(uri: str) -> JsonObject | None:
    if not (uri.startswith(TEMPLATE_BEGIN) and uri.endswith(TEMPLATE_END)):
        return None
    number = uri.removeprefix(TEMPLATE_BEGIN).removesuffix(TEMPLATE_END)
    content = f'{{"id":"{number}","templateTest":true,"data":"Data for ID: {number}"}}'
    return {"mimeType": "application/json", "text": content}


async def accept(_: Context, __: Any) -> EmptyResult:
    return EmptyResult()


async def list_prompts(_: Context, __: Any) -> ListPromptsResult:
    prompts = [
        {
            "name": name,
            "description": f"For the conformance suite: {name}.",
            "arguments": [{"name": argument, "required": True} for argument in arguments],
        }
        for name, arguments in PROMPT_ARGUMENTS.items()
    ]
    return ListPromptsResult.model_validate({"prompts": prompts})


async def get_prompt(ctx: Context, params: GetPromptRequestParams) -> GetPromptResult | InputRequiredResult:
    messages = prompt_messages(params.name, params.arguments or {})
    if params.name == PROMPT_OF_ROUNDS:
        said = answer_rounds(ctx, params, ROUNDS[params.name])
        if isinstance(said, InputRequiredResult):
            return said
        messages = [{"role": "user", "content": text(said)}]
    if messages is None:
        raise MCPError(INVALID_PARAMS, f"Unknown prompt: {params.name}")
    return GetPromptResult.model_validate({"messages": messages})


async def complete(_: Context, params: Any) -> CompleteResult:
    values = [word for word in ("test", "testing", "paris") if word.startswith(params.argument.value)]
    return CompleteResult(completion=Completion(values=values, total=len(values), has_more=False))


application = Server[Any](
    "conformance",
    version="1.0.0",
    on_list_tools=list_tools,
    on_call_tool=call_tool,
    on_list_resources=list_resources,
    on_list_resource_templates=list_templates,
    on_read_resource=read_resource,
    on_subscribe_resource=accept,
    on_unsubscribe_resource=accept,
    on_list_prompts=list_prompts,
    on_get_prompt=get_prompt,
    on_completion=complete,
    on_set_logging_level=accept,
    get_tool_input_schema=SCHEMAS.get,
).streamable_http_app()
