"use strict";
const $ = id => document.getElementById(id);
document.documentElement.dataset.theme = matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light";
$("theme").addEventListener("click", () => {
  document.documentElement.dataset.theme = document.documentElement.dataset.theme === "dark" ? "light" : "dark";
});
function filter() {
  const want = $("filter").value.toLowerCase(), odd = $("odd") && $("odd").checked;
  for (const tr of document.querySelectorAll(".row")) tr.hidden = !tr.textContent.toLowerCase().includes(want) || odd && !tr.classList.contains("odd");
}
$("filter").addEventListener("input", filter);
if ($("odd")) $("odd").addEventListener("change", filter);
// A page that is served asks whether its folder has changed. What was typed
// stays.
const stamp = document.body.dataset.stamp;
if (stamp) {
  history.scrollRestoration = "auto";
  $("filter").value = decodeURIComponent(location.hash.slice(1));
  filter();
  setInterval(async () => {
    try {
      if (await (await fetch("stamp")).text() === stamp) return;
    } catch { return; } // the server is gone; the page stays
    history.replaceState(null, "", "#" + encodeURIComponent($("filter").value));
    location.reload();
  }, 2000);
}
