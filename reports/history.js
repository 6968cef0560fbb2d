// SPDX-License-Identifier: Apache-2.0
// Lists runs, series and changes, and shows one series or two runs; nothing is fetched from anywhere.
// The part of the address after # says what is shown: #series=3 · #runs=0,7 · else the lists.
"use strict";
(() => {
  const read = (id) => JSON.parse(document.getElementById(id).textContent);
  const { runs, series, facts } = read("data");
  const chart = read("charts").series;
  const themes = read("themes");
  const dark = window.matchMedia("(prefers-color-scheme: dark)");
  const at = (id) => document.getElementById(id);
  const STEP = 100; // rows of a list at first, and with each press of its button

  // An element with attributes (`text` is what stands in it) and children; never from HTML.
  const make = (tag, attributes = {}, ...children) => {
    const made = document.createElement(tag);
    for (const [name, value] of Object.entries(attributes)) {
      if (name === "text") made.textContent = value;
      else if (value !== false) made.setAttribute(name, value === true ? "" : value);
    }
    made.append(...children);
    return made;
  };
  // A number and its unit stay on one line.
  const whole = (text) => text.replace(/(\d) (?=[%\p{L}])/gu, "$1\u00a0");
  const byNumber = new Intl.Collator("en", { numeric: true }).compare; // plan-2 before plan-10
  const cell = (text, numeric) => make("td", { text, class: numeric ? "n" : "" });
  const link = (text, href) => make("a", { text, href });
  const plural = (n, word) => `${n.toLocaleString("en")} ${word}${n === 1 || word === "series" ? "" : "s"}`;
  const number = (value) =>
    value === null ? "–" : value.toLocaleString("en", { maximumSignificantDigits: Math.abs(value) < 1000 ? 5 : 9 });
  // Where figures scatter, the digits after the point say nothing, and do not stand below each other.
  const figureOf = (one, value) => number(value !== null && !one.exact && Math.abs(value) >= 1000 ? Math.round(value) : value);
  const where = (one, change) => `${one.exact ? "at" : "near"} ${runs[change.run].name}`;
  const nameOf = (one) => `${one.figure} of ${one.case}`;
  // The newest figure, and the status of the newest run if that has none.
  const newest = (one) => {
    const figure = one.points.findLast((point) => point[1] !== null);
    const [, value, status] = one.points.at(-1);
    const text = figure ? `${figureOf(one, figure[1])} ${one.unit}` : "–";
    return value === null ? `${text} (newest run: ${status ?? "no figure"})` : text;
  };

  // A table in which the first cell of a row is its header.
  const table = (caption, titles, rows) => {
    const made = make("table", { class: "wide" });
    made.append(make("caption", { text: caption }));
    const head = make("tr");
    for (const title of titles) head.append(make("th", { text: title.text ?? title, scope: "col", class: title.n ? "n" : "" }));
    made.append(make("thead", {}, head), make("tbody", {}, ...rows));
    // It takes the focus, so that the keyboard can scroll it; its name is that of the table.
    return make("div", { class: "scroll", tabindex: "0", role: "group", "aria-label": caption }, made);
  };

  // A list that shows STEP rows, and more at the press of a button.
  const list = (section, caption, titles, items, row) => {
    const place = section.querySelector(".list");
    const made = table(caption, titles, items.slice(0, STEP).map(row));
    place.replaceChildren(items.length ? made : make("p", { text: "None.", class: "faint" }));
    const body = made.querySelector("tbody");
    const left = () => items.length - body.rows.length;
    if (left() <= 0) return;
    const more = make("button", { type: "button" });
    const tell = () => { more.textContent = `Show ${Math.min(STEP, left())} of ${left().toLocaleString("en")} more`; };
    more.addEventListener("click", () => {
      const from = body.rows.length;
      body.append(...items.slice(from, from + STEP).map(row));
      body.rows[from].querySelector("a, input")?.focus(); // where one goes on reading
      if (left() > 0) tell(); else more.remove();
    });
    tell();
    place.append(more);
  };

  // ---- the lists ----
  const every = series.flatMap((one, id) => one.changes.map((change) => ({ one, id, change })));
  every.sort((a, b) => b.change.run - a.change.run || a.id - b.id);
  const chosen = new Set();

  const has = (text, ...where) => {
    const all = where.join(" ").toLowerCase();
    return text.toLowerCase().split(/\s+/).every((word) => all.includes(word));
  };
  const wanted = (one) => {
    const [text, plan, figure] = [at("text").value, at("plan").value, at("figure").value];
    return (!plan || one.plan === plan) && (!figure || one.figure === figure) && has(text, one.plan, one.case, one.figure);
  };
  const wantedRun = (run) =>
    (!at("plan").value || run.plan === at("plan").value) && has(at("text").value, run.name, run.plan, run.espbench, run.platform);

  const changeRow = ({ one, id, change }) =>
    make("tr", {},
      make("th", { scope: "row", class: "nb" }, link(where(one, change), `#series=${id}`)),
      cell(whole(nameOf(one))), make("td", { text: whole(change.move), class: `nb ${change.word}` }), cell(change.else));
  const seriesRow = ([one, id]) =>
    make("tr", {},
      make("th", { scope: "row" }, link(whole(one.case), `#series=${id}`)), cell(one.plan), cell(one.figure),
      cell(one.points.length, true), cell(newest(one), true),
      cell(one.changes.length || "–", true), cell(one.exact ? "exact" : "noisy"));
  const tellChosen = () => {
    const [a, b] = [...chosen].sort((x, y) => x - y);
    at("chosen").textContent =
      chosen.size === 2 ? `${runs[a].name} and ${runs[b].name}:`
      : chosen.size === 1 ? `${runs[a].name} and which other?`
      : chosen.size ? `${chosen.size} runs are chosen; two can be shown side by side.`
      : "Choose two runs to see them side by side.";
    at("beside").hidden = chosen.size !== 2;
    at("beside").href = `#runs=${a},${b}`;
  };
  const runRow = ([run, id]) => {
    const box = make("input", { type: "checkbox", "aria-label": `${run.name}: side by side with another` });
    box.checked = chosen.has(id);
    box.addEventListener("change", () => {
      if (box.checked) chosen.add(id); else chosen.delete(id);
      tellChosen();
    });
    return make("tr", {},
      make("th", { scope: "row", class: "nb" }, make("label", {}, box, ` ${run.name}`)), cell(run.plan),
      make("td", { text: run.started, class: "nb" }), cell(run.espbench), cell(run.platform), cell(run.results),
      make("td", {}, run.report ? link("report", run.report) : "none written"));
  };
  const lists = () => {
    const kept = series.map((one, id) => [one, id]).filter(([one]) => wanted(one));
    kept.sort(([a], [b]) => byNumber(a.plan, b.plan));
    const changes = every.filter(({ one }) => wanted(one));
    const listed = runs.map((run, id) => [run, id]).filter(([run]) => wantedRun(run)).reverse();
    at("shown").textContent =
      `${plural(changes.length, "change")}, ${plural(kept.length, "series")}, ${plural(listed.length, "run")}`;
    list(at("changes"), `${plural(changes.length, "change")}, the newest first`,
      ["where", "what", "from → to", "what else changed there"], changes, changeRow);
    list(at("series"), `${plural(kept.length, "series")}`,
      ["case", "plan", "figure", { text: "runs", n: true }, { text: "newest", n: true }, { text: "changes", n: true }, "kind"],
      kept, seriesRow);
    list(at("runs"), `${plural(listed.length, "run")}, the newest first`,
      ["run", "plan", "started", "espbench", "platform", "results", "report"], listed, runRow);
    tellChosen();
  };

  // ---- one series ----
  const draw = async (one) => {
    const place = at("series-chart");
    delete place.dataset.drawn;
    const spec = structuredClone(chart);
    const time = (id) => Date.parse(runs[id].started);
    spec.datasets.points = one.points.filter((p) => p[1] !== null)
      .map(([id, value, status]) => ({ time: time(id), value, run: runs[id].name, status: status ?? "OK" }));
    spec.datasets.marks = one.points.filter((p) => p[1] === null)
      .map(([id, , status]) => ({ time: time(id), run: runs[id].name, status: status ?? "no figure" }));
    spec.datasets.changes = one.changes
      .map((change) => ({ time: time(change.run), run: runs[change.run].name, move: change.move }));
    // Vega warns of a layer without data.
    spec.layer = spec.layer.filter((layer) => spec.datasets[layer.data.name].length);
    for (const layer of spec.layer) if (layer.encoding.y?.axis) layer.encoding.y.axis.title = `${one.figure}, ${one.unit}`;
    const name = dark.matches ? "dark" : "light";
    // Vega makes it the name of the chart's own element.
    spec.description =
      `Chart of ${nameOf(one)} over ${plural(one.points.length, "run")}, with ${plural(one.changes.length, "change")}; the table below has every figure.`;
    try {
      await vegaEmbed(place, spec, { renderer: "svg", actions: false, config: themes[name], tooltip: { theme: name } });
      place.dataset.drawn = name;
    } catch (error) {
      place.textContent = "This chart could not be drawn: " + error;
      reportError(error); // the console, and the test that listens to it, must know
    }
  };
  const showSeries = (id) => {
    const one = series[id];
    at("detail-title").textContent = whole(nameOf(one));
    const better = one.better ? `; ${one.better} is better` : "";
    const told = [make("p", { text: `Plan ${one.plan}, ${one.unit}${better}. ` + (one.exact
      ? "Virtual time: two runs of the same things give the same, so each change is exactly where it is said to be."
      : "Real time: figures scatter; changes are near the runs named, and one or two runs that differ are outliers.") })];
    if (one.changes.length) {
      const items = one.changes.map((change) => make("li", {},
        make("b", { text: where(one, change) }), `, after ${runs[change.before].name}: `,
        make("span", { text: change.move, class: change.word }), make("br"),
        make("span", { class: "faint", text: `what else changed: ${change.else}` }), " ",
        link("both runs side by side", `#runs=${change.before},${change.run}`)));
      told.push(make("ul", { class: "prose", "aria-label": "Changes" }, ...items));
    } else told.push(make("p", { text: "No change." }));
    at("told").replaceChildren(...told);
    at("figure-of-series").hidden = false;
    const changed = new Map(one.changes.map((change) => [change.run, change]));
    const rows = [...one.points].reverse().map(([run, value, status]) => make("tr", {},
      make("th", { scope: "row", class: "nb" }, runs[run].report ? link(runs[run].name, runs[run].report) : runs[run].name),
      make("td", { text: runs[run].started, class: "nb" }), cell(figureOf(one, value), true),
      make("td", { text: status ?? "OK", class: status ?? "OK" }),
      cell(changed.has(run) ? `changed ${one.exact ? "here" : "near here"}: ${changed.get(run).move}` : "")));
    at("rows").replaceChildren(table(`Every figure, ${one.unit}; a run's name leads to its report`,
      ["run", "started", { text: "figure", n: true }, "status", "change"], rows));
    draw(one);
  };

  // ---- two runs ----
  const showRuns = (a, b) => {
    at("detail-title").textContent = `${runs[a].name} beside ${runs[b].name}`;
    at("figure-of-series").hidden = true;
    const [fa, fb] = [facts[runs[a].facts], facts[runs[b].facts]];
    const differing = [...new Set([...Object.keys(fa), ...Object.keys(fb)])].filter((key) => fa[key] !== fb[key]).sort();
    const reports = make("p", {}, ...[a, b].flatMap((id) =>
      [runs[id].report ? link(`report of ${runs[id].name}`, runs[id].report) : `${runs[id].name} has no report`, " · "]).slice(0, -1));
    at("told").replaceChildren(reports, differing.length
      ? table("What differs in their manifests", ["fact", runs[a].name, runs[b].name], differing.map((key) =>
          make("tr", {}, make("th", { scope: "row", text: key }), cell(fa[key] ?? "nothing"), cell(fb[key] ?? "nothing"))))
      : make("p", { text: "Nothing differs in their manifests but when they were begun." }));
    const rows = [];
    series.forEach((one, id) => {
      const [pa, pb] = [a, b].map((run) => one.points.find((point) => point[0] === run));
      if (!pa || !pb) return;
      const shown = (point) => (point[1] === null ? point[2] ?? "no figure" : figureOf(one, point[1]));
      const ratio = pa[1] && pb[1] !== null ? pb[1] / pa[1] : null;
      // Of one run each nothing is said where figures scatter.
      const word = ratio === null || ratio === 1 || !one.better || !one.exact ? "" : (ratio > 1) === (one.better === "more") ? "better" : "worse";
      rows.push(make("tr", {}, make("th", { scope: "row" }, link(whole(one.case), `#series=${id}`)), cell(one.figure),
        cell(shown(pa), true), cell(shown(pb), true), cell(one.unit),
        cell(ratio === null ? "–" : ratio.toLocaleString("en", { minimumFractionDigits: 3, maximumFractionDigits: 3 }), true),
        make("td", { text: word, class: word })));
    });
    at("rows").replaceChildren(rows.length
      ? table("Figures that both have, of one series; one run of each is no verdict: espbench compare gives one",
          ["case", "figure", { text: runs[a].name, n: true }, { text: runs[b].name, n: true }, "unit", { text: "ratio", n: true }, "which is"], rows)
      : make("p", { text: "They have no series in common: their plans or conditions differ." }));
  };

  // ---- what the address asks for ----
  let left = null; // what had the focus in the lists when they were left
  const show = (moved) => {
    const asked = /^#(?:series=(\d+)|runs=(\d+),(\d+))$/.exec(location.hash);
    const isSeries = asked?.[1] !== undefined && Number(asked[1]) < series.length;
    const isRuns = asked?.[2] !== undefined && Number(asked[2]) < runs.length && Number(asked[3]) < runs.length;
    const returns = moved && !at("detail").hidden && !(isSeries || isRuns);
    if (at("lists").contains(document.activeElement)) left = document.activeElement;
    at("detail").hidden = !(isSeries || isRuns);
    at("lists").hidden = isSeries || isRuns;
    if (isSeries) showSeries(Number(asked[1]));
    if (isRuns) showRuns(Number(asked[2]), Number(asked[3]));
    document.title = (isSeries || isRuns ? `${at("detail-title").textContent} · ` : "") + "Many runs · espbench";
    if (moved && (isSeries || isRuns)) {
      at("detail").focus(); // so that a screen reader reads on from here
      window.scrollTo(0, 0);
    }
    if (returns) left?.focus(); // where one goes on reading
  };

  const options = (id, names) => at(id).append(...[...new Set(names)].sort(byNumber).map((name) => make("option", { text: name, value: name })));
  options("plan", runs.map((run) => run.plan));
  options("figure", series.map((one) => one.figure));
  at("counts").textContent = `${plural(runs.length, "run")}, ${plural(series.length, "series")}, ${plural(every.length, "change")}` +
    (runs.length ? `; from ${runs[0].started.slice(0, 10)} to ${runs.at(-1).started.slice(0, 10)}` : "");
  for (const id of ["text", "plan", "figure"]) at(id).addEventListener("input", lists);
  window.addEventListener("hashchange", () => show(true));
  dark.addEventListener("change", () => { if (!at("detail").hidden) show(false); });
  lists();
  show(false);
  document.documentElement.dataset.ready = "true";
})();
