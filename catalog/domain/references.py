"""References to environment variables, `${NAME}` and `${NAME:-default}`, in a server's settings."""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Protocol

from catalog.domain.problems import join_place

REFERENCE = re.compile(r"\$\{([A-Za-z_][A-Za-z0-9_]*)(?::-([^}]*))?\}")
# What a client asks its user for or fills in itself; here it has to be given as a value.
PLACEHOLDER = re.compile(r"\$\{((?:input|prompt|command|config|file|workspaceFolder):[^{}]+)\}")
# Of the service itself, its database and its broker. No list of allowed names may contain these.
OWN_VARIABLES = frozenset(
    (
        *("SECRET_KEY", "SECRET_KEY_FALLBACKS", "ALLOWED_HOSTS", "DEBUG", "PORT", "PASSWORD_SIGN_IN"),
        *("DATABASE_URL", "CELERY_BROKER_URL", "CACHE_URL", "DJANGO_SETTINGS_MODULE"),
        *("POSTGRES_PASSWORD", "PGPASSWORD", "PGPASSFILE", "PGSERVICEFILE"),
        *("REDIS_PASSWORD", "REDISCLI_AUTH", "RABBITMQ_DEFAULT_PASS"),
    )
)
OWN_PREFIXES = ("TOOLSEARCH_", "OIDC_", "CELERY_")
# A shorter secret of the service is looked for as a whole value only: as a part it would be in many words.
SHORTEST_OWN_PART = 8


class Settings(Protocol):
    """A server's settings, stored or to be stored."""

    @property
    def command(self) -> str: ...
    @property
    def args(self) -> tuple[str, ...]: ...
    @property
    def env(self) -> Mapping[str, str]: ...
    @property
    def url(self) -> str: ...
    @property
    def headers(self) -> Mapping[str, str]: ...
    @property
    def cwd(self) -> str: ...


@dataclass(frozen=True, slots=True, repr=False)
class ReferenceRules:
    """Which variables may be referenced: names that match a glob, never the service's own.

    `own_values` are the service's secrets: a variable that holds one is refused whatever its name.
    """

    allowed: tuple[str, ...] = ("*",)
    own_values: tuple[str, ...] = ()

    def why_refused(self, name: str) -> str | None:
        """Why this name is refused; None where it may be referenced."""
        if name in OWN_VARIABLES or name.startswith(OWN_PREFIXES):
            return f"the variable {name} belongs to this service: no server may use it"
        if not any(fnmatchcase(name, glob) for glob in self.allowed):
            return f"the variable {name} is not among those that servers may use here (TOOLSEARCH_REFERENCES)"
        return None

    def is_own_value(self, value: str) -> bool:
        return any(
            value == own or (len(own) >= SHORTEST_OWN_PART and own in value) for own in self.own_values if own
        )


def texts_of(settings: Settings) -> Iterator[tuple[str, str]]:
    """Every text of a server's settings that may hold a reference, with its place."""
    yield "command", settings.command
    for position, arg in enumerate(settings.args):
        yield join_place("args", position), arg
    yield from ((join_place("env", name), value) for name, value in settings.env.items())
    yield "url", settings.url
    yield from ((join_place("headers", name), value) for name, value in settings.headers.items())
    yield "cwd", settings.cwd


def names_in(texts: Iterable[str]) -> frozenset[str]:
    return frozenset(found[1] for text in texts for found in REFERENCE.finditer(text))


def names_of(settings: Settings) -> frozenset[str]:
    return names_in(text for _, text in texts_of(settings))


def missing_in(settings: Settings, is_set: Callable[[str], bool]) -> tuple[str, ...]:
    """Names of values that the settings lack: what a client would ask for, and variables that are not set."""
    missing: dict[str, None] = {}
    for _, text in texts_of(settings):
        missing |= dict.fromkeys(found[1] for found in PLACEHOLDER.finditer(text))
        unset = (name for name, default in REFERENCE.findall(text) if not default and not is_set(name))
        missing |= dict.fromkeys(unset)
    return tuple(missing)


def fill_in(text: str, values: Mapping[str, str]) -> str:
    """The text with values in place of the placeholders and references that have those names."""

    def value_of(found: re.Match[str]) -> str:
        return values.get(found[1], found[0])

    return REFERENCE.sub(value_of, PLACEHOLDER.sub(value_of, text))


def new_references(given: Settings, stored: Settings | None) -> dict[str, list[str]]:
    """Names by place, for each text with a reference that is not stored unchanged at that place."""
    known = dict(texts_of(stored)) if stored else {}
    return {
        place: sorted(names)
        for place, text in texts_of(given)
        if text != known.get(place) and (names := names_in([text]))
    }
