"""The rows of clients: whole, consistent, and true to what the tests of real clients install."""

import json
import re
import tomllib
from pathlib import Path

import pytest
import yaml

from catalog.domain.choices import Exposure
from sessions.domain.gateway_clients import CLIENTS, KnownClient, Pages, Way

INSTALL_SCRIPT = Path(__file__).parents[2] / "clients/install.sh"
TRIED = [client for client in CLIENTS if client.tried]
WAYS = [(client, way) for client in CLIENTS for way in client.ways]
FILLED = {"address": "http://127.0.0.1:8001/mcp", "key": "tk_x", "query": "get tide"}


def pins() -> dict[str, str]:
    """The version of each package that the script installs, without the name of a platform."""
    lines = INSTALL_SCRIPT.read_text().replace("-linux-$chip", "").replace('"', "").splitlines()
    npm = re.findall(r"^(?:\S+@npm:)?(@?[^@\s=]+)@(\d[\w.]*)", "\n".join(lines), re.MULTILINE)
    pypi = re.findall(r"^([\w-]+)(?:\[[\w,]+\])?==([\w.]+)", "\n".join(lines), re.MULTILINE)
    return dict([*npm, *pypi])


@pytest.mark.parametrize("client", TRIED, ids=[client.slug for client in TRIED])
def test_version_that_was_tried_is_the_one_that_tests_drive(client: KnownClient) -> None:
    assert pins().get(client.package) == client.tried


def test_names_are_given_once() -> None:
    slugs = [client.slug for client in CLIENTS]
    assert len(slugs) == len(set(slugs)) == 14
    assert len({client.label for client in CLIENTS}) == len(slugs)


def test_what_was_not_tried_says_so() -> None:
    for client in CLIENTS:
        assert client.ways
        assert client.exposures[0] is Exposure.SEARCH
        if client.speaks:
            assert re.fullmatch(r"20\d\d-\d\d-\d\d", client.speaks)
            assert client.pages is not Pages.UNKNOWN
        else:
            assert not client.tried
            assert "documentation" in client.notes


def test_native_exposure_is_for_clients_that_defer_by_themselves() -> None:
    for client in CLIENTS:
        assert (Exposure.NATIVE in client.exposures) is client.defers


@pytest.mark.parametrize(("client", "way"), WAYS, ids=[f"{c.slug} {w.file}" for c, w in WAYS])
def test_way_is_complete_and_can_be_read(client: KnownClient, way: Way) -> None:
    filled = way.fill(**FILLED)
    text = filled.before + filled.text
    assert FILLED["address"] in filled.text
    assert FILLED["key"] in text or "promptString" in text
    assert "@" not in text.replace("@query@", "")
    if way.file.endswith(".json"):
        assert "toolsearch" in json.dumps(json.loads(filled.text))
    elif way.file.endswith(".toml"):
        assert tomllib.loads(filled.text)["mcp_servers"]["toolsearch"]["url"] == FILLED["address"]
    elif way.file.endswith(".yaml"):
        assert yaml.safe_load(filled.text)["extensions"]["toolsearch"]["uri"] == FILLED["address"]
    elif client.group == "framework":
        compile(filled.text, client.slug, "exec")
    else:
        assert len(filled.text.splitlines()) == 1
