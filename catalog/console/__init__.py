"""Helpers shared by the pages of both apps: whole page or part, paging, filters, cursors, edit conflicts."""
