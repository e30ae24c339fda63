"""Tests of a connection from the forms that add and change a server."""

from collections.abc import Callable
from typing import Any

from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.cache import never_cache
from django.views.decorators.debug import sensitive_post_parameters, sensitive_variables
from django.views.decorators.http import require_GET, require_POST

from catalog import tasks
from catalog.access.roles import Role, role_of, role_required
from catalog.console.pages import actor_of_request, wants_part
from catalog.domain import dialects
from catalog.domain.dialects import ServerEntry
from catalog.domain.errors import Conflict, InvalidInput, NotAllowed, NotFound
from catalog.forms.servers import ServerForm
from catalog.models import Job, Server
from catalog.selectors import servers
from catalog.services import config, connection_tests
from catalog.views.server_editing import make_edit_form


@sensitive_post_parameters()
@sensitive_variables()
@never_cache
@require_POST
@role_required(Role.EDITOR)
def test_new(request: HttpRequest) -> HttpResponse:
    """The settings of the form that adds a server."""
    form = ServerForm(request.POST, may_run_commands=role_of(request.user) >= Role.ADMIN)

    def read() -> ServerEntry:
        if Server.objects.filter(name=form.cleaned_data["name"]).exists():
            raise Conflict("There is a server of that name already.")
        return dialects.parse_config(form.document()).servers[0]

    return _test(request, form, read)


@sensitive_post_parameters()
@sensitive_variables()
@never_cache
@require_POST
@role_required(Role.EDITOR)
def test_changed(request: HttpRequest, name: str) -> HttpResponse:
    """The settings of the form that changes a server, with its stored secrets where they are kept."""
    server = servers.find_server(name)
    form = make_edit_form(request, server, request.POST)

    def read() -> ServerEntry:
        given = form.given(server.name)
        if given is None:
            raise Conflict("There is nothing here that you may test.")
        return given

    return _test(request, form, read)


@never_cache
@require_GET
@role_required(Role.EDITOR)
def test_result(request: HttpRequest, job_id: int) -> HttpResponse:
    """Polled until the test has ended. A test is shown to whoever asked for it."""
    job = connection_tests.find_test(job_id=job_id, caller=_caller_of(request))
    if job is None:
        raise NotFound("There is no such test of yours.")
    return _show(request, job)


@sensitive_variables()
def _test(request: HttpRequest, form: Any, read: Callable[[], ServerEntry]) -> HttpResponse:
    """Mistakes are shown beside the result: nothing is stored, so they are no error."""
    if not wants_part(request):
        return redirect("server_list")
    try:
        if not form.is_valid():
            return _show_problems(request, form)
        actor = actor_of_request(request)
        entry = config.merge_server(given=read(), actor=actor)
        job = connection_tests.request_test(entry=entry, actor=actor, caller=_caller_of(request))
    except InvalidInput as invalid:
        form.tell(invalid)
        return _show_problems(request, form)
    except (Conflict, NotAllowed) as refused:
        form.add_error(None, str(refused))
        return _show_problems(request, form)
    tasks.wake_workers_on_commit()
    return _show(request, job)


def _show(request: HttpRequest, job: Job) -> HttpResponse:
    result = connection_tests.read_result(job)
    context = {"job": job, "result": result, "names": ", ".join(result.names) if result else ""}
    return render(request, "catalog/_connection_test.html", context)


def _show_problems(request: HttpRequest, form: Any) -> HttpResponse:
    problems = [
        {"field": "" if name == "__all__" else name, "label": _label_of(form, name), "message": message}
        for name, messages in form.errors.items()
        for message in messages
    ]
    return render(request, "catalog/_connection_test.html", {"problems": problems})


def _label_of(form: Any, name: str) -> str:
    return str(form[name].label) if name in form.fields else ""


def _caller_of(request: HttpRequest) -> int:
    assert request.user.pk is not None
    return request.user.pk
