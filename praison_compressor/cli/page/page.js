"use strict";
(() => {
  const places = ["whole", "sent"].map((id) => document.getElementById(id));
  if (!places[0]) return;
  const data = JSON.parse(document.getElementById("data").textContent);
  const colour = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
  const requests = data.requests;
  const tokens = (value) => (value == null ? "" : value.toLocaleString("en"));
  const short = (value) => (value >= 1e6 ? `${value / 1e6}M` : value >= 1e3 ? `${value / 1e3}k` : `${value}`);

  // A compression is a mark on the axis: a line through the panel would hide what was sent.
  const marks = (chart) => {
    const pen = chart.ctx, size = 5 * devicePixelRatio, ground = chart.bbox.top + chart.bbox.height;
    pen.save();
    pen.fillStyle = colour("--hit");
    for (const index of data.compressed) {
      const x = chart.valToPos(requests[index], "x", true);
      pen.beginPath();
      pen.moveTo(x, ground - 2 * size);
      pen.lineTo(x - size, ground);
      pen.lineTo(x + size, ground);
      pen.fill();
    }
    pen.restore();
  };

  // Window and trigger: a line with its name at the left end.
  const limits = (chart) => {
    const pen = chart.ctx, { left, width } = chart.bbox;
    pen.save();
    pen.font = `${12 * devicePixelRatio}px system-ui, sans-serif`;
    pen.textAlign = "left";
    pen.textBaseline = "bottom";
    pen.setLineDash([6, 4]);
    for (const [name, value] of Object.entries(data.limits)) {
      const y = Math.round(chart.valToPos(value, "y", true));
      pen.strokeStyle = pen.fillStyle = colour(name === "window" ? "--hit" : "--soft");
      pen.beginPath();
      pen.moveTo(left, y);
      pen.lineTo(left + width, y);
      pen.stroke();
      pen.fillText(`${name} ${tokens(value)}`, left + 6 * devicePixelRatio, y - 2 * devicePixelRatio);
    }
    pen.restore();
  };

  const line = () => ({ stroke: () => colour("--line"), width: 1 });
  const axis = (more) => ({ stroke: () => colour("--soft"), grid: line(), ticks: line(), ...more });
  const requestAxis = axis({ label: "request", labelSize: 22, incrs: [1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 5000] });
  const series = (label, name, values, more) => ({
    // Without a pointer the legend shows the last value.
    label, stroke: () => colour(name), width: 2, points: { fill: () => colour("--panel") }, value: (_, value) => tokens(value ?? values.at(-1)), ...more,
  });
  const panel = (place, height, most, shown, hooks) => new uPlot(
    {
      width: place.clientWidth,
      height,
      cursor: { sync: { key: "life" } },
      scales: { x: { time: false }, y: { range: (_, low, high) => [0, Math.max(1, most, high) * 1.1] } },
      axes: [requestAxis, axis({ size: 56, values: (_, list) => list.map(short) })],
      series: [{ label: "request", value: (_, value) => tokens(value ?? requests.at(-1)) }, ...shown.map(([line]) => line)],
      hooks: { draw: hooks },
    },
    [requests, ...shown.map(([, values]) => values)],
    place,
  );
  const whole = [series("whole transcript", "--whole", data.whole, { fill: () => colour("--wash") }), data.whole];
  const sent = [series("sent", "--view", data.view), data.view];
  const charts = [
    panel(places[0], 220, 0, [whole, sent], []),
    panel(places[1], 260, Math.max(0, ...Object.values(data.limits)), [sent], [limits, marks]),
  ];
  addEventListener("resize", () => charts.forEach((chart, n) => chart.setSize({ width: places[n].clientWidth, height: chart.height })));
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => charts.forEach((chart) => chart.redraw()));
})();
