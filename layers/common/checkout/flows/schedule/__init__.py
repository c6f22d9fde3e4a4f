"""The work that is done once a minute: the sweep and the daily figures."""
