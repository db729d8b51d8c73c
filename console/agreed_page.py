"""The base of forms that move money: a form, a preview of it, and the step that the person agrees to there."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any, ClassVar, Final, TypeVar

import falcon.asgi

from console.exchange import Request
from console.page import Page
from console.ui.pages import only_for
from kit.base.ids import new_id, parse_id
from kit.rpc.errors import Refused, is_away
from kit.rpc.values import invalid

T = TypeVar("T")

FORM_USED: Final = (
    "This form has made a {} already, with other values: it is in the list. Nothing was requested now. To request one "
    "more, look at the values below and send them."
)
FORM_BROKEN: Final = "The form was not complete, so nothing was requested. Look at it again and send it."


class AgreedPage(Page):
    """A form with a key: sent twice, it makes one thing.

    roles      may send it
    fields     of the form, `request_key` among them; each has at most `most` characters
    mendable   refusals after which the form is shown again
    again      the template after a step without an answer
    noun       the thing, for people
    """

    roles: ClassVar[frozenset[str]]
    fields: ClassVar[Sequence[str]]
    most: ClassVar[int] = 200
    mendable: ClassVar[Collection[str]]
    again: ClassVar[str]
    noun: ClassVar[str]

    async def ask(
        self,
        req: Request,
        resp: falcon.asgi.Response,
        typed: Mapping[str, str],
        refused: Refused | None = None,
    ) -> None:
        """Shows the form."""
        raise NotImplementedError

    async def preview(self, req: Request, resp: falcon.asgi.Response, typed: Mapping[str, str]) -> None:
        """Shows what will be made. Raises VALIDATION_ERROR for what can't be made."""
        raise NotImplementedError

    async def make(self, req: Request, resp: falcon.asgi.Response, typed: Mapping[str, str]) -> None:
        """Makes it, and leaves for its page."""
        raise NotImplementedError

    async def on_post(self, req: Request, resp: falcon.asgi.Response) -> None:
        """Shows what will happen; with `agreed`, from that page, makes it."""
        only_for(req, self.roles)
        form = await self.form(req)
        typed = {name: form.line(name, most=self.most) for name in self.fields}
        try:
            if form.text("agreed"):
                await self.make(req, resp, typed)
            else:
                await self.preview(req, resp, typed)
        except Refused as refused:
            if is_away(refused) and form.text("agreed"):  # without a call: the service has just failed
                self.show(req, resp, self.again, refused=refused, status=503, typed=typed)
            elif refused.reason in self.mendable:
                await self.ask(req, resp, typed, refused)
            else:
                raise

    def new(self, **given: str) -> dict[str, str]:
        """Returns the fields of a new form."""
        return dict.fromkeys(self.fields, "") | given | {"request_key": str(new_id())}

    def after(self, typed: Mapping[str, str], refused: Refused | None) -> dict[str, Any]:
        """Returns what the form is shown with after the refusal; with a new key when the old one made something."""
        if refused is None or refused.metadata.get("field") != "request_key":
            return {"typed": typed}
        problem = FORM_USED.format(self.noun) if parse_id(typed["request_key"]) else FORM_BROKEN
        return {"typed": {**typed, "request_key": str(new_id())}, "problem": problem, "errors": {}}


def given(field: str, value: T, message: str = "give it") -> T:
    """Returns the value of a field. Raises VALIDATION_ERROR for an empty one."""
    if not value:
        raise invalid(field, message)
    return value
