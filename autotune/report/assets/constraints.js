// A space before any search: what its constraints leave, and which parameters they tie to each other.

function showSpace() {
  view = prepare(data.sample);
  $("title").textContent = `${view.kernel}: the space`;
  $("subtitle").replaceChildren(bdi(view.device), ", ", bdi(view.problem), " (", bdi(view.source), ")");
  addSpaceFacts();
  addFunnel();
  addValues();
  addTies();
  const grid = section("sample", view.count < data.valid ? `A sample of ${whole(view.count)} valid configurations` : "All valid configurations");
  if (view.varying.length) addParallel(grid);
  if (view.varying.length > 1) addHeat(grid, strongestTie());
  table.build("Configurations");
  fillFilterPanel();
  showFilters();
}

function addSpaceFacts() {
  const grid = section("space-facts", "What is in it");
  const removing = data.constraints.filter((one) => one.removesAlone !== 0).length;
  const facts = [
    ["Valid configurations", whole(data.valid), `${percentOf(data.valid, data.combinations)} of ${whole(data.combinations)} combinations`],
    ["Parameters", whole(view.parameters.length), `${whole(view.parameters.reduce((sum, axis) => sum + axis.values.length, 0))} values`],
    ["Constraints", whole(data.constraints.length), `${whole(removing)} of them remove combinations here`],
    ["Likely mistakes", whole(data.findings.length), data.findings.length ? "listed below" : "none found"],
  ];
  grid.append(cards(facts.map(([title, value, note]) => ({ title, value, note }))));
  if (data.findings.length) grid.append(panel(el("h3", { text: "Likely mistakes" }), tableOf(["kind", "of", "what"], data.findings)));
}

const percentOf = (part, all) => `${number((100 * part) / all, 2)}%`;

/** What each constraint leaves of all combinations, and at last the limits of the device. */
function addFunnel() {
  const grid = section("funnel", "What the constraints remove");
  const steps = [{ text: "all combinations", left: data.combinations, isExact: true }, ...data.constraints,
    { text: "limits of the device", left: data.valid, isExact: true }];
  let before = data.combinations;
  const bars = steps.map((step) => {
    const removed = step.left === null ? null : 1 - step.left / before;
    if (step.left !== null) before = step.left;
    const said = step.left === null ? "too few to estimate"
      : `${step.isExact ? "" : "about "}${step.isExact ? whole(step.left) : number(step.left, 2)}${removed > 0.0005 ? `, −${percent(removed)}` : ""}`;
    return { label: `${step.line ? `${step.line}: ` : ""}${step.text}`, value: step.left ?? 0, text: said, tip: `${step.text}\n${said}`, isStrong: removed > 0.5 };
  });
  const isLog = data.combinations > 20 * data.valid;
  addChart(grid, {
    id: "funnel-chart", title: "Combinations left after each line", isWide: true, height: (width) => barHeight(bars, width),
    draw: (context, width, height, colours) => drawBars(context, width, height, colours, bars, { unit: isLog ? "combinations, logarithmic" : "combinations", isLog, labelMost: 80 }),
    caption: () => `The other colour marks a line that removes more than half of what was left.${steps.every((step) => step.isExact) ? "" : " Numbers with “about” are estimated from 200,000 random combinations."}`,
    rows: () => [["line", "constraint", "left", "removes alone", "valid without it"], data.constraints.map((one) =>
      [String(one.line), one.text, one.left === null ? "–" : whole(one.left), one.removesAlone === null ? "–" : percentOf(one.removesAlone, data.combinations),
        one.appearWithout === null ? "–" : `+${whole(one.appearWithout)}`])],
  });
}

/** For each parameter a bar that its values share by how many valid configurations have them. */
function addValues() {
  const grid = section("values", "Values");
  const height = 34;
  const never = view.parameters.flatMap((axis, at) => axis.values.filter((_, place) => !data.counts[at][place]).map((value) => `${axis.title}=${value}`));
  addChart(grid, {
    id: "values-chart", title: "Share of the valid configurations that have each value", isWide: true, height: () => height * view.parameters.length + 8,
    draw: (context, width, _, colours) => {
      const left = Math.min(width * 0.34, 14 + Math.max(...view.parameters.map((axis) => context.measureText(plain(axis.title)).width)));
      const titles = fitApart(context, view.parameters.map((axis) => axis.title), left - 10);
      const marks = [];
      view.parameters.forEach((axis, at) => {
        const y = height * (at + 0.5) + 4;
        context.fillStyle = colours.ink;
        context.textAlign = "right";
        context.fillText(titles[at], left - 8, y);
        const most = Math.max(...data.counts[at]);
        let x = left;
        axis.values.forEach((value, place) => {
          const count = data.counts[at][place];
          const wide = (count / data.valid) * (width - left - 4);
          if (!count) return;
          const colour = shade(1 - count / most);
          context.fillStyle = colour;
          context.fillRect(x, y - 12, Math.max(1, wide - 1.5), 24);
          context.fillStyle = inkOn(colour);
          context.textAlign = "center";
          const said = fit(context, plain(value), wide - 6);
          if (said.length > 1 || said === plain(value)) context.fillText(context.measureText(said).width < wide - 4 ? said : "", x + wide / 2, y);
          marks.push({ left: x, top: y - 12, width: Math.max(3, wide), height: 24, x: x + wide / 2, y,
            tip: `${axis.title} = ${value}\n${whole(count)} configurations, ${percentOf(count, data.valid)}` });
          x += wide;
        });
      });
      context.textAlign = "left";
      return boxes(marks);
    },
    caption: () => never.length ? `In no valid configuration: ${short(never.join(", "), 300)}.` : "Every value is in some valid configuration.",
    rows: () => [["parameter", "value", "valid configurations", "share"], view.parameters.flatMap((axis, at) =>
      axis.values.map((value, place) => [axis.title, value, data.counts[at][place], percentOf(data.counts[at][place], data.valid)]))],
  });
  const conditions = Object.entries(data.conditions);
  if (conditions.length) grid.append(panel(el("h3", { text: "Parameters that matter only sometimes" }), tableOf(["parameter", "matters when"], conditions)));
}

const tiesByStrength = () => data.ties.slice().sort((a, b) => b.share - a.share);

/** The two parameters that the heat map begins with. */
function strongestTie() {
  const pairs = tiesByStrength().map(({ one, other }) => [view.parameters[one], view.parameters[other]]);
  return pairs.find((pair) => pair.every((axis) => view.varying.includes(axis))) || [];
}

/** A matrix of all pairs of parameters, and the pairs that constraints tie most. */
function addTies() {
  if (view.parameters.length < 2) return;
  const grid = section("ties", "Parameters tied to each other");
  const share = new Map(data.ties.flatMap((tie) => [[`${tie.one},${tie.other}`, tie], [`${tie.other},${tie.one}`, tie]]));
  const names = view.parameters.map((axis) => axis.title);
  const strongest = tiesByStrength();
  const open = ({ one, other }) => {
    if (!view.heat || ![one, other].every((at) => view.varying.includes(view.parameters[at]))) return;
    choose(view.heat, { x: `p${one}`, y: `p${other}` });
    view.heat.figure.scrollIntoView();
  };
  addChart(grid, {
    id: "ties-chart", title: "How much one value says about another", isWide: true, height: () => 26 * names.length + 110, minWidth: () => 46 * names.length + 150,
    draw: (context, width, height, colours) => {
      const left = Math.min(170, 14 + Math.max(...names.map((name) => context.measureText(plain(name)).width)));
      const top = 100;
      const wide = Math.min(70, (width - left - 60) / names.length);
      const [beside, above] = [left - 10, 125].map((room) => fitApart(context, names, room));
      const marks = [];
      names.forEach((_, at) => {
        context.fillStyle = colours.ink;
        context.textAlign = "right";
        context.fillText(beside[at], left - 8, top + 26 * (at + 0.5));
        context.save();
        context.translate(left + wide * (at + 0.5), top - 6);
        context.rotate(-Math.PI / 4);
        context.textAlign = "left";
        context.fillText(above[at], 0, 0);
        context.restore();
        names.forEach((other, across) => {
          if (across === at) return;
          const tie = share.get(`${at},${across}`);
          const colour = shade(1 - tie.share);
          const [x, y] = [left + wide * across, top + 26 * at];
          context.fillStyle = tie.share < 0.005 ? colours.grid : colour;
          context.fillRect(x + 1, y + 1, wide - 2, 24);
          context.fillStyle = tie.share < 0.005 ? colours.soft : inkOn(colour);
          context.textAlign = "center";
          context.fillText(tie.share < 0.005 ? "·" : tie.share.toFixed(2).replace(/^0/, ""), x + wide / 2, y + 13);
          if (across > at) marks.push({ left: x, top: y, width: wide, height: 26, x: x + wide / 2, y: y + 13, act: () => open(tie),
            tip: `${name} and ${other}: ${tie.share.toFixed(2)}\n${tie.lines.length ? `lines ${tie.lines.join(", ")} read both` : "no line reads both"}` });
        });
      });
      context.textAlign = "left";
      return boxes(marks);
    },
    caption: () => "0: the valid values of one do not depend on the other. 1: one value decides the other. This is mutual information over the smaller entropy. Click a cell for the heat map of the two.",
    rows: () => [["parameters", "tie", "lines that read both"], strongest.map((tie) => [`${names[tie.one]}, ${names[tie.other]}`, tie.share, tie.lines.join(", ") || "none"])],
  });
}
