// Loads the table of processes anew, while the page is seen and none of its lists is open.
const EVERY_MILLISECONDS = 10_000;
setInterval(async () => {
  if (document.hidden || document.querySelector(".health details[open]")) return;
  const answer = await fetch("/health/fresh").catch(() => undefined);
  if (!answer?.ok || answer.redirected || answer.status === 204) return;
  const fresh = new DOMParser().parseFromString(await answer.text(), "text/html").querySelector(".health");
  if (fresh) document.querySelector(".health").replaceWith(fresh);
}, EVERY_MILLISECONDS);
