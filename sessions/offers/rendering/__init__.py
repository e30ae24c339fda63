"""Renders tool lists as text, in every format. Standard library only."""
