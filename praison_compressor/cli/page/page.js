"use strict";
(() => {
  const place = document.getElementById("chart");
  if (!place) return;
  const data = JSON.parse(document.getElementById("data").textContent);
  const colour = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
  const steps = data.messages.map((_, index) => index + 1);

  // A compression is a line through the whole height: where the context was cut down.
  const marks = (chart) => {
    const pen = chart.ctx;
    pen.save();
    pen.strokeStyle = colour("--hit");
    pen.setLineDash([4, 4]);
    pen.globalAlpha = data.compressed.length > 12 ? 0.45 : 0.9;
    for (const index of data.compressed) {
      const x = Math.round(chart.valToPos(steps[index], "x", true));
      pen.beginPath();
      pen.moveTo(x, chart.bbox.top);
      pen.lineTo(x, chart.bbox.top + chart.bbox.height);
      pen.stroke();
    }
    pen.restore();
  };

  const tokens = (value) => (value == null ? "" : value.toLocaleString("en"));
  // Without a pointer the legend shows the last values, not empty colons.
  const last = (column) => (_, value) => tokens(value == null ? column[column.length - 1] : value);
  const axis = (label) => ({ label, stroke: () => colour("--soft"), grid: { stroke: () => colour("--line"), width: 1 }, ticks: { stroke: () => colour("--line"), width: 1 } });
  const chart = new uPlot(
    {
      width: place.clientWidth - 20,
      height: 320,
      scales: { x: { time: false }, y: { range: (_, low, high) => [0, Math.max(1, high * 1.05)] } },
      axes: [{ ...axis("request"), incrs: [1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 5000] }, { ...axis("tokens"), size: 80, values: (_, list) => list.map(tokens) }],
      series: [
        { label: "request", value: last(steps) },
        { label: "whole transcript", stroke: () => colour("--whole"), width: 2, dash: [6, 4], value: last(data.whole) },
        { label: "what was sent", stroke: () => colour("--view"), width: 2, value: last(data.view) },
      ],
      hooks: { draw: [marks] },
    },
    [steps, data.whole, data.view],
    place,
  );
  addEventListener("resize", () => chart.setSize({ width: place.clientWidth - 20, height: 320 }));
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => chart.redraw());
})();
