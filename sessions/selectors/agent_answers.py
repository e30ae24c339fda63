"""The first answer an agent of a policy gets, for a page: list, prompt and tokens before any search."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from catalog.domain.sizes import ListTokens
from sessions.offers import offer_cache
from sessions.offers.rendering import search_tool
from sessions.offers.rendering.formats import Format, ListForm
from sessions.offers.tool_lists import ResolvedTools
from sessions.selectors.samples import Sample, read_sample


@dataclass(frozen=True, slots=True)
class AgentAnswer:
    """`search_tool` is None where nothing is deferred, and where the list already holds it."""

    form: ListForm
    is_active: bool
    counts: Mapping[str, int]
    tokens: ListTokens
    warnings: Sequence[str]
    prompt: str
    search_tool: Mapping[str, Any] | None
    sample: Sample

    @property
    def more_tokens(self) -> int:
        """What deferring costs beyond loading every tool."""
        return -self.tokens.saved

    @property
    def names_servers(self) -> bool:
        """Whether the prompt had room for more than one sentence about all tools."""
        return "\n" in self.prompt


def resolve_without_session(policy_id: int) -> ResolvedTools:
    return ResolvedTools(offer_cache.offer_of_policy(policy_id))


def read_answer(policy_id: int, form: ListForm) -> AgentAnswer:
    """`form` must not be `auto`. Only the beginning of the list is rendered."""
    resolved = resolve_without_session(policy_id)
    offer = resolved.offer
    own_name = offer.policy.search_tool_name
    prompt = offer.prompt(search_tool.name_in(form, own_name)) if offer.is_active else ""
    is_apart = offer.is_active and form.format in {Format.MCP, Format.STUB}
    return AgentAnswer(
        form=form,
        is_active=offer.is_active,
        counts=resolved.counts,
        tokens=resolved.measure(form),
        warnings=resolved.warnings(form),
        prompt=prompt,
        search_tool=search_tool.define(form, offer.policy) if is_apart else None,
        sample=read_sample(resolved, form),
    )
