"""The customer's hosted pages: wallet submission, grant callback, confirmation."""
