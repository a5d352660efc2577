"""The limiter, its catalog and its namespaces. Their types are in a file of their own."""

from ._core import Catalog, Limiter, Namespaces

__all__ = ["Catalog", "Limiter", "Namespaces"]
