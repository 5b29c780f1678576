"""Where outside data lies, and how thorough property tests are."""

import os
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
