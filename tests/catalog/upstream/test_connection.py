"""References to variables are filled in, and what is shown of a connection holds no value."""

import pytest

from catalog.domain.choices import Transport
from catalog.domain.connection import Connection, FailureCode, UpstreamFailure, resolve
from catalog.domain.references import ReferenceRules

ENVIRONMENT = {"TOKEN": "t0ken", "HOST": "example.org", "EMPTY": ""}


def test_every_part_of_a_connection_is_filled_in() -> None:
    given = Connection(
        Transport.HTTP,
        command="${HOST}",
        args=("--key=${TOKEN}", "plain"),
        env={"A": "${TOKEN}${TOKEN}"},
        url="https://${HOST}/mcp?key=${TOKEN}",
        headers={"Authorization": "Bearer ${TOKEN}"},
    )
    resolved = resolve(given, ENVIRONMENT)
    assert resolved.command == "example.org"
    assert resolved.args == ("--key=t0ken", "plain")
    assert resolved.env == {"A": "t0kent0ken"}
    assert resolved.url == "https://example.org/mcp?key=t0ken"
    assert resolved.headers == {"Authorization": "Bearer t0ken"}


@pytest.mark.parametrize(
    ("text", "filled"),
    [
        ("${MISSING:-fallback}", "fallback"),
        ("${MISSING:-}", ""),
        ("${EMPTY:-fallback}", "fallback"),
        ("${TOKEN:-fallback}", "t0ken"),
        ("$TOKEN ${not a name} $${TOKEN}", "$TOKEN ${not a name} $t0ken"),
    ],
)
def test_a_default_stands_in_for_what_is_unset_or_empty(text: str, filled: str) -> None:
    assert resolve(Connection(Transport.STDIO, args=(text,)), ENVIRONMENT).args == (filled,)


def test_a_value_is_not_looked_into_again() -> None:
    environment = {"OUTER": "${INNER}", "INNER": "x"}
    assert resolve(Connection(Transport.STDIO, args=("${OUTER}",)), environment).args == ("${INNER}",)


@pytest.mark.parametrize("name", ["MISSING", "EMPTY"])
def test_a_variable_without_a_value_is_named(name: str) -> None:
    with pytest.raises(UpstreamFailure, match=f"The variable {name} is not set") as failure:
        resolve(Connection(Transport.STDIO, env={"A": f"${{{name}}}"}), ENVIRONMENT)
    assert failure.value.code is FailureCode.MISSING_VARIABLE


@pytest.mark.parametrize(
    "name",
    [
        *("SECRET_KEY", "SECRET_KEY_FALLBACKS", "TOOLSEARCH_ENCRYPTION_KEY", "TOOLSEARCH_METRICS_TOKEN"),
        *("DATABASE_URL", "CELERY_BROKER_URL", "CACHE_URL"),
    ],
)
def test_the_services_own_secrets_cannot_be_sent_anywhere(name: str) -> None:
    with pytest.raises(UpstreamFailure, match="belongs to this service") as failure:
        resolve(Connection(Transport.HTTP, headers={"X": f"${{{name}:-no}}"}), {name: "canary"})
    assert "canary" not in str(failure.value)


@pytest.mark.parametrize("name", ["POSTGRES_PASSWORD", "PGPASSWORD", "TOOLSEARCH_NODE", "PORT", "DEBUG"])
def test_nor_can_its_other_settings(name: str) -> None:
    with pytest.raises(UpstreamFailure, match="belongs to this service"):
        resolve(Connection(Transport.HTTP, headers={"X": f"${{{name}}}"}), {name: "canary"})


@pytest.mark.parametrize(("own", "value"), [("pa55", "pa55"), ("long-pa55word", "x-long-pa55word-x")])
def test_a_variable_that_holds_a_secret_of_the_service_is_refused_whatever_its_name(
    own: str, value: str
) -> None:
    rules = ReferenceRules(own_values=(own,))
    with pytest.raises(UpstreamFailure, match="DB holds a secret of this service") as failure:
        resolve(Connection(Transport.HTTP, headers={"X": "${DB}"}), {"DB": value}, rules)
    assert own not in str(failure.value)
    assert resolve(Connection(Transport.HTTP, url="${A}"), {"A": "my-pa55"}, rules).url == "my-pa55"


@pytest.mark.parametrize(
    ("allowed", "is_allowed"),
    [(("*",), True), ((), False), (("TOK*",), True), (("TOKEN",), True), (("tok*", "OKEN"), False)],
)
def test_only_allowed_names_are_filled_in(allowed: tuple[str, ...], is_allowed: bool) -> None:
    given, rules = Connection(Transport.HTTP, url="${TOKEN:-x}"), ReferenceRules(allowed=allowed)
    if is_allowed:
        assert resolve(given, ENVIRONMENT, rules).url == "t0ken"
        return
    with pytest.raises(UpstreamFailure, match=r"The variable TOKEN .*TOOLSEARCH_REFERENCES"):
        resolve(given, ENVIRONMENT, rules)


def test_a_connection_shows_names_but_no_values() -> None:
    stdio = Connection(Transport.STDIO, command="npx", args=("canary",), env={"TOKEN": "canary"})
    assert repr(stdio) == "Connection(stdio, 'npx', 1 args, env: TOKEN)"
    http = Connection(
        Transport.HTTP,
        url="https://canary:canary@example.org:8443/canary?k=canary#canary",
        headers={"X-Key": "canary"},
    )
    assert repr(http) == "Connection(http, 'https://example.org:8443', headers: X-Key)"
