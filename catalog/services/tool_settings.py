"""What people set on a tool, which a refresh never changes."""

from collections.abc import Sequence

from catalog.access import actors
from catalog.access.roles import Role
from catalog.domain.choices import Loading, ReadOnly
from catalog.domain.errors import InvalidInput
from catalog.models import Change, Tool
from catalog.models.changes import Subject
from catalog.services import changes, decisions, edits, encoding, reindex
from catalog.services.catalog_lock import lock_catalog
from catalog.services.tags import clean_tags, set_tags, tags_of
from catalog.services.tools import mark_changed, mark_facts_changed

READ_ONLY = "read_only"
MAX_KEYWORDS = 50
MAX_KEYWORD_CHARS = 60
_COLUMNS = ("loading", "keywords", "hidden", READ_ONLY)


@lock_catalog()
def change_tool(
    *,
    tool: Tool,
    actor: actors.Actor,
    loading: Loading | None = None,
    keywords: Sequence[str] | None = None,
    hidden: bool | None = None,
    tags: Sequence[str] | None = None,
    read_only: ReadOnly | None = None,
    if_unchanged: edits.Precondition | None = None,
) -> Change | None:
    """Change what is given and leave the rest. A change that changes nothing leaves no record: None.

    Raises OutdatedEdit where the precondition does not hold, and NotAllowed where somebody of less than an
    admin's role changes `read_only`: what agents may call without being asked depends on it.
    """
    actors.require(actor, Role.EDITOR)
    row = Tool.objects.select_for_update().get(pk=tool.pk)
    before = settings_of(row)
    given: dict[str, object] = {
        "loading": None if loading is None else str(loading),
        "keywords": None if keywords is None else _clean_keywords(keywords),
        "hidden": hidden,
        "tags": None if tags is None else sorted(clean_tags(tags)),
    }
    wanted = {field: value for field, value in given.items() if value is not None}
    if read_only is not None:
        wanted[READ_ONLY] = read_only.mark
    edits.require_current(
        edits.EditedRow(Subject.TOOL, row.qualified_name, present=before, shown=before, pk=row.pk),
        if_unchanged,
        wanted=wanted,
    )
    for field in _COLUMNS:
        setattr(row, field, wanted.get(field, before[field]))
    if tags is not None:
        set_tags(row, clean_tags(tags))
    after = settings_of(row)
    if after == before:
        return None
    if after[READ_ONLY] != before[READ_ONLY]:
        actors.require(actor, Role.ADMIN)
    row.save(update_fields=_COLUMNS)
    _tell_followers(row, {field for field in after if after[field] != before[field]})
    return changes.record_change(
        actor=actor, subject=Subject.TOOL, name=row.qualified_name, before=before, after=after
    )


def _tell_followers(tool: Tool, differing: set[str]) -> None:
    """Requests index and decisions, unless only tags changed, which neither uses."""
    if differing == {"tags"}:
        return
    if "keywords" in differing:
        mark_changed([tool.pk])
        reindex.request_update()
        encoding.request_encoding()
    else:
        mark_facts_changed(Tool.objects.filter(pk=tool.pk))
    decisions.request_decisions()


def version_of(tool: Tool, tags: Sequence[str]) -> str:
    """The version of the tool's settings, for the precondition of an edit."""
    return edits.encode_version(_describe(tool, tags))


def settings_of(tool: Tool) -> dict[str, object]:
    return _describe(tool, tags_of(tool))


def _describe(tool: Tool, tags: Sequence[str]) -> dict[str, object]:
    return {
        "loading": str(tool.loading),
        "keywords": list(tool.keywords),
        "hidden": tool.hidden,
        "tags": sorted(tags),
        READ_ONLY: tool.read_only,
    }


def _clean_keywords(keywords: Sequence[str]) -> list[str]:
    cleaned = list(dict.fromkeys(" ".join(keyword.split()) for keyword in keywords if keyword.strip()))
    if len(cleaned) > MAX_KEYWORDS:
        raise InvalidInput.at("keywords", f"at most {MAX_KEYWORDS} keywords")
    if any(len(keyword) > MAX_KEYWORD_CHARS for keyword in cleaned):
        raise InvalidInput.at("keywords", f"each at most {MAX_KEYWORD_CHARS} characters")
    return cleaned
