"""The demo catalog from the console: disabled, enabled and removed as a whole."""

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.views.decorators.http import require_POST

from catalog import tasks
from catalog.access.roles import Role, role_required
from catalog.console.pages import actor_of_request, tell_done, way_back
from catalog.services import demo


@require_POST
@role_required(Role.EDITOR)
def demo_enabled(request: HttpRequest) -> HttpResponse:
    enabled = request.POST.get("enabled") == "yes"
    change = demo.set_demo_enabled(enabled=enabled, actor=actor_of_request(request))
    tasks.wake_workers_on_commit()
    if change is not None:
        told = "counted and served again" if enabled else "in no list, no sum and no search"
        tell_done(request, f"{change.name} {'enabled' if enabled else 'disabled'}: {told}.", change)
    return redirect(way_back(request, otherwise="server_list"))


@require_POST
@role_required(Role.ADMIN)
def demo_remove(request: HttpRequest) -> HttpResponse:
    removed = demo.remove_demo(actor=actor_of_request(request))
    tasks.wake_workers_on_commit()
    if removed is None:
        messages.success(request, "There is no demo here.")
    else:
        messages.success(request, f"Removed the demo: {removed}.")
    return redirect(way_back(request, otherwise="server_list"))
