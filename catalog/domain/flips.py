"""Compares two sets of decisions: which tools flip, and the tokens before and after."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from catalog.domain.choices import Outcome
from catalog.domain.decide import Decided, Decision
from catalog.domain.sizes import tokens_of


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
    """`to_defer` counts tools that no longer load, hidden ones included; `tokens` is the change in what is
    sent.
    """

    server: str
    to_load: int
    to_defer: int
    tokens: int


@dataclass(frozen=True, slots=True)
class DryRun:
    """Tokens are those of the definitions sent in full."""

    flips: tuple[Flip, ...]
    servers: tuple[ServerFlips, ...]
    tokens_before: int
    tokens_after: int


def compare(before: Decided, after: Decided, chars: Mapping[str, int | None]) -> DryRun:
    """Find what flips between two sets of decisions; `chars` gives a definition's size by qualified name."""
    old = {decision.name: decision for decision in before.decisions}
    new = {decision.name: decision for decision in after.decisions}
    flips = tuple(
        _flip(name, old.get(name), new.get(name), chars)
        for name in sorted({*old, *new})
        if _outcome(old.get(name)) != _outcome(new.get(name))
    )
    return DryRun(
        flips, _sum_by_server(flips, chars), _tokens(old.values(), chars), _tokens(new.values(), chars)
    )


def _flip(
    name: str, before: Decision | None, after: Decision | None, chars: Mapping[str, int | None]
) -> Flip:
    shown = after or before
    return Flip(name, shown.server if shown else "", tokens_of(chars.get(name) or 0), before, after)


def _sum_by_server(flips: Iterable[Flip], chars: Mapping[str, int | None]) -> tuple[ServerFlips, ...]:
    groups: dict[str, list[Flip]] = {}
    for flip in flips:
        groups.setdefault(flip.server, []).append(flip)
    return tuple(_sum_server(server, group, chars) for server, group in sorted(groups.items()))


def _sum_server(server: str, flips: list[Flip], chars: Mapping[str, int | None]) -> ServerFlips:
    gained = [flip.after for flip in flips if _loads(flip.after)]
    lost = [flip.before for flip in flips if _loads(flip.before)]
    return ServerFlips(server, len(gained), len(lost), _tokens(gained, chars) - _tokens(lost, chars))


def _tokens(decisions: Iterable[Decision | None], chars: Mapping[str, int | None]) -> int:
    return tokens_of(sum(chars.get(each.name) or 0 for each in decisions if each and _loads(each)))


def _loads(decision: Decision | None) -> bool:
    return _outcome(decision) == Outcome.LOAD


def _outcome(decision: Decision | None) -> Outcome | None:
    return decision.outcome if decision else None
