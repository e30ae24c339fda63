"""Runs the official conformance suite against an address, and the server that has all it asks for."""

import json
import os
import re
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import yaml

from tests.clients.agent_programs import NODE, PACKAGES, ROOT
from tests.harness.instance import wait_for
from tests.harness.workers import find_free_port

SUITE = PACKAGES / "@modelcontextprotocol" / "conformance"
BASELINE = Path(__file__).with_name("conformance_baseline.json")
REVISIONS = ("2026-07-28", "2025-11-25")
SUITE_SECONDS = 120
RESULT = re.compile(r"server-(.+)-\d{4}-\d{2}-\d{2}T[\d-]+Z")


def read_baseline() -> Mapping[str, Mapping[str, str]]:
    """The scenarios that fail through the gateway, by revision, each with its reason."""
    return json.loads(BASELINE.read_text())  # type: ignore[no-any-return]


def scenarios_of(revision: str) -> set[str]:
    """What a revision asks of servers, and what the suite runs beside it; no extensions of the protocol."""
    asked = yaml.safe_load((SUITE / "requirements" / f"{revision}.yaml").read_text())
    beside = {
        item["scenario"]
        for item in asked["not_scored"]
        if item["leg"] == "server" and item["reason"] != "extension"
    }
    return set(asked["server"]) | beside


def find_failures(url: str, revision: str, folder: Path, *, expected: Collection[str] = ()) -> dict[str, str]:
    """The scenarios that fail, each with what the suite says. One that should not is asked again by itself:
    the suite gives some answers half a second, and a busy machine may need more for the first.
    """
    results = _run(url, folder / "all", "--requirements", revision)
    missing = scenarios_of(revision) - set(results)
    assert not missing, f"the suite did not run {sorted(missing)}"
    failures = {name: results[name] for name in scenarios_of(revision) if results[name]}
    for name in set(failures).difference(expected):
        again = ("--scenario", name, "--spec-version", revision)
        failures[name] = _run(url, folder / "again", *again)[name]
    return {name: found for name, found in failures.items() if found}


def _run(url: str, folder: Path, *options: str) -> dict[str, str]:
    """Each scenario's failed checks, as one text; empty where none failed."""
    command = [NODE, SUITE / "dist" / "index.js", "server", "--url", url, "--output-dir", folder, *options]
    done = subprocess.run(
        [str(part) for part in command],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
        timeout=SUITE_SECONDS,
    )
    found = {
        match[1]: _failed_checks(path) for path in folder.glob("*") if (match := RESULT.fullmatch(path.name))
    }
    assert found, f"the suite has no results:\n{done.stdout[-3000:]}"
    return found


def _failed_checks(folder: Path) -> str:
    checks = json.loads((folder / "checks.json").read_text())
    failed = [check for check in checks if check["status"] == "FAILURE"]
    return "; ".join(f"{check['id']}: {check.get('errorMessage', 'no message')[:300]}" for check in failed)


@contextmanager
def running_conformance_server() -> Iterator[str]:
    """The address of the server with everything that the suite asks for."""
    port = find_free_port()
    application = "tests.clients.conformance_server:application"
    options = ("--interface", "asgi", "--host", "127.0.0.1", "--port", str(port), "--no-log", "--no-ws")
    process = subprocess.Popen(
        [sys.executable, "-m", "granian", *options, application],
        cwd=ROOT,
        env={"PATH": os.environ["PATH"], "PYTHONWARNINGS": "ignore"},
        stdin=subprocess.DEVNULL,
    )
    try:
        wait_for(lambda: _answers(port), within_seconds=30)
        yield f"http://127.0.0.1:{port}/mcp"
    finally:
        process.terminate()
        process.wait(timeout=15)


def _answers(port: int) -> bool:
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/", timeout=5):
            return True
    except urllib.error.HTTPError:
        return True  # it has nothing there, but it is up
    except OSError:
        return False
