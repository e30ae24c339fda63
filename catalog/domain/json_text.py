"""Parses untrusted JSON without unexpected exceptions."""

import json

from catalog.domain.errors import InvalidInput


def read_json(content: str | bytes) -> object:
    """Parse JSON, in UTF-8 where it is bytes. Raises InvalidInput, with line and column where they are known.

    NaN and the infinities are returned as floats: the readers of numbers refuse them in place.
    """
    try:
        return json.loads(content.decode("utf-8-sig") if isinstance(content, bytes) else content)
    except json.JSONDecodeError as error:
        raise InvalidInput.at(
            f"line {error.lineno} column {error.colno}", f"invalid JSON: {error.msg}"
        ) from None
    except UnicodeDecodeError as error:
        raise InvalidInput.at(f"byte {error.start}", "invalid JSON: not UTF-8") from None
    except RecursionError:
        raise InvalidInput.at("", "invalid JSON: nested too deeply") from None
    except ValueError:  # Python refuses an integer of several thousand digits
        raise InvalidInput.at("", "invalid JSON: a number has too many digits") from None
