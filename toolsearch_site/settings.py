"""Django's settings: the same code embedded on one machine and on many, with other parts plugged in.

Importing them writes nothing: keys are read, and made where there are none, by whoever first asks for one.
"""

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar, cast

from csp.constants import NONE, SELF
from django.utils.functional import SimpleLazyObject
from kombu.entity import Queue

from catalog.domain.limits import CONFIG_BODY_BYTES
from catalog.sealing import derive_key
from toolsearch_site.cluster.pg_pool import PooledConnection
from toolsearch_site.data_folder import DataFolder
from toolsearch_site.environment import BadSetting, Environment, read_environment
from toolsearch_site.logs import logging_settings

BASE_DIR = Path(__file__).resolve().parent.parent


def _read_or_stop() -> Environment:
    try:
        return read_environment(os.environ)
    except BadSetting as problem:
        raise SystemExit(f"toolsearch: {problem}") from None


ENVIRONMENT = _read_or_stop()
EMBEDDED = ENVIRONMENT.is_embedded
DATA_FOLDER = ENVIRONMENT.data_folder
DEBUG = ENVIRONMENT.debug
ALLOWED_HOSTS = list(ENVIRONMENT.allowed_hosts)

# --- Keys -----------------------------------------------------------------------------------------------

Kept = TypeVar("Kept")


def _when_asked_for(read: Callable[[], Kept]) -> Kept:
    """Read at the first use, which ends the process where it is lost."""
    return cast("Kept", SimpleLazyObject(read))


def _encryption_keys() -> tuple[str, ...]:
    if EMBEDDED:
        return (DataFolder(DATA_FOLDER).read_encryption_key(),)
    # Nodes share no folder, but they share the secret key: what one seals the others can open.
    return tuple(derive_key(str(secret)) for secret in (SECRET_KEY, *SECRET_KEY_FALLBACKS))


SECRET_KEY = ENVIRONMENT.secret_key or _when_asked_for(DataFolder(DATA_FOLDER).read_secret_key)
SECRET_KEY_FALLBACKS = list(ENVIRONMENT.former_secret_keys)
ENCRYPTION_KEYS = ENVIRONMENT.encryption_keys or _when_asked_for(_encryption_keys)

# --- Applications ---------------------------------------------------------------------------------------

INSTALLED_APPS = [
    "toolsearch_site",
    "catalog",
    "sessions",
    "toolsearch_site.accounts.admin_config.SuperuserAdminConfig",
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "django.contrib.sessions",
    "django.contrib.messages",
    "django.contrib.humanize",
    "whitenoise.runserver_nostatic",
    "toolsearch_site.edge.static_files.ConsoleStaticFilesConfig",
    "csp",
    "django_htmx",
    "ninja",
]

MIDDLEWARE = [
    "toolsearch_site.edge.liveness.answer_liveness",
    "toolsearch_site.edge.request_ids.request_ids",
    "toolsearch_site.monitoring.metrics.measured",
    "django.middleware.security.SecurityMiddleware",
    "toolsearch_site.edge.api_dispatch.dispatch_api",
    "whitenoise.middleware.WhiteNoiseMiddleware",
    "django.middleware.gzip.GZipMiddleware",
    "csp.middleware.CSPMiddleware",
    "django.contrib.sessions.middleware.SessionMiddleware",
    "django.middleware.common.CommonMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "toolsearch_site.accounts.sign_in_expiry.expire_sign_ins",
    "django.contrib.auth.middleware.LoginRequiredMiddleware",
    "django.contrib.messages.middleware.MessageMiddleware",
    "django.middleware.clickjacking.XFrameOptionsMiddleware",
    "django_htmx.middleware.HtmxMiddleware",
    # Before any view, form or CSRF check reads the body, and late enough to answer with a page.
    "toolsearch_site.edge.body_limit.body_limit",
    "toolsearch_site.edge.middleware.ConsoleMiddleware",
]

ROOT_URLCONF = "toolsearch_site.urls"
WSGI_APPLICATION = "toolsearch_site.wsgi.application"
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"

TEMPLATES = [
    {
        "BACKEND": "django.template.backends.django.DjangoTemplates",
        "DIRS": [BASE_DIR / "templates"],
        "APP_DIRS": True,
        "OPTIONS": {
            "context_processors": [
                "django.template.context_processors.request",
                "django.contrib.auth.context_processors.auth",
                "django.contrib.messages.context_processors.messages",
                "toolsearch_site.navigation.navigation",
            ],
        },
    },
]

# --- Database -------------------------------------------------------------------------------------------

# Write-ahead log and immediate transactions: readers never wait for a writer, and a transaction that reads
# before it writes waits for its turn instead of failing at once with "database is locked".
SQLITE = {
    "ENGINE": "django.db.backends.sqlite3",
    # Only `migrate` makes the file: any other command says that there is none.
    "NAME": f"{DataFolder(DATA_FOLDER).database_file.as_uri()}?mode=rw",
    # Opening the file costs more than most requests: each thread keeps its connection.
    "CONN_MAX_AGE": None,
    "OPTIONS": {
        "transaction_mode": "IMMEDIATE",
        "timeout": 20,
        "init_command": (
            "PRAGMA journal_mode=WAL; PRAGMA synchronous=FULL; PRAGMA temp_store=MEMORY;"
            " PRAGMA mmap_size=134217728; PRAGMA journal_size_limit=27103364;"
        ),
    },
}


# Per process. While the server is down a request waits `timeout` seconds for a connection, then gets a 503; a
# short reconnect timeout finds the server soon after it returns. After every outage psycopg_pool grows by one
# connection: bound it per process, or idle processes would hold connections that others need.
POOL = {
    "min_size": 1,
    "max_size": ENVIRONMENT.connections,
    "timeout": 3,
    "reconnect_timeout": 5,
    "connection_class": PooledConnection,
}


def _database_settings() -> dict[str, Any]:
    address = ENVIRONMENT.database
    if address is None:
        return SQLITE
    return {
        "ENGINE": "django.db.backends.postgresql",
        "NAME": address.name,
        "USER": address.user,
        "PASSWORD": address.password,
        "HOST": address.host,
        "PORT": address.port,
        # A connection broken by a restart of the server is detected before a request gets it.
        "CONN_HEALTH_CHECKS": True,
        "OPTIONS": {"connect_timeout": 3, **address.options, "pool": POOL},
    }


DATABASES = {"default": _database_settings()}

CACHES = {
    "default": (
        {
            "BACKEND": "django.core.cache.backends.redis.RedisCache",
            "LOCATION": ENVIRONMENT.cache_url,
            # The cache is never worth waiting for.
            "OPTIONS": {"socket_connect_timeout": 0.5, "socket_timeout": 0.5},
        }
        if ENVIRONMENT.cache_url
        else {"BACKEND": "django.core.cache.backends.locmem.LocMemCache", "LOCATION": "toolsearch"}
    )
}

CACHE_IS_SHARED = ENVIRONMENT.cache_url is not None

# --- Celery ---------------------------------------------------------------------------------------------

BROKER_FOLDER = DATA_FOLDER / "broker"
# Redis gives a message to another worker when it is not acknowledged in time: later than any task can end.
LONGEST_TASK_SECONDS = 600
VISIBILITY_TIMEOUT_SECONDS = 3600
# A worker started without `--queues` serves both.
REFRESH_QUEUE = "refresh"
CELERY_TASK_QUEUES = [Queue(name) for name in ("celery", REFRESH_QUEUE)]  # type: ignore[no-untyped-call]
CELERY_BROKER_URL = ENVIRONMENT.broker_url or "filesystem://localhost"
CELERY_TASK_IGNORE_RESULT = True
CELERY_RESULT_EXPIRES = 3600
CELERY_TASK_TIME_LIMIT = LONGEST_TASK_SECONDS
CELERY_TASK_ACKS_LATE = True
CELERY_TASK_REJECT_ON_WORKER_LOST = True
CELERY_TASK_SERIALIZER = "json"
CELERY_ACCEPT_CONTENT = ["json"]
CELERY_WORKER_PREFETCH_MULTIPLIER = 1
CELERY_WORKER_HIJACK_ROOT_LOGGER = False
CELERY_BROKER_CONNECTION_RETRY_ON_STARTUP = True
# A message is only a wake-up: while the broker is down the sweep finds the row, so do not retry or wait.
CELERY_TASK_PUBLISH_RETRY = False
CELERY_WORKER_ENABLE_REMOTE_CONTROL = ENVIRONMENT.broker_url is not None
CELERY_BROKER_TRANSPORT_OPTIONS: dict[str, Any] = (
    {"visibility_timeout": VISIBILITY_TIMEOUT_SECONDS, "socket_connect_timeout": 3, "socket_timeout": 10}
    if (ENVIRONMENT.broker_url or "").startswith("redis")
    else {}
)
if ENVIRONMENT.broker_url is None:
    CELERY_BROKER_TRANSPORT_OPTIONS = {
        "data_folder_in": str(BROKER_FOLDER),
        "data_folder_out": str(BROKER_FOLDER),
        "control_folder": str(BROKER_FOLDER / "control"),
        "polling_interval": 0.2,
    }
    CELERY_BROKER_TRANSPORT = "toolsearch_site.cluster.file_broker:FileTransport"
# Every beat is cheap and may be missed: rows say what is due. A late beat is dropped.
CELERY_BEAT_SCHEDULE = {
    "sweep-jobs": {"task": "catalog.sweep_jobs", "schedule": 2.0, "options": {"expires": 10}},
    "queue-due-refreshes": {
        "task": "catalog.queue_due_refreshes",
        "schedule": 10.0,
        "options": {"expires": 30},
    },
    "seal-changes": {"task": "catalog.seal_changes", "schedule": 10.0, "options": {"expires": 30}},
    "prune-history": {"task": "catalog.prune_history", "schedule": 3600.0, "options": {"expires": 600}},
    "expire-sessions": {"task": "sessions.expire_sessions", "schedule": 60.0, "options": {"expires": 60}},
    "forget-gateway-rows": {
        "task": "sessions.forget_gateway_rows",
        "schedule": 60.0,
        "options": {"expires": 60},
    },
    "clear-expired-sign-ins": {
        "task": "toolsearch_site.clear_expired_sign_ins",
        "schedule": 3600.0,
        "options": {"expires": 600},
    },
    "prune-searches": {"task": "sessions.prune_searches", "schedule": 3600.0, "options": {"expires": 600}},
}
CELERY_BEAT_SCHEDULER = "toolsearch_site.cluster.scheduler:SoleScheduler"

# --- Static files ---------------------------------------------------------------------------------------

STATIC_URL = "static/"
STATIC_ROOT = DATA_FOLDER / "static"
STATICFILES_DIRS = [BASE_DIR / "static"]
STORAGES = {
    "default": {"BACKEND": "django.core.files.storage.FileSystemStorage"},
    "staticfiles": {
        "BACKEND": (
            "django.contrib.staticfiles.storage.StaticFilesStorage"
            if DEBUG
            else "toolsearch_site.edge.static_files.ConsoleStorage"
        )
    },
}

# --- Sign-in and browser security -----------------------------------------------------------------------

LOGIN_URL = "sign_in"
LOGIN_REDIRECT_URL = "overview"
LOGOUT_REDIRECT_URL = "sign_in"
AUTH_PASSWORD_VALIDATORS = [
    {"NAME": "django.contrib.auth.password_validation.UserAttributeSimilarityValidator"},
    {"NAME": "django.contrib.auth.password_validation.MinimumLengthValidator", "OPTIONS": {"min_length": 12}},
    {"NAME": "django.contrib.auth.password_validation.CommonPasswordValidator"},
    {"NAME": "django.contrib.auth.password_validation.NumericPasswordValidator"},
]

# Embedded means plain HTTP on the local machine; anything else is behind TLS.
BEHIND_TLS = not (EMBEDDED or DEBUG) if ENVIRONMENT.behind_tls is None else ENVIRONMENT.behind_tls
SESSION_COOKIE_SECURE = BEHIND_TLS
CSRF_COOKIE_SECURE = BEHIND_TLS
SECURE_HSTS_SECONDS = 31536000 if BEHIND_TLS else 0
SECURE_SSL_REDIRECT = BEHIND_TLS
# A load balancer asks a node itself, in plain HTTP.
SECURE_REDIRECT_EXEMPT = [r"^api/v1/health$"]
# Whether other hosts of the domain, too, are reached by TLS only is not ours to promise.
SILENCED_SYSTEM_CHECKS = ["security.W005", "security.W021"]
SECURE_PROXY_SSL_HEADER = ("HTTP_X_FORWARDED_PROTO", "https") if BEHIND_TLS else None
SESSION_COOKIE_HTTPONLY = True
SESSION_COOKIE_AGE = 7 * 24 * 3600  # sign_in_ends.py ends a sign-in then, whatever its cookie says
SECURE_CONTENT_TYPE_NOSNIFF = True
SECURE_REFERRER_POLICY = "same-origin"
X_FRAME_OPTIONS = "DENY"
CONTENT_SECURITY_POLICY = {
    "DIRECTIVES": {
        "default-src": [SELF],
        "img-src": [SELF, "data:"],
        "object-src": [NONE],
        "base-uri": [SELF],
        "form-action": [SELF],
        "frame-ancestors": [NONE],
    }
}
# The most that any request may have; `largest_body_bytes` says what each may.
DATA_UPLOAD_MAX_MEMORY_SIZE = CONFIG_BODY_BYTES
# For a whole request to arrive, and for any progress in reading the answer.
CLIENT_TIMEOUT_SECONDS = ENVIRONMENT.client_timeout_seconds

# --- What is kept of agents' sessions ---------------------------------------------------------------------

# How long write-behind buffers collect searches, events and last uses before one transaction writes them.
WRITE_BEHIND_SECONDS = 1.0
# Also of what else happened in sessions, and of the counts over time.
KEEP_SEARCHES_DAYS = ENVIRONMENT.keep_searches_days
# Of all policies and keys together; a policy's own limit is its `max_sessions`.
MAX_SESSIONS = 1_000_000
# What the sessions of one key may bring along together, built-ins and lists of visible tools, as JSON.
MAX_KEY_BYTES = 256_000_000

# --- What is kept of servers' tools ------------------------------------------------------------------------

# Of a tool that its server no longer lists and that has no settings.
KEEP_GONE_TOOLS_DAYS = ENVIRONMENT.keep_gone_tools_days
# Functions that say which of some names an app refers to: such a tool is kept though it is gone.
TOOL_REFERENCES = ("sessions.selectors.tool_use.loaded_names",)

# --- What the worker may reach --------------------------------------------------------------------------

STDIO_ENABLED = EMBEDDED if ENVIRONMENT.stdio_enabled is None else ENVIRONMENT.stdio_enabled
STDIO_COMMANDS = ENVIRONMENT.stdio_commands
# Variables that `${NAME}` in a server's settings may refer to, and values that no such variable may hold.
REFERENCES = ENVIRONMENT.allowed_references
OWN_SECRETS = _when_asked_for(
    lambda: tuple({str(SECRET_KEY), *SECRET_KEY_FALLBACKS, *ENCRYPTION_KEYS, *ENVIRONMENT.secrets})
)
PRIVATE_ADDRESSES_ALLOWED = (
    EMBEDDED if ENVIRONMENT.private_addresses is None else ENVIRONMENT.private_addresses
)
# A command such as npx may have to install its package first.
CONNECT_TIMEOUT_SECONDS = ENVIRONMENT.connect_timeout_seconds
LIST_TIMEOUT_SECONDS = ENVIRONMENT.list_timeout_seconds

# --- Language, time, logs -------------------------------------------------------------------------------

LANGUAGE_CODE = "en"
TIME_ZONE = "UTC"
USE_TZ = True
LOGGING = logging_settings(
    debug=DEBUG, form=ENVIRONMENT.log_form or ("lines" if EMBEDDED else "json"), node=ENVIRONMENT.node
)

# --- This node ------------------------------------------------------------------------------------------

NODE = ENVIRONMENT.node
INDEX_FOLDER = DATA_FOLDER / "index"
# Nodes share no folder: each follows the catalog by itself. On one machine a job of the worker's does.
NODES_KEEP_OWN_INDEX = not EMBEDDED
# `up` and `run_node` tell the programs that they start which port it has.
GATEWAY_PORT = ENVIRONMENT.gateway_port or ENVIRONMENT.port + 1
# Where people's MCP clients find it; None: on the host that a page was asked of, at that port, under `/mcp`.
GATEWAY_URL = ENVIRONMENT.gateway_url
# Where browsers reach the console; None: only on this machine, at whatever host the browser names.
PUBLIC_URL = ENVIRONMENT.public_url
# Where providers send a browser back to, and where they read what this console is as a client. The second
# address is the client's id: it never changes.
SIGN_IN_CALLBACK = "/oauth/callback"
CLIENT_DOCUMENT_PATH = "/oauth/client.json"
# Whether providers may be told to read it: they have to reach this console from where they are.
CLIENT_DOCUMENT_OFFERED = ENVIRONMENT.client_document and (PUBLIC_URL or "").startswith("https://")
# What turns texts into vectors, and what the processes of this node know together of an endpoint's failures.
ENCODER = ENVIRONMENT.encoder
ENCODER_REST_FILE = DATA_FOLDER / "encoder-rest.json"
METRICS_TOKEN = ENVIRONMENT.metrics_token
METRICS_FOLDER = DATA_FOLDER / "metrics"
