"""The scheduled work of each minute: the sweep and the daily figures."""
