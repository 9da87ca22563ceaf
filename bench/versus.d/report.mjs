// What rounds come to: medians and the ratio of each round, as Markdown and as a chart of bars on a logarithmic scale.
const sorted = (list) => [...list].sort((a, b) => a - b);
const median = (list) => {
  const s = sorted(list), n = s.length;
  return n % 2 ? s[n >> 1] : (s[n / 2 - 1] + s[n / 2]) / 2;
};

// The ratio is of what was measured in the same round: noise that lasts longer than a round hits both sides.
export function summary(p) {
  const ratios = sorted(p.ours.map((x, i) => x / p.theirs[i]));
  return {
    what: p.what, threads: p.threads, test: p.test, peer: p.peer, unit: p.unit, ours: median(p.ours), theirs: median(p.theirs),
    ratio: median(ratios), least: ratios[0], most: ratios[ratios.length - 1],
  };
}

const figure = (x) => (x >= 100 ? x.toFixed(0) : x >= 10 ? x.toFixed(1) : x.toFixed(2));

export function markdown(head, rows) {
  const lines = [
    "# Shoal beside other engines", "",
    `${head.shoal}${head.commit ? `, commit ${head.commit}` : ""}${head.kernels ? `, ${head.kernels} kernels` : ""}; ${head.cpu}, ` +
      `${head.cores} cores, ${head.memory_gib} GiB; ${head.date} UTC, load ${head.load.toFixed(1)}.`,
    `Both sides alternate, ${head.rounds} round(s); medians, and the ratio of each round with its least and its most.` +
      (head.flags ? ` The other side ran with ${head.flags}.` : ""), "",
    "| model | threads | test | Shoal | other | | ratio | least to most |", "|---|---:|---|---:|---:|---|---:|---|",
  ];
  for (const r of rows)
    lines.push(`| ${r.what} | ${r.threads} | ${r.test} | ${figure(r.ours)} | ${figure(r.theirs)} | ${r.peer} | **${r.ratio.toFixed(2)}** | ` +
      `${r.least.toFixed(2)} to ${r.most.toFixed(2)} |`);
  return lines.join("\n") + "\n";
}

// What clients met, a line for each side and number of clients: medians of the rounds; failures of all of them.
export function servers(loads) {
  if (!loads.length) return "";
  const lines = ["", "| model | threads | | server | tokens/CPU s | tokens/s | first p50 | p99 ms | gap p50 | p99 ms | failed |",
    "|---|---:|---|---|---:|---:|---:|---:|---:|---:|---:|"];
  const key = (l) => [l.what, l.threads, l.test, l.side].join("|");
  for (const k of new Set(loads.map(key))) {
    const of = loads.filter((l) => key(l) === k), sum = (f) => of.reduce((n, l) => n + l[f], 0);
    const cells = ["tokens_per_cpu_s", "tokens_per_s", "first_p50_ms", "first_p99_ms", "gap_p50_ms", "gap_p99_ms"]
      .map((f) => figure(median(of.map((l) => l[f]))));
    lines.push(`| ${of[0].what} | ${of[0].threads} | ${of[0].test} | ${of[0].side} | ${cells.join(" | ")} | ${sum("failed")} of ${sum("failed") + sum("ok")} |`);
  }
  return lines.join("\n") + "\n";
}

const escape = (s) => String(s).replace(/[&<>"]/g, (c) => ({ "&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;" })[c]);

// A bar from 1 to the ratio, to the right where Shoal is ahead; a line from the least to the most.
export function svg(head, rows) {
  const left = 300, width = 460, right = 120, row = 22, gap = 14, top = 64;
  const groups = [];
  for (const r of rows) {
    const title = `${r.what}, ${r.threads} thread${r.threads === 1 ? "" : "s"}, beside ${r.peer}`;
    if (!groups.length || groups[groups.length - 1].title !== title) groups.push({ title, rows: [] });
    groups[groups.length - 1].rows.push(r);
  }
  const all = rows.flatMap((r) => [r.least, r.most, r.ratio]).filter((x) => x > 0 && Number.isFinite(x));
  const low = Math.min(0.5, ...all) / 1.05, high = Math.max(2, ...all) * 1.05;
  const x = (v) => left + width * Math.log(Math.min(Math.max(v, low), high) / low) / Math.log(high / low);
  const height = top + groups.reduce((h, g) => h + row * (g.rows.length + 1) + gap, 0) + 24;
  const out = [
    `<svg xmlns="http://www.w3.org/2000/svg" width="${left + width + right}" height="${height}" ` +
      `viewBox="0 0 ${left + width + right} ${height}" font-family="system-ui, sans-serif" font-size="13" fill="#1d2733">`,
    `<rect width="100%" height="100%" fill="#ffffff"/>`,
    `<text x="16" y="24" font-size="16" font-weight="600">Times as fast as the other engine</text>`,
    `<text x="16" y="44" fill="#5b6774">${escape(`${head.shoal}, ${head.cpu}, ${head.rounds} alternating rounds; the line goes from the least ratio to the most`)}</text>`,
  ];
  const ticks = [0.1, 0.2, 0.25, 0.5, 1, 1.5, 2, 3, 4, 6, 8, 12, 16, 32, 64, 128].filter((t) => t >= low && t <= high);
  let last = -100;
  for (const t of ticks) {
    if (t !== 1 && (x(t) - last < 34 || Math.abs(x(t) - x(1)) < 34)) continue;
    last = x(t);
    out.push(`<line x1="${x(t).toFixed(1)}" x2="${x(t).toFixed(1)}" y1="${top - 8}" y2="${height - 24}" stroke="${t === 1 ? "#1d2733" : "#dde3e9"}"/>`,
      `<text x="${x(t).toFixed(1)}" y="${height - 8}" text-anchor="middle" fill="#5b6774">${t}×</text>`);
  }
  let y = top;
  for (const g of groups) {
    out.push(`<text x="16" y="${y + 15}" font-weight="600">${escape(g.title)}</text>`);
    y += row;
    for (const r of g.rows) {
      const a = Math.min(x(1), x(r.ratio)), b = Math.max(x(1), x(r.ratio)), middle = y + row / 2;
      out.push(`<text x="32" y="${middle + 4}">${escape(r.test)}</text>`,
        `<text x="${left - 12}" y="${middle + 4}" text-anchor="end" fill="#5b6774">${figure(r.ours)} / ${figure(r.theirs)}</text>`,
        `<rect x="${a.toFixed(1)}" y="${y + 4}" width="${Math.max(b - a, 1).toFixed(1)}" height="${row - 8}" rx="2" fill="${r.ratio >= 1 ? "#2f7dd1" : "#d9772b"}"/>`,
        `<line x1="${x(r.least).toFixed(1)}" x2="${x(r.most).toFixed(1)}" y1="${middle}" y2="${middle}" stroke="#1d2733" stroke-width="1.5"/>`,
        `<text x="${(Math.max(b, x(r.most)) + 8).toFixed(1)}" y="${middle + 4}" font-weight="600">${r.ratio.toFixed(2)}</text>`);
      y += row;
    }
    y += gap;
  }
  out.push("</svg>");
  return out.join("\n") + "\n";
}
