"""Config files by REST, in any of the dialects."""

from typing import Annotated, Any

from django.http import HttpRequest
from ninja import Body, Router

from catalog.access.callers import ADMIN_KEY, caller_of
from catalog.domain import dialects
from catalog.domain.dialects import Dialect
from catalog.domain.policy import DEFAULT_SLUG
from catalog.request_bodies import Text
from catalog.schemas import ConfigOut, ImportOut
from catalog.services import config
from catalog.tasks import wake_workers_on_commit

router = Router(tags=["config"], auth=ADMIN_KEY)

EXAMPLE = {
    "toolSearch": {"enabled": True, "tokenThreshold": 10000},
    "mcpServers": {"github": {"url": "https://mcp.example.com/"}},
}


@router.post("/config", operation_id="import_config", summary="Import a config file", response=ImportOut)
def import_config(
    request: HttpRequest,
    document: Annotated[dict[str, Any], Body(examples=[EXAMPLE])],
    policy: Text = DEFAULT_SLUG,
    dry_run: bool = False,
) -> ImportOut:
    """All or nothing. The dialect is known by its marks; `dry_run` stores nothing."""
    plan = config.import_config(
        config=dialects.parse_config(document),
        policy_slug=policy,
        actor=caller_of(request).actor,
        dry_run=dry_run,
    )
    wake_workers_on_commit()
    return ImportOut(
        dialect=plan.dialect,
        added=list(plan.added),
        changed=list(plan.changed),
        replaced=list(plan.replaced),
        unchanged=list(plan.unchanged),
        policy=plan.policy,
        policy_changes=dict(plan.policy_changes),
        ignored={name: list(keys) for name, keys in plan.ignored.items()},
        ignored_keys=list(plan.ignored_keys),
        disabled=list(plan.disabled),
    )


@router.get(
    "/config",
    operation_id="export_config",
    summary="Export a config file",
    response=ConfigOut,
    exclude_none=True,
)
def export_config(
    request: HttpRequest, dialect: Dialect = Dialect.PIZZAPI, policy: Text = DEFAULT_SLUG
) -> ConfigOut:
    """Without secrets: each stands as `${NAME}`."""
    rendered = config.export_config(dialect=dialect, policy_slug=policy, actor=caller_of(request).actor)
    return ConfigOut.model_validate(dict(rendered.document))
