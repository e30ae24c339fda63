"""The files in `deploy/` fit the product: existing files, known variables, existing commands."""

import configparser
import os
import re
import shutil
import subprocess
import sys
import threading
import tomllib
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
import redis
import yaml
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from tests.harness.workers import find_free_port
from toolsearch_site.cluster.check_node import is_well
from toolsearch_site.cluster.programs import WEB_PROCESSES, NodeRole
from toolsearch_site.edge import granian_server
from toolsearch_site.edge.connection_watch import PATIENCE_DIVISOR_UNDER_LOAD
from toolsearch_site.environment import read_environment

ROOT = Path(__file__).resolve().parents[2]
DEPLOY = ROOT / "deploy"
UNITS = sorted((DEPLOY / "systemd").glob("*.service"))
SECRET = "a-very-long-and-random-text-of-letters-9471"
PASSWORD = "t@u/l#i?p:%20"
PRODUCTION = {
    "DATABASE_URL": "postgres://toolsearch@127.0.0.1:1/toolsearch",
    "CELERY_BROKER_URL": "redis://127.0.0.1:1/0",
    "CACHE_URL": "redis://127.0.0.1:1/1",
    "SECRET_KEY": "9f2c" + SECRET + "-Zk3-qmVb7-Lw0-eRt5",
    "ALLOWED_HOSTS": "tools.example.com",
}


def read_variables() -> set[str]:
    """Every variable that the product reads."""
    source = (ROOT / "toolsearch_site" / "environment.py").read_text()
    return set(re.findall(r'"([A-Z][A-Z_]+)"', source))


def threads_of_a_web_node() -> int:
    """The most that it can have, with the processes that it has unless told otherwise."""
    own_of_a_process, supervisor_and_follower = 20, 40
    answering = granian_server.count_threads(granian_server.CONNECTIONS)
    return WEB_PROCESSES * (answering + own_of_a_process) + supervisor_and_follower


def compose() -> dict[str, Any]:
    return dict(yaml.safe_load((DEPLOY / "compose.yaml").read_text()))


class TestCheckDeploy:
    @pytest.mark.slow
    def test_production_settings_pass_django_s_own_check(self, tmp_path: Path) -> None:
        plain = {name: os.environ[name] for name in ("PATH", "HOME") if name in os.environ}
        ended = subprocess.run(
            [sys.executable, "manage.py", "check", "--deploy", "--fail-level", "WARNING"],
            cwd=ROOT,
            env={**plain, **PRODUCTION, "TOOLSEARCH_DATA": str(tmp_path / "data")},
            capture_output=True,
            text=True,
            check=False,
        )
        assert ended.returncode == 0, ended.stderr

    @pytest.mark.slow
    def test_node_of_several_is_refused_where_nothing_is_shared(self, tmp_path: Path) -> None:
        plain = {name: os.environ[name] for name in ("PATH", "HOME") if name in os.environ}
        ended = subprocess.run(
            [sys.executable, "manage.py", "run_node", "web"],
            cwd=ROOT,
            env={**plain, "TOOLSEARCH_DATA": str(tmp_path / "data")},
            capture_output=True,
            text=True,
            check=False,
        )
        assert ended.returncode == 1
        assert (
            ended.stderr.strip().splitlines()[-1].startswith("CommandError: several nodes need DATABASE_URL")
        )
        assert "Traceback" not in ended.stderr


def lint(program: str, *arguments: str) -> str:
    """What a linter has to say; nothing is good. From the test extras, so beside this Python."""
    found = shutil.which(program, path=str(Path(sys.executable).parent)) or shutil.which(program)
    if found is None:
        pytest.skip(f"{program} is absent")
    ended = subprocess.run([found, *arguments], cwd=ROOT, capture_output=True, text=True, check=False)
    assert (ended.returncode == 0) is (ended.stderr + ended.stdout in {"", "ok -- validation done\n"})
    return "" if ended.returncode == 0 else ended.stdout + ended.stderr


class TestLinters:
    def test_dockerfile(self) -> None:
        assert lint("hadolint", "deploy/Dockerfile") == ""

    def test_compose_file_against_its_specification(self) -> None:
        schema = ("--builtin-schema", "vendor.compose-spec")
        assert lint("check-jsonschema", *schema, "deploy/compose.yaml") == ""

    @pytest.mark.parametrize(
        "script", ["deploy/entrypoint.sh", ".ci/run", "tests/servers/install.sh", "tests/clients/install.sh"]
    )
    def test_shell_script(self, script: str) -> None:
        assert lint("shellcheck", "--severity", "warning", script) == ""


class TestDockerfile:
    lines = (DEPLOY / "Dockerfile").read_text().splitlines()

    def words(self, instruction: str) -> list[list[str]]:
        return [line.split()[1:] for line in self.lines if line.startswith(f"{instruction} ")]

    def test_has_stages_and_runs_as_nobody_in_particular(self) -> None:
        assert len(self.words("FROM")) == 2
        [[user]] = self.words("USER")
        assert int(user.partition(":")[0]) > 0
        assert self.words("HEALTHCHECK")

    def test_copies_what_exists_and_the_context_lets_through(self) -> None:
        let_through = {
            line[1:] for line in (ROOT / ".dockerignore").read_text().splitlines() if line.startswith("!")
        }
        copied = [
            source
            for words in self.words("COPY")
            if not words[0].startswith("--from")
            for source in [word for word in words if not word.startswith("--")][:-1]
        ]
        assert "templates" in copied
        for source in copied:
            assert (ROOT / source).exists(), source
            assert source in let_through, source

    def test_entry_point_is_sound_shell_and_knows_every_role(self) -> None:
        script = DEPLOY / "entrypoint.sh"
        assert subprocess.run(["sh", "-n", str(script)], check=False).returncode == 0
        for role in NodeRole:
            assert role.value in script.read_text()


class TestCompose:
    def nodes(self) -> dict[str, dict[str, Any]]:
        services: dict[str, dict[str, Any]] = compose()["services"]
        return {name: service for name, service in services.items() if "build" in service}

    def test_nodes_write_nowhere_but_their_own_folder_and_may_do_nothing_special(self) -> None:
        assert {"migrate", "web", "gateway", "worker", "scheduler"} == set(self.nodes())
        for service in self.nodes().values():
            assert service["read_only"] is True
            assert service["cap_drop"] == ["ALL"]
            assert service["security_opt"] == ["no-new-privileges:true"]
            assert {line.partition(":")[0] for line in service["tmpfs"]} == {"/tmp", "/data"}
            assert "volumes" not in service

    def test_variables_are_read_by_the_product(self) -> None:
        for service in self.nodes().values():
            assert set(service["environment"]) <= read_variables()

    def test_settings_start_the_product(self, tmp_path: Path) -> None:
        given = {
            name: re.sub(r"\$\{[A-Z]+_PASSWORD:\?set it in .env\}", lambda _: PASSWORD, str(value))
            for name, value in self.nodes()["web"]["environment"].items()
        }
        read = read_environment({**given, "SECRET_KEY": SECRET, "TOOLSEARCH_DATA": str(tmp_path / "data")})
        assert not read.is_embedded
        assert read.database is not None
        assert (read.database.user, read.database.password) == ("toolsearch", PASSWORD)
        assert read.broker_url is not None
        assert read.cache_url is not None
        for url, number in ((read.broker_url, 0), (read.cache_url, 1)):
            parts = redis.connection.parse_url(url)  # type: ignore[no-untyped-call]
            assert (parts["host"], parts["password"], parts["db"]) == ("redis", PASSWORD, number)

    def test_data_is_reached_by_nodes_alone_and_every_service_has_limits(self) -> None:
        services: dict[str, dict[str, Any]] = compose()["services"]
        assert compose()["networks"]["data"] == {"internal": True}
        assert services["proxy"]["networks"] == ["front"]
        assert services["postgres"]["networks"] == services["redis"]["networks"] == ["data"]
        for name, service in services.items():
            assert service["mem_limit"], name
            assert service["pids_limit"] > 0, name
        assert "--requirepass" in services["redis"]["command"]

    def test_gateway_is_behind_the_proxy_and_reaches_servers(self) -> None:
        gateway, proxy = self.nodes()["gateway"], compose()["services"]["proxy"]
        assert set(gateway["networks"]) == {"front", "out", "data"}
        assert proxy["depends_on"]["gateway"] == {"condition": "service_healthy"}
        [port] = gateway["expose"]
        assert f"server gateway:{port} " in (DEPLOY / "nginx.conf").read_text()

    def test_each_gateway_has_a_name_that_the_proxy_knows(self) -> None:
        """Replicas behind one name get a key's requests in turn, whatever the hash."""
        assert "deploy" not in self.nodes()["gateway"]

    def test_web_node_may_have_all_its_threads(self) -> None:
        assert self.nodes()["web"]["pids_limit"] >= threads_of_a_web_node()

    def test_example_names_only_what_somebody_reads(self) -> None:
        lines = (DEPLOY / "env.example").read_text().splitlines()
        named = {line.partition("=")[0] for line in lines if line and not line.startswith("#")}
        of_compose = set(re.findall(r"\$\{([A-Z_]+)", (DEPLOY / "compose.yaml").read_text()))
        assert named <= read_variables() | of_compose
        assert of_compose <= named


class TestSystemd:
    def service(self, unit: Path) -> configparser.SectionProxy:
        read = configparser.ConfigParser(strict=False, interpolation=None)
        read.optionxform = str  # type: ignore[assignment,method-assign]
        read.read_string(unit.read_text())
        return read["Service"]

    def test_web_node_may_have_all_its_threads(self) -> None:
        [unit] = [unit for unit in UNITS if unit.stem == "toolsearch-web"]
        assert int(self.service(unit)["TasksMax"]) >= threads_of_a_web_node()

    @pytest.mark.parametrize("unit", UNITS, ids=lambda unit: unit.stem)
    def test_unit_runs_a_role_that_exists_as_its_own_user(self, unit: Path) -> None:
        service = self.service(unit)
        command = service["ExecStart"].split()
        role = command[command.index("run_node") + 1]
        assert unit.stem == f"toolsearch-{NodeRole(role)}"
        assert service["User"] == "toolsearch"
        assert service["NoNewPrivileges"] == "true"
        assert service["ProtectSystem"] == "strict"
        assert service["MemoryMax"]
        assert int(service["TasksMax"]) > 0
        assert {part.partition("=")[0] for part in service["Environment"].split()} <= read_variables()

    def test_there_is_one_for_each_role(self) -> None:
        assert {unit.stem.removeprefix("toolsearch-") for unit in UNITS} == {role.value for role in NodeRole}

    @pytest.mark.parametrize("unit", UNITS, ids=lambda unit: unit.stem)
    def test_systemd_accepts_it(self, unit: Path, tmp_path: Path) -> None:
        analyze = shutil.which("systemd-analyze")
        if analyze is None:
            pytest.skip("systemd is absent")
        # What the unit starts need not be installed here.
        text = unit.read_text().replace("/opt/toolsearch/.venv/bin/python", sys.executable)
        copy = tmp_path / unit.name
        copy.write_text(text)
        ended = subprocess.run([analyze, "verify", str(copy)], capture_output=True, text=True, check=False)
        assert unit.name not in ended.stderr, ended.stderr


def test_proxy_passes_on_what_the_product_believes() -> None:
    text = (DEPLOY / "nginx.conf").read_text()
    assert text.count("{") == text.count("}")
    for header in ("Host", "X-Forwarded-Proto", "X-Request-ID"):
        assert f"proxy_set_header {header} " in text
    plain = re.sub(r"#.*", "", text)
    for line in filter(None, (line.strip() for line in plain.splitlines())):
        assert line.endswith((";", "{", "}")), line


def test_proxy_has_the_limits_of_the_product_and_keeps_the_admin_site_in() -> None:
    text = (DEPLOY / "nginx.conf").read_text()
    places = dict(re.findall(r"location (?:= )?(\S+) \{(.*?)\n    \}", text, flags=re.DOTALL))
    assert "client_max_body_size 1m;" in text.partition("location")[0]
    assert "client_max_body_size 10m;" in places["/api/v1/config"]
    assert "limit_req zone=sign_in" in places["/sign-in/"]
    assert "deny all;" in places["/admin/"]


def test_proxy_passes_streams_of_the_gateway_on_as_they_come() -> None:
    text = (DEPLOY / "nginx.conf").read_text()
    [place] = re.findall(r"location /mcp \{(.*?)\n    \}", text, flags=re.DOTALL)
    for line in ("proxy_http_version 1.1;", "proxy_buffering off;", "proxy_read_timeout 3600s;"):
        assert line in place
    [upstream] = re.findall(r"upstream toolsearch_gateway \{(.*?)\n\}", text, flags=re.DOTALL)
    assert "hash $http_authorization consistent;" in upstream


def test_proxy_ends_idle_connections_before_the_service_does() -> None:
    """A request on a connection that the other side is ending is lost."""
    text = (DEPLOY / "nginx.conf").read_text()
    upstreams = re.findall(r"^upstream \w+ \{(.*?)\n\}", text, flags=re.DOTALL | re.MULTILINE)
    assert len(upstreams) == 2
    kept = [re.findall(r"^\s*keepalive_timeout (\d+)s;", one, flags=re.MULTILINE) for one in upstreams]
    patience = read_environment({}).client_timeout_seconds
    idle = min(granian_server.HEADER_TIMEOUT_SECONDS, 2 * patience / PATIENCE_DIVISOR_UNDER_LOAD)
    assert all(int(seconds) < idle for [seconds] in kept)


@pytest.fixture
def answering_port() -> Iterator[int]:
    """Of a server that says of itself that it is well."""

    class Well(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200 if self.path == "/healthz" else 404)
            self.end_headers()

        def log_message(self, *_: object) -> None:
            """Nothing."""

    with ThreadingHTTPServer(("127.0.0.1", find_free_port()), Well) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield server.server_port
        server.shutdown()
        thread.join()


class TestNodeCheck:
    @pytest.mark.parametrize(
        ("supervisor", "is_healthy"),
        [
            ("python manage.py run_node worker ", True),
            ("python manage.py run_node scheduler --gateway-port 9 ", True),
            ("python manage.py run_node web --host 0.0.0.0 ", False),
            ("python manage.py run_node gateway --host 0.0.0.0 ", False),
            ("sh -c sleep ", False),
        ],
    )
    def test_believes_in_a_supervisor_where_nothing_can_be_asked(
        self, supervisor: str, is_healthy: bool
    ) -> None:
        assert is_well(supervisor, {"PORT": "1"}) is is_healthy

    def test_asks_each_server_of_the_node(self, answering_port: int) -> None:
        here, nowhere = str(answering_port), "1"
        assert is_well("run_node web", {"PORT": here})
        assert is_well("run_node gateway", {"PORT": nowhere, "TOOLSEARCH_GATEWAY_PORT": here})
        assert not is_well("run_node web gateway", {"PORT": nowhere, "TOOLSEARCH_GATEWAY_PORT": here})
        assert not is_well("run_node web gateway", {"PORT": here, "TOOLSEARCH_GATEWAY_PORT": nowhere})

    def test_gateway_is_beside_the_web_server_unless_told(self, answering_port: int) -> None:
        assert is_well("run_node gateway", {"PORT": str(answering_port - 1)})


class TestLock:
    """What an image installs: `make lock` writes it."""

    pinned = re.compile(
        r"^([A-Za-z0-9._-]+)==([^ ;\\]+)(?: ; [^\\]+)?(?= \\\n    --hash=sha256:[0-9a-f]{64})", re.MULTILINE
    )
    text = (DEPLOY / "requirements.txt").read_text()

    def versions(self) -> dict[str, set[str]]:
        """More than one where Python's version decides."""
        found: dict[str, set[str]] = {}
        for name, version in self.pinned.findall(self.text):
            found.setdefault(canonicalize_name(name), set()).add(version)
        return found

    def test_everything_that_runs_is_there_with_its_hashes(self) -> None:
        project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
        locked = self.versions()
        assert len(locked) > 40
        for line in (*project["dependencies"], *project["optional-dependencies"]["meaning"]):
            wanted = Requirement(line)
            for version in locked[canonicalize_name(wanted.name)]:
                assert version in wanted.specifier, line

    def test_no_line_is_without_a_hash_or_names_a_place(self) -> None:
        starts = [line for line in self.text.splitlines() if line and line[0] not in " #"]
        assert len(starts) == len(self.pinned.findall(self.text))
        assert "://" not in self.text

    def test_image_installs_nothing_else(self) -> None:
        installs = re.findall(r"pip install ([^&\n]+)", (DEPLOY / "Dockerfile").read_text())
        assert [("--require-hashes" in one, "--no-index" in one) for one in installs] == [
            (True, False),
            (False, True),
        ]
        assert all("--no-deps" in one for one in installs)
