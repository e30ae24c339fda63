"""Nothing is kept for a client between two messages: any process of a cluster answers the next one."""

from collections.abc import Iterator
from itertools import cycle
from typing import Any

import httpx2
import pytest

from sessions.models import GatewayProcess
from tests.harness.gateway import ERAS, MODES, RunningGateway, run_gateway, wait_until
from tests.sessions.gateway.catalog import ON_THREADS, Catalog
from tests.sessions.gateway.test_cut_results import LAST_LINE

pytestmark = ON_THREADS


@pytest.fixture
def two(catalog: Catalog) -> Iterator[tuple[RunningGateway, RunningGateway]]:
    with run_gateway(process="one:1") as one, one.beside(process="two:2") as other:
        yield one, other


@pytest.mark.parametrize("era", ERAS)
class TestTwoProcesses:
    def test_answer_one_client_by_turns(
        self, two: tuple[RunningGateway, RunningGateway], catalog: Catalog, era: str
    ) -> None:
        turns = cycle(two)
        lists = [next(turns).ask(catalog.key, "tools/list", era=era).result["tools"] for _ in range(4)]
        assert all(one == lists[0] for one in lists)
        for number in range(4):
            assert next(turns).call(catalog.key, "fixture__echo", {"text": str(number)}, era=era).said == (
                str(number)
            )

    def test_read_on_in_what_the_other_kept(
        self, two: tuple[RunningGateway, RunningGateway], catalog: Catalog, era: str
    ) -> None:
        catalog.change(max_result_tokens=100)
        text = two[0].call(catalog.key, "fixture__big", {"size": 1_000}, era=era).said
        turns, parts = cycle(two[::-1]), []
        while line := LAST_LINE.search(text):
            parts.append(text[: line.start()])
            arguments: dict[str, Any] = {"handle": line["handle"], "offset": int(line["offset"])}
            text = next(turns).call(catalog.key, "read_result", arguments, era=era).said
        assert "".join([*parts, text]) == "x" * 1_000

    def test_see_a_change_at_once(
        self, two: tuple[RunningGateway, RunningGateway], catalog: Catalog, era: str
    ) -> None:
        catalog.change(visible=["count"])
        for one in two:
            assert one.call(catalog.key, "fixture__echo", era=era).error["code"] == -32602


@pytest.mark.parametrize("mode", MODES)
def test_an_sdks_client_does_not_notice(
    two: tuple[RunningGateway, RunningGateway], catalog: Catalog, mode: str
) -> None:
    alternating = _Alternating(*two)
    with two[0].connect(catalog.key, mode=mode, transport=alternating) as agent:
        for number in range(4):
            result = agent.do("call_tool", "fixture__echo", {"text": str(number)})
            assert result.content[0].text == str(number)
    assert min(alternating.counts) >= 2


def test_each_reports_itself_and_takes_itself_out(catalog: Catalog) -> None:
    with run_gateway(process="one:1") as one, one.beside(process="two:2"):
        one.call(catalog.key, "fixture__echo")
        wait_until(lambda: GatewayProcess.objects.count() == 2)
        wait_until(lambda: GatewayProcess.objects.get(process="one:1").leases.count() == 1)
    assert not GatewayProcess.objects.exists()


class _Alternating(httpx2.AsyncBaseTransport):
    """Every other request goes to the second."""

    def __init__(self, *gateways: RunningGateway) -> None:
        self._gateways = gateways
        self.counts = [0] * len(gateways)

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        turn = sum(self.counts) % len(self.counts)
        self.counts[turn] += 1
        return await self._gateways[turn].transport.handle_async_request(request)
