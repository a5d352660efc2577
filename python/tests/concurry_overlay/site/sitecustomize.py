"""Applies the overlay in every interpreter of a run, as soon as Concurry is imported: worker processes import it, too."""

import importlib.abc
import importlib.util
import os
import sys


class _AfterImport(importlib.abc.MetaPathFinder):
    """Applies the overlay when ``concurry`` has been imported."""

    def find_spec(self, name, path=None, target=None):
        if name != "concurry":
            return None
        sys.meta_path.remove(self)
        spec = importlib.util.find_spec(name)
        if spec is None or spec.loader is None:
            return None
        run_module = spec.loader.exec_module

        def exec_module(module):
            run_module(module)
            import overlay

            overlay.apply()

        spec.loader.exec_module = exec_module
        return spec


if os.environ.get("TOLLGATE_CONCURRY_OVERLAY") == "1":
    sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
    sys.meta_path.insert(0, _AfterImport())
