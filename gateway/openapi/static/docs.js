// Copies a block of code, and finds sections of the page by their words. Without scripts the page has all its text.
const main = document.querySelector("main");

// -- copy buttons

if (navigator.clipboard) {
  for (const block of main.querySelectorAll("pre")) {
    const frame = document.createElement("div"), button = document.createElement("button");
    frame.className = "code";
    button.type = "button";
    button.textContent = "Copy";
    block.replaceWith(frame);
    frame.append(button, block);
    button.addEventListener("click", async () => {
      await navigator.clipboard.writeText(block.textContent.trimEnd());
      button.textContent = "Copied";
      setTimeout(() => { button.textContent = "Copy"; }, 1500);
    });
  }
}

// -- search

const MOST = 20, AROUND = 60;
const form = document.querySelector("[data-search]");
const box = form.querySelector("input"), found = form.querySelector("ol"), count = form.querySelector("[role=status]");

// A section is a heading, or a row or a word with an address of its own, with the text up to the next one.
const sections = [];
const walker = document.createTreeWalker(main, NodeFilter.SHOW_ELEMENT | NodeFilter.SHOW_TEXT);
let under = "";
while (walker.nextNode()) {
  const node = walker.currentNode;
  if (node.nodeType === Node.TEXT_NODE) {
    if (node.parentElement.closest(".code > button, h1, h2, h3, h4")) continue;
    if (sections.length) sections.at(-1).text += node.data;
    continue;
  }
  if (!/^H[1-4]$/.test(node.tagName) && !(node.id && /^(TR|DT)$/.test(node.tagName))) continue;
  const id = node.id || node.closest("[id]").id, isHeading = node.tagName.startsWith("H");
  const title = (isHeading ? node : node.firstElementChild ?? node).textContent.trim();
  if (isHeading && node.tagName !== "H4") under = title;
  sections.push({ id, title: title === under ? title : `${under}: ${title}`, text: "" });
}
for (const each of sections) {
  each.text = each.text.replace(/\s+/g, " ").trim();
  each.plain = `${each.title} ${each.text}`.toLowerCase();
}

function excerpt(section, word) {
  const at = section.text.toLowerCase().indexOf(word), line = document.createElement("small");
  if (at < 0) {
    line.append(section.text.slice(0, 2 * AROUND));
    return line;
  }
  const begin = Math.max(0, at - AROUND), end = at + word.length, mark = document.createElement("mark");
  mark.append(section.text.slice(at, end));
  line.append(begin ? "…" : "", section.text.slice(begin, at), mark, section.text.slice(end, end + AROUND), "…");
  return line;
}

function search() {
  const words = box.value.toLowerCase().split(/\s+/).filter(Boolean);
  found.replaceChildren();
  count.textContent = "";
  if (!words.length) return;
  const fitting = sections.filter((each) => words.every((word) => each.plain.includes(word)));
  const inTitle = (each) => Number(words.every((word) => each.title.toLowerCase().includes(word)));
  fitting.sort((one, other) => inTitle(other) - inTitle(one));
  for (const each of fitting.slice(0, MOST)) {
    const item = document.createElement("li"), link = document.createElement("a");
    link.href = `#${each.id}`;
    link.textContent = each.title;
    item.append(link, excerpt(each, words[0]));
    found.append(item);
  }
  const number = fitting.length > MOST ? `the first ${MOST} of ${fitting.length}` : fitting.length || "none";
  count.textContent = `Sections with these words: ${number}`;
}

form.hidden = false;
box.addEventListener("input", search);
form.addEventListener("submit", (event) => {
  event.preventDefault();
  found.querySelector("a")?.click();
});
