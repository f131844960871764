// Sections of the page, and the first of them: the result.

function section(id, title) {
  const grid = el("div", { class: "grid" });
  $("main").append(el("section", { id, "aria-labelledby": `${id}-title` }, el("h2", { id: `${id}-title`, text: title }), grid));
  $("sections").append(el("a", { href: `#${id}`, text: title }));
  return grid;
}

const panel = (...children) => el("div", { class: "panel wide" }, ...children);

const cards = (items) => el("ul", { class: "cards wide" }, ...items.map(({ title, value, note }) =>
  el("li", {}, el("p", { class: "name", text: title }), el("p", { class: "value", text: value }), el("p", { class: "note", text: note }))));

function addHeadline() {
  const grid = section("headline", "Result");
  const [verdict, reasons] = view.trust;
  grid.append(el("div", { class: "panel wide", id: "trust", role: "note" }, el("h3", { text: verdict }),
    el("ul", {}, ...reasons.map((text) => el("li", { text })))));
  grid.append(cards(view.headline));
  if (view.provenance.length) grid.append(el("ul", { class: "wide soft", id: "provenance" },
    ...view.provenance.map(([name, text]) => el("li", {}, el("strong", { text: name }), " ", bdi(text)))));
  if (view.best === null) return;
  grid.append(panel(el("h3", { text: "Best configuration" }), ...differences(),
    el("p", {}, el("button", { type: "button", id: "open-best", text: "As a command and as macros", onclick: () => openTrial(view.best) })),
    ...(view.diagnoseCommand ? [el("p", { class: "soft" }, "What bounds it: ", el("code", { text: view.diagnoseCommand }))] : [])));
}

/** The best configuration: what the default and the ties have otherwise, then all of it. */
function differences() {
  const all = el("p", {}, bdi(configText(view.best)));
  const ties = view.timed.filter((row) => view.isTie(row) && row !== view.default);
  const others = [...(view.default === null || view.default === view.best ? [] : [view.default]), ...ties];
  const changed = view.parameters.filter((axis) => others.some((row) => axis.data[row] !== axis.data[view.best]));
  if (!changed.length) return [all];
  const title = (row) => (row !== view.default ? `tie: trial ${row + 1}` : view.isTie(row) ? "default, a tie" : "default");
  const rows = changed.map((axis) => [axis.title, text(axis, view.best), ...others.map((row) => text(axis, row))]);
  return [tableOf(["parameter", "best", ...others.map(title)], rows), all];
}

/** What bounds a configuration, as `autotune diagnose` found last. */
function addDiagnosis() {
  if (!view.diagnosis) return;
  const { origin, config, time_ms, verdict, reason, helps, uses, foretold } = view.diagnosis;
  const grid = section("diagnosis", "What bounds it");
  const list = (title, lines) => lines.length ? [el("h3", { text: title }), el("ul", {}, ...lines.map((text) => el("li", {}, bdi(text))))] : [];
  grid.append(panel(el("h3", {}, bdi(verdict)), el("p", {}, bdi(reason)), ...(helps ? [el("p", { text: `What helps: ${helps}` })] : []),
    el("p", { class: "soft" }, bdi(`${origin}, ${time_ms} ms: ${config}`)),
    ...list("Share of each peak", uses), ...list("Time without one trouble", foretold)));
}

/** How many planted mistakes the verification of the space catches. */
function addStrength() {
  if (!view.strength) return;
  const { score, left, kinds, missed } = view.strength;
  const sum = (place) => kinds.reduce((total, row) => total + row[place], 0);
  const grid = section("strength", "Strength");
  grid.append(cards([{ title: "Planted mistakes caught", value: score === null ? "–" : `${Math.floor(100 * score)}%`,
    note: `${whole(sum(1))} of ${whole(sum(1) + sum(2))} that something shows${left ? `; ${whole(left)} not tried` : ""}` }]));
  grid.append(panel(tableOf(["mistake", "caught", "missed", "equivalent"], kinds)));
  if (missed.length) grid.append(panel(el("h3", { text: "Missed" }), tableOf(["mistake", "place", "code", "with the mistake", "mend"], missed)));
}
