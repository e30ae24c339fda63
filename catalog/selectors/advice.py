"""Advice on one tool's definition, with what the rest of the catalog has to say."""

from collections.abc import Sequence

from catalog.domain.advice import Advice, Neighbour, Surroundings, advise
from catalog.domain.definitions import Definition
from catalog.models import Tool


def advise_tool(tool: Tool, *, look_alikes: Sequence[Tool]) -> tuple[Advice, ...]:
    """How many are larger is counted in the index of sizes, which holds gone and hidden tools as well."""
    definition = Definition(name=tool.name, description=tool.description, input_schema=tool.input_schema)
    around = Surroundings(
        neighbours=tuple(
            Neighbour(
                f"{other.server.name}/{other.name}", other.qualified_name, other.name, other.description
            )
            for other in look_alikes
        ),
        larger=Tool.objects.filter(chars__gt=tool.chars).count(),
        tools=Tool.objects.count(),
    )
    return advise(definition, around)
