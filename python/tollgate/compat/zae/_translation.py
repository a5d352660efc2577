"""Exceptions of the library as those of this package. Names in them are taken from their texts, which quote them."""

from __future__ import annotations

import re

import tollgate as tg

from . import _errors as e
from ._statuses import LimitStatus


def translated(error: Exception) -> Exception:
    """Return the exception of this package for one of the library; others stay as they are."""
    made = _translated(error)
    if made is not error:
        made.__cause__ = error
    return made


def _translated(error: Exception) -> Exception:
    text = str(error)
    match error:
        case tg.RateLimited():
            return e.RateLimitExceeded([LimitStatus.of(status) for status in error.statuses])
        case tg.NoLimits():
            value = f"entity={_quoted('entity', text)}, resource={_quoted('resource', text)}"
            return e.ValidationError("limits", value, text)
        case tg.NotFound() if text.startswith(("namespace", "there is no namespace")):
            return e.NamespaceNotFoundError(_quoted("namespace", text))
        case tg.NotFound():
            return e.EntityNotFoundError(_quoted("parent", text) or _quoted("entity", text))
        case tg.AlreadyExists():
            return e.EntityExistsError(_quoted("entity", text))
        case tg.Conflict() if text.startswith("namespace"):
            state = re.search(r" is (\w+)", text)
            return e.NamespaceStateError(text, namespace_name=_quoted("namespace", text), state=state[1] if state else "")
        case tg.Conflict():
            return e.ValidationError("entity_id", _quoted("entity", text), text)
        case tg.Disabled():
            entity, resource = _quoted("entity", text), _quoted("resource", text)
            level = "resource" if not entity else "entity" if resource else "entity_default"
            return e.ResourceDisabled(entity, resource, level)
        case tg.Unavailable():
            return e.RateLimiterUnavailable(text, error)
        case tg.StoreRefused():
            return e.PermissionDenied(text, error)
        case tg.LeaseEnded():
            return e.LeaseExpiredError()
        case tg.InvalidValue():
            return _of_value(text)
        case tg.InvalidDemand() | tg.Impossible():
            return e.ValidationError("consume", _quoted("names", text), text)
        case tg.Error():
            return e.ZAELimiterError(text)
    return error


def _of_value(text: str) -> e.ValidationError:
    found = re.match(r'(entity|resource|namespace|limit) "(.*?)": (.*)', text, re.DOTALL)
    match found and found.groups():
        case ("entity", value, reason):
            return e.InvalidIdentifierError("entity_id", value, reason)
        case ("limit", value, reason) if reason.startswith("name "):
            return e.InvalidNameError("name", value, reason)
        case ("resource" | "namespace" as field, value, reason):
            return e.InvalidNameError(field, value, reason)
    if text.startswith(("limit", "cron", "time zone")):
        return e.InvalidLimitError("limit", "", text)
    return e.ValidationError("parent_id" if " the parent " in text else "argument", _quoted("parent", text), text)


def _quoted(kind: str, text: str) -> str:
    found = re.search(rf'{kind} "([^"]*)"', text)
    return found[1] if found else ""
