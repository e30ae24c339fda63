from collections.abc import Iterable, Sequence

from django.apps import AppConfig


class AgentSessionsConfig(AppConfig):
    """Django's own session app owns the label `sessions`."""

    name = "sessions"
    label = "agent_sessions"
    verbose_name = "Agent sessions"

    def ready(self) -> None:
        from catalog import callers  # noqa: PLC0415  models can be imported only now
        from catalog.services import history  # noqa: PLC0415

        def identify(text: str) -> callers.Caller | None:
            from sessions.services import keys  # noqa: PLC0415  commands start without the search

            return keys.identify(text)

        def find_loaded(names: Sequence[str]) -> Iterable[str]:
            """A tool that a session has loaded keeps its row, so that no other tool gets its name."""
            from sessions.models import LoadedTool  # noqa: PLC0415

            return LoadedTool.objects.filter(name__in=names).values_list("name", flat=True).distinct()

        callers.identify_with(identify)
        history.keep_referred_by(find_loaded)
