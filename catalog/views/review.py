"""The review page: new and changed definitions with their differences, and approval."""

from dataclasses import dataclass

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.views.decorators.http import require_GET, require_POST

from catalog import tasks
from catalog.access.roles import Role, role_required
from catalog.console.pages import actor_of_request, render_page, tell_done
from catalog.domain.errors import Conflict, NotFound
from catalog.forms.review import ReviewFilterForm
from catalog.selectors import review, server_marks, servers
from catalog.selectors.review import ServerToReview, ToolReview
from catalog.services import approvals
from catalog.views.word_diff import Effort, FieldDiff, compare_definitions, spell_out


@dataclass(frozen=True, slots=True)
class ReviewRow:
    """`fields` is the difference from the baseline, or the whole definition where there is none."""

    review: ToolReview
    fields: list[FieldDiff]
    server: ServerToReview | None  # where the server's first tool of the page stands


@require_GET
@role_required(Role.VIEWER)
def review_list(request: HttpRequest) -> HttpResponse:
    form = ReviewFilterForm(request.GET)
    wanted = form.wanted()
    page = review.reviews_for_page(wanted, page=request.GET.get("page", "1"))
    context = {
        "form": form,
        "wanted": wanted,
        "page": page.with_rows(_rows(page.rows)),
        "marked": server_marks.marked_servers(wanted) if page.number == 1 else None,
        "server_names": servers.find_names,
    }
    return render_page(request, "catalog/review.html", "catalog/_review_list.html", context)


@require_GET
@role_required(Role.VIEWER)
def review_count(request: HttpRequest) -> HttpResponse:
    """The number beside the menu's entry."""
    return render(request, "catalog/_review_count.html", {"count": review.count_to_review()})


@require_POST
@role_required(Role.ADMIN)
def review_approve(request: HttpRequest) -> HttpResponse:
    """Approve one tool, in the form whose digest the page showed."""
    name, digest = request.POST.get("name", ""), request.POST.get("digest", "")
    return _approve(request, {name: digest})


@require_POST
@role_required(Role.ADMIN)
def review_approve_server(request: HttpRequest) -> HttpResponse:
    """Approve a server's tools in the review, if they are still those that the page counted."""
    forms = review.forms_to_review(request.POST.get("server", ""))
    if review.fingerprint(forms) != request.POST.get("seen", ""):
        messages.error(request, "Nothing was approved: the server's tools changed since you looked.")
        return redirect(_filtered_review(request))
    return _approve(request, forms)


def _approve(request: HttpRequest, seen: dict[str, str]) -> HttpResponse:
    try:
        settled = approvals.approve_tools(seen=seen, actor=actor_of_request(request))
    except (Conflict, NotFound) as refusal:
        messages.error(request, f"Nothing was approved: {str(refusal).rstrip('.')}.")
        return redirect(_filtered_review(request))
    if settled.change is None:
        messages.info(request, "That was approved already.")
    else:
        tasks.wake_workers_on_commit()
        tell_done(request, f"Approved {settled.change.name}.", settled.change)
    return redirect(_filtered_review(request))


def _filtered_review(request: HttpRequest) -> str:
    """The review as it was filtered."""
    query = request.POST.get("back", "")
    return f"{reverse('review')}?{query}" if query else reverse("review")


def _rows(reviews: list[ToolReview]) -> list[ReviewRow]:
    known = review.servers_to_review(each.tool.server.name for each in reviews)
    shown: set[str] = set()
    rows, effort = [], Effort()
    for each in reviews:
        name = each.tool.server.name
        rows.append(
            ReviewRow(each, describe_fields(each, effort), None if name in shown else known.get(name))
        )
        shown.add(name)
    return rows


def describe_fields(each: ToolReview, effort: Effort) -> list[FieldDiff]:
    present = each.present.definition if each.present else {}
    if each.before is not None:
        return compare_definitions(each.before.definition, present, effort)
    return spell_out(present, kind="new" if each.is_new else "same")
