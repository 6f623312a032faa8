"""The file of MODEL_PRICES, by which the money of a session is counted."""

from __future__ import annotations

from pathlib import Path

from foundry_implementation_actor.domain.error import SettingsError
from foundry_implementation_actor.domain.price import Prices, read_prices

_HINT = "set MODEL_PRICES to a JSON file that can be read, or unset it"


def prices_in(path: Path | None) -> Prices:
    """The shipped prices, with those of a file added or in their place.

    Raises:
        SettingsError: the file cannot be read or holds no prices.
    """
    if path is None:
        return Prices()
    try:
        return read_prices(path.read_text(encoding="utf-8-sig"))
    except OSError as error:
        raise SettingsError(f"MODEL_PRICES cannot be read: {error.strerror}", hint=_HINT, where=str(path)) from error
    except UnicodeDecodeError as error:
        said = f"MODEL_PRICES is not UTF-8 (byte {error.start + 1})"
        raise SettingsError(said, hint="save the file as UTF-8", where=str(path)) from error
    except ValueError as error:
        raise SettingsError(f"MODEL_PRICES {error}", hint="correct the file", where=str(path)) from error
