"""Many writes one after another on an embedded instance: the last is in force soon.

How soon is measured by `bench/hostile.py`; on a busy machine a test can only wait.
"""

from collections.abc import Iterator

import pytest

from tests.harness.instance import Instance, running_instance, wait_for
from tests.harness.prepared import prepared
from tests.harness.rest import RestClient

pytestmark = pytest.mark.slow

WRITES = 120
PATIENCE_SECONDS = 60.0
TOOLS = [{"name": f"tool_{n}", "description": "Looks after one thing."} for n in range(50)]
NAME = "mcp__many__tool_7"


@pytest.fixture(scope="module")
def instance(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Instance]:
    with running_instance(prepared(tmp_path_factory.mktemp("data")), "--no-demo") as running:
        running.wait_until_healthy()
        yield running


@pytest.fixture(scope="module")
def admin(instance: Instance) -> RestClient:
    return RestClient(instance.port, instance.manage("create_key", "admin", "--admin").stdout.strip())


def is_in_force(admin: RestClient, session: str, word: str) -> bool:
    listed = admin.get(f"/sessions/{session}/tools")
    found = admin.post(f"/sessions/{session}/search", {"query": word, "load": False})
    matches = [match["name"] for match in found["matches"]]
    return NAME in [tool["name"] for tool in listed["tools"]] and matches == [NAME]


def test_last_of_many_writes_comes_into_force(admin: RestClient) -> None:
    admin.post("/servers", {"name": "many", "tools": TOOLS}, status=201)
    session = admin.post("/sessions", {}, status=201)["id"]
    for number in range(1, WRITES + 1):
        loading = "always" if number == WRITES else "defer"
        body = {"loading": loading, "keywords": [f"zebra{number}"]}
        assert admin.call("PATCH", f"/tools/{NAME}", body).status == 200
    wait_for(lambda: is_in_force(admin, session, f"zebra{WRITES}"), within_seconds=PATIENCE_SECONDS)
