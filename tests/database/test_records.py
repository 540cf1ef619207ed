"""Records and their lines: inverse to each other, and nothing wrong gets in."""

from __future__ import annotations

import dataclasses
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st
from made_records import evidence, measurement
from record_strategies import records

from precast.database.records import Origin, RecordError, from_line, record_id, to_dict, to_line


@given(records)
def test_lines_and_records_are_inverse(record) -> None:
    line = to_line(record)
    assert "\n" not in line and line.isascii()
    again = from_line(line)
    assert again == record and to_line(again) == line and record_id(again) == record_id(record)


def test_defaults_are_left_out_so_that_new_fields_change_no_identity() -> None:
    record = measurement()
    assert "clock_mhz" not in to_dict(record) and "reason" not in to_dict(record)


def test_equal_records_have_one_identity() -> None:
    record = measurement(time=10.0)
    same = dataclasses.replace(record, times=(10, 11, 12, 13, 14), key=dict(reversed(record.key.items())))
    assert same == record and record_id(same) == record_id(record)


def test_long_reasons_are_cut_and_bad_unicode_replaced() -> None:
    record = measurement(None, None, status="crash", reason="x" * 10_000 + "\ud800")
    record = dataclasses.replace(record, subject=measurement().subject)
    assert len(record.reason) == 4000 and from_line(to_line(record)) == record
    assert evidence(record, "crash", reason="a\ud800b").reason == "a?b"


def test_an_infinite_error_is_kept_as_the_largest_float() -> None:
    found = dataclasses.replace(evidence(measurement(), "wrong"), error=float("inf"))
    assert found.error > 1e308 and from_line(to_line(found)) == found


def _changed(path: str, value: object) -> str:
    given = json.loads(to_line(measurement()))
    *parents, last = path.split(".")
    place = given
    for name in parents:
        place = place[name]
    if value is ...:
        del place[last]
    else:
        place[last] = value
    return json.dumps(given)


@pytest.mark.parametrize(
    ("path", "value", "says"),
    [
        ("status", "fine", "not one of ok, wrong"),
        ("status", ["ok"], "not one of"),
        ("times", [1, 2, 3], "not 5 quantiles"),
        ("times", [5, 4, 3, 2, 1], "ascending"),
        ("times", [0, 1, 2, 3, 4], "above 0"),
        ("times", [1, 2, 3, 4, "5"], "times"),
        ("times", [1, 2, 3, 4, True], "times"),
        ("times", 7, "not a list"),
        ("times", ..., "there are no times"),
        ("repeats", 1.5, "not an integer"),
        ("repeats", True, "not an integer"),
        ("registers", -2, "-1 to"),
        ("shared", 2**80, "not an integer"),
        ("key", {"Sq": 2**64}, "beyond 64 bits"),
        ("key", {"Sq": "1"}, "not an integer"),
        ("key", {"": 1}, "must not be empty"),
        ("key", {f"k{i}": i for i in range(65)}, "more than 64"),
        ("key", [1], "not an object"),
        ("problem", {"B": None}, "not a number"),
        ("problem", {"B": [1]}, "not a number"),
        ("subject", 3, "not an object"),
        ("subject.family", "a b", "letters, digits"),
        ("subject.operator", "../x", "letters, digits"),
        ("subject.target", "sm_90/..", "target"),
        ("subject.device", "x" * 201, "longer than 200"),
        ("subject.device", "a\nb", "control character"),
        ("subject.plan", ..., "lacks the field 'plan'"),
        ("subject.colour", "red", "unknown field 'colour'"),
        ("subject.features", {"F": 1.5}, "not an integer, text or bool"),
        ("origin.date", "yesterday", "UTC time"),
        ("origin.date", "", "UTC time"),
        ("origin.source", None, "not text"),
        ("kind", "rumour", "not one of measurement, evidence"),
        ("kind", {}, "not one of"),
        ("surprise", 1, "newer precast"),
    ],
)
def test_a_wrong_field_is_named(path: str, value: object, says: str) -> None:
    with pytest.raises(RecordError, match=says):
        from_line(_changed(path, value))


@pytest.mark.parametrize("text", ["", "{", "[]", "null", '"x"', "[" * 100_000, "{}", '{"kind": NaN}', "\x00"])
def test_what_is_no_record_is_refused(text: str) -> None:
    with pytest.raises(RecordError):
        from_line(text)


def test_numbers_that_json_lacks_are_refused() -> None:
    with pytest.raises(RecordError, match="not finite"):
        from_line(_changed("problem", {"x": float("nan")}))


@given(st.recursive(st.none() | st.booleans() | st.integers() | st.text(), lambda x: st.lists(x) | st.dictionaries(
    st.sampled_from(["kind", "subject", "origin", "times", "key", "status"]), x)))  # fmt: skip
def test_any_json_is_a_record_or_refused(value) -> None:
    with pytest.raises(RecordError):
        from_line(json.dumps(value))


def test_only_imports_may_lack_a_date() -> None:
    record = measurement(origin=Origin("", "", "", "", "", "aotriton-0.6"))
    assert from_line(to_line(record)) == record
