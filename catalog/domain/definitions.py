"""A tool definition as its server gives it: parsed, measured, digested."""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from catalog.domain.sizes import Size, measure_definition

ANY_OBJECT = {"type": "object"}  # what a missing schema means; a model API takes no tool without one
_NAMED_FIELDS = ("name", "title", "description", "inputSchema", "outputSchema", "annotations", "_meta")


@dataclass(frozen=True, slots=True)
class Definition:
    """`extra` keeps what else the server sent, such as icons: a model may see it too."""

    name: str
    title: str = ""
    description: str = ""
    input_schema: Mapping[str, Any] = field(default_factory=dict)
    output_schema: Mapping[str, Any] | None = None
    annotations: Mapping[str, Any] = field(default_factory=dict)
    meta: Mapping[str, Any] = field(default_factory=dict)
    extra: Mapping[str, Any] = field(default_factory=dict)

    @classmethod
    def from_wire(cls, wire: Mapping[str, Any]) -> "Definition":
        """Read MCP's camelCase form. The caller has checked the types of the fields."""
        return cls(
            name=wire["name"],
            title=wire.get("title") or "",
            description=wire.get("description") or "",
            input_schema=wire.get("inputSchema") or {},
            output_schema=wire.get("outputSchema"),
            annotations=wire.get("annotations") or {},
            meta=wire.get("_meta") or {},
            extra={key: value for key, value in wire.items() if key not in _NAMED_FIELDS},
        )

    def to_wire(self) -> dict[str, Any]:
        """MCP's form, without empty fields."""
        optional = {
            "title": self.title,
            "description": self.description,
            "outputSchema": self.output_schema,
            "annotations": self.annotations,
            "_meta": self.meta,
        }
        kept = {key: value for key, value in optional.items() if value}
        return {"name": self.name, **kept, "inputSchema": self.input_schema or ANY_OBJECT, **self.extra}

    @property
    def size(self) -> Size:
        return measure_definition(self.name, self.description, self.input_schema)

    @property
    def digest(self) -> str:
        """Independent of key order; differs when anything a model can see differs."""
        text = json.dumps(self.to_wire(), sort_keys=True, ensure_ascii=False, separators=(",", ":"))
        return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def is_read_only(mark: bool | None, annotations: Mapping[str, Any]) -> bool:
    """Whether a tool only reads: an admin's mark, else the definition's `readOnlyHint`."""
    return mark if mark is not None else annotations.get("readOnlyHint") is True
