"""Used by all of the domain: errors, ids, money, texts and their grammar."""
