"""The page about the gateway has every client's set-up as the console shows it, and names what is there."""

import re

import pytest

from catalog.domain import limits
from catalog.domain.policy import Policy
from catalog.domain.upstream_calls import PoolLimits
from sessions.domain.gateway_clients import CLIENTS, KnownClient
from sessions.domain.gateway_names import DEFAULT_SEARCH_TOOL, FIXED_NAMES, MAX_CHARS
from sessions.domain.snippets import KEY_PLACEHOLDER
from sessions.models import CallOutcome
from tests.harness.instance import ROOT

PAGE = (ROOT / "docs/gateway.md").read_text()
ADDRESS = "http://127.0.0.1:8001/mcp"
WORDS_IN_FIVE_MINUTES = 1500


@pytest.mark.parametrize("client", CLIENTS, ids=[client.slug for client in CLIENTS])
def test_every_client_has_its_set_up(client: KnownClient) -> None:
    found = re.search(rf"<summary><b>{client.label}</b>(.*?)</details>", PAGE, re.DOTALL)
    assert found, client.label
    for fact in (client.tried, client.speaks, client.notes, client.check):
        assert fact in found[1]
    for way in client.ways:
        filled = way.fill(address=ADDRESS, key=KEY_PLACEHOLDER, query="create an issue")
        assert f"\n{filled.text}```" in found[1]
        assert filled.before in found[1]
        assert way.file in found[1]


@pytest.mark.parametrize("word", [DEFAULT_SEARCH_TOOL, *FIXED_NAMES, *CallOutcome.values])
def test_every_word_of_ours_is_explained(word: str) -> None:
    assert re.search(rf"^\| .*`{word}`", PAGE, re.MULTILINE)


def test_numbers_are_those_in_force() -> None:
    policy, pool = Policy(), PoolLimits()
    for number, what in (
        (policy.call_timeout_seconds, "`call_timeout_seconds`, {}"),
        (policy.max_result_tokens, "`max_result_tokens`, {}"),
        (limits.KEPT_RESULT_SECONDS // 60, "encrypted for {} minutes"),
        (limits.KEPT_RESULT_BYTES // 2**20, "at most {} MiB each"),
        (limits.KEPT_RESULTS_OF_A_KEY, "{} a key, in no backup"),
        (limits.GATEWAY_BODY_BYTES // 2**20, "from a server | {} MiB"),
        (limits.MESSAGE_BYTES // 2**20, ", {} MiB |"),
        (limits.GATEWAY_OPEN_CALLS, "| {} each for a key"),
        (limits.GATEWAY_OPEN_STREAMS, "| {} each for a key"),
        (limits.GATEWAY_PAGE_ENTRIES, "every tool, {} to a page"),
        (limits.GATEWAY_DESCRIBED_NAMES, "definitions of up to {} tools"),
        (MAX_CHARS, "at most {} characters"),
        (pool.per_key, "in one process {} for a key"),
        (pool.per_server, "{} for a server"),
        (pool.total, "{} in all"),
        (pool.commands, "{} of them programs"),
    ):
        assert what.format(f"{number:,}") in PAGE, what


def test_page_is_read_in_five_minutes() -> None:
    """Of the clients a reader opens one."""
    prose = re.sub(r"<details>.*?</details>", "", PAGE, flags=re.DOTALL)
    assert len(prose.split()) < WORDS_IN_FIVE_MINUTES
