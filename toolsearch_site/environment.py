"""Reads all settings from the environment. A value that cannot be understood stops the start."""

import ipaddress
import re
import socket
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import SplitResult, parse_qsl, quote, unquote, urlsplit

from catalog.domain.encoder_setting import (
    ADDRESSES,
    NONE,
    ONNX,
    WORDS,
    EncoderSetting,
    complete_address,
    find_missing,
)
from catalog.domain.values import is_storable
from catalog.sealing import parse_keys

TRUE_WORDS = frozenset({"1", "true", "yes", "on"})
FALSE_WORDS = frozenset({"0", "false", "no", "off"})
LOOPBACK_HOSTS = ("localhost", "127.0.0.1", "[::1]")
SECRET_KEY_MIN_CHARS = 32
LONGEST_TIMEOUT_SECONDS = 240
LONGEST_KEEPING_DAYS = 3650
MOST_DIGITS = 20
CONNECTIONS, MOST_CONNECTIONS = 16, 1000  # of one process; a supervisor sets it for each of its programs
SAMPLE_SECRETS = ("change-me", "changeme", "django-insecure-", "your-secret", "secret-key")
LOG_FORMS = ("lines", "json")
METRICS_TOKEN_MIN_CHARS = 16
NODE_PATTERN = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,59}")
REFERENCE_PATTERN = re.compile(r"[A-Za-z0-9_*?]{1,100}")
ENCODER_HOST_PATTERN = re.compile(r"[\w-]{1,63}(\.[\w-]{1,63})*\.?")
HOST_PATTERN = re.compile(r"\.?[A-Za-z0-9_-]+(\.[A-Za-z0-9_-]+)*|\*")


class BadSetting(Exception):
    """A variable that cannot be understood. The message never holds a secret value."""

    def __init__(self, name: str, problem: str) -> None:
        super().__init__(f"{name}: {problem}")
        self.name = name


@dataclass(frozen=True, slots=True)
class DatabaseAddress:
    name: str
    user: str
    password: str
    host: str
    port: str
    options: Mapping[str, str]

    def __repr__(self) -> str:
        return f"DatabaseAddress({self.host or 'local socket'}/{self.name})"


@dataclass(frozen=True, slots=True, repr=False)
class Environment:
    """The operator's settings. `None` means not set: the embedded component is used."""

    data_folder: Path
    database: DatabaseAddress | None
    broker_url: str | None
    cache_url: str | None
    secret_key: str | None
    former_secret_keys: tuple[str, ...]
    encryption_keys: tuple[str, ...]
    allowed_hosts: tuple[str, ...]
    debug: bool
    port: int
    gateway_port: int | None
    gateway_url: str | None
    public_url: str | None
    client_document: bool
    stdio_enabled: bool | None
    stdio_commands: frozenset[str] | None
    references: tuple[str, ...] | None
    private_addresses: bool | None
    behind_tls: bool | None
    connect_timeout_seconds: int
    list_timeout_seconds: int
    client_timeout_seconds: int
    keep_searches_days: int
    keep_gone_tools_days: int
    node: str
    connections: int
    metrics_token: str | None
    log_form: str | None
    encoder: EncoderSetting

    @property
    def is_embedded(self) -> bool:
        """Everything on this machine: no database server and no broker server."""
        return self.database is None and self.broker_url is None

    @property
    def allowed_references(self) -> tuple[str, ...]:
        """Globs of the variables that `${NAME}` in a server's settings may stand for."""
        if self.references is not None:
            return self.references
        return ("*",) if self.is_embedded else ()

    @property
    def secrets(self) -> tuple[str, ...]:
        """Every secret among the settings, as written and as decoded."""
        written = [urlsplit(url).password for url in (self.broker_url, self.cache_url) if url]
        database = self.database
        passwords = [*((database.password, database.options.get("password")) if database else ()), *written]
        keys = (
            self.secret_key,
            *self.former_secret_keys,
            *self.encryption_keys,
            self.metrics_token,
            self.encoder.key,
        )
        found = [one for one in (*passwords, *keys) if one]
        return tuple(dict.fromkeys((*found, *(unquote(one) for one in written if one))))


def read_environment(variables: Mapping[str, str]) -> Environment:
    """Parse all variables. Raises BadSetting for the first that cannot be understood."""
    stdio_enabled, stdio_commands = _read_stdio(variables)
    environment = Environment(
        data_folder=_read_folder(variables),
        database=_read_database(variables),
        broker_url=_read_url(variables, "CELERY_BROKER_URL", ("redis", "rediss", "amqp", "amqps")),
        cache_url=_read_url(variables, "CACHE_URL", ("redis", "rediss")),
        secret_key=_read_secret_key(variables),
        former_secret_keys=_read_former_secret_keys(variables),
        encryption_keys=_read_encryption_keys(variables),
        allowed_hosts=_read_hosts(variables),
        debug=_read_flag(variables, "DEBUG", default=False),
        port=_read_number(variables, "PORT", default=8000, most=65535, what="port number"),
        gateway_port=_read_optional_port(variables, "TOOLSEARCH_GATEWAY_PORT"),
        gateway_url=_read_url(variables, "TOOLSEARCH_GATEWAY_URL", ("https", "http")),
        public_url=_read_public_url(variables),
        client_document=_read_flag(variables, "TOOLSEARCH_CLIENT_DOCUMENT", default=True),
        stdio_enabled=stdio_enabled,
        stdio_commands=stdio_commands,
        references=_read_references(variables),
        private_addresses=_read_optional_flag(variables, "TOOLSEARCH_PRIVATE_ADDRESSES"),
        behind_tls=_read_optional_flag(variables, "TOOLSEARCH_TLS"),
        connect_timeout_seconds=_read_seconds(variables, "TOOLSEARCH_CONNECT_TIMEOUT", default=60),
        list_timeout_seconds=_read_seconds(variables, "TOOLSEARCH_LIST_TIMEOUT", default=30),
        client_timeout_seconds=_read_seconds(variables, "TOOLSEARCH_CLIENT_TIMEOUT", default=30),
        keep_searches_days=_read_number(
            variables,
            "TOOLSEARCH_KEEP_SEARCHES_DAYS",
            default=90,
            most=LONGEST_KEEPING_DAYS,
            what="number of days",
        ),
        keep_gone_tools_days=_read_number(
            variables,
            "TOOLSEARCH_KEEP_GONE_TOOLS_DAYS",
            default=30,
            most=LONGEST_KEEPING_DAYS,
            what="number of days",
        ),
        node=_read_node(variables),
        connections=_read_number(
            variables, "TOOLSEARCH_CONNECTIONS", default=CONNECTIONS, most=MOST_CONNECTIONS
        ),
        metrics_token=_read_metrics_token(variables),
        log_form=_read_log_form(variables),
        encoder=_read_encoder(variables),
    )
    if environment.secret_key is None and not environment.debug and not environment.is_embedded:
        raise BadSetting("SECRET_KEY", "is missing; a deployment with a database or broker server needs one")
    return environment


def _text(variables: Mapping[str, str], name: str) -> str:
    return variables.get(name, "").strip()


def _read_flag(variables: Mapping[str, str], name: str, *, default: bool) -> bool:
    flag = _read_optional_flag(variables, name)
    return default if flag is None else flag


def _read_optional_flag(variables: Mapping[str, str], name: str) -> bool | None:
    word = _text(variables, name).lower()
    if not word:
        return None
    if word in TRUE_WORDS:
        return True
    if word in FALSE_WORDS:
        return False
    raise BadSetting(name, f"'{word}' is neither on nor off; use 1 or 0")


def _read_number(
    variables: Mapping[str, str], name: str, *, default: int, most: int, what: str = "number"
) -> int:
    """A whole number from 1 on. Python itself refuses to parse thousands of digits."""
    text = _text(variables, name) or str(default)
    if not (text.isascii() and text.isdigit() and len(text) < MOST_DIGITS and 0 < int(text) <= most):
        raise BadSetting(name, f"'{text[:MOST_DIGITS]}' is not a {what} from 1 to {most}")
    return int(text)


def _read_optional_port(variables: Mapping[str, str], name: str) -> int | None:
    if not _text(variables, name):
        return None
    return _read_number(variables, name, default=0, most=65535, what="port number")


def _read_seconds(variables: Mapping[str, str], name: str, *, default: int) -> int:
    return _read_number(
        variables, name, default=default, most=LONGEST_TIMEOUT_SECONDS, what="number of seconds"
    )


def _read_folder(variables: Mapping[str, str]) -> Path:
    given = _text(variables, "TOOLSEARCH_DATA") or "var"
    try:
        return Path(given).expanduser().absolute()
    except RuntimeError as problem:
        raise BadSetting("TOOLSEARCH_DATA", f"'{given}' cannot be used as a folder: {problem}") from None


def _read_database(variables: Mapping[str, str]) -> DatabaseAddress | None:
    text = _text(variables, "DATABASE_URL")
    if not text:
        return None
    parts = _split_url("DATABASE_URL", text, ("postgres", "postgresql"))
    name = unquote(parts.path.lstrip("/"))
    if not name or "/" in name:
        raise BadSetting("DATABASE_URL", "names no database; use postgres://user:password@host:port/database")
    options = dict(parse_qsl(parts.query, keep_blank_values=True))
    return DatabaseAddress(
        name=name,
        user=unquote(parts.username or ""),
        password=unquote(parts.password or "") or variables.get("PGPASSWORD", ""),
        host=options.pop("host", "") or parts.hostname or "",
        port=str(parts.port or ""),
        options=options,
    )


def _read_url(variables: Mapping[str, str], name: str, schemes: tuple[str, ...]) -> str | None:
    text = _text(variables, name)
    if not text:
        return None
    parts = _split_url(name, text, schemes)
    if not parts.hostname:
        raise BadSetting(name, f"names no host; use {schemes[0]}://host:port/…")
    password = variables.get("REDIS_PASSWORD", "")
    if password and parts.password is None and parts.scheme in {"redis", "rediss"}:
        user = quote(parts.username or "", safe="")
        host = parts.netloc.rpartition("@")[2]
        return parts._replace(netloc=f"{user}:{quote(password, safe='')}@{host}").geturl()
    return text


def _read_public_url(variables: Mapping[str, str]) -> str | None:
    """Where browsers reach the console, without a path: `https://tools.example.com`."""
    name = "TOOLSEARCH_PUBLIC_URL"
    url = _read_url(variables, name, ("https", "http"))
    if url is None:
        return None
    parts = urlsplit(url)
    if parts.path.strip("/") or parts.query or parts.fragment or "@" in parts.netloc:
        raise BadSetting(name, "is more than scheme, host and port; use https://tools.example.com")
    return f"{parts.scheme}://{parts.netloc.lower()}"


def _split_url(name: str, text: str, schemes: tuple[str, ...]) -> SplitResult:
    expected = " or ".join(f"{scheme}://…" for scheme in schemes)
    try:
        parts = urlsplit(text)
        parts.port  # noqa: B018  reading it is what checks it
    except ValueError:
        raise BadSetting(name, f"is not an address; use {expected}") from None
    if parts.scheme not in schemes:
        raise BadSetting(name, f"has the scheme '{parts.scheme or 'none'}'; use {expected}")
    return parts


def _read_secret_key(variables: Mapping[str, str]) -> str | None:
    key = variables.get("SECRET_KEY", "")
    return _check_secret("SECRET_KEY", key) if key else None


def _read_former_secret_keys(variables: Mapping[str, str]) -> tuple[str, ...]:
    """Former values of `SECRET_KEY`, still accepted for existing signatures."""
    name = "SECRET_KEY_FALLBACKS"
    keys = [key.strip() for key in _text(variables, name).split(",")]
    return tuple(_check_secret(name, key) for key in keys) if any(keys) else ()


def _check_secret(name: str, key: str) -> str:
    if not is_storable(key):
        raise BadSetting(name, "is not UTF-8 text")
    if len(key) < SECRET_KEY_MIN_CHARS:
        raise BadSetting(name, f"is shorter than {SECRET_KEY_MIN_CHARS} characters")
    if key.lower().startswith(SAMPLE_SECRETS) or len(set(key)) < 5:
        raise BadSetting(name, "is a sample, not a secret; use a long random text")
    return key


def _read_encryption_keys(variables: Mapping[str, str]) -> tuple[str, ...]:
    text = _text(variables, "TOOLSEARCH_ENCRYPTION_KEY")
    if not text:
        return ()
    try:
        return parse_keys(text)
    except ValueError as problem:
        raise BadSetting("TOOLSEARCH_ENCRYPTION_KEY", str(problem)) from None


def _read_hosts(variables: Mapping[str, str]) -> tuple[str, ...]:
    hosts = tuple(host.strip() for host in _text(variables, "ALLOWED_HOSTS").split(",") if host.strip())
    for host in hosts:
        if not HOST_PATTERN.fullmatch(host) and not _is_address(host):
            raise BadSetting(
                "ALLOWED_HOSTS", f"'{host}' is not a host name; use names without scheme, port or path"
            )
    return hosts or LOOPBACK_HOSTS


def _is_address(host: str) -> bool:
    try:
        ipaddress.ip_address(host.removeprefix("[").removesuffix("]"))
    except ValueError:
        return False
    return True


def _read_stdio(variables: Mapping[str, str]) -> tuple[bool | None, frozenset[str] | None]:
    """`on`, `off`, or a list of the commands that may be started; unset depends on the mode."""
    text = _text(variables, "TOOLSEARCH_STDIO")
    if not text:
        return None, None
    if text.lower() in TRUE_WORDS:
        return True, None
    if text.lower() in FALSE_WORDS:
        return False, None
    commands = [command.strip() for command in text.split(",")]
    if not all(commands):
        raise BadSetting("TOOLSEARCH_STDIO", "has an empty entry; use on, off or a list of commands: npx,uvx")
    return True, frozenset(commands)


def _read_references(variables: Mapping[str, str]) -> tuple[str, ...] | None:
    """Globs of the variables that `${NAME}` in a server's settings may refer to; `none` allows none."""
    text = _text(variables, "TOOLSEARCH_REFERENCES")
    if not text:
        return None
    if text.lower() == "none":
        return ()
    globs = tuple(glob.strip() for glob in text.split(","))
    for glob in globs:
        if not REFERENCE_PATTERN.fullmatch(glob):
            raise BadSetting(
                "TOOLSEARCH_REFERENCES",
                f"'{glob[:40]}' is not a variable's name; use none, or names and globs: GITHUB_TOKEN,MCP_*",
            )
    return globs


def _read_node(variables: Mapping[str, str]) -> str:
    """This machine's name, unique among the nodes."""
    given = _text(variables, "TOOLSEARCH_NODE")
    name = given or re.sub(r"[^A-Za-z0-9._-]", "-", socket.gethostname())[:60].strip("-._") or "node"
    if not NODE_PATTERN.fullmatch(name):
        raise BadSetting("TOOLSEARCH_NODE", f"'{given}' is not a name of letters, digits, dots and dashes")
    return name


def _read_metrics_token(variables: Mapping[str, str]) -> str | None:
    token = _text(variables, "TOOLSEARCH_METRICS_TOKEN")
    if not token:
        return None
    if len(token) < METRICS_TOKEN_MIN_CHARS or not token.isascii():
        raise BadSetting(
            "TOOLSEARCH_METRICS_TOKEN", f"needs at least {METRICS_TOKEN_MIN_CHARS} plain characters"
        )
    return token


def _read_log_form(variables: Mapping[str, str]) -> str | None:
    form = _text(variables, "TOOLSEARCH_LOGS").lower()
    if form and form not in LOG_FORMS:
        raise BadSetting("TOOLSEARCH_LOGS", f"'{form}' is neither {' nor '.join(LOG_FORMS)}")
    return form or None


def _read_encoder(variables: Mapping[str, str]) -> EncoderSetting:
    """`words`, `none`, `onnx:<folder>`, or the address of an endpoint, which needs a model's name."""
    value = _text(variables, "TOOLSEARCH_ENCODER") or WORDS
    model = _text(variables, "TOOLSEARCH_ENCODER_MODEL")
    for name, text in (("TOOLSEARCH_ENCODER", value), ("TOOLSEARCH_ENCODER_MODEL", model)):
        if not is_storable(text):
            raise BadSetting(name, "is not UTF-8 text")
    if value.startswith(ONNX):
        value = _check_encoder_folder(value)
    elif value.lower().startswith(ADDRESSES):
        value = _check_encoder_address(value)
        if not model:
            raise BadSetting(
                "TOOLSEARCH_ENCODER_MODEL", "is missing; an endpoint is asked for a model by name"
            )
    elif value.lower() in {WORDS, NONE}:
        value = value.lower()
    else:
        raise BadSetting(
            "TOOLSEARCH_ENCODER",
            f"'{value[:40]}' is neither words, none, onnx:<folder> nor https://…/embeddings",
        )
    return EncoderSetting(
        value=value,
        model=model,
        key=_read_encoder_key(variables),
        query_prefix=_read_prefix(variables, "TOOLSEARCH_ENCODER_QUERY_PREFIX"),
        text_prefix=_read_prefix(variables, "TOOLSEARCH_ENCODER_TEXT_PREFIX"),
    )


def _read_encoder_key(variables: Mapping[str, str]) -> str:
    key = _text(variables, "TOOLSEARCH_ENCODER_KEY")
    if not (key.isascii() and key.isprintable()):
        raise BadSetting("TOOLSEARCH_ENCODER_KEY", "has characters that no header may have")
    return key


def _read_prefix(variables: Mapping[str, str], name: str) -> str | None:
    """None where it is not set: the encoder's own. A space at its end counts."""
    prefix = variables.get(name)
    if prefix is not None and not is_storable(prefix):
        raise BadSetting(name, "is not UTF-8 text")
    return prefix


def _check_encoder_folder(value: str) -> str:
    name, given = "TOOLSEARCH_ENCODER", value.removeprefix(ONNX).strip()
    try:
        folder = Path(given).expanduser().absolute()
    except RuntimeError as problem:
        raise BadSetting(name, f"'{given}' cannot be used as a folder: {problem}") from None
    if not given or not folder.is_dir():
        raise BadSetting(name, f"'{given}' is not a folder")
    if missing := find_missing(folder):
        raise BadSetting(name, f"the folder '{given}' has no {missing}")
    return f"{ONNX}{folder}"


def _check_encoder_address(value: str) -> str:
    name = "TOOLSEARCH_ENCODER"
    parts = _split_url(name, value, ("https", "http"))
    if not parts.hostname:
        raise BadSetting(name, "names no host; use https://host/v1/embeddings")
    if not _is_address(parts.hostname) and not ENCODER_HOST_PATTERN.fullmatch(parts.hostname):
        raise BadSetting(name, f"'{parts.hostname[:40]}' is not a host; use https://host/v1/embeddings")
    if "@" in parts.netloc:
        raise BadSetting(name, "holds a user or a password; give the key as TOOLSEARCH_ENCODER_KEY")
    return complete_address(value)
