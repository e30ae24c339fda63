"""What the catalog's pages take from a reader, one module per subject."""
