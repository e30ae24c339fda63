from django.apps import AppConfig


class AgentSessionsConfig(AppConfig):
    """The label differs from the package because Django's session app has the label `sessions`."""

    name = "sessions"
    label = "agent_sessions"
    verbose_name = "Agent sessions"
