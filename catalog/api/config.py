"""Config files by REST, in any of the dialects and formats."""

from django.http import HttpRequest
from ninja import Router

from catalog import documents
from catalog.access.callers import ADMIN_KEY, caller_of
from catalog.domain import dialects
from catalog.domain.dialects import Config, Dialect
from catalog.domain.errors import InvalidInput
from catalog.domain.json_text import read_json
from catalog.domain.policy import DEFAULT_SLUG
from catalog.request_bodies import Text
from catalog.schemas.config import ConfigOut, ImportOut, PlannedServerOut
from catalog.services import config, import_plans
from catalog.tasks import wake_workers_on_commit

router = Router(tags=["config"], auth=ADMIN_KEY)

TEXT = "text/plain"
ANY_OBJECT = {"type": "object", "additionalProperties": True}
EXAMPLE = {
    "toolSearch": {"enabled": True, "tokenThreshold": 10000},
    "mcpServers": {"github": {"url": "https://mcp.example.com/"}},
}
BODY = {
    "required": True,
    "content": {
        "application/json": {"schema": {**ANY_OBJECT, "title": "Document", "examples": [EXAMPLE]}},
        TEXT: {"schema": {"type": "string", "examples": ["npx -y @modelcontextprotocol/server-everything"]}},
    },
}


@router.post(
    "/config",
    operation_id="import_config",
    summary="Import a config file",
    response=ImportOut,
    openapi_extra={"requestBody": BODY},
)
def import_config(
    request: HttpRequest, policy: Text = DEFAULT_SLUG, dry_run: bool = False, only: Text | None = None
) -> ImportOut:
    """In one transaction. As JSON, or as `text/plain` that carries any format: JSON with comments, TOML, YAML
    or shell lines. Dialect and format are known by their marks; `dry_run` stores nothing, `only` takes the
    servers named, separated by commas. Servers that cannot be taken are named, and the others are stored;
    where none can be taken, the answer is 422.
    """
    plan = config.import_config(
        config=_read_body(request),
        policy_slug=policy,
        actor=caller_of(request).actor,
        dry_run=dry_run,
        only=None if only is None else [name.strip() for name in only.split(",") if name.strip()],
    )
    wake_workers_on_commit()
    return ImportOut(
        dialect=plan.dialect,
        format=plan.format,
        servers=[_describe(one) for one in plan.servers],
        settings=dict(plan.settings),
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


def _read_body(request: HttpRequest) -> Config:
    """A text of any format where the body says so, else a JSON object."""
    if request.content_type == TEXT:
        return documents.read_config_text(request.body)
    try:
        tree = read_json(request.body)
        if not isinstance(tree, dict):
            raise InvalidInput.at("", "the body must be an object")
        documents.check_tree(tree)
    except InvalidInput as invalid:
        raise InvalidInput.at("body", str(invalid)) from None
    return dialects.read_config(tree)


def _describe(planned: import_plans.PlannedServer) -> PlannedServerOut:
    return PlannedServerOut(
        name=planned.name,
        action=planned.action,
        reason=planned.reason,
        transport=planned.transport,
        target=planned.target,
        enabled=planned.enabled,
        project=planned.project,
        ignored=list(planned.ignored),
        missing=list(planned.missing),
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
