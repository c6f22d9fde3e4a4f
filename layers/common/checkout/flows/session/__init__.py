"""Use cases of a checkout session: create, prepare, approve, reconcile, close."""
