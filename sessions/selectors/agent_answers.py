"""The first answer an agent of a policy gets, for a page: list, prompt and tokens before any search."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from catalog.domain.sizes import tokens_of
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
    tokens: Mapping[str, int]
    warnings: Sequence[str]
    prompt: str
    prompt_tokens: int
    search_tool_tokens: int
    search_tool: Mapping[str, Any] | None
    sample: Sample

    @property
    def more_tokens(self) -> int:
        """Extra tokens where deferring costs more than it saves."""
        return -self.tokens["saved"]

    @property
    def names_servers(self) -> bool:
        """Whether the prompt had room for more than one sentence about all tools."""
        return "\n" in self.prompt

    @property
    def list_tokens(self) -> int:
        """The tokens of the tools alone."""
        return self.tokens["sent"] - self.prompt_tokens - self.search_tool_tokens


def resolve_without_session(policy_id: int) -> ResolvedTools:
    return ResolvedTools(offer_cache.offer_of_policy(policy_id))


def read_answer(policy_id: int, form: ListForm) -> AgentAnswer:
    """`form` must not be `auto`. Only the beginning of the list is rendered."""
    resolved = resolve_without_session(policy_id)
    offer = resolved.offer
    own_name = offer.policy.search_tool_name
    prompt = offer.prompt(search_tool.name_in(form, own_name)) if offer.is_active else ""
    has_own_search = offer.is_active and not form.is_hosted
    search_chars = search_tool.count_search_tool_chars(offer.policy) if has_own_search else 0
    search_tokens = tokens_of(search_chars)
    is_apart = offer.is_active and form.format in {Format.MCP, Format.STUB}
    return AgentAnswer(
        form=form,
        is_active=offer.is_active,
        counts=resolved.counts,
        tokens=resolved.tokens(form),
        warnings=resolved.warnings(form),
        prompt=prompt,
        # Rounded together, so that no part is below nothing and the parts are the sum.
        prompt_tokens=tokens_of(search_chars + len(prompt)) - search_tokens,
        search_tool_tokens=search_tokens,
        search_tool=search_tool.define(form, offer.policy) if is_apart else None,
        sample=read_sample(resolved, form),
    )
