"""Keys are shown once, kept as a hash, and revoked at once."""

from datetime import timedelta

import pytest
from django.conf import settings
from django.utils import timezone

from catalog.access.actors import COMMAND_LINE, Actor
from catalog.access.roles import Role
from catalog.domain.errors import InvalidInput, NotAllowed
from catalog.domain.keys import is_same_key, read_prefix
from catalog.models import ApiKey, Change, Scope
from catalog.services import keys
from tests.harness.rows import make_policy

pytestmark = pytest.mark.django_db


class TestCreate:
    def test_stored_hash_knows_the_key_and_nothing_else(self) -> None:
        made = keys.create_key(name="agent", actor=COMMAND_LINE)
        row = ApiKey.objects.get()
        assert read_prefix(made.text) == row.prefix
        assert is_same_key(made.text, row.digest, pepper=settings.SECRET_KEY)
        assert not is_same_key(made.text[:-1] + "_", row.digest, pepper=settings.SECRET_KEY)
        assert made.text not in str(list(ApiKey.objects.values())) + str(list(Change.objects.values()))
        assert made.text not in repr(made)

    def test_serves_the_default_policy_unless_told(self) -> None:
        assert keys.create_key(name="agent", actor=COMMAND_LINE).key.policy.slug == "default"
        policy = make_policy()
        assert keys.create_key(name="agent", actor=COMMAND_LINE, policy=policy).key.policy == policy

    @pytest.mark.parametrize("limit", ["rate_limit_per_minute", "max_sessions"])
    def test_limit_is_at_least_one(self, limit: str) -> None:
        with pytest.raises(InvalidInput, match=limit):
            keys.create_key(name="agent", actor=COMMAND_LINE, **{limit: 0})  # type: ignore[arg-type]

    @pytest.mark.parametrize("name", ["", "   ", "x" * 101])
    def test_needs_a_name(self, name: str) -> None:
        with pytest.raises(InvalidInput):
            keys.create_key(name=name, actor=COMMAND_LINE)

    def test_cannot_expire_in_the_past(self) -> None:
        with pytest.raises(InvalidInput):
            keys.create_key(name="agent", actor=COMMAND_LINE, expires_at=timezone.now() - timedelta(days=1))

    def test_is_for_admins(self) -> None:
        with pytest.raises(NotAllowed):
            keys.create_key(name="agent", actor=Actor(label="editor", role=Role.EDITOR))


class TestRevoke:
    def test_is_in_force_at_once_and_recorded_once(self) -> None:
        made = keys.create_key(name="agent", actor=COMMAND_LINE, scope=Scope.ADMIN)
        for _ in range(2):
            keys.revoke_key(key=made.key, actor=COMMAND_LINE)
        assert not ApiKey.objects.usable(now=timezone.now()).exists()
        assert Change.objects.filter(subject="key").count() == 2

    def test_expired_key_is_not_usable(self) -> None:
        keys.create_key(name="agent", actor=COMMAND_LINE, expires_at=timezone.now() + timedelta(days=1))
        assert ApiKey.objects.usable(now=timezone.now()).exists()
        assert not ApiKey.objects.usable(now=timezone.now() + timedelta(days=2)).exists()
