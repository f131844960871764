"""Schema 1 as it was first written: these files are never changed, only added to."""

from pathlib import Path

import pytest

from autotune.serving.cache_schema import device_text, parse_device, parse_record, record_text
from autotune.serving.lookup import best_config

FOLDER = Path(__file__).parent / "cache-schema-1"


@pytest.mark.parametrize(
    ("name", "parse", "text_of"),
    [("device.json", parse_device, device_text), ("reduce.json", parse_record, record_text)],
)
def test_a_file_of_schema_1_is_read_and_written_byte_for_byte(name, parse, text_of):
    file = FOLDER / "example-gpu-100" / name
    text = file.read_text(encoding="utf-8")
    assert text_of(parse(text, str(file))) == text


def test_a_configuration_of_schema_1_is_served():
    best = best_config("reduce", "Example GPU 100", n=4096, dtype="int32", cache=FOLDER, strict=True)
    assert dict(best) == {"ALGORITHM": "shuffle", "BLOCK": 128, "UNROLL": True, "VECTOR": 4}
    assert [step.grid for step in best.launch(n=4096)] == [(8, 1, 1), (1, 1, 1)]
