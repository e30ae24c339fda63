"""Metrics for Prometheus and the System page."""
