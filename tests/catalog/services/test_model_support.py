"""The table of models: who may change it, what is kept of a change, and taking it back."""

from decimal import Decimal
from typing import Any

import pytest

from catalog.access.actors import COMMAND_LINE, Actor
from catalog.access.roles import Role
from catalog.domain.errors import Conflict, InvalidInput, NotAllowed, NotFound
from catalog.models import Change, ModelSupport
from catalog.models.changes import Action, Subject
from catalog.models.model_support import Provider
from catalog.services import model_support, undo

pytestmark = pytest.mark.django_db

ROW: dict[str, Any] = {
    "name_pattern": "house-*",
    "provider": Provider.ANTHROPIC,
    "hosted_search": True,
    "context_window": 100_000,
    "input_price": 5.0,
    "cached_input_price": 0.5,
}


def save(model_id: int | None = None, actor: Actor = COMMAND_LINE, **changed: Any) -> ModelSupport:
    return model_support.save_model(**{**ROW, **changed}, actor=actor, model_id=model_id).row


def last_change() -> Change:
    return Change.objects.order_by("-pk")[0]


def kept() -> list[tuple[str, str, bool, int | None]]:
    rows = ModelSupport.objects.filter(name_pattern__startswith="house")
    return list(rows.values_list("name_pattern", "provider", "hosted_search", "context_window"))


class TestRecord:
    def test_new_row(self) -> None:
        save()
        change = last_change()
        assert (change.subject, change.name, change.action) == (Subject.MODEL, "house-*", Action.CREATED)
        assert change.after == {**ROW, "provider": "anthropic", "prices_are_examples": False}

    def test_edit_keeps_what_differs(self) -> None:
        save(save().pk, context_window=None)
        change = last_change()
        assert (change.action, change.before, change.after) == (
            Action.CHANGED,
            {"context_window": 100_000},
            {"context_window": None},
        )

    def test_saving_the_same_is_no_change(self) -> None:
        row = save()
        count = Change.objects.count()
        save(row.pk)
        assert Change.objects.count() == count

    def test_deletion(self) -> None:
        model_support.delete_model(model_id=save().pk, actor=COMMAND_LINE)
        assert last_change().action == Action.DELETED
        assert last_change().before["name_pattern"] == "house-*"


class TestRefusal:
    @pytest.mark.parametrize(
        ("changed", "place"),
        [
            ({"name_pattern": "  "}, "name_pattern"),
            ({"name_pattern": "x" * 101}, "name_pattern"),
            ({"name_pattern": "a\x00b"}, "name_pattern"),
            ({"context_window": 0}, "context_window"),
            ({"context_window": 2**31}, "context_window"),
            ({"input_price": -1}, "input_price"),
            ({"cached_input_price": float("nan")}, "cached_input_price"),
        ],
    )
    def test_bad_value(self, changed: dict[str, Any], place: str) -> None:
        with pytest.raises(InvalidInput) as refused:
            save(**changed)
        assert [problem.place for problem in refused.value.errors] == [place]
        assert not Change.objects.exists()

    def test_pattern_that_is_taken(self) -> None:
        save()
        count = Change.objects.count()
        with pytest.raises(Conflict, match="house-\\* already"):
            save()
        assert Change.objects.count() == count

    def test_role(self) -> None:
        editor = Actor(label="e", role=Role.EDITOR)
        row = save()
        for model_id in (None, row.pk):
            with pytest.raises(NotAllowed):
                save(model_id, actor=editor, name_pattern="other-*")
        with pytest.raises(NotAllowed):
            model_support.delete_model(model_id=row.pk, actor=editor)

    def test_row_that_is_gone(self) -> None:
        with pytest.raises(NotFound):
            save(2**40)


class TestPrices:
    def make_example(self) -> ModelSupport:
        row = save()
        ModelSupport.objects.filter(pk=row.pk).update(prices_are_examples=True)
        return row

    def test_stay_examples_until_one_is_changed(self) -> None:
        row = self.make_example()
        save(row.pk, context_window=None)
        row.refresh_from_db()
        assert row.prices_are_examples
        save(row.pk, input_price=4)
        changed = ModelSupport.objects.get(pk=row.pk)
        assert (changed.input_price, changed.prices_are_examples) == (Decimal(4), False)

    def test_undo_brings_the_mark_back(self) -> None:
        row = self.make_example()
        model_support.change_model(model_id=row.pk, changed={"cached_input_price": None}, actor=COMMAND_LINE)
        undo.undo_change(change=last_change(), actor=COMMAND_LINE)
        row.refresh_from_db()
        assert (row.cached_input_price, row.prices_are_examples) == (Decimal("0.5"), True)


class TestUndo:
    def undo_last(self, actor: Actor = COMMAND_LINE) -> None:
        undo.undo_change(change=last_change(), actor=actor)

    def test_addition_edit_and_deletion(self) -> None:
        row = save()
        self.undo_last()
        assert kept() == []
        self.undo_last()
        assert kept() == [("house-*", "anthropic", True, 100_000)]
        row = ModelSupport.objects.get(name_pattern="house-*")
        save(row.pk, name_pattern="house-2*", context_window=None)
        self.undo_last()
        assert kept() == [("house-*", "anthropic", True, 100_000)]

    def test_row_that_changed_since_is_left_alone(self) -> None:
        row = save()
        save(row.pk, hosted_search=False)
        first = last_change()
        save(row.pk, hosted_search=True)
        with pytest.raises(Conflict, match="has changed since"):
            undo.undo_change(change=first, actor=COMMAND_LINE)

    def test_row_that_is_gone_is_told(self) -> None:
        row = save()
        made = last_change()
        model_support.delete_model(model_id=row.pk, actor=COMMAND_LINE)
        with pytest.raises(Conflict, match="any more"):
            undo.undo_change(change=made, actor=COMMAND_LINE)

    def test_is_for_admins(self) -> None:
        save()
        assert undo.can_undo(last_change(), Role.ADMIN)
        assert not undo.can_undo(last_change(), Role.EDITOR)
        with pytest.raises(NotAllowed):
            self.undo_last(Actor(label="e", role=Role.EDITOR))
