"""Files that are sent and stored."""

import mimetypes
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

from ._request import Call

__all__ = ["File"]

File = str | os.PathLike[str] | BinaryIO | bytes
"""A path, a file that was opened for reading bytes, or the bytes."""

CHUNK_BYTES = 64 * 1024


@contextmanager
def upload_call(to: str, file: File, mime_type: str | None, file_name: str | None) -> Iterator[Call]:
    """The form that carries a file. It is read while it is sent."""
    if isinstance(file, (str, os.PathLike)):
        path = Path(file)
        with path.open("rb") as opened:
            yield _form(to, opened, mime_type, file_name or path.name)
    else:
        known = getattr(file, "name", None)
        yield _form(to, file, mime_type, file_name or (Path(known).name if isinstance(known, str) else "file"))


def _form(to: str, file: BinaryIO | bytes, mime_type: str | None, name: str) -> Call:
    guessed = mime_type or mimetypes.guess_type(name)[0] or "application/octet-stream"
    return Call("POST", to, files={"file": (name, file, guessed)})


@contextmanager
def whole_file(to: str | os.PathLike[str]) -> Iterator[BinaryIO]:
    """A file that is there once everything is written, and not before."""
    part = Path(f"{os.fspath(to)}.part")
    try:
        with part.open("wb") as file:
            yield file
        part.replace(to)
    finally:
        part.unlink(missing_ok=True)
