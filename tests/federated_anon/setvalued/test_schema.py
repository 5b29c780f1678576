import json

import pytest
from hypothesis import given

from federated_anon.errors import DataRefused
from federated_anon.setvalued import Transactions, disassociate, from_json, to_json
from tests.federated_anon.setvalued.sets import transactions


@given(transactions(min_size=3))
def test_a_form_comes_back_from_its_file_and_the_bytes_are_always_the_same(data):
    form = disassociate(data, 3, 2, 9)
    assert from_json(to_json(form)) == form
    assert to_json(from_json(to_json(form))) == to_json(form)


def test_the_file_is_as_documented():
    form = disassociate(Transactions.of([["a", "é"]] * 3 + [["b"]]), 3, 2, 4)
    assert json.loads(to_json(form)) == {
        "format": "federated-anon/disassociated",
        "version": 1,
        "k": 3,
        "m": 2,
        "items": ["a", "b", "é"],
        "clusters": [{"size": 4, "chunks": [{"items": [0, 2], "records": [[0, 2]], "counts": [3]}], "terms": [1]}],
    }


BROKEN = {
    "version": lambda told: told.update(version=2),
    "extra": lambda told: told.update(more=1),
    "k": lambda told: told.update(k="3"),
    "negative": lambda told: told["clusters"][0].update(terms=[-1]),
    "count": lambda told: told["clusters"][0]["chunks"][0].update(counts=[]),
    "bomb": lambda told: told["clusters"][0]["chunks"][0].update(counts=[2**30]),
}


@pytest.mark.parametrize("fault", BROKEN)
def test_a_file_that_breaks_the_schema_is_refused(fault):
    told = json.loads(to_json(disassociate(Transactions.of([["a"]] * 3), 3, 2, 4)))
    BROKEN[fault](told)
    with pytest.raises(DataRefused, match="not a disassociated form"):
        from_json(json.dumps(told).encode())


@pytest.mark.parametrize("content", [b"", b"[]", b"\xff", b"{", b"null"])
def test_what_is_no_such_file_is_refused(content):
    with pytest.raises(DataRefused, match="not a disassociated form"):
        from_json(content)
