"""Tools of the conformance suite's server that ask first: within the call, or by their result."""

import hmac
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from mcp.server.context import ServerRequestContext
from mcp.shared.exceptions import MCPError
from mcp.shared.message import ServerMessageMetadata
from mcp_types import (
    INVALID_PARAMS,
    CreateMessageRequest,
    CreateMessageRequestParams,
    CreateMessageResult,
    ElicitRequest,
    ElicitRequestFormParams,
    ElicitResult,
    InputRequiredResult,
    SamplingMessage,
    TextContent,
)

from tests.clients.conformance_content import WITH_CHOICES, WITH_DEFAULTS, JsonObject, takes, text

Context = ServerRequestContext[Any, Any]
SECRET = b"the suite's server signs what it lets a client keep"


def elicitation(message: str, **properties: JsonObject) -> JsonObject:
    schema = takes(tuple(properties), **properties)
    return {"method": "elicitation/create", "params": {"message": message, "requestedSchema": schema}}


def sampling(prompt: str, tokens: int) -> JsonObject:
    messages = [{"role": "user", "content": text(prompt)}]
    return {"method": "sampling/createMessage", "params": {"messages": messages, "maxTokens": tokens}}


ROOTS: JsonObject = {"method": "roots/list", "params": {}}
STRING, BOOLEAN = {"type": "string"}, {"type": "boolean"}
NAME = {"user_name": elicitation("What is your name?", name=STRING)}
CONFIRM = {"confirm": elicitation("Please confirm", ok=BOOLEAN)}


@dataclass(frozen=True, slots=True)
class Rounds:
    """The questions of each round, and what is said when all are answered."""

    questions: tuple[Mapping[str, JsonObject], ...]
    done: str
    keeps_state: bool = False


ROUNDS: Mapping[str, Rounds] = {
    "test_input_required_result_elicitation": Rounds((NAME,), "Hello!"),
    "test_input_required_result_sampling": Rounds(
        ({"capital_question": sampling("What is the capital of France?", 100)},), "The model has answered."
    ),
    "test_input_required_result_list_roots": Rounds(({"client_roots": ROOTS},), "The roots are known."),
    "test_input_required_result_request_state": Rounds((CONFIRM,), "state-ok", keeps_state=True),
    "test_input_required_result_multiple_inputs": Rounds(
        ({**NAME, "greeting": sampling("Generate a greeting", 50), "client_roots": ROOTS},),
        "All three are answered.",
        keeps_state=True,
    ),
    "test_input_required_result_multi_round": Rounds(
        (
            {"step1": elicitation("Step 1: What is your name?", name=STRING)},
            {"step2": elicitation("Step 2: What is your favorite color?", color=STRING)},
        ),
        "Both steps are done.",
        keeps_state=True,
    ),
    "test_input_required_result_tampered_state": Rounds((CONFIRM,), "Nobody touched it.", keeps_state=True),
    "test_input_required_result_capabilities": Rounds(
        ({**NAME, "greeting": sampling("Generate a greeting", 50)},), "What could be asked was answered."
    ),
    "test_streaming_elicitation": Rounds((NAME,), "The stream has ended."),
    "test_input_required_result_prompt": Rounds(
        ({"user_context": elicitation("What context should the prompt use?", context=STRING)},),
        "A prompt with the context that was asked for.",
    ),
}


def answer_rounds(ctx: Context, params: Any, rounds: Rounds) -> InputRequiredResult | str:
    """The next question as a result, or what is said at the end."""
    number = _read_state(params.request_state) if rounds.keeps_state else 0
    asked = _askable(ctx, rounds.questions[number])
    if not set(asked) <= set(params.input_responses or {}):
        return _ask(asked, number if rounds.keeps_state else None)
    if number + 1 < len(rounds.questions):
        return _ask(rounds.questions[number + 1], number + 1)
    return rounds.done


def _ask(questions: Mapping[str, JsonObject], number: int | None) -> InputRequiredResult:
    state = None if number is None else _sign(number)
    return InputRequiredResult.model_validate({"inputRequests": questions, "requestState": state})


def _askable(ctx: Context, questions: Mapping[str, JsonObject]) -> Mapping[str, JsonObject]:
    """What the client says that it can answer."""
    capabilities = ctx.session.client_capabilities
    able = {
        "elicitation/create": capabilities and capabilities.elicitation,
        "sampling/createMessage": capabilities and capabilities.sampling,
        "roots/list": capabilities and capabilities.roots,
    }
    return {key: asked for key, asked in questions.items() if able[asked["method"]] is not None}


def _sign(number: int) -> str:
    return f"{number}.{hmac.digest(SECRET, str(number).encode(), 'sha256').hex()}"


def _read_state(state: str | None) -> int:
    if state is None:
        return 0
    number = state.partition(".")[0]
    if not number.isdecimal() or not hmac.compare_digest(state, _sign(int(number))):
        raise MCPError(INVALID_PARAMS, "requestState is not what this server gave")
    return int(number)


async def ask_model(ctx: Context, arguments: JsonObject) -> str:
    asked = SamplingMessage(role="user", content=TextContent(type="text", text=arguments["prompt"]))
    answer = await ctx.session.send_request(
        CreateMessageRequest(params=CreateMessageRequestParams(messages=[asked], max_tokens=100)),
        CreateMessageResult,
        metadata=ServerMessageMetadata(related_request_id=ctx.request_id),
    )
    return f"LLM response: {answer.content}"


async def _ask_person(ctx: Context, message: str, schema: JsonObject) -> ElicitResult:
    return await ctx.session.send_request(
        ElicitRequest(params=ElicitRequestFormParams(message=message, requested_schema=schema)),
        ElicitResult,
        metadata=ServerMessageMetadata(related_request_id=ctx.request_id),
    )


async def ask_for_words(ctx: Context, arguments: JsonObject) -> str:
    schema = takes(("username", "email"), username=STRING, email=STRING)
    answer = await _ask_person(ctx, arguments["message"], schema)
    return f"User response: {answer.action}, {answer.content}"


async def ask_with_defaults(ctx: Context, _: JsonObject) -> str:
    answer = await _ask_person(ctx, "Please look through these values", WITH_DEFAULTS)
    return f"Elicitation completed: action={answer.action}, content={answer.content}"


async def ask_with_choices(ctx: Context, _: JsonObject) -> str:
    answer = await _ask_person(ctx, "Please choose", WITH_CHOICES)
    return f"Elicitation completed: action={answer.action}, content={answer.content}"
