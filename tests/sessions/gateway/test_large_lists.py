"""Lists and definitions of long tools come in messages that every client takes."""

import pytest

from catalog.domain.limits import GATEWAY_MESSAGE_BYTES
from catalog.models import ServerFeatures
from tests.harness.gateway import ERAS, RunningGateway
from tests.sessions.gateway.catalog import ON_THREADS, Catalog, define, follow, give_tools

pytestmark = ON_THREADS

LONG = 100_000


@pytest.fixture
def long_tools(catalog: Catalog) -> list[str]:
    names = [f"tool_{number:02}" for number in range(20)]
    description = {0: "x" * LONG, 1: "漢" * (LONG // 6)}
    definitions = [
        define(name, description=f"{name} {description[place % 2]}") for place, name in enumerate(names)
    ]
    give_tools(catalog.server, definitions)
    follow()
    return [f"fixture__{name}" for name in names]


@pytest.mark.parametrize("era", ERAS)
def test_a_list_is_paged_by_bytes_too(
    gateway: RunningGateway, catalog: Catalog, long_tools: list[str], era: str
) -> None:
    listed: list[str] = []
    params: dict[str, str] = {}
    while True:
        answer = gateway.ask(catalog.key, "tools/list", params, era=era, query="?expose=native")
        assert len(answer.text.encode()) < GATEWAY_MESSAGE_BYTES
        listed += [tool["name"] for tool in answer.result["tools"]]
        if "nextCursor" not in answer.result:
            break
        params = {"cursor": answer.result["nextCursor"]}
    assert listed == ["read_result", *long_tools]


@pytest.mark.parametrize("era", ERAS)
def test_definitions_that_one_answer_does_not_hold_are_named(
    gateway: RunningGateway, catalog: Catalog, long_tools: list[str], era: str
) -> None:
    wanted, described = [*long_tools[1:], "nothing"], []
    while wanted:
        answer = gateway.call(catalog.key, "describe_tools", {"names": wanted}, era=era)
        assert len(answer.text.encode()) < GATEWAY_MESSAGE_BYTES
        told = answer.result["structuredContent"]
        described += [tool["name"] for tool in told["tools"]]
        assert set(told["missing"]) <= {"nothing"}
        wanted = told["more"]
    assert described == long_tools[1:]


@pytest.mark.parametrize("era", ERAS)
@pytest.mark.parametrize("description", ["漢" * 80_000, '"' * 120_000])
def test_the_longest_definition_is_described(
    gateway: RunningGateway, catalog: Catalog, era: str, description: str
) -> None:
    give_tools(catalog.server, [define(name, description=description) for name in ("long", "other")])
    follow()
    names = ["fixture__long", "fixture__other"]
    answer = gateway.call(catalog.key, "describe_tools", {"names": names}, era=era)
    assert len(answer.text.encode()) < GATEWAY_MESSAGE_BYTES
    told = answer.result["structuredContent"]
    assert ([tool["name"] for tool in told["tools"]], told["more"]) == (names[:1], names[1:])


@pytest.mark.parametrize("era", ERAS)
def test_names_that_no_tool_has_are_told_shortly(gateway: RunningGateway, catalog: Catalog, era: str) -> None:
    names = [f"{number:02}{'é' * 20_000}" for number in range(20)]
    answer = gateway.call(catalog.key, "describe_tools", {"names": names}, era=era)
    assert len(answer.text.encode()) < GATEWAY_MESSAGE_BYTES
    assert [name[:2] for name in answer.result["structuredContent"]["missing"]] == [
        name[:2] for name in names
    ]


@pytest.mark.parametrize("era", ERAS)
def test_a_list_of_resources_is_paged_by_bytes_too(
    gateway: RunningGateway, catalog: Catalog, era: str
) -> None:
    resources = [
        {"uri": f"note://{number}", "name": "n", "description": "d" * 4_000} for number in range(450)
    ]
    ServerFeatures.objects.filter(server=catalog.server).update(resources=resources)
    listed: list[str] = []
    params: dict[str, str] = {"cursor": ""}
    while True:
        answer = gateway.ask(catalog.key, "resources/list", params, era=era)
        assert len(answer.text.encode()) < GATEWAY_MESSAGE_BYTES
        listed += [resource["uri"] for resource in answer.result["resources"]]
        if "nextCursor" not in answer.result:
            break
        params = {"cursor": answer.result["nextCursor"]}
    assert listed == [f"toolsearch://fixture/note%3A%2F%2F{number}" for number in range(450)]
