"""The page at the path `/`, for people who have only the first part of a page's address."""

from __future__ import annotations

from fastapi import APIRouter, Request, Response

from open_payments.urls import split
from pay import pages, render
from pay.dependencies import Injected, counted
from pay.headers import READ, CustomersOnly

router = APIRouter(route_class=CustomersOnly)


@router.api_route("/", methods=READ)
async def home(services: Injected, request: Request) -> Response:
    """Show links for customers, shops and developers."""
    counted(services, request)
    path = split(services.base_url).path
    return render.page(request, pages.reader_of(request), "home.html", path=path)
