"""Run what the schedule starts each minute: the sweep and the daily figures."""
