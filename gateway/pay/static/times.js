// Shows times in the customer's zone: the server knows UTC only. Times of a receipt have the date and the zone.
export function localTimes(root) {
  const { lang } = document.documentElement;
  const language = navigator.languages.find((each) => each.split("-")[0] === lang) ?? lang; // with its region
  const today = new Date().toDateString();
  for (const place of root.querySelectorAll("time[datetime]")) {
    const at = new Date(place.dateTime);
    const whole = place.hasAttribute("data-whole");
    const line = place.parentElement;
    line.style.minHeight = `${line.offsetHeight}px`; // the lines below do not move
    const dateStyle = whole || at.toDateString() !== today ? "medium" : undefined;
    place.textContent = new Intl.DateTimeFormat(language, { dateStyle, timeStyle: whole ? "long" : "short" }).format(at);
  }
  for (const button of root.querySelectorAll("[data-print]")) button.hidden = false;
}
