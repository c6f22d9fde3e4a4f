"""Declare the routes of the dashboard: their rights, their effects, and their error pages.

The declaration of a route is a `Door` (domain/merchant/doors.py): the right that it needs, and its
effects. docs/tables.py prints all declarations into docs/security.md. `dependencies.signed_in`
checks that the actor (member or API key) has the right, and the flows check the actor's limits.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from functools import wraps
from inspect import signature
from typing import Any, Final

from fastapi import APIRouter, Response
from fastapi.routing import APIRoute
from starlette.routing import Match
from starlette.types import Scope

from checkout.domain.ground.errors import CheckoutError
from checkout.domain.merchant.doors import Door
from checkout.domain.merchant.people import Right
from dashboard.rendering import show_again

OPEN: Final = None  # in place of a `Door`: the route needs no sign-in

Route = Callable[..., Awaitable[Response]]


class NamesFirst(APIRoute):
    """A route whose path parameter never matches the fixed path of another route.

    For example, GET `/webhooks/remove` does not match `/webhooks/{event_id}`, although the route
    `/webhooks/remove` accepts only POST. The application's `state.names` has all paths without
    parameters.
    """

    def matches(self, scope: Scope) -> tuple[Match, Scope]:
        """Return the match, or none for a path that is literally another route's path."""
        named = scope["path"] in scope["app"].state.names
        return (Match.NONE, {}) if named and "{" in self.path else super().matches(scope)


class PageRouter(APIRouter):
    """The routes of a module. `doors` has the declaration of each route, by method and path.

    `section` is the module's entry in the navigation: a path under /dashboard, and a title.
    """

    def __init__(self, *, prefix: str = "", section: tuple[str, str] | None = None) -> None:
        super().__init__(prefix=prefix, route_class=NamesFirst)
        self.section = section
        self.doors: dict[tuple[str, str], Door[Right]] = {}

    def page(self, path: str, door: Door[Right] | None) -> Callable[[Route], Route]:
        """Declare a page or a file, with GET."""
        self._declare("GET", path, door)
        return self.get(path)

    def form(
        self,
        path: str,
        door: Door[Right] | None,
        again: Callable[..., Response] | None = None,
    ) -> Callable[[Route], Route]:
        """Declare a form, with POST. If the form is rejected, `again` returns the form's page.

        `again` is called with `request`, `alert` (the reason), `status` and those parameters of the
        path that it declares. Without `again`, an error page is shown.
        """
        self._declare("POST", path, door)

        def declared(route: Route) -> Route:
            self.post(path)(_shown_again(route, again) if again else route)
            return route

        return declared

    def _declare(self, method: str, path: str, door: Door[Right] | None) -> None:
        if door is not None:
            self.doors[method, self.prefix + path] = door


def _shown_again(route: Route, again: Callable[..., Response]) -> Route:
    names = signature(again).parameters

    @wraps(route)
    async def answered(**given: Any) -> Response:
        try:
            return await route(**given)
        except CheckoutError as error:
            taken = {name: value for name, value in given.items() if name in names}
            return show_again(error, again, **taken)

    return answered
