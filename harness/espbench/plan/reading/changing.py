# SPDX-License-Identifier: Apache-2.0
"""Changes the value of a key in a file's text: a run directory keeps this text, and a resumed run reads it."""

from __future__ import annotations

import yaml

from espbench.plan.reading.bounded_yaml import composed


def with_value(text: str, key: str, value: int) -> str:
    """Return the text with this value for a key of its outermost mapping; everything else stays unchanged.

    If there is no such key, it is added. A text that is no mapping is returned unchanged. Raise YAMLError.
    """
    _, root = composed(text)
    if not isinstance(root, yaml.MappingNode):
        return text  # the mistake is reported when the text is read
    for node, old in root.value:
        if node.value == key:
            begin, end = old.start_mark.index, old.end_mark.index
            return f"{text[:begin]}{'' if end > begin else ' '}{value}{text[end:]}"
    if root.flow_style:
        begin = root.start_mark.index + 1
        return f"{text[:begin]}{key}: {value}, {text[begin:]}"
    end = root.end_mark.index  # behind it there may be an end mark of the document
    before = text[:end] if text[:end].endswith("\n") else f"{text[:end]}\n"
    return f"{before}{' ' * root.start_mark.column}{key}: {value}\n{text[end:]}"
