"""What the tests with real clients share: one instance with a gateway, and the servers behind it."""

from collections.abc import Iterator

import pytest

from tests.clients import agent_programs
from tests.clients.conformance import running_conformance_server
from tests.clients.gateway import Gateway, gateway_with_servers
from tests.servers import installed


@pytest.fixture(scope="package")
def conformance_server() -> Iterator[str]:
    agent_programs.require_installed()
    with running_conformance_server() as address:
        yield address


@pytest.fixture(scope="package")
def gateway(conformance_server: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Gateway]:
    installed.require_installed()
    with gateway_with_servers(tmp_path_factory.mktemp("gateway"), conformance_server) as running:
        yield running
