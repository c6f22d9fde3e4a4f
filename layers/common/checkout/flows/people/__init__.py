"""Use cases of people: invite members, sign up, sign in, prove the ownership of a wallet."""
