import pytest

from federated_anon.errors import SettingsRefused
from federated_anon.study import Study, load_study

GOOD = """
name = "trial"
holders = ["north", "south"]
[privacy]
k = 5
[deployment.north]
settings = "north.toml"
"""


def refused(tmp_path, text: str) -> str:
    path = tmp_path / "study.toml"
    path.write_text(text)
    with pytest.raises(SettingsRefused) as error:
        load_study(path)
    return str(error.value)


def test_a_study_file_is_read_with_defaults(tmp_path):
    path = tmp_path / "study.toml"
    path.write_text(GOOD)
    file = load_study(path)
    assert (file.method, file.exposure, file.seed, file.privacy.k) == ("best", "sealed", 0, 5)
    assert file.study.rounds == 1
    assert file.study.uses_cells


def test_all_faults_come_in_one_message_with_known_keys(tmp_path):
    text = refused(
        tmp_path,
        'name = "trial"\nholders = ["north"]\nmethod = "magic"\n'
        "[privacy]\nk = 1\n[map]\nrow = 3\n[collaboration]\nalign = 7\n",
    )
    assert "4 faults" in text
    assert "[map] unknown key 'row'; known keys: bandwidth, cols, model, models, passes, rows, scale" in text
    assert "[privacy] k must be at least 2, got 1" in text
    assert "method must be 'best', 'k-tca', 'c-tca', 'mdav'" in text
    assert "got 'magic'" in text


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("", "'name' is missing"),
        ("name = ", "is not TOML"),
        (GOOD.replace("k = 5", "k = 5.0"), "k must be a valid integer"),
        (GOOD.replace("k = 5", 'k = "5"'), "k must be a valid integer"),
        (GOOD.replace('"south"', '"north"'), "once only"),
        (GOOD.replace("north]", "west]"), "unknown holders: west"),
        (GOOD.replace('"trial"', '"../../etc"'), "name must"),
        (GOOD + "[map]\nrows = 3\n", "rows and cols are given together"),
        (GOOD.replace("[privacy]", 'exposure = "sealed"\nmethod = "k-tca"\n[privacy]'), "needs exposure 'open'"),
        (GOOD + "[privacy.x]\n", "unknown key 'x'"),
    ],
)
def test_each_fault_is_named(tmp_path, text, fault):
    assert fault in refused(tmp_path, text)


def test_a_missing_file_is_named(tmp_path):
    with pytest.raises(SettingsRefused, match="no such file"):
        load_study(tmp_path / "absent.toml")


def test_the_digest_is_of_what_holders_agree_on(tmp_path):
    path = tmp_path / "study.toml"
    path.write_text(GOOD)
    here = load_study(path).study
    path.write_text(GOOD.replace("north.toml", "elsewhere.toml"))
    there = load_study(path).study
    path.write_text(GOOD.replace("k = 5", "k = 6"))
    assert here.digest == there.digest == Study.from_text(here.text).digest
    assert load_study(path).study.digest != here.digest


def test_the_resolved_study_reads_back_as_itself(tmp_path):
    path = tmp_path / "study.toml"
    path.write_text(GOOD)
    study = load_study(path).study
    path.write_text(study.to_toml())
    assert load_study(path).study == study


@pytest.mark.parametrize("text", ["", "[]", "3", "{", '{"name": 1}', "[" * 5000])
def test_a_study_from_the_wire_is_checked_as_strictly(text):
    with pytest.raises(SettingsRefused):
        Study.from_text(text)
