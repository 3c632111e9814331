"""The generated pages of the reference, and the schemas for editors."""

import json
from pathlib import Path

import generate
import pytest
import yaml
from jsonschema import Draft202012Validator
from jsonschema.exceptions import best_match

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize("name", ["configuration.md", "cli.md"])
def test_a_committed_page_is_what_the_schema_and_the_commands_say(name: str) -> None:
    committed = (ROOT / "docs/reference" / name).read_text(encoding="utf-8")
    assert committed == generate.PAGES[name](), f"docs/reference/{name} is out of date: call `make docs`, and commit it"


def test_every_key_has_a_description() -> None:
    silent = [
        f"{section.title} {key}"
        for section in generate.sections()
        for key, part in section.keys.items()
        if not part.get("description")
    ]
    assert silent == []


def test_every_file_of_conf_is_one_of_the_schema_for_editors(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.argv", ["generate.py", "--schemas", str(tmp_path)])
    generate.main()
    files = [path for path in (ROOT / "conf").rglob("*.yaml") if path.parent.name != "common"]
    assert len(files) > 40
    for path in files:
        name = "config" if path.parent.name == "conf" else path.parent.name
        schema = json.loads((tmp_path / f"{name}.schema.json").read_text())
        best = best_match(Draft202012Validator(schema).iter_errors(yaml.safe_load(path.read_text(encoding="utf-8"))))
        assert best is None, f"{path}: {best}"


def test_a_schema_for_editors_refuses_other_keys_and_values() -> None:
    validator = Draft202012Validator(generate.schemas()["search"])
    assert validator.is_valid({"population": "${seed}", "exact": "never"})
    assert not validator.is_valid({"populaton": 30})
    assert not validator.is_valid({"population": 3})


def test_the_page_of_the_commands_is_written_for_readers_and_not_for_argparse() -> None:
    page = generate.command_page()
    assert "%%" not in page
    flags = [line for line in page.splitlines() if line.startswith(("| `--no-polish`", "| `--yaml`"))]
    assert len(flags) >= 2
    assert all(line.split("|")[2].strip() == "" for line in flags), "a flag has no default to show"
