"""Limits, and the entries of their schedules."""

from __future__ import annotations

import dataclasses
import datetime
import re
from dataclasses import dataclass
from typing import Any

import tollgate as tg

from ._errors import InvalidLimitError, InvalidNameError, ValidationError

_NO_SCHEDULE = "parameters do not change by a schedule here; store other limits with set_limits at those times"
_ABSOLUTE = ("capacity", "refill_amount", "refill_period_seconds")


@dataclass(frozen=True)
class ScheduleEntry:
    """A time in a calendar. ``ScheduleEntry.reset`` is when a quota is full again; entries that change parameters can be
    written and compared, but no limit takes them.

    >>> from tollgate.compat.zae import ScheduleEntry
    >>> ScheduleEntry.reset("0 0 * * *", "Europe/Berlin").tz
    'Europe/Berlin'
    """

    cron: str
    tz: str = "UTC"
    scale: float | None = None
    capacity: int | None = None
    refill_amount: int | None = None
    refill_period_seconds: int | None = None
    _reset: bool = False

    def __post_init__(self) -> None:
        changes = [name for name in ("scale", *_ABSOLUTE) if getattr(self, name) is not None]
        if self._reset:
            # The library reads both, and refuses what it cannot.
            _native_quota("reset", 1, self.cron, self.tz, False)
            if changes:
                raise InvalidLimitError("schedule", self.cron, f"a reset has cron and tz only, not {', '.join(changes)}")
        elif not changes or ("scale" in changes and len(changes) > 1):
            raise InvalidLimitError("schedule", self.cron, f"an entry has either scale, or some of {', '.join(_ABSOLUTE)}")

    @classmethod
    def reset(cls, cron: str, tz: str = "UTC") -> ScheduleEntry:
        """Return the entry of a reset."""
        return cls(cron, tz, _reset=True)

    def _as_dict(self) -> dict[str, Any]:
        named = {name: getattr(self, name) for name in ("scale", *_ABSOLUTE)}
        return {"cron": self.cron, "tz": self.tz, **{name: value for name, value in named.items() if value is not None}}


@dataclass(frozen=True)
class Limit:
    """A limit: so much at once, refilled by so much in each period; or a quota, which is full again at its reset.

    >>> from tollgate.compat.zae import Limit
    >>> Limit.per_minute("rpm", 100, burst=150)
    Limit(name='rpm', capacity=150, refill_amount=100, refill_period_seconds=60, schedule=(), reset_schedule=(), reset_after=None, soft=False)
    """

    name: str
    capacity: int
    refill_amount: int
    refill_period_seconds: int
    schedule: tuple[ScheduleEntry, ...] = ()
    reset_schedule: tuple[ScheduleEntry, ...] = ()
    reset_after: datetime.timedelta | None = None
    soft: bool = False

    def __post_init__(self) -> None:
        if self.schedule:
            raise NotImplementedError(_NO_SCHEDULE)
        if self.is_quota and self.refill_amount:
            raise InvalidLimitError("limit", self.name, "a limit is refilled or reset, not both; use Limit.quota()")
        if self.reset_schedule and self.reset_after is not None:
            raise InvalidLimitError("limit", self.name, "a quota has either reset_schedule or reset_after")
        if not all(isinstance(entry, ScheduleEntry) and entry._reset for entry in self.reset_schedule):
            raise InvalidLimitError("limit", self.name, "reset_schedule has entries of ScheduleEntry.reset() only")
        if len(self.reset_schedule) > 1:
            raise NotImplementedError("a quota has one reset; write the times as one cron expression, such as 0 0,12 * * *")
        self.to_native()

    @classmethod
    def custom(cls, name: str, capacity: int, refill_amount: int, refill_period_seconds: int, *, soft: bool = False) -> Limit:
        """Return a limit by all of its numbers."""
        return cls(name, capacity, refill_amount, refill_period_seconds, soft=soft)

    @classmethod
    def per_second(cls, name: str, rate: int, burst: int | None = None, *, soft: bool = False) -> Limit:
        """Return a limit of ``rate`` each second, and ``burst`` at once."""
        return cls(name, rate if burst is None else burst, rate, 1, soft=soft)

    @classmethod
    def per_minute(cls, name: str, rate: int, burst: int | None = None, *, soft: bool = False) -> Limit:
        """Return a limit of ``rate`` each minute, and ``burst`` at once."""
        return cls(name, rate if burst is None else burst, rate, 60, soft=soft)

    @classmethod
    def per_hour(cls, name: str, rate: int, burst: int | None = None, *, soft: bool = False) -> Limit:
        """Return a limit of ``rate`` each hour, and ``burst`` at once."""
        return cls(name, rate if burst is None else burst, rate, 3_600, soft=soft)

    @classmethod
    def per_day(cls, name: str, rate: int, burst: int | None = None, *, soft: bool = False) -> Limit:
        """Return a limit of ``rate`` each day, and ``burst`` at once."""
        return cls(name, rate if burst is None else burst, rate, 86_400, soft=soft)

    @classmethod
    def quota(
        cls,
        name: str,
        amount: int,
        *,
        cron: str | None = None,
        tz: str = "UTC",
        reset_after: datetime.timedelta | None = None,
        soft: bool = False,
    ) -> Limit:
        """Return a quota that is full again at the times of ``cron``, or so long after its first use.

        >>> from tollgate.compat.zae import Limit
        >>> Limit.quota("rpd", 100, cron="0 0 * * *").is_quota
        True
        """
        if (cron is None) == (reset_after is None):
            raise InvalidLimitError("limit", name, "a quota has either cron or reset_after")
        resets = (ScheduleEntry.reset(cron, tz),) if cron is not None else ()
        return cls(name, amount, 0, 1, reset_schedule=resets, reset_after=reset_after, soft=soft)

    def with_schedule(self, schedule: tuple[ScheduleEntry, ...]) -> Limit:
        """Not supported, except without entries: store other limits at those times."""
        return dataclasses.replace(self, schedule=schedule)

    def with_reset_schedule(self, reset_schedule: tuple[ScheduleEntry, ...]) -> Limit:
        """Return the quota with another reset.

        >>> from tollgate.compat.zae import Limit, ScheduleEntry
        >>> daily = Limit.quota("rpd", 100, cron="0 0 * * *")
        >>> daily.with_reset_schedule((ScheduleEntry.reset("0 6 * * *"),)).reset_schedule[0].cron
        '0 6 * * *'
        """
        return dataclasses.replace(self, reset_schedule=reset_schedule)

    @property
    def refill_rate(self) -> float:
        """How much is refilled each second."""
        return self.refill_amount / self.refill_period_seconds

    @property
    def is_quota(self) -> bool:
        """Whether it is reset instead of refilled."""
        return bool(self.reset_schedule) or self.reset_after is not None

    @property
    def reset_after_seconds(self) -> int | None:
        """How long after its first use a quota is full again, if it is of that kind."""
        return None if self.reset_after is None else int(self.reset_after.total_seconds())

    def to_native(self) -> tg.Limit:
        """Return the limit of the library."""
        if self.reset_schedule:
            (entry,) = self.reset_schedule
            return _native_quota(self.name, self.capacity, entry.cron, entry.tz, self.soft)
        try:
            if self.reset_after is not None:
                return tg.quota(self.name, self.capacity, after=self.reset_after, shadow=self.soft)
            period = self.refill_period_seconds
            return tg.rate(self.name, self.refill_amount, period, burst=self.capacity, shadow=self.soft)
        except (tg.Error, TypeError) as error:
            raise _invalid(self.name, error) from error

    @classmethod
    def from_native(cls, limit: tg.Limit) -> Limit:
        """Return what shows a limit of the library."""
        is_quota = limit.kind == "quota"
        is_anchored = is_quota and limit.period is not None
        made = object.__new__(cls)
        values = {
            "name": limit.name,
            "capacity": limit.capacity,
            "refill_amount": 0 if is_quota else limit.amount,
            "refill_period_seconds": 1 if is_quota else int(limit.period or 1),
            "schedule": (),
            "reset_schedule": (_reset_of(limit),) if is_quota and not is_anchored else (),
            "reset_after": datetime.timedelta(seconds=limit.period or 0) if is_anchored else None,
            "soft": limit.shadow,
        }
        # Limits of kinds that zae-limiter does not have are shown as well, which __post_init__ would refuse.
        for name, value in values.items():
            object.__setattr__(made, name, value)
        return made

    def to_dict(self) -> dict[str, Any]:
        """Return what is needed to make it again; what it does not have is left out."""
        values = {name: getattr(self, name) for name in ("name", *_ABSOLUTE)}
        if self.reset_schedule:
            values["reset_schedule"] = [entry._as_dict() for entry in self.reset_schedule]
        if self.reset_after is not None:
            values["reset_after_seconds"] = self.reset_after_seconds
        if self.soft:
            values["soft"] = True
        return values

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> Limit:
        """Return the limit of such a dict.

        >>> from tollgate.compat.zae import Limit
        >>> Limit.from_dict(Limit.per_hour("rph", 5).to_dict()) == Limit.per_hour("rph", 5)
        True
        """
        after = data.get("reset_after_seconds")
        return cls(
            **{name: data[name] for name in ("name", *_ABSOLUTE)},
            schedule=tuple(ScheduleEntry(**entry) for entry in data.get("schedule", ())),
            reset_schedule=tuple(ScheduleEntry.reset(**entry) for entry in data.get("reset_schedule", ())),
            reset_after=None if after is None else datetime.timedelta(seconds=after),
            soft=data.get("soft", False),
        )


def _reset_of(limit: tg.Limit) -> ScheduleEntry:
    # The library shows a calendar as text only: its five fields, and the zone.
    found = re.search(r"edge of ((?:\S+ ){5})(\S+)", str(limit))
    cron, tz = (found[1].strip(), found[2]) if found else ("", "UTC")
    made = object.__new__(ScheduleEntry)
    fields = {each.name: each.default for each in dataclasses.fields(ScheduleEntry)}
    for name, value in {**fields, "cron": cron, "tz": tz, "_reset": True}.items():
        object.__setattr__(made, name, value)
    return made


def _native_quota(name: str, amount: int, cron: str, tz: str, soft: bool) -> tg.Limit:
    try:
        return tg.quota(name, amount, cron=cron, tz=tz, shadow=soft)
    except (tg.Error, TypeError) as error:
        raise _invalid(name, error) from error


def _invalid(name: str, error: Exception) -> ValidationError:
    text = str(error)
    if ": name is " in text:
        return InvalidNameError("name", name, text)
    return InvalidLimitError("limit", name, text)


def native(limits: list[Limit]) -> list[tg.Limit]:
    """Return the limits of the library."""
    for limit in limits:
        if not isinstance(limit, Limit):
            raise ValidationError("limits", repr(limit), f"{limit!r} is not a Limit")
    return [limit.to_native() for limit in limits]
