"""Backups: the whole instance in one file, taken while it runs, restored into an empty one."""
