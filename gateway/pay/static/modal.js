// For a merchant's own page: shows a payment above it, in a frame, in place of leaving for it. See docs/integrate.md.
//
//   <script src="https://pay.example/pay-modal.js" defer></script>
//   <a href="PAYMENT_LINK" data-fiatgate>Pay</a>
//
// Attributes of the link: data-title, the frame's name for screen readers (else the link's text); data-close, the name of
// the close button (else "Close"). Events on the link, both bubble, with { status, returnUrl } in their detail:
//   fiatgate:finished  the payment has ended; preventDefault() keeps the customer here
//   fiatgate:closed    the frame is gone; status is null when the payment had not ended
//
// The page can be framed by the merchant's frame origins only (fiatgate merchants set ID --frame-origins). Where it can't
// be, and where scripts do not run, the link is a link.
(() => {
  const READY_MILLISECONDS = 1500; // longest time after its load until the payment page has sent its first message
  const BOX = "border:0;padding:0;margin:auto;max-width:none;max-height:none;overflow:hidden;background:Canvas;";
  const LARGE = "width:30rem;height:min(50rem,96vh);border-radius:16px";
  const WHOLE = "width:100vw;height:100vh;height:100dvh;border-radius:0";
  const CLOSE =
    "position:absolute;top:.5rem;right:.5rem;width:2.75rem;height:2.75rem;padding:0;border:0;border-radius:50%;" +
    "background:#0000;color:GrayText;font:1.5rem/1 system-ui,sans-serif;cursor:pointer";

  function open(link) {
    const dialog = document.createElement("dialog");
    const frame = document.createElement("iframe");
    const close = document.createElement("button");
    const origin = new URL(link.href).origin;
    const title = link.dataset.title || link.textContent.trim() || "Payment";
    const end = { status: null, returnUrl: null };
    let ready = false;
    let leaves = false; // to returnUrl, when the frame closes

    dialog.style.cssText = BOX + (window.innerWidth < 520 ? WHOLE : LARGE);
    dialog.setAttribute("aria-label", title);
    frame.style.cssText = "border:0;width:100%;height:100%;display:block";
    frame.title = title;
    frame.allow = "clipboard-write";
    frame.src = link.href;
    close.style.cssText = CLOSE;
    close.type = "button";
    close.textContent = "\u00d7";
    close.setAttribute("aria-label", link.dataset.close || "Close");
    close.addEventListener("click", () => dialog.close());

    const tell = (name) =>
      link.dispatchEvent(new CustomEvent(`fiatgate:${name}`, { bubbles: true, cancelable: name === "finished", detail: { ...end } }));
    const hear = (event) => {
      if (event.origin !== origin || event.source !== frame.contentWindow || !event.data) return;
      if (event.data.fiatgate === "ready") ready = true;
      if (event.data.fiatgate === "return") dialog.close();
      if (event.data.fiatgate === "finished" && end.status === null) {
        end.status = String(event.data.status);
        end.returnUrl = /^https?:/.test(event.data.returnUrl || "") ? event.data.returnUrl : null;
        leaves = tell("finished") && end.returnUrl !== null;
      }
    };
    window.addEventListener("message", hear);
    frame.addEventListener("load", () => {
      setTimeout(() => {
        if (!ready && dialog.open) location.assign(link.href);
      }, READY_MILLISECONDS);
    });
    dialog.addEventListener("close", () => {
      window.removeEventListener("message", hear);
      dialog.remove();
      link.focus();
      tell("closed");
      if (leaves) location.assign(end.returnUrl);
    });
    dialog.append(frame, close);
    document.body.append(dialog);
    dialog.showModal();
    frame.focus();
  }

  document.addEventListener("click", (event) => {
    const link = event.target.closest("a[data-fiatgate]");
    if (!link || event.defaultPrevented || event.button || event.metaKey || event.ctrlKey || event.shiftKey) return;
    if (!("showModal" in document.createElement("dialog"))) return;
    event.preventDefault();
    open(link);
  });
})();
