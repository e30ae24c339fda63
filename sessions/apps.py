from django.apps import AppConfig


class AgentSessionsConfig(AppConfig):
    """Django's own session app owns the label `sessions`."""

    name = "sessions"
    label = "agent_sessions"
    verbose_name = "Agent sessions"
