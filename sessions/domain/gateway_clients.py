"""MCP clients and how each is set up, from `gateway_clients.json`, where another client is another row."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Any

from catalog.domain.choices import Exposure

ROWS = Path(__file__).with_name("gateway_clients.json")


class ClientGroup(StrEnum):
    CLIENT = "client"
    FRAMEWORK = "framework"


class Pages(StrEnum):
    """How much of a list in pages a client reads."""

    ALL = "all"
    FIRST = "first"
    UNKNOWN = ""


@dataclass(frozen=True, slots=True)
class Way:
    """One complete way to set a client up: lines for a shell, or for a file. `before` is run first."""

    file: str
    before: str
    text: str

    def fill(self, *, address: str, key: str, query: str) -> "Way":
        """As it is copied. The caller answers for what it fills in: it becomes code."""

        def filled(text: str) -> str:
            return text.replace("@address@", address).replace("@key@", key).replace("@query@", query)

        return Way(self.file, filled(self.before), filled(self.text))


@dataclass(frozen=True, slots=True)
class KnownClient:
    """`tried` is the version that tests drive, `package` its name where that comes from; both are empty for a
    client whose set-up is from its documentation. `check` is its command that tells whether it is connected.
    """

    slug: str
    label: str
    group: ClientGroup
    package: str
    tried: str
    speaks: str
    pages: Pages
    defers: bool
    exposures: tuple[Exposure, ...]
    notes: str
    check: str
    ways: tuple[Way, ...]


def read_clients() -> tuple[KnownClient, ...]:
    return tuple(_read_client(row) for row in json.loads(ROWS.read_text(encoding="utf-8")))


def _read_client(row: Mapping[str, Any]) -> KnownClient:
    parsed = {
        "group": ClientGroup(row["group"]),
        "pages": Pages(row["pages"]),
        "exposures": tuple(map(Exposure, row["exposures"])),
        "ways": tuple(_read_way(way) for way in row["ways"]),
    }
    return KnownClient(**{**row, **parsed})


def _read_way(row: Mapping[str, Any]) -> Way:
    return Way(file=row["file"], before=row.get("before", ""), text="\n".join(row["text"]) + "\n")


CLIENTS = read_clients()
