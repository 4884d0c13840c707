from __future__ import annotations

from pathlib import Path

from sharpen.bench.reference import render
from sharpen.trainers.reflact.params import ReflACTParams


def test_the_configuration_page_is_what_the_schema_says() -> None:
    page = Path(__file__).parents[2] / "docs" / "configuration.md"
    assert page.read_text(encoding="utf-8") == render(), (
        "run: python -m sharpen.bench.reference > docs/configuration.md"
    )


def test_every_setting_of_the_trainer_is_explained() -> None:
    assert all(field.description for field in ReflACTParams.model_fields.values())
