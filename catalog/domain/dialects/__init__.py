"""The three config dialects: any of them in, any of them out."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import fields
from types import ModuleType

from catalog.domain.dialects import claude, everruns, pizzapi
from catalog.domain.dialects.config import Config, Dialect, Rendered, ServerEntry
from catalog.domain.dialects.secrets import hide_secrets, is_reference
from catalog.domain.dialects.servers import parse_servers, render_server
from catalog.domain.errors import InvalidInput
from catalog.domain.policy import Policy
from catalog.domain.problems import Problems
from catalog.domain.values import name_type

__all__ = ["Config", "Dialect", "Rendered", "ServerEntry", "is_reference", "parse", "render"]
