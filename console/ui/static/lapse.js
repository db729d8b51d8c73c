// Empties the bar of each rate until it lapses. Without scripts the bar shows the moment at which the page was made.
for (const bar of document.querySelectorAll("[data-lapses]")) {
  const end = Date.parse(bar.dataset.lapses), whole = Number(bar.dataset.lapseSeconds) * 1000;
  const skew = Date.now() - end + (bar.value / 100) * whole; // this machine's clock may differ from the server's
  const empty = () => { bar.value = Math.max(0, (100 * (end + skew - Date.now())) / whole); };
  setInterval(empty, 1000);
}
