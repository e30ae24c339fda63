"""The tables in a backup, and the conversion of their values to JSON and back."""

import base64
from collections.abc import Mapping
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from functools import cached_property
from typing import Any, TypeAlias
from uuid import UUID

from django.apps import apps
from django.contrib.auth.models import Permission
from django.contrib.contenttypes.models import ContentType
from django.db import connection, models
from django.db.migrations.recorder import MigrationRecorder
from django.utils.crypto import salted_hmac
from django.utils.duration import duration_iso_string

# Migrations create these rows with ids of their own: other tables refer to them by natural key.
NATURAL_KEYS = (ContentType, Permission)
# Heartbeats and leases of programs that are gone, sign-ins that shall not be restored (a refresh token from a
# backup would end the grant that it belongs to), results that are kept for some minutes, and vectors, which
# are made again.
EPHEMERAL = frozenset(
    {"sessions.session", "catalog.heartbeat", "catalog.oauthgrant", "catalog.oauthattempt"}
    | {"catalog.encoderstate", "catalog.toolvector"}
    | {"toolsearch_site.lease", "toolsearch_site.node", "toolsearch_site.signincount"}
    | {f"agent_sessions.{name}" for name in ("keptresult", "gatewayprocess", "openlease", "upstreamstate")}
)
# Tables that migrations and a scheduler fill in a new instance.
SEEDED = frozenset(
    {"auth.group", "catalog.catalogversion", "catalog.policy", "catalog.modelsupport"}
    | {"catalog.decidedlist", "catalog.job"}
)

Model = type[models.Model]
ModelField: TypeAlias = "models.Field[Any, Any]"


def kept_models() -> dict[str, Model]:
    """Every table except ephemeral ones, by label, so that new tables are included by default."""
    found = {
        model._meta.label_lower: model
        for model in apps.get_models(include_auto_created=True)
        if model._meta.managed and not model._meta.proxy and model not in NATURAL_KEYS
    }
    return {label: found[label] for label in sorted(found) if label not in EPHEMERAL}


def all_rows(model: Model) -> "models.QuerySet[Any]":
    """Bypasses the model's manager, which may hide rows."""
    return models.QuerySet(model)


def columns_of(model: Model) -> list[str]:
    return [field.attname for field in model._meta.concrete_fields]


def applied_migrations() -> list[str]:
    """Two instances with the same migrations have the same tables."""
    applied = MigrationRecorder(connection).applied_migrations()
    return sorted(f"{app}.{name}" for app, name in applied if app in apps.app_configs)


def key_check(secret: str | None = None) -> str:
    """A check value of `SECRET_KEY`, or of another key."""
    made = salted_hmac("toolsearch.backup", "key check", secret=secret, algorithm="sha256")
    return made.hexdigest()[:16]


class Codec:
    """Converts the columns of one table. Reads the ids of natural keys once."""

    def __init__(self, model: Model) -> None:
        self.fields = model._meta.concrete_fields

    def encode(self, values: tuple[Any, ...]) -> list[Any]:
        return [self._encode(field, value) for field, value in zip(self.fields, values, strict=True)]

    def decode(self, row: list[Any]) -> list[Any]:
        """Values for the database. Raises ValueError, ValidationError or KeyError for invalid ones."""
        return [
            field.get_db_prep_save(self._decode(field, value), connection)
            for field, value in zip(self.fields, row, strict=True)
        ]

    def _encode(self, field: ModelField, value: Any) -> Any:
        if value is None or isinstance(field, models.JSONField):
            return value
        if words := self._words.get(_target(field)):
            return words[value]
        return _plain(value)

    def _decode(self, field: ModelField, value: Any) -> Any:
        if value is None or isinstance(field, models.JSONField):
            return value
        if ids := self._ids.get(_target(field)):
            return ids[value]
        return field.to_python(value)

    @cached_property
    def _words(self) -> Mapping[Model | None, Mapping[int, str]]:
        named = {_target(field) for field in self.fields}
        return {model: _read_words(model) for model in NATURAL_KEYS if model in named}

    @cached_property
    def _ids(self) -> Mapping[Model | None, Mapping[str, int]]:
        return {model: {word: pk for pk, word in words.items()} for model, words in self._words.items()}


def _target(field: ModelField) -> Model | None:
    return field.related_model if isinstance(field, models.ForeignKey) else None


def _read_words(model: Model) -> dict[int, str]:
    columns = (
        ("app_label", "model")
        if model is ContentType
        else ("content_type__app_label", "content_type__model", "codename")
    )
    rows = all_rows(model).values_list("pk", *columns)
    return {pk: ".".join(words) for pk, *words in rows}


def _plain(value: Any) -> Any:
    """To the microsecond: Django's own encoder cuts times to milliseconds."""
    match value:
        case datetime() | date() | time():
            return value.isoformat()
        case timedelta():
            return duration_iso_string(value)
        case UUID() | Decimal():
            return str(value)
        case bytes() | memoryview():
            return base64.b64encode(value).decode()
    return value
