"""Keeps with each definition what an admin should look at in it."""

from collections.abc import Mapping

from catalog.domain.definitions import Definition
from catalog.domain.marking import mark_definition
from catalog.models import Tool

LOOK_AT_ONCE = 500
_READ = ("name", "title", "description", "input_schema", "output_schema", "annotations", "meta", "extra")


def look_over(definition: Definition, *, is_masked: bool = False) -> Mapping[str, object]:
    """The values of a tool's columns that the definition's marks fill."""
    marks = [mark.to_mapping() for mark in mark_definition(definition, is_masked=is_masked)]
    return {"marks": marks, "mark_count": len(marks)}


def look_over_unmarked(limit: int = LOOK_AT_ONCE) -> int:
    """Mark tools that were stored before there were marks, some at a time. How many there were."""
    unmarked = Tool.objects.filter(mark_count=None).order_by("pk")
    tools = list(unmarked.only("digest", "baseline_digest", *_READ)[:limit])
    for tool in tools:
        _store_marks(tool, look_over(Definition(**{field: getattr(tool, field) for field in _READ})))
    return len(tools)


def _store_marks(tool: Tool, marks: Mapping[str, object]) -> None:
    """Unless the tool changed meanwhile, and with that was looked over in its new form."""
    Tool.objects.filter(pk=tool.pk, digest=tool.digest, mark_count=None).update(
        **marks, baseline_digest=tool.baseline_digest or tool.digest
    )
