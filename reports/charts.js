// SPDX-License-Identifier: Apache-2.0
// Draws the report's charts with the Vega library inlined above; nothing is fetched from anywhere.
"use strict";
(() => {
  const read = (id) => JSON.parse(document.getElementById(id).textContent);
  const charts = read("charts");
  const themes = read("themes");
  const dark = window.matchMedia("(prefers-color-scheme: dark)");
  const views = new Map(); // id of the panel → its Vega view

  const draw = async (id, name) => {
    const place = document.getElementById(id);
    try {
      const result = await vegaEmbed(place, charts[id], {
        renderer: "svg",
        actions: false,
        config: themes[name],
        tooltip: { theme: name },
      });
      views.set(id, result.view);
      place.dataset.drawn = name;
    } catch (error) {
      place.textContent = "This chart could not be drawn: " + error;
      reportError(error); // the console, and the test that listens to it, must know
    }
  };
  const drawAll = (name) => Promise.all(Object.keys(charts).map((id) => draw(id, name)));

  drawAll(dark.matches ? "dark" : "light");
  dark.addEventListener("change", () => drawAll(dark.matches ? "dark" : "light"));
  window.addEventListener("beforeprint", () => {
    // The text points to what is folded; only the list of trials is too long for paper.
    for (const folded of document.querySelectorAll("details")) folded.open ||= !folded.closest("#trials");
    window.dispatchEvent(new Event("resize"));
  });

  // A click in a legend shows one suite in full and the others faintly; a second click shows all.
  for (const button of document.querySelectorAll("button[data-series]")) {
    button.addEventListener("click", () => {
      const figure = button.closest("figure");
      const chosen = button.getAttribute("aria-pressed") === "true" ? "" : button.dataset.series;
      for (const other of figure.querySelectorAll("button[data-series]")) {
        other.setAttribute("aria-pressed", String(other.dataset.series === chosen));
      }
      for (const panel of figure.querySelectorAll(".chart")) {
        views.get(panel.id)?.signal("chosen", chosen).runAsync();
      }
    });
  }
})();
