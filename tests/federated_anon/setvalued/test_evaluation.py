"""All measures of a run on sets, from its folder and the original."""

import pytest

from federated_anon.errors import VerificationFailed
from federated_anon.setvalued import Transactions, disassociate
from federated_anon.setvalued.evaluation import evaluate_sets, is_set_folder
from federated_anon.setvalued.schema import to_json


def test_a_run_that_loses_nothing_and_one_that_loses(tmp_path):
    original = Transactions.of([["a", "b"]] * 6 + [["c"]] * 6)
    (tmp_path / "disassociated.json").write_bytes(to_json(disassociate(original, 3, 2, 6)))
    found = evaluate_sets(original, tmp_path)
    assert (found["items_kept_percent"], found["alpha_visible"], found["alpha_expected"]) == (100.0, 1.0, 1.0)
    assert set(found["relative_association_error"].values()) == {0.0}
    assert found["private"]["tree_edit_distance"] == 0
    assert found["pairs"]["staying"] == 1
    lossy = Transactions.of([["a", "b"]] * 6 + [["c", f"rare{i}"] for i in range(6)])
    (tmp_path / "disassociated.json").write_bytes(to_json(disassociate(lossy, 3, 2, 6)))
    found = evaluate_sets(lossy, tmp_path)
    assert found["items_kept_percent"] == 75.0
    assert found["private"]["tree_edit_distance"] == 6, "six rare items deleted"
    assert found["reidentification"]["reassociated"]["attacked"] == 0, "nobody has more than two items"


def test_a_folder_without_a_form(tmp_path):
    assert not is_set_folder(tmp_path)
    with pytest.raises(VerificationFailed, match="cannot be read"):
        evaluate_sets(Transactions.of([["a"]]), tmp_path)
