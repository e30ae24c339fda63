"""Django's settings: the same code embedded on one machine and on many, with other parts plugged in."""

import os
from pathlib import Path
from typing import Any

from csp.constants import NONE, SELF
from kombu.entity import Queue

from catalog.sealing import derive_key, read_or_create_key
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

SECRET_KEY = ENVIRONMENT.secret_key or read_or_create_key(DATA_FOLDER / "secret.key")
ENCRYPTION_KEYS = ENVIRONMENT.encryption_keys or (
    # Nodes share no folder, but they share the secret key: what one seals the others can open.
    (read_or_create_key(DATA_FOLDER / "encryption.key"),) if EMBEDDED else (derive_key(SECRET_KEY),)
)

INSTALLED_APPS = [
    "toolsearch_site",
    "catalog",
    "sessions",
    "django.contrib.admin",
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "django.contrib.sessions",
    "django.contrib.messages",
    "django.contrib.humanize",
    "whitenoise.runserver_nostatic",
    "django.contrib.staticfiles",
    "csp",
    "django_htmx",
    "ninja",
]

MIDDLEWARE = [
    "toolsearch_site.sign_of_life.sign_of_life",
    "django.middleware.security.SecurityMiddleware",
    "toolsearch_site.api_first.api_first",
    "whitenoise.middleware.WhiteNoiseMiddleware",
    "django.middleware.gzip.GZipMiddleware",
    "csp.middleware.CSPMiddleware",
    "django.contrib.sessions.middleware.SessionMiddleware",
    "django.middleware.common.CommonMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "django.contrib.auth.middleware.LoginRequiredMiddleware",
    "django.contrib.messages.middleware.MessageMiddleware",
    "django.middleware.clickjacking.XFrameOptionsMiddleware",
    "django_htmx.middleware.HtmxMiddleware",
    "toolsearch_site.middleware.ConsoleMiddleware",
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
    "NAME": DATA_FOLDER / "toolsearch.sqlite3",
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
        "CONN_HEALTH_CHECKS": True,
        "OPTIONS": {**address.options, "pool": {"min_size": 1, "max_size": 16, "timeout": 10}},
    }


DATABASES = {"default": _database_settings()}

CACHES = {
    "default": (
        {"BACKEND": "django.core.cache.backends.redis.RedisCache", "LOCATION": ENVIRONMENT.cache_url}
        if ENVIRONMENT.cache_url
        else {"BACKEND": "django.core.cache.backends.locmem.LocMemCache", "LOCATION": "toolsearch"}
    )
}

CACHE_IS_SHARED = ENVIRONMENT.cache_url is not None

# --- Celery ---------------------------------------------------------------------------------------------

BROKER_FOLDER = DATA_FOLDER / "broker"
# A worker that is not told which queues to serve serves both.
REFRESH_QUEUE = "refresh"
CELERY_TASK_QUEUES = [Queue(name) for name in ("celery", REFRESH_QUEUE)]  # type: ignore[no-untyped-call]
CELERY_BROKER_URL = ENVIRONMENT.broker_url or "filesystem://localhost"
CELERY_TASK_IGNORE_RESULT = True
CELERY_TASK_ACKS_LATE = True
CELERY_TASK_REJECT_ON_WORKER_LOST = True
CELERY_TASK_SERIALIZER = "json"
CELERY_ACCEPT_CONTENT = ["json"]
CELERY_WORKER_PREFETCH_MULTIPLIER = 1
CELERY_WORKER_HIJACK_ROOT_LOGGER = False
CELERY_BROKER_CONNECTION_RETRY_ON_STARTUP = True
# A message is only a wake-up: when the broker is away the sweep finds the row, so nobody waits for it.
CELERY_TASK_PUBLISH_RETRY = False
CELERY_WORKER_ENABLE_REMOTE_CONTROL = ENVIRONMENT.broker_url is not None
CELERY_BROKER_TRANSPORT_OPTIONS: dict[str, Any] = (
    {"visibility_timeout": 3600, "socket_connect_timeout": 3, "socket_timeout": 10}
    if (ENVIRONMENT.broker_url or "").startswith("redis")
    else {}
)
if ENVIRONMENT.broker_url is None:
    (BROKER_FOLDER / "control").mkdir(mode=0o700, parents=True, exist_ok=True)
    CELERY_BROKER_TRANSPORT_OPTIONS = {
        "data_folder_in": str(BROKER_FOLDER),
        "data_folder_out": str(BROKER_FOLDER),
        "control_folder": str(BROKER_FOLDER / "control"),
        "polling_interval": 0.2,
    }
# Every beat is cheap and may be missed: what is due stands in the rows. A late beat is dropped.
CELERY_BEAT_SCHEDULE = {
    "sweep-jobs": {"task": "catalog.sweep_jobs", "schedule": 2.0, "options": {"expires": 10}},
    "queue-due-refreshes": {
        "task": "catalog.queue_due_refreshes",
        "schedule": 10.0,
        "options": {"expires": 30},
    },
    "prune-history": {"task": "catalog.prune_history", "schedule": 3600.0, "options": {"expires": 600}},
    "expire-sessions": {"task": "sessions.expire_sessions", "schedule": 60.0, "options": {"expires": 60}},
    "prune-searches": {"task": "sessions.prune_searches", "schedule": 3600.0, "options": {"expires": 600}},
}
CELERY_BEAT_SCHEDULER = "celery.beat:Scheduler"

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
            else "whitenoise.storage.CompressedManifestStaticFilesStorage"
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
]

# Embedded means plain HTTP on one's own machine; anything else stands behind TLS.
BEHIND_TLS = not (EMBEDDED or DEBUG) if ENVIRONMENT.behind_tls is None else ENVIRONMENT.behind_tls
SESSION_COOKIE_SECURE = BEHIND_TLS
CSRF_COOKIE_SECURE = BEHIND_TLS
SECURE_HSTS_SECONDS = 31536000 if BEHIND_TLS else 0
SECURE_PROXY_SSL_HEADER = ("HTTP_X_FORWARDED_PROTO", "https") if BEHIND_TLS else None
SESSION_COOKIE_HTTPONLY = True
SESSION_COOKIE_AGE = 14 * 24 * 3600
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
DATA_UPLOAD_MAX_MEMORY_SIZE = 1024 * 1024

# --- What is kept of agents' sessions ---------------------------------------------------------------------

# Searches and last uses of this long are written in one transaction, behind the answers' back.
WRITE_BEHIND_SECONDS = 1.0
KEEP_SEARCHES_DAYS = 90
# Of all policies and keys together; a policy's own limit is its `max_sessions`.
MAX_SESSIONS = 1_000_000

# --- What the worker may reach --------------------------------------------------------------------------

STDIO_ENABLED = EMBEDDED if ENVIRONMENT.stdio_enabled is None else ENVIRONMENT.stdio_enabled
STDIO_COMMANDS = ENVIRONMENT.stdio_commands
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
LOGGING = logging_settings(debug=DEBUG)

INDEX_FOLDER = DATA_FOLDER / "index"
BENCH_DATA = ENVIRONMENT.bench_data
