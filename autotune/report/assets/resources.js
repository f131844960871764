// Resources, the roofline and the ladder.

function addResources() {
  const known = ["occupancy", "registers", "spill_bytes", "shared_bytes"].filter((id) => view.axis(id));
  const time = view.axis("time_ms");
  const hasRate = view.axis("time_ms") && (view.columns.bytes || view.columns.flops);
  if (!time || (!known.length && !hasRate)) return;
  const grid = section("resources", "Resources and rates");
  if (known.length) addChart(grid, {
    id: "resources-chart", title: "What the binary takes, and the time", height: 340,
    choices: [{ name: "x", label: "x", options: known.map((id) => [id, view.axis(id).title]), value: known[0] }],
    draw: (context, width, height, colours, { x }) => drawScatter(context, width, height, colours, view.axis(x), time, view.limit),
    caption: () => (view.limit ? "Colour: what admits no more blocks on a multiprocessor." : "Colour: the time; the launch or the architecture is not known, so no occupancy is."),
    rows: ({ x }) => pointRows(view.axis(x), time),
  });
  if (hasRate) addRoofline(grid, time);
}

/** Rate over intensity with the memory's ceiling; without operations, the rate of the memory alone. */
function addRoofline(grid, time) {
  const { bytes, flops } = view.columns;
  const rate = Float64Array.from({ length: view.count }, (_, row) => ((flops || bytes)[row] / view.time[row]) * 1e-6);
  const yAxis = { id: "rate", title: flops ? "GFLOP/s" : "GB/s", isLog: true, data: rate };
  const xAxis = flops && bytes
    ? { id: "intensity", title: "operations per byte", isLog: true, data: Float64Array.from({ length: view.count }, (_, row) => flops[row] / bytes[row]) }
    : view.axis("order");
  const roof = bytes && view.bandwidth ? view.bandwidth * 1e-9 : null;
  addChart(grid, {
    id: "roofline", title: "Roofline", height: 340,
    draw: (context, width, height, colours) => {
      const box = { left: 58, right: width - 14, top: 38, bottom: height - 40 };
      let [low, high] = extent(xAxis.data, xAxis.isLog);
      if (flops && bytes) [low, high] = [low / 8, high * 8];
      const sx = numberScale(low, high, box.left, box.right, Boolean(flops && bytes));
      const [least, most] = extent(rate, true);
      const ceiling = roof ? (flops ? roof * high : roof) : most;
      const sy = numberScale(Math.min(least, roof && flops ? roof * low : least) / 1.2, Math.max(most, ceiling) * 1.2, box.bottom, box.top, true);
      frame(context, colours, box, sx, sy, xAxis.title, `${yAxis.title}, logarithmic`);
      if (roof) {
        context.strokeStyle = colours.ink;
        context.lineWidth = 2;
        line(context, sx.at(low), sy.at(flops ? roof * low : roof), sx.at(high), sy.at(flops ? roof * high : roof));
        context.fillStyle = colours.ink;
        context.textAlign = "right";
        context.fillText(`memory: ${number(roof)} GB/s`, box.right, box.top - 12);
        context.textAlign = "left";
      }
      const [px, py] = [placesOf(xAxis, sx), placesOf(yAxis, sy)];
      drawPoints(context, px, py, (row) => view.bins[row], colours.bins, colours);
      const back = (y) => ((flops || bytes)[view.best ?? 0] / sy.invert(y)) * 1e-6;
      return pointMarks(px, py, (x0, y0, x1, y1) => { restrict(time, back(y0), back(y1)); applyFilters(); });
    },
    caption: () => {
      const share = roof && view.best !== null ? (bytes[view.best] / view.bestTime) * 1e-6 / roof : null;
      const said = share === null ? "The device's bandwidth is not known here, so there is no ceiling." : `The best reaches ${percent(share)} of the memory's ceiling.`;
      return `${said} Compute ceilings are not recorded.`;
    },
    rows: () => pointRows(xAxis, yAxis),
  });
}

function addLadder() {
  const steps = view.landmarks.filter(({ trial }) => !Number.isNaN(view.time[trial]));
  if (!steps.length) return;
  const grid = section("ladder", "Ladder");
  const first = view.time[steps[0].trial];
  const all = [...steps.map(({ name, note, trial }) => ({ name, note, trial })), ...(view.best === null ? [] : [{ name: "tuned", note: "the best of this search", trial: view.best }])];
  const bars = all.map(({ name, trial }) => ({ label: name, value: view.time[trial], text: `${number(view.time[trial], 3)} ms, ${number(first / view.time[trial], 3)} x`,
    isStrong: name === "tuned", tip: trialTip(trial), act: () => openTrial(trial) }));
  const spread = Math.max(...bars.map((bar) => bar.value)) / Math.min(...bars.map((bar) => bar.value));
  addChart(grid, {
    id: "ladder-chart", title: "Steps of the ladder that were tried", isWide: true, height: () => barHeight(bars.length),
    draw: (context, width, height, colours) => drawBars(context, width, height, colours, bars, { unit: spread > 20 ? "time (ms), logarithmic" : "time (ms)", isLog: spread > 20 }),
    caption: () => `${whole(steps.length)} of the space's landmarks were tried. The table has the sources' own figures.`,
    rows: () => [["step", "ms", "speed-up", "what it is, and the source's figure"], all.map(({ name, note, trial }) => [name, view.time[trial], `${number(first / view.time[trial], 3)} x`, note])],
  });
}
