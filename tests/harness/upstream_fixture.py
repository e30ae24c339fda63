"""An upstream MCP server that behaves well or badly on demand, in both eras, over stdio and streamable HTTP.

As a program: `upstream_fixture.py stdio|http|stateless [LOG [PORT]]`. Over HTTP it takes a free port, told on
stderr; `http` keeps sessions for old clients, `stateless` keeps none. LOG is a file that gets a line
`started TOOL TAG` and one of `ended TOOL TAG`, `cancelled TOOL TAG` for each call; TAG is the argument `tag`.
In a test:

    connection = stdio_connection(log)         # the Connection of the program over stdio
    with run_over_http(log) as fixture: ...    # fixture.connection(**headers), .url, .port, .pid, .stop()
    lines_of(log), count_in(log, "cancelled")  # what the log says by now

Tools; every argument is optional:
- `echo` (text), `slow` (seconds), `silent` (never answers), `count` (calls of it so far in this process)
- `big` (size: characters of text), `many` (count: items of structured content)
- `crash` (the process ends with exit code 3), `fail` (a tool error), `refuse` (a JSON-RPC error)
- `ask`, `sample`, `roots` (old-era elicitation, sampling and roots; the text says how it went)
- `input_required` (modern: asks, and takes the answer)
- `wrong_shape` (structured content that violates its outputSchema), `changes_shape` (from its second call)
- `progress` (steps, then an answer), `endless_progress`
- `chatty` (count: log messages, then an answer), `flood` (log messages without end)
- `headers` (structured content: the Authorization header, the `_meta` and the Mcp-Param-Region header it got)
- `region` (an `x-mcp-header` parameter), `extra` (a `_meta` of its own)
- `media` (an image, audio, an embedded resource and a link)

It also serves the resource `note://one`, the template `note://{name}`, the prompt `greet` and completion.
"""

import os
import re
import socket
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import anyio
import mcp_types as types
from mcp import MCPError
from mcp.server.lowlevel import Server
from mcp.server.stdio import stdio_server

from catalog.domain.choices import Transport
from catalog.domain.connection import Connection

ANY: dict[str, Any] = {"type": "object"}
NUMBER = {"type": "object", "properties": {"number": {"type": "integer"}}, "required": ["number"]}
REGION = {"type": "object", "properties": {"region": {"type": "string", "x-mcp-header": "Region"}}}
PIXEL = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
CONFIRM: dict[str, Any] = {
    "type": "object",
    "properties": {"sure": {"type": "boolean"}},
    "required": ["sure"],
}
NAMES = (
    *("echo", "slow", "silent", "big", "many", "crash", "ask", "sample", "roots", "input_required", "count"),
    *("wrong_shape", "progress", "endless_progress", "flood", "chatty", "changes_shape", "headers", "region"),
    *("media", "fail", "refuse", "extra"),
)
READ_ONLY = frozenset({"echo", "count", "headers", "media"})


def text(words: object, **more: Any) -> types.CallToolResult:
    return types.CallToolResult(content=[types.TextContent(type="text", text=str(words))], **more)


class Fixture:
    """The behaviours. A tool is the method `tool_NAME(ctx, arguments)`."""

    def __init__(self, log: str) -> None:
        self._log = log
        self._calls: Counter[str] = Counter()

    def write(self, *words: object) -> None:
        if self._log:
            with open(self._log, "a") as file:
                file.write(" ".join(map(str, words)) + "\n")

    async def list_tools(self, _: Any, params: Any) -> types.ListToolsResult:
        shapes: dict[str, dict[str, Any]] = {"wrong_shape": NUMBER, "changes_shape": NUMBER, "many": ANY}
        tools = [
            types.Tool(
                name=name,
                description=f"Behaves as its name says: {name.replace('_', ' ')}",
                input_schema=REGION if name == "region" else ANY,
                output_schema=shapes.get(name),
                annotations=types.ToolAnnotations(read_only_hint=name in READ_ONLY),
            )
            for name in NAMES
        ]
        return types.ListToolsResult(tools=tools)

    async def call_tool(self, ctx: Any, params: Any) -> Any:
        arguments: dict[str, Any] = params.arguments or {}
        if params.name not in NAMES:
            raise MCPError(code=types.INVALID_PARAMS, message=f"Unknown tool: {params.name}")
        self._calls[params.name] += 1
        about = params.name, arguments.get("tag", "-")
        self.write("started", *about)
        try:
            result = await getattr(self, f"tool_{params.name}")(ctx, {**arguments, "_params": params})
        except anyio.get_cancelled_exc_class():
            self.write("cancelled", *about)
            raise
        self.write("ended", *about)
        return result

    async def tool_echo(self, ctx: Any, given: dict[str, Any]) -> Any:
        return text(given.get("text", "hello"))

    async def tool_slow(self, ctx: Any, given: dict[str, Any]) -> Any:
        await anyio.sleep(given.get("seconds", 0.5))
        return text("done")

    async def tool_silent(self, ctx: Any, given: dict[str, Any]) -> Any:
        await anyio.sleep_forever()

    async def tool_big(self, ctx: Any, given: dict[str, Any]) -> Any:
        return text("x" * given.get("size", 1_000_000))

    async def tool_many(self, ctx: Any, given: dict[str, Any]) -> Any:
        items = [{"id": number, "name": f"item {number}"} for number in range(given.get("count", 100))]
        return text(items, structured_content={"items": items})

    async def tool_crash(self, ctx: Any, given: dict[str, Any]) -> Any:
        os.write(2, b"the fixture was asked to crash\n")
        os._exit(3)

    async def tool_ask(self, ctx: Any, given: dict[str, Any]) -> Any:
        return await self._told(ctx.session.elicit_form("Sure?", CONFIRM, ctx.request_id))

    async def tool_sample(self, ctx: Any, given: dict[str, Any]) -> Any:
        return await self._told(
            ctx.session.send_request(
                types.CreateMessageRequest(
                    params=types.CreateMessageRequestParams(messages=[], max_tokens=9)
                ),
                types.CreateMessageResult,
            )
        )

    async def tool_roots(self, ctx: Any, given: dict[str, Any]) -> Any:
        return await self._told(ctx.session.send_request(types.ListRootsRequest(), types.ListRootsResult))

    async def _told(self, question: Any) -> Any:
        try:
            return text(f"answered: {(await question).model_dump_json(exclude_none=True)}")
        except (MCPError, RuntimeError, ValueError) as error:
            return text(f"refused: {error}")

    async def tool_input_required(self, ctx: Any, given: dict[str, Any]) -> Any:
        if answers := given["_params"].input_responses:
            return text(f"answered: {answers['sure'].model_dump_json(exclude_none=True)}")
        params = types.ElicitRequestFormParams(message="Sure?", requested_schema=CONFIRM)
        return types.InputRequiredResult(
            input_requests={"sure": types.ElicitRequest(params=params)}, request_state="asked"
        )

    async def tool_count(self, ctx: Any, given: dict[str, Any]) -> Any:
        return text(self._calls["count"])

    async def tool_wrong_shape(self, ctx: Any, given: dict[str, Any]) -> Any:
        return text("many", structured_content={"number": "many"})

    async def tool_progress(self, ctx: Any, given: dict[str, Any]) -> Any:
        steps = given.get("steps", 3)
        for step in range(1, steps + 1):
            await ctx.session.report_progress(step, steps, f"{given.get('words', 'step')} {step}")
        return text("done")

    async def tool_endless_progress(self, ctx: Any, given: dict[str, Any]) -> Any:
        step = 0
        while True:
            step += 1
            await ctx.session.report_progress(step, None, "still here")
            await anyio.sleep(0)

    async def tool_flood(self, ctx: Any, given: dict[str, Any]) -> Any:
        while True:
            await self._say(ctx)
            await anyio.sleep(0)

    async def tool_chatty(self, ctx: Any, given: dict[str, Any]) -> Any:
        for _ in range(given.get("count", 3)):
            await self._say(ctx)
        return text("done")

    async def _say(self, ctx: Any) -> None:
        params = types.LoggingMessageNotificationParams(level="info", data="chatter")
        await ctx.session.send_notification(types.LoggingMessageNotification(params=params), ctx.request_id)

    async def tool_changes_shape(self, ctx: Any, given: dict[str, Any]) -> Any:
        is_first = self._calls["changes_shape"] == 1
        return text("one", structured_content={"number": 1} if is_first else {"numbers": ["many"]})

    async def tool_headers(self, ctx: Any, given: dict[str, Any]) -> Any:
        sent = ctx.request.headers if ctx.request else {}
        meta = {**(ctx.params or {}).get("_meta", {})}
        return text(
            meta,
            structured_content={
                "authorization": sent.get("authorization"),
                "meta": meta,
                "region": sent.get("mcp-param-region"),
            },
        )

    async def tool_region(self, ctx: Any, given: dict[str, Any]) -> Any:
        return text(given.get("region", ""))

    async def tool_media(self, ctx: Any, given: dict[str, Any]) -> Any:
        note = types.TextResourceContents(uri="note://one", mime_type="text/plain", text="one")
        return types.CallToolResult(
            content=[
                types.ImageContent(type="image", data=PIXEL, mime_type="image/png"),
                types.AudioContent(type="audio", data="UklGRg==", mime_type="audio/wav"),
                types.EmbeddedResource(type="resource", resource=note),
                types.ResourceLink(type="resource_link", uri="note://two", name="two"),
            ]
        )

    async def tool_fail(self, ctx: Any, given: dict[str, Any]) -> Any:
        return text("it did not work", is_error=True)

    async def tool_refuse(self, ctx: Any, given: dict[str, Any]) -> Any:
        raise MCPError(code=-32042, message="refused by the tool", data={"why": "asked to"})

    async def tool_extra(self, ctx: Any, given: dict[str, Any]) -> Any:
        return {
            "resultType": "complete",
            "content": [{"type": "text", "text": "more", "_meta": {"example.org/part": 1}}],
            "_meta": {"example.org/trace": "t1"},
        }

    async def list_resources(self, _: Any, params: Any) -> types.ListResourcesResult:
        return types.ListResourcesResult(
            resources=[types.Resource(uri="note://one", name="one", mime_type="text/plain")]
        )

    async def list_templates(self, _: Any, params: Any) -> types.ListResourceTemplatesResult:
        template = types.ResourceTemplate(uri_template="note://{name}", name="notes")
        return types.ListResourceTemplatesResult(resource_templates=[template])

    async def read_resource(self, _: Any, params: Any) -> types.ReadResourceResult:
        name = str(params.uri).removeprefix("note://")
        return types.ReadResourceResult(
            contents=[types.TextResourceContents(uri=params.uri, text=f"the note {name}")]
        )

    async def list_prompts(self, _: Any, params: Any) -> types.ListPromptsResult:
        argument = types.PromptArgument(name="name", required=True)
        return types.ListPromptsResult(prompts=[types.Prompt(name="greet", arguments=[argument])])

    async def get_prompt(self, _: Any, params: Any) -> types.GetPromptResult:
        greeting = types.TextContent(
            type="text", text=f"Greet {(params.arguments or {}).get('name', 'everybody')}"
        )
        return types.GetPromptResult(messages=[types.PromptMessage(role="user", content=greeting)])

    async def complete(self, _: Any, params: Any) -> types.CompleteResult:
        known = [name for name in ("Ada", "Alan", "Grace") if name.startswith(params.argument.value)]
        return types.CompleteResult(completion=types.Completion(values=known))


def make_server(log: str = "") -> Server[Any]:
    fixture = Fixture(log)
    return Server(
        "fixture",
        version="1",
        on_list_tools=fixture.list_tools,
        on_call_tool=fixture.call_tool,
        on_list_resources=fixture.list_resources,
        on_list_resource_templates=fixture.list_templates,
        on_read_resource=fixture.read_resource,
        on_list_prompts=fixture.list_prompts,
        on_get_prompt=fixture.get_prompt,
        on_completion=fixture.complete,
        get_tool_input_schema=lambda name: REGION if name == "region" else ANY,
    )


def stdio_connection(log: Path | str = "", *, env: Mapping[str, str] | None = None) -> Connection:
    """The fixture as a command."""
    return Connection(
        Transport.STDIO,
        command=sys.executable,
        args=(str(Path(__file__)), "stdio", str(log)),
        env={**_PATHS, **(env or {})},
    )


@dataclass
class HttpFixture:
    """The fixture, running over HTTP."""

    process: "subprocess.Popen[str]"
    port: int

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/mcp"

    @property
    def pid(self) -> int:
        return self.process.pid

    def connection(self, **headers: str) -> Connection:
        return Connection(Transport.HTTP, url=self.url, headers=headers)

    def stop(self) -> None:
        self.process.kill()
        self.process.wait()


@contextmanager
def run_over_http(log: Path | str = "", *, port: int = 0, stateless: bool = False) -> Iterator[HttpFixture]:
    """Run the fixture on a free port, or on the one given. The address guard must allow private addresses."""
    kind = "stateless" if stateless else "http"
    command = [sys.executable, str(Path(__file__)), kind, str(log), str(port)]
    with subprocess.Popen(
        command, stderr=subprocess.PIPE, text=True, env={**os.environ, **_PATHS}
    ) as process:
        try:
            assert process.stderr
            told = next(filter(None, (re.search(r"listening on (\d+)", line) for line in process.stderr)))
            yield HttpFixture(process, int(told[1]))
        finally:
            process.kill()


def lines_of(log: Path) -> list[str]:
    return log.read_text().splitlines() if log.exists() else []


def count_in(log: Path, word: str) -> int:
    """How many lines of the log begin with the word."""
    return sum(line.startswith(word) for line in lines_of(log))


_PATHS = {"PYTHONPATH": str(Path(__file__).parents[2])}


async def _serve_stdio(log: str) -> None:
    server = make_server(log)
    async with stdio_server() as (read, write):
        await server.run(read, write, server.create_initialization_options())


def _serve_http(log: str, port: int, *, stateless: bool) -> None:
    import uvicorn  # here, since it is slow to import and stdio needs none of it

    # Named TCP, or asyncio leaves Nagle's algorithm on and each answer takes 40 ms more.
    listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    listener.bind(("127.0.0.1", port))
    listener.listen(128)
    os.write(2, f"listening on {listener.getsockname()[1]}\n".encode())
    app = make_server(log).streamable_http_app(stateless_http=stateless)
    uvicorn.Server(uvicorn.Config(app, log_level="critical", ws="none")).run(sockets=[listener])


if __name__ == "__main__":
    kind, log, port = [*sys.argv[1:], "", "", ""][:3]
    if kind == "stdio":
        anyio.run(_serve_stdio, log)
    else:
        _serve_http(log, int(port or 0), stateless=kind == "stateless")
