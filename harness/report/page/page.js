"use strict";
const numbers = JSON.parse(document.getElementById("numbers").textContent);
const last = numbers.first + numbers.lefts.length - 1;
const list = document.querySelector("ol.operations");
const lines = [...list.children];
const strips = [...document.querySelectorAll(".scroll")];
const labels = [...document.querySelectorAll(".cell-label")].map((text) => ({
  text,
  strip: text.closest(".scroll"),
  left: Number(text.getAttribute("x")),
  // A cell may be wider than the screen; its label stays in the part of it that is seen.
  right: Number(text.getAttribute("x")) + Number(text.dataset.room) - 10 - text.getComputedTextLength(),
}));
let current = numbers.failure;

function settle() {
  for (const { text, strip, left, right } of labels) {
    text.setAttribute("x", Math.max(left, Math.min(strip.scrollLeft + 5, right)));
  }
}

function show(operation) {
  current = Math.min(last, Math.max(numbers.first, operation));
  const at = current - numbers.first;
  const left = numbers.lefts[at];
  const width = numbers.widths[at];
  for (const cursor of document.querySelectorAll(".cursor")) {
    cursor.setAttribute("x", left);
    cursor.setAttribute("width", width);
  }
  lines.forEach((line, index) => {
    if (index === at) line.setAttribute("aria-current", "step");
    else line.removeAttribute("aria-current");
  });
  document.getElementById("position").textContent = "op " + current + " of " + last;
  // Scrolled by hand: to scroll an element into view would move the whole page as well.
  const line = lines[at];
  if (line.offsetTop < list.scrollTop) list.scrollTop = line.offsetTop;
  const below = line.offsetTop + line.offsetHeight - list.clientHeight;
  if (below > list.scrollTop) list.scrollTop = Math.min(below, line.offsetTop);
  for (const strip of strips) {
    const room = strip.clientWidth;
    if (left < strip.scrollLeft || left + width > strip.scrollLeft + room) {
      strip.scrollLeft = left + width / 2 - room / 2;
    }
  }
}

document.addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey) return;
  const steps = { ArrowRight: 1, ArrowDown: 1, j: 1, ArrowLeft: -1, ArrowUp: -1, k: -1 };
  if (event.key in steps) show(current + steps[event.key]);
  else if (event.key === "n") show(numbers.failure);
  else if (event.key === "Home") show(numbers.first);
  else if (event.key === "End") show(last);
  else return;
  event.preventDefault();
});
document.addEventListener("click", (event) => {
  const target = event.target.closest("[data-step], [data-operation], #failure, .plane");
  if (!target) return;
  if (target.dataset.step) show(current + Number(target.dataset.step));
  else if (target.dataset.operation) show(Number(target.dataset.operation));
  else if (target.id === "failure") show(numbers.failure);
  else {
    const x = event.clientX - target.getBoundingClientRect().left;
    const at = numbers.lefts.findIndex((left, index) => x < left + numbers.widths[index]);
    if (at >= 0) show(numbers.first + at);
  }
});
for (const strip of strips) {
  strip.addEventListener("scroll", () => {
    for (const other of strips) if (other !== strip) other.scrollLeft = strip.scrollLeft;
    settle();
  });
}
addEventListener("resize", () => show(current));
show(current);
settle();
