"""The use cases: decide with the domain, call adapters through ports, write only if unchanged."""
