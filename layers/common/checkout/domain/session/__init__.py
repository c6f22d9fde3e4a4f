"""A checkout session: its record, its transitions, and how it is shown."""
