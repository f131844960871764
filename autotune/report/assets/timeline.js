// What every process of a command did over time.

const LANE = 20;
const KEY = 92; // of a kind of work in the legend

/** The processes and their threads, coloured by the kind of work; left out where no timeline was given. */
function addTimeline(grid) {
  if (!data.timeline) return;
  const { kinds, rows } = data.timeline;
  const used = [...kinds.keys()].filter((kind) => rows.some((row) => row.spans.some((span) => span[2] === kind)));
  const isMain = ({ thread }) => thread === "MainThread";
  const nameOf = (row) => (isMain(row) ? row.process : `${row.process}, ${row.thread}`);
  const keyAt = (width, at) => [8 + KEY * (at % Math.floor((width - 8) / KEY)), 10 + 18 * Math.floor(at / Math.floor((width - 8) / KEY))];
  const topOf = (width) => keyAt(width, used.length - 1)[1] + 14;
  addChart(grid, {
    id: "timeline", title: "Processes over time", isWide: true, height: (width) => topOf(width) + LANE * rows.length + 42,
    draw: (context, width, height, colours) => {
      const own = { model: colours.ink, waiting: colours.grid, "other work": colours.soft };
      const shades = kinds.map((kind, at) => own[kind] || colours.category[at]);
      const labels = rows.map((row) => plain(isMain(row) ? row.process : row.thread));
      const left = Math.min(Math.max(...labels.map((label) => context.measureText(label).width)) + 14, width * 0.36);
      const box = { left, right: width - 14, top: topOf(width), bottom: height - 40 };
      const ended = rows.reduce((last, row) => row.spans.reduce((most, span) => Math.max(most, span[1]), last), 0);
      const sx = numberScale(0, ended, box.left, box.right, false, width / 90);
      frame(context, colours, box, sx, null, "seconds from the start", "");
      used.forEach((kind, at) => {
        const [x, y] = keyAt(width, at);
        context.fillStyle = shades[kind];
        context.fillRect(x, y - 5, 10, 10);
        context.fillStyle = colours.ink;
        context.fillText(kinds[kind], x + 14, y);
      });
      const said = fitApart(context, labels, left - 10);
      const marks = rows.flatMap((row, at) => {
        const top = box.top + LANE * at;
        context.fillStyle = isMain(row) ? colours.ink : colours.soft;
        context.textAlign = "right";
        context.fillText(said[at], left - 8, top + LANE / 2);
        context.textAlign = "left";
        return row.spans.map(([from, to, kind, name]) => {
          const mark = { left: sx.at(from), top: top + 3, width: Math.max(1, sx.at(to) - sx.at(from)), height: LANE - 6,
            tip: `${nameOf(row)}: ${name}\n${number(to - from, 3)} s, from ${number(from)} s` };
          context.fillStyle = shades[kind];
          context.fillRect(mark.left, mark.top, mark.width, mark.height);
          return mark;
        });
      });
      const isIn = (mark, x, y) => x >= mark.left && x <= mark.left + mark.width && y >= mark.top && y <= mark.top + mark.height;
      return { list: () => marks, find: (x, y) => marks.findLast((mark) => isIn(mark, x, y)) };
    },
    caption: () => "Each process, then its threads that do more than wait. A bar on top of another is a part of it; point at a wait to see its cause.",
    rows: () => [["process", "work", "seconds", "spans"], rows.flatMap((row) => used.flatMap((kind) => {
      const taken = row.spans.filter((span) => span[2] === kind);
      return taken.length ? [[nameOf(row), kinds[kind], taken.reduce((sum, [from, to]) => sum + to - from, 0), whole(taken.length)]] : [];
    }))],
  });
}
