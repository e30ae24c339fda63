from django.apps import AppConfig


class AgentSessionsConfig(AppConfig):
    """Django's own session app owns the label `sessions`."""

    name = "sessions"
    label = "agent_sessions"
    verbose_name = "Agent sessions"

    def ready(self) -> None:
        from catalog import callers  # noqa: PLC0415  models can be imported only now

        def identify(text: str) -> callers.Caller | None:
            from sessions.services import keys  # noqa: PLC0415  commands start without the search

            return keys.identify(text)

        callers.identify_with(identify)
