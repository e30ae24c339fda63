"""Versions of the software this process runs on. Addresses are left out, since they may hold passwords."""

import platform

import django
from django.conf import settings
from django.db import connection

from toolsearch_site.cluster.heartbeat import product_version

EMBEDDED_BROKER = "files in the data folder"
BROKERS = {"redis": "Redis", "rediss": "Redis", "amqp": "RabbitMQ", "amqps": "RabbitMQ"}


def read_software_versions() -> list[tuple[str, str]]:
    broker = settings.ENVIRONMENT.broker_url
    return [
        ("toolsearch", product_version()),
        ("Node", settings.NODE),
        ("Python", platform.python_version()),
        ("Django", django.get_version()),
        ("Database", _database()),
        ("Broker", BROKERS[broker.partition(":")[0]] if broker else EMBEDDED_BROKER),
        ("Shared cache", "Redis" if settings.CACHE_IS_SHARED else "none"),
    ]


def _database() -> str:
    connection.ensure_connection()
    return f"{connection.display_name} {'.'.join(map(str, connection.get_database_version()))}"
