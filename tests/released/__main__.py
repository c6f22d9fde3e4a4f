"""`python -m tests.released`: make today's code the last release."""

from tests.released import write

write()
