"""Where outside data lies, and how thorough property tests are."""

import os
import tempfile
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

settings.register_profile("default", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("default")

SHARED = Path(os.environ.get("FEDERATED_ANON_SHARED", Path(__file__).parents[2] / "shared"))


@pytest.fixture(scope="session")
def shared_data() -> Path:
    """The folder of published data sets, where it is present."""
    if not (SHARED / "data").is_dir():
        pytest.skip("published data sets are not beside this project")
    return SHARED / "data"


@pytest.fixture
def room(tmp_path, monkeypatch) -> Path:
    """A working folder and a temporary folder, both of which must stay empty."""
    (tmp_path / "work").mkdir()
    (tmp_path / "temporary").mkdir()
    monkeypatch.chdir(tmp_path / "work")
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "temporary"))
    return tmp_path / "work"
