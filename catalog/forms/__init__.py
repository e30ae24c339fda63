"""Forms of the catalog's pages, one module per subject."""
