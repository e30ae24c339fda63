"""What an agent pays is one number: on every page, in every preview, by REST and in every file."""

import json
import re
from collections.abc import Callable
from typing import Any

import pytest
from django.test import Client

from catalog.access.actors import COMMAND_LINE
from catalog.access.roles import Role
from catalog.domain.sizes import tokens_of
from catalog.forms.policies import PolicyForm
from catalog.models import Policy, Server, Tool
from catalog.selectors.facts import read_policy
from catalog.services import derived_state, snapshots
from catalog.services.demo import load_demo
from tests.harness.pages import HTMX, signed_in, visible_text
from tests.harness.rows import make_server, make_tool
from tests.sessions.api.calling import Agent, make_agent

pytestmark = pytest.mark.django_db

Number = tuple[int, int]  # tokens sent, and with everything loaded


def empty() -> None:
    pass


def one_tool() -> None:
    make_tool(server=make_server(name="solo"), name="read", description="x" * 4001)


def deferring_costs_more() -> None:
    make_tool(server=make_server(name="tiny"), name="read", description="Read.")


def under_threshold() -> None:
    Policy.objects.update(mode="auto", threshold_unit="tokens", threshold=100_000)
    fill(servers=3, tools=5)


def over_threshold() -> None:
    Policy.objects.update(mode="auto", threshold_unit="tokens", threshold=10)
    fill(servers=3, tools=5)


def all_loaded() -> None:
    Policy.objects.update(mode="off")
    fill(servers=3, tools=5)


def some_loaded() -> None:
    fill(servers=3, tools=5)
    Policy.objects.update(never_defer=["server-1/*"])
    Server.objects.filter(name="server-2").update(defer_loading=False)


def some_not_visible() -> None:
    fill(servers=4, tools=5)
    Tool.objects.filter(name="tool_0").update(hidden=True)
    Server.objects.filter(name="server-1").update(enabled=False)
    Policy.objects.update(visible=["server-0/*", "server-1/*", "server-2/*"])


def all_locked() -> None:
    Policy.objects.update(quarantine="new_and_changed")
    fill(servers=2, tools=3)


def other_scripts() -> None:
    server = make_server(name="wörter", description="日本語の道具")
    make_tool(
        server=server, name="suche", description="Durchsucht – alles 🔍 " * 40, input_schema={"é": "ü" * 99}
    )


def own_and_demo() -> None:
    assert load_demo()
    fill(servers=2, tools=7)


def thousand_tools() -> None:
    import_many(servers=50, tools=20)


def ten_thousand_tools() -> None:
    import_many(servers=500, tools=20)


CATALOGS = [
    empty,
    one_tool,
    deferring_costs_more,
    under_threshold,
    over_threshold,
    all_loaded,
    some_loaded,
    some_not_visible,
    all_locked,
    other_scripts,
    own_and_demo,
    thousand_tools,
    pytest.param(ten_thousand_tools, marks=pytest.mark.slow),
]


def fill(*, servers: int, tools: int) -> None:
    """Sizes of which none is a whole number of tokens."""
    for number in range(servers):
        server = make_server(name=f"server-{number}")
        for other in range(tools):
            make_tool(server=server, name=f"tool_{other}", description="x" * (101 + 4 * (7 * number + other)))


def import_many(*, servers: int, tools: int) -> None:
    definitions = {
        f"server-{number:03}": [
            {
                "name": f"tool_{other:02}",
                "description": "x" * (201 + 4 * other),
                "inputSchema": {"type": "object"},
            }
            for other in range(tools)
        ]
        for number in range(servers)
    }
    snapshots.import_snapshots(definitions_by_server=definitions, actor=COMMAND_LINE)


@pytest.mark.parametrize("fill_catalog", CATALOGS)
def test_every_place_says_the_same(fill_catalog: Callable[[], None]) -> None:
    fill_catalog()
    derived_state.bring_up_to_date()
    agent, admin, client = make_agent(), make_agent(admin=True), signed_in(Role.ADMIN)
    tokens = agent.begin().state()["tokens"]
    assert tokens["saved"] == tokens["full"] - tokens["sent"]
    expected = (tokens["sent"], tokens["full"])
    places = {**read_rest(agent), **read_pages(client), **read_files(client)}
    assert places == dict.fromkeys(places, expected)
    sent_only = {**read_previews(client), **read_rest_preview(admin), **read_parts(client)}
    assert sent_only == dict.fromkeys(sent_only, tokens["sent"])
    assert read_saving(client) == tokens["saved"]


@pytest.mark.parametrize("fill_catalog", [one_tool, some_loaded, over_threshold, own_and_demo])
def test_what_a_preview_says_is_what_is_paid_then(fill_catalog: Callable[[], None]) -> None:
    fill_catalog()
    derived_state.bring_up_to_date()
    client = signed_in(Role.ADMIN)
    paid = make_agent().begin().state()["tokens"]["sent"]
    server = Server.objects.filter(tools__isnull=False, defer_loading=None).order_by("pk")[0]
    path = f"{server.get_absolute_url()}loading/"
    for choice in ("load", "defer", "inherit"):
        promised = read_preview(client.get(path, {"defer": choice}, headers=HTMX), now=paid)
        client.post(path, {"defer": choice})
        derived_state.bring_up_to_date()
        paid = make_agent().begin().state()["tokens"]["sent"]
        assert promised == paid, choice


def test_a_saving_is_never_rounded_up_to_everything() -> None:
    make_tool(server=make_server(), name="huge", description="x" * 2_000_000)
    derived_state.bring_up_to_date()
    assert "Saved 99.9%" in visible_text(signed_in(Role.VIEWER).get("/"))


def read_rest(agent: Agent) -> dict[str, Number]:
    session = agent.begin()
    answers = {
        "state": session.state(),
        "session's tools": session.tools(),
        "policy's tools": agent.read("/policies/default/tools"),
    }
    return {place: (answer["tokens"]["sent"], answer["tokens"]["full"]) for place, answer in answers.items()}


def read_pages(client: Client) -> dict[str, Number]:
    session = make_agent().begin().id
    overview = (r"Now it pays ([\d,]+) tokens", r"loaded, an agent pays ([\d,]+) tokens")
    return {
        "overview": read_numbers(client.get("/"), *overview),
        "overview's part": read_numbers(client.get("/", headers=HTMX), *overview),
        "policy": read_numbers(
            client.get("/policies/default/"),
            r"Its tools ([\d,]+) tokens",
            r"(?:That saves \S+ of|are sent,) ([\d,]+) (?:tokens|with every tool loaded)",
        ),
        "what an agent gets": read_numbers(
            client.get("/policies/default/agent/"),
            r"It pays ([\d,]+) tokens",
            r"With everything loaded ([\d,]+) tokens",
        ),
        "session": read_numbers(
            client.get(f"/sessions/{session}/"),
            r"Its tool list costs now ([\d,]+) tokens",
            r"With everything loaded ([\d,]+) tokens",
        ),
    }


def read_files(client: Client) -> dict[str, Number]:
    """The whole answer as a file, and the exported tools, from which everything loaded can be counted."""
    tokens = client.get("/policies/default/agent.json").json()["tokens"]
    exported = b"".join(client.get("/tools.json?policy=default").streaming_content)  # type: ignore[attr-defined]
    rows = [row for row in json.loads(exported) if row["decision"]]
    return {
        "whole answer": (tokens["sent"], tokens["full"]),
        "exported tools": (tokens["sent"], tokens_of(sum(row["characters"] for row in rows))),
    }


def read_previews(client: Client) -> dict[str, int]:
    """What previews of no change, and of changes, say is paid now."""
    paid = {"editor": read_preview(client.get("/policies/default/edit/"), now=None)}
    form = PolicyForm.of(read_policy(Policy.objects.get(slug="default")))
    values = {name: form[name].value() for name in form.fields}
    sent = {name: "\n".join(value) if isinstance(value, list) else value for name, value in values.items()}
    same = {name: value for name, value in sent.items() if value not in (None, False)}
    paid["preview"] = read_preview(client.post("/policies/default/preview/", same, headers=HTMX), now=None)
    if not Tool.objects.listed().exists():
        return paid
    bulk = client.post("/bulk-edit/?all=1", {"loading": "inherit"}, headers=HTMX)
    paid["bulk edit"] = read_preview(bulk, now=None)
    return paid


def read_rest_preview(admin: Agent) -> dict[str, int]:
    found = admin.post("/policies/default/preview", {})
    return {"tokens_before": found["tokens_before"], "tokens_after": found["tokens_after"]}


def read_parts(client: Client) -> dict[str, int]:
    """The parts that "What an agent gets" names add up."""
    page = visible_text(client.get("/policies/default/agent/"))
    named = re.search(
        r"([\d,]+) for the tools(?: ?, ([\d,]+) for the search tool)?(?: ?, ([\d,]+) for the prompt)?", page
    )
    assert named
    return {"parts": sum(to_number(part) for part in named.groups() if part)}


def read_saving(client: Client) -> int:
    """What the Overview says is saved, negative where it says that deferring costs more."""
    page = visible_text(client.get("/"))
    more = re.search(r"Deferring costs ([\d,]+) tokens? more", page)
    if more:
        assert "Load all tools" in page
        return -to_number(more[1])
    saved = re.search(r"Saved \S+ ([\d,]+) tokens less", page)
    assert saved
    return to_number(saved[1])


def read_preview(response: Any, *, now: int | None) -> int:
    """The tokens that a preview promises; with `now`, what it says is paid before must be that."""
    page = re.split(r"What it would do|an agent would pay", visible_text(response), maxsplit=1)[-1]
    found = re.search(r"(?:([\d,]+) → )?([\d,]+) tokens", page)
    assert found, page
    before, then = found.groups()
    if now is not None:
        assert to_number(before or then) == now
    return to_number(then)


def read_numbers(response: Any, sent: str, full: str) -> Number:
    page = visible_text(response)
    found_sent, found_full = re.search(sent, page), re.search(full, page)
    assert found_sent and found_full, page  # noqa: PT018
    return to_number(found_sent[1]), to_number(found_full[1])


def to_number(text: str) -> int:
    return int(text.replace(",", ""))
