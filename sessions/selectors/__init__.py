"""Reads for pages and for the REST API."""
