// A list with its selected row beside it: j and k open the row that they select. In a list of deals, one that another
// operator decided is struck, then leaves with a word by whom.
const STRUCK_MILLISECONDS = 5000;
const COUNTED_MOST = 1000;
const list = document.querySelector("[data-beside]");
const evidence = document.querySelector(".evidence");
list?.querySelector("[aria-current]")?.scrollIntoView({ block: "nearest" });

// Until the selected row is shown, no key decides the one before.
let opening;
list?.addEventListener("fiatgate:select", (event) => {
  evidence?.querySelector(".decide, form")?.remove();
  evidence?.setAttribute("aria-busy", "true");
  clearTimeout(opening);
  const link = new URL(event.target.querySelector("a[href]").href);
  link.hash = "";
  opening = setTimeout(() => location.assign(link), 120);
});
list?.addEventListener("click", (event) => {
  if (event.target.closest("a, button, input, label") || String(getSelection())) return;
  event.target.closest("[data-row]")?.querySelector("a[href]")?.click();
});

function strike(row, sentence) {
  row.classList.add("is-gone");
  for (const cell of row.querySelectorAll(".gives-way")) cell.hidden = true;
  const word = row.querySelector(".gone");
  word.hidden = false;
  word.textContent = sentence;
  document.querySelector("[data-said]").textContent = sentence;
  for (const box of row.querySelectorAll("input")) box.disabled = true;
  // Rows move only while no pointer and no focus is among them.
  const leave = setInterval(() => {
    if (list.matches(":hover, :focus-within")) return;
    row.remove();
    clearInterval(leave);
  }, STRUCK_MILLISECONDS);
}

let checking = false;
async function check() {
  const rows = new Map([...list.querySelectorAll("[data-deal]:not(.is-gone)")].map((row) => [row.dataset.deal, row]));
  if (checking || document.hidden || !rows.size) return;
  checking = true;
  try {
    const answer = await fetch(`/deals/states?state=${list.dataset.deals}&ids=${[...rows.keys()].join(",")}`);
    if (!answer.ok || answer.redirected) return;
    for (const [id, sentence] of Object.entries((await answer.json()).gone)) {
      strike(rows.get(id), sentence);
      if (evidence?.dataset.evidence !== id) continue;
      evidence.querySelector(".decide")?.remove();
      const note = evidence.querySelector("[data-decided]");
      note.hidden = false;
      note.textContent = `${sentence}. There is nothing left to decide.`;
    }
  } catch {
    // The next change asks again.
  } finally {
    checking = false;
  }
}
if (list?.dataset.deals) {
  let counted = 0;
  let seen;
  let soon;
  document.addEventListener("fiatgate:queues", (event) => {
    const { deals_marked: marked, appeals } = event.detail.queues ?? {};
    const state = JSON.stringify([marked, appeals]);
    if (state === seen) return;
    [seen, counted] = [state, marked?.count ?? 0];
    // Desks of one office share a limit of requests: they check at different moments, once for several changes.
    soon ??= setTimeout(() => ((soon = undefined), check()), 100 + 900 * Math.random());
  });
  document.addEventListener("visibilitychange", check);
  // Queues are counted to a thousand; a decision in a longer one changes no number.
  setInterval(() => counted >= COUNTED_MOST && check(), 5000);
}
