"use strict";
// Draws the figures, and makes the page fit for print: figures at the width of the paper, all tables open.
(() => {
  const drawings = JSON.parse(document.getElementById("drawings").textContent);
  const config = { responsive: true, displaylogo: false, modeBarButtonsToRemove: ["select2d", "lasso2d", "zoomIn2d", "zoomOut2d", "autoScale2d"] };
  const paper = { width: 680, height: 250 };
  const plots = Object.entries(drawings).map(([id, drawing]) => {
    const place = document.getElementById(id);
    place.textContent = "";
    const screen = { width: null, height: drawing.layout.height, autosize: true }; // plotly changes the layout it is given
    return { place, screen, drawn: Plotly.newPlot(place, drawing.data, drawing.layout, config) };
  });
  Promise.all(plots.map(({ drawn }) => drawn)).then(() => { document.documentElement.dataset.drawn = "yes"; });

  // A legend that needs fewer rows than before has its place only when drawn once more.
  const settle = () => { plots.forEach(({ place }) => Plotly.redraw(place)); };
  let resized;
  window.addEventListener("resize", () => { clearTimeout(resized); resized = setTimeout(settle, 300); });

  let closed = [];
  window.addEventListener("beforeprint", () => {
    closed = [...document.querySelectorAll("details:not([open], .extra)")];
    closed.forEach((one) => { one.open = true; });
    plots.forEach(({ place }) => Plotly.relayout(place, paper));
    settle();
  });
  window.addEventListener("afterprint", () => {
    closed.forEach((one) => { one.open = false; });
    plots.forEach(({ place, screen }) => Plotly.relayout(place, screen));
    settle();
  });
})();
