"""Vectors are made by workers as they run: each text once in all, whoever is killed meanwhile."""

import json
import os
import signal
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.harness.embeddings_server import KEY, EmbeddingsServer, running_embeddings_server
from tests.harness.instance import running_instance
from tests.harness.nodes import missing_programs, running_cluster, wait_for
from tests.harness.rest import RestClient
from tests.harness.tiny_encoder import make_encoder

pytestmark = pytest.mark.slow

COUNT = 200


@pytest.fixture
def endpoint(tmp_path: Path) -> Iterator[EmbeddingsServer]:
    with running_embeddings_server(make_encoder(tmp_path / "tiny")) as running:
        running.encoder.open()
        yield running


def write_tools(folder: Path) -> Path:
    tools = [{"name": f"tool_{number}", "description": f"Looks after {number}."} for number in range(COUNT)]
    file = folder / "tools.json"
    file.write_text(json.dumps(tools))
    return file


def variables(endpoint: EmbeddingsServer) -> dict[str, str]:
    return {
        "TOOLSEARCH_ENCODER": endpoint.url,
        "TOOLSEARCH_ENCODER_MODEL": "tiny-1",
        "TOOLSEARCH_ENCODER_KEY": KEY,
    }


def is_complete(health: dict[str, Any]) -> bool:
    encoder = health.get("encoder") or {}
    return bool(encoder.get("in_force")) and encoder["done"] == encoder["total"] >= COUNT


def test_worker_that_is_killed_goes_on_where_it_stopped(endpoint: EmbeddingsServer, tmp_path: Path) -> None:
    endpoint.pause_seconds = 0.5
    with running_instance(tmp_path / "data", "--no-demo", **variables(endpoint)) as running:
        running.wait_until_healthy()
        assert running.manage("import_tools", "many", str(write_tools(tmp_path))).returncode == 0
        wait_for(lambda: len(endpoint.texts) >= 64, about="the first vectors")
        os.kill(running.pid_of("refresher"), signal.SIGKILL)
        endpoint.pause_seconds = 0.0
        wait_for(lambda: is_complete(running.health()), about=running.output[-3000:])
        assert len(endpoint.texts) == COUNT
        assert sum(endpoint.texts.values()) <= COUNT + 32  # the batch that was under way
        assert endpoint.keys == {f"Bearer {KEY}"}
        assert KEY not in running.output
        key = running.manage("create_key", "operator", "--admin").stdout.splitlines()[-1]
        assert_search_waits_for_nothing(RestClient(running.port, key), endpoint)


def assert_search_waits_for_nothing(client: RestClient, endpoint: EmbeddingsServer) -> None:
    """Away, an endpoint costs one query its time limit, and the others nothing."""
    session = client.post("/sessions", {}, status=201)["id"]
    endpoint.behaviour = "slow"
    asked = endpoint.requests
    started = time.monotonic()
    for number in range(20):
        found = client.post(f"/sessions/{session}/search", {"query": f"looks after {number}", "load": False})
        assert found["matches"]
    assert time.monotonic() - started < 3
    assert endpoint.requests - asked <= 2  # two web processes may ask at the same moment
    health = client.get("/health")
    assert health["encoder"]["resting"]
    assert health["status"] == "degraded"


@pytest.mark.postgres
def test_two_nodes_share_vectors(endpoint: EmbeddingsServer) -> None:
    if missing := missing_programs():
        pytest.skip(f"{', '.join(missing)}: absent")
    with (
        tempfile.TemporaryDirectory(prefix="toolsearch-vectors-") as name,
        running_cluster(Path(name)) as cluster,
    ):
        for node in cluster.nodes.values():
            node.environment.update(variables(endpoint))
        cluster.manage("import_tools", "many", str(write_tools(cluster.folder)))
        cluster.start()
        for node in cluster.of_role("web"):
            wait_for(lambda node=node: is_complete(node.health()), about=str(node.log))  # type: ignore[misc]
        assert set(endpoint.texts.values()) == {1}
        assert len(endpoint.texts) == COUNT
        key = cluster.manage("create_key", "operator", "--admin").splitlines()[-1]
        client = RestClient(cluster.of_role("web")[0].port, key)
        answer = client.call("PATCH", "/tools/mcp__many__tool_7", {"keywords": ["zeppelin"]})
        assert answer.status == 200
        wait_for(lambda: len(endpoint.texts) == COUNT + 1, about="the changed tool's vector")
        assert set(endpoint.texts.values()) == {1}
