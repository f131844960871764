// Resources, the roofline and the ladder.

function addResources() {
  const known = ["occupancy", "registers", "spill_bytes", "shared_bytes"].filter((id) => view.axis(id));
  const time = view.axis("time_ms");
  const hasRate = time && (view.columns.bytes || view.columns.flops) && hasCeiling();
  if (!time || (!known.length && !hasRate)) return;
  const grid = section("resources", "Resources and rates");
  if (known.length) addChart(grid, {
    id: "resources-chart", title: "What the binary uses, and the time", height: 340,
    choices: [{ name: "x", label: "x", options: known.map((id) => [id, view.axis(id).title]), value: known[0] }],
    draw: (context, width, height, colours, { x }) => drawScatter(context, width, height, colours, view.axis(x), time, view.limit),
    caption: () => (view.limit ? "Colour: what limits the blocks on a multiprocessor." : "Colour: the time. The occupancy is not known: the launch or the architecture is not.") + pointsText(),
    rows: ({ x }) => pointRows(view.axis(x), time),
  });
  if (hasRate) addRoofline(grid, time);
}

/** Whether there is a roof: without one, rates say no more than times. */
const hasCeiling = () => (view.columns.bytes && view.bandwidth) || (view.columns.flops && view.ceilings.length);

/** Rate over intensity under the ceilings of memory and arithmetic; without operations, the rate of the memory alone. */
function addRoofline(grid, time) {
  const { bytes, flops } = view.columns;
  const isRoof = Boolean(flops && bytes);
  const rate = Float64Array.from({ length: view.count }, (_, row) => ((flops || bytes)[row] / view.time[row]) * 1e-6);
  const yAxis = { id: "rate", title: flops ? "GFLOP/s" : "GB/s", isLog: true, data: rate };
  const xAxis = isRoof
    ? { id: "intensity", title: "operations per byte", isLog: true, data: Float64Array.from({ length: view.count }, (_, row) => flops[row] / bytes[row]) }
    : view.axis("order");
  const memory = bytes && view.bandwidth ? view.bandwidth.gb_per_s : null;
  const memoryText = memory && `memory${view.bandwidth.measured ? ", measured" : ""}: ${perSecond(memory, "B/s")}`;
  const ceilings = flops ? view.ceilings : [];
  const peak = ceilings.length ? ceilings[0][1] : Infinity;
  addChart(grid, {
    id: "roofline", title: isRoof ? "Roofline" : `Rate in ${yAxis.title}`, height: 360,
    draw: (context, width, height, colours) => {
      const box = { left: 62, right: width - 14, top: 38, bottom: height - 40 };
      let [low, high] = extent(xAxis.data, xAxis.isLog);
      const ridge = memory && peak < Infinity ? peak / memory : NaN;
      if (isRoof) [low, high] = [Math.min(low / 8, ridge / 8 || Infinity), Math.max(high * 8, 3 * ridge || 0)];
      const sx = numberScale(low, high, box.left, box.right, isRoof, width / 90);
      const [least, most] = extent(rate, true);
      const top = isRoof ? Math.min(peak, memory ? memory * high : most) : memory || most;
      const sy = numberScale(Math.min(least, isRoof && memory ? memory * low : least) / 1.2, Math.max(most, top) * 2, box.bottom, box.top, true);
      frame(context, colours, box, sx, sy, xAxis.title, `${yAxis.title}, logarithmic`);
      context.strokeStyle = context.fillStyle = colours.ink;
      context.lineWidth = 2;
      const ceiling = (said, from, to, at, above = -9) => {
        const [x0, y0, x1, y1] = [sx.at(from), sy.at(at(from)), sx.at(to), sy.at(at(to))];
        line(context, x0, y0, x1, y1);
        context.save();
        context.translate(y0 === y1 ? x1 : x0 + (x1 - x0) * 0.05, y0 === y1 ? y1 : y0 + (y1 - y0) * 0.05);
        context.rotate(Math.atan2(y1 - y0, x1 - x0));
        context.textAlign = y0 === y1 ? "right" : "left";
        context.fillText(said, 0, above);
        context.restore();
      };
      if (memory && isRoof) ceiling(memoryText, low, Math.min(high, peak / memory), (x) => memory * x);
      else if (memory) ceiling(memoryText, low, high, () => memory);
      (isRoof ? ceilings : []).forEach(([name, gflops], at) =>
        ceiling(`${name}: ${perSecond(gflops, "FLOP/s")}`, memory ? Math.min(high, gflops / memory) : low, high, () => gflops, at ? 10 : -9));
      const [px, py] = [placesOf(xAxis, sx), placesOf(yAxis, sy)];
      drawPoints(context, px, py, (row) => view.bins[row], colours.bins, colours);
      const back = (y) => ((flops || bytes)[view.best ?? 0] / sy.invert(y)) * 1e-6;
      return pointMarks(px, py, (x0, y0, x1, y1) => { restrict(time, back(y0), back(y1)); applyFilters(); });
    },
    caption: () => {
      const said = [];
      if (view.best !== null && memory) said.push(`The best reaches ${percent(bytes[view.best] / view.bestTime * 1e-6 / memory)} of the memory's ${view.bandwidth.measured ? "measured " : ""}bandwidth.`);
      if (view.best !== null && ceilings.length) said.push(`The best does ${number((100 * rate[view.best]) / peak, 2)}% of the operations that ${ceilings[0][0]} without tensor cores could (${ceilings[0][2]}).`);
      if (!memory) said.push("The device's bandwidth is not known here.");
      if (flops && !ceilings.length) said.push("The arithmetic ceilings of this device or type are not known.");
      return said.join(" ") + pointsText();
    },
    rows: () => pointRows(xAxis, yAxis),
  });
}

/** The landmarks that were tried, and beside them what their sources measured, in one unit. */
function addLadder() {
  const steps = view.landmarks.filter(({ trial }) => !Number.isNaN(view.time[trial]));
  if (steps.length < 2) return;
  const grid = section("ladder", "Ladder");
  const all = [...steps, ...(view.best === null ? [] : [{ name: "tuned", note: "the best of this search", figures: [], trial: view.best }])];
  const { bytes, flops } = view.columns;
  const at = { ms: () => (ms) => ms, "GB/s": (row) => (ms) => (bytes[row] / ms) * 1e-6, "GFLOP/s": (row) => (ms) => (flops[row] / ms) * 1e-6 };
  const ours = (unit, row) => at[unit](row)(view.time[row]);
  const units = ["ms", ...(bytes ? ["GB/s"] : []), ...(flops ? ["GFLOP/s"] : [])];
  const speedup = (trial) => `${number(timesOf(steps[0].trial, trial), 3)} x`;
  const saidBy = ({ figures }, unit) => figures.filter((figure) => figure[1] === unit).map(([value, , device]) => ({ value, said: `${number(value)} (${device})` }));
  const bars = ({ unit }) => all.map((step) => {
    const sources = saidBy(step, unit);
    return { label: step.name, value: ours(unit, step.trial), error: intervalOf(step.trial)?.map(at[unit](step.trial)), isStrong: step.name === "tuned", isHollow: view.isOfSearch(step.trial), dots: sources.map((one) => one.value),
      text: `${timeText(step.trial, at[unit](step.trial), unit)}, ${speedup(step.trial)}`, dotText: sources.map((one) => one.said).join(", "),
      tip: `${step.note}\n${trialTip(step.trial)}`, act: () => openTrial(step.trial) };
  });
  const isLog = ({ unit }) => {
    const values = bars({ unit }).flatMap((bar) => [bar.value, ...bar.dots]);
    return Math.max(...values) > 20 * Math.min(...values);
  };
  addChart(grid, {
    id: "ladder-chart", title: "Steps of the ladder that were tried", isWide: true, height: (width, { unit = "ms" }) => barHeight(bars({ unit }), width),
    choices: units.length > 1 ? [{ name: "unit", label: "in", options: units.map((unit) => [unit, unit]), value: "ms" }] : [],
    draw: (context, width, height, colours, { unit = "ms" }) => {
      const log = isLog({ unit });
      return drawBars(context, width, height, colours, bars({ unit }), { unit: log ? `${unit}, logarithmic` : unit, isLog: log });
    },
    caption: ({ unit = "ms" }) => {
      const isSaid = all.some((step) => saidBy(step, unit).length);
      const mistakes = view.landmarks.filter(({ expected }) => expected !== "ok").map(({ name, note }) => ` ${name} is declared wrong, and has no time: ${note}.`);
      const hollow = view.hasLastRound ? " A hollow bar is a time from the search only." : "";
      return `${whole(steps.length)} of the space's landmarks have times.${hollow}${isSaid ? " ◇ is what the step's source measured, on its own device and problem." : ""}${mistakes.join("")}`;
    },
    rows: () => [["step", ...units.map((unit) => `in ${unit}`), "speed-up", "what it is, and the source's figure"],
      all.map(({ name, note, trial }) => [name, ...units.map((unit) => timeText(trial, at[unit](trial), unit)), speedup(trial), note])],
  });
}
