"""Pages of API keys, for admins only. A new key's text is shown once, by the page that connects an agent."""

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.urls import reverse
from django.utils import timezone
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_http_methods, require_POST

from catalog.access.roles import Role, role_required
from catalog.console.pages import actor_of_request, render_page
from catalog.forms.keys import KeyForm
from catalog.models import Scope
from catalog.selectors.keys import find_key, keys_for_table
from catalog.services import keys
from catalog.views.new_keys import keep_new_key


@never_cache
@require_http_methods(["GET", "POST"])
@role_required(Role.ADMIN)
def key_list(request: HttpRequest) -> HttpResponse:
    """GET lists the keys; POST creates one and leads to the page that shows it once."""
    if request.method != "POST":
        return _show_keys(request, KeyForm())
    form = KeyForm(request.POST)
    if not form.is_valid():
        return _show_keys(request, form, status=422)
    new_key = keys.create_key(
        name=form.cleaned_data["name"],
        actor=actor_of_request(request),
        policy=form.cleaned_data["policy"],
        scope=Scope(form.cleaned_data["scope"]),
        expires_at=form.expires_at(now=timezone.now()),
        rate_limit_per_minute=form.cleaned_data["rate_limit_per_minute"],
        max_sessions=form.cleaned_data["max_sessions"],
    )
    keep_new_key(request, new_key)
    return redirect(reverse("connect", query={"key": new_key.key.pk}))


@require_POST
@role_required(Role.ADMIN)
def key_revoke(request: HttpRequest, key_id: int) -> HttpResponse:
    key = find_key(key_id)
    keys.revoke_key(key=key, actor=actor_of_request(request))
    messages.success(request, f"The key {key.name} is revoked; agents that use it are refused from now on.")
    return redirect("key_list")


def _show_keys(request: HttpRequest, form: KeyForm, *, status: int = 200) -> HttpResponse:
    page = keys_for_table(now=timezone.now(), page=request.GET.get("page", "1"))
    context = {"page": page, "form": form}
    return render_page(request, "catalog/key_list.html", "catalog/_key_table.html", context, status=status)
