// One trial in a dialog, and the table of all.

const PAGE = 50; // rows of the table at once

const quoted = (word) => `'${word.replaceAll("'", "'\\''")}'`;

function openTrial(row) {
  showTip(null);
  const values = view.parameters.filter((axis) => axis.data[row] >= 0);
  const condition = values.map((axis) => {
    const value = axis.raw[axis.data[row]];
    return `${axis.title} == ${typeof value === "string" ? JSON.stringify(value) : shown(value)}`;
  }).join(" and ");
  const settings = values.map((axis) => `${axis.title}=${shown(axis.raw[axis.data[row]])}`).join(",");
  const flags = [...view.constants, ...values.map((axis) => `-D${axis.title}=${axis.macros[axis.data[row]]}`)];
  const config = Object.fromEntries(values.map((axis) => [axis.title, axis.raw[axis.data[row]]]));
  const clock = view.hasLastRound ? ` in the ${view.columns.final[row] ? "last round" : "search"}` : "";
  const hidden = ["order", ...(view.isOfSearch(row) ? ["search_ms"] : [])]; // the latter is its only time
  const facts = view.measures.filter((axis) => !Number.isNaN(axis.data[row]) && !hidden.includes(axis.id))
    .map((axis) => [axis.id === "time_ms" ? `time${clock} (ms)` : axis.title, number(axis.data[row], 6)]);
  if (view.limit && view.limit.data[row] >= 0) facts.push([view.limit.title, text(view.limit, row)]);
  if (view.best !== null && view.time[row]) facts.splice(1, 0, [`times the best${clock}`, `${number(timesOf(row, view.best))}${reachText(row) && ` (${reachText(row)})`}`]);
  if (view.standing && view.standing.data[row] >= 0) facts.splice(1, 0, [view.standing.title, text(view.standing, row)]);
  const detail = view.details[view.columns.detail[row]];
  $("trial-title").textContent = `${rowName(row)}: ${outcome(row)}`;
  $("trial-body").replaceChildren(
    ...(detail ? [el("h3", { text: "Detail" }), el("pre", { text: detail })] : []),
    ...(facts.length ? [tableOf(["quantity", "value"], facts)] : []),
    ...(view.runCommand ? copyable("Command that runs it", `${view.runCommand} ${quoted(settings)}`) : []),
    ...(view.showCommand ? copyable("Command that shows it", `autotune show ${quoted(view.showCommand)} --where ${quoted(condition)}`) : []),
    ...copyable("Macros, as compiler options", flags.map((flag) => (/^[\w=.-]+$/.test(flag) ? flag : quoted(flag))).join(" ")),
    ...copyable("Configuration, as JSON", JSON.stringify(config)),
  );
  $("trial").showModal();
  $("trial-body").scrollTop = 0;
}

function copyable(title, content) {
  const code = el("pre", { text: content });
  const button = el("button", { type: "button", text: "Copy", "aria-label": `Copy: ${title}`, onclick: async () => {
    const range = document.createRange();
    range.selectNodeContents(code);
    getSelection().removeAllRanges();
    getSelection().addRange(range);
    try {
      await navigator.clipboard.writeText(content);
      button.textContent = "Copied";
    } catch {
      button.textContent = "Selected: copy with Ctrl+C";
    }
  } });
  return [el("h3", {}, `${title} `, button), code];
}

/** The place of each trial among all: the best, its ties, then by time; NaN without a time. */
function ranks() {
  const found = new Float64Array(view.count).fill(NaN);
  view.timed.forEach((row, rank) => { found[row] = rank; });
  return found;
}

const table = {
  sortBy: "time_ms", isDescending: false, order: null, page: 0,
  /** The axes that are columns; a parameter that never changes is said above the table, and only a file repeats it. */
  columns(parameters = view.varying) {
    const measured = ["time_ms", "search_ms", "energy_j", "registers", "spill_bytes", "shared_bytes", "occupancy", "compile_ms"].map((id) => view.axis(id)).filter(Boolean);
    return [view.axis("order"), ...measured.slice(0, 1), ...(view.standing ? [view.standing] : []), ...(view.isSpace ? [] : [view.status]), ...parameters, ...measured.slice(1)];
  },
  sorted() {
    if (this.order) return this.order;
    const column = this.sortBy === "time_ms" ? ranks() : view.axis(this.sortBy).data;
    const sign = this.isDescending ? -1 : 1;
    this.order = Array.from({ length: view.count }, (_, row) => row).sort((a, b) => {
      const [one, other] = [column[a], column[b]];
      if (Number.isNaN(one) || Number.isNaN(other)) return Number.isNaN(one) - Number.isNaN(other) || a - b;
      return sign * (one - other) || a - b;
    });
    return this.order;
  },
  rows() {
    return this.sorted().filter((row) => view.selected[row]);
  },
  build(title) {
    const grid = section("trials", title);
    this.order = null;
    this.sortBy = view.axis("time_ms") ? "time_ms" : "order";
    this.isDescending = false;
    this.head = el("tr");
    this.body = el("tbody");
    this.said = el("span", { class: "soft" });
    this.back = el("button", { type: "button", text: "Previous", onclick: () => this.show(this.page - 1) });
    this.next = el("button", { type: "button", text: "Next", id: "next-page", onclick: () => this.show(this.page + 1) });
    const same = view.parameters.filter((axis) => !view.varying.includes(axis) && view.count);
    grid.append(panel(
      ...(same.length ? [el("p", { class: "soft", id: "same" }, `The same in all ${nouns()}: `, bdi(same.map((axis) => `${axis.title}=${text(axis, 0)}`).join(" ")))] : []),
      el("div", { class: "bar" }, el("div", { class: "choices" }, this.back, this.next, this.said),
        el("button", { type: "button", id: "csv", text: "Download as CSV", onclick: () => this.download() })),
      el("div", { class: "scroll", tabindex: "0", role: "group", "aria-label": title },
        el("table", { id: "trial-table" }, el("thead", {}, this.head), this.body))));
    this.show(0);
  },
  showHead() {
    this.head.replaceChildren(...this.columns().map((axis) => {
      const isSorted = axis.id === this.sortBy;
      const mark = isSorted ? (this.isDescending ? " ↓" : " ↑") : "";
      return el("th", { scope: "col", "aria-sort": isSorted ? (this.isDescending ? "descending" : "ascending") : "none" },
        el("button", { type: "button", onclick: () => this.sort(axis) }, bdi(short(axis.title, 40)), mark));
    }), el("th", { scope: "col", text: "detail" }));
  },
  sort(axis) {
    this.isDescending = axis.id === this.sortBy && !this.isDescending;
    this.sortBy = axis.id;
    this.order = null;
    this.show(0);
    const again = [...this.head.querySelectorAll("button")][this.columns().indexOf(axis)];
    if (again) again.focus();
  },
  show(page) {
    const rows = this.rows();
    this.page = Math.max(0, Math.min(page, Math.ceil(rows.length / PAGE) - 1));
    const from = this.page * PAGE;
    const columns = this.columns();
    this.showHead();
    this.body.replaceChildren(...rows.slice(from, from + PAGE).map((row) => {
      const cells = columns.map((axis) => {
        if (axis.id === "order") return el("td", {}, el("button", { type: "button", text: String(row + 1), "aria-label": `Open trial ${row + 1}`, onclick: () => openTrial(row) }));
        if (!axis.isCategory) return el("td", { class: "number", text: `${text(axis, row)}${axis.id === "time_ms" && view.isOfSearch(row) ? ", search only" : ""}` });
        return el("td", {}, axis === view.status ? words(text(axis, row)) : named(text(axis, row), text(axis, row, axis.labels)));
      });
      return el("tr", {}, ...cells, el("td", { text: short(view.details[view.columns.detail[row]].split("\n")[0], 120) }));
    }));
    this.said.textContent = rows.length ? `${whole(from + 1)} to ${whole(Math.min(from + PAGE, rows.length))} of ${whole(rows.length)}` : `None of the ${nouns()} passes the filters.`;
    this.back.disabled = this.page === 0;
    this.next.disabled = from + PAGE >= rows.length;
  },
  csv() {
    // A spreadsheet takes a text that begins so for a formula.
    const cell = (value) => {
      const said = typeof value === "string" && /^[=+\-@\t\r]/.test(value) ? `'${value}` : String(value);
      return /[",\r\n]/.test(said) ? `"${said.replaceAll('"', '""')}"` : said;
    };
    const columns = this.columns(view.parameters);
    const lines = [[...columns.map((axis) => axis.title), "detail"]];
    for (const row of this.rows())
      lines.push([...columns.map((axis) => (axis.isCategory ? (axis.data[row] < 0 ? "" : axis.raw ? axis.raw[axis.data[row]] : axis.values[axis.data[row]])
        : Number.isNaN(axis.data[row]) ? "" : axis.data[row])), view.details[view.columns.detail[row]]]);
    return lines.map((line) => line.map(cell).join(",")).join("\r\n") + "\r\n";
  },
  download() {
    const link = el("a", { download: `${nouns()}.csv`, href: URL.createObjectURL(new Blob([this.csv()], { type: "text/csv" })) });
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 1000);
  },
};
