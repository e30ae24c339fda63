"""Writes the text for an agent's system prompt within a budget: what is deferred and how to find it."""

import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Protocol

from catalog.domain.choices import PromptStyle
from catalog.domain.marking import is_marked, talks_to_model
from catalog.domain.policy import Policy
from catalog.domain.sizes import CHARS_PER_TOKEN, tokens_of, tokens_of_text

_BLANKS_AND_CONTROLS = re.compile(r"[\s\x00-\x1f\x7f-\x9f\u200b-\u200f\u2028-\u202e\u2066-\u2069]+")
_SENTENCE_END = re.compile(r"(?<=[.!?])\s")
_FEW_WORDS_CHARS = 80
_SAMPLE_TOOLS, _SAMPLED_TOOLS = 4, 100
_KEPT_SAMPLES = 2_048  # servers of which a process remembers them: a prompt is written after every change
_PLAIN_NAME = re.compile(r"[A-Za-z0-9_./:-]+")
_SEPARATORS = re.compile(r"[_./:-]+")
_WORD = re.compile(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])")
_EXACT_NAME = "A search for a tool's exact name loads that tool."


class Described(Protocol):
    """A tool's line in the prompt; `name` is the qualified one."""

    @property
    def name(self) -> str: ...
    @property
    def tool(self) -> str: ...
    @property
    def description(self) -> str: ...


@dataclass(frozen=True, slots=True)
class DeferredTool:
    name: str  # qualified
    tool: str
    description: str = ""


@dataclass(frozen=True, slots=True)
class DeferredServer:
    """A server and its deferred tools, discovered ones included, by qualified name.

    Leaving out discovered tools would change the text, and so invalidate the agent's prompt cache, each time.
    """

    name: str
    tools: tuple[Described, ...]
    description: str = ""


Servers = Sequence[DeferredServer]


def write_prompt(servers: Servers, policy: Policy) -> str:
    """The most detailed text that fits the policy's budget, at most as detailed as its style.

    Empty when nothing is deferred, or when not even the shortest sentence fits.
    """
    servers = sorted((server for server in servers if server.tools), key=lambda server: server.name)
    if not servers:
        return ""
    for text in _write_rungs(servers, policy):
        if tokens_of_text(text) <= policy.prompt_budget_tokens:
            return text
    return ""


def write_server_lines(servers: Servers, *, budget_tokens: int) -> str:
    """A line for each server and what it does, or its name and number of tools, or as many names as fit."""
    servers = sorted(servers, key=lambda server: server.name)
    for write_line in _LADDERS[PromptStyle.CATEGORIES]:
        text = "\n".join(write_line(servers))
        if tokens_of_text(text) <= budget_tokens:
            return text
    names = [first_sentence(server.name) for server in servers]
    while names and tokens_of_text(_write_names(names, len(servers))) > budget_tokens:
        names = names[: len(names) * 9 // 10]
    return _write_names(names, len(servers)) if names else ""


def _write_names(names: Sequence[str], count: int) -> str:
    left = count - len(names)
    return ", ".join([*names, f"and {left} more"] if left else names)


def first_sentence(description: str, max_chars: int = 200) -> str:
    """The first sentence on one line, without control and direction characters, cut at a word."""
    line = _BLANKS_AND_CONTROLS.sub(" ", description).strip()
    sentence = _SENTENCE_END.split(line, maxsplit=1)[0]
    if len(sentence) <= max_chars:
        return sentence
    at_word, space, _ = sentence[:max_chars].rpartition(" ")
    return (at_word if space else sentence[: max_chars - 1]) + "…"


def _write_rungs(servers: Servers, policy: Policy) -> Iterator[str]:
    tool = policy.search_tool_name
    count = sum(len(server.tools) for server in servers)
    opening = (
        f"{_count_tools(count)} deferred. To use one, first call {tool} with words for what it should do; "
    )
    opening += f"the tools it finds can then be called. {_EXACT_NAME}"
    for write_line in _LADDERS[policy.prompt_style]:
        if write_line is _write_described_tools and _is_too_much(servers, policy):
            continue  # before ten thousand descriptions are read in vain
        if sum(len(server.name) for server in servers) > policy.prompt_budget_tokens * CHARS_PER_TOKEN:
            break  # not even the servers' names fit
        yield "\n".join([opening, *write_line(servers)])
    on_servers = f"{count} tools on {len(servers)} servers" if len(servers) > 1 else f"{count} tools"
    yield f"{on_servers} deferred: call {tool} to find and load them. {_EXACT_NAME}"
    yield f"{on_servers} deferred: call {tool} to find and load them."
    yield f"{count} deferred tools: {tool}."


def _is_too_much(servers: Servers, policy: Policy) -> bool:
    """Whether the names alone do not fit."""
    chars = sum(len(tool.name) for server in servers for tool in server.tools)
    return tokens_of(chars) > policy.prompt_budget_tokens


def _write_described_tools(servers: Servers) -> list[str]:
    tools = (tool for server in servers for tool in server.tools)
    return [f"- {tool.name}: {_describe(tool.description)}".removesuffix(": ") for tool in tools]


def _describe(description: str) -> str:
    """Empty where the description addresses the model, or its first sentence has any mark: neither must
    reach a prompt.
    """
    sentence = first_sentence(description)
    return "" if is_marked(sentence) or talks_to_model(description) else sentence


def _write_tool_names(servers: Servers) -> list[str]:
    return [
        f"- {_name_and_count(server)}: {', '.join(tool.name for tool in server.tools)}" for server in servers
    ]


def _write_described_servers(servers: Servers) -> list[str]:
    lines = (f"- {_name_and_count(server)}: {_say_what_it_does(server)}" for server in servers)
    return [line.removesuffix(": ") for line in lines]


def _write_server_counts(servers: Servers) -> list[str]:
    return [f"- {_name_and_count(server)}" for server in servers]


def _name_and_count(server: DeferredServer) -> str:
    return f"{first_sentence(server.name)} ({len(server.tools)})"


def _say_what_it_does(server: DeferredServer) -> str:
    if server.description:
        return first_sentence(server.description, _FEW_WORDS_CHARS)
    samples = _choose_samples(tuple(tool.tool for tool in server.tools[:_SAMPLED_TOOLS]))
    return first_sentence(", ".join(samples), _FEW_WORDS_CHARS)


@lru_cache(maxsize=_KEPT_SAMPLES)
def _choose_samples(names: tuple[str, ...]) -> tuple[str, ...]:
    """The names that tell most about the others: each has words that many names have, and that no name chosen
    before it has. The first by alphabet are often all about one thing.
    """
    words_of = {name: frozenset(word.lower() for word in _WORD.findall(name)) for name in names}
    counts = Counter(word for words in words_of.values() for word in words)
    told: set[str] = set()
    chosen: list[str] = []

    def weigh(name: str) -> float:
        """By its length too, so that a long name is not best for having many words."""
        return sum(counts[word] for word in words_of[name] - told) / max(len(name), 1)

    while words_of and len(chosen) < _SAMPLE_TOOLS:
        best = max(words_of, key=weigh)
        if _is_plain(best):
            chosen.append(best)
            told |= words_of[best]
        del words_of[best]
    return tuple(chosen)


def _is_plain(name: str) -> bool:
    """Whether a tool's own name, which its server gives, is a name and no sentence."""
    return bool(_PLAIN_NAME.fullmatch(name)) and not is_marked(_SEPARATORS.sub(" ", name))


def _count_tools(count: int) -> str:
    return f"{count} tool is" if count == 1 else f"{count} tools are"


_LADDERS: Mapping[PromptStyle, tuple[Callable[[Servers], list[str]], ...]] = {
    PromptStyle.NAMES_AND_DESCRIPTIONS: (_write_described_tools, _write_tool_names, _write_server_counts),
    PromptStyle.NAMES: (_write_tool_names, _write_server_counts),
    PromptStyle.CATEGORIES: (_write_described_servers, _write_server_counts),
}
