// Back to the shop after a few seconds, unless the customer wants to stay.
export function startReturn(root) {
  const place = root.querySelector("[data-return-seconds]");
  if (!place) return;
  const link = root.querySelector("[data-return]");
  const stay = place.querySelector("button");
  const timer = setTimeout(() => {
    if (link.isConnected) window.top.location.assign(link.href);
  }, Number(place.dataset.returnSeconds) * 1000);
  stay.hidden = false;
  stay.addEventListener("click", () => {
    clearTimeout(timer);
    place.remove();
    root.querySelector("[data-print]")?.focus();
  });
}

document.addEventListener("click", (event) => {
  if (event.target.closest("[data-print]")) window.print();
});
