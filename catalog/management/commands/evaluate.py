"""`manage.py evaluate`: search quality on sets of tools and queries. No database."""

import json
from argparse import ArgumentParser
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError

from catalog.domain.encoder_setting import NONE, ONNX, EncoderSetting, complete_address, is_encoder_value
from catalog.domain.errors import InvalidInput
from catalog.search import evaluation
from catalog.search.compiling import compile_documents
from catalog.search.endpoint_encoder import EndpointEncoder
from catalog.search.errors import UnusableEncoder
from catalog.search.meaning import Encoder
from catalog.search.ranking import RANKERS
from catalog.selectors.encoder import open_named

Row = dict[str, Any]


class Command(BaseCommand):
    help = "Measure search quality: each DIR holds tools.jsonl and queries.jsonl."
    requires_system_checks: list[str] = []

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("dirs", metavar="DIR", nargs="*")
        parser.add_argument("--ranker", metavar="NAME", nargs="+", action="extend", default=[])
        parser.add_argument(
            "--encoder",
            metavar="VALUE",
            nargs="+",
            action="extend",
            default=[],
            help="values of TOOLSEARCH_ENCODER to compare; unless given, that of the environment",
        )
        parser.add_argument("--json", action="store_true", help="write JSON instead of a table")

    def handle(self, *_args: Any, **options: Any) -> None:
        try:
            dirs, rankers, values = _tell_apart(options["dirs"], options["ranker"], options["encoder"])
            rows = [
                row
                for setting in _read_settings(values)
                for row in _evaluate_all(dirs, rankers, setting.value, _open(setting))
            ]
        except OSError as error:
            raise CommandError(f"{error.filename}: {error.strerror}") from error
        except (InvalidInput, UnusableEncoder) as error:
            raise CommandError(str(error)) from error
        self.stdout.write(json.dumps(rows, indent=2) if options["json"] else _write_table(rows))


def _tell_apart(
    dirs: Sequence[str], rankers: Sequence[str], encoders: Sequence[str]
) -> tuple[list[Path], list[str], list[str]]:
    """Splits folders from rankers and encoders, since the lists may be given in any order."""
    named = [name for name in rankers if name in RANKERS]
    values = [value for value in encoders if is_encoder_value(value)]
    others = [name for name in (*rankers, *encoders) if name not in RANKERS and not is_encoder_value(name)]
    folders = [Path(name) for name in (*dirs, *others)]
    if not folders:
        raise CommandError("name at least one folder with tools.jsonl and queries.jsonl")
    return folders, named or list(RANKERS), values


def _read_settings(values: Sequence[str]) -> list[EncoderSetting]:
    """Model, key and prefixes are those of the environment."""
    in_force: EncoderSetting = settings.ENCODER
    return [replace(in_force, value=value) for value in dict.fromkeys(values)] or [in_force]


def _open(setting: EncoderSetting) -> Encoder | None:
    """An endpoint's address and a folder may be given as in the environment."""
    if setting.is_endpoint:
        if not setting.model:
            raise CommandError(
                "TOOLSEARCH_ENCODER_MODEL is missing; an endpoint is asked for a model by name"
            )
        try:
            return open_named(replace(setting, value=complete_address(setting.value)))
        except ValueError:
            raise CommandError(f"'{setting.value}' is not an address") from None
    if setting.value.startswith(ONNX):
        folder = Path(setting.value.removeprefix(ONNX)).expanduser().absolute()
        return open_named(replace(setting, value=f"{ONNX}{folder}"))
    return open_named(setting)


def _evaluate_all(
    folders: Sequence[Path], rankers: Sequence[str], value: str, encoder: Encoder | None
) -> Iterator[Row]:
    name = value if encoder else NONE
    for folder in folders:
        quality_set = evaluation.load_set(folder)
        compiled = compile_documents(quality_set.documents, encoder)
        counts = {"tools": len(quality_set.documents), "queries": len(quality_set.questions)}
        for ranker in dict.fromkeys(rankers):
            search = evaluation.make_searcher(compiled, ranker, encoder)
            quality = evaluation.measure_quality(quality_set.questions, search)
            _refuse_failures(encoder)
            yield {
                "set": quality_set.name,
                "ranker": ranker,
                "encoder": name,
                **counts,
                **quality.to_mapping(),
            }


def _refuse_failures(encoder: Encoder | None) -> None:
    """Queries that an endpoint failed were ranked by their words alone: that is not what was asked for."""
    failure = encoder.rest.read() if isinstance(encoder, EndpointEncoder) else None
    if failure is not None and failure.count:
        raise UnusableEncoder(f"queries were not encoded: {failure.problem}")


def _write_table(rows: Sequence[Row]) -> str:
    cells = [list(rows[0]), *([_write_cell(value) for value in row.values()] for row in rows)]
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    lines = ("  ".join(map(str.ljust, row, widths)).rstrip() for row in cells)
    return "\n".join(lines)


def _write_cell(value: object) -> str:
    return f"{value:.3f}" if isinstance(value, float) else str(value)
