"""How a path finds its route where a parameter stands in the place of another route's name."""

from __future__ import annotations

from fastapi.routing import APIRoute
from starlette.routing import Match
from starlette.types import Scope


class NamesFirst(APIRoute):
    """A route whose parameter is never the name of another route.

    So `/webhooks/{event_id}` is not asked for the event "remove": `/webhooks/remove` takes POST.
    The application keeps the paths without parameters in `state.names`.
    """

    def matches(self, scope: Scope) -> tuple[Match, Scope]:
        """Return the match, or none at a path that another route has word for word."""
        named = scope["path"] in scope["app"].state.names
        return (Match.NONE, {}) if named and "{" in self.path else super().matches(scope)
