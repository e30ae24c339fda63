"""Settings are read from the environment, and what cannot be understood stops the start in one line."""

import os
from pathlib import Path

import pytest

from tests.harness.commands import run_command
from toolsearch_site.environment import BadSetting, read_environment

GOOD_SECRET = "a-very-long-and-random-text-of-letters-9471"


@pytest.fixture
def data(tmp_path: Path) -> dict[str, str]:
    return {"TOOLSEARCH_DATA": str(tmp_path / "data")}


BAD_SETTINGS = [
    ("DEBUG", "maybe"),
    ("PORT", "eighty"),
    ("PORT", "70000"),
    ("PORT", "9" * 5000),
    ("TOOLSEARCH_GATEWAY_PORT", "0"),
    ("TOOLSEARCH_GATEWAY_PORT", "off"),
    ("TOOLSEARCH_GATEWAY_PORT", "65536"),
    ("TOOLSEARCH_GATEWAY_URL", "tools.example.com/mcp"),
    ("TOOLSEARCH_GATEWAY_URL", "https:///mcp"),
    ("DATABASE_URL", "mysql://root@localhost/tools"),
    ("DATABASE_URL", "postgres://localhost"),
    ("DATABASE_URL", "postgres://user:canary@localhost:port/tools"),
    ("CELERY_BROKER_URL", "kafka://localhost"),
    ("CELERY_BROKER_URL", "redis://"),
    ("CACHE_URL", "memcached://localhost"),
    ("SECRET_KEY", "short-canary"),
    ("SECRET_KEY", "changeme-changeme-changeme-changeme-changeme"),
    ("SECRET_KEY_FALLBACKS", "short-canary"),
    ("SECRET_KEY_FALLBACKS", f"{GOOD_SECRET},"),
    ("TOOLSEARCH_ENCRYPTION_KEY", "canary"),
    ("ALLOWED_HOSTS", "https://tools.example.com/"),
    ("TOOLSEARCH_ENCODER", "wrods"),
    ("TOOLSEARCH_ENCODER", "onnx:"),
    ("TOOLSEARCH_ENCODER", "onnx:/nowhere/at/all"),
    ("TOOLSEARCH_ENCODER", "https:///v1/embeddings"),
    ("TOOLSEARCH_ENCODER", "https://me:canary@vectors.example.com/v1"),
    ("TOOLSEARCH_ENCODER", "https://vectors..example.com/v1"),
    ("TOOLSEARCH_ENCODER", "https://vectors example.com/v1"),
    ("TOOLSEARCH_ENCODER", "https://vectors.example.com/v1/\udcff"),
    ("TOOLSEARCH_ENCODER_MODEL", "tiny-\udcff"),
    ("TOOLSEARCH_ENCODER_KEY", "canary\nnext line"),
    ("TOOLSEARCH_DATA", "~nosuchuser/x"),
    ("TOOLSEARCH_STDIO", "npx,,uvx"),
    ("TOOLSEARCH_REFERENCES", "A,,B"),
    ("TOOLSEARCH_REFERENCES", "${A}"),
    ("TOOLSEARCH_PRIVATE_ADDRESSES", "some"),
    ("TOOLSEARCH_CONNECT_TIMEOUT", "soon"),
    ("TOOLSEARCH_LIST_TIMEOUT", "0"),
    ("TOOLSEARCH_CLIENT_TIMEOUT", "never"),
    ("TOOLSEARCH_NODE", "web 1"),
    ("TOOLSEARCH_CONNECTIONS", "0"),
    ("TOOLSEARCH_CONNECTIONS", "many"),
    ("TOOLSEARCH_LOGS", "xml"),
    ("TOOLSEARCH_METRICS_TOKEN", "canary"),
    ("TOOLSEARCH_KEEP_SEARCHES_DAYS", "0"),
    ("TOOLSEARCH_KEEP_SEARCHES_DAYS", "for ever"),
    ("TOOLSEARCH_KEEP_GONE_TOOLS_DAYS", "0"),
]


class TestBadSettings:
    @pytest.mark.parametrize(("name", "value"), BAD_SETTINGS)
    def test_names_the_variable_and_shows_no_secret(
        self, data: dict[str, str], name: str, value: str
    ) -> None:
        with pytest.raises(BadSetting) as caught:
            read_environment({**data, name: value})
        assert str(caught.value).startswith(f"{name}: ")
        assert "canary" not in str(caught.value)

    @pytest.mark.slow
    @pytest.mark.parametrize(("name", "value"), [*BAD_SETTINGS, ("TOOLSEARCH_DATA", "/proc/no/such/place")])
    def test_stops_the_start_with_one_line(self, data: dict[str, str], name: str, value: str) -> None:
        plain = {key: os.environ[key] for key in ("PATH", "HOME") if key in os.environ}
        ended = run_command("up", "--port", "1", environment={**plain, **data, name: value})
        assert ended.returncode == 1
        assert ended.stdout == ""
        assert ended.stderr.splitlines() == [ended.stderr.strip()]
        assert ended.stderr.startswith(f"toolsearch: {name}: ")

    def test_server_deployment_needs_a_secret_key(self, data: dict[str, str]) -> None:
        with pytest.raises(BadSetting, match=r"^SECRET_KEY: is missing"):
            read_environment({**data, "DATABASE_URL": "postgres://localhost/tools"})


class TestGoodSettings:
    @pytest.mark.parametrize(
        ("given", "read"),
        [("", None), ("none", ()), ("*", ("*",)), (" GITHUB_TOKEN , MCP_* ", ("GITHUB_TOKEN", "MCP_*"))],
    )
    def test_references_are_globs(
        self, data: dict[str, str], given: str, read: tuple[str, ...] | None
    ) -> None:
        assert read_environment({**data, "TOOLSEARCH_REFERENCES": given}).references == read

    @pytest.mark.parametrize(
        ("given", "allowed"),
        [
            ({}, ("*",)),
            ({"DATABASE_URL": "postgres://localhost/tools"}, ()),
            ({"CELERY_BROKER_URL": "redis://localhost"}, ()),
            ({"DATABASE_URL": "postgres://localhost/tools", "TOOLSEARCH_REFERENCES": "MCP_*"}, ("MCP_*",)),
            ({"TOOLSEARCH_REFERENCES": "none"}, ()),
        ],
    )
    def test_references_are_all_allowed_on_one_machine_and_none_past_it(
        self, data: dict[str, str], given: dict[str, str], allowed: tuple[str, ...]
    ) -> None:
        environment = read_environment({**data, "SECRET_KEY": GOOD_SECRET, **given})
        assert environment.allowed_references == allowed

    def test_secrets_are_passwords_as_written_and_as_meant(self, data: dict[str, str]) -> None:
        addresses = {
            "DATABASE_URL": "postgres://u:d%40b@host/tools",
            "CELERY_BROKER_URL": "redis://:br%2Foker@host",
            "SECRET_KEY": "k" * 20 + "0123456789abcdef",
        }
        found = read_environment({**data, **addresses}).secrets
        assert set(found) == {"d@b", "br%2Foker", "br/oker", addresses["SECRET_KEY"]}

    @pytest.mark.parametrize(
        ("given", "value"),
        [
            ({}, "words"),
            ({"TOOLSEARCH_ENCODER": " None "}, "none"),
            (
                {"TOOLSEARCH_ENCODER": "https://vectors.example.com/v1/"},
                "https://vectors.example.com/v1/embeddings",
            ),
            ({"TOOLSEARCH_ENCODER": "http://127.0.0.1:8080/embeddings"}, "http://127.0.0.1:8080/embeddings"),
        ],
    )
    def test_encoder_is_words_none_or_an_endpoint(
        self, data: dict[str, str], given: dict[str, str], value: str
    ) -> None:
        named = {"TOOLSEARCH_ENCODER_MODEL": "tiny-1", "TOOLSEARCH_ENCODER_KEY": "canary-key"}
        environment = read_environment({**data, **named, **given})
        assert (environment.encoder.value, environment.encoder.model) == (value, "tiny-1")
        assert "canary-key" in environment.secrets
        assert "canary" not in repr(environment.encoder)

    def test_encoder_s_prefixes_keep_their_spaces_and_may_be_empty(self, data: dict[str, str]) -> None:
        prefixes = {"TOOLSEARCH_ENCODER_QUERY_PREFIX": "query: ", "TOOLSEARCH_ENCODER_TEXT_PREFIX": ""}
        encoder = read_environment({**data, **prefixes}).encoder
        assert (encoder.query_prefix, encoder.text_prefix) == ("query: ", "")
        assert read_environment(data).encoder.query_prefix is None

    def test_encoder_s_folder_has_its_files(self, data: dict[str, str], tmp_path: Path) -> None:
        given = {**data, "TOOLSEARCH_ENCODER": f"onnx:{tmp_path}"}
        for name in ("model.onnx", "tokenizer.json"):
            with pytest.raises(BadSetting, match=f"TOOLSEARCH_ENCODER: .* has no {name}"):
                read_environment(given)
            (tmp_path / name).write_text("")
        assert read_environment(given).encoder.value == f"onnx:{tmp_path}"

    def test_endpoint_needs_a_model(self, data: dict[str, str]) -> None:
        with pytest.raises(BadSetting, match="TOOLSEARCH_ENCODER_MODEL: is missing"):
            read_environment({**data, "TOOLSEARCH_ENCODER": "https://vectors.example.com/v1"})

    def test_nothing_set_is_embedded(self, data: dict[str, str]) -> None:
        environment = read_environment(data)
        assert environment.is_embedded
        assert not environment.debug
        assert environment.port == 8000
        assert environment.gateway_port is None
        assert environment.gateway_url is None
        assert environment.allowed_hosts == ("localhost", "127.0.0.1", "[::1]")
        assert environment.keep_searches_days == 90

    def test_gateway_has_a_port_and_an_address(self, data: dict[str, str]) -> None:
        address = "https://tools.example.com/mcp"
        given = {"TOOLSEARCH_GATEWAY_PORT": " 9001 ", "TOOLSEARCH_GATEWAY_URL": address}
        environment = read_environment({**data, **given})
        assert (environment.gateway_port, environment.gateway_url) == (9001, address)

    def test_days_of_keeping_are_a_whole_number(self, data: dict[str, str]) -> None:
        environment = read_environment({**data, "TOOLSEARCH_KEEP_SEARCHES_DAYS": "7"})
        assert environment.keep_searches_days == 7

    def test_database_address_is_taken_apart(self, data: dict[str, str]) -> None:
        url = "postgres://us%40er:p%2Fw@db.example.com:6432/tools?sslmode=require"
        database = read_environment({**data, "DATABASE_URL": url, "SECRET_KEY": GOOD_SECRET}).database
        assert database is not None
        assert (database.user, database.password) == ("us@er", "p/w")
        assert (database.host, database.port, database.name) == ("db.example.com", "6432", "tools")
        assert database.options == {"sslmode": "require"}
        assert "p/w" not in repr(database)

    def test_broker_server_alone_ends_embedded_mode(self, data: dict[str, str]) -> None:
        settings = {**data, "CELERY_BROKER_URL": "redis://localhost:6379/0", "SECRET_KEY": GOOD_SECRET}
        assert not read_environment(settings).is_embedded

    @pytest.mark.parametrize(
        ("text", "expected"),
        [
            ("", (None, None)),
            ("off", (False, None)),
            ("on", (True, None)),
            ("npx, uvx", (True, frozenset({"npx", "uvx"}))),
        ],
    )
    def test_stdio_is_on_off_or_a_list(
        self, data: dict[str, str], text: str, expected: tuple[bool | None, frozenset[str] | None]
    ) -> None:
        environment = read_environment({**data, "TOOLSEARCH_STDIO": text})
        assert (environment.stdio_enabled, environment.stdio_commands) == expected

    def test_reading_makes_no_folder(self, data: dict[str, str]) -> None:
        assert not read_environment(data).data_folder.exists()
