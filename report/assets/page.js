"use strict";
// The page of one run. D is the view that report.build made: instants are
// nanoseconds since the start.
const D = JSON.parse(document.getElementById("data").textContent);
for (const k of ["events", "ops", "beliefs", "overlaps", "truth", "messages", "faults", "subs", "uses", "gone", "findings", "locks", "cuts", "lanes"]) D[k] = D[k] || [];
const $ = id => document.getElementById(id);
const ms = 1e6;

// Text goes into the page as text only.
function el(name, attrs, text) {
  const e = document.createElement(name);
  for (const k in attrs || {}) e.setAttribute(k, attrs[k]);
  if (text !== undefined) e.textContent = text;
  return e;
}
function sv(name, attrs, text) {
  const e = document.createElementNS("http://www.w3.org/2000/svg", name);
  for (const k in attrs || {}) e.setAttribute(k, attrs[k]);
  if (text !== undefined) e.textContent = text;
  return e;
}
const at = ns => (ns / 1e9).toFixed(ns % ms === 0 ? 3 : 6).slice(0, ns % ms === 0 ? undefined : -3) + "s";
const span = ns => ns < 1e4 ? "0 ms" : ns < 1e9 ? (ns / ms).toFixed(ns < 10 * ms ? 1 : 0) + " ms" : (ns / 1e9).toFixed(2) + " s";

// ---- the axis: an instant, and its place. Even gives every event room, the
// longer a gap the more, but far less than in proportion.
const axis = (() => {
  const all = new Set([D.from, D.end]);
  for (const e of D.events) all.add(e.t);
  for (const s of [D.ops, D.beliefs, D.uses, D.faults, D.overlaps]) for (const x of s) { all.add(x.from); all.add(x.to); }
  for (const x of D.truth) all.add(x.t);
  const inCut = t => D.cuts.some(c => c.from < t && t < c.to);
  const knots = [...all].filter(t => t >= D.from && t <= D.end && !inCut(t)).sort((a, b) => a - b);
  const even = [0];
  for (let i = 1; i < knots.length; i++) {
    const gap = knots[i] - knots[i - 1];
    even.push(even[i - 1] + (gap < 1e4 ? 0.2 : 0.7 + 0.4 * Math.log2(1 + gap / ms)));
  }
  return { knots, even, plain: false };
})();
function below(list, x) { // index of the last element <= x, -1 if none
  let lo = 0, hi = list.length;
  while (lo < hi) { const m = (lo + hi) >> 1; if (list[m] <= x) lo = m + 1; else hi = m; }
  return lo - 1;
}
function between(from, to, x) {
  const i = Math.max(0, Math.min(from.length - 2, below(from, x)));
  if (from.length < 2) return to[0] || 0;
  const f = (x - from[i]) / (from[i + 1] - from[i] || 1);
  return to[i] + Math.max(0, Math.min(1, f)) * (to[i + 1] - to[i]);
}
const place = t => axis.plain ? t : between(axis.knots, axis.even, t);
const instant = u => axis.plain ? u : between(axis.even, axis.knots, u);
const first = () => place(D.from), last = () => Math.max(place(D.end), first() + 1);

// ---- what is chosen
const S = { u0: first(), u1: last(), cur: 0, hover: null, lock: "", process: "", judge: "", shown: [] };
const owners = D.lanes.filter(l => l.kind === "thread").map(l => l.name);
const ownerNo = who => Math.max(0, owners.indexOf(who)) % 8;

// Of many threads most only wait: those are shown that do something in view, or
// that a finding there names.
const MANY = 14;
let active = null; // of the lanes; null: all are shown
function findActive() {
  active = null;
  if (!$("quiet").checked) return;
  const from = instant(S.u0), to = instant(S.u1), now = t => from <= t && t <= to;
  active = new Set([D.events.length ? D.events[S.cur].lane : -1]);
  for (const b of D.beliefs) if (b.from <= to && b.to >= from) active.add(b.lane);
  for (const o of D.ops) if (now(o.from) || !o.open && now(o.to)) active.add(o.lane);
  for (const m of D.messages) if (now(m.sent) || now(m.done) || now(m.lost)) active.add(m.lane);
  for (const f of foundNow()) {
    if (!now(f.t)) continue;
    const words = new Set(f.why.split(/[\s,;:]+/));
    D.lanes.forEach((l, i) => { if (words.has(l.name)) active.add(i); });
    for (const o of D.ops) if (f.ops.includes(o.op)) active.add(o.lane);
  }
}
function laneShown(l) {
  if (S.process && l.process && l.process !== S.process) return false;
  if (S.lock && l.lock && l.lock !== S.lock) return false;
  return true;
}
const ofLock = x => !S.lock || (x.lock ? x.lock === S.lock : !x.locks || !x.locks.length || x.locks.includes(S.lock));
const foundNow = () => D.findings.filter(f => !S.judge || f.judge === S.judge);
function related(e) { // to what the chosen judge found
  if (!S.judge) return true;
  return foundNow().some(f =>
    (e.op && f.ops.includes(e.op)) || e.t === f.t ||
    (["state", "expire"].includes(e.k) && (!e.locks || !f.locks.length || e.locks.some(l => f.locks.includes(l)))) ||
    ["fault", "heal", "hit", "lost"].includes(e.k));
}
function eventShown(e) {
  return ofLock(e) && (!S.process || !e.p || e.p === S.process || e.lane >= 0 && D.lanes[e.lane].kind === "server") && related(e);
}

// ---- the chart
const LEFT = 132, TOP = 66, H = { thread: 44, watchdog: 24, server: 84 };
const busy = new Set(D.messages.map(m => m.lane));
let W = 1200, geometry = [];
const X = t => LEFT + (place(t) - S.u0) / (S.u1 - S.u0) * (W - LEFT - 12);
const U = x => S.u0 + (x - LEFT) / (W - LEFT - 12) * (S.u1 - S.u0);

function label(s, width) {
  const n = Math.floor(width / 6.1);
  return n < 2 ? "" : s.length <= n ? s : s.slice(0, n - 1) + "…";
}
// A box from one instant to another, cut to what is in view; null when out of it.
function box(from, to) {
  const a = X(from), b = X(to);
  if (b < LEFT || a > W) return null;
  const x = Math.max(a, LEFT - 1), w = Math.max(Math.min(b, W) - x, 1.5);
  return { x, w };
}

function draw() {
  const chart = $("chart");
  W = Math.max(600, chart.clientWidth);
  geometry = [];
  let y = TOP;
  findActive();
  let hidden = 0;
  D.lanes.forEach((l, i) => {
    if (!laneShown(l)) return;
    if (active && l.kind !== "server" && !active.has(i)) { hidden += l.kind === "thread"; return; }
    const h = l.kind === "watchdog" && !busy.has(i) ? 15 : H[l.kind];
    geometry[i] = { y, h, from: l.kind === "thread" ? y + 34 : y + h / 2 };
    y += h + 4;
  });
  const height = y + 6;
  const svg = sv("svg", { viewBox: `0 0 ${W} ${height}`, height, role: "img", "aria-label": "timeline" });
  defs(svg);
  const body = sv("g", { "clip-path": "url(#body)" });
  svg.append(lanes(), body);
  ticks(body, height);
  faults(body, height);
  overlaps(body, height);
  bands(body);
  truth(body);
  messages(body);
  marks(body, height);
  svg.append(names());
  const hover = sv("line", { id: "hover", class: "hover", y1: TOP - 14, y2: height, x1: -9, x2: -9 });
  svg.append(hover);
  if (hidden) svg.append(sv("text", { class: "soft", x: 8, y: 14 }, `${hidden} threads that only wait are left out`));
  chart.replaceChildren(svg);
}

function defs(svg) {
  const d = sv("defs");
  const clip = sv("clipPath", { id: "body" });
  clip.append(sv("rect", { x: LEFT - 2, y: 0, width: W - LEFT + 2, height: 9999 }));
  d.append(clip);
  // Owners differ in hatching as well as in colour.
  const hatch = ["M-1,1 l2,-2 M0,8 l8,-8 M7,9 l2,-2", "M0,4 l8,0", "M4,0 l0,8", "M-1,7 l2,2 M0,0 l8,8 M7,-1 l2,2", "M0,4 l8,0 M4,0 l0,8", "M0,8 l4,-8 l4,8", "M2,2 l1,0 M6,6 l1,0", "M0,2 l8,0 M0,6 l8,0"];
  hatch.forEach((path, i) => {
    const p = sv("pattern", { id: "o" + i, width: 8, height: 8, patternUnits: "userSpaceOnUse" });
    p.append(sv("rect", { width: 8, height: 8, style: `fill:var(--o${i})` }), sv("path", { d: path, style: "stroke:var(--ink);stroke-width:.7;opacity:.35;fill:none" }));
    d.append(p);
  });
  const f = sv("pattern", { id: "hatchfault", width: 10, height: 10, patternUnits: "userSpaceOnUse" });
  f.append(sv("rect", { width: 10, height: 10, style: "fill:var(--warnbg);opacity:.75" }), sv("path", { d: "M-1,1 l2,-2 M0,10 l10,-10 M9,11 l2,-2", style: "stroke:var(--fault);stroke-width:1;opacity:.5" }));
  d.append(f);
  for (const [id, colour] of [["head", "--ink"], ["headlost", "--bad"], ["headhot", "--mark"]]) {
    const m = sv("marker", { id, viewBox: "0 0 8 8", refX: 7, refY: 4, markerWidth: 7, markerHeight: 7, markerUnits: "userSpaceOnUse", orient: "auto" });
    m.append(sv("path", { d: "M0,0 L8,4 L0,8 z", style: `fill:var(${colour})` }));
    d.append(m);
  }
  svg.append(d);
}

function lanes() {
  const g = sv("g");
  geometry.forEach(o => g.append(sv("rect", { class: "lane", x: 0, y: o.y, width: W, height: o.h })));
  return g;
}
function names() {
  const g = sv("g");
  g.append(sv("rect", { x: 0, y: 0, width: LEFT - 4, height: 9999, style: "fill:var(--bg);opacity:.9" }));
  geometry.forEach((o, i) => {
    const l = D.lanes[i];
    g.append(sv("rect", { class: "lane", x: 0, y: o.y, width: LEFT - 6, height: o.h }));
    g.append(sv("text", { class: "name", x: 8, y: o.y + (o.h < 20 ? 12 : 15) }, label(l.name, LEFT - 12)));
    const sub = { thread: ["", "calls"], watchdog: [], server: ["held by", "lease left", "queue"] }[l.kind];
    if (l.kind === "server") sub.forEach((s, n) => g.append(sv("text", { class: "soft", x: 18, y: o.y + [30, 52, 76][n] }, s)));
    if (l.kind === "thread") g.append(sv("text", { class: "soft", x: 18, y: o.y + 33 }, "its calls"));
  });
  g.append(sv("text", { class: "soft", x: 8, y: 46 }, "since the start"));
  return g;
}

function ticks(g, height) {
  const list = axis.plain ? [] : axis.knots;
  let free = LEFT;
  const put = t => {
    const x = X(t);
    if (x < LEFT || x > W - 30 || x < free) return;
    free = x + 74;
    g.append(sv("line", { class: "tick", x1: x, x2: x, y1: 38, y2: height }), sv("text", { class: "soft", x: x + 3, y: 46 }, at(t)));
  };
  if (axis.plain) {
    const n = Math.max(2, Math.floor((W - LEFT) / 110)), raw = (S.u1 - S.u0) / n, p = 10 ** Math.floor(Math.log10(Math.max(raw, 1)));
    const step = [1, 2, 5, 10].map(k => k * p).find(s => s >= raw);
    for (let t = Math.ceil(S.u0 / step) * step; t < S.u1; t += step) put(t);
  } else for (const t of list) put(t);
  for (const c of D.cuts) {
    const x = X(c.to);
    if (x < LEFT || x > W) continue;
    g.append(sv("line", { class: "cutmark", x1: x, x2: x, y1: 30, y2: height }));
    const t = sv("text", { class: "faulttext", x: x + 3, y: 30 }, `… ${c.events} events left out`);
    g.append(t);
  }
}

function faults(g, height) {
  let free = [0, 0];
  for (const f of D.faults) {
    const b = box(f.from, f.to);
    if (!b) continue;
    const mine = geometry.map((o, i) => [o, D.lanes[i]]).filter(([o, l]) => o && (!f.processes || f.processes.includes(l.process)));
    const to = f.processes ? mine.map(([o]) => o) : [{ y: TOP - 4, h: height - TOP }];
    for (const o of to) {
      const r = sv("rect", { class: "faultrect", x: b.x, y: o.y, width: Math.max(b.w, 3), height: o.h });
      r.append(sv("title", {}, f.text));
      g.append(r);
    }
    const row = free[0] <= b.x ? 0 : 1;
    if (free[row] <= b.x) {
      const s = "⚡ " + f.text;
      g.append(sv("text", { class: "faulttext", x: b.x, y: 11 + row * 11 }, s));
      free[row] = b.x + s.length * 6.3 + 8;
    }
  }
  for (const x of D.gone) {
    const b = box(x.t, D.end);
    if (!b) continue;
    geometry.forEach((o, i) => {
      if (D.lanes[i].process !== x.process) return;
      g.append(sv("rect", { class: "shade", x: b.x, y: o.y, width: b.w, height: o.h }), sv("line", { class: "gone", x1: b.x, x2: b.x, y1: o.y, y2: o.y + o.h }));
      if (D.lanes[i].kind === "thread") g.append(sv("text", { class: "soft", x: b.x + 5, y: o.y + 12 }, label(x.process + " " + x.how, W - b.x)));
    });
  }
}

function overlaps(g, height) {
  let free = 0;
  for (const o of D.overlaps) {
    const b = ofLock(o) && box(o.from, o.to);
    if (!b) continue;
    for (const who of o.who) {
      const i = D.lanes.findIndex(l => l.name === who), geo = geometry[i];
      if (geo) g.append(sv("rect", { class: "overrect", x: b.x, y: geo.y - 2, width: b.w, height: geo.h + 4 }));
    }
    if (b.x < free) continue;
    const text = `${o.who.join(" and ")} both believe to hold ${o.lock}`;
    g.append(sv("text", { class: "overtext", x: b.x + 3, y: 34 }, text));
    free = b.x + text.length * 6.8;
  }
}

function bands(g) {
  for (const x of D.beliefs) {
    const o = geometry[x.lane], b = ofLock(x) && o && box(x.from, x.to);
    if (!b) continue;
    const r = sv("rect", { class: "bandrect belief", x: b.x, y: o.y + 2, width: b.w, height: 16, fill: `url(#o${ownerNo(x.who)})` });
    r.append(sv("title", {}, `${x.who} believes to hold ${x.lock} from ${at(x.from)} to ${at(x.to)}` + (x.over ? ", past its lease: it is paused" : "")));
    g.append(r, sv("text", { x: b.x + 4, y: o.y + 14, "font-weight": 600 }, label(`${x.who} believes to hold ${x.lock}`, b.w - 6)));
  }
  for (const p of D.ops) {
    const o = geometry[p.lane], b = ofLock(p) && o && box(p.from, p.to);
    if (!b) continue;
    const dim = S.judge && !foundNow().some(f => f.ops.includes(p.op)) ? " dim" : "";
    const r = sv("rect", { class: "bar op" + (p.open ? " open" : "") + dim, x: b.x, y: o.y + 22, width: b.w, height: 16, rx: 7 });
    const text = `${p.action} ${p.lock}: ${p.open ? "never returned" : p.outcome}`;
    r.append(sv("title", {}, `${text}, called ${at(p.from)}, ${p.open ? "open to the end" : "returned " + at(p.to)}`));
    g.append(r, sv("text", { class: dim, x: b.x + 6, y: o.y + 34 }, label(D.locks.length > 1 ? text : text.replace(" " + p.lock, ""), b.w - 8)));
  }
  for (const p of D.uses) {
    const o = geometry[p.lane], b = o && box(p.from, p.to);
    if (b) {
      const r = sv("path", { class: "use", d: `M${b.x},${o.y + 38} v4 h${b.w} v-4` });
      r.append(sv("title", {}, `uses ${p.name} from ${at(p.from)} to ${at(p.to)}`));
      g.append(r);
    }
  }
}

function truth(g) {
  // A lease is drawn against the longest of the same hold.
  const longest = new Map(), of = {};
  for (const x of D.truth) {
    const was = of[x.lock];
    x.hold = was && was.owner === x.owner ? was.hold : x.t;
    of[x.lock] = x;
    if (x.owner && x.exp >= 0) longest.set(x.lock + x.hold, Math.max(longest.get(x.lock + x.hold) || 1, x.exp * ms - x.t));
  }
  for (const x of D.truth) {
    const i = D.lanes.findIndex(l => l.kind === "server" && l.lock === x.lock), o = geometry[i], b = o && box(x.t, x.to);
    if (!b) continue;
    if (x.owner) {
      const r = sv("rect", { class: "bandrect truth", x: b.x, y: o.y + 18, width: b.w, height: 16, fill: `url(#o${ownerNo(x.owner)})` });
      r.append(sv("title", {}, `${x.lock} is held by ${x.owner}, count ${x.count}, ` + (x.exp < 0 ? "without end" : "until " + at(x.exp * ms))));
      g.append(r, sv("text", { x: b.x + 4, y: o.y + 30, "font-weight": 600 }, label(`${x.owner} ×${x.count || 1}`, b.w - 4)));
      if (x.exp >= 0) {
                const end = Math.min(x.to, x.exp * ms), y0 = o.y + 58, h = t => Math.max(0, x.exp * ms - t) / longest.get(x.lock + x.hold) * 22;
        let d = `M${X(x.t)},${y0} L${X(x.t)},${y0 - h(x.t)}`;
        const k = axis.knots;
        for (let n = below(k, x.t) + 1; n < k.length && k[n] < end; n++) d += ` L${X(k[n])},${y0 - h(k[n])}`;
        d += ` L${X(end)},${y0 - h(end)} L${X(end)},${y0} z`;
        const lease = sv("path", { class: "lease", d });
        lease.append(sv("title", {}, `the lease of ${x.owner}, to ${at(x.exp * ms)}`));
        g.append(lease);
      }
    } else if (b.w > 34) g.append(sv("text", { class: "soft", x: b.x + 4, y: o.y + 30 }, "free"));
    if (x.queue && x.queue.length) {
      g.append(sv("rect", { class: "queue", x: b.x, y: o.y + 64, width: b.w, height: 16 }),
        sv("text", { x: b.x + 4, y: o.y + 76 }, label(x.queue.join(" › "), b.w - 4)));
    }
  }
}

function messages(g) {
  const e = D.events[S.cur];
  for (const m of D.messages) {
    const c = geometry[m.lane], s = geometry[m.server];
    if (!c || !s || !ofLock(m)) continue;
    const ends = [m.sent, m.exec, m.done, m.lost].filter(t => t >= 0);
    if (!box(Math.min(...ends), Math.max(...ends))) continue;
    const down = c.from < s.y ? 1 : -1, yc = c.from, ys = s.y + 17;
    const hot = e && e.msg === m.id ? " hot" : "", lost = m.lost >= 0 && m.why !== "nobody waits for it";
    const grp = sv("g", { class: "message" + (lost ? " islost" : "") });
    grp.append(sv("title", {}, `${m.name} of ${D.lanes[m.lane].name}, sent ${at(m.sent)}` + (m.exec >= 0 && !m.push ? `, executed ${at(m.exec)} → ${m.reply || ""}` : "") + (m.done >= 0 ? `, arrived ${at(m.done)}` : "") + (lost ? `; lost at ${at(m.lost)}: ${m.dir}, ${m.why}` : "") + (m.hit ? `; ${m.hit}` : "")));
    const arrow = (x1, y1, x2, y2, cls, head) => grp.append(sv("line", { class: "msg " + cls + hot, x1, y1, x2, y2, "marker-end": `url(#${hot ? "headhot" : head})` }));
    const air = (x1, y1, x2, y2) => { // ends on its way
      const x = Math.max(x2, x1 + 16), y = y1 + (y2 - y1) * 0.55;
      arrow(x1, y1, x, y, "lost", "headlost");
      grp.append(sv("text", { class: "cross", x: x - 1, y: y + 9 }, "✕"));
      grp.append(sv("text", { class: "losttext", x: x + 13, y: y + 9 }, `${m.push ? "wake-up" : m.dir + " of " + m.name} lost: ${m.why}`));
    };
    const hit = m.hit ? "hit" : "";
    if (!m.push) {
      if (m.exec >= 0) arrow(X(m.sent), yc, X(m.exec), ys, hit, "head");
      else if (lost && m.dir === "request") air(X(m.sent), yc, X(m.lost), ys);
      else if (m.done >= 0) { // answered on the way
        const x = (X(m.sent) + X(m.done)) / 2, y = yc + (ys - yc) / 2;
        arrow(X(m.sent), yc, x, y, "hit", "head");
        arrow(x, y, X(m.done), yc, "hit reply", "head");
      }
    }
    if (m.exec >= 0) {
      if (m.done >= 0) arrow(X(m.exec), ys, X(m.done), yc, "reply " + hit, "head");
      else if (lost) air(X(m.exec), ys, X(m.lost), yc + down * 2);
      else if (m.lost < 0) {
        const x = X(m.exec) + 24, y = ys + (yc - ys) * 0.5;
        arrow(X(m.exec), ys, x, y, "reply hit", "head");
        grp.append(sv("text", { class: "faulttext", x: x + 4, y: y + 4 }, "never arrives"));
      }
    }
    if (hit && !lost) grp.append(sv("text", { class: "faulttext", x: (X(m.sent) + Math.max(X(m.sent), X(Math.max(m.exec, m.done)))) / 2 + 10, y: yc + (ys - yc) * 0.5 + 12 }, "⚡ " + m.hit));
    if (hot && !lost) grp.append(sv("text", { class: "hottext", x: (X(m.sent) + X(Math.max(m.exec, m.sent))) / 2 + 8, y: yc + (ys - yc) * 0.6 }, m.name));
    g.append(grp);
  }
  for (const x of D.events) {
    if (x.k !== "repeat" || !geometry[x.lane] || !ofLock(x)) continue;
    const px = X(x.t);
    if (px > LEFT && px < W) g.append(sv("text", { class: "soft", x: px + 4, y: geometry[x.lane].y + 45 }, "× " + x.n));
  }
}

function marks(g, height) {
  // The first finding has its name for certain, the others where there is room.
  const taken = [];
  foundNow().forEach((f, n) => {
    if (f.event < 0 || (S.lock && f.locks.length && !f.locks.includes(S.lock))) return;
    const x = X(f.t);
    if (x < LEFT - 2 || x > W) return;
    const grp = sv("g", { class: "mark", "data-judge": f.judge });
    grp.append(sv("title", {}, f.judge + ": " + f.why));
    grp.append(sv("line", { class: "find " + f.class, x1: x, x2: x, y1: TOP - 14, y2: height, opacity: n ? 0.45 : 1 }));
    const w = f.judge.length * 7 + 22, left = x + w > W ? x - w : x;
    if (!taken.some(([a, b]) => left < b && left + w > a)) {
      taken.push([left, left + w]);
      grp.append(sv("rect", { class: "flag " + f.class, x: left, y: TOP - 17, width: w, height: 14 }), sv("text", { class: "flagtext", x: left + 4, y: TOP - 6 }, "▼ " + f.judge));
    }
    g.append(grp);
  });
  const e = D.events[S.cur];
  if (e) {
    const x = X(e.t);
    g.append(sv("line", { class: "cursor", id: "cursor", x1: x, x2: x, y1: TOP - 14, y2: height }));
  }
}

// ---- the state at an instant
function latest(list, t, same) {
  let got = null;
  for (const x of list) if (x.t <= t && same(x)) got = x;
  return got;
}
function showState(t) {
  $("now").textContent = at(t);
  const root = $("state"), owner = {};
  root.replaceChildren();
  const table = (title, rows) => {
    const tb = el("table");
    tb.append(el("caption", {}, title));
    for (const [k, v, cls] of rows) {
      const tr = el("tr");
      tr.append(el("th", { scope: "row" }, k), el("td", cls ? { class: cls } : {}, v));
      tb.append(tr);
    }
    root.append(tb);
  };
  for (const lock of D.locks) {
    if (S.lock && S.lock !== lock) continue;
    const x = latest(D.truth, t, h => h.lock === lock) || {};
    owner[lock] = x.owner || "";
    const rows = [["hash", x.owner ? `{ ${x.owner}: ${x.count || 1} }` : "no such key: the lock is free"]];
    if (x.owner) rows.push(["time to live", x.exp < 0 ? "none: it never ends" : `${span(Math.max(0, x.exp * ms - t))}, to ${at(x.exp * ms)}`]);
    if (x.queue && x.queue.length) {
      rows.push(["queue", x.queue.map((w, i) => `${i + 1}. ${w}`).join("   ")]);
      if (x.deadlines) rows.push(["deadlines", x.queue.filter(w => w in x.deadlines).map(w => `${w} ${at(x.deadlines[w] * ms)}` + (x.deadlines[w] * ms < t ? " (over)" : "")).join("   ")]);
    } else rows.push(["queue", "empty"]);
    table("The server holds of " + lock, rows);
  }
  const channels = [...new Set(D.subs.map(s => s.channel))], heard = [];
  for (const ch of channels) {
    const s = latest(D.subs, t, x => x.channel === ch);
    if (s && s.who && s.who.length) heard.push([ch, s.who.join(", ")]);
  }
  table("Subscribers", heard.length ? heard : [["none", "nobody listens"]]);
  const rows = [];
  D.lanes.forEach((l, i) => {
    if (l.kind !== "thread" || !laneShown(l)) return;
    const says = [];
    let wrong = false;
    const end = D.gone.find(g => g.process === l.process && g.t <= t);
    if (end) says.push(l.process + " " + end.how);
    for (const b of D.beliefs) {
      if (b.lane !== i || b.from > t || t >= b.to || !ofLock(b)) continue;
      let s = `believes to hold ${b.lock} since ${at(b.from)}`;
      if (b.over) s += ", paused past its lease";
      if (owner[b.lock] !== l.name) { s += owner[b.lock] ? `; but the server has it for ${owner[b.lock]}` : "; but on the server it is free"; wrong = true; }
      says.push(s);
    }
    for (const f of D.faults) if (f.processes && f.processes.includes(l.process) && f.from <= t && t < f.to) says.push(f.text);
    const op = D.ops.find(o => o.lane === i && o.from <= t && t < o.to && ofLock(o));
    if (op) says.push(`in ${op.action} ${op.lock} since ${at(op.from)}`);
    const use = D.uses.find(u => u.lane === i && u.from <= t && t < u.to);
    if (use) says.push("uses " + use.name);
    // In a call the answer may be on its way; outside of one nobody knows of this hold.
    const unaware = op || end ? [] : D.locks.filter(k => owner[k] === l.name && !D.beliefs.some(b => b.lane === i && b.lock === k && b.from <= t && t < b.to));
    for (const k of unaware) { says.push(`does not believe to hold ${k}, but the server has it for ${l.name}`); wrong = true; }
    rows.push([l.name, says.join("; ") || "does not believe to hold", wrong ? "wrong" : ""]);
  });
  table("What the threads believe", rows);
}

// ---- the list
function fillList() {
  const list = $("events");
  S.shown = D.events.map((e, i) => i).filter(i => eventShown(D.events[i]));
  const found = new Set(foundNow().map(f => f.event));
  const rows = [];
  let before = -1;
  for (const i of S.shown) {
    const e = D.events[i];
    const cut = D.cuts.find(c => before < c.to && c.to <= e.t && c.from >= before);
    if (cut) rows.push(gapRow(cut));
    before = e.t;
    const li = el("li", { role: "option", id: "e" + i, "data-i": i, class: e.k + (found.has(i) ? " found" : ""), "aria-selected": i === S.cur });
    li.append(el("time", {}, at(e.t)), el("span", {}, e.lane >= 0 ? D.lanes[e.lane].name : "all"), el("span", {}, (found.has(i) ? "▶ " : "") + e.text));
    rows.push(li);
  }
  for (const c of D.cuts) if (c.from >= before && !rows.some(r => r.dataset.cut === String(c.from))) rows.push(gapRow(c));
  list.replaceChildren(...rows);
}
function gapRow(c) {
  const li = el("li", { class: "gap", "data-cut": c.from });
  li.append(el("time", {}, ""), el("span", {}, "…"), el("span", {}, `${c.events} events left out`));
  return li;
}
function select(i, keepView) {
  if (i < 0 || i >= D.events.length) return;
  const old = $("e" + S.cur), now = $("e" + i);
  if (old) old.setAttribute("aria-selected", "false");
  S.cur = i;
  if (now) {
    now.setAttribute("aria-selected", "true");
    $("events").setAttribute("aria-activedescendant", now.id);
    const list = $("events"); // not scrollIntoView, which would move the page
    const top = now.offsetTop - list.offsetTop;
    if (top < list.scrollTop || top + now.offsetHeight > list.scrollTop + list.clientHeight) list.scrollTop = top - list.clientHeight / 2;
  }
  const u = place(D.events[i].t), w = S.u1 - S.u0;
  if (!keepView && (u < S.u0 + w * 0.02 || u > S.u1 - w * 0.02)) view(u - w / 2, u + w / 2);
  draw();
  showState(D.events[i].t);
}
function step(by) {
  const list = S.shown;
  if (!list.length) return;
  let at = list.indexOf(S.cur);
  if (at < 0) at = list.findIndex(i => i > S.cur) - (by > 0 ? 1 : 0);
  select(list[Math.max(0, Math.min(list.length - 1, at + by))]);
}
function view(a, b) {
  const least = axis.plain ? 1e5 : 1, all = last() - first(), w = Math.max(least, Math.min(all * 1.04, b - a));
  a = Math.max(first() - all * 0.02, Math.min(a, last() + all * 0.02 - w));
  S.u0 = a;
  S.u1 = a + w;
}
function zoom(by, u) {
  if (u === undefined) u = D.events.length ? place(D.events[S.cur].t) : (S.u0 + S.u1) / 2;
  if (u < S.u0 || u > S.u1) u = (S.u0 + S.u1) / 2;
  view(u - (u - S.u0) * by, u + (S.u1 - u) * by);
  draw();
}
function around(i, before, after) {
  const a = D.events[Math.max(0, i - before)], b = D.events[Math.min(D.events.length - 1, i + after)];
  const pad = axis.plain ? 2 * ms : 1;
  view(place(a.t) - pad, place(b.t) + pad);
}
let nextFinding = 0;
function goFinding(n) {
  const f = D.findings[n];
  if (!f || f.event < 0) return;
  nextFinding = n + 1;
  around(f.event, 16, 8);
  select(f.event, true);
}
function findNext() {
  const ok = D.findings.map((f, i) => i).filter(i => D.findings[i].event >= 0 && (!S.judge || D.findings[i].judge === S.judge));
  if (ok.length) goFinding(ok.find(i => i >= nextFinding) ?? ok[0]);
}
function filter() {
  S.lock = $("lock").value;
  S.process = $("process").value;
  S.judge = $("judge").value;
  for (const li of document.querySelectorAll("#findings li[data-judge]")) li.hidden = S.judge !== "" && li.dataset.judge !== S.judge;
  fillList();
  draw();
  if (D.events.length) showState(D.events[S.cur].t);
}

// ---- hands
$("events").addEventListener("click", e => {
  const li = e.target.closest("li[data-i]");
  if (li) select(Number(li.dataset.i));
});
for (const b of document.querySelectorAll(".go")) b.addEventListener("click", () => { goFinding(Number(b.dataset.finding)); $("chart").scrollIntoView({ block: "nearest" }); });
for (const b of document.querySelectorAll("#moments button")) b.addEventListener("click", () => {
  const i = below(D.events.map(e => e.t), Number(b.dataset.at));
  if (i >= 0) { around(i, 16, 8); select(i, true); }
});
for (const id of ["lock", "process", "judge"]) $(id).addEventListener("change", filter);
$("back").addEventListener("click", () => step(-1));
$("next").addEventListener("click", () => step(1));
$("in").addEventListener("click", () => zoom(0.5));
$("out").addEventListener("click", () => zoom(2));
$("all").addEventListener("click", () => { view(first(), last()); draw(); });
$("find").addEventListener("click", findNext);
$("find").disabled = !D.findings.some(f => f.event >= 0);
$("true").addEventListener("change", () => {
  const a = instant(S.u0), b = instant(S.u1);
  axis.plain = $("true").checked;
  view(place(a), place(b));
  draw();
});
document.documentElement.dataset.theme = matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light";
$("quiet").parentElement.hidden = D.lanes.length <= MANY;
$("quiet").checked = D.lanes.length > MANY;
$("quiet").addEventListener("change", draw);
$("theme").addEventListener("click", () => {
  document.documentElement.dataset.theme = document.documentElement.dataset.theme === "dark" ? "light" : "dark";
});
const chart = $("chart");
let drag = null;
const xOf = e => (e.clientX - chart.getBoundingClientRect().left) * (W / chart.clientWidth);
chart.addEventListener("wheel", e => {
  if (e.ctrlKey || e.metaKey) return;
  e.preventDefault();
  if (e.shiftKey || Math.abs(e.deltaX) > Math.abs(e.deltaY)) {
    const d = (e.deltaX || e.deltaY) / W * (S.u1 - S.u0);
    view(S.u0 + d, S.u1 + d);
    draw();
  } else zoom(e.deltaY > 0 ? 1.2 : 1 / 1.2, U(xOf(e)));
}, { passive: false });
chart.addEventListener("pointerdown", e => { drag = { x: xOf(e), u0: S.u0, u1: S.u1, moved: false }; });
addEventListener("pointermove", e => {
  if (!drag) return;
  const d = xOf(e) - drag.x;
  if (Math.abs(d) > 4) drag.moved = true;
  if (drag.moved) {
    const u = d / (W - LEFT) * (drag.u1 - drag.u0);
    view(drag.u0 - u, drag.u1 - u);
    draw();
  }
});
addEventListener("pointerup", e => {
  if (drag && !drag.moved && xOf(e) > LEFT) {
    const t = instant(U(xOf(e))), i = below(D.events.map(x => x.t), t);
    select(Math.max(0, i), true);
  }
  drag = null;
});
chart.addEventListener("pointermove", e => {
  if (drag || xOf(e) < LEFT) return;
  const h = $("hover");
  if (h) { h.setAttribute("x1", xOf(e)); h.setAttribute("x2", xOf(e)); }
  showState(Math.round(Math.max(D.from, Math.min(D.end, instant(U(xOf(e)))))));
});
chart.addEventListener("pointerleave", () => {
  const h = $("hover");
  if (h) { h.setAttribute("x1", -9); h.setAttribute("x2", -9); }
  if (D.events.length) showState(D.events[S.cur].t);
});
addEventListener("keydown", e => {
  if (e.ctrlKey || e.metaKey || e.altKey || /^(SELECT|INPUT|TEXTAREA)$/.test(e.target.tagName)) return;
  const inList = e.target === $("events");
  const keys = {
    ArrowRight: () => step(1), ArrowLeft: () => step(-1), "+": () => zoom(0.5), "=": () => zoom(0.5), "-": () => zoom(2),
    0: () => { view(first(), last()); draw(); }, f: findNext,
  };
  if (inList || e.target === chart) Object.assign(keys, { Home: () => select(S.shown[0] || 0), End: () => select(S.shown[S.shown.length - 1] || 0) });
  if (inList) Object.assign(keys, { ArrowDown: () => step(1), ArrowUp: () => step(-1) });
  if (keys[e.key]) { e.preventDefault(); keys[e.key](); }
});
addEventListener("resize", draw);

// porcupine's picture is a page of its own, kept in this one.
const pictures = JSON.parse($("pictures").textContent) || [];
for (const b of document.querySelectorAll(".picture")) b.addEventListener("click", () => {
  open(URL.createObjectURL(new Blob([pictures[Number(b.dataset.picture)].html], { type: "text/html" })));
});

function curve() {
  const c = D.blame;
  if (!c || !$("curve")) return;
  const w = 900, h = 190, svg = sv("svg", { viewBox: `0 0 ${w} ${h}`, role: "img", "aria-label": "share of failing runs by decisions kept" });
  const x = k => 50 + k / Math.max(1, c.of) * (w - 70), y = p => 150 - p * 130;
  for (const p of [0, 0.5, 1]) svg.append(sv("line", { class: "tick", x1: 50, x2: w - 20, y1: y(p), y2: y(p) }), sv("text", { class: "soft", x: 12, y: y(p) + 4 }, p * 100 + " %"));
  svg.append(sv("polyline", { class: "line", points: c.points.map(p => `${x(p.kept)},${y(p.failed / c.runs)}`).join(" ") }));
  for (const p of c.points) {
    const dot = sv("circle", { class: "dot", cx: x(p.kept), cy: y(p.failed / c.runs), r: 3 });
    dot.append(sv("title", {}, `${p.kept} decisions kept${p.stream ? ", the last " + p.stream + " at " + at(p.at) : ""}: ${p.failed} of ${c.runs} failed`));
    svg.append(dot);
  }
  svg.append(sv("text", { class: "soft", x: 50, y: 170 }, "0 decisions kept"), sv("text", { class: "soft", x: w - 130, y: 170 }, c.of + " decisions kept"));
  $("curve").append(svg);
}

fillList();
curve();
if (D.events.length) {
  const f = D.findings.find(f => f.event >= 0), i = f ? f.event : 0;
  if (D.events.length > 200) around(i, 50, 30);
  select(i, true);
} else { draw(); showState(D.from); }
