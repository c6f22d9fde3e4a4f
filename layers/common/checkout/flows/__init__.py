"""Decide with the domain, call the outside through ports, write on condition: one file a flow."""
