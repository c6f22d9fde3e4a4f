"""Use cases of people: invite, sign up, sign in, prove a wallet."""
