"""The official conformance suite's sign-in scenarios for clients, with this service as the client."""

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import yaml

from catalog.domain.choices import AuthState
from catalog.domain.connection import FailureCode
from catalog.models.oauth import ClientSource
from tests.clients.agent_programs import NODE, ROOT, require_installed
from tests.clients.conformance import SUITE, SUITE_SECONDS
from tests.harness.prepared import prepare_once

pytestmark = pytest.mark.clients

COMMAND = Path(__file__).parent / "scripts" / "auth_command.py"
REVISION = "2026-07-28"
TIMEOUT_MS = 60_000  # for the client
REGISTERED, GIVEN, DOCUMENT = ClientSource.REGISTERED, ClientSource.GIVEN, ClientSource.DOCUMENT
BY_REGISTRATION = (
    *("metadata-default", "metadata-var1", "metadata-var2", "metadata-var3"),
    *("scope-from-www-authenticate", "scope-from-scopes-supported", "scope-omitted-when-undefined"),
    *("token-endpoint-auth-basic", "token-endpoint-auth-post", "token-endpoint-auth-none"),
    *("offline-access-scope", "offline-access-not-supported", "iss-supported", "iss-not-advertised"),
)
# How the client is known in each, and how often somebody signs in until a tool can be called.
PASSES = {
    **dict.fromkeys(BY_REGISTRATION, (REGISTERED, 1)),
    "basic-cimd": (DOCUMENT, 1),
    "pre-registration": (GIVEN, 1),
    "client-credentials-basic": (GIVEN, 1),
    "client-credentials-jwt": (GIVEN, 1),
    "scope-step-up": (REGISTERED, 2),
    "authorization-server-migration": (REGISTERED, 2),
}
UNUSABLE = FailureCode.SIGN_IN_UNUSABLE
ANOTHER_SENDER = (UNUSABLE, "The answer does not come from the sign-in server at localhost:")
# Why the service goes no further, with some of its own words, and after how many sign-ins were begun.
REFUSES = {
    "resource-mismatch": (UNUSABLE, "is of another server, evil.example.com: it was not used", 1),
    "metadata-issuer-mismatch": (UNUSABLE, "says that it is another issuer: sign-in was refused", 1),
    "iss-supported-missing": (*ANOTHER_SENDER, 1),
    "iss-wrong-issuer": (*ANOTHER_SENDER, 1),
    "iss-unexpected": (*ANOTHER_SENDER, 1),
    "iss-normalized": (*ANOTHER_SENDER, 1),
    "scope-retry-limit": (FailureCode.SCOPE_NEEDED, "more rights than its sign-in has (mcp:admin)", 3),
}
# Extensions of the protocol that this service does not have.
NOT_COVERED = ("enterprise-managed-authorization", "dpop", "dpop-nonce", "wif-jwt-bearer")
# Servers that do not say who signs people in for them, and one that describes nothing at all.
OLDEST_REVISION = "2025-03-26"
OLDEST = ("2025-03-26-oauth-metadata-backcompat", "2025-03-26-oauth-endpoint-fallback")
SCOPES = {
    "scope-step-up": ["mcp:basic", "mcp:write"],
    "offline-access-scope": ["mcp:basic", "offline_access"],
    "scope-omitted-when-undefined": [],
}


@dataclass(frozen=True, slots=True)
class Outcome:
    """What the suite complains of, and what the client says of its way."""

    complaints: list[str]
    told: dict[str, Any]


@pytest.fixture(scope="module")
def client_port(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Where the client waits for commands, on an instance with its tables and nothing in them."""
    require_installed()
    folder = tmp_path_factory.mktemp("instance")
    shutil.copy(prepare_once() / "toolsearch.sqlite3", folder)
    environment = {"PATH": os.environ["PATH"], "TOOLSEARCH_DATA": str(folder)}
    command = [sys.executable, "-m", "tests.clients.auth_client"]
    with subprocess.Popen(command, cwd=ROOT, env=environment, stdout=subprocess.PIPE, text=True) as client:
        try:
            assert client.stdout is not None
            port = client.stdout.readline().strip()
            assert port, "the client did not start"
            yield port
        finally:
            client.terminate()


@pytest.mark.parametrize("scenario", PASSES)
def test_signs_in_and_calls_a_tool(scenario: str, client_port: str, tmp_path: Path) -> None:
    outcome = run_scenario(scenario, client_port, tmp_path)
    source, sign_ins = PASSES[scenario]
    assert outcome.complaints == []
    assert outcome.told["result"]["content"] == [{"type": "text", "text": "test"}]
    assert (outcome.told["client"], outcome.told["sign_ins"]) == (source, sign_ins)
    assert outcome.told["state"] == AuthState.CONNECTED
    if scenario in SCOPES:
        assert outcome.told["scopes"] == SCOPES[scenario]


@pytest.mark.parametrize("scenario", OLDEST)
def test_signs_in_to_servers_of_the_oldest_revision(scenario: str, client_port: str, tmp_path: Path) -> None:
    outcome = run_scenario(scenario, client_port, tmp_path, revision=OLDEST_REVISION)
    assert outcome.complaints == []
    assert (outcome.told["state"], outcome.told["client"]) == (AuthState.CONNECTED, REGISTERED)


@pytest.mark.parametrize("scenario", REFUSES)
def test_goes_no_further_for_the_right_reason(scenario: str, client_port: str, tmp_path: Path) -> None:
    outcome = run_scenario(scenario, client_port, tmp_path)
    code, words, sign_ins = REFUSES[scenario]
    assert outcome.complaints == []
    assert outcome.told["code"] == code, outcome.told
    assert words in outcome.told["message"]
    assert outcome.told["sign_ins"] == sign_ins


def test_every_scenario_of_the_revision_is_named() -> None:
    require_installed()
    asked = yaml.safe_load((SUITE / "requirements" / f"{REVISION}.yaml").read_text())
    beside = [item["scenario"] for item in asked["not_scored"] if item["leg"] == "client"]
    known = {name.removeprefix("auth/") for name in (*asked["client"], *beside) if name.startswith("auth/")}
    assert known == {*PASSES, *REFUSES, *NOT_COVERED}


def run_scenario(name: str, client_port: str, folder: Path, *, revision: str = REVISION) -> Outcome:
    client = f"{sys.executable} -I -S {COMMAND} {client_port}"
    command = (NODE, SUITE / "dist" / "index.js", "client", "--command", client, "--output-dir", folder)
    # An extension belongs to no revision: forced, it runs at this one.
    options = ("--scenario", f"auth/{name}", "--spec-version", revision, "--force", "--timeout", TIMEOUT_MS)
    done = subprocess.run(
        [str(part) for part in (*command, *options)],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
        timeout=SUITE_SECONDS,
    )
    found = next(folder.glob("auth/*/checks.json"), None)
    assert found, done.stdout
    bad = [check for check in json.loads(found.read_text()) if check["status"] in {"FAILURE", "WARNING"}]
    complaints = [f"{check['id']}: {check['description']}" for check in bad]
    told = json.loads(found.with_name("stdout.txt").read_text() or "{}")
    assert "broken" not in told, told["broken"]
    # Its verdict counts how the client ended, too.
    assert complaints or done.returncode == 0, done.stdout
    return Outcome(complaints, told)
