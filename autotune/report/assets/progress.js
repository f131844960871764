// Progress: every trial, where the time went, how trials failed.

function addProgress() {
  if (!view.hasOrder) return;
  const grid = section("progress", "Progress");
  const time = view.axis("time_ms");
  const overs = ["order", "elapsed"].filter((id) => view.axis(id)).map((id) => [id, view.axis(id).title]);
  const kinds = view.status.values.map((value, place) => [value, place]).filter(([value]) => value !== "ok");
  const best = bestSoFar(view);
  if (time) addChart(grid, {
    id: "progress-chart", title: "Every trial and the best so far", isWide: true, height: () => 320 + 16 * kinds.length,
    choices: overs.length > 1 ? [{ name: "over", label: "over", options: overs, value: "order" }] : [],
    draw: (context, width, height, colours, chosen) => {
      const xAxis = view.axis(chosen.over || "order");
      const strip = 16 * kinds.length;
      const box = { left: 58, right: width - 14, top: 28, bottom: height - 40 - strip };
      const sx = scaleOf(xAxis, box.left, box.right, width / 90);
      const ends = [view.columns.low_ms, view.columns.high_ms].flatMap((column) => (column || []).filter((end) => end !== null));
      const sy = scaleOf({ ...time, data: [...time.data, ...ends] }, box.bottom, box.top, 5);
      frame(context, colours, { ...box, bottom: box.bottom + strip }, sx, sy, xAxis.title, `${time.title}, logarithmic`);
      const [px, py] = [placesOf(xAxis, sx), placesOf(time, sy)];
      const rowOf = new Map(kinds.map(([, place], at) => [place, box.bottom + 10 + 16 * at]));
      for (let row = 0; row < view.count; row++) if (Number.isNaN(py[row])) py[row] = rowOf.get(view.columns.status[row]) ?? NaN;
      drawPoints(context, px, py, (row) => view.bins[row], colours.bins, colours);
      context.fillStyle = colours.fail;
      for (const [value, place] of kinds) {
        context.textAlign = "right";
        const said = fit(context, words(value), 120);
        context.save();
        context.fillStyle = colours.card;
        context.globalAlpha = 0.85;
        context.fillRect(box.right - context.measureText(said).width - 4, rowOf.get(place) - 8, context.measureText(said).width + 6, 16);
        context.restore();
        context.fillText(said, box.right, rowOf.get(place));
        context.textAlign = "left";
      }
      context.strokeStyle = colours.strong;
      context.lineWidth = 2;
      context.beginPath();
      for (let row = 0, above = NaN; row < view.count; row++) {
        if (best[row] === Infinity || (best[row] === above && row < view.count - 1)) continue;
        const y = sy.at(best[row]);
        if (Number.isNaN(above)) context.moveTo(px[row], y);
        else {
          context.lineTo(px[row], sy.at(above));
          context.lineTo(px[row], y);
        }
        above = best[row];
      }
      context.stroke();
      drawIntervals(context, colours, px, sy);
      return pointMarks(px, py, brushed([xAxis, time], [sx, sy]));
    },
    caption: () => {
      const steps = view.timed.filter((row) => view.time[row] === best[row] && (row === 0 || best[row] < best[row - 1]));
      const last = Math.max(0, ...steps);
      return `The line is the best so far: ${whole(steps.length)} improvements, the last at evaluation ${whole(last + 1)} of ${whole(view.count)}${view.best === null ? "" : `; best: ${timeText(view.best)}${view.hasLastRound ? " in the last round" : ""}`}.${pointsText()}${belowBest()} Drag to select a range.`;
    },
    rows: () => {
      const rows = [];
      for (let row = 0; row < view.count; row++)
        if (best[row] < Infinity && (row === 0 || best[row] < best[row - 1])) rows.push([row + 1, best[row], configText(row)]);
      return [["evaluation", "best so far (ms)", "configuration"], rows];
    },
  });
  addLastRound(grid);
  addCosts(grid);
  addTimeline(grid);
}

const NEAR_BEST = 1.1; // times the best: what is slower would leave several finalists no room

/** The finalists and the default with their intervals; what is far slower stands at the edge with its figure. */
function addLastRound(grid) {
  const finals = view.timed.filter((row) => view.columns.final[row]);
  if (finals.length < 2) return;
  const { rounds } = view.columns;
  const most = Math.max(...finals.map((row) => rounds[row]));
  const isWhole = (row) => rounds[row] === most;
  const marks = (row) => [row === view.best && "best", view.isTie(row) && "tie", row === view.default && "default",
    !isWhole(row) && `left after ${rounds[row]} rounds`].filter(Boolean);
  const name = (row) => [`trial ${row + 1}`, ...marks(row)].join(", ");
  const figures = (row) => `${timeText(row).replace(/, tie$/, "")}${reachText(row) && `; ${reachText(row)} x`}`; // its name says what ties
  const span = (row) => [view.time[row], ...(intervalOf(row) || [])];
  const close = finals.filter((row) => finals.length === 2 || view.isTie(row) || view.time[row] <= NEAR_BEST * view.bestTime);
  const farthest = Math.max(...close.flatMap(span)); // where times are unsteady, slower finalists stand among these
  const isNear = (row) => view.time[row] <= farthest;
  const ends = extent(finals.filter(isNear).flatMap(span), false);
  const bars = finals.map((row) => ({ label: name(row), isPoint: true, isStrong: row === view.best || view.isTie(row), tip: trialTip(row), act: () => openTrial(row),
    ...(isNear(row) ? { value: view.time[row], error: intervalOf(row), text: figures(row) } : { value: NaN, text: `off the axis: ${figures(row)}` }) }));
  addChart(grid, {
    id: "finalists", title: "The last round", isWide: true, height: (width) => barHeight(bars, width),
    draw: (context, width, height, colours) => drawBars(context, width, height, colours, bars, { unit: "time (ms), not from 0", ends }),
    caption: () => `Each round timed them one after the other. Lines are 95% intervals of the medians. x: the interval of its time over the best's, by rounds; ${view.ties.length ? "a tie cannot be told from the best" : "none of the others can be the best"}.${finals.every(isWhole) ? "" : ` A finalist that left early was slower than another in every round; fewer than ${view.fewestRounds} rounds give the range of all, not 95%.`}`,
    rows: () => [["trial", "time (ms)", "from (ms)", "to (ms)", "times the best", "in the search (ms)", "configuration"],
      finals.map((row) => [name(row), view.time[row], ...(intervalOf(row) || [NaN, NaN]), reachText(row) || NaN, view.once[row], configText(row)])],
  });
}

/** The intervals of the last round, upright through their points. */
function drawIntervals(context, colours, px, sy) {
  context.strokeStyle = colours.ink;
  context.lineWidth = 1;
  for (let row = 0; row < view.count; row++) {
    const ends = view.selected[row] && intervalOf(row);
    if (ends) drawInterval(context, ends.map((end) => [px[row], sy.at(end)]));
  }
}

const BRIEF = 0.01; // of all time: stages that are summed

/** The stages of the latest search, one after the other; without them, the costs of the selected trials. */
function addCosts(grid) {
  const { cost_s: cost, compile_ms: compile, status } = view.columns;
  const isWhole = view.stages.length > 0;
  if (!isWhole && !cost && !compile) return;
  const brief = (all) => all.filter(([, value]) => value < BRIEF * sumOf(all));
  const grouped = (all) => brief(all).length < 2 ? all
    : [...all.filter((part) => !brief(all).includes(part)), [`${brief(all).length} shorter ones`, sumOf(brief(all))]];
  const sums = () => {
    const parts = new Map([["compiling", 0]]);
    for (let row = 0; row < view.count; row++) {
      if (!view.selected[row]) continue;
      const compiled = compile ? (compile[row] || 0) / 1e3 : 0;
      const name = view.statuses[status[row]] === "ok" ? (view.isImported ? "timing" : "verifying and timing") : `failed: ${words(view.statuses[status[row]])}`;
      parts.set("compiling", parts.get("compiling") + compiled);
      parts.set(name, (parts.get(name) || 0) + Math.max(0, ((cost && cost[row]) || 0) - compiled));
    }
    return [...parts].filter(([, sum]) => sum > 0);
  };
  const parts = () => (isWhole ? view.stages : sums());
  const sumOf = (all) => all.reduce((sum, [, seconds]) => sum + seconds, 0);
  const bars = () => {
    const all = parts();
    return grouped(all).map(([label, value]) => ({ label, value, text: `${number(value, 3)} s, ${percent(value / (sumOf(all) || 1))}`, isStrong: label.startsWith("failed") }));
  };
  addChart(grid, {
    id: isWhole ? "stages" : "costs", title: "Where the time went", isWide: true, height: (width) => barHeight(bars(), width),
    draw: (context, width, height, colours) => drawBars(context, width, height, colours, bars(), { unit: isWhole ? "seconds" : "seconds, summed over trials" }),
    caption: () => isWhole ? `The search took ${number(sumOf(view.stages), 3)} s from its first configuration to the stored result. Checks run in parallel: each counts only while the search waited for nothing else. --timeline FILE shows every step of every process.`
      : view.isImported ? "Summed over trials, as the file records them."
      : "Compilers work ahead of the device and in parallel, so the sum exceeds the elapsed time.",
    rows: () => [[isWhole ? "stage" : "part", "seconds"], parts()],
  });
}

const KINDS = new Set(["CompilationFailedConfig", "RuntimeFailedConfig", "InvalidConfig"]); // no message, but Kernel Tuner's word for the kind
const CLEAR = 1.5; // times the rate overall, from which on failures belong to a value
const PAIR_GAIN = 1.25; // from which on two values say more than one

/** The value or pair of values that holds at least half of some failures at a clearly higher rate; else nothing. */
function mostFail(failing) {
  const rate = failing.length / view.count;
  let [said, most] = ["", 0];
  const look = (axes, gain) => {
    const size = axes.reduce((product, axis) => product * axis.values.length, 1);
    if (size > 1e5) return;
    const [all, bad] = [new Int32Array(size), new Int32Array(size)];
    const place = (row) => axes.reduce((sum, axis) => (sum < 0 || axis.data[row] < 0 ? -1 : sum * axis.values.length + axis.data[row]), 0);
    for (let row = 0; row < view.count; row++) if (place(row) >= 0) all[place(row)]++;
    for (const row of failing) if (place(row) >= 0) bad[place(row)]++;
    bad.forEach((count, cell) => {
      const often = count / all[cell];
      const score = (often - rate) * count;
      if (2 * count < failing.length || often < CLEAR * rate || score <= gain * most) return;
      most = score;
      const values = axes.length > 1 ? [Math.floor(cell / axes[1].values.length), cell % axes[1].values.length] : [cell];
      const names = axes.map((axis, at) => `${short(axis.title, 40)}=${middle(axis.values[values[at]])}`).join(" with ");
      said = `${names}: ${whole(count)} of the ${whole(failing.length)}, ${percent(often)} of its trials against ${percent(rate)} overall`;
    });
  };
  for (const axis of view.varying) look([axis], 1);
  const single = most;
  view.varying.forEach((one, at) => view.varying.slice(at + 1).forEach((other) => look([one, other], most > single ? 1 : PAIR_GAIN)));
  return said;
}

/** How trials failed: how many, with which values most, and why. */
function addFailures() {
  const grid = section("failures", "Failures");
  if (!view.hasOrder) {
    grid.append(panel(el("p", { text: "The cache keeps only the fastest configurations. A journal has the failures: name a file of runs/." })));
    return;
  }
  const kinds = view.status.values.map((value, place) => [value, place]).filter(([value]) => value !== "ok");
  if (!kinds.length) {
    grid.append(panel(el("p", { text: "No trial failed." })));
    return;
  }
  const rows = kinds.map(([value, place]) => {
    const failing = [...view.columns.status.keys()].filter((row) => view.columns.status[row] === place);
    const details = new Map();
    for (const row of failing) {
      const first = view.details[view.columns.detail[row]].split("\n")[0];
      if (!first || KINDS.has(first)) continue;
      details.set(first, (details.get(first) || 0) + 1);
    }
    const [common] = [...details].sort((a, b) => b[1] - a[1]);
    return { value, place, count: failing.length, said: mostFail(failing), detail: common ? common[0] : "the file records no message" };
  });
  const body = rows.map((row) => el("tr", {},
    el("td", {}, el("button", { type: "button", text: words(row.value), title: "Show only these", onclick: () => { allow(view.status, [row.place]); applyFilters(); } })),
    el("td", { class: "number", text: whole(row.count) }), el("td", { text: short(row.said, 160) }), el("td", { text: short(row.detail, 200) })));
  const head = el("tr", {}, ...["how", "trials", "most often with", "most frequent reason"].map((title) => el("th", { scope: "col", text: title })));
  const said = rows.slice().sort((a, b) => b.count - a.count).map((row) => `${whole(row.count)} ${words(row.value)}`).join(", ");
  grid.append(panel(el("h3", { text: `${whole(view.failed.length)} of ${whole(view.count)} trials failed (${percent(view.failed.length / view.count)}): ${said}` }),
    el("div", { class: "scroll", tabindex: "0", role: "group", "aria-label": "Failures" }, el("table", {}, el("thead", {}, head), el("tbody", {}, ...body)))));
}
