"""What an agent of a policy gets before its first search, as the API answers it and for a person to read."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from catalog.domain.sizes import tokens_of
from sessions.domain import search_tool
from sessions.domain.formats import Format, ListForm
from sessions.reading import offers
from sessions.reading.samples import Sample, read_sample
from sessions.reading.tool_lists import Standing


@dataclass(frozen=True, slots=True)
class AgentAnswer:
    """`search_tool` is None where nothing is deferred, and where the list holds it already."""

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
        """What deferring costs where it saves nothing."""
        return -self.tokens["saved"]

    @property
    def list_tokens(self) -> int:
        """What is left of the sum for the tools themselves."""
        return self.tokens["sent"] - self.prompt_tokens - self.search_tool_tokens


def stand_without_session(policy_id: int) -> Standing:
    return Standing(offers.offer_of_policy(policy_id))


def read_answer(policy_id: int, form: ListForm) -> AgentAnswer:
    """`form` is not `auto` any more. Of the list only the beginning is written."""
    standing = stand_without_session(policy_id)
    offer = standing.offer
    own_name = offer.policy.search_tool_name
    prompt = offer.prompt(search_tool.name_in(form, own_name)) if offer.is_active else ""
    has_own_search = offer.is_active and not form.is_hosted
    search_chars = search_tool.count_chars(offer.policy) if has_own_search else 0
    search_tokens = tokens_of(search_chars)
    is_apart = offer.is_active and form.format in {Format.MCP, Format.STUB}
    return AgentAnswer(
        form=form,
        is_active=offer.is_active,
        counts=standing.counts,
        tokens=standing.tokens(form),
        warnings=standing.warnings(form),
        prompt=prompt,
        # Rounded together, so that no part is below nothing and the parts are the sum.
        prompt_tokens=tokens_of(search_chars + len(prompt)) - search_tokens,
        search_tool_tokens=search_tokens,
        search_tool=search_tool.define(form, offer.policy) if is_apart else None,
        sample=read_sample(standing, form),
    )
