"""The engine: which tools a policy or session offers, cached, patched after edits and rendered."""
