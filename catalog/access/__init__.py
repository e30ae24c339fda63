"""Who may do what: people's roles, API keys and their limits, and the callers of the REST API."""
