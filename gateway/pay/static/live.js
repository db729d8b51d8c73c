// Updates the page when the server reports a change; without a connection for that, every few seconds.
const POLL_MILLISECONDS = 8000;
const SAFETY_MILLISECONDS = 60000;

export function startLive(begin) {
  const { events } = document.body.dataset;
  if (!events) return;
  let looking = false;
  let again = false;
  let ringing = false;
  let looked = performance.now();

  async function look() {
    if (looking) {
      again = true;
      return;
    }
    looking = true;
    looked = performance.now();
    try {
      const answer = await fetch(location.href, { headers: { Accept: "text/html" }, cache: "no-store" });
      if (answer.ok) show(new DOMParser().parseFromString(await answer.text(), "text/html"), answer);
    } catch {
      // No network now; the next attempt may have one.
    } finally {
      looking = false;
    }
    if (again) {
      again = false;
      await look();
    }
  }

  function show(page, answer) {
    const before = document.querySelector("main");
    const after = page.querySelector("main");
    if (!after || after.dataset.state === before.dataset.state) return;
    before.replaceWith(document.adoptNode(after));
    document.title = page.title;
    if (answer.redirected) history.replaceState(null, "", answer.url);
    begin(after);
    const heading = after.querySelector("h1");
    heading.tabIndex = -1;
    heading.focus(); // screen readers read it, and the keyboard continues there
  }

  // The page is replaced only when its state has changed: until then typed text and choices stay.
  const source = new EventSource(events);
  source.addEventListener("open", () => {
    ringing = true;
  });
  source.addEventListener("error", () => {
    ringing = false;
  });
  source.addEventListener("changed", look);
  document.addEventListener("fiatgate:look", () => setTimeout(look, 1000));
  document.addEventListener("visibilitychange", () => {
    if (!document.hidden) look();
  });
  setInterval(() => {
    if (!document.hidden && performance.now() - looked > (ringing ? SAFETY_MILLISECONDS : POLL_MILLISECONDS - 500)) look();
  }, POLL_MILLISECONDS);
  window.addEventListener("pagehide", () => source.close());
}
