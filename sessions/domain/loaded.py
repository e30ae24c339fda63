"""The loaded tools of a session: loading, use and unloading. Pure; tools are in load order."""

from collections.abc import Collection, Sequence
from typing import NamedTuple

from catalog.domain.policy import Policy


class Loaded(NamedTuple):
    """A tool that a search loaded. `used_turn` is the last turn that loaded, found or called it.

    `used_order` grows with every use in the session, and so orders uses within a turn.
    """

    name: str
    loaded_turn: int
    used_turn: int
    used_order: int = 0


LoadedTools = tuple[Loaded, ...]
# What of it is stored, each under its own name and in this order.
STORED = Loaded._fields


def load(loaded: LoadedTools, names: Sequence[str], *, turn: int, most: int | None) -> LoadedTools:
    """Add tools that are not loaded yet, best first, and mark the others as used.

    Past `most`, the least recently used are unloaded first; those that this search found, last.
    """
    known = {tool.name for tool in loaded}
    found = names if most is None else names[:most]
    order = _next_order(loaded)
    added = tuple(Loaded(name, turn, turn, order) for name in dict.fromkeys(found) if name not in known)
    return _keep_most((*use(loaded, found, turn=turn), *added), most, keep=frozenset(found))


def use(loaded: LoadedTools, names: Collection[str], *, turn: int) -> LoadedTools:
    order = _next_order(loaded)
    return tuple(
        tool._replace(used_turn=turn, used_order=order) if tool.name in names else tool for tool in loaded
    )


def unload(loaded: LoadedTools, names: Collection[str]) -> LoadedTools:
    return tuple(tool for tool in loaded if tool.name not in names)


def end_turn(loaded: LoadedTools, policy: Policy, *, turn: int) -> LoadedTools:
    """The tools that stay loaded after a turn under the policy's rules."""
    if not policy.keep_loaded_tools:
        return ()
    idle = policy.unload_after_idle_turns
    kept = loaded if idle is None else tuple(tool for tool in loaded if turn - tool.used_turn < idle)
    return _keep_most(kept, policy.max_loaded_tools, keep=frozenset())


def _keep_most(loaded: LoadedTools, most: int | None, *, keep: frozenset[str]) -> LoadedTools:
    if most is None or len(loaded) <= most:
        return loaded
    places = range(len(loaded))
    by_use = sorted(places, key=lambda place: (loaded[place].name in keep, loaded[place].used_order, place))
    gone = set(by_use[: len(loaded) - most])
    return tuple(tool for place, tool in enumerate(loaded) if place not in gone)


def _next_order(loaded: LoadedTools) -> int:
    return max((tool.used_order for tool in loaded), default=0) + 1
