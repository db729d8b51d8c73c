// Empties the bar of each rate until it lapses. Without scripts the bar shows the moment at which the page was made.
for (const bar of document.querySelectorAll("[data-lapses]")) {
  const end = Date.parse(bar.dataset.lapses), whole = Number(bar.dataset.lapseSeconds) * 1000;
  const skew = Date.now() - end + (bar.value / 100) * whole; // this machine's clock may differ from the server's
  const empty = () => { bar.value = Math.max(0, (100 * (end + skew - Date.now())) / whole); };
  setInterval(empty, 1000);
}

// A button that the server would refuse for some seconds can be pressed after them.
for (const button of document.querySelectorAll("[data-waits]")) {
  const end = performance.now() + Number(button.dataset.waits) * 1000;
  const left = button.form.querySelector("[data-waited]");
  button.disabled = true;
  button.form.removeAttribute("target"); // without scripts a further press opens a page of its own, and this result stays
  const timer = setInterval(() => {
    const seconds = Math.ceil((end - performance.now()) / 1000);
    left.textContent = Math.max(1, seconds);
    if (seconds > 0) return;
    clearInterval(timer);
    button.disabled = false;
    left.closest("p").hidden = true;
  }, 250);
}
