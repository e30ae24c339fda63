"""Starts the authorization server of tests/servers/oidc_provider.mjs, which is somebody else's make.

with run_oidc_provider(resource="http://127.0.0.1:9/mcp", access_seconds=3) as provider:
    provider.issuer, provider.find_scopes(token), provider.withdraw()
"""

import json
import shutil
import subprocess
import urllib.request
from base64 import b64encode
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from urllib.parse import urlencode

from tests.harness.workers import find_free_port
from tests.servers.installed import INSTALLED, ROOT, require_installed

SCRIPT = ROOT / "tests" / "servers" / "oidc_provider.mjs"
_INTROSPECTS = b64encode(b"mcp-server:introspects-tokens").decode()


@dataclass(frozen=True)
class OidcProvider:
    issuer: str

    def find_scopes(self, token: str) -> frozenset[str] | None:
        """What a token allows; None for one that is not good, or not any more."""
        told = json.loads(self._post("/token/introspection", {"token": token}))
        return frozenset(told.get("scope", "").split()) if told["active"] else None

    def withdraw(self) -> None:
        """As somebody does in their account there: every grant ends."""
        self._post("/withdraw", {})

    def count_renewals(self) -> int:
        with urllib.request.urlopen(f"{self.issuer}/renewals", timeout=10) as answer:
            return int(answer.read())

    def _post(self, path: str, form: dict[str, str]) -> bytes:
        request = urllib.request.Request(
            f"{self.issuer}{path}",
            data=urlencode(form).encode(),
            headers={"Authorization": f"Basic {_INTROSPECTS}"},
        )
        with urllib.request.urlopen(request, timeout=10) as answer:
            read: bytes = answer.read()
        return read


@contextmanager
def run_oidc_provider(resource: str, access_seconds: int) -> Iterator[OidcProvider]:
    """For one MCP server, whose tokens live for so long."""
    require_installed()
    port = find_free_port()
    command = [shutil.which("node") or "node", str(SCRIPT), str(port), resource, str(access_seconds)]
    with subprocess.Popen(
        command,
        cwd=INSTALLED / "npm",
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,  # it warns that it is not fit for production
        text=True,
    ) as process:
        try:
            assert process.stdout
            assert process.stdout.readline() == "listening\n"
            yield OidcProvider(f"http://127.0.0.1:{port}")
        finally:
            process.kill()
