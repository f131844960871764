// Two searches side by side: their progress, results, best configurations and what matters in each.

const nameOf = (search) => [search.kernel, search.device, search.problem || search.source].join(", ");

/** The best time after each trial; Infinity before the first that succeeded. */
function bestSoFar(search) {
  let least = Infinity;
  return search.confirmed.map((time) => (least = time < least ? time : least));
}

/** All times in the search, the fastest first. */
const sortedTimes = (search) => [...search.once.filter((time) => time > 0).sort()];

function addBeside() {
  if (data.searches.length < 2) return;
  const grid = section("beside", "Two searches side by side");
  const prepared = new Map();
  const searchAt = (at) => {
    if (!prepared.has(at)) prepared.set(at, prepare(data.searches[at]));
    return prepared.get(at);
  };
  const options = data.searches.map((one, at) => [String(at), nameOf(one)]);
  const holder = el("div", { class: "scroll tall", tabindex: "0", role: "group", "aria-label": "Two searches side by side" });
  const chosen = () => ["beside-a", "beside-b"].map((id) => searchAt(Number($(id).value)));
  const pick = (id, value) => {
    const select = el("select", { id, "aria-label": id === "beside-a" ? "First search" : "Second search", onchange: () => { fill(); refresh(chart); } },
      ...options.map(([key, said]) => el("option", { value: key, text: short(said, 70) })));
    select.value = value;
    return select;
  };
  const fill = () => holder.replaceChildren(besideTable(...chosen()));
  grid.append(panel(el("div", { class: "bar" }, pick("beside-a", String(place)), pick("beside-b", String((place + 1) % options.length)))));
  const chart = addChart(grid, {
    id: "beside-chart", title: "Best so far, and all times in order", isWide: true, height: 320,
    choices: [
      { name: "show", label: "show", options: [["progress", "best so far"], ["sorted", "all times, sorted"]], value: data.searches.every((one) => one.hasOrder) ? "progress" : "sorted" },
      { name: "unit", label: "in", options: [["ms", "ms"], ["share", "times its own best"]], value: "ms" },
    ],
    draw: (context, width, height, colours, { show, unit }) => drawBeside(context, width, height, colours, chosen(), show, unit),
    caption: ({ show }) => show === "progress"
      ? "The line falls where a trial was faster than all earlier ones. Results of the cache have no order, so no line."
      : "The times of all trials of a search, from the fastest to the slowest: the further right a line stays low, the more trials were fast.",
    rows: () => [["search", "best (ms)", "median (ms)", "trials", "failed"], chosen().map((one) =>
      [nameOf(one), one.bestTime, quantile(sortedTimes(one), 0.5), one.count, one.failed.length])],
  });
  grid.append(panel(holder));
  fill();
}

function drawBeside(context, width, height, colours, searches, show, unit) {
  const box = { left: 58, right: width - 14, top: 46, bottom: height - 40 };
  const lines = searches.map((search) => {
    const times = sortedTimes(search);
    const scale = unit === "ms" ? 1 : show === "sorted" ? times[0] : search.bestTime;
    if (show === "sorted") return times.map((time, rank) => [(100 * (rank + 1)) / times.length, time / scale]);
    if (!search.hasOrder) return [];
    return [...bestSoFar(search)].map((best, row) => [row + 1, best / scale]).filter(([, best]) => best < Infinity);
  });
  const all = lines.flat();
  if (!all.length) return boxes([]);
  const [xs, ys] = [extent(all.map(([x]) => x), false), extent(all.map(([, y]) => y), true)];
  const sx = numberScale(xs[0], xs[1], box.left, box.right, false, width / 90);
  const sy = numberScale(ys[0] / 1.05, ys[1] * 1.05, box.bottom, box.top, true, 5);
  frame(context, colours, box, sx, sy, show === "sorted" ? "% of the trials that succeeded" : "evaluation", unit === "ms" ? "time (ms), logarithmic" : "times its own best, logarithmic");
  const marks = [];
  lines.forEach((points, at) => {
    const colour = colours.category[at];
    context.strokeStyle = context.fillStyle = colour;
    context.lineWidth = 2;
    context.setLineDash(at ? [6, 4] : []);
    context.beginPath();
    points.forEach(([x, y], place) => {
      if (place && show === "progress") context.lineTo(sx.at(x), sy.at(points[place - 1][1]));
      context[place ? "lineTo" : "moveTo"](sx.at(x), sy.at(y));
    });
    context.stroke();
    context.setLineDash([]);
    const said = fit(context, plain(`${at ? "– –" : "––"} ${nameOf(searches[at])}`), (box.right - box.left) / 2 - 10);
    context.fillText(said, box.left + (at * (box.right - box.left)) / 2, 12);
    points.forEach(([x, y], place) => {
      if (show === "progress" && place && points[place - 1][1] === y) return;
      marks.push({ x: sx.at(x), y: sy.at(y), tip: `${nameOf(searches[at])}\n${show === "sorted" ? "" : `evaluation ${x}: `}${number(y)}${unit === "ms" ? " ms" : " times its best"}` });
    });
  });
  return boxes(marks);
}

/** Results, the values of the best, of which those that differ are marked, and shares of the variance. */
function besideTable(one, other) {
  const both = [one, other];
  const row = (title, cells, marked) => el("tr", { class: marked && cells[0] !== cells[1] ? "differs" : undefined },
    el("th", { scope: "row" }, bdi(title)), ...cells.map((text) => el("td", { text: short(text, 120) })));
  const group = (title) => el("tr", {}, el("th", { scope: "rowgroup", colspan: "3", class: "group", text: title }));
  const facts = both.map((search) => new Map(search.headline.map((item) => [item.title, `${item.value} (${item.note})`])));
  const valuesOf = (search) => new Map(search.parameters.map((axis) => [axis.title, search.best === null || axis.data[search.best] < 0 ? "–" : axis.values[axis.data[search.best]]]));
  const shares = both.map((search) => new Map((search.importance.single || []).map(([name, share]) => [name, percent(share)])));
  const rowsOf = (maps, marked) => [...new Set(maps.flatMap((map) => [...map.keys()]))].map((title) => row(title, maps.map((map) => map.get(title) ?? "–"), marked));
  const matters = rowsOf(shares);
  return el("table", { id: "beside-table" },
    el("thead", {}, el("tr", {}, el("td"), ...both.map((search) => el("th", { scope: "col" }, bdi(short(nameOf(search), 90)))))),
    el("tbody", {}, group("Result"), ...rowsOf(facts), group("Best configuration"), ...rowsOf(both.map(valuesOf), true),
      ...(matters.length ? [group("Share of the variance of log time"), ...matters] : [])));
}
