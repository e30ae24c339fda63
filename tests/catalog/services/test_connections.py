"""A server's secrets are encrypted with the newest key and decrypted with every key that is kept."""

from collections.abc import Callable
from typing import Any

import pytest
from cryptography.fernet import Fernet
from django.core.management import call_command
from pytest_django import Settings

from catalog.domain.choices import Transport
from catalog.domain.connection import Connection
from catalog.models import OAuthAttempt, OAuthClient, OAuthGrant, Server
from catalog.sealing import SealBroken
from catalog.services import connections, oauth_rows
from catalog.services.oauth_rows import GrantSecrets
from tests.catalog.services.signing_in import add_server, begin, connect, grant_of, make_admin
from tests.harness.protected_server import run_protected_server
from tests.harness.rows import make_server

pytestmark = pytest.mark.django_db

HTTP = Connection(
    Transport.HTTP,
    url="https://user:pass-canary@mcp.example.com/path?key=query-canary#part",
    headers={"Authorization": "Bearer header-canary"},
)


def store(connection: Connection) -> Server:
    server = make_server(transport="http", url="https://mcp.example.com")
    connections.write_connection(server, connection)
    server.save()
    return Server.objects.get(pk=server.pk)


def test_connection_comes_back_whole_and_shows_no_secret() -> None:
    server = store(HTTP)
    assert connections.read_connection(server) == HTTP
    assert server.url == "https://mcp.example.com/path"
    assert "canary" not in str(list(Server.objects.values()))


def test_token_in_the_path_is_not_shown() -> None:
    url = "https://mcp.example.com/s/ghp_0123456789abcdefABCDEF0123456789abcd/mcp"
    server = store(Connection(Transport.HTTP, url=url))
    assert "ghp_" not in server.url
    assert connections.read_connection(server).url == url


def test_nothing_secret_seals_nothing() -> None:
    assert store(Connection(Transport.HTTP, url="https://mcp.example.com/path")).sealed == ""


def test_old_key_opens_until_it_is_dropped_after_rotation(settings: Settings) -> None:
    old, new = (Fernet.generate_key().decode() for _ in range(2))
    settings.ENCRYPTION_KEYS = (old,)
    server = store(HTTP)
    settings.ENCRYPTION_KEYS = (new, old)
    assert connections.read_connection(server) == HTTP
    call_command("rotate_secrets", verbosity=0)
    settings.ENCRYPTION_KEYS = (new,)
    assert connections.read_connection(Server.objects.get()) == HTTP
    with pytest.raises(SealBroken):
        connections.read_connection(server)


def test_rotation_is_of_sign_ins_too(settings: Settings) -> None:
    old, new = (Fernet.generate_key().decode() for _ in range(2))
    settings.ENCRYPTION_KEYS = (old,)
    with run_protected_server() as place:
        place.signer.rules.methods = ("client_secret_basic",)
        server, admin = add_server(place.connection()), make_admin()
        connect(server, admin)
        begin(server, admin)
    client, grant, attempt = OAuthClient.objects.get(), grant_of(server), OAuthAttempt.objects.get()
    before = (
        oauth_rows.read_client_secret(client),
        oauth_rows.read_grant(grant),
        oauth_rows.read_attempt(attempt),
    )
    settings.ENCRYPTION_KEYS = (new, old)
    call_command("rotate_secrets", verbosity=0)
    settings.ENCRYPTION_KEYS = (new,)
    for row in (client, grant, attempt):
        row.refresh_from_db()
    assert oauth_rows.read_client_secret(client) == before[0] != ""
    assert oauth_rows.read_grant(grant) == before[1] != GrantSecrets()
    assert oauth_rows.read_attempt(attempt).request == before[2].request


def test_sealed_columns_of_sign_ins_are_for_their_own_rows() -> None:
    with run_protected_server() as place:
        place.signer.rules.methods = ("client_secret_basic",)
        admin = make_admin()
        for name in ("one", "two"):
            server = add_server(place.connection(), name)
            connect(server, admin)
            begin(server, admin)
    readers: dict[Any, Callable[[Any], object]] = {
        OAuthClient: oauth_rows.read_client_secret,
        OAuthGrant: oauth_rows.read_grant,
        OAuthAttempt: oauth_rows.read_attempt,
    }
    for model, read in readers.items():
        one, two = model._default_manager.order_by("pk")
        read(two)
        two.sealed = one.sealed
        with pytest.raises(SealBroken, match="belongs to another row"):
            read(two)
