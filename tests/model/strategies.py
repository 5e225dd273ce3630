"""Hypothesis strategies that draw plans from the schema of plans. Some of these plans are contradictory."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

from strakes.base.schemas import load_schema
from strakes.model.plan_read import plan_from_json

_DEFINITIONS = load_schema("plan")["$defs"]


def _values(rule: dict[str, Any]) -> st.SearchStrategy[Any]:
    if "$ref" in rule:
        rule = {**_DEFINITIONS[rule["$ref"].rpartition("/")[2]], **rule}
    if "const" in rule:
        return st.just(rule["const"])
    if "enum" in rule:
        return st.sampled_from(rule["enum"])
    if "oneOf" in rule:
        return st.one_of(*map(_values, rule["oneOf"]))
    match rule["type"]:
        case "boolean":
            return st.booleans()
        case "integer":
            return st.integers(rule["minimum"], rule.get("maximum", 2**31))
        case "number":
            return st.floats(0, rule["maximum"], exclude_min=True, allow_subnormal=False)
        case "string":
            return st.from_regex(rule["pattern"], fullmatch=True)
        case "array":
            return st.lists(_values(rule["items"]), min_size=rule.get("minItems", 0), max_size=4)
    if "properties" not in rule:
        names = st.from_regex(rule["propertyNames"]["pattern"], fullmatch=True)
        return st.dictionaries(names, _values(rule["additionalProperties"]), max_size=3)
    keys = {key: _values(value) for key, value in rule["properties"].items()}
    required = {key: keys.pop(key) for key in rule["required"]}
    return st.fixed_dictionaries(required, optional=keys)


plans = _values(load_schema("plan")).map(plan_from_json)
