# SPDX-License-Identifier: Apache-2.0
"""Draws chains of callers as flame graphs, in one HTML file that fetches nothing; it can be enlarged and searched."""

from __future__ import annotations

import json
from collections.abc import Sequence
from html import escape
from typing import Any

from espbench.profile.attribution import Profile
from espbench.profile.sampled import SampledProfile

# Boxes narrower than this share of the whole width are not drawn.
_LEAST = 0.0003

_PAGE = """<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>{title}</title>
<style>
body {{ font: 14px system-ui, sans-serif; margin: 1.5em; color: #222; background: #fff; }}
h2 {{ font-size: 1.05em; margin: 1.6em 0 .3em; }}
p {{ max-width: 60em; line-height: 1.4; }}
svg {{ width: 100%; display: block; font: 11px system-ui, sans-serif; }}
rect {{ stroke: #fff; stroke-width: .5; cursor: pointer; }}
text {{ pointer-events: none; }}
.line {{ min-height: 1.4em; font-variant-numeric: tabular-nums; }}
</style></head><body>
<h1>{title}</h1>
<p>{said} Click a box to enlarge it, the lowest one to go back.</p>
<p><a href="report.html">The report of this run</a></p>
<p><label>Find a function: <input id="word"></label></p>
<div id="graphs"></div>
<script type="application/json" id="data">{data}</script>
<script>
const LINE = 17, data = JSON.parse(document.getElementById("data").textContent), redraw = [];
const SVG = "http://www.w3.org/2000/svg";
let word = "";
function made(name, attributes, parent) {{
  const e = document.createElementNS(SVG, name);
  for (const key in attributes) e.setAttribute(key, attributes[key]);
  return parent.appendChild(e);
}}
function colour(node) {{
  if (word && node.n.includes(word)) return "#7b3fb5";
  let hash = 0;
  for (const c of node.n) hash = (hash * 31 + c.charCodeAt(0)) % 1000;
  if (node.n.startsWith("[")) return "#9aa7b5";
  return `hsl(${{node.n.endsWith("]") ? 200 : 24 + hash % 30}} 75% ${{66 + hash % 14}}%)`;
}}
function deepest(node) {{ return 1 + Math.max(0, ...(node.c || []).map(deepest)); }}
for (const graph of data) {{
  const box = document.getElementById("graphs").appendChild(document.createElement("section"));
  box.appendChild(document.createElement("h2")).textContent = graph.title;
  const line = box.appendChild(document.createElement("div"));
  line.className = "line";
  const svg = made("svg", {{}}, box);
  let focus = [graph.root];
  function tell(node) {{
    const each = node.v / graph.frames, share = 100 * node.v / graph.root.v;
    line.textContent = `${{node.n}}: ${{each.toFixed(1)}} ${{graph.unit}} per frame, ${{share.toFixed(2)}} %`;
  }}
  function draw() {{
    svg.replaceChildren();
    const width = svg.clientWidth || 1200, of = focus[focus.length - 1];
    const height = (deepest(of) + focus.length - 1) * LINE;
    svg.setAttribute("viewBox", `0 0 ${{width}} ${{height}}`);
    svg.setAttribute("height", height);
    function put(node, x, w, depth, path) {{
      if (w < 0.4) return;
      const y = height - (depth + 1) * LINE;
      const rect = made("rect", {{x, y, width: w, height: LINE, fill: colour(node)}}, svg);
      made("title", {{}}, rect).textContent =
        `${{node.n}}: ${{(node.v / graph.frames).toFixed(1)}} ${{graph.unit}} per frame`;
      rect.addEventListener("click", () => {{ focus = path; draw(); tell(node); }});
      rect.addEventListener("mouseover", () => tell(node));
      const room = Math.floor((w - 6) / 6.2);
      if (room > 2) made("text", {{x: x + 3, y: y + 12.5}}, svg).textContent =
        node.n.length > room ? node.n.slice(0, room - 1) + "…" : node.n;
    }}
    focus.slice(0, -1).forEach((node, depth) => put(node, 0, width, depth, focus.slice(0, depth + 1)));
    function all(node, x, depth, path) {{
      const scale = width / of.v;
      put(node, x, node.v * scale, depth, path);
      let at = x;
      for (const child of node.c || []) {{
        all(child, at, depth + 1, [...path, child]);
        at += child.v * scale;
      }}
    }}
    all(of, 0, focus.length - 1, focus);
  }}
  redraw.push(draw);
  draw();
  tell(graph.root);
}}
addEventListener("resize", () => redraw.forEach(draw => draw()));
document.getElementById("word").addEventListener("input", event => {{
  word = event.target.value;
  redraw.forEach(draw => draw());
}});
</script></body></html>
"""


_COUNTED = (
    "Each box is a function; those that it called stand on it, and its width is the instructions that all of them "
    "executed. They were counted one by one, not sampled. <b>[hard interrupt]</b> stands at the bottom, whatever was "
    "interrupted."
)
_SAMPLED = (
    "Each box is a function; those that it called stand on it, and its width is the CPU time that all of them took. "
    "<b>It is sampled</b>: perf looked at the CPUs at intervals, so a narrow box rests on few samples. The lowest "
    "boxes are the processes and threads that ran."
)


def page(title: str, profiles: Sequence[Profile]) -> str:
    """Return the HTML document with a graph for each profile."""
    each = [(p, f"{p.instructions / p.frames:,.1f} instructions per frame; {p.naming}") for p in profiles]
    return _page(title, _COUNTED, [_graph(p, words, "instructions") for p, words in each])


def sampled_page(title: str, profiles: Sequence[SampledProfile]) -> str:
    """Return the HTML document of sampled profiles, which says at each figure that it is sampled."""
    each = [
        (p, f"{p.ns_per_frame:,.0f} ns of CPU time per frame, sampled ({p.count:,} samples of {p.event})")
        for p in profiles
    ]
    return _page(f"{title} (sampled)", _SAMPLED, [_graph(p, words, "ns (sampled)") for p, words in each])


def _graph(profile: Profile | SampledProfile, words: str, unit: str) -> dict[str, Any]:
    return {
        "title": f"{profile.case}, {profile.side}: {words}",
        "frames": profile.frames,
        "unit": unit,
        "root": tree(profile),
    }


def _page(title: str, said: str, graphs: list[dict[str, Any]]) -> str:
    data = json.dumps(graphs, separators=(",", ":")).replace("<", "\\u003c")
    return _PAGE.format(title=escape(title), said=said, data=data)


def tree(profile: Profile | SampledProfile) -> dict[str, Any]:
    """Return the stacks as nested boxes: n is a box's name, c the boxes above it, v its cost including those."""
    root: dict[str, Any] = {"n": profile.side, "v": 0, "c": {}}
    for path, count in profile.stacks.items():
        at = root
        at["v"] += count
        for name in path:
            at = at["c"].setdefault(name, {"n": name, "v": 0, "c": {}})
            at["v"] += count
    return _pruned(root, _LEAST * root["v"])


def _pruned(box: dict[str, Any], least: float) -> dict[str, Any]:
    children = sorted((c for c in box["c"].values() if c["v"] >= least), key=lambda c: c["n"])
    kept = {"n": box["n"], "v": box["v"]}
    return kept | {"c": [_pruned(child, least) for child in children]} if children else kept
