"""What servers offer beside tools: lists of resources, templates and prompts, validated one by one."""

import json
from collections.abc import Container, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from mcp_types import Prompt, Resource, ResourceTemplate
from pydantic import BaseModel

from catalog.domain.connection import Features, JsonObject, Limits, Rejected
from catalog.domain.limits import ADDRESS_CHARS
from catalog.upstream.masking import holds_secret, mask_within
from catalog.upstream.wire_checks import (
    Unfit,
    check_extent,
    check_name,
    check_shape,
    check_text,
    name_of,
    take_known_fields,
)

_SHARED_FIELDS = ("name", "title", "description", "icons", "_meta")
_RESOURCE_FIELDS = (*_SHARED_FIELDS, "mimeType", "annotations")


class Listed(NamedTuple):
    """What a server has listed, not validated yet, by the names that MCP has for the lists."""

    lists: Mapping[str, Sequence[object]]
    completes: bool


class _Grammar(NamedTuple):
    """How definitions of one list look; `key` is the field that requests name one by."""

    word: str
    model: type[BaseModel]
    key: str
    fields: tuple[str, ...]


_GRAMMARS: Mapping[str, _Grammar] = {
    "resources": _Grammar("resource", Resource, "uri", (*_RESOURCE_FIELDS, "uri", "size")),
    "resourceTemplates": _Grammar(
        "resource template", ResourceTemplate, "uriTemplate", (*_RESOURCE_FIELDS, "uriTemplate")
    ),
    "prompts": _Grammar("prompt", Prompt, "name", (*_SHARED_FIELDS, "arguments")),
}
LISTS = tuple(_GRAMMARS)


class _Sifter:
    """Takes valid definitions, of all lists together as many bytes as a server may have."""

    def __init__(self, limits: Limits, secrets: Sequence[str]) -> None:
        self._limits = limits
        self._secrets = secrets
        self._left_bytes = limits.max_features_bytes
        self.rejected: list[Rejected] = []

    def sift(self, name: str, given: Sequence[object]) -> tuple[JsonObject, ...]:
        grammar, kept = _GRAMMARS[name], dict[str, JsonObject]()
        for position, candidate in enumerate(given[: self._limits.max_features]):
            shown = self._show(candidate, grammar)
            try:
                definition = self._judge(candidate, shown, grammar)
                self._admit(definition, grammar, kept)
            except Unfit as unfit:
                named = f"{grammar.word} {name_of(shown, position)}"
                self.rejected.append(Rejected(named, str(unfit), position))
                continue
            kept[definition[grammar.key]] = definition
        if len(given) > self._limits.max_features:
            self.rejected.append(Rejected(name, f"only the first {self._limits.max_features:,} are kept"))
        return tuple(kept.values())

    def _show(self, candidate: object, grammar: _Grammar) -> object:
        known = take_known_fields(candidate, grammar.fields)
        return mask_within(known, secrets=self._secrets) if self._secrets else known

    def _judge(self, candidate: object, shown: object, grammar: _Grammar) -> JsonObject:
        if not isinstance(candidate, dict) or not isinstance(shown, dict):
            raise Unfit("it is not an object")
        check_extent(shown)
        check_text(shown, self._limits)
        check_name(shown.get("name"))
        check_shape(grammar.model, shown)
        if not 0 < len(shown[grammar.key]) <= ADDRESS_CHARS:
            raise Unfit(f"its {grammar.key} is empty or longer than {ADDRESS_CHARS:,} characters")
        if holds_secret(_names_in(candidate, grammar), secrets=self._secrets):
            raise Unfit("what it is asked for by holds a secret of its server")
        return shown

    def _admit(self, definition: JsonObject, grammar: _Grammar, kept: Container[str]) -> None:
        if definition[grammar.key] in kept:
            raise Unfit(f"another {grammar.word} of this server has the same {grammar.key}")
        size_bytes = len(json.dumps(definition, ensure_ascii=False).encode())
        if size_bytes > self._left_bytes:
            most = self._limits.max_features_bytes
            raise Unfit(f"all of them together would have more than the {most:,} bytes allowed")
        self._left_bytes -= size_bytes


def judge_features(
    listed: Listed, limits: Limits, *, secrets: Sequence[str]
) -> tuple[Features, tuple[Rejected, ...]]:
    """The valid definitions with secrets masked, and what is left out with the reasons.

    A secret in what requests name a definition by leaves it out: masked, it could not be asked for.
    """
    sifter = _Sifter(limits, secrets)
    resources, templates, prompts = (sifter.sift(name, listed.lists.get(name, ())) for name in LISTS)
    return Features(resources, templates, prompts, listed.completes), tuple(sifter.rejected)


def _names_in(candidate: Mapping[str, Any], grammar: _Grammar) -> Iterator[str]:
    yield candidate["name"]
    yield candidate[grammar.key]
    for argument in candidate.get("arguments") or ():
        yield argument["name"]
