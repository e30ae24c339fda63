"""Compares two sets of decisions: which tools change, and what that adds to the definitions sent."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from catalog.domain.choices import Outcome
from catalog.domain.decide import Decided, Decision
from catalog.domain.sizes import split_tokens, tokens_of


@dataclass(frozen=True, slots=True)
class Flip:
    """A tool whose outcome changes. `before` or `after` is None where the tool is not visible."""

    name: str
    server: str
    tokens: int
    before: Decision | None
    after: Decision | None


@dataclass(frozen=True, slots=True)
class ServerFlips:
    """`to_defer` counts tools that no longer load, hidden ones included; `tokens` is the change in the
    definitions sent.
    """

    server: str
    to_load: int
    to_defer: int
    tokens: int


@dataclass(frozen=True, slots=True)
class DryRun:
    """`flips` are in order of names; `servers` by the size of the change, the largest first."""

    flips: tuple[Flip, ...]
    servers: tuple[ServerFlips, ...]


def compare(before: Decided, after: Decided, chars: Mapping[str, int | None]) -> DryRun:
    """Find what changes between two sets of decisions; `chars` gives each definition's size by name."""
    old = {decision.name: decision for decision in before.decisions}
    new = {decision.name: decision for decision in after.decisions}
    flips = tuple(
        _flip(name, old.get(name), new.get(name), chars)
        for name in sorted({*old, *new})
        if _outcome(old.get(name)) != _outcome(new.get(name))
    )
    sent_before = sum(chars.get(decision.name) or 0 for decision in old.values() if _loads(decision))
    return DryRun(flips, _sum_by_server(flips, chars, sent_before))


def _flip(
    name: str, before: Decision | None, after: Decision | None, chars: Mapping[str, int | None]
) -> Flip:
    shown = after or before
    return Flip(name, shown.server if shown else "", tokens_of(chars.get(name) or 0), before, after)


def _sum_by_server(
    flips: Iterable[Flip], chars: Mapping[str, int | None], sent_before: int
) -> tuple[ServerFlips, ...]:
    """Rounded together: the servers' tokens add up to the difference of what is sent."""
    groups: dict[str, list[Flip]] = {}
    for flip in flips:
        groups.setdefault(flip.server, []).append(flip)
    added = {server: _added_chars(group, chars) for server, group in groups.items()}
    servers = sorted(groups, key=lambda server: (-abs(added[server]), server))
    tokens = split_tokens((added[server] for server in servers), before=sent_before)
    return tuple(
        ServerFlips(
            server,
            to_load=sum(_loads(flip.after) for flip in groups[server]),
            to_defer=sum(_loads(flip.before) for flip in groups[server]),
            tokens=of_server,
        )
        for server, of_server in zip(servers, tokens, strict=True)
    )


def _added_chars(flips: Iterable[Flip], chars: Mapping[str, int | None]) -> int:
    """The characters of definitions sent now and not before, less those that are sent no more."""
    return sum((_loads(flip.after) - _loads(flip.before)) * (chars.get(flip.name) or 0) for flip in flips)


def _loads(decision: Decision | None) -> bool:
    return _outcome(decision) == Outcome.LOAD


def _outcome(decision: Decision | None) -> Outcome | None:
    return decision.outcome if decision else None
