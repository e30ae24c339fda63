"""Keeps with each definition what an admin should look at in it."""

from collections.abc import Mapping

from catalog.domain.definitions import Definition
from catalog.domain.marking import mark_definition
from catalog.models import Tool
from catalog.services.writing import catalog_writing

LOOK_AT_ONCE = 500
_READ = ("name", "title", "description", "input_schema", "output_schema", "annotations", "meta", "extra")


def look_over(definition: Definition) -> Mapping[str, object]:
    """The values of a tool's columns that the definition's marks fill."""
    marks = [mark.to_mapping() for mark in mark_definition(definition)]
    return {"marks": marks, "mark_count": len(marks)}


def look_over_unmarked(limit: int = LOOK_AT_ONCE) -> int:
    """Mark tools that were stored before there were marks, some at a time. How many there were."""
    return _look_over_some(limit) if Tool.objects.filter(mark_count=None).exists() else 0


@catalog_writing()
def _look_over_some(limit: int) -> int:
    unmarked = Tool.objects.filter(mark_count=None).order_by("pk")
    tools = list(unmarked.only("digest", "baseline_digest", *_READ)[:limit])
    for tool in tools:
        definition = Definition(**{field: getattr(tool, field) for field in _READ})
        for column, value in look_over(definition).items():
            setattr(tool, column, value)
        tool.baseline_digest = tool.baseline_digest or tool.digest
    Tool.objects.bulk_update(tools, ["marks", "mark_count", "baseline_digest"])
    return len(tools)
