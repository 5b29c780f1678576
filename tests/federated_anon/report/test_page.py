"""The page of every report: one file, nothing from outside, nothing twice, the same bytes."""

import re
from html.parser import HTMLParser

from federated_anon.report import Figure, Finding, Listing, Prose, Section, Table, Tile, Verdict, figure, page

EVIL = "<script>alert(1)</script>"


def rising(axes) -> None:
    axes.plot([1, 2, 3], [1, 4, 9], marker="o")
    axes.fill_between([1, 2, 3], [0, 0, 0], [1, 4, 9], alpha=0.2)


def made(text: str = "calm") -> str:
    figures = tuple(
        figure(name, f"{text} {name}", f"{text} rises.", rising, Table(("k", text), ((5, "12 %"), (10, text))))
        for name in ("one", "two")
    )
    blocks = (*figures, Prose((text,)), Listing(text, Table((text,), ((text,),))))
    verdict = Verdict("good", text, (Tile(text, text, text),), (Finding("note", text),), (text,))
    return page(text, [Section(text, "first", text, blocks)], verdict=verdict, subtitle=text, footer=text)


class Outline(HTMLParser):
    """Tags that are open, names that are taken, and what would be fetched."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.ids: list[str] = []
        self.uses: list[str] = []
        self.tags: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        for name, value in attrs:
            if name == "id":
                self.ids.append(value)
            if name in ("src", "href", "xlink:href"):
                self.uses.append(value)


def test_the_same_input_gives_the_same_bytes():
    assert made() == made()
    assert not re.search(r"\b20\d\d-\d\d-\d\d", made()), "a date would change from day to day"


def test_whatever_comes_from_outside_is_escaped():
    found = Outline(made(EVIL))
    assert "script" not in found.tags
    assert EVIL not in made(EVIL)
    assert "&lt;script&gt;" in made(EVIL)


def test_every_name_on_the_page_is_the_only_one_and_every_link_leads_somewhere():
    found = Outline(made())
    assert len(found.ids) == len(set(found.ids))
    inner = {use.removeprefix("#") for use in found.uses if use.startswith("#")}
    assert inner
    assert inner <= set(found.ids)
    assert [use for use in found.uses if not use.startswith(("#", "data:"))] == []
    assert set(re.findall(r"url\(#([^)]*)\)", made())) <= set(found.ids)


def test_every_picture_has_a_sentence_and_a_table():
    text = made()
    assert text.count("<figure") == text.count("<figcaption>") == text.count("<details>") == text.count("<svg") == 2
    assert 'role="img" aria-label="calm one. calm rises."' in text
    assert "<text" in text, "text stays text, so that it can be read aloud and searched"


def test_figures_of_a_table_stand_to_the_right():
    table = Table(("name", "share", "bytes", "either"), (("a", "12.5 %", "3.1 KiB", 1), ("b", "–", "1,024", "x")))
    assert table.numeric == (False, True, True, False)
    assert Table(("empty",), ()).numeric == (False,)
    assert isinstance(figure("x", "t", "s", rising, table), Figure)
