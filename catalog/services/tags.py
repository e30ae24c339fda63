"""Tags of tools, for filtering."""

from collections.abc import Sequence

from catalog.domain.errors import InvalidInput
from catalog.models import Tool, ToolTag

MAX_TAGS = 20
MAX_TAG_CHARS = 40


def clean_tags(tags: Sequence[str]) -> list[str]:
    """Without duplicates and extra spaces. Raises InvalidInput for an invalid tag."""
    cleaned = list(dict.fromkeys(" ".join(tag.split()) for tag in tags if tag.strip()))
    if len(cleaned) > MAX_TAGS:
        raise InvalidInput.at("tags", f"at most {MAX_TAGS} tags at once")
    if any(len(tag) > MAX_TAG_CHARS or not tag.isprintable() for tag in cleaned):
        raise InvalidInput.at("tags", f"each at most {MAX_TAG_CHARS} characters that can be seen")
    return cleaned


def tags_of(tool: Tool) -> list[str]:
    return sorted(tool.tags.values_list("name", flat=True))


def set_tags(tool: Tool, tags: Sequence[str]) -> None:
    """Replace the tool's tags."""
    tool.tags.exclude(name__in=tags).delete()
    known = set(tags_of(tool))
    ToolTag.objects.bulk_create(ToolTag(tool=tool, name=tag) for tag in tags if tag not in known)
