"""Processes that share a grant renew it one at a time, and lose it where one dies at the wrong moment.

The authorization server ends a grant when a refresh token comes twice.
"""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.harness.commands import ROOT, run_command
from tests.harness.gateway import wait_until
from tests.harness.instance import own_database
from tests.harness.prepared import prepared
from tests.harness.protected_server import ProtectedServer, run_protected_server

ROUNDS = 100
WITHIN_SECONDS = 90.0
SIGN_IN = """
import sys
from catalog.domain.choices import Transport
from catalog.domain.connection import Connection
from tests.catalog.services.signing_in import add_server, connect, make_admin
connect(add_server(Connection(Transport.HTTP, url={url!r})), make_admin())
"""
# Until a file appears, since only the authorization server knows how often tokens were renewed.
RENEW = """
import json, time
from pathlib import Path
from catalog.models import Server
from catalog.services.access_tokens import fresh_access_token
server, tokens, errors = Server.objects.get(), set(), []
while not Path({end!r}).exists():
    try:
        tokens.add(fresh_access_token(server))
    except Exception as error:
        errors.append(repr(error))
    time.sleep(0.005)
print(json.dumps({{"tokens": len(tokens), "errors": errors}}))
"""
# First while the hold of the one that died lasts, then after it.
GO_ON = """
import json
from datetime import timedelta
from django.utils import timezone
from catalog.domain.connection import UpstreamFailure
from catalog.models import Change, OAuthGrant, Server
from catalog.services import access_tokens
access_tokens.WAIT_SECONDS = 0.5
server, codes = Server.objects.get(), []
def renew():
    try:
        codes.append(access_tokens.fresh_access_token(server))
    except UpstreamFailure as failure:
        codes.append(failure.code)
renew()
assert OAuthGrant.objects.get().held_until > timezone.now()
OAuthGrant.objects.update(held_until=timezone.now() - timedelta(seconds=1))
for _ in range(5):
    renew()
changes = Change.objects.filter(after={"signIn": "reconnect_needed"}).count()
print(json.dumps({"codes": codes, "state": OAuthGrant.objects.get().state, "changes": changes}))
"""

pytestmark = pytest.mark.slow


class Place:
    """A data folder with one server that was signed in to; on PostgreSQL with a database of its own."""

    def __init__(self, data: Path, database_url: str | None) -> None:
        kept = {name: os.environ[name] for name in ("PATH", "HOME", "LANG") if name in os.environ}
        self.environment = kept | {
            "TOOLSEARCH_DATA": str(data),
            "TOOLSEARCH_PRIVATE_ADDRESSES": "on",
            "SECRET_KEY": "the same for all of them " * 3,
        }
        if database_url:
            self.environment["DATABASE_URL"] = database_url
            assert run_command("migrate", "--verbosity", "0", environment=self.environment).returncode == 0

    def run(self, script: str) -> str:
        done = run_command("shell", "--verbosity", "0", "--command", script, environment=self.environment)
        assert done.returncode == 0, done.stderr
        return done.stdout

    @contextmanager
    def start(self, script: str) -> "Iterator[subprocess.Popen[str]]":
        """Beside others, which commands of the harness are not."""
        command = [sys.executable, "manage.py", "shell", "--verbosity", "0", "--command", script]
        with subprocess.Popen(
            command, cwd=ROOT, env=self.environment, stdout=subprocess.PIPE, text=True
        ) as process:
            try:
                yield process
            finally:
                process.kill()


@pytest.fixture
def server() -> Iterator[ProtectedServer]:
    with run_protected_server() as running:
        yield running


@pytest.fixture
def place(tmp_path: Path, server: ProtectedServer) -> Iterator[Place]:
    with own_database() as url:
        made = Place(prepared(tmp_path / "data"), url)
        server.signer.rules.lives = (1, 0, 0, 0)  # what has no life is renewed at every use
        made.run(SIGN_IN.format(url=server.url))
        yield made


def test_two_processes_use_no_refresh_token_twice(
    place: Place, server: ProtectedServer, tmp_path: Path
) -> None:
    """Threat 8."""
    end = tmp_path / "end"
    server.signer.rules.delay_seconds = (0.1, 0.3)
    with ExitStack() as stack:
        script = RENEW.format(end=str(end))
        processes = [stack.enter_context(place.start(script)) for _ in range(2)]
        wait_until(lambda: server.signer.rotations >= ROUNDS or server.signer.errors, WITHIN_SECONDS)
        end.touch()
        told: list[dict[str, Any]] = [json.loads(process.communicate()[0]) for process in processes]
    assert [one["errors"] for one in told] == [[], []]
    assert (server.signer.errors, server.signer.reuses) == ([], 0)
    assert server.signer.rotations == server.signer.count("/token") - 1 >= ROUNDS
    assert min(one["tokens"] for one in told) > ROUNDS / 10


def test_one_that_dies_with_the_new_token_takes_the_grant_along(
    place: Place, server: ProtectedServer
) -> None:
    """Threat 8: it is told, and nobody tries for ever."""
    server.signer.rules.delay_seconds = (60, 60)
    with place.start(RENEW.format(end="/nowhere")) as process:
        assert server.signer.has_rotated.wait(WITHIN_SECONDS)
        process.kill()
    server.signer.rules.delay_seconds = (0, 0)
    requests = server.signer.count("/token")
    told = json.loads(place.run(GO_ON))
    assert told["codes"] == ["sign_in_server_down", *["reconnect_needed"] * 5]
    assert (told["state"], told["changes"]) == ("reconnect_needed", 1)
    assert server.signer.count("/token") == requests + 1
    assert server.signer.reuses == 1
