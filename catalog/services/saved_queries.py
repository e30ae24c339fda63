"""Saves queries with the tools that each should find."""

from collections.abc import Mapping, Sequence

from django.db import IntegrityError, transaction
from django.db.models import Q

from catalog.access import actors
from catalog.access.roles import Role
from catalog.domain.errors import Conflict, InvalidInput
from catalog.domain.limits import QUERY_CHARS
from catalog.domain.query import Browse, parse_query
from catalog.models import Change, Policy, SavedQuery, Tool
from catalog.models.changes import Action, Subject
from catalog.services import changes, edits
from catalog.services.catalog_lock import lock_catalog

MOST_SAVED = 200  # of one policy: a run of all of them stays a matter of a second
MOST_EXPECTED = 10
_NAME_CHARS = 255


@transaction.atomic
def rename_expected(renamed: Mapping[str, str]) -> None:
    """Rename expected tools in saved queries, given new names by old ones."""
    for row in SavedQuery.objects.select_for_update().order_by("pk"):
        expected = [renamed.get(name, name) for name in row.expected]
        if expected != row.expected:
            row.expected = expected
            row.save(update_fields=["expected"])


def version_of(saved: SavedQuery | None) -> str:
    """The version that a form carries; None for a query that is not saved yet."""
    return edits.encode_version({"expected": _expected_of(saved)})


@lock_catalog()
def save_query(
    *,
    policy: Policy,
    query: str,
    expected: Sequence[str],
    actor: actors.Actor,
    precondition: edits.Precondition | None = None,
    demo: bool = False,
) -> SavedQuery:
    """Save a query, or change what a saved one should find. Tools are given by qualified or own name, and
    cannot be renamed meanwhile. A query of the demo that is changed is the demo's no more.

    Raises InvalidInput for a query that cannot be parsed and for unknown tools, Conflict when the policy has
    as many as it may, OutdatedEdit when it was saved with other tools since it was read.
    """
    actors.require(actor, Role.EDITOR)
    text, names = _clean_query(query), _resolve(expected)
    known = SavedQuery.objects.select_for_update().filter(policy=policy, query=text).first()
    present = {"expected": _expected_of(known)}
    row = edits.EditedRow(Subject.QUERY, text[:_NAME_CHARS], present=present, shown=present)
    edits.require_current(row, precondition, wanted={"expected": names})
    if known is None and SavedQuery.objects.filter(policy=policy).count() >= MOST_SAVED:
        raise Conflict(f"a policy has at most {MOST_SAVED} saved queries")
    before = {} if known is None else _fields_of(known)
    saved = known or SavedQuery(policy=policy, query=text)
    if known is not None and names == known.expected:
        return saved
    saved.expected, saved.demo = names, demo
    _store(saved)
    changes.record_change(
        actor=actor,
        subject=Subject.QUERY,
        name=saved.query[:_NAME_CHARS],
        action=Action.CREATED if known is None else Action.CHANGED,
        before=before,
        after=_fields_of(saved),
    )
    return saved


@transaction.atomic
def delete_query(*, saved: SavedQuery, actor: actors.Actor) -> Change:
    """Delete a query with its results. The record holds enough to save it again."""
    actors.require(actor, Role.EDITOR)
    before = _fields_of(saved)
    SavedQuery.objects.filter(pk=saved.pk).delete()
    return changes.record_change(
        actor=actor,
        subject=Subject.QUERY,
        name=saved.query[:_NAME_CHARS],
        action=Action.DELETED,
        before=before,
    )


def restore_query(*, change: Change, actor: actors.Actor) -> SavedQuery:
    """Save a deleted query again. Raises Conflict where its policy is gone or has the query again."""
    policy = Policy.objects.filter(slug=change.before["policy"]).first()
    if policy is None:
        raise Conflict(f"there is no policy {change.before['policy']} any more")
    if SavedQuery.objects.filter(policy=policy, query=change.before["query"]).exists():
        raise Conflict("the query has been saved again since")
    return save_query(
        policy=policy,
        query=change.before["query"],
        expected=change.before["expected"],
        actor=actor,
        demo=change.before.get("demo", False),
    )


def _store(saved: SavedQuery) -> None:
    try:
        with transaction.atomic():
            saved.save()
    except IntegrityError:
        raise Conflict("somebody saved this query just now") from None


def _clean_query(query: str) -> str:
    text = query.strip()
    if len(text) > QUERY_CHARS:
        raise InvalidInput.at("query", f"a saved query has at most {QUERY_CHARS} characters")
    if isinstance(parse_query(text), Browse):
        raise InvalidInput.at("query", "needs at least one word")
    return text


def _resolve(names: Sequence[str]) -> list[str]:
    """Qualified names, each once, in the order given."""
    wanted = list(dict.fromkeys(stripped for name in names if (stripped := name.strip())))
    if not 1 <= len(wanted) <= MOST_EXPECTED:
        raise InvalidInput.at("expected", f"name from 1 to {MOST_EXPECTED} tools that it should find")
    rows = Tool.objects.filter(Q(qualified_name__in=wanted) | Q(name__in=wanted), gone_at=None)
    known = list(rows.order_by("qualified_name").values_list("qualified_name", "name"))
    return list(dict.fromkeys(_meant(name, known) for name in wanted))


def _meant(name: str, known: Sequence[tuple[str, str]]) -> str:
    """The qualified name of a name; an own name must belong to one tool alone."""
    if any(qualified == name for qualified, _ in known):
        return name
    fitting = [qualified for qualified, own in known if own == name]
    if not fitting:
        raise InvalidInput.at("expected", f"there is no tool {name}")
    if len(fitting) > 1:
        raise InvalidInput.at("expected", f"{name} is one of {', '.join(fitting)}: say which")
    return fitting[0]


def _expected_of(saved: SavedQuery | None) -> list[str]:
    return [] if saved is None else list(saved.expected)


def _fields_of(saved: SavedQuery) -> dict[str, object]:
    demo: dict[str, object] = {"demo": True} if saved.demo else {}
    return {"policy": saved.policy.slug, "query": saved.query, "expected": list(saved.expected), **demo}
