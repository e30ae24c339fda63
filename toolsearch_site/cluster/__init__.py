"""The processes of a deployment: supervisor, programs, heartbeat, leases, scheduler, broker, pool."""
