"""Pages of policies: the list, and one with its thresholds and versions."""

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_GET

from catalog.access.roles import Role, role_required
from catalog.selectors import policies, review
from catalog.services import policies as policy_services


@require_GET
@role_required(Role.VIEWER)
def policy_list(request: HttpRequest) -> HttpResponse:
    return render(request, "catalog/policy_list.html", {"rows": policies.policies_for_table()})


@require_GET
@role_required(Role.VIEWER)
def policy_detail(request: HttpRequest, slug: str) -> HttpResponse:
    policy = policies.find_policy(slug)
    wants_all = request.GET.get("versions") == "all"
    limit = policies.ALL_VERSION_ROWS if wants_all else policies.VERSION_ROWS
    context = {
        "policy": policy,
        "summary": policies.summarize(policy),
        "locked": review.count_locked(policy),
        "readings": policies.read_kept_thresholds(policy),
        "groups": policies.explain_fields(policy),
        "versions": policies.versions_of(policy, limit=limit),
        "edit_version": policy_services.version_of(policy),
        "version_count": policy.versions.count(),
    }
    return render(request, "catalog/policy_detail.html", context)
