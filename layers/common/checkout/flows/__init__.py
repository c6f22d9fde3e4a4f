"""Decide with the domain, call the outside through ports, write conditionally; a file per flow."""
