"use strict";
// The code of the pages of a site: light or dark, and the search.
document.documentElement.dataset.theme = matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light";
addEventListener("DOMContentLoaded", () => {
  const $ = id => document.getElementById(id);
  $("theme").addEventListener("click", () => {
    document.documentElement.dataset.theme = document.documentElement.dataset.theme === "dark" ? "light" : "dark";
  });

  const root = document.body.dataset.root, box = $("words"), found = $("found"), list = found.querySelector("ol"), status = found.querySelector("p");
  const MOST = 40; // places that are shown
  $("search").hidden = false;

  // The index is loaded when somebody begins to search. Each place has its address, its title,
  // its heading and its text; and, for the search, all of it in small letters.
  let index = null;
  function load() {
    index ??= new Promise((done, fail) => {
      const s = document.createElement("script");
      s.src = root + "search.js";
      s.onload = () => done(window.siteIndex.map(([to, title, heading, text]) => ({ to, title, heading, text, small: [title, heading, text].map(x => x.toLowerCase()) })));
      s.onerror = fail;
      document.head.append(s);
    });
    return index;
  }

  // A place has every word. It ranks higher if the word is in the title or the heading, and if
  // it stands there as a whole word.
  function rank(place, words) {
    let sum = 0;
    for (const w of words) {
      let best = 0;
      place.small.forEach((text, i) => {
        const at = text.indexOf(w);
        if (at < 0) return;
        const whole = !/[\p{L}\p{N}]/u.test((text[at - 1] || " ") + (text[at + w.length] || " "));
        best = Math.max(best, [6, 8, 2][i] + (whole ? 1 : 0));
      });
      if (!best) return 0;
      sum += best;
    }
    return sum;
  }

  // Text goes into the page as text only.
  function marked(parent, text, words) {
    const small = text.toLowerCase();
    let from = 0;
    while (from < text.length) {
      let at = text.length, length = 0;
      for (const w of words) {
        const i = small.indexOf(w, from);
        if (i >= 0 && i < at) { at = i; length = w.length; }
      }
      parent.append(text.slice(from, at));
      if (!length) return;
      const m = document.createElement("mark");
      m.textContent = text.slice(at, at + length);
      parent.append(m);
      from = at + length;
    }
  }
  function around(place, words) {
    const at = Math.max(0, ...words.map(w => place.small[2].indexOf(w)));
    const from = at < 60 ? 0 : place.text.lastIndexOf(" ", at - 50) + 1;
    return (from ? "… " : "") + place.text.slice(from, from + 180) + (place.text.length > from + 180 ? " …" : "");
  }
  function row(place, words) {
    const li = document.createElement("li"), a = document.createElement("a"), b = document.createElement("b"), small = document.createElement("small");
    a.href = root + place.to;
    marked(b, place.title + (place.heading ? " › " + place.heading : ""), words);
    marked(small, around(place, words), words);
    a.append(b, small);
    li.append(a);
    return li;
  }

  async function search() {
    const asked = box.value;
    const words = asked.toLowerCase().split(/\s+/).filter(w => w);
    if (!words.length) {
      found.hidden = true;
      return;
    }
    let places;
    try {
      places = await load();
    } catch {
      status.textContent = "the index of the search cannot be read";
      found.hidden = false;
      return;
    }
    if (asked !== box.value) return; // more was typed since
    const hits = places.map(p => [rank(p, words), p]).filter(([n]) => n).sort((a, b) => b[0] - a[0]);
    status.textContent = hits.length === 0 ? "nothing has all these words" : hits.length + (hits.length === 1 ? " place" : " places") + (hits.length > MOST ? `, the first ${MOST}` : "");
    list.replaceChildren(...hits.slice(0, MOST).map(([, p]) => row(p, words)));
    found.hidden = false;
  }
  box.addEventListener("focus", () => load().catch(() => {}), { once: true }); // search says what is wrong
  box.addEventListener("input", search);
  const links = () => [...list.querySelectorAll("a")];
  $("search").addEventListener("submit", e => {
    e.preventDefault();
    if (links().length && !found.hidden) links()[0].click();
  });
  addEventListener("keydown", e => {
    if (e.ctrlKey || e.metaKey || e.altKey) return;
    const typing = /^(INPUT|SELECT|TEXTAREA)$/.test(e.target.tagName), here = links().indexOf(document.activeElement);
    if (e.key === "/" && !typing) box.focus();
    else if (e.key === "Escape" && !found.hidden) {
      found.hidden = true;
      box.focus();
    } else if (e.key === "ArrowDown" && (here >= 0 || e.target === box) && !found.hidden) links()[Math.min(here + 1, links().length - 1)]?.focus();
    else if (e.key === "ArrowUp" && here >= 0) (here ? links()[here - 1] : box).focus();
    else return;
    e.preventDefault();
  });
});
