"""Two web nodes with folders of their own on one database: what one is told, the other knows."""

import json
import os
import signal
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.harness.nodes import Cluster, Node, missing_programs, running_cluster, wait_for
from tests.harness.rest import RestClient

pytestmark = [pytest.mark.slow, pytest.mark.postgres]

IN_FORCE_WITHIN_SECONDS = 2.0
ESTABLISHED = "01"  # as the kernel lists it
TOOLS = [
    {"name": name, "description": "Looks after one thing.", "inputSchema": {"type": "object"}}
    for name in ("fly_kite", "sail_boat", "ride_horse")
]


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    """In a folder outside of pytest's, which is closed to the database's own user."""
    if missing := missing_programs():
        pytest.skip(f"{', '.join(missing)}: absent")
    with (
        tempfile.TemporaryDirectory(prefix="toolsearch-nodes-") as folder,
        running_cluster(Path(folder), workers=1, gateways=1) as running,
    ):
        running.add("scheduler-2", "scheduler")
        tools = running.folder / "tools.json"
        tools.write_text(json.dumps(TOOLS))
        running.manage("import_tools", "outdoors", str(tools))
        running.start()
        yield running


@pytest.fixture(scope="module")
def key(cluster: Cluster) -> str:
    return cluster.manage("create_key", "operator", "--admin").splitlines()[-1]


@pytest.fixture
def clients(cluster: Cluster, key: str) -> list[RestClient]:
    return [RestClient(node.port, key) for node in cluster.of_role("web")]


def finds(client: RestClient, session: str, word: str) -> list[str]:
    found = client.post(f"/sessions/{session}/search", {"query": word, "load": False})
    return [match["name"] for match in found["matches"]]


class TestEdit:
    def test_is_in_force_on_the_other_node_within_two_seconds(self, clients: list[RestClient]) -> None:
        one, other = clients
        session = other.post("/sessions", {}, status=201)["id"]
        assert finds(other, session, "zeppelin") == []
        answer = one.call("PATCH", "/tools/mcp__outdoors__fly_kite", {"keywords": ["zeppelin"]})
        assert answer.status == 200
        wait_for(
            lambda: finds(other, session, "zeppelin") == ["mcp__outdoors__fly_kite"],
            about="the keyword found through the other node",
            within_seconds=IN_FORCE_WITHIN_SECONDS,
        )

    def test_changes_the_list_that_the_other_node_sends(self, clients: list[RestClient]) -> None:
        one, other = clients
        session = other.post("/sessions", {}, status=201)["id"]
        tag = other.call("GET", f"/sessions/{session}/tools").headers["ETag"]
        assert other.call("GET", f"/sessions/{session}/tools", If_None_Match=tag).status == 304
        one.call("PATCH", "/tools/mcp__outdoors__ride_horse", {"loading": "always"})
        wait_for(
            lambda: other.call("GET", f"/sessions/{session}/tools", If_None_Match=tag).status == 200,
            about="a new list from the other node",
            within_seconds=IN_FORCE_WITHIN_SECONDS,
        )
        sent = other.get(f"/sessions/{session}/tools")["tools"]
        assert [tool["name"] for tool in sent] == ["mcp__outdoors__ride_horse"]


class TestOneScheduler:
    def test_is_in_charge_and_the_other_takes_over_when_it_is_killed(self, cluster: Cluster) -> None:
        first = self.in_charge(cluster)
        cluster.nodes[first].kill()
        wait_for(
            lambda: self.in_charge(cluster) not in {"", first}, about="another scheduler", within_seconds=30
        )
        wait_for(cluster.nodes["web-1"].is_healthy, about="a beat of the new scheduler", within_seconds=30)
        cluster.nodes[first].start()

    def in_charge(self, cluster: Cluster) -> str:
        shown = cluster.manage(
            "shell",
            "-c",
            "from toolsearch_site.monitoring.system import read_system; print(read_system().scheduler)",
        )
        return shown.splitlines()[-1] if shown else ""


class TestGateway:
    def test_answers_on_its_own_port_from_an_index_of_its_own(self, cluster: Cluster) -> None:
        [node] = cluster.of_role("gateway")
        wait_for(node.is_gateway_alive, about=f"the gateway: {node.log}")
        assert (node.data / "index" / "CURRENT").exists()
        assert node.pid_of("follower") is not None
        assert node.pid_of("web") is None

    def test_is_started_again_when_it_is_killed(self, cluster: Cluster) -> None:
        [node] = cluster.of_role("gateway")
        killed = node.kill_part("gateway")
        wait_for(lambda: node.pid_of("gateway") not in {None, killed}, about="another gateway")
        wait_for(node.is_gateway_alive, about=f"the gateway: {node.log}")


class TestConnections:
    def test_supervisor_keeps_none_between_two_words(self, cluster: Cluster) -> None:
        """With a pool of its own it would keep one, and one more after each absence of the database."""
        for node in cluster.nodes.values():
            wait_for(
                lambda node=node: not count_connections(node, cluster),  # type: ignore[misc]
                about=f"the supervisor of {node.name} without a connection",
                within_seconds=10,
            )


def count_connections(node: Node, cluster: Cluster) -> int:
    """To the database, of the supervisor itself."""
    assert node.process is not None
    links = [
        os.readlink(entry) for entry in Path(f"/proc/{node.process.pid}/fd").iterdir() if entry.is_symlink()
    ]
    rows = [line.split() for line in Path("/proc/net/tcp").read_text().splitlines()[1:]]
    port = f":{cluster.postgres.port:04X}"
    inodes = {row[9] for row in rows if row[2].endswith(port) and row[3] == ESTABLISHED}
    return sum(f"socket:[{inode}]" in links for inode in inodes)


class TestLostParts:
    def test_restart_of_the_database_needs_no_hand(self, cluster: Cluster, clients: list[RestClient]) -> None:
        for client in clients:
            client.get("/tools")
        cluster.postgres.restart()
        deadline = time.monotonic() + 15
        for client in clients:
            while (answer := client.call("GET", "/tools")).status != 200:
                assert answer.status == 503
                assert int(answer.headers["Retry-After"]) > 0
                assert time.monotonic() < deadline
                time.sleep(0.1)

    def test_edit_while_redis_is_away_is_kept_and_in_force_afterwards(
        self, cluster: Cluster, clients: list[RestClient]
    ) -> None:
        one, other = clients
        session = other.post("/sessions", {}, status=201)["id"]
        cluster.redis.kill()
        assert one.call("PATCH", "/tools/mcp__outdoors__sail_boat", {"loading": "always"}).status == 200
        assert other.call("GET", f"/sessions/{session}/tools").status == 200
        cluster.redis.start()
        wait_for(
            lambda: "mcp__outdoors__sail_boat" in self.sent(other, session),
            about="the decision after Redis is back",
            within_seconds=40,
        )

    def sent(self, client: RestClient, session: str) -> list[str]:
        return [tool["name"] for tool in client.get(f"/sessions/{session}/tools")["tools"]]

    def test_killed_follower_comes_back_and_catches_up(
        self, cluster: Cluster, clients: list[RestClient]
    ) -> None:
        node: Node = cluster.nodes["web-2"]
        killed = node.kill_part("follower")
        session = clients[1].post("/sessions", {}, status=201)["id"]
        clients[0].call("PATCH", "/tools/mcp__outdoors__ride_horse", {"keywords": ["gallop"]})
        wait_for(lambda: finds(clients[1], session, "gallop"), about="the word again", within_seconds=30)
        assert node.pid_of("follower") != killed


def test_nodes_leave_no_process_behind(cluster: Cluster) -> None:
    node = cluster.nodes["worker-1"]
    assert node.process is not None
    parts = {part: node.pid_of(part) for part in ("worker", "refresher", "follower")}
    os.kill(node.process.pid, signal.SIGTERM)
    assert node.process.wait(timeout=15) == 0
    for part, pid in parts.items():
        assert pid is not None, part
        assert not Path(f"/proc/{pid}").exists(), part
