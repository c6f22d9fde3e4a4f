"""Move a session through its life: create, prepare, approve, reconcile, clean up."""
