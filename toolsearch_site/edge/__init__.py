"""The edge of HTTP: the web server, its limits on clients, and what answers before or around the views."""
