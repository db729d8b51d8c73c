"""Templates of pages: everything is escaped, a missing value is an error, sentences are translated."""

from collections.abc import Callable
from pathlib import Path
from typing import Final

import jinja2
from jinja2 import nodes
from jinja2.visitor import NodeTransformer
from markupsafe import Markup

from kit.base import shown

_ISOLATE: Final = "\N{FIRST STRONG ISOLATE}"
_END_OF_ISOLATE: Final = "\N{POP DIRECTIONAL ISOLATE}"


class Templates(jinja2.Environment):
    """The templates of some folders in one language, each compiled at its first use.

    translate  returns the translation of an English sentence

    Sentences are translated when a template is compiled: `_("sentence")` becomes text like that around it.
    """

    def __init__(self, *folders: Path, translate: Callable[[str], str] = str) -> None:
        super().__init__(
            loader=jinja2.FileSystemLoader(folders),
            autoescape=True,
            auto_reload=False,
            undefined=jinja2.StrictUndefined,
            trim_blocks=True,
            lstrip_blocks=True,
        )
        self._translate = translate
        self.filters.update(theirs=theirs, titled=_titled)
        self.globals.update(_=self.sentence)

    def sentence(self, sentence: str, **values: object) -> Markup:
        """Returns the translation, with the values filled in. The values are escaped; it may hold HTML such as
        <strong>.
        """
        return Markup(self._translate(sentence)) % values  # noqa: S704  sentences are our own

    def _parse(self, source: str, name: str | None, filename: str | None) -> nodes.Template:
        written: nodes.Template = _Translator(self).visit(super()._parse(source, name, filename))
        return written


def theirs(text: str) -> Markup:
    """Isolates a text from outside, in its own direction: the rest of the line keeps the page's direction. Its
    own marks of direction are shown, because one of them would end the isolation.
    """
    return Markup("<bdi>{}</bdi>").format(text if isinstance(text, Markup) else shown.lines(str(text)))


def _titled(html: str) -> str:
    """Returns the text for a window's title. A title has no elements, so characters isolate the texts from outside."""
    isolated = str(html).replace("<bdi>", _ISOLATE).replace("</bdi>", _END_OF_ISOLATE)
    return Markup(isolated).striptags()  # noqa: S704  escaped where it comes from


class _Translator(NodeTransformer):
    """Replaces each `_("sentence")` without values by its translation."""

    def __init__(self, templates: Templates) -> None:
        self._templates = templates

    def visit_Call(self, call: nodes.Call) -> nodes.Node:  # noqa: N802  jinja2's name for it
        self.generic_visit(call)
        match call:
            case nodes.Call(
                node=nodes.Name(name="_"), args=[nodes.Const(value=sentence)], kwargs=[], dyn_kwargs=None
            ):
                return nodes.Const(self._templates.sentence(sentence), lineno=call.lineno)
        return call
