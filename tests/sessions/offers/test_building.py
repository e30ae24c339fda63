"""Offers of several policies are built at the same time, and what they share is read once."""

import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any

import pytest

from catalog.domain.policy import Policy
from sessions.offers import definitions, offer_cache
from sessions.offers.offer import Offer
from sessions.offers.rendering.wire import ToolText, write_text
from sessions.offers.versions import Versions

# Past this the threads wait for each other for good.
TIMEOUT_SECONDS = 20
VERSIONS = Versions(policy=1)


def make_offer() -> Offer:
    return Offer(Policy(), VERSIONS, (), {})


def make_text(tool_id: int, digest: str = "d") -> ToolText:
    return write_text(
        id=tool_id,
        digest=digest,
        name=f"t{tool_id}",
        server="s",
        kind="mcp",
        definition={"name": "t"},
        chars=1,
    )


def at_once(*work: Callable[[], Any]) -> list[Any]:
    with ThreadPoolExecutor(len(work)) as threads:
        return [one.result(TIMEOUT_SECONDS) for one in [threads.submit(each) for each in work]]


class TestOffers:
    def test_of_two_policies_are_built_at_the_same_time(self, monkeypatch: pytest.MonkeyPatch) -> None:
        both = threading.Barrier(2)

        def build(policy_id: int) -> tuple[Versions, Offer]:
            both.wait(TIMEOUT_SECONDS)  # breaks where one is built after the other
            return VERSIONS, make_offer()

        monkeypatch.setattr(offer_cache, "_make", build)
        at_once(*(partial(offer_cache.offer_of_policy, policy_id, VERSIONS) for policy_id in (1, 2)))

    def test_of_one_policy_is_built_once_for_all_who_ask(self, monkeypatch: pytest.MonkeyPatch) -> None:
        built: list[int] = []
        asked = threading.Barrier(4)

        def build(policy_id: int) -> tuple[Versions, Offer]:
            built.append(policy_id)
            return VERSIONS, make_offer()

        def ask() -> Offer:
            asked.wait(TIMEOUT_SECONDS)
            return offer_cache.offer_of_policy(1, VERSIONS)

        monkeypatch.setattr(offer_cache, "_make", build)
        offers = at_once(*[ask] * 4)
        assert built == [1]
        assert all(offer is offers[0] for offer in offers)


class TestDefinitions:
    def test_of_different_tools_are_read_at_the_same_time(self, monkeypatch: pytest.MonkeyPatch) -> None:
        both = threading.Barrier(2)

        def read(tool_ids: Sequence[int]) -> dict[int, ToolText]:
            both.wait(TIMEOUT_SECONDS)
            return {tool_id: make_text(tool_id) for tool_id in tool_ids}

        monkeypatch.setattr(definitions, "_read", read)
        first, second = at_once(
            lambda: definitions.read_definitions({1: ("d", "t1")}),
            lambda: definitions.read_definitions({2: ("d", "t2")}),
        )
        assert (list(first), list(second)) == ([1], [2])

    def test_of_the_same_tool_are_read_once_and_shared(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """The second thread asks for two of which one is under way, and reads the other meanwhile."""
        begun, other_read, reads = threading.Event(), threading.Event(), []

        def read(tool_ids: Sequence[int]) -> dict[int, ToolText]:
            reads.append(list(tool_ids))
            if 1 in tool_ids:
                begun.set()
                assert other_read.wait(TIMEOUT_SECONDS)
            else:
                other_read.set()
            return {tool_id: make_text(tool_id) for tool_id in tool_ids}

        def ask_second() -> dict[int, ToolText]:
            assert begun.wait(TIMEOUT_SECONDS)
            return definitions.read_definitions({1: ("d", "t1"), 2: ("d", "t2")})

        monkeypatch.setattr(definitions, "_read", read)
        first, second = at_once(lambda: definitions.read_definitions({1: ("d", "t1")}), ask_second)
        assert reads == [[1], [2]]
        assert second[1] is first[1]
        assert sorted(second) == [1, 2]

    def test_who_waited_in_vain_reads_for_itself(self, monkeypatch: pytest.MonkeyPatch) -> None:
        begun, waiting = threading.Event(), threading.Event()
        wait_for = definitions._wait_for

        def read(tool_ids: Sequence[int]) -> dict[int, ToolText]:
            if not begun.is_set():
                begun.set()
                assert waiting.wait(TIMEOUT_SECONDS)
                raise ConnectionError
            return {tool_id: make_text(tool_id) for tool_id in tool_ids}

        def fail() -> None:
            with pytest.raises(ConnectionError):
                definitions.read_definitions({1: ("d", "t1")})

        def ask() -> dict[int, ToolText]:
            assert begun.wait(TIMEOUT_SECONDS)
            return definitions.read_definitions({1: ("d", "t1")})

        def tell_and_wait(*given: Any) -> dict[int, ToolText]:
            waiting.set()
            return wait_for(*given)

        monkeypatch.setattr(definitions, "_read", read)
        monkeypatch.setattr(definitions, "_wait_for", tell_and_wait)
        assert list(at_once(fail, ask)[1]) == [1]

    def test_tool_that_has_no_row_any_more_is_left_out(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(definitions, "_read", lambda tool_ids: {})
        assert definitions.read_definitions({1: ("d", "t1")}) == {}

    def test_newer_one_than_was_wanted_is_given(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """Who reads a list looks at its version afterwards."""
        monkeypatch.setattr(definitions, "_read", lambda tool_ids: {1: make_text(1, "newer")})
        assert definitions.read_definitions({1: ("d", "t1")})[1].digest == "newer"
