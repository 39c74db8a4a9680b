"""The jobs that come along, in this process."""

import importlib.util
from pathlib import Path
from types import ModuleType

JOBS = Path(__file__).parents[2] / "spark-on-k8s" / "jobs"


def loaded(name: str) -> ModuleType:
    """A job, as a module."""
    spec = importlib.util.spec_from_file_location(name, JOBS / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
