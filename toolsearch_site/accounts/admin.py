"""The Django admin for users; every addition, change and deletion there goes into the change record."""

from typing import TYPE_CHECKING, Any

from django.contrib import admin
from django.contrib.admin.models import LogEntry
from django.contrib.auth.admin import UserAdmin
from django.contrib.auth.models import User
from django.db.models import QuerySet
from django.http import HttpRequest

from catalog.console.pages import actor_of_request
from catalog.models.changes import Action
from catalog.services import accounts

AS_FOUND = "_as_found"

if TYPE_CHECKING:
    PeopleAdmin = UserAdmin[User]
else:
    PeopleAdmin = UserAdmin  # generic for the type checker alone


class RecordedUserAdmin(PeopleAdmin):
    """Writes our change record where the admin writes its log: in the transaction of the change."""

    def get_object(self, request: HttpRequest, object_id: str, from_field: str | None = None) -> User | None:
        user = super().get_object(request, object_id, from_field)
        if user is not None:
            setattr(user, AS_FOUND, accounts.describe_account(user))
        return user

    def log_addition(self, request: HttpRequest, obj: Any, message: Any) -> LogEntry:
        accounts.record_account(user=obj, action=Action.CREATED, actor=actor_of_request(request))
        return super().log_addition(request, obj, message)

    def log_change(self, request: HttpRequest, obj: Any, message: Any) -> LogEntry:
        before = getattr(obj, AS_FOUND, None)
        accounts.record_account(
            user=obj, action=Action.CHANGED, actor=actor_of_request(request), before=before
        )
        return super().log_change(request, obj, message)

    def log_deletions(self, request: HttpRequest, queryset: QuerySet[Any]) -> Any:
        for user in queryset:
            before = accounts.describe_account(user)
            accounts.record_account(
                user=user, action=Action.DELETED, actor=actor_of_request(request), before=before
            )
        return super().log_deletions(request, queryset)


admin.site.unregister(User)
admin.site.register(User, RecordedUserAdmin)
