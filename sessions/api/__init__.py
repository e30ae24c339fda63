"""The agents' part of the REST API."""
