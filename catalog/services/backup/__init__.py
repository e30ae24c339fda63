"""One file that holds the whole instance, taken while it runs and brought back into an empty one."""
