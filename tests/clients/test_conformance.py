"""The official conformance suite, against a server with all it asks for, and through the gateway."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.clients.agent_programs import require_installed
from tests.clients.conformance import (
    REVISIONS,
    find_failures,
    read_baseline,
    scenarios_of,
)
from tests.clients.gateway import CONFORMANCE, Gateway
from tests.clients.key_proxy import running_proxy

pytestmark = pytest.mark.clients


@pytest.fixture(scope="module")
def gateway_address(gateway: Gateway) -> Iterator[str]:
    """The gateway as the suite can ask it: without a key, with one server's tools by their own names."""
    with running_proxy(f"{gateway.url}?expose=native&names=own", gateway.keys[CONFORMANCE]) as proxy:
        yield proxy


@pytest.mark.parametrize("revision", REVISIONS)
def test_server_alone_passes_everything(conformance_server: str, revision: str, tmp_path: Path) -> None:
    assert find_failures(conformance_server, revision, tmp_path) == {}


@pytest.mark.parametrize("revision", REVISIONS)
def test_through_the_gateway_fails_what_the_baseline_names(
    gateway_address: str, revision: str, tmp_path: Path
) -> None:
    expected = set(read_baseline()[revision])
    failures = find_failures(gateway_address, revision, tmp_path, expected=expected)
    unexpected = [f"{name}: {found}" for name, found in sorted(failures.items()) if name not in expected]
    assert not unexpected, "\n".join(["scenarios fail that the baseline does not name:", *unexpected])
    assert not expected - set(failures), "scenarios of the baseline pass: take them out of it"


def test_baseline_names_scenarios_with_reasons() -> None:
    require_installed()
    for revision in REVISIONS:
        named = read_baseline()[revision]
        assert set(named) <= scenarios_of(revision)
        assert all(named.values())
