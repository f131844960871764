// Results of several devices and sizes.

function addComparison() {
  const { comparison } = data;
  if (!comparison && data.searches.length < 2) return;
  const grid = section("devices", "Across GPUs");
  addSweep(grid);
  if (!comparison) {
    grid.append(panel(el("p", { text: data.notCompared })));
    return;
  }
  const { devices, portable } = comparison;
  const names = devices.map((one) => one.device);
  const matrix = names.map((from) => names.map((on) => comparison.matrix[from][on]));
  const bars = devices.map((one) => ({ label: one.device, value: one.time_ms, text: `${number(one.time_ms)} ms`, tip: `${one.device}\n${assignments(one.config)}` }));
  const head = el("tr", {}, el("th", { scope: "col", text: "tuned on, run on:" }), ...names.map((name) => el("th", { scope: "col", text: name })));
  const body = matrix.map((row, at) => el("tr", {}, el("th", { scope: "row", text: names[at] }), ...row.map((share) => {
    const cell = el("td", { class: "cell", text: share === null ? "–" : number(1 / share, 3) });
    if (share !== null) cell.dataset.share = share;
    return cell;
  })));
  grid.append(el("div", { class: "panel", id: "matrix" }, el("h3", { text: `Slowdown on another device: ${costOf(names, matrix)}` }),
    el("div", { class: "scroll", tabindex: "0", role: "group", "aria-label": "Slowdown matrix" }, el("table", {}, el("thead", {}, head), el("tbody", {}, ...body))),
    el("p", { class: "soft", text: `The time of one device's best configuration on another, relative to the other's own best. – means not measured. ${data.notCompared}` }),
    el("p", { text: `One configuration for all takes at most ${number(portable.worst, 3)} times as long as the best of each.` }),
    el("p", {}, bdi(assignments(portable.config)))));
  addChart(grid, {
    id: "device-times", title: "Best time on each device", height: (width) => barHeight(bars, width),
    draw: (context, width, height, colours) => drawBars(context, width, height, colours, bars, { unit: "time (ms)" }),
    caption: () => comparison.problem, rows: () => [["device", "ms", "configuration"], devices.map((one) => [one.device, one.time_ms, assignments(one.config)])],
  });
  const rows = Object.entries(comparison.flips).map(([parameter, values]) => [parameter, ...names.map((name) => shown(values[name] ?? "–"))]);
  const agreed = assignments(comparison.agreed);
  grid.append(panel(el("h3", { text: "Parameters whose best value differs" }),
    rows.length ? tableOf(["parameter", ...names], rows) : el("p", { text: "None." }),
    el("p", { class: "soft", text: agreed ? `The same everywhere: ${agreed}` : "" }),
    el("p", { text: `${comparison.portfolio.length} configuration${comparison.portfolio.length > 1 ? "s serve" : " serves"} every device within 5% of its best:` }),
    tableOf(["configuration", "for"], comparison.portfolio.map((one) => [assignments(one.config), one.devices.join(", ")]))));
}

/** What the best of one device costs on another: of two devices both ways, of more the worst and the best case. */
function costOf(names, matrix) {
  const costs = matrix.flatMap((row, from) => row.map((share, on) => ({ from, on, share }))).filter(({ from, on, share }) => from !== on && share > 0)
    .sort((a, b) => a.share - b.share);
  if (!costs.length) return "not measured";
  const name = (at) => short(names[at].replace(/ \(imported\)$/, ""), 40);
  const said = ({ from, on, share }) => `the best of ${name(from)} takes ${number(1 / share, 3)} times as long on ${name(on)} as the best of ${name(on)}`;
  const [worst, best] = [costs[0], costs[costs.length - 1]];
  if (costs.length === 1) return said(worst);
  return `${said(worst)}; ${names.length === 2 ? `the reverse ${number(1 / best.share, 3)} times` : `in the best case, ${said(best)}`}`;
}

/** Time and rate over size, where one device has results for several sizes of one kernel and element type. */
function addSweep(grid) {
  const groups = new Map();
  const ceilings = new Map();
  data.searches.forEach((search) => {
    if (search.best === null) return;
    const volume = Object.values(search.sizes).reduce((product, size) => product * size, 1);
    const [time, bytes] = [search.columns.time_ms[search.best], (search.columns.bytes || [])[search.best]];
    const key = `${search.kernel}${search.dtype ? ` of ${search.dtype}` : ""} on ${search.device}`;
    groups.set(key, [...(groups.get(key) || []), { volume, time, rate: bytes ? bytes / time * 1e-6 : null, problem: search.problem }]);
    if (bytes && search.bandwidth) ceilings.set(search.device, search.bandwidth.gb_per_s);
  });
  const names = new Set(data.searches.flatMap((search) => Object.keys(search.sizes)));
  const size = names.size === 1 ? [...names][0] : "product of the sizes";
  const lines = (value) => [...groups].map(([name, points]) => [name, points.filter((point) => point[value]).sort((a, b) => a.volume - b.volume)])
    .filter(([, points]) => new Set(points.map((point) => point.volume)).size > 1);
  if (!lines("time").length) return;
  addOverSize(grid, { id: "sweep", title: "Best time over size", unit: "ms", value: "time", lines: lines("time"), ceilings: [], size });
  if (!lines("rate").length) return;
  addOverSize(grid, { id: "sweep-rate", title: "Best rate over size", unit: "GB/s", value: "rate", lines: lines("rate"), ceilings: [...ceilings], size });
}

/** A line for each kernel and device, and a level line for each ceiling; both axes are logarithmic. */
function addOverSize(grid, { id, title, unit, value, lines, ceilings, size }) {
  const all = lines.flatMap(([, points]) => points);
  const volumes = all.map((one) => one.volume);
  const values = [...all.map((one) => one[value]), ...ceilings.map(([, height]) => height)];
  addChart(grid, {
    id, title, height: 320,
    draw: (context, width, height, colours) => {
      const box = { left: 58, right: width - 14, top: 28, bottom: height - 40 };
      const sx = numberScale(Math.min(...volumes) / 1.2, Math.max(...volumes) * 1.2, box.left, box.right, true);
      const sy = numberScale(Math.min(...values) / 1.2, Math.max(...values) * 1.2, box.bottom, box.top, true);
      frame(context, colours, box, sx, sy, size, `${unit}, logarithmic`);
      const marks = [];
      context.strokeStyle = colours.soft;
      context.lineWidth = 1.5;
      for (const [device, ceiling] of ceilings) {
        const y = sy.at(ceiling);
        line(context, box.left, y, box.right, y);
        marks.push({ x: box.right - 8, y, tip: `memory of ${device}: ${perSecond(ceiling, "B/s")}` });
      }
      lines.forEach(([name, points], at) => {
        context.strokeStyle = context.fillStyle = colours.category[at % colours.category.length];
        context.lineWidth = 2;
        context.beginPath();
        points.forEach((point, place) => context[place ? "lineTo" : "moveTo"](sx.at(point.volume), sy.at(point[value])));
        context.stroke();
        for (const point of points) {
          const [x, y] = [sx.at(point.volume), sy.at(point[value])];
          context.fillRect(x - 4, y - 4, 8, 8);
          marks.push({ x, y, tip: `${name}\n${point.problem}: ${number(point[value])} ${unit}` });
        }
      });
      return boxes(marks);
    },
    caption: () => [...lines.map(([name]) => name), ...ceilings.map(([device, ceiling]) => `memory of ${device}: ${perSecond(ceiling, "B/s")}`)].join("; "),
    rows: () => [["kernel and device", "problem", unit], lines.flatMap(([name, points]) => points.map((point) => [name, point.problem, point[value]]))],
  });
}

function colourMatrix() {
  for (const cell of document.querySelectorAll("td[data-share]")) {
    const colour = shade(1 - Number(cell.dataset.share));
    cell.style.background = colour;
    cell.style.color = inkOn(colour);
  }
}
