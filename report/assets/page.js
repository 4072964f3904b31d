"use strict";
// The page of one run. D is the view that report.build made: instants are
// nanoseconds since the start.
const D = JSON.parse(document.getElementById("data").textContent);
for (const k of ["events", "ops", "beliefs", "overlaps", "truth", "messages", "faults", "subs", "uses", "gone", "findings", "locks", "cuts", "lanes", "names"]) D[k] = D[k] || [];
for (const x of D.truth) if (x.queue) {
  x.queue = x.queue.map(i => D.names[i]);
  x.line = x.queue.join(" › ");
}
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
const at = ns => (ns / 1e9).toFixed(D.decimals + 3).slice(0, -3) + "s";
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
  const wide = new Set(); // gaps of a belief so short that it would not be seen
  for (const o of D.overlaps.concat(D.beliefs)) {
    const i = below(knots, o.from);
    if (o.to - o.from < ms && below(knots, o.to) - i <= 3) for (let j = i + 1; knots[j] <= o.to; j++) wide.add(j);
  }
  const even = [0];
  for (let i = 1; i < knots.length; i++) {
    const gap = knots[i] - knots[i - 1];
    even.push(even[i - 1] + (wide.has(i) ? 2.5 : gap < 1e4 ? 0.2 : 0.7 + 0.4 * Math.log2(1 + gap / ms)));
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

// Whatever is drawn keeps its places on the axis: a from, b to. Leases keep the
// corners of what is left of them.
function lay() {
  for (const list of [D.ops, D.beliefs, D.uses, D.faults, D.overlaps]) for (const x of list) { x.a = place(x.from); x.b = place(x.to); }
  for (const x of D.gone) { x.a = place(x.t); x.b = place(D.end); }
  for (const m of D.messages) {
    [m.us, m.ue, m.ud, m.ul] = [m.sent, m.exec, m.done, m.lost].map(t => t < 0 ? -1 : place(t));
    m.a = m.us;
    m.b = Math.max(m.us, m.ue, m.ud, m.ul);
  }
  // A lease is drawn against the longest of the same hold.
  const longest = new Map(), of = {};
  for (const x of D.truth) {
    const was = of[x.lock];
    x.a = place(x.t);
    x.b = place(x.to);
    x.hold = was && was.owner === x.owner ? was.hold : x.lock + x.t;
    of[x.lock] = x;
    if (x.owner && x.exp >= 0) longest.set(x.hold, Math.max(longest.get(x.hold) || 1, x.exp * ms - x.t));
  }
  for (const x of D.truth) {
    x.lease = null;
    if (!x.owner || x.exp < 0) continue;
    const end = Math.min(x.to, x.exp * ms), k = axis.knots, left = t => Math.max(0, x.exp * ms - t) / longest.get(x.hold);
    x.lease = [[x.a, left(x.t)]];
    if (!axis.plain) for (let n = below(k, x.t) + 1; n < k.length && k[n] < end; n++) x.lease.push([axis.even[n], left(k[n])]);
    x.lease.push([place(end), left(end)]);
  }
}

// ---- what is chosen
const S = { u0: first(), u1: last(), cur: 0, t: D.from, lock: "", process: "", judge: "", shown: [] };
const owners = D.lanes.filter(l => l.kind === "thread").map(l => l.name);
const ownerNo = who => Math.max(0, owners.indexOf(who)) % 8;

// Of many threads most only wait: those are shown that do something in view, or
// that a finding there names.
const MANY = 14;
let active = null; // of the lanes; null: all are shown
function findActive() {
  active = null;
  if (!$("quiet").checked) return;
  const now = u => u >= S.u0 && u <= S.u1;
  active = new Set([D.events.length ? D.events[S.cur].lane : -1]);
  for (const b of D.beliefs) if (b.a <= S.u1 && b.b >= S.u0) active.add(b.lane);
  for (const o of D.ops) if (now(o.a) || !o.open && now(o.b)) active.add(o.lane);
  for (const m of D.messages) if (now(m.us) || now(m.ud) || now(m.ul)) active.add(m.lane);
  for (const f of foundNow()) {
    if (!now(place(f.t))) continue;
    for (const i of lanesOf(f)) active.add(i);
  }
}
// The lanes that a finding is about: of the calls that it names, of the threads
// in its sentence.
function lanesOf(f) {
  if (!f.lanes) {
    const words = new Set(f.why.split(/[\s,;:]+/)), calls = new Set(f.ops);
    f.lanes = [...new Set([...D.lanes.keys()].filter(i => words.has(D.lanes[i].name)).concat(D.ops.filter(o => calls.has(o.op)).map(o => o.lane)))];
  }
  return f.lanes;
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

// ---- the chart: a canvas for what lies along the axis, and above it names and
// marks as SVG.
const TOP = 66, RIGHT = 12, SERVER = 84;
let LEFT = 132; // the room for the names of the lanes
const busy = new Set(D.messages.map(m => m.lane)), holders = new Set(D.beliefs.map(b => b.lane));
const serverOf = new Map(D.lanes.map((l, i) => [l.lock, i]).filter(([, i]) => D.lanes[i].kind === "server"));
const chart = $("chart"), canvas = $("ink"), over = $("over"), ink = canvas.getContext("2d");
let W = 1200, tall = 300, shownTall = 300, pinned = 0, geometry = [], drawn = [], colour = {}, hatch = {};
const X = u => LEFT + (u - S.u0) / (S.u1 - S.u0) * (W - LEFT - RIGHT);
const U = x => S.u0 + (x - LEFT) / (W - LEFT - RIGHT) * (S.u1 - S.u0);

// The first of several texts, the longest first, that has room. If none has, the last one is cut.
function label(width, ...texts) {
  const n = Math.floor(width / 6.1), s = texts[texts.length - 1];
  return texts.find(t => inked(t) <= width) || (n < 3 ? "" : s.slice(0, n - 1) + "…");
}
const widths = new Map();
function inked(text) { // of a bold text, in pixels
  if (!widths.has(text)) {
    if (widths.size > 5000) widths.clear();
    ink.font = "600 11px system-ui,sans-serif";
    widths.set(text, ink.measureText(text).width);
  }
  return widths.get(text);
}
// A stretch of the axis cut to what is in view; null when out of it.
function box(o) {
  if (o.b < S.u0 || o.a > S.u1) return null;
  const x = Math.max(X(o.a), LEFT - 1), w = Math.max(Math.min(X(o.b), W) - x, 1.5);
  return x + w < LEFT ? null : { x, w };
}

// Owners differ in hatching as well as in colour.
const hatches = ["M-1,1 l2,-2 M0,8 l8,-8 M7,9 l2,-2", "M0,4 l8,0", "M4,0 l0,8", "M-1,7 l2,2 M0,0 l8,8 M7,-1 l2,2", "M0,4 l8,0 M4,0 l0,8", "M0,8 l4,-8 l4,8", "M2,2 l1,0 M6,6 l1,0", "M0,2 l8,0 M0,6 l8,0"];
function dress() { // takes the colours of light or dark
  const style = getComputedStyle(document.documentElement);
  for (const k of ["bg", "fg", "soft", "line", "lane", "bad", "warn", "warnbg", "bar", "ink", "fault", "mark"]) colour[k] = style.getPropertyValue("--" + k);
  const tile = (size, back, path, line, strength) => {
    const scale = devicePixelRatio || 1, c = el("canvas", { width: size * scale, height: size * scale }), g = c.getContext("2d");
    g.scale(scale, scale);
    g.fillStyle = back;
    g.fillRect(0, 0, size, size);
    g.globalAlpha = strength;
    g.strokeStyle = line;
    g.lineWidth = 0.7;
    g.stroke(new Path2D(path));
    const p = ink.createPattern(c, "repeat");
    p.setTransform(new DOMMatrix().scale(1 / scale));
    return p;
  };
  hatches.forEach((path, i) => { hatch[i] = tile(8, style.getPropertyValue("--o" + i), path, colour.ink, 0.35); });
  hatch.fault = tile(10, colour.warnbg, "M-1,1 l2,-2 M0,10 l10,-10 M9,11 l2,-2", colour.fault, 0.5);
}

// The lanes that are shown, each with its place. Those of the server stay in
// view below when the others are too many and scroll.
function arrange() {
  W = Math.max(320, chart.clientWidth);
  LEFT = Math.round(Math.max(132, Math.min(W * 0.25, 18 + Math.max(...D.lanes.map(l => inked(l.name))))));
  findActive();
  let y = TOP, hidden = 0;
  const rows = [], below = [];
  D.lanes.forEach((l, i) => {
    if (!laneShown(l)) return;
    if (active && l.kind !== "server" && !active.has(i)) { hidden += l.kind === "thread"; return; }
    const h = l.kind === "server" ? SERVER : l.kind === "watchdog" ? busy.has(i) ? 24 : 14 : holders.has(i) ? 44 : 26;
    (l.kind === "server" ? below : rows).push([i, h]);
  });
  const above = chart.getBoundingClientRect().top + scrollY; // findings are as tall as they are
  const most = Math.max(300, innerHeight - above - 60), size = list => list.reduce((n, [, h]) => n + h + 4, 0);
  tall = TOP + size(rows) + size(below) + 2;
  shownTall = Math.min(tall, most);
  pinned = size(below) < shownTall / 2 ? size(below) : 0;
  $("tall").style.height = tall + "px";
  chart.style.height = shownTall + 2 + "px";
  const scroll = Math.min(chart.scrollTop, tall - shownTall);
  geometry = [];
  const put = (list, dy, from, to) => {
    for (const [i, h] of list) {
      const top = y + dy, l = D.lanes[i];
      if (top < to && top + h > from) geometry[i] = { y: top, h, call: l.kind === "thread" && h === 44 ? top + 22 : top + 5, from: l.kind === "server" ? top + 17 : l.kind === "thread" ? (h === 44 ? top + 34 : top + 14) : top + h / 2 };
      y += h + 4;
    }
  };
  put(rows, -scroll, TOP, shownTall - pinned);
  put(below, pinned ? shownTall - tall : -scroll, TOP, shownTall);
  return hidden;
}

let waiting = 0;
function draw() { waiting = 0; paint(); }
// Hands that move ask for a picture, and get one a frame.
function soon() { if (!waiting) waiting = requestAnimationFrame(draw); }

function paint() {
  if (waiting) cancelAnimationFrame(waiting);
  waiting = 0;
  const hidden = arrange(), scale = devicePixelRatio || 1;
  const w = Math.round(W * scale), h = Math.round(shownTall * scale);
  if (canvas.width !== w || canvas.height !== h) {
    canvas.width = w;
    canvas.height = h;
    for (const e of [canvas, over]) { e.style.height = shownTall + "px"; e.style.width = W + "px"; }
    chart.style.setProperty("--tall", shownTall + "px");
    over.setAttribute("viewBox", `0 0 ${W} ${shownTall}`);
  }
  ink.setTransform(scale, 0, 0, scale, 0, 0);
  ink.clearRect(0, 0, W, shownTall);
  drawn = [];
  ink.fillStyle = colour.lane;
  geometry.forEach(o => ink.fillRect(0, o.y, W, o.h));
  ink.save();
  ink.beginPath();
  ink.rect(LEFT - 2, 0, W - LEFT + 2, shownTall);
  ink.clip();
  ticks();
  const lanesClip = (from, to) => { ink.save(); ink.beginPath(); ink.rect(LEFT - 2, from, W, to - from); ink.clip(); };
  lanesClip(TOP - 4, shownTall);
  faults();
  bands();
  truth();
  messages();
  ink.restore();
  sayNotes();
  ink.restore();
  names(hidden);
  marks();
}

// Words that must be read, whatever lies below them, are said last.
let words = [];
function say(text, x, y, fill, o = {}) {
  if (!text) return;
  ink.font = (o.bold ? "600 " : "") + "11px system-ui,sans-serif";
  if (o.halo) {
    ink.strokeStyle = colour.bg;
    ink.lineWidth = 3;
    ink.lineJoin = "round";
    ink.strokeText(text, x, y);
  }
  ink.fillStyle = fill;
  ink.fillText(text, x, y);
}
function note(text, x, y, fill) { words.push({ text, x, y, fill }); }
// One that would lie over another moves a line up or down, two at most; where
// there is no room only its sign stays. The head of the chart keeps its lines apart itself.
function sayNotes() {
  const placed = [];
  for (const t of words) {
    const w = t.text.length * 6.6, free = y => y < shownTall - 2 && !placed.some(p => t.x < p.x + p.w && p.x < t.x + w && Math.abs(p.y - y) < 11);
    const y = t.y < TOP - 4 ? t.y : [0, 12, -12, 24, -24].map(d => t.y + d).find(y => y > TOP && free(y));
    if (y === undefined || placed.length > 200) {
      say(t.text.slice(0, 1), t.x, t.y, t.fill, { bold: true, halo: true });
      continue;
    }
    placed.push({ x: t.x, y, w });
    say(t.text, t.x, y, t.fill, { bold: true, halo: true });
  }
  words = [];
  notes = placed;
}
let notes = []; // where words were said, for the tests
function rect(kind, b, y, h, o) {
  if (o.fill) { ink.fillStyle = o.fill; ink.fillRect(b.x, y, b.w, h); }
  if (o.line) {
    ink.strokeStyle = o.line;
    ink.lineWidth = o.width || 0.8;
    ink.setLineDash(o.dash || []);
    ink.strokeRect(b.x, y, b.w, h);
    ink.setLineDash([]);
  }
  drawn.push({ kind, x: b.x, y, w: b.w, h, text: o.text, fill: o.fill });
}

function ticks() {
  ink.strokeStyle = colour.line;
  ink.lineWidth = 1;
  const put = (u, t) => {
    const x = Math.round(X(u)) + 0.5;
    ink.beginPath();
    ink.moveTo(x, 38);
    ink.lineTo(x, shownTall);
    ink.stroke();
    say(at(t), Math.min(x + 3, W - inked(at(t))), 46, colour.soft);
  };
  if (axis.plain) {
    const n = Math.max(2, Math.floor((W - LEFT) / 110)), raw = (S.u1 - S.u0) / n, p = 10 ** Math.floor(Math.log10(Math.max(raw, 1)));
    const step = [1, 2, 5, 10].map(k => k * p).find(s => s >= raw);
    for (let t = Math.ceil(S.u0 / step) * step; t < S.u1; t += step) put(t, t);
  } else {
    const room = U(LEFT + Math.max(74, inked(at(D.end)) + 12)) - U(LEFT);
    for (let i = Math.max(0, below(axis.even, S.u0)); i < axis.knots.length && X(axis.even[i]) < W - 30;) {
      if (axis.even[i] >= S.u0) put(axis.even[i], axis.knots[i]);
      const next = axis.even[i] < S.u0 ? S.u0 : axis.even[i] + room;
      i = Math.max(i + 1, below(axis.even, next) + (axis.even[below(axis.even, next)] < next ? 1 : 0));
    }
  }
  for (const c of D.cuts) {
    const x = X(place(c.to));
    if (x < LEFT || x > W) continue;
    rect("cut", { x, w: 0.1 }, 30, shownTall, { line: colour.warn, width: 2, dash: [2, 4], text: `${c.events} events left out` });
    note(`… ${c.events} events left out`, x + 3, 30, colour.fault);
  }
}

function faults() {
  const free = [0, 0];
  for (const f of D.faults) {
    const b = box(f);
    if (!b) continue;
    b.w = Math.max(b.w, 3);
    const o = { fill: hatch.fault, line: colour.fault, dash: [4, 3], text: f.text };
    if (!f.processes) rect("fault", b, TOP - 4, shownTall - TOP, o);
    else geometry.forEach((g, i) => { if (f.processes.includes(D.lanes[i].process)) rect("fault", b, g.y, g.h, o); });
    const row = free[0] <= b.x ? 0 : 1;
    if (free[row] <= b.x) {
      const s = "⚡ " + f.text;
      note(s, b.x, 11 + row * 11, colour.fault);
      free[row] = b.x + s.length * 6.3 + 8;
    }
  }
  for (const x of D.gone) {
    const b = box(x);
    if (!b) continue;
    geometry.forEach((o, i) => {
      if (D.lanes[i].process !== x.process) return;
      ink.globalAlpha = 0.07;
      rect("gone", b, o.y, o.h, { fill: colour.fg, text: `${x.process} ${x.how} at ${at(x.t)}` });
      ink.globalAlpha = 1;
      ink.fillStyle = x.how === "died" ? colour.bad : colour.soft;
      ink.fillRect(b.x - 1, o.y, 2, o.h);
      if (D.lanes[i].kind === "thread") say(label(W - b.x - 5, x.process + " " + x.how, x.how), b.x + 5, o.y + 12, colour.soft);
    });
  }
}

function overlaps() {
  let free = 0;
  for (const o of D.overlaps) {
    const b = ofLock(o) && box(o);
    if (!b) continue;
    for (const who of o.who) {
      const geo = geometry[laneNo.get(who)];
      if (!geo) continue;
      const text = `${o.who.join(" and ")} both believe to hold ${o.lock} from ${at(o.from)} to ${at(o.to)}`;
      ink.globalAlpha = 0.13;
      rect("overlap", b, geo.y - 2, geo.h + 4, { fill: colour.bad, text });
      ink.globalAlpha = 1;
      rect("overlap", b, geo.y - 2, geo.h + 4, { line: colour.bad, width: 1.5, text });
    }
    if (b.x < free) continue;
    const both = o.who.join(" and "), text = label(W - LEFT, `${both} both believe to hold ${o.lock}`, `${both} believe to hold it`, "two believe to hold it");
    const x = Math.max(LEFT, Math.min(b.x + 3, W - inked(text)));
    note(text, x, 34, colour.bad);
    free = x + inked(text);
  }
}

function bands() {
  for (const x of D.beliefs) {
    const o = geometry[x.lane], b = o && ofLock(x) && box(x);
    if (!b) continue;
    rect("belief", b, o.y + 2, 16, { fill: hatch[ownerNo(x.who)], line: colour.ink, text: `${x.who} believes to hold ${x.lock} from ${at(x.from)} to ${at(x.to)}` + (x.over ? ", past its lease: it is paused" : "") });
    say(label(b.w - 6, `${x.who} believes to hold ${x.lock}`, `${x.who} believes to hold it`, `${x.who} believes`, x.who), b.x + 4, o.y + 14, colour.fg, { bold: true });
  }
  overlaps();
  const named = S.judge && new Set(foundNow().flatMap(f => f.ops));
  for (const p of D.ops) {
    const o = geometry[p.lane], b = o && ofLock(p) && box(p);
    if (!b) continue;
    const text = `${p.action} ${p.lock}: ${p.open ? "never returned" : p.outcome}`;
    ink.globalAlpha = named && !named.has(p.op) ? 0.15 : 1;
    ink.fillStyle = colour.bar;
    ink.strokeStyle = colour.ink;
    ink.lineWidth = 0.8;
    ink.setLineDash(p.open ? [3, 2] : []);
    ink.beginPath();
    if (b.w > 14) ink.roundRect(b.x, o.call, b.w, 16, 7);
    else ink.rect(b.x, o.call, b.w, 16);
    ink.fill();
    ink.stroke();
    ink.setLineDash([]);
    drawn.push({ kind: "op", x: b.x, y: o.call, w: b.w, h: 16, text: `${text}, called ${at(p.from)}, ${p.open ? "open to the end" : "returned " + at(p.to)}` });
    const room = (b.w - 7) * 1.1; // of a text that is not bold
    const short = `${p.action}: ${p.open ? "never returned" : p.outcome}`;
    say(D.locks.length > 1 ? label(room, text, `${p.action} ${p.lock}`, p.action) : label(room, short, p.action), b.x + 6, o.call + 12, colour.fg);
    ink.globalAlpha = 1;
  }
  for (const p of D.uses) {
    const o = geometry[p.lane], b = o && box(p);
    if (!b) continue;
    ink.strokeStyle = colour.ink;
    ink.lineWidth = 2;
    ink.stroke(new Path2D(`M${b.x},${o.call + 16} v4 h${b.w} v-4`));
    drawn.push({ kind: "use", x: b.x, y: o.call + 16, w: b.w, h: 5, text: `uses ${p.name} from ${at(p.from)} to ${at(p.to)}` });
  }
}

function truth() {
  for (const x of D.truth) {
    const o = geometry[serverOf.get(x.lock)], b = o && box(x);
    if (!b) continue;
    if (x.owner) {
      rect("truth", b, o.y + 18, 16, { fill: hatch[ownerNo(x.owner)], line: colour.ink, text: `${x.lock} is held by ${x.owner}, count ${x.count}, ` + (x.exp < 0 ? "without end" : "until " + at(x.exp * ms)) });
      say(label(b.w - 4, `${x.owner} ×${x.count || 1}`, x.owner), b.x + 4, o.y + 30, colour.fg, { bold: true });
      if (x.lease) {
        const y = o.y + 58;
        ink.beginPath();
        ink.moveTo(X(x.lease[0][0]), y);
        for (const [u, left] of x.lease) ink.lineTo(X(u), y - left * 22);
        ink.lineTo(X(x.lease[x.lease.length - 1][0]), y);
        ink.closePath();
        ink.globalAlpha = 0.18;
        ink.fillStyle = colour.ink;
        ink.fill();
        ink.globalAlpha = 1;
        ink.strokeStyle = colour.ink;
        ink.lineWidth = 1;
        ink.stroke();
        drawn.push({ kind: "lease", x: b.x, y: y - 22, w: b.w, h: 22, text: `the lease of ${x.owner}, to ${at(x.exp * ms)}` });
      }
    } else if (b.w > 34) say("free", b.x + 4, o.y + 30, colour.soft);
    if (x.queue && x.queue.length) {
      rect("queue", b, o.y + 64, 16, { line: colour.soft, dash: [2, 2], text: "in the queue: " + x.line });
      say(label(b.w - 4, x.line), b.x + 4, o.y + 76, colour.fg);
    }
  }
}

function arrow(x1, y1, x2, y2, o = {}) {
  ink.globalAlpha = o.strength || 1;
  ink.strokeStyle = ink.fillStyle = o.colour || colour.ink;
  ink.lineWidth = o.width || 1;
  ink.setLineDash(o.reply ? [5, 3] : []);
  ink.beginPath();
  ink.moveTo(x1, y1);
  ink.lineTo(x2, y2);
  ink.stroke();
  ink.setLineDash([]);
  const dx = x2 - x1, dy = y2 - y1, n = Math.hypot(dx, dy) || 1, a = dx / n * 7, b = dy / n * 7;
  ink.beginPath();
  ink.moveTo(x2, y2);
  ink.lineTo(x2 - a - b * 0.5, y2 - b + a * 0.5);
  ink.lineTo(x2 - a + b * 0.5, y2 - b - a * 0.5);
  ink.fill();
  ink.globalAlpha = 1;
  drawn.push({ kind: o.kind || "message", x: x1, y: y1, x2, y2, text: o.text });
}

// A message that ends on its way ends between two lanes, the nearest to y of those between
// its own lane and the server's: on a lane it would seem to be for a thread that it is not for.
function apartFromLanes(y, from, to) {
  let best = y, far = Infinity;
  geometry.forEach(o => {
    const edge = from < to ? o.y - 2 : o.y + o.h + 2;
    if ((edge - from) * (to - edge) > 0 && Math.abs(edge - y) < far) { best = edge; far = Math.abs(edge - y); }
  });
  return best;
}

// Those that cannot be told apart are drawn once: of plain ones of a lane, one
// in so many pixels.
const APART = 2.5;
function messages() {
  const e = D.events[S.cur], before = new Map();
  for (const m of D.messages) {
    if (m.b < S.u0 || m.a > S.u1) continue;
    const c = geometry[m.lane], s = geometry[m.server];
    if (!c || !s || !ofLock(m)) continue;
    const hot = e && e.msg === m.id && m.id > 0, lost = m.lost >= 0 && m.why !== "nobody waits for it";
    const xs = X(m.us);
    if (!hot && !lost && !m.hit) {
      const key = m.lane * 1e4 + m.server, x = before.get(key);
      if (x !== undefined && Math.abs(xs - x) < APART) continue;
      before.set(key, xs);
    }
    const ys = s.from, down = c.from < ys ? 1 : -1, yc = c.from;
    const text = `${m.name} of ${D.lanes[m.lane].name}, sent ${at(m.sent)}` + (m.exec >= 0 && !m.push ? `, executed ${at(m.exec)} → ${m.reply || ""}` : "") + (m.done >= 0 ? `, arrived ${at(m.done)}` : "") + (lost ? `; lost at ${at(m.lost)}: ${m.dir}, ${m.why}` : "") + (m.hit ? `; ${m.hit}` : "");
    const plain = hot ? { colour: colour.mark, width: 2, text } : m.hit ? { colour: colour.fault, width: 1.6, text } : { strength: 0.55, text }, reply = { ...plain, reply: true };
    const air = (x1, y1, x2, y2) => { // ends on its way
      const x = Math.max(x2, x1 + 16), y = apartFromLanes(y1 + (y2 - y1) * 0.55, y1, y2);
      arrow(x1, y1, x, y, { colour: colour.bad, width: 1.8, kind: "lost", text });
      const said = `✕ ${m.push ? "wake-up" : m.dir + " of " + m.name} lost: ${m.why}`;
      note(said, Math.min(x - 1, W - said.length * 6.3), y + 9, colour.bad);
    };
    if (!m.push) {
      if (m.exec >= 0) arrow(xs, yc, X(m.ue), ys, plain);
      else if (lost && m.dir === "request") air(xs, yc, X(m.ul), ys);
      else if (m.done >= 0) { // answered on the way
        const x = (xs + X(m.ud)) / 2, y = apartFromLanes(yc + (ys - yc) / 2, yc, ys);
        arrow(xs, yc, x, y, plain);
        arrow(x, y, X(m.ud), yc, reply);
      }
    }
    if (m.exec >= 0) {
      if (m.done >= 0) arrow(X(m.ue), ys, X(m.ud), yc, reply);
      else if (lost) air(X(m.ue), ys, X(m.ul), yc + down * 2);
      else if (m.lost < 0) {
        const x = X(m.ue) + 24, y = apartFromLanes(ys + (yc - ys) * 0.5, ys, yc);
        arrow(X(m.ue), ys, x, y, { ...reply, colour: colour.fault, kind: "unanswered" });
        note("never arrives", x + 4, y + 4, colour.fault);
      }
    }
    if (m.hit && !lost) note("⚡ " + m.hit, (xs + Math.max(xs, X(Math.max(m.ue, m.ud, m.us)))) / 2 + 10, yc + (ys - yc) * 0.5 + 12, colour.fault);
    if (hot && !lost) note(m.name, (xs + X(Math.max(m.ue, m.us))) / 2 + 8, yc + (ys - yc) * 0.6, colour.mark);
  }
  for (const x of repeats) {
    const o = geometry[x.lane];
    if (!o || !ofLock(x)) continue;
    const px = X(place(x.t));
    if (px > LEFT && px < W) say("× " + x.n, px + 4, o.call + 22, colour.soft);
  }
}
const repeats = D.events.filter(x => x.k === "repeat"), laneNo = new Map(D.lanes.map((l, i) => [l.name, i]));

// What lies at a place of the chart: the nearest line, else what was drawn last.
function under(x, y) {
  let best = 4, told = "", box = "";
  for (const d of drawn) {
    if (!d.text) continue;
    if (d.x2 === undefined) {
      if (x >= d.x - 1 && x <= d.x + Math.max(d.w, 2) && y >= d.y && y <= d.y + d.h) box = d.text;
    } else {
      const far = apart(d, x, y);
      if (far < best) { best = far; told = d.text; }
    }
  }
  return told || box;
}
function apart(d, x, y) { // from a line
  const dx = d.x2 - d.x, dy = d.y2 - d.y, f = Math.max(0, Math.min(1, ((x - d.x) * dx + (y - d.y) * dy) / (dx * dx + dy * dy || 1)));
  return Math.hypot(x - d.x - f * dx, y - d.y - f * dy);
}

// The names change with the lanes, and not while one zooms.
let named = "";
function names(hidden) {
  const now = JSON.stringify([W, shownTall, hidden, geometry.map((o, i) => [i, o.y])]);
  if (named === now) return;
  named = now;
  const g = $("names");
  const clip = sv("svg", { x: 0, y: TOP - 2, width: LEFT, height: shownTall - TOP + 2, viewBox: `0 ${TOP - 2} ${LEFT} ${shownTall - TOP + 2}` });
  geometry.forEach((o, i) => {
    const l = D.lanes[i];
    clip.append(sv("rect", { class: "lane", x: 0, y: o.y, width: LEFT - 6, height: o.h }));
    const name = sv("text", { class: "name", x: 8, y: o.y + (o.h < 20 ? 11 : o.h === 26 ? 17 : 15) }, label(LEFT - 12, l.name, l.lock || l.name));
    name.append(sv("title", {}, l.name));
    clip.append(name);
    if (l.kind === "server") ["held by", "lease left", "queue"].forEach((s, n) => clip.append(sv("text", { class: "soft", x: 18, y: o.y + [30, 52, 76][n] }, s)));
    if (l.kind === "thread" && o.h === 44) clip.append(sv("text", { class: "soft", x: 18, y: o.y + 33 }, "its calls"));
  });
  g.replaceChildren(sv("rect", { class: "behind", x: 0, y: 0, width: LEFT - 4, height: shownTall }), clip, sv("text", { class: "soft", x: 8, y: 46 }, "since the start"));
  if (hidden) g.append(sv("text", { class: "soft", x: 8, y: 14 }, `${hidden} threads that only wait are left out`));
}

function marks() {
  // The first finding has its name for certain, the others where there is room.
  const taken = [], lines = new Set(), g = $("marks"), all = [];
  foundNow().forEach((f, n) => {
    if (f.event < 0 || (S.lock && f.locks.length && !f.locks.includes(S.lock))) return;
    const x = X(place(f.t)), key = Math.round(x) + f.judge;
    if (x < LEFT - 2 || x > W || lines.has(key)) return;
    lines.add(key);
    const grp = sv("g", { class: "mark", "data-judge": f.judge });
    drawn.push({ kind: "mark", x, y: TOP - 17, x2: x, y2: shownTall, text: `${f.judge}, ${f.class}: ${f.why}` });
    grp.append(sv("line", { class: "find " + f.class, x1: x, x2: x, y1: TOP - 14, y2: shownTall, opacity: n ? 0.45 : 1 }));
    const w = f.judge.length * 7 + 22, left = x + w > W ? x - w : x;
    if (!taken.some(([a, b]) => left < b && left + w > a)) {
      taken.push([left, left + w]);
      grp.append(sv("rect", { class: "flag " + f.class, x: left, y: TOP - 17, width: w, height: 14 }), sv("text", { class: "flagtext", x: left + 4, y: TOP - 6 }, "▼ " + f.judge));
    }
    all.push(grp);
  });
  g.replaceChildren(...all);
  const x = X(place(S.t));
  upright("cursor", x < LEFT - 2 ? -9 : x);
}
function upright(id, x) {
  const l = $(id);
  l.setAttribute("x1", x);
  l.setAttribute("x2", x);
  l.setAttribute("y2", shownTall);
}

// ---- the state at an instant
function latest(list, t, same) {
  let got = null;
  for (const x of list) if (x.t <= t && same(x)) got = x;
  return got;
}
let stated = "", stateTall = 0;
function showState(t) {
  const asked = t + S.lock + S.process;
  if (asked === stated) return;
  stated = asked;
  $("now").textContent = at(t);
  const owner = {};
  const table = (title, rows) => {
    const tb = el("table");
    tb.append(el("caption", {}, title));
    for (const [k, v, cls] of rows) {
      const tr = el("tr");
      tr.append(el("th", { scope: "row" }, k), el("td", cls ? { class: cls } : {}, v));
      tb.append(tr);
    }
    return tb;
  };
  const server = [];
  for (const lock of D.locks) {
    if (S.lock && S.lock !== lock) continue;
    const x = latest(D.truth, t, h => h.lock === lock) || {};
    owner[lock] = x.owner || "";
    const rows = [["owner", x.owner ? x.owner + (x.count > 1 ? `, ${x.count} levels` : "") : "nobody: the lock is free"]];
    if (x.owner) rows.push(["time to live", x.exp < 0 ? "none: it never ends" : `${span(Math.max(0, x.exp * ms - t))}, to ${at(x.exp * ms)}`]);
    if (x.queue && x.queue.length) {
      rows.push(["queue", x.queue.map((w, i) => `${i + 1}. ${w}`).join(", ")]);
      if (x.due) rows.push(["deadlines", x.due.map((d, i) => d < 0 ? `${x.queue[i]} none` : `${x.queue[i]} ${at(d * ms)}` + (d * ms < t ? " (over)" : "")).join(", ")]);
    } else if (D.truth.some(h => h.lock === lock && h.queue && h.queue.length)) rows.push(["queue", "empty"]);
    server.push(table("The server's state of " + lock, rows));
  }
  const channels = [...new Set(D.subs.map(s => s.channel))], heard = [];
  for (const ch of channels) {
    const s = latest(D.subs, t, x => x.channel === ch);
    if (s && s.who && s.who.length) heard.push([ch, s.who.join(", ")]);
  }
  server.push(table("Subscribers", heard.length ? heard : [["none", "nobody listens"]]));
  $("server").replaceChildren(...server);
  const rows = [], idle = [];
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
    if (says.length) rows.push([l.name, says.join("; "), wrong ? "wrong" : "", wrong || says[0].startsWith("believes") ? 0 : 1]);
    else idle.push(l.name);
  });
  if (owners.length > 6) rows.sort((a, b) => a[3] - b[3]);
  if (idle.length) rows.push([idle.length > 2 ? `${idle.length} others` : idle.join(", "), "no belief to hold"]);
  $("threads").replaceChildren(table("What the threads believe", rows));
  // Where the state is as tall as it is, it does not shrink, so that the chart stays below the hand.
  stateTall = Math.max(stateTall, $("state").offsetHeight);
  $("state").style.minHeight = stateTall + "px";
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
// A line of the list is chosen, and an instant: its own, or a later one before the
// next line.
function select(i, keepView, t) {
  if (i < 0 || i >= D.events.length) return;
  S.t = t === undefined ? D.events[i].t : t;
  const old = $("e" + S.cur), now = $("e" + i);
  if (old) old.setAttribute("aria-selected", "false");
  S.cur = i;
  if (now) {
    now.setAttribute("aria-selected", "true");
    $("events").setAttribute("aria-activedescendant", now.id);
    const list = $("events"); // not scrollIntoView, which would move the page
    const top = now.getBoundingClientRect().top - list.getBoundingClientRect().top;
    if (top < 0 || top + now.offsetHeight > list.clientHeight) list.scrollTop += top - list.clientHeight / 2;
  }
  const u = place(S.t), w = S.u1 - S.u0;
  if (!keepView && (u < S.u0 + w * 0.02 || u > S.u1 - w * 0.02)) view(u - w / 2, u + w / 2);
  draw();
  showState(S.t);
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
function zoom(by, u, then = draw) {
  if (u === undefined) u = place(S.t);
  if (u < S.u0 || u > S.u1) u = (S.u0 + S.u1) / 2;
  view(u - (u - S.u0) * by, u + (S.u1 - u) * by);
  then();
}
function around(i, before, after) {
  const a = D.events[Math.max(0, i - before)], b = D.events[Math.min(D.events.length - 1, i + after)];
  const pad = axis.plain ? 2 * ms : 1;
  view(place(a.t) - pad, place(b.t) + pad);
}
let nextFinding = 0;
// A finding with what led to it: the last message that a fault met before it.
function goFinding(n) {
  const f = D.findings[n];
  if (!f || f.event < 0) return;
  nextFinding = n + 1;
  let from = f.event - 16;
  for (let i = f.event; i >= Math.max(0, f.event - 150); i--) if (["lost", "hit"].includes(D.events[i].k)) { from = Math.min(from, i - 3); break; }
  around(f.event, f.event - from, 8);
  const rows = lanesOf(f).map(i => D.lanes.slice(0, i).filter(laneShown).length);
  if (rows.length && tall > shownTall) chart.scrollTop = Math.max(0, Math.min(...rows) * 30 - 30);
  select(f.event, true, f.t);
}
function findNext() {
  const ok = D.findings.map((f, i) => i).filter(i => D.findings[i].event >= 0 && (!S.judge || D.findings[i].judge === S.judge));
  if (ok.length) goFinding(ok.find(i => i >= nextFinding) ?? ok[0]);
}
function filter() {
  S.lock = $("lock").value;
  S.process = $("process").value;
  S.judge = $("judge").value;
  for (const li of document.querySelectorAll("#told li[data-judge]")) li.hidden = S.judge !== "" && li.dataset.judge !== S.judge;
  if (S.judge && $("others")) $("others").open = true;
  fillList();
  draw();
  showState(S.t);
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
  lay();
  view(place(a), place(b));
  draw();
});
$("quiet").parentElement.hidden = D.lanes.length <= MANY;
$("quiet").checked = D.lanes.length > MANY;
$("quiet").addEventListener("change", draw);
$("theme").addEventListener("click", () => {
  document.documentElement.dataset.theme = document.documentElement.dataset.theme === "dark" ? "light" : "dark";
  dress();
  draw();
});
let drag = null;
const xOf = e => e.clientX - chart.getBoundingClientRect().left;
chart.addEventListener("wheel", e => {
  if (e.ctrlKey || e.metaKey) return;
  e.preventDefault();
  if (e.shiftKey || Math.abs(e.deltaX) > Math.abs(e.deltaY)) {
    const d = (e.deltaX || e.deltaY) / W * (S.u1 - S.u0);
    view(S.u0 + d, S.u1 + d);
    soon();
  } else zoom(e.deltaY > 0 ? 1.2 : 1 / 1.2, U(xOf(e)), soon);
}, { passive: false });
chart.addEventListener("scroll", soon);
chart.addEventListener("pointerdown", e => { if (xOf(e) <= chart.clientWidth) drag = { x: xOf(e), y: e.clientY, top: chart.scrollTop, u0: S.u0, u1: S.u1, moved: false }; });
addEventListener("pointermove", e => {
  if (!drag) return;
  const d = xOf(e) - drag.x;
  if (Math.abs(d) > 4) drag.moved = true;
  if (drag.moved) {
    const u = d / (W - LEFT) * (drag.u1 - drag.u0);
    view(drag.u0 - u, drag.u1 - u);
    chart.scrollTop = drag.top - (e.clientY - drag.y);
    soon();
  }
});
addEventListener("pointerup", e => {
  if (drag && !drag.moved && xOf(e) > LEFT) {
    const t = instant(U(xOf(e))), i = below(D.events.map(x => x.t), t);
    select(Math.max(0, i), true);
  }
  drag = null;
});
let pointed = 0, pointer = null;
chart.addEventListener("pointermove", e => {
  if (drag || xOf(e) < LEFT) return;
  pointer = e;
  if (!pointed) pointed = requestAnimationFrame(point);
});
function point() {
  pointed = 0;
  if (!pointer) return;
  const x = xOf(pointer), y = pointer.clientY - chart.getBoundingClientRect().top;
  upright("hover", x);
  canvas.title = under(x, y);
  showState(Math.round(Math.max(D.from, Math.min(D.end, instant(U(x))))));
}
chart.addEventListener("pointerleave", () => {
  pointer = null;
  upright("hover", -9);
  showState(S.t);
});
addEventListener("keydown", e => {
  if (e.ctrlKey || e.metaKey || e.altKey || /^(SELECT|INPUT|TEXTAREA)$/.test(e.target.tagName)) return;
  const inList = e.target === $("events");
  const keys = {
    ArrowRight: () => step(1), ArrowLeft: () => step(-1), "+": () => zoom(0.5), "=": () => zoom(0.5), "-": () => zoom(2),
    0: () => { view(first(), last()); draw(); }, f: findNext,
  };
  if (e.target === chart && tall > shownTall) Object.assign(keys, { ArrowDown: () => { chart.scrollTop += 48; }, ArrowUp: () => { chart.scrollTop -= 48; } });
  if (inList || e.target === chart) Object.assign(keys, { Home: () => select(S.shown[0] || 0), End: () => select(S.shown[S.shown.length - 1] || 0) });
  if (inList) Object.assign(keys, { ArrowDown: () => step(1), ArrowUp: () => step(-1) });
  if (keys[e.key]) { e.preventDefault(); keys[e.key](); }
});
addEventListener("resize", () => {
  stateTall = 0;
  $("state").style.minHeight = "";
  soon();
});

// porcupine's picture is a page of its own, kept in this one; of a page that shares its
// code, all lines but those that every picture has.
const pictures = JSON.parse($("pictures").textContent) || [];
function picture(p) {
  if (!p.head && !p.tail) return p.html;
  const frame = pictureFrame.split("\n");
  return [...frame.slice(0, p.head || 0), p.html || "", ...frame.slice(frame.length - (p.tail || 0))].join("\n");
}
for (const b of document.querySelectorAll(".picture")) b.addEventListener("click", () => {
  open(URL.createObjectURL(new Blob([picture(pictures[Number(b.dataset.picture)])], { type: "text/html" })));
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

document.documentElement.dataset.theme = matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light";
dress();
lay();
fillList();
curve();
if (D.events.length) {
  const n = D.findings.findIndex(f => f.event >= 0);
  if (D.events.length > 200 && n >= 0) goFinding(n);
  else { if (D.events.length > 200) around(0, 0, 80); if (n < 0) select(0, true); else select(D.findings[n].event, true, D.findings[n].t); }
  nextFinding = 0;
} else { draw(); showState(D.from); }
